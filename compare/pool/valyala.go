package pool

import (
	"github.com/valyala/bytebufferpool"
)

// valyalaSlices is github.com/valyala/bytebufferpool used for slices: a ByteBuffer's B is set to the length asked for.
type valyalaSlices struct{ pool bytebufferpool.Pool }

func (p *valyalaSlices) get(size int) *bytebufferpool.ByteBuffer {
	b := p.pool.Get()
	if cap(b.B) < size {
		b.B = make([]byte, size)
	}
	b.B = b.B[:size]
	return b
}

func (p *valyalaSlices) Cycle(n, size int) {
	for range n {
		b := p.get(size)
		touch(b.B)
		p.pool.Put(b)
	}
}

func (p *valyalaSlices) Hold(n, size int) {
	var lot [held]*bytebufferpool.ByteBuffer
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.get(size)
			touch(lot[i].B)
		}
		for _, b := range lot {
			p.pool.Put(b)
		}
	}
}

func (p *valyalaSlices) Handoff(n, size int) {
	handoff(n,
		func(b **bytebufferpool.ByteBuffer) { *b = p.get(size); touch((*b).B) },
		func(b **bytebufferpool.ByteBuffer) { p.pool.Put(*b) })
}

func (p *valyalaSlices) Take(size int) ([]byte, func()) {
	b := p.get(size)
	return b.B, func() { p.pool.Put(b) }
}

// valyalaBuffers is its ordinary use. What it keeps is decided by calibration, every 42,000 uses: until then, everything.
type valyalaBuffers struct{ pool bytebufferpool.Pool }

func (p *valyalaBuffers) Write(n int, piece []byte, count int) {
	for range n {
		b := p.pool.Get()
		for range count {
			_, _ = b.Write(piece)
		}
		p.pool.Put(b)
	}
}

func (p *valyalaBuffers) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		b := p.pool.Get()
		mustRead(b.ReadFrom(&r))
		p.pool.Put(b)
	}
}

func (p *valyalaBuffers) Open() (Stream, func()) {
	b := p.pool.Get()
	return b, func() { p.pool.Put(b) }
}
