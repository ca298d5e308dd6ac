package pool

import (
	"bytes"
	"sync"
)

// newBuffers makes a bytes.Buffer each time.
type newBuffers struct{}

func (newBuffers) Write(n int, piece []byte, count int) {
	for range n {
		var b bytes.Buffer
		for range count {
			_, _ = b.Write(piece)
		}
	}
}

func (newBuffers) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		var b bytes.Buffer
		mustRead(b.ReadFrom(&r))
	}
}

func (newBuffers) Open() (Stream, func()) { return new(bytes.Buffer), func() {} }

// pooledBuffers is what people write by hand, and the divisor of the ratios between buffers: a sync.Pool of bytes.Buffers
// that drops those above the cutoff.
type pooledBuffers struct {
	pool   sync.Pool
	cutoff int
}

func (p *pooledBuffers) get() *bytes.Buffer {
	if b, ok := p.pool.Get().(*bytes.Buffer); ok {
		return b
	}
	return new(bytes.Buffer)
}

func (p *pooledBuffers) put(b *bytes.Buffer) {
	if b.Cap() > p.cutoff {
		return
	}
	b.Reset()
	p.pool.Put(b)
}

func (p *pooledBuffers) Write(n int, piece []byte, count int) {
	for range n {
		b := p.get()
		for range count {
			_, _ = b.Write(piece)
		}
		p.put(b)
	}
}

func (p *pooledBuffers) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		b := p.get()
		mustRead(b.ReadFrom(&r))
		p.put(b)
	}
}

func (p *pooledBuffers) Open() (Stream, func()) {
	b := p.get()
	return b, func() { p.put(b) }
}

// mustRead panics on an error of a buffer that reads from memory: the figures would be those of a failure.
func mustRead(n int64, err error) {
	if err != nil || n == 0 {
		panic("pool: a buffer did not read what it was given")
	}
}
