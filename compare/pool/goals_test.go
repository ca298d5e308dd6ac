package pool_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotset-go/hotset/compare/internal/measure"
	"github.com/hotset-go/hotset/compare/pool"
)

// tiny runs everything once and takes next to no time: its figures mean nothing.
var tiny = pool.Effort{Rounds: 1, Stretch: 10 * time.Microsecond, Single: 1}

var measured = sync.OnceValue(func() pool.Measured { return measureAll(tiny) })

func measureAll(e pool.Effort) pool.Measured {
	results, err := measure.Run(context.Background(), e.Groups(), nil)
	if err != nil {
		panic(err)
	}
	m := pool.Measured{Results: results}
	for _, sp := range e.SlicePools() {
		for _, load := range pool.PeakLoads() {
			small := pool.PeakLoad{Size: load.Size, Count: 4}
			m.Peaks = append(m.Peaks, pool.PeakRow{Pool: sp.Name, Load: load, Samples: []pool.PeakSample{pool.Peak(sp, small)}})
		}
	}
	return m
}

// Every figure that a goal names is measured by the suite: a name that nobody measures would show as "not measured" for ever.
// What is shown by tests is not, since they are not run here.
func TestGoals_EveryFigureIsMeasured(t *testing.T) {
	t.Run("full", func(t *testing.T) { everyFigure(t, measured()) })
	t.Run("goals only", func(t *testing.T) {
		e := tiny
		e.GoalsOnly = true
		everyFigure(t, measureAll(e))
	})
}

func everyFigure(t *testing.T, m pool.Measured) {
	t.Helper()
	goals := pool.Goals(m)
	if len(goals) != 11 {
		t.Errorf("%d goals, want 11", len(goals))
	}
	for i, g := range goals {
		if g.Number != i+1 {
			t.Errorf("goal %d has the number %d", i+1, g.Number)
		}
		for _, c := range g.Checks {
			byTests := strings.HasPrefix(c.Name, "tests")
			if missing := c.Verdict() == measure.NotMeasured; missing != byTests {
				t.Errorf("goal %d: %v", g.Number, c)
			}
		}
	}
}

// synthetic returns figures that reach every goal, with those of changed in their place.
func synthetic(changed map[measure.Key]measure.Sample) *measure.Results {
	r := measure.NewResults()
	ours := []string{
		"fast-lease", "fast-raw", "bounded-lease", "bounded-raw", "fast-raw-validated", "fast-raw-all-options",
		"fast-buffer", "bounded-buffer", "fast-chain", "bounded-chain",
	}
	others := []string{"sync.Pool", "pooled-bytes.Buffer", "one-mutex", "libp2p", "grpc", "valyala", "clear"}
	add := func(group, name string, procs int, ns time.Duration) {
		k := measure.Key{Group: group, Case: name, Procs: procs}
		s, ok := changed[k]
		if !ok {
			s = measure.Sample{Ops: 1, Elapsed: ns}
		}
		r.Add(k, s)
	}
	for _, group := range []string{"Fixed", "Crowd", "Hold", "Fresh", "Depth", "AfterGC1", "Growth16KiB", "Warm2MiB", "Cold2MiB", "ColdReadFrom2MiB"} {
		for _, procs := range []int{1, 2} {
			for _, name := range ours {
				add(group, name, procs, 20/time.Duration(procs))
			}
			for _, name := range others {
				add(group, name, procs, 100/time.Duration(procs))
			}
		}
	}
	return r
}

func TestGoals_EachLimitBinds(t *testing.T) {
	ns := func(d time.Duration) measure.Sample { return measure.Sample{Ops: 1, Elapsed: d} }
	at := func(group, name string, procs int) measure.Key {
		return measure.Key{Group: group, Case: name, Procs: procs}
	}
	// With all figures good, only what tests and processes show is missing.
	for _, g := range pool.Goals(pool.Measured{Results: synthetic(nil)}) {
		if g.Verdict() == measure.Short {
			t.Errorf("goal %d is short with good figures: %v", g.Number, g.Checks)
		}
	}
	// Each case: a figure just beyond its limit, and the one goal that must be short. A figure may stand in several goals.
	tests := map[string]struct {
		goal    int
		changed map[measure.Key]measure.Sample
	}{
		"Lease at cpu 1":               {1, map[measure.Key]measure.Sample{at("Fixed", "fast-lease", 1): ns(86), at("Fixed", "libp2p", 1): ns(900), at("Fixed", "grpc", 1): ns(900)}},
		"Lease at cpu 2":               {1, map[measure.Key]measure.Sample{at("Fixed", "fast-lease", 2): ns(43), at("Fixed", "libp2p", 2): ns(900), at("Fixed", "grpc", 2): ns(900)}},
		"Lease allocates":              {1, map[measure.Key]measure.Sample{at("Fixed", "fast-lease", 2): {Ops: 1, Elapsed: 10, Allocs: 1}}},
		"libp2p is near":               {1, map[measure.Key]measure.Sample{at("Fixed", "libp2p", 1): ns(45)}},
		"gRPC is near":                 {1, map[measure.Key]measure.Sample{at("Fixed", "grpc", 2): ns(22)}},
		"Raw at cpu 1":                 {2, map[measure.Key]measure.Sample{at("Fixed", "fast-raw", 1): ns(101)}},
		"Raw at cpu 2":                 {2, map[measure.Key]measure.Sample{at("Fixed", "fast-raw", 2): ns(51)}},
		"Bounded Lease":                {3, map[measure.Key]measure.Sample{at("Fixed", "bounded-lease", 1): ns(111)}},
		"Bounded Raw":                  {3, map[measure.Key]measure.Sample{at("Fixed", "bounded-raw", 1): ns(111)}},
		"Bounded Lease does not scale": {3, map[measure.Key]measure.Sample{at("Fixed", "bounded-lease", 2): ns(12)}},
		"Bounded Raw does not scale":   {3, map[measure.Key]measure.Sample{at("Fixed", "bounded-raw", 2): ns(12)}},
		"one mutex is near":            {3, map[measure.Key]measure.Sample{at("Crowd", "one-mutex", 2): ns(39)}},
		"fresh goroutine":              {4, map[measure.Key]measure.Sample{at("Fresh", "fast-lease", 1): ns(151)}},
		"shard miss":                   {4, map[measure.Key]measure.Sample{at("Depth", "bounded-lease", 2): ns(76)}},
		"16 held":                      {4, map[measure.Key]measure.Sample{at("Hold", "bounded-lease", 1): ns(151)}},
		"validation":                   {6, map[measure.Key]measure.Sample{at("Fixed", "fast-raw-validated", 1): ns(221)}},
		"validation allocates":         {6, map[measure.Key]measure.Sample{at("Fixed", "fast-raw-validated", 1): {Ops: 1, Elapsed: 10, Allocs: 1}}},
		"growth":                       {7, map[measure.Key]measure.Sample{at("Growth16KiB", "fast-buffer", 1): ns(101)}},
		"growth against valyala":       {7, map[measure.Key]measure.Sample{at("Growth16KiB", "valyala", 1): ns(16)}},
		"growth allocates":             {7, map[measure.Key]measure.Sample{at("Growth16KiB", "fast-buffer", 1): {Ops: 1, Elapsed: 10, Allocs: 1}}},
		"cold writes":                  {8, map[measure.Key]measure.Sample{at("Cold2MiB", "fast-buffer", 1): {Ops: 1, Elapsed: 10, Bytes: 4<<20 + 1}}},
		"cold allocations":             {8, map[measure.Key]measure.Sample{at("Cold2MiB", "fast-buffer", 1): {Ops: 1, Elapsed: 10, Allocs: 41}}},
		"cold ReadFrom":                {8, map[measure.Key]measure.Sample{at("ColdReadFrom2MiB", "fast-buffer", 1): {Ops: 1, Elapsed: 10, Bytes: 4_250_001}}},
		"chain":                        {9, map[measure.Key]measure.Sample{at("Warm2MiB", "fast-chain", 1): ns(26)}},
		"chain allocates":              {9, map[measure.Key]measure.Sample{at("Warm2MiB", "fast-chain", 1): {Ops: 1, Elapsed: 10, Bytes: 1}}},
		"after a collection":           {10, map[measure.Key]measure.Sample{at("AfterGC1", "fast-lease", 1): ns(71)}},
		"allocates after a collection": {10, map[measure.Key]measure.Sample{at("AfterGC1", "fast-lease", 1): {Ops: 1, Elapsed: 10, Allocs: 1}}},
		"all options":                  {11, map[measure.Key]measure.Sample{at("Fixed", "fast-raw-all-options", 1): ns(161)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, g := range pool.Goals(pool.Measured{Results: synthetic(tc.changed)}) {
				if got, want := g.Verdict() == measure.Short, g.Number == tc.goal; got != want {
					t.Errorf("goal %d short: %v, want %v: %v", g.Number, got, want, g.Checks)
				}
			}
		})
	}
}

func TestGoals_HeapAfterCollections(t *testing.T) {
	row := func(name string, gc3 uint64) pool.PeakRow {
		return pool.PeakRow{Pool: name, Load: pool.PeakLoads()[0], Samples: []pool.PeakSample{{GC3: gc3}}}
	}
	tests := map[string]struct {
		ours uint64
		want measure.Verdict
	}{
		"equal": {1 << 20, measure.Reached}, "less": {0, measure.Reached}, "50 KiB more": {1<<20 + 50<<10, measure.Reached},
		"one megabyte more": {2 << 20, measure.Short},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			goals := pool.Goals(pool.Measured{
				Results: synthetic(nil), Peaks: []pool.PeakRow{row("sync.Pool", 1<<20), row("fast-lease", tc.ours)},
			})
			for _, c := range goals[9].Checks {
				if strings.HasSuffix(c.Name, pool.PeakLoads()[0].String()) && c.Verdict() != tc.want {
					t.Errorf("%v: want %v", c, tc.want)
				}
			}
		})
	}
}

// The report shows every line and every goal, and nothing that was not measured.
func TestReport(t *testing.T) {
	facts := measure.Facts{CPU: "a machine", Go: "go1.26", Commit: "abc", Command: "make bench-pool"}
	report := pool.Report(facts, tiny, measured())
	for _, sp := range pool.SlicePools() {
		// Slices at work, in patterns, after a collection, and under each of two loads.
		if n := strings.Count(report, "| "+sp.Title+" "); n < 5 {
			t.Errorf("%s is in %d tables, want 5", sp.Title, n)
		}
	}
	for _, bp := range pool.BufferPools() {
		if n := strings.Count(report, "| "+bp.Title+" "); n < 2 {
			t.Errorf("%s is in %d tables, want 2", bp.Title, n)
		}
	}
	for _, part := range []string{"a machine", "make bench-pool", "of 11 reached", "### Memory in a fresh process"} {
		if !strings.Contains(report, part) {
			t.Errorf("%q is not in the report", part)
		}
	}
	if strings.Contains(report, "NaN") {
		t.Error("NaN in the report")
	}

	empty := pool.Report(facts, tiny, pool.Measured{Results: measure.NewResults()})
	if n := strings.Count(empty, "\n### "); n != 1 {
		t.Errorf("%d sections without a figure, want the goals alone", n)
	}
}

func TestPeak_HoldsWhatItTook(t *testing.T) {
	for _, sp := range pool.SlicePools() {
		load := pool.PeakLoad{Size: 64 << 10, Count: 32}
		if got := pool.Peak(sp, load); got.Held < uint64(load.Size*load.Count) {
			t.Errorf("%s: %d bytes in use while %d are out", sp.Name, got.Held, load.Size*load.Count)
		}
	}
}
