package measure_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

func key(name string) measure.Key { return measure.Key{Group: "Fixed", Case: name, Procs: 2} }

func fill(r *measure.Results, name string, ns ...int) {
	for _, x := range ns {
		r.Add(key(name), measure.Sample{Ops: 10, Elapsed: time.Duration(x) * 10, Allocs: 29, Bytes: 1999})
	}
}

func TestResults_Ratio(t *testing.T) {
	r := measure.NewResults()
	fill(r, "a", 10, 30, 20)
	fill(r, "b", 40, 30, 50)
	// Medians 20 and 40; round by round 10/40, 30/30 and 20/50.
	if got, want := r.Ratio(key("a"), key("b")), (measure.Spread{Median: 0.5, Min: 0.25, Max: 1}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := r.Difference(key("b"), key("a")), (measure.Spread{Median: 20, Min: 0, Max: 30}); got != want {
		t.Errorf("difference %v, want %v", got, want)
	}
	for _, pair := range [][2]string{{"a", "none"}, {"none", "a"}, {"none", "none"}} {
		if got := r.Ratio(key(pair[0]), key(pair[1])); !math.IsNaN(got.Median) {
			t.Errorf("%v: got %v, want NaN", pair, got)
		}
	}
}

// A figure is marked when more than half of its samples were disturbed, a ratio when one of its sides is.
func TestResults_MarksWhatWasDisturbed(t *testing.T) {
	r := measure.NewResults()
	for i := range 4 {
		quiet := measure.Sample{Ops: 1, Elapsed: 1000, Waited: 20} // the most that counts as quiet
		busy := measure.Sample{Ops: 1, Elapsed: 1000, Waited: 21}
		r.Add(key("quiet"), quiet)
		if r.Add(key("fewer"), quiet); i%2 == 0 {
			r.Add(key("fewer"), busy)
			r.Add(key("more"), quiet)
		} else {
			r.Add(key("more"), busy)
		}
	}
	r.Add(key("more"), measure.Sample{Ops: 1, Elapsed: 1000, Waited: 21})
	for name, want := range map[string]bool{"quiet": false, "fewer": false, "more": true} {
		if got := r.Time(key(name)); got.Disturbed != want || strings.Contains(got.String(), measure.DisturbedMark) != want {
			t.Errorf("%s: %v, want disturbed %v", name, got, want)
		}
		for _, ratio := range []measure.Spread{r.Ratio(key(name), key("quiet")), r.Ratio(key("quiet"), key(name)), r.Difference(key(name), key("quiet"))} {
			if ratio.Disturbed != want {
				t.Errorf("a ratio with %s: %v", name, ratio)
			}
		}
	}
	if disturbed, of := r.Disturbed(); disturbed != 5 || of != 15 {
		t.Errorf("%d of %d disturbed, want 5 of 15", disturbed, of)
	}
	if check := measure.AtMost("a", r.Ratio(key("more"), key("quiet")), 2, "x"); !strings.HasPrefix(check.String(), "a 1.00x"+measure.DisturbedMark) {
		t.Errorf("a check does not show the mark: %v", check)
	}
}

func TestResults_CountsWholeAllocations(t *testing.T) {
	r := measure.NewResults()
	fill(r, "a", 1)
	if allocs, bytes := r.Allocs(key("a")).Median, r.Bytes(key("a")).Median; allocs != 2 || bytes != 199 {
		t.Errorf("got %v allocations, %v bytes, want 2 and 199", allocs, bytes)
	}
}

func TestResults_WriteBenchmarks(t *testing.T) {
	r := measure.NewResults()
	fill(r, "a", 12, 2000)
	r.Add(measure.Key{Group: "Cold", Case: "b", Procs: 1}, measure.Sample{Ops: 3, Elapsed: 10})
	var b strings.Builder
	if err := r.WriteBenchmarks(&b, "pool"); err != nil {
		t.Fatal(err)
	}
	want := "BenchmarkFixed/pool=a-2\t10\t12.000 ns/op\t199 B/op\t2 allocs/op\n" +
		"BenchmarkFixed/pool=a-2\t10\t2000 ns/op\t199 B/op\t2 allocs/op\n" +
		"BenchmarkCold/pool=b\t3\t3.333 ns/op\t0 B/op\t0 allocs/op\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestObserve(t *testing.T) {
	facts := measure.Observe(t.Context(), t.TempDir(), "make bench", nil)
	if facts.Commit != "unknown" {
		t.Errorf("commit %q outside of git, want unknown", facts.Commit)
	}
	if facts.CPUs < 1 || !strings.HasPrefix(facts.Go, "go") && !strings.HasPrefix(facts.Go, "devel") || facts.CPU == "" || facts.Load == "" {
		t.Errorf("incomplete: %+v", facts)
	}
	facts.Modules = []measure.Module{{Path: "example.org/a", Version: "v1.2.3"}}
	lines := facts.Lines()
	for _, part := range []string{facts.CPU, facts.Go, "example.org/a v1.2.3", "`make bench`", "commit unknown"} {
		if !strings.Contains(lines, part) {
			t.Errorf("%q is not in\n%s", part, lines)
		}
	}
}
