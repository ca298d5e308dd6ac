package bytebufferpool_test

import (
	"testing"
	"unsafe"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

var modes = []pool.Mode{pool.Fast, pool.Bounded}

// inModes runs a test in both modes.
func inModes(t *testing.T, test func(t *testing.T, mode pool.Mode)) {
	t.Helper()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) { test(t, mode) })
	}
}

// newPool makes a pool from the defaults after change.
func newPool(t testing.TB, mode pool.Mode, change func(*pool.Config)) *pool.Pool {
	t.Helper()
	config := pool.DefaultConfig(mode)
	if change != nil {
		change(&config)
	}
	p, err := pool.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantStatus(t testing.TB, got, want pool.ReleaseStatus) {
	t.Helper()
	if got != want {
		t.Fatalf("status = %v, want %v", got, want)
	}
}

// mustPanic returns what f panics with.
func mustPanic(t testing.TB, f func()) (value any) {
	t.Helper()
	defer func() {
		t.Helper()
		if value = recover(); value == nil {
			t.Fatal("no panic")
		}
	}()
	f()
	return nil
}

func base(b []byte) *byte { return unsafe.SliceData(b) }

func all(b []byte, v byte) bool {
	for _, c := range b {
		if c != v {
			return false
		}
	}
	return true
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}
