// Package bytebufferpool lends byte storage, knows who owns it, and catches misuse.
//
// A [Pool] has fixed capacity classes and one of two modes: [Fast] keeps what the
// program keeps warm and leaves the rest to the garbage collector, [Bounded]
// keeps idle storage below an exact budget. What is acquired comes in four
// forms:
//
//   - [Lease]: bytes of a known size. The form to prefer. Exactly one release
//     counts, copies and races included, and use after release panics.
//   - raw slice ([Pool.AcquireSlice]): a plain []byte, for APIs that want one. It
//     carries no state; [Config.ValidationEnabled] diagnoses wrong releases.
//   - [Buffer]: bytes of unknown size in one piece, with the methods of
//     [bytes.Buffer].
//   - [Chain]: many bytes of unknown size in segments, never copied by growth.
//
// A typical use:
//
//	lease := pool.Acquire(1500)
//	defer lease.Release()
//	payload := lease.Bytes() // len 1500, cap 2048
//
// Who acquires must release, once, after the last use of the bytes; what is not
// released is collected like any other memory, and only costs a miss. Storage
// comes with the content of its last use.
//
// When not to use it: for objects other than bytes (sync.Pool), for bytes that
// live long (make), and for single small buffers that escape analysis keeps on the
// stack anyway.
//
// # Cost
//
// An idle header stays in a seat near the goroutine that uses it. Acquire and
// Release are one compare-and-swap each, without allocation or shared memory,
// with the detection of duplicate release and use after release included. Options of
// [Config] that are off cost nothing.
//
// # Diagnosis
//
// [Config.OnMisuse], [Config.StackSampling], [Config.DiagnosticFill],
// [Config.Quarantine] and [Config.TrackOutstanding] find who holds on to storage
// too long or not long enough. Package bytebufferpooltest turns them on for tests. The
// build tag invariants turns DiagnosticFill on everywhere.
package bytebufferpool
