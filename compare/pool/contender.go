package pool

import "io"

const (
	// Cutoff is the greatest capacity that the pools keep that let one choose: the default of bytebufferpool.
	Cutoff = 1 << 20

	// Smallest is the smallest capacity class of the pools that let one choose.
	Smallest = 64

	// budget is what the pools may keep that are bounded in bytes: the default of bytebufferpool.
	budget = 32 << 20

	// held is how many slices [Slices.Hold] borrows at once: more than a pool with a few places a processor has at hand.
	held = 16

	// bounded is how many slices or buffers the pools keep that are bounded by a count: one for each of 128 goroutines, twice.
	bounded = 256
)

// Slices is a pool of byte slices. Its methods are safe for concurrent use. The slices' contents are not defined.
type Slices interface {
	// Cycle borrows size bytes, writes the first and the last one, and returns them: n times.
	Cycle(n, size int)

	// Hold borrows slices of size bytes, touches each and then returns them: n in all, in lots of [held].
	// n is rounded up to full lots.
	Hold(n, size int)

	// Handoff borrows n slices of size bytes in one goroutine and returns them in another.
	Handoff(n, size int)

	// Take borrows size bytes; release returns them and must be called once. For everything that is not timed closely.
	Take(size int) (b []byte, release func())
}

// Buffers is a pool of growing buffers. Its methods are safe for concurrent use.
type Buffers interface {
	// Write takes a buffer, writes piece into it count times and returns the buffer: n times.
	Write(n int, piece []byte, count int)

	// ReadFrom takes a buffer, reads data into it through the buffer's own ReadFrom and returns the buffer: n times.
	ReadFrom(n int, data []byte)

	// Open takes a buffer; release returns it and must be called once. For everything that is not timed closely.
	Open() (b Stream, release func())
}

// Stream is what the buffers have in common. WriteTo writes everything that was put in.
type Stream interface {
	io.Writer
	io.ReaderFrom
	io.WriterTo
}

// SlicePool is a line of [SlicePools].
type SlicePool struct {
	Name  string // in benchmark names: without spaces
	Title string // in tables

	// New makes an empty pool that will be asked for slices of that size.
	New func(size int) Slices

	// Global says that all values of New share one pool, which is therefore never new.
	Global bool
}

// BufferPool is a line of [BufferPools].
type BufferPool struct {
	Name  string
	Title string
	New   func() Buffers // makes an empty pool
}

// touch makes a slice used: a pool whose slices are never written would be measured with cold pages and idle caches.
func touch(b []byte) {
	b[0] = 1
	b[len(b)-1] = 1
}
