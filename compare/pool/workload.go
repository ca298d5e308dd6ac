package pool

import "time"

const (
	// sliceSize is the size in all comparisons of slices: a class of every rival, and small enough to show the pool's own cost.
	sliceSize = 1024

	// crowd is the number of goroutines that share a pool in the workload of that name.
	crowd = 128

	// freshCycles is what a fresh goroutine does before it ends: a request's worth. Its start costs more than all of them,
	// for every rival alike.
	freshCycles = 16

	// depths and depthCycles shape the workload "Depth".
	depths      = 16
	depthCycles = 4
)

// pattern is a way to use a pool of slices.
type pattern struct {
	name       string
	procs      []int // values of GOMAXPROCS
	goroutines int   // 0 means as many as procs

	// stretch is the length of a stretch as a multiple of the usual.
	stretch time.Duration

	run func(s Slices, n int) // what each goroutine does
}

// patterns returns those that are timed over many operations.
func patterns() []pattern {
	cycle := func(s Slices, n int) { s.Cycle(n, sliceSize) }
	return []pattern{
		{name: "Fixed", procs: []int{1, 2}, stretch: 1, run: cycle},
		// So many goroutines need some time to get into each other's way.
		{name: "Crowd", procs: []int{2}, goroutines: crowd, stretch: 5, run: cycle},
		{name: "Hold", procs: []int{1, 2}, stretch: 1, run: func(s Slices, n int) { s.Hold(n, sliceSize) }},
		{name: "Fresh", procs: []int{1, 2}, stretch: 1, run: fresh},
		{name: "Depth", procs: []int{1, 2}, stretch: 1, run: depth},
		// One goroutine, which has its other one at its side.
		{name: "Handoff", procs: []int{1, 2}, goroutines: 1, stretch: 1, run: func(s Slices, n int) { s.Handoff(n, sliceSize) }},
	}
}

// fresh does a few cycles in a new goroutine, one goroutine after the other: whatever a pool has learnt about the goroutine
// that used it before is of no use.
func fresh(s Slices, n int) {
	done := make(chan struct{})
	for ; n > 0; n -= freshCycles {
		k := min(n, freshCycles)
		go func() {
			s.Cycle(k, sliceSize)
			done <- struct{}{}
		}()
		<-done
	}
}

// depth does a few cycles at each of several depths of the stack, 1 KiB apart. A pool that finds its shard by the address of
// the stack meets another shard each time, and none of them but one has storage; to the others it is all the same.
func depth(s Slices, n int) {
	for ; n > 0; n -= depths * depthCycles {
		descend(s, depths)
	}
}

//go:noinline
func descend(s Slices, level int) byte {
	var frame [1024]byte
	frame[level] = 1 // the frame has to exist: level is not a constant
	s.Cycle(depthCycles, sliceSize)
	if level > 1 {
		frame[0] = descend(s, level-1)
	}
	return frame[0] + frame[level]
}
