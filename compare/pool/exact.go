package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

// exactTests names the tests of bytebufferpool that show the goals which are not a matter of time.
func exactTests() map[int][]string {
	return map[int][]string{
		5: {
			"TestConcurrent_BudgetHoldsUnderLoad", "TestBounded_BudgetIsExact", // the budget
			"TestConcurrent_NotFullWithRoom", "TestBounded_LeasedSeatDoesNotFillBudget", // DroppedFull
			"TestBounded_InventoryReconciles",                                                              // Stats, and the first one under load
			"TestConcurrent_CopiesRaceToRelease", "TestLease_ReleaseTwice", "TestLease_PanicsAfterRelease", // leases
			"TestConcurrent_NoTwoOwners_K16", "TestModel_RandomOperations", // all of it
		},
		6: {"TestValidation_TombstonesAreFIFO", "TestValidation_ReacquiredLeavesHistory", "TestGuard_AgreesWithModel"},
	}
}

// TestOutcomes tells of each test that ran whether it passed.
type TestOutcomes struct {
	passed map[string]bool
	race   bool
	ran    bool
}

// check holds the number of tests that passed against the number that the goal names.
func (o TestOutcomes) check(goal int) measure.Check {
	names := exactTests()[goal]
	label, passed := "tests", 0.0
	if o.race {
		label = "tests under -race"
	}
	for _, name := range names {
		if o.passed[name] {
			passed++
		}
	}
	if !o.ran || len(names) == 0 {
		passed = math.NaN()
	}
	return measure.AtLeast(label+" passed", measure.Exactly(passed), float64(len(names)), "")
}

// Missing returns the tests that did not pass or do not exist.
func (o TestOutcomes) Missing() []string {
	var missing []string
	for _, names := range exactTests() {
		for _, name := range names {
			if o.ran && !o.passed[name] {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// RunTests runs the tests that the goals name, in dir, which is the folder of bytebufferpool, as that module's users would build it.
// A test that fails is no error but an outcome; one that was skipped has not passed.
func RunTests(ctx context.Context, dir string, race bool, limit time.Duration) (TestOutcomes, error) {
	var names []string
	for _, more := range exactTests() {
		names = append(names, more...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	args := []string{"test", "-json", "-count=1", "-vet=off", "-timeout=" + limit.String(), "-run=^(" + strings.Join(names, "|") + ")$"}
	if race {
		args = append(args, "-race")
	}
	ctx, cancel := context.WithTimeout(ctx, limit+killDelay)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "./...")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "PWD="+dir)
	cmd.WaitDelay = killDelay
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return TestOutcomes{}, fmt.Errorf("go test in %s: %w", dir, err)
	}
	passed := parseOutcomes(stdout)
	if len(passed) == 0 {
		return TestOutcomes{}, fmt.Errorf("go test in %s ran no test: %s", dir, firstLine(stderr.Bytes(), stdout))
	}
	return TestOutcomes{passed: passed, race: race, ran: true}, nil
}

// killDelay is what a child gets beyond its own limit before it is killed.
const killDelay = 10 * time.Second

// parseOutcomes reads the events of 'go test -json'. Only whole tests count, not their parts.
func parseOutcomes(events []byte) map[string]bool {
	passed := make(map[string]bool)
	for line := range bytes.Lines(events) {
		var e struct{ Action, Test string }
		if json.Unmarshal(line, &e) != nil || e.Test == "" || strings.Contains(e.Test, "/") {
			continue
		}
		switch e.Action {
		case "pass":
			if _, failed := passed[e.Test]; !failed { // a test of that name in another package has failed
				passed[e.Test] = true
			}
		case "fail", "skip":
			passed[e.Test] = false
		}
	}
	return passed
}

func firstLine(texts ...[]byte) string {
	for _, text := range texts {
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" {
				return line
			}
		}
	}
	return "no output"
}
