// Package bytebufferpooltest finds buffers that a test did not give back, or used
// after it had.
//
//	pool := bytebufferpooltest.New(t, bytebufferpool.DefaultConfig(bytebufferpool.Fast))
//
// With that, the test fails at its end for each lease, raw slice, Buffer and Chain
// that was not released, with the stack of its acquisition, and at once for a
// duplicate release, a foreign slice, a use after release and a write after release.
package bytebufferpooltest

import (
	"testing"

	"github.com/hotset-go/hotset/bytebufferpool"
)

// quarantined is how many storages are kept out of use after their release, so that a
// late write meets the pattern and not another owner's bytes.
const quarantined = 64

// New returns a pool of the given configuration with every diagnosis turned on and
// misuse reported to tb, checked by [Check] at the end of the test. An OnMisuse of
// the configuration is called as well. It is slow by design: use it for
// tests only.
//
// Use before the test's end only: what another goroutine does with the pool
// after that cannot be reported any more.
func New(tb testing.TB, config bytebufferpool.Config) *bytebufferpool.Pool {
	tb.Helper()
	config.ValidationEnabled = true
	config.DiagnosticFill = true
	config.TrackOutstanding = true
	config.StackSampling = 1
	config.Quarantine = max(config.Quarantine, quarantined)
	also := config.OnMisuse
	config.OnMisuse = func(m bytebufferpool.Misuse) {
		tb.Error(m)
		if also != nil {
			also(m)
		}
	}
	pool, err := bytebufferpool.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	Check(tb, pool)
	return pool
}

// Check has the test fail at its end if anything acquired from the pool was not
// released by then, and names where it was acquired. The pool must keep track
// (Config.TrackOutstanding), otherwise the test fails now; it names the places with
// Config.StackSampling set to 1.
//
// Check may be called first thing or deferred. It sees everything that is outstanding,
// also from other tests that use the same pool at the same time.
func Check(tb testing.TB, pool *bytebufferpool.Pool) {
	tb.Helper()
	if _, tracked := pool.Outstanding(); !tracked {
		tb.Fatal("bytebufferpooltest: Check needs a pool with Config.TrackOutstanding")
	}
	tb.Cleanup(func() {
		list, _ := pool.Outstanding()
		for _, o := range list {
			where := o.Acquired.String()
			if where == "" {
				where = "(not sampled: set Config.StackSampling to 1)"
			}
			tb.Errorf("bytebufferpooltest: a %v of %d bytes was not released; acquired at\n%s", o.Kind, o.Size, where)
		}
	})
}
