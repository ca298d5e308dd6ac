package pool

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

// Effort says how much time a run of the suite takes.
type Effort struct {
	Rounds  int           // of everything that is timed over many operations
	Stretch time.Duration // of those
	Tries   int           // of a stretch that other processes disturb
	Single  int           // rounds of what is timed for one operation: cold starts, and the first one after a collection

	// GoalsOnly leaves out everything to which no goal refers.
	GoalsOnly bool
}

var (
	// Full is the effort behind published figures.
	Full = Effort{Rounds: 31, Stretch: time.Millisecond, Tries: 6, Single: 51}

	// Quick shows where the goals stand, in well under a minute on an idle machine.
	Quick = Effort{Rounds: measure.PublishRounds, Stretch: time.Millisecond, Tries: 3, Single: 15, GoalsOnly: true}
)

// write is a way to fill a buffer.
type write struct {
	name  string
	piece int // bytes of one write; 0 means ReadFrom
	total int
	cold  bool // with a new pool each time
}

func writes() []write {
	const (
		kib = 1 << 10
		mib = 1 << 20
	)
	return []write{
		{name: "Growth16KiB", piece: 64, total: 16 * kib},
		{name: "Warm2MiB", piece: 4 * kib, total: 2 * mib},
		{name: "Warm8MiB", piece: 4 * kib, total: 8 * mib},
		{name: "WarmReadFrom2MiB", total: 2 * mib},
		{name: "Cold2MiB", piece: 4 * kib, total: 2 * mib, cold: true},
		{name: "Cold8MiB", piece: 4 * kib, total: 8 * mib, cold: true},
		{name: "ColdReadFrom2MiB", total: 2 * mib, cold: true},
	}
}

func (w write) run(b Buffers, n int, data []byte) {
	if w.piece == 0 {
		b.ReadFrom(n, data)
		return
	}
	b.Write(n, data[:w.piece], w.total/w.piece)
}

// SlicePools returns the lines that are measured.
func (e Effort) SlicePools() []SlicePool {
	return slices.DeleteFunc(SlicePools(), func(p SlicePool) bool { return e.GoalsOnly && !slices.Contains(goalLines, p.Name) })
}

// BufferPools returns the lines that are measured.
func (e Effort) BufferPools() []BufferPool {
	return slices.DeleteFunc(BufferPools(), func(p BufferPool) bool { return e.GoalsOnly && !slices.Contains(goalLines, p.Name) })
}

// Groups returns everything that is timed in one process. Values of GOMAXPROCS above the number of CPUs are left out.
func (e Effort) Groups() []measure.Group {
	var groups []measure.Group
	for _, p := range patterns() {
		groups = append(groups, measure.Group{
			Name: p.name, Rounds: e.Rounds, Stretch: e.Stretch * p.stretch, Tries: e.Tries,
			Cases: func() []measure.Case { return p.cases(e.SlicePools()) },
		})
	}
	groups = append(groups,
		measure.Group{Name: "Cold", Rounds: e.Single, Cases: func() []measure.Case { return coldCases(e.SlicePools()) }},
		measure.Group{Name: "AfterGC1", Rounds: e.Single, Cases: func() []measure.Case { return collectedCases(e.SlicePools(), 1) }},
		measure.Group{Name: "AfterGC2", Rounds: e.Single, Cases: func() []measure.Case { return collectedCases(e.SlicePools(), 2) }})
	for _, w := range writes() {
		groups = append(groups, measure.Group{
			Name: w.name, Rounds: e.Rounds, Stretch: e.Stretch, Tries: e.Tries,
			Cases: func() []measure.Case { return w.cases(e.BufferPools()) },
		})
	}
	return slices.DeleteFunc(groups, func(g measure.Group) bool { return e.GoalsOnly && !slices.Contains(goalGroups, g.Name) })
}

// cases returns each pool of slices at each number of processors.
func (p pattern) cases(pools []SlicePool) []measure.Case {
	var cases []measure.Case
	for _, procs := range p.procs {
		if procs > runtime.NumCPU() {
			continue
		}
		for _, sp := range pools {
			s := sp.New(sliceSize)
			cases = append(cases, measure.Case{
				Name: sp.Name, Procs: procs, Goroutines: cmp.Or(p.goroutines, procs),
				Run: func(n int) { p.run(s, n) },
			})
		}
	}
	if p.name == "Fixed" {
		cases = append(cases, machineCases()...)
	}
	return cases
}

// The cases beside the pools that say what the machine is like.
const (
	clearName = "clear"            // clearing a slice, against which the cost of clearing on release is held
	casName   = "compare-and-swap" // an uncontended atomic operation, of which a lease needs two and a sync.Pool none
)

func machineCases() []measure.Case {
	b := make([]byte, sliceSize)
	var word atomic.Uint64
	return []measure.Case{
		{Name: clearName, Procs: 1, Run: func(n int) {
			for range n {
				clear(b)
				touch(b)
			}
		}},
		{Name: casName, Procs: 1, Run: func(n int) {
			for i := range uint64(n) {
				word.CompareAndSwap(i, i+1)
			}
			word.Store(0)
		}},
	}
}

// coldCases time the first operation of a new pool.
func coldCases(pools []SlicePool) []measure.Case {
	var cases []measure.Case
	for _, sp := range pools {
		if sp.Global {
			continue // it is never new
		}
		var s Slices
		cases = append(cases, measure.Case{
			Name: sp.Name, Procs: 1, Ops: 1,
			Before: func() { s = sp.New(sliceSize) },
			Run:    func(n int) { s.Cycle(n, sliceSize) },
		})
	}
	return cases
}

// collectedCases time the first operation after so many garbage collections without one.
func collectedCases(pools []SlicePool, collections int) []measure.Case {
	var cases []measure.Case
	for _, sp := range pools {
		s := sp.New(sliceSize)
		cases = append(cases, measure.Case{
			Name: sp.Name, Procs: 1, Ops: 1, Warm: 100,
			Before: func() {
				for range collections - 1 {
					measure.Collect()
				}
				runtime.GC() // at once before the operation: a pause would let other processes cool the caches
			},
			Run: func(n int) { s.Cycle(n, sliceSize) },
		})
	}
	return cases
}

// cases returns each pool of buffers that can be filled in this way.
func (w write) cases(pools []BufferPool) []measure.Case {
	data := make([]byte, w.total)
	for i := range data {
		data[i] = byte(i)
	}
	var cases []measure.Case
	for _, bp := range pools {
		b := bp.New()
		c := measure.Case{Name: bp.Name, Procs: 1, Run: func(n int) { w.run(b, n, data) }}
		if w.cold {
			c.Ops, c.Before = 1, func() { b = bp.New() }
		}
		cases = append(cases, c)
	}
	return cases
}
