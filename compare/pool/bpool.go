package pool

import (
	"github.com/oxtoacart/bpool"
)

// bpoolSlices is github.com/oxtoacart/bpool's BytePool: a channel of slices of one width.
type bpoolSlices struct{ pool *bpool.BytePool }

func (p *bpoolSlices) Cycle(n, size int) {
	for range n {
		b := p.pool.Get()[:size]
		touch(b)
		p.pool.Put(b)
	}
}

func (p *bpoolSlices) Hold(n, size int) {
	var lot [held][]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.pool.Get()[:size]
			touch(lot[i])
		}
		for _, b := range lot {
			p.pool.Put(b)
		}
	}
}

func (p *bpoolSlices) Handoff(n, size int) {
	handoff(n, func(b *[]byte) { *b = p.pool.Get()[:size]; touch(*b) }, func(b *[]byte) { p.pool.Put(*b) })
}

func (p *bpoolSlices) Take(size int) ([]byte, func()) {
	b := p.pool.Get()[:size]
	return b, func() { p.pool.Put(b) }
}

// bpoolBuffers is its SizedBufferPool: a channel of bytes.Buffers that replaces those that have grown.
type bpoolBuffers struct{ pool *bpool.SizedBufferPool }

// bpoolAlloc is the capacity of its new buffers: that of the reference's measurement, a quarter of what is written in "growth".
const bpoolAlloc = 4096

func (p *bpoolBuffers) Write(n int, piece []byte, count int) {
	for range n {
		b := p.pool.Get()
		for range count {
			_, _ = b.Write(piece)
		}
		p.pool.Put(b)
	}
}

func (p *bpoolBuffers) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		b := p.pool.Get()
		mustRead(b.ReadFrom(&r))
		p.pool.Put(b)
	}
}

func (p *bpoolBuffers) Open() (Stream, func()) {
	b := p.pool.Get()
	return b, func() { p.pool.Put(b) }
}
