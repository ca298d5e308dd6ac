package pool

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

func TestParseOutcomes(t *testing.T) {
	events := `{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA/part"}
{"Action":"pass","Test":"TestA"}
{"Action":"fail","Test":"TestB"}
{"Action":"skip","Test":"TestC"}
{"Action":"pass","Test":"TestB","Package":"another"}
not JSON
{"Action":"pass","Package":"p"}
`
	got := parseOutcomes([]byte(events))
	want := map[string]bool{"TestA": true, "TestB": false, "TestC": false}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, passed := range want {
		if got[name] != passed {
			t.Errorf("%s passed: %v, want %v", name, got[name], passed)
		}
	}
}

func TestTestOutcomes_Check(t *testing.T) {
	names := exactTests()[5]
	all := make(map[string]bool)
	for _, name := range names {
		all[name] = true
	}
	if c := (TestOutcomes{ran: true, passed: all}).check(5); c.Verdict() != measure.Reached {
		t.Errorf("all passed: %v", c)
	}
	if c := (TestOutcomes{}).check(5); !math.IsNaN(c.Value.Median) {
		t.Errorf("nothing ran: %v", c)
	}
	for _, how := range []string{"failed", "missing"} {
		if delete(all, names[0]); how == "failed" {
			all[names[0]] = false
		}
		o := TestOutcomes{ran: true, passed: all}
		if c := o.check(5); c.Verdict() != measure.Short {
			t.Errorf("one is %s: %v", how, c)
		}
		if missing := strings.Join(o.Missing(), " "); !strings.Contains(missing, names[0]) {
			t.Errorf("one is %s: %q does not name it", how, missing)
		}
	}
}

// A renamed test would make a goal short that is not, and be seen only when the figures are measured the next time.
func TestExactTests_Exist(t *testing.T) {
	files, err := filepath.Glob("../../bytebufferpool/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in bytebufferpool: %v", err)
	}
	exists := make(map[string]bool)
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declaration.FindAllSubmatch(source, -1) {
			exists[string(match[1])] = true
		}
	}
	for goal, names := range exactTests() {
		if len(names) == 0 {
			t.Errorf("goal %d names no test", goal)
		}
		for _, name := range names {
			if !exists[name] {
				t.Errorf("goal %d names %s, which is not in bytebufferpool", goal, name)
			}
		}
	}
}

// RunTests on a module made for it, with a test that passes under a name that a goal gives, and one that fails.
func TestRunTests(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module")
	}
	passing, failing := exactTests()[5][0], exactTests()[6][0]
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/made\n\ngo 1.22\n",
		"made_test.go": "package made\n\nimport \"testing\"\n\nfunc " + passing + "(t *testing.T) {}\n\nfunc " +
			failing + "(t *testing.T) { t.Error(\"on purpose\") }\n\nfunc TestNotAsked(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := RunTests(t.Context(), dir, false, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.passed) != 2 || !o.passed[passing] || o.passed[failing] {
		t.Errorf("got %v, want %s alone to pass", o.passed, passing)
	}

	if err := os.WriteFile(filepath.Join(dir, "made_test.go"), []byte("package made\n\nbroken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err := RunTests(t.Context(), dir, false, time.Minute); err == nil {
		t.Errorf("a module that does not compile gives %v and no error", o)
	}
}
