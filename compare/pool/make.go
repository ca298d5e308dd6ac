package pool

import "runtime"

// allocator is no pool at all: every slice is made and left to the collector.
type allocator struct{}

func (allocator) Cycle(n, size int) {
	for range n {
		touch(make([]byte, size))
	}
}

func (allocator) Hold(n, size int) {
	var lot [held][]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = make([]byte, size)
			touch(lot[i])
		}
	}
}

func (allocator) Handoff(n, size int) {
	handoff(n, func(b *[]byte) { *b = make([]byte, size) }, func(*[]byte) {})
}

func (allocator) Take(size int) ([]byte, func()) {
	b := make([]byte, size)
	return b, func() { runtime.KeepAlive(b) } // until its release, as with a pool
}
