package pool

import "github.com/bytedance/gopkg/lang/mcache"

// mcacheSlices is github.com/bytedance/gopkg/lang/mcache: a sync.Pool of *byte a power of two, one set for the whole process.
type mcacheSlices struct{}

func (mcacheSlices) Cycle(n, size int) {
	for range n {
		b := mcache.Malloc(size)
		touch(b)
		mcache.Free(b)
	}
}

func (mcacheSlices) Hold(n, size int) {
	var lot [held][]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = mcache.Malloc(size)
			touch(lot[i])
		}
		for _, b := range lot {
			mcache.Free(b)
		}
	}
}

func (mcacheSlices) Handoff(n, size int) {
	handoff(n, func(b *[]byte) { *b = mcache.Malloc(size); touch(*b) }, func(b *[]byte) { mcache.Free(*b) })
}

func (mcacheSlices) Take(size int) ([]byte, func()) {
	b := mcache.Malloc(size)
	return b, func() { mcache.Free(b) }
}
