//go:build !invariants

package bytebufferpool

const invariants = false
