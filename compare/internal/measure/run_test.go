package measure_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

func cases(cs ...measure.Case) func() []measure.Case {
	return func() []measure.Case { return cs }
}

// Two cases of one operation each write down when they are called.
func TestRun_InterleavesAndRotates(t *testing.T) {
	var calls []string
	one := func(name string) measure.Case {
		return measure.Case{
			Name: name, Ops: 1, Warm: 2,
			Before: func() { calls = append(calls, "before "+name) },
			Run:    func(n int) { calls = append(calls, fmt.Sprint(n, name)) },
		}
	}
	var lines []string
	g := measure.Group{Name: "G", Rounds: 3, Cases: cases(one("a"), one("b"))}
	results, err := measure.Run(t.Context(), []measure.Group{g}, func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	want := "2a,before a,1a,2b,before b,1b, 2b,before b,1b,2a,before a,1a, 2a,before a,1a,2b,before b,1b"
	if got := strings.Join(calls, ","); got != strings.ReplaceAll(want, ", ", ",") {
		t.Errorf("order %s, want %s", got, want)
	}
	for k, samples := range results.All() {
		if len(samples) != 3 {
			t.Errorf("%v has %d samples, want one a round", k, len(samples))
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "G") {
		t.Errorf("progress %q, want one line for the group", lines)
	}
}

func TestRun_WarmsUpAndFillsTheStretch(t *testing.T) {
	var runs []int
	sum := 0
	g := measure.Group{Name: "G", Rounds: 2, Stretch: time.Millisecond, Cases: cases(measure.Case{
		Name: "a", Run: func(n int) {
			runs = append(runs, n)
			for i := range n {
				sum += i
			}
		},
	})}
	results, err := measure.Run(t.Context(), []measure.Group{g}, nil)
	if err != nil {
		t.Fatal(err)
	}
	timed := 0
	for _, samples := range results.All() {
		timed = samples[0].Ops
		if samples[1].Ops != timed {
			t.Errorf("stretches of %d and %d operations, want the same", timed, samples[1].Ops)
		}
	}
	tail := runs[len(runs)-4:]
	if timed < 1000 || tail[0] != timed/8 || tail[1] != timed || tail[2] != tail[0] || tail[3] != timed {
		t.Errorf("runs %v, want a warm-up in front of each stretch of %d", tail, timed)
	}
}

func TestRun_CountsAllocations(t *testing.T) {
	var sink []byte
	all := []measure.Case{
		{Name: "none", Run: func(n int) {
			for range n {
				sink = sink[:0]
			}
		}},
		{Name: "two", Run: func(n int) {
			for range n {
				sink = make([]byte, 64)
				sink = make([]byte, 128)
			}
		}},
	}
	// Also when it is one operation alone, where nothing of the harness's own is divided away.
	for name, run := range map[string]func(int){"none, once": func(int) {}, "one, once": func(int) { sink = make([]byte, 64) }} {
		all = append(all, measure.Case{Name: name, Ops: 1, Run: run})
	}
	g := measure.Group{Name: "G", Rounds: 5, Stretch: time.Millisecond, Cases: cases(all...)}
	results, err := measure.Run(t.Context(), []measure.Group{g}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"none, once": 0, "one, once": 1} {
		k := measure.Key{Group: "G", Case: name}
		if allocs, bytes := results.Allocs(k).Median, results.Bytes(k).Median; allocs != want || bytes != 64*want {
			t.Errorf("%s: %v allocations of %v bytes, want %v of 64", name, allocs, bytes, want)
		}
	}
	none, two := measure.Key{Group: "G", Case: "none"}, measure.Key{Group: "G", Case: "two"}
	if got := results.Allocs(none).Median; got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
	if allocs, bytes := results.Allocs(two).Median, results.Bytes(two).Median; allocs != 2 || bytes != 192 {
		t.Errorf("%v allocations of %v bytes, want 2 of 192", allocs, bytes)
	}
}

func TestRun_SetsAndRestoresProcs(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var seen []int
	at := func(procs int) measure.Case {
		return measure.Case{Name: "a", Procs: procs, Ops: 1, Run: func(int) { seen = append(seen, runtime.GOMAXPROCS(0)) }}
	}
	g := measure.Group{Name: "G", Rounds: 1, Cases: cases(at(1), at(3))}
	results, err := measure.Run(t.Context(), []measure.Group{g}, nil)
	if err != nil || !slices.Equal(seen, []int{1, 3}) {
		t.Errorf("ran at GOMAXPROCS %v, %v, want 1 and 3", seen, err)
	}
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("left GOMAXPROCS at %d, want %d", got, before)
	}
	if !results.Has(measure.Key{Group: "G", Case: "a", Procs: 3}) {
		t.Error("cases that differ in Procs alone are not told apart")
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	g := measure.Group{Name: "G", Rounds: 1 << 30, Cases: cases(measure.Case{Name: "a", Ops: 1, Run: func(int) {
		if calls++; calls == 5 {
			cancel()
		}
	}})}
	results, err := measure.Run(ctx, []measure.Group{g}, nil)
	if !errors.Is(err, context.Canceled) || calls != 5 {
		t.Errorf("%d calls, error %v, want 5 and the context's", calls, err)
	}
	if !results.Has(measure.Key{Group: "G", Case: "a"}) {
		t.Error("what was measured so far is lost")
	}
}

// An empty operation never fills a stretch: without a bound it would be calibrated for ever.
func TestRun_EndsForAnEmptyCase(t *testing.T) {
	g := measure.Group{Name: "G", Rounds: 1, Stretch: time.Millisecond, Cases: cases(measure.Case{Name: "nothing", Run: func(int) {}})}
	results, err := measure.Run(t.Context(), []measure.Group{g}, nil)
	if err != nil || !results.Has(measure.Key{Group: "G", Case: "nothing"}) {
		t.Errorf("not measured: %v", err)
	}
}

func TestRun_SharesTheWork(t *testing.T) {
	for _, tc := range []struct{ goroutines, procs, n int }{{1, 1, 7}, {2, 2, 7}, {3, 2, 7}, {4, 1, 4}, {128, 2, 500}, {4, 2, 3}} {
		var mu sync.Mutex
		var shares []int
		g := measure.Group{Name: "G", Rounds: 1, Cases: cases(measure.Case{
			Name: "a", Ops: tc.n, Procs: tc.procs, Goroutines: tc.goroutines,
			Run: func(n int) {
				mu.Lock()
				defer mu.Unlock()
				shares = append(shares, n)
			},
		})}
		results, err := measure.Run(t.Context(), []measure.Group{g}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, n := range shares {
			sum += n
		}
		if sum != tc.n || len(shares) != tc.goroutines || slices.Max(shares)-slices.Min(shares) > 1 {
			t.Errorf("%+v: shares %v", tc, shares)
		}
		for _, samples := range results.All() {
			if samples[0].Ops != tc.n || samples[0].Elapsed <= 0 {
				t.Errorf("%+v: sample %+v", tc, samples[0])
			}
		}
	}
}

// All goroutines must be at work at once: each waits for the others. With as many processors, and with fewer.
func TestRun_IsParallel(t *testing.T) {
	for _, procs := range []int{2, 8} {
		var wg sync.WaitGroup
		wg.Add(8)
		g := measure.Group{Name: "G", Rounds: 1, Cases: cases(measure.Case{
			Name: "a", Ops: 8, Procs: procs, Goroutines: 8, Run: func(int) { wg.Done(); wg.Wait() },
		})}
		if _, err := measure.Run(t.Context(), []measure.Group{g}, nil); err != nil {
			t.Error(err)
		}
	}
}

// The time is that from the common start to the last end: a goroutine that sleeps alone decides it.
func TestRun_TakesTheLastEnd(t *testing.T) {
	var first atomic.Bool
	const nap = 20 * time.Millisecond
	g := measure.Group{Name: "G", Rounds: 1, Cases: cases(measure.Case{
		Name: "a", Ops: 2, Procs: 2, Goroutines: 2, Run: func(int) {
			if first.CompareAndSwap(false, true) {
				time.Sleep(nap)
			}
		},
	})}
	results, err := measure.Run(t.Context(), []measure.Group{g}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, samples := range results.All() {
		if samples[0].Elapsed < nap {
			t.Errorf("%v, want at least the %v of the slower one", samples[0].Elapsed, nap)
		}
	}
}

// A stretch is repeated while it is disturbed, at most so often, and the least disturbed one counts. What disturbs is a busy
// machine, so here it only shows that an undisturbed case is not repeated and that the count is bounded.
func TestRun_BoundsItsTries(t *testing.T) {
	calls := 0
	g := measure.Group{Name: "G", Rounds: 4, Stretch: 100 * time.Microsecond, Tries: 3, Cases: cases(measure.Case{
		Name: "a", Before: func() { calls++ }, Run: func(n int) { time.Sleep(time.Duration(n) * 100 * time.Microsecond) },
	})}
	results, err := measure.Run(t.Context(), []measure.Group{g}, nil)
	if err != nil {
		t.Fatal(err)
	}
	disturbed, of := results.Disturbed()
	if of != 4 || disturbed > of {
		t.Errorf("%d of %d disturbed", disturbed, of)
	}
	// One for the calibration, then between one and three a round.
	if calls < 1+4 || calls > 1+4*3 {
		t.Errorf("%d stretches in 4 rounds", calls)
	}
}
