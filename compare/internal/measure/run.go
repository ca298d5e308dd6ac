package measure

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	// PublishRounds is the least number of rounds behind a figure that is published or held against a goal.
	PublishRounds = 7

	// maxOps bounds calibration, for a case that does nothing at all.
	maxOps = 1 << 30

	// warmShare is the part of a stretch, as a divisor, that is run untimed in front of it: the collection before each
	// stretch and a change of GOMAXPROCS empty what is built on sync.Pool.
	warmShare = 8

	// pause is what a process does without a CPU before it tries again: it is then due for a whole time slice.
	pause = 4 * time.Millisecond

	// settle is what the runtime gets after a collection to run finalizers and cleanups, by which a pool may react to it. Nothing
	// tells when they are through; they take microseconds.
	settle = time.Millisecond

	// disturbedShare is the part of a stretch, as a divisor, that may be spent waiting for a CPU.
	disturbedShare = 50
)

// Case is one thing to be timed.
type Case struct {
	Name string // within its group and Procs; without spaces, for it becomes part of a benchmark's name

	// Run does the operation n times. It is what is timed.
	Run func(n int)

	// Procs is the GOMAXPROCS to run at; 0 leaves it as it is.
	Procs int

	// Goroutines is how many goroutines call Run at once, each with its part of n; 0 means one. As many as Procs, or fewer,
	// begin only when each has a CPU.
	Goroutines int

	// Ops is the number of operations of a stretch. 0 means as many as fill the time, and a warm-up in front.
	Ops int

	// Warm is the number of operations that are run untimed in front of a stretch of a fixed number. They are called from the same
	// depth of the stack: it matters to a pool that remembers its callers by that.
	Warm int

	// Before, if set, runs untimed in front of each stretch, after the warm-up: it builds what the stretch will consume.
	Before func()
}

// Group is a set of cases that are compared with each other.
type Group struct {
	Name   string // without spaces
	Rounds int    // stretches of each case

	// Stretch is the time that one stretch of a case takes: about a millisecond. The clock and the start of goroutines must not
	// count in it, and it has to fit into the time that a system leaves a process the CPU, which is some three milliseconds
	// when others want it too.
	Stretch time.Duration

	// Tries is how often a stretch is tried that other processes disturb, and a third of how often one is while it is found out how
	// many operations fill it; 0 counts as 1. On two CPUs that seventeen processes
	// want, nine of ten stretches of a millisecond are left alone with one goroutine. With two they hardly ever are.
	Tries int

	// Cases makes the cases, when the turn of the group comes: a collection then finds the storage of this group alone.
	Cases func() []Case
}

// Sample is one stretch.
type Sample struct {
	Ops     int
	Elapsed time.Duration
	Allocs  uint64 // of the whole process in that stretch
	Bytes   uint64

	// Waited is how long threads of this process waited for a CPU that other processes had, 0 where that is not known.
	Waited time.Duration
}

// Disturbed tells whether other processes had a noticeable part in the time of the sample.
func (s Sample) Disturbed() bool { return s.Waited > s.Elapsed/disturbedShare }

// NsPerOp returns the wall time of one operation; with several goroutines at work that is less than one of them takes.
func (s Sample) NsPerOp() float64 { return float64(s.Elapsed.Nanoseconds()) / float64(s.Ops) }

// AllocsPerOp counts like package testing: whole allocations, so that one of the runtime's own in a million operations is none.
func (s Sample) AllocsPerOp() float64 { return float64(s.Allocs / uint64(s.Ops)) }

// BytesPerOp counts whole bytes.
func (s Sample) BytesPerOp() float64 { return float64(s.Bytes / uint64(s.Ops)) }

// Run measures the groups one after the other and returns a sample of each case from each round. It sets GOMAXPROCS and restores it.
// The error is the context's: then what was measured so far is returned with it. progress, if not nil, gets one line a group.
func Run(ctx context.Context, groups []Group, progress func(string)) (*Results, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	results := NewResults()
	for i, g := range groups {
		cases := g.Cases()
		if progress != nil {
			progress(fmt.Sprintf("%d/%d %s: %d cases x %d rounds", i+1, len(groups), g.Name, len(cases), g.Rounds))
		}
		if err := runGroup(ctx, g, cases, results); err != nil {
			return results, fmt.Errorf("group %s: %w", g.Name, err)
		}
	}
	return results, nil
}

func runGroup(ctx context.Context, g Group, cases []Case, results *Results) error {
	ops := make([]int, len(cases))
	for i, c := range cases {
		if err := ctx.Err(); err != nil {
			return err
		}
		setProcs(c.Procs)
		if ops[i] = c.Ops; ops[i] == 0 {
			ops[i] = calibrate(c, g.Stretch, 3*g.Tries)
		}
	}
	for round := range g.Rounds {
		for k := range cases {
			if err := ctx.Err(); err != nil {
				return err
			}
			// Another case is first in each round, so that none always runs after the same neighbour.
			i := (k + round) % len(cases)
			c := cases[i]
			results.Add(Key{Group: g.Name, Case: c.Name, Procs: c.Procs}, quiet(c, ops[i], g.Tries))
		}
	}
	return nil
}

// warm returns the number of operations in front of n timed ones.
func (c Case) warm(n int) int {
	if c.Ops == 0 {
		return max(1, n/warmShare)
	}
	return c.Warm
}

// Collect runs a garbage collection, and lets what the program does about one happen.
func Collect() {
	runtime.GC()
	time.Sleep(settle)
}

func setProcs(n int) {
	if n > 0 {
		runtime.GOMAXPROCS(n)
	}
}

// calibrate returns how many operations of c take about d.
func calibrate(c Case, d time.Duration, tries int) int {
	if c.Before != nil {
		c.Before()
	}
	run := func(n int) Sample {
		before := waited()
		elapsed, delay := c.runAll(n)
		if c.Goroutines <= 1 {
			delay = max(0, waited()-before)
		}
		return Sample{Ops: n, Elapsed: elapsed, Waited: delay}
	}
	for n := 1; ; n *= 4 {
		best := run(n)
		// A run in which another process had the CPU looks long enough: if it cannot be had without, the shortest of many is believed.
		for try := 1; try < tries && best.Elapsed >= d/4 && best.Disturbed(); try++ {
			if s := run(n); s.Elapsed < best.Elapsed {
				best = s
			}
		}
		if best.Elapsed >= d/4 || n >= maxOps/4 {
			return max(1, int(float64(n)*float64(d)/float64(max(best.Elapsed, 1))))
		}
	}
}

// quiet returns a stretch that no other process disturbed or, after some tries, the one that was disturbed least. A fixed number of
// operations is taken as it comes: so short a time is seldom hit.
func quiet(c Case, n, tries int) Sample {
	best := stretch(c, n)
	for try := 1; try < tries && c.Ops == 0 && best.Disturbed(); try++ {
		time.Sleep(pause)
		// Relative to the time: a disturbed stretch is also a longer one.
		if s := stretch(c, n); s.Waited*best.Elapsed < best.Waited*s.Elapsed {
			best = s
		}
	}
	return best
}

// stretch times n operations of c. What an earlier case left behind is collected before, not in it.
func stretch(c Case, n int) Sample {
	setProcs(c.Procs)
	Collect()
	if warm := c.warm(n); warm > 0 {
		c.runAll(warm)
	}
	if c.Before != nil {
		c.Before()
	}
	// A fixed number of operations is short: a look at the threads would cool the caches that it is about.
	alone := c.Goroutines <= 1 && c.Ops == 0
	var waitedBefore time.Duration
	if alone {
		waitedBefore = waited()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	elapsed, delay := c.runAll(n)
	runtime.ReadMemStats(&after)
	if alone {
		delay = max(0, waited()-waitedBefore) // less when a thread has ended
	}
	return Sample{
		Ops: n, Elapsed: elapsed, Waited: delay,
		Allocs: after.Mallocs - before.Mallocs, Bytes: after.TotalAlloc - before.TotalAlloc,
	}
}
