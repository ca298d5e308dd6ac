package pool

import (
	"io"
	"math/bits"

	"google.golang.org/grpc/mem"
)

// grpcSlices is google.golang.org/grpc/mem. Its pools clear a buffer when they hand it out.
type grpcSlices struct{ pool mem.BufferPool }

// newGRPCBinary returns gRPC's fastest kind of pool with the classes of bytebufferpool.
func newGRPCBinary() mem.BufferPool {
	var exponents []uint8
	for c := Smallest; c <= Cutoff; c *= 2 {
		exponents = append(exponents, uint8(bits.Len(uint(c))-1))
	}
	p, err := mem.NewBinaryTieredBufferPool(exponents...)
	if err != nil {
		panic("pool: gRPC refuses its tiers: " + err.Error()) // only when an exponent is above the machine's word
	}
	return p
}

func (p *grpcSlices) Cycle(n, size int) {
	for range n {
		b := p.pool.Get(size)
		touch(*b)
		p.pool.Put(b)
	}
}

func (p *grpcSlices) Hold(n, size int) {
	var lot [held]*[]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.pool.Get(size)
			touch(*lot[i])
		}
		for _, b := range lot {
			p.pool.Put(b)
		}
	}
}

func (p *grpcSlices) Handoff(n, size int) {
	handoff(n, func(b **[]byte) { *b = p.pool.Get(size); touch(**b) }, func(b **[]byte) { p.pool.Put(*b) })
}

func (p *grpcSlices) Take(size int) ([]byte, func()) {
	b := p.pool.Get(size)
	return *b, func() { p.pool.Put(b) }
}

// grpcBuffers is its BufferSlice: a list of pooled buffers, one for each Write, that never copies on growth. Like in gRPC itself,
// what is below mem's pooling threshold (1 KiB) is not pooled.
type grpcBuffers struct{ pool mem.BufferPool }

func (p *grpcBuffers) Write(n int, piece []byte, count int) {
	for range n {
		var s mem.BufferSlice
		w := mem.NewWriter(&s, p.pool)
		for range count {
			_, _ = w.Write(piece)
		}
		s.Free()
	}
}

func (p *grpcBuffers) ReadFrom(n int, data []byte) {
	var r source
	for range n {
		r.reset(data)
		s, err := mem.ReadAll(&r, p.pool)
		mustRead(int64(s.Len()), err)
		s.Free()
	}
}

func (p *grpcBuffers) Open() (Stream, func()) {
	s := &grpcStream{pool: p.pool}
	return s, func() { s.slice.Free() }
}

// grpcStream gives a BufferSlice the methods of a buffer.
type grpcStream struct {
	slice mem.BufferSlice
	pool  mem.BufferPool
}

func (s *grpcStream) Write(p []byte) (int, error) { return mem.NewWriter(&s.slice, s.pool).Write(p) }

func (s *grpcStream) ReadFrom(r io.Reader) (int64, error) {
	more, err := mem.ReadAll(r, s.pool)
	s.slice = append(s.slice, more...)
	return int64(more.Len()), err
}

func (s *grpcStream) WriteTo(w io.Writer) (int64, error) {
	r := s.slice.Reader()
	defer r.Close()
	return io.Copy(w, r)
}
