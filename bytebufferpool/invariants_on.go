//go:build invariants

package bytebufferpool

// invariants turns Config.DiagnosticFill on for every pool. The tag is not set by
// -race: the race detector is to see the same fast path that users run.
const invariants = true
