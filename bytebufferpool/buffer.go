package bytebufferpool

import (
	"errors"
	"io"
	"unicode/utf8"
)

// Buffer is a growing buffer of bytes on leased storage, with the methods of
// [bytes.Buffer]: what is written is appended, what is read is taken from the front.
// Release it when done.
//
// Like a Lease it is a value not to be copied, owned by one goroutine at a time; use
// after Release, also of a copy, panics. The zero Buffer holds nothing: its
// Release is ignored, its other methods panic.
//
// Growth acquires a new lease, copies what is unread, and releases the old one at
// once: bytes that were returned before, by Bytes, Next or AvailableBuffer, are
// then invalid. Capacity grows fourfold up to 64 KiB and twofold above. When no class
// fits, the new storage is of exactly that capacity and not pooled afterwards. A
// growth beyond Config.MaxAcquireSize fails with [ErrInvalidSize] and
// leaves the content as it was.
type Buffer struct {
	_ noCopy
	claim
	buf  []byte // the storage up to the end of the content
	off  int    // where the unread part begins
	last readOp // what Unread may take back
}

// readOp is the last operation, if it was one that can be taken back.
type readOp int8

const (
	opOther readOp = 0
	opRead  readOp = -1
	// 1 to 4: a rune of that many bytes was read.
)

const (
	// quadrupleBelow is the capacity up to which a Buffer grows fourfold. That copies a
	// third of the final size where doubling copies all of it, and takes 5 leases
	// instead of 9 to get from 64 B to 16 KiB; above, the unused part costs more
	// than the copies.
	quadrupleBelow = 64 << 10

	// probeSize is how much is read to see whether a source has ended before the
	// Buffer grows for it; as much as bytes.Buffer offers at least.
	probeSize = 512

	// maxEmptyReads is how often a source may return nothing and no error.
	maxEmptyReads = 100
)

// Buffer returns an empty buffer with room for capacity bytes before it grows. It
// panics like [Pool.Acquire].
func (p *Pool) Buffer(capacity int) Buffer {
	owned := p.lease(capacity, KindBuffer)
	return Buffer{claim: owned, buf: owned.h.buf[:0]}
}

// TryBuffer is [Pool.Buffer] with [ErrInvalidSize] instead of the panic.
func (p *Pool) TryBuffer(capacity int) (Buffer, error) {
	if err := p.checkSize(capacity); err != nil {
		return Buffer{}, err
	}
	return p.Buffer(capacity), nil
}

// Bytes returns the unread bytes, valid until the next write, growth or Release.
func (b *Buffer) Bytes() []byte {
	b.check("Bytes")
	return b.buf[b.off:]
}

// String returns a copy of the unread bytes, which may outlive the Buffer.
func (b *Buffer) String() string {
	b.check("String")
	return string(b.buf[b.off:])
}

// Len returns the number of unread bytes.
func (b *Buffer) Len() int {
	b.check("Len")
	return len(b.buf) - b.off
}

// Cap returns the capacity of the present storage.
func (b *Buffer) Cap() int {
	b.check("Cap")
	return cap(b.buf)
}

// Available returns how many bytes can be written without growth.
func (b *Buffer) Available() int {
	b.check("Available")
	return cap(b.buf) - len(b.buf)
}

// AvailableBuffer returns an empty slice over the bytes that are available, to be
// appended to and given to the next Write. It is invalid after any other write.
func (b *Buffer) AvailableBuffer() []byte {
	b.check("AvailableBuffer")
	return b.buf[len(b.buf):]
}

// Grow makes room for n more bytes, so that writing them does not grow the
// Buffer again. It panics for a negative n and fails with [ErrInvalidSize]
// beyond Config.MaxAcquireSize.
func (b *Buffer) Grow(n int) error {
	b.check("Grow")
	if n < 0 {
		panic("bytebufferpool: Buffer.Grow of a negative count")
	}
	b.last = opOther
	if n <= cap(b.buf)-len(b.buf) {
		return nil
	}
	old, err := b.grow(n)
	old.release()
	return err
}

// Reset empties the buffer and keeps its storage.
func (b *Buffer) Reset() {
	b.check("Reset")
	b.reset()
}

// Truncate discards all but the first n unread bytes. It panics if n is negative
// or there are fewer.
func (b *Buffer) Truncate(n int) {
	b.check("Truncate")
	if n < 0 || n > len(b.buf)-b.off {
		panic("bytebufferpool: Buffer.Truncate out of range")
	}
	if n == 0 {
		b.reset()
		return
	}
	b.last = opOther
	b.buf = b.buf[:b.off+n]
}

// Release gives the storage back and reports what became of it, like
// [Lease.Release].
func (b *Buffer) Release() ReleaseStatus { return b.release() }

// Write appends p. The error is [ErrInvalidSize] if the Buffer may not grow that
// far; nothing is written then.
func (b *Buffer) Write(p []byte) (int, error) {
	n := len(b.buf)
	// An empty p takes the slow path too: then there is room, hence a header.
	if uint(len(p)-1) >= uint(cap(b.buf)-n) || (b.h.state.Load()^b.word)&^noise != 0 {
		return b.writeSlow(p)
	}
	b.last = opOther
	b.buf = b.buf[:n+len(p)]
	copy(b.buf[n:], p)
	return len(p), nil
}

func (b *Buffer) writeSlow(p []byte) (int, error) {
	b.check("Write")
	b.last = opOther
	if len(p) == 0 {
		return 0, nil
	}
	old, err := b.grow(len(p))
	if err != nil {
		return 0, err
	}
	// p may lie in the old storage: it is released after the copy.
	b.buf = append(b.buf, p...)
	old.release()
	return len(p), nil
}

// WriteString appends s like Write.
func (b *Buffer) WriteString(s string) (int, error) {
	b.check("WriteString")
	b.last = opOther
	if len(s) > cap(b.buf)-len(b.buf) {
		old, err := b.grow(len(s))
		if err != nil {
			return 0, err
		}
		defer old.release()
	}
	b.buf = append(b.buf, s...)
	return len(s), nil
}

// WriteByte appends c like Write.
func (b *Buffer) WriteByte(c byte) error {
	b.check("WriteByte")
	b.last = opOther
	if len(b.buf) == cap(b.buf) {
		old, err := b.grow(1)
		if err != nil {
			return err
		}
		old.release()
	}
	b.buf = append(b.buf, c)
	return nil
}

// WriteRune appends the UTF-8 form of r like Write and returns its length.
func (b *Buffer) WriteRune(r rune) (int, error) {
	b.check("WriteRune")
	var utf [utf8.UTFMax]byte
	n := utf8.EncodeRune(utf[:], r)
	return b.Write(utf[:n])
}

// ReadFrom appends what r delivers until it ends, and returns how much that was.
// Before the Buffer grows, it is seen whether r has ended: reading an exact
// fit does not double the storage. The error is that of r, [ErrInvalidSize] if
// the Buffer may not grow that far (up to 512 bytes of r are then lost),
// or [io.ErrNoProgress].
func (b *Buffer) ReadFrom(r io.Reader) (int64, error) {
	b.check("ReadFrom")
	b.last = opOther
	if b.off == len(b.buf) {
		b.reset()
	}
	var total int64
	for empty := 0; ; {
		var n int
		var err error
		if len(b.buf) < cap(b.buf) {
			n, err = r.Read(b.buf[len(b.buf):cap(b.buf)])
			b.buf = b.buf[:len(b.buf)+checkCount(n, cap(b.buf)-len(b.buf))]
		} else {
			n, err = b.probe(r)
		}
		total += int64(n)
		if n > 0 {
			empty = 0
		} else {
			empty++
		}
		switch {
		case errors.Is(err, io.EOF):
			return total, nil
		case err != nil:
			return total, err
		case empty == maxEmptyReads:
			return total, io.ErrNoProgress
		}
	}
}

// probe reads into storage of its own, and appends if there was anything.
func (b *Buffer) probe(r io.Reader) (int, error) {
	size := min(probeSize, b.h.core.cfg.MaxAcquireSize)
	scratch := b.h.core.lease(size, KindBuffer)
	defer scratch.release()
	n, err := r.Read(scratch.h.buf[:size])
	if checkCount(n, size) == 0 {
		return 0, err
	}
	if n, err := b.Write(scratch.h.buf[:n]); err != nil {
		return n, err
	}
	return n, err
}

func checkCount(n, limit int) int {
	if n < 0 || n > limit {
		panic("bytebufferpool: reader returned an invalid count")
	}
	return n
}

// WriteTo writes the unread bytes to w and takes them out, like
// [bytes.Buffer.WriteTo]. After an error, those that w did not take are left.
func (b *Buffer) WriteTo(w io.Writer) (int64, error) {
	b.check("WriteTo")
	b.last = opOther
	unread := b.buf[b.off:]
	if len(unread) == 0 {
		b.reset()
		return 0, nil
	}
	n, err := w.Write(unread)
	if n < 0 || n > len(unread) {
		panic("bytebufferpool: writer returned an invalid count")
	}
	b.off += n
	if err == nil && n < len(unread) {
		err = io.ErrShortWrite
	}
	if b.off == len(b.buf) {
		b.reset()
	}
	return int64(n), err
}

// check panics if the storage is not the Buffer's any more.
func (b *Buffer) check(method string) {
	if b.dead() {
		b.panicDead("Buffer", method)
	}
}

func (b *Buffer) reset() {
	b.buf, b.off, b.last = b.buf[:0], 0, opOther
}

// grow makes room for n more bytes, which there is none for, and returns the claim
// on the storage that was left, if any. It is the caller's to release.
func (b *Buffer) grow(n int) (old claim, err error) {
	unread := len(b.buf) - b.off
	if n <= cap(b.buf)/2-unread {
		// Half is free once the read part is gone: slide. With less, sliding
		// would cost more copying than growth.
		copy(b.buf, b.buf[b.off:])
		b.buf, b.off = b.buf[:unread], 0
		return claim{}, nil
	}
	size, err := b.h.core.grown(cap(b.buf), unread, n)
	if err != nil {
		return claim{}, err
	}
	owned := b.h.core.lease(size, KindBuffer)
	old, b.claim = b.claim, owned
	b.buf = append(owned.h.buf[:0], b.buf[b.off:]...)
	b.off = 0
	return old, nil
}

// grown returns the size to acquire when a Buffer of this capacity has unread bytes
// and shall hold n more.
func (c *core) grown(capacity, unread, n int) (int, error) {
	limit := c.cfg.MaxAcquireSize
	if n > limit-unread {
		return 0, c.checkSize(max(limit, unread) + 1)
	}
	need := unread + n
	var size int
	if capacity <= limit/4 && capacity < quadrupleBelow {
		size = min(4*capacity, quadrupleBelow)
	} else if capacity <= limit/2 {
		size = 2 * capacity
	} else {
		size = limit
	}
	size = max(size, need)
	if largest := c.classes.capacity[c.classes.n-1]; size > largest && need <= largest {
		size = largest // rather a class than more than is needed
	}
	return size, nil
}

var (
	_ io.Writer       = (*Buffer)(nil)
	_ io.ByteWriter   = (*Buffer)(nil)
	_ io.StringWriter = (*Buffer)(nil)
	_ io.ReaderFrom   = (*Buffer)(nil)
	_ io.WriterTo     = (*Buffer)(nil)
	_ io.RuneScanner  = (*Buffer)(nil)
	_ io.ByteScanner  = (*Buffer)(nil)
	_ io.Reader       = (*Buffer)(nil)
)
