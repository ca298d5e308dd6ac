package pool

import (
	libp2p "github.com/libp2p/go-buffer-pool"
)

// libp2pSlices is github.com/libp2p/go-buffer-pool: a sync.Pool a power of two, and one more for the headers.
type libp2pSlices struct{ pool libp2p.BufferPool }

func (p *libp2pSlices) Cycle(n, size int) {
	for range n {
		b := p.pool.Get(size)
		touch(b)
		p.pool.Put(b)
	}
}

func (p *libp2pSlices) Hold(n, size int) {
	var lot [held][]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.pool.Get(size)
			touch(lot[i])
		}
		for _, b := range lot {
			p.pool.Put(b)
		}
	}
}

func (p *libp2pSlices) Handoff(n, size int) {
	handoff(n, func(b *[]byte) { *b = p.pool.Get(size); touch(*b) }, func(b *[]byte) { p.pool.Put(*b) })
}

func (p *libp2pSlices) Take(size int) ([]byte, func()) {
	b := p.pool.Get(size)
	return b, func() { p.pool.Put(b) }
}

// libp2pBuffers is its Buffer, which grows through the same pool.
type libp2pBuffers struct{ pool libp2p.BufferPool }

func (p *libp2pBuffers) Write(n int, piece []byte, count int) {
	for range n {
		b := libp2p.Buffer{Pool: &p.pool}
		for range count {
			_, _ = b.Write(piece)
		}
		b.Reset() // returns the storage
	}
}

func (p *libp2pBuffers) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		b := libp2p.Buffer{Pool: &p.pool}
		mustRead(b.ReadFrom(&r))
		b.Reset()
	}
}

func (p *libp2pBuffers) Open() (Stream, func()) {
	b := &libp2p.Buffer{Pool: &p.pool}
	return b, b.Reset
}
