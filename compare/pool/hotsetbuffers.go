package pool

import "github.com/hotset-go/hotset/bytebufferpool"

func ourBufferPools() []BufferPool {
	buffers := func(mode bytebufferpool.Mode) func() Buffers {
		return func() Buffers { return ourBuffers{newOurs(mode, nil)} }
	}
	chains := func(mode bytebufferpool.Mode) func() Buffers {
		return func() Buffers { return ourChains{newOurs(mode, nil)} }
	}
	return []BufferPool{
		{Name: fastBuffer, Title: "**Fast Buffer**", New: buffers(bytebufferpool.Fast)},
		{Name: boundedBuffer, Title: "**Bounded Buffer**", New: buffers(bytebufferpool.Bounded)},
		{Name: fastChain, Title: "**Fast Chain**", New: chains(bytebufferpool.Fast)},
		{Name: boundedChain, Title: "**Bounded Chain**", New: chains(bytebufferpool.Bounded)},
	}
}

// ourBuffers is bytebufferpool's Buffer: contiguous, grown through the pool.
type ourBuffers struct{ pool *bytebufferpool.Pool }

func (p ourBuffers) Write(n int, piece []byte, count int) {
	for range n {
		b := p.pool.Buffer(firstCapacity)
		for range count {
			_, _ = b.Write(piece)
		}
		b.Release()
	}
}

func (p ourBuffers) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		b := p.pool.Buffer(firstCapacity)
		mustRead(b.ReadFrom(&r))
		b.Release()
	}
}

func (p ourBuffers) Open() (Stream, func()) {
	b := p.pool.Buffer(firstCapacity)
	return &b, func() { b.Release() }
}

// ourChains is its Chain: segments that are never copied.
type ourChains struct{ pool *bytebufferpool.Pool }

func (p ourChains) Write(n int, piece []byte, count int) {
	for range n {
		c := p.pool.Chain(firstCapacity)
		for range count {
			_, _ = c.Write(piece)
		}
		c.Release()
	}
}

func (p ourChains) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		c := p.pool.Chain(firstCapacity)
		mustRead(c.ReadFrom(&r))
		c.Release()
	}
}

func (p ourChains) Open() (Stream, func()) {
	c := p.pool.Chain(firstCapacity)
	return &c, func() { c.Release() }
}
