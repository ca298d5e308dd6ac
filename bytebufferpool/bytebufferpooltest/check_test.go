package bytebufferpooltest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hotset-go/hotset/bytebufferpool"
	"github.com/hotset-go/hotset/bytebufferpool/bytebufferpooltest"
)

// recorder is a test that notes its failures.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	panic(r)
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) end() []string {
	for _, f := range r.cleanups {
		f()
	}
	return r.failures
}

//go:noinline
func forgetful(pool *bytebufferpool.Pool) {
	lease := pool.Acquire(123)
	lease.Bytes()[0] = 1
}

func TestCheck_NamesWhereItWasAcquired(t *testing.T) {
	r := &recorder{TB: t}
	pool := bytebufferpooltest.New(r, bytebufferpool.DefaultConfig(bytebufferpool.Bounded))
	forgetful(pool)
	failures := r.end()
	if len(failures) != 1 || !strings.Contains(failures[0], "a Lease of 123 bytes was not released") || !strings.Contains(failures[0], "forgetful") {
		t.Errorf("%q", failures)
	}
}

func TestCheck_PassesWhenAllIsBack(t *testing.T) {
	for _, mode := range []bytebufferpool.Mode{bytebufferpool.Fast, bytebufferpool.Bounded} {
		pool := bytebufferpooltest.New(t, bytebufferpool.DefaultConfig(mode))
		for i := 0; i < 200; i++ {
			lease := pool.Acquire(123)
			pool.ReleaseSlice(pool.AcquireSlice(123))
			lease.Release()
		}
	}
}

func TestCheck_ReportsMisuseAtOnce(t *testing.T) {
	var also []bytebufferpool.Misuse
	r := &recorder{TB: t}
	// Not Fast: under the race detector a sync.Pool loses some of what it is given.
	config := bytebufferpool.DefaultConfig(bytebufferpool.Bounded)
	config.OnMisuse = func(m bytebufferpool.Misuse) { also = append(also, m) }
	pool := bytebufferpooltest.New(r, config)
	lease := pool.Acquire(100)
	late := lease.Bytes()
	lease.Release()
	lease.Release()
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "duplicate release") || len(also) != 1 {
		t.Fatalf("%q", r.failures)
	}
	// A write after release is found when the storage comes out of quarantine.
	late[0] = 1
	for i := 0; i < 200; i++ {
		lease := pool.Acquire(100)
		lease.Release()
	}
	if failures := r.end(); len(failures) != 2 || !strings.Contains(failures[1], "write after release") {
		t.Errorf("%q", failures)
	}
}

func TestCheck_NeedsTracking(t *testing.T) {
	pool, err := bytebufferpool.New(bytebufferpool.DefaultConfig(bytebufferpool.Fast))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	defer func() {
		if recover() == nil || len(r.failures) != 1 || !strings.Contains(r.failures[0], "TrackOutstanding") {
			t.Errorf("%q", r.failures)
		}
	}()
	bytebufferpooltest.Check(r, pool)
}

func TestNew_InvalidConfig(t *testing.T) {
	r := &recorder{TB: t}
	defer func() {
		if recover() == nil || len(r.failures) != 1 {
			t.Errorf("%q", r.failures)
		}
	}()
	bytebufferpooltest.New(r, bytebufferpool.Config{})
}
