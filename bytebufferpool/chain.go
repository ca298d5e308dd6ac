package bytebufferpool

import (
	"errors"
	"io"
)

// Chain is a growing buffer of bytes in segments: growth adds a segment and never
// copies. Use it for content of unknown and large size that is written and then sent
// on; use a [Buffer] when the content has to be one slice.
//
// Segments are of pooled classes, each about as large as all before it together and
// at most 64 KiB, so that the unused part stays small.
//
// Like a Lease it is a value not to be copied, owned by one goroutine at a time; use
// after Release panics. The zero Chain holds nothing: its Release is
// ignored, its other methods panic.
type Chain struct {
	_ noCopy
	segments
}

// maxSegment is the largest segment: larger ones do not make writing faster
// (BenchmarkChain), and waste more of the last.
const maxSegment = 64 << 10

// Chain returns an empty chain whose first segment has room for capacity bytes,
// or is of the largest segment size if that is less. It panics like [Pool.Acquire].
func (p *Pool) Chain(capacity int) Chain {
	if capacity > 0 {
		capacity = min(capacity, p.core.segmentLimit())
	}
	owned := p.lease(capacity, KindChain)
	return Chain{segments: segments{claim: owned, tail: owned.h}}
}

// TryChain is [Pool.Chain] with [ErrInvalidSize] instead of the panic.
func (p *Pool) TryChain(capacity int) (Chain, error) {
	if err := p.checkSize(capacity); err != nil {
		return Chain{}, err
	}
	return p.Chain(capacity), nil
}

// Len returns the number of unread bytes.
func (c *Chain) Len() int {
	c.check("Len")
	return c.n
}

// Write appends p. It never fails: no segment exceeds Config.MaxAcquireSize.
func (c *Chain) Write(p []byte) (int, error) {
	c.check("Write")
	for rest := p; len(rest) > 0; {
		n := copy(c.room(len(rest)), rest)
		c.wrote(n)
		rest = rest[n:]
	}
	return len(p), nil
}

// WriteString appends s like Write.
func (c *Chain) WriteString(s string) (int, error) {
	c.check("WriteString")
	for rest := s; len(rest) > 0; {
		n := copy(c.room(len(rest)), rest)
		c.wrote(n)
		rest = rest[n:]
	}
	return len(s), nil
}

// WriteByte appends b like Write.
func (c *Chain) WriteByte(b byte) error {
	c.check("WriteByte")
	c.room(1)[0] = b
	c.wrote(1)
	return nil
}

// ReadFrom appends what r delivers until it ends, reading into the segments, and
// returns how much that was. The error is that of r or [io.ErrNoProgress].
func (c *Chain) ReadFrom(r io.Reader) (total int64, err error) {
	c.check("ReadFrom")
	for empty := 0; empty < maxEmptyReads; empty++ {
		room := c.room(1)
		n, err := r.Read(room)
		c.wrote(checkCount(n, len(room)))
		total += int64(n)
		if n > 0 {
			empty = -1
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	return total, io.ErrNoProgress
}

// Read takes up to len(p) bytes out. It returns io.EOF if there are none and p is
// not empty. Segments are released as they are read.
func (c *Chain) Read(p []byte) (int, error) {
	c.check("Read")
	return c.read(p)
}

// WriteTo writes the unread bytes to w, a segment at a time, and takes them out,
// releasing the segments. After an error, those that w did not take are left. For
// one system call over all segments see [Chain.AppendSegments].
func (c *Chain) WriteTo(w io.Writer) (total int64, err error) {
	c.check("WriteTo")
	for c.n > 0 {
		part := c.front()
		n, err := w.Write(part)
		if n < 0 || n > len(part) {
			panic("bytebufferpool: writer returned an invalid count")
		}
		total += int64(n)
		c.advance(n)
		if err != nil {
			return total, err
		}
		if n < len(part) {
			return total, io.ErrShortWrite
		}
	}
	return total, nil
}

// AppendSegments appends the unread part of each segment to dst and returns it. The
// slices stay the Chain's and are valid until it is read from, reset or
// released. As [net.Buffers] they are written with one writev:
//
//	segments := net.Buffers(chain.AppendSegments(nil))
//	_, err := segments.WriteTo(conn)
//
// [net.Buffers]: https://pkg.go.dev/net#Buffers
func (c *Chain) AppendSegments(dst [][]byte) [][]byte {
	c.check("AppendSegments")
	for h := c.h; h != nil; h = h.next {
		if part := c.part(h); len(part) > 0 {
			dst = append(dst, part)
		}
	}
	return dst
}

// AppendTo appends a copy of the unread bytes to dst and returns it.
func (c *Chain) AppendTo(dst []byte) []byte {
	c.check("AppendTo")
	for h := c.h; h != nil; h = h.next {
		dst = append(dst, c.part(h)...)
	}
	return dst
}

// Flatten returns a copy of the unread bytes in one lease, which is the caller's
// to release. The Chain keeps its content. The error is [ErrInvalidSize]
// if there are more than Config.MaxAcquireSize.
func (c *Chain) Flatten() (Lease, error) {
	c.check("Flatten")
	if err := c.h.core.checkSize(c.n); err != nil {
		return Lease{}, err
	}
	owned := c.h.core.lease(c.n, KindLease)
	c.AppendTo(owned.h.buf[:0])
	return Lease{claim: owned, n: c.n}, nil
}

// Reset empties the chain and keeps its first segment.
func (c *Chain) Reset() {
	c.check("Reset")
	c.reset()
}

// Release gives all segments back. It reports [Retained] if all were retained,
// otherwise the status of the first that was not, and for a repeated Release
// [RejectedDuplicate].
func (c *Chain) Release() ReleaseStatus { return c.releaseAll() }

func (c *Chain) check(method string) {
	if c.dead() {
		c.panicDead("Chain", method)
	}
}

// segments is what a Chain and a Body are made of: headers linked by next, each
// full except for the last. The claim is that on the first, which is always
// there; the others are nobody else's, so their words need not be kept.
type segments struct {
	claim
	tail *header
	fill int // bytes written to the tail
	off  int // bytes read of the first
	n    int // unread bytes
}

// segmentLimit is the largest size of a segment in this pool.
func (c *core) segmentLimit() int {
	return min(maxSegment, c.cfg.MaxAcquireSize, c.classes.capacity[c.classes.n-1])
}

// room returns the unused part of the tail, after adding a segment if there is
// none; want is how much will be written.
func (s *segments) room(want int) []byte {
	if s.fill == len(s.tail.buf) {
		c := s.h.core
		owned := c.lease(min(max(want, s.n), c.segmentLimit()), KindChain)
		s.tail.next = owned.h
		s.tail, s.fill = owned.h, 0
	}
	return s.tail.buf[s.fill:]
}

func (s *segments) wrote(n int) {
	s.fill += n
	s.n += n
}

// part returns the unread bytes of a segment.
func (s *segments) part(h *header) []byte {
	part := h.buf
	if h == s.tail {
		part = part[:s.fill]
	}
	if h == s.h {
		part = part[s.off:]
	}
	return part
}

// front returns the unread bytes of the first segment that has any.
func (s *segments) front() []byte { return s.part(s.h) }

// advance takes n bytes out, no more than front has. A first segment that is read
// to its end is released, unless it is the only one.
func (s *segments) advance(n int) {
	s.off += n
	s.n -= n
	switch {
	case s.h == s.tail:
		if s.n == 0 {
			s.off, s.fill = 0, 0
		}
	case s.off == len(s.h.buf):
		s.dropFirst()
		s.off = 0
	}
}

// dropFirst releases the first of several segments.
func (s *segments) dropFirst() ReleaseStatus {
	first := s.claim
	next := first.h.next
	s.claim = claim{next, next.claimed()}
	first.h.next = nil
	return first.release()
}

func (s *segments) read(p []byte) (int, error) {
	if s.n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	total := 0
	for total < len(p) && s.n > 0 {
		n := copy(p[total:], s.front())
		s.advance(n)
		total += n
	}
	return total, nil
}

func (s *segments) reset() {
	// The first segment is kept and the second released, so that the claim stays.
	for second := s.h.next; second != nil; second = s.h.next {
		s.h.next, second.next = second.next, nil
		rest := claim{second, second.claimed()}
		rest.release()
	}
	s.tail, s.fill, s.off, s.n = s.h, 0, 0, 0
}

// releaseAll releases all segments. Of copies that race, one gets the first
// segment and with it the others.
func (s *segments) releaseAll() ReleaseStatus {
	first, ok := s.renew()
	if !ok {
		return s.release() // what a claim that is over, or zero, reports
	}
	rest := first.h.next
	first.h.next = nil
	status := first.release()
	for rest != nil {
		h := rest
		rest, h.next = h.next, nil
		next := claim{h, h.claimed()}
		if st := next.release(); status == Retained {
			status = st
		}
	}
	return status
}

var (
	_ io.Writer       = (*Chain)(nil)
	_ io.ByteWriter   = (*Chain)(nil)
	_ io.StringWriter = (*Chain)(nil)
	_ io.ReaderFrom   = (*Chain)(nil)
	_ io.Reader       = (*Chain)(nil)
	_ io.WriterTo     = (*Chain)(nil)
)
