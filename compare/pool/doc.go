// Package pool compares byte pools: module bytebufferpool with the pools that people use in Go.
//
// Each rival has one file, which adapts it to [Slices] (borrow and return a slice) or [Buffers] (write into a growing buffer),
// and one line in [SlicePools] or [BufferPools]. Everything else, workloads, tables and tests, runs over those lists.
//
// An adapter holds the loops that are timed. That repeats a few lines in each file, and it is the point: the rival's methods
// are called directly, as a program would, so that what the compiler can inline is inlined. Behind an interface or a type
// parameter two indirect calls would be added to operations that take ten nanoseconds.
package pool
