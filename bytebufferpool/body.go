package bytebufferpool

import (
	"io"
	"sync"
)

// Body is pooled bytes as an [io.ReadCloser], for the body of an HTTP request or
// response: the storage is released by Close, exactly once, however often and from whatever
// goroutine Close is called, and not while a Read or WriteTo is under way.
//
// That is the one safe way to give pooled bytes to net/http as a body: a transport
// may still read them after Do has returned. Close never blocks on a slow
// writer: the last one to leave releases.
type Body struct {
	mu     sync.Mutex
	rest   segments // guarded by mu; the bytes being written while writing > 0 stay
	active int      // WriteTo calls under way; guarded by mu
	closed bool     // guarded by mu
}

// Body makes the lease an io.ReadCloser of its bytes. The lease is over by that, as
// if released: its storage belongs to the Body until that is closed. It panics
// after Release. It allocates the Body.
func (l *Lease) Body() *Body {
	owned, ok := l.renew()
	if !ok {
		l.panicDead("Body")
	}
	return &Body{rest: segments{claim: owned, tail: owned.h, fill: l.n, n: l.n}}
}

// Body makes the unread bytes an io.ReadCloser, and ends the Buffer like
// [Lease.Body].
func (b *Buffer) Body() *Body {
	owned, ok := b.renew()
	if !ok {
		b.panicDead("Buffer", "Body")
	}
	return &Body{rest: segments{claim: owned, tail: owned.h, fill: len(b.buf), off: b.off, n: len(b.buf) - b.off}}
}

// Body makes the unread bytes an io.ReadCloser without a copy, and ends the Chain
// like [Lease.Body]. Segments are released as they are read.
func (c *Chain) Body() *Body {
	owned, ok := c.renew()
	if !ok {
		c.panicDead("Chain", "Body")
	}
	rest := c.segments
	rest.claim = owned
	return &Body{rest: rest}
}

// Len returns the number of unread bytes, for a request's ContentLength, which
// net/http does not find out by itself; 0 after Close.
func (b *Body) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0
	}
	return b.rest.n
}

// Read takes up to len(p) bytes out. It returns io.EOF if there are none and p is
// not empty, and [ErrClosed] after Close.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, ErrClosed
	}
	return b.rest.read(p)
}

// WriteTo writes the unread bytes to w and takes them out. It ends with
// [ErrClosed] when Close is called meanwhile.
func (b *Body) WriteTo(w io.Writer) (total int64, err error) {
	for {
		part, err := b.enter()
		if err != nil || len(part) == 0 {
			return total, err
		}
		n, err := b.write(w, part)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

// enter returns the next bytes to write. Unless there are none, the storage stays
// until leave.
func (b *Body) enter() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	part := b.rest.front()
	if len(part) > 0 {
		b.active++
	}
	return part, nil
}

func (b *Body) write(w io.Writer, part []byte) (n int, err error) {
	defer func() { b.leave(n) }() // also when w panics
	n, err = w.Write(part)
	if n < 0 || n > len(part) {
		n = 0
		panic("bytebufferpool: writer returned an invalid count")
	}
	if err == nil && n < len(part) {
		err = io.ErrShortWrite
	}
	return n, err
}

// leave takes n bytes out, and releases the storage if it was closed meanwhile.
func (b *Body) leave(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest.advance(n)
	b.active--
	if b.closed && b.active == 0 {
		b.rest.releaseAll()
	}
}

// Close releases the storage, or has the WriteTo release it that is under way. It
// returns nil, also when repeated.
func (b *Body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		if b.active == 0 {
			b.rest.releaseAll()
		}
	}
	return nil
}

var (
	_ io.ReadCloser = (*Body)(nil)
	_ io.WriterTo   = (*Body)(nil)
)
