package bytebufferpool

import (
	"errors"
	"io"
)

// copySize is the buffer of Copy: what io.Copy and httputil.ReverseProxy use.
const copySize = 32 << 10

// ProxyBuffers is a source of copy buffers of one size: a
// [net/http/httputil.BufferPool], for the BufferPool field of a ReverseProxy, which
// without one allocates 32 KiB for each request.
type ProxyBuffers struct {
	pool *Pool
	size int
}

// ProxyBuffers returns buffers of size bytes, usually 32 KiB. It panics like
// [Pool.AcquireSlice] for an invalid size.
func (p *Pool) ProxyBuffers(size int) *ProxyBuffers {
	if err := p.checkSize(size); err != nil {
		panic(err)
	}
	return &ProxyBuffers{p, size}
}

// Get returns a buffer. It does not allocate when one is idle.
func (b *ProxyBuffers) Get() []byte { return b.pool.AcquireSlice(b.size) }

// Put gives a buffer back, under the rules of [Pool.ReleaseSlice].
func (b *ProxyBuffers) Put(buf []byte) { b.pool.ReleaseSlice(buf) }

// Copy is [io.Copy] with a pooled buffer of 32 KiB.
func (p *Pool) Copy(dst io.Writer, src io.Reader) (int64, error) {
	return p.CopyBuffer(dst, src, min(copySize, p.core.cfg.MaxAcquireSize))
}

// CopyBuffer is [io.CopyBuffer] with a pooled buffer of size bytes: like that it
// does without the buffer if src is an io.WriterTo or dst an io.ReaderFrom. It panics for
// an invalid size and for 0.
func (p *Pool) CopyBuffer(dst io.Writer, src io.Reader, size int) (int64, error) {
	if size == 0 {
		panic("bytebufferpool: CopyBuffer with a buffer of 0 bytes")
	}
	buf := p.Acquire(size)
	defer buf.Release()
	return io.CopyBuffer(dst, src, buf.Bytes())
}

// ReadAll reads r to its end, at most limit bytes, into a Buffer that the caller
// releases. Storage grows with what has arrived: a peer cannot make the pool
// allocate by announcing a size. With an error the storage is released already and
// the Buffer is a zero one, whose Release is ignored: the error is
// [ErrTooLarge] if r holds more than limit or Config.MaxAcquireSize, and that of r
// otherwise. A negative limit is [ErrInvalidSize].
func (p *Pool) ReadAll(r io.Reader, limit int) (b Buffer, err error) {
	if limit < 0 {
		return Buffer{}, p.checkSize(limit)
	}
	limit = min(limit, p.core.cfg.MaxAcquireSize)
	b = p.Buffer(min(limit, probeSize))
	done := false
	defer func() { // also when r panics
		if !done {
			b.Release()
			b = Buffer{}
		}
	}()
	if _, err = b.ReadFrom(io.LimitReader(r, int64(limit))); err != nil {
		return
	}
	if b.Len() == limit {
		if err = p.ended(r); err != nil {
			return
		}
	}
	done = true
	return
}

// ended reports whether r has nothing left.
func (p *Pool) ended(r io.Reader) error {
	one := p.Acquire(1)
	defer one.Release()
	for empty := 0; empty < maxEmptyReads; empty++ {
		n, err := r.Read(one.Bytes())
		switch {
		case n > 0:
			return ErrTooLarge
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}
