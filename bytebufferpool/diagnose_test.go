package bytebufferpool_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

// waitFor waits for something that another goroutine brings about.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

type reports struct {
	mu   sync.Mutex
	list []pool.Misuse
}

func (r *reports) add(m pool.Misuse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, m)
}

func (r *reports) take(t *testing.T, kind pool.MisuseKind) pool.Misuse {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) != 1 || r.list[0].Kind != kind {
		t.Fatalf("reports: %v, want one %v", r.list, kind)
	}
	m := r.list[0]
	r.list = nil
	return m
}

//go:noinline
func acquiredHere(p *pool.Pool) pool.Lease { return p.Acquire(100) }

//go:noinline
func releasedHere(l *pool.Lease) { l.Release() }

func TestMisuse_BothStacks(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		var r reports
		p := newPool(t, mode, func(c *pool.Config) { c.OnMisuse, c.StackSampling = r.add, 1 })
		check := func(kind pool.MisuseKind) {
			t.Helper()
			m := r.take(t, kind)
			for part, want := range map[string][2]string{
				"acquired": {m.Acquired.String(), "acquiredHere"},
				"released": {m.Released.String(), "releasedHere"},
				"detected": {m.Detected.String(), "TestMisuse_BothStacks"},
			} {
				if !strings.Contains(want[0], want[1]) || !strings.Contains(want[0], "diagnose_test.go:") {
					t.Errorf("%v, %s at\n%s", kind, part, want[0])
				}
			}
			if text := m.String(); !strings.Contains(text, kind.String()) || !strings.Contains(text, "128 bytes") || !strings.Contains(text, "released at:") {
				t.Error(text)
			}
		}
		for i := 0; i < 2; i++ { // without a seat, and from one
			l := acquiredHere(p)
			releasedHere(&l)
			l.Release()
			check(pool.DuplicateRelease)
			mustPanic(t, func() { l.Bytes() })
			check(pool.UseAfterRelease)
			next := p.Acquire(100) // the last use but one is still known
			l.Release()
			check(pool.DuplicateRelease)
			next.Release()
		}
	})
}

func TestMisuse_RawSlices(t *testing.T) {
	var r reports
	p := newPool(t, pool.Bounded, func(c *pool.Config) {
		c.OnMisuse, c.StackSampling, c.ValidationEnabled = r.add, 1, true
	})
	b := p.AcquireSlice(100)
	p.ReleaseSlice(b)
	p.ReleaseSlice(b)
	if m := r.take(t, pool.DuplicateRelease); len(m.Acquired) == 0 || len(m.Released) == 0 || m.Capacity != 128 || m.Offset != -1 {
		t.Error(m)
	}
	p.ReleaseSlice(make([]byte, 77))
	r.take(t, pool.ForeignRelease)
	b = p.AcquireSlice(100)
	p.ReleaseSlice(b[:0:64])
	if m := r.take(t, pool.ChangedCapacity); len(m.Acquired) == 0 {
		t.Error(m)
	}
}

func TestMisuse_WithoutSampling(t *testing.T) {
	var r reports
	p := newPool(t, pool.Fast, func(c *pool.Config) { c.OnMisuse = r.add })
	l := p.Acquire(1)
	l.Release()
	l.Release()
	if m := r.take(t, pool.DuplicateRelease); m.Acquired != nil || len(m.Detected) == 0 {
		t.Error(m)
	}
	if s := pool.MisuseKind(99).String() + pool.Kind(99).String() + pool.Mode(9).String(); s != "MisuseKind(99)Kind(99)Mode(9)" {
		t.Error(s)
	}
}

func TestDiagnosticFill_FindsWriteAfterRelease(t *testing.T) {
	for name, zero := range map[string]bool{"filled": false, "zeroed": true} {
		t.Run(name, func(t *testing.T) {
			inModes(t, func(t *testing.T, mode pool.Mode) {
				var r reports
				p := newPool(t, mode, func(c *pool.Config) { c.DiagnosticFill, c.ZeroOnRelease, c.OnMisuse = true, zero, r.add })
				for _, offset := range []int{0, 5000, 8191} {
					l := p.Acquire(8192)
					late := l.Bytes()
					fill(late, 1)
					l.Release()
					again := p.Acquire(8192) // untouched: no report
					if base(again.Bytes()) != base(late) {
						t.Skip("the storage did not come back")
					}
					again.Release()
					late[offset] = 9
					again = p.Acquire(8192)
					if m := r.take(t, pool.WriteAfterRelease); m.Offset != offset || m.Capacity != 8192 {
						t.Error(m)
					}
					again.Release()
				}
			})
		})
	}
}

func TestDiagnosticFill_PanicsWithoutHook(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.DiagnosticFill = true })
	b := p.AcquireSlice(100)
	p.ReleaseSlice(b)
	b[3] = 1
	text, _ := mustPanic(t, func() { p.AcquireSlice(100) }).(string)
	if !strings.Contains(text, "write after release of storage of 128 bytes at offset 3") {
		t.Error(text)
	}
}

func TestDiagnosticFill_Pattern(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.DiagnosticFill = true })
	for _, size := range []int{64, 4096, 16 << 10} {
		b := p.AcquireSlice(size)
		p.ReleaseSlice(b[:1])
		if !all(b, 0xDB) {
			t.Errorf("%d bytes are not filled", size)
		}
	}
}

func TestQuarantine_HoldsBack(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.Quarantine = 2 })
	var first *byte
	for i := 0; i < 3; i++ {
		l := p.Acquire(100)
		if i == 0 {
			first = base(l.Bytes())
		} else if base(l.Bytes()) == first {
			t.Error("acquired from quarantine")
		}
		wantStatus(t, l.Release(), pool.Retained)
		if got := p.Stats().IdleStorageCount; got != i+1 {
			t.Errorf("%d idle, want %d: what is held back counts", got, i+1)
		}
	}
	l := p.Acquire(100)
	if base(l.Bytes()) != first {
		t.Error("not back after its time")
	}
	p.Clear()
	if got := p.Stats().IdleStorageCount; got != 0 {
		t.Error(got)
	}
	if err := p.CheckReservations(); err != nil {
		t.Error(err)
	}
}

func TestOutstanding_NamesWhatIsMissing(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.TrackOutstanding, c.StackSampling = true, 1 })
		l := acquiredHere(p)
		b := p.AcquireSlice(3000)
		buffer := p.Buffer(10)
		_, _ = buffer.WriteString(strings.Repeat("x", 1000)) // one storage, also after growth
		chain := p.Chain(10)
		list, ok := p.Outstanding()
		if !ok || len(list) != 4 {
			t.Fatalf("%v", list)
		}
		kinds := map[pool.Kind]pool.Outstanding{}
		for _, o := range list {
			kinds[o.Kind] = o
		}
		if o := kinds[pool.KindLease]; o.Size != 100 || o.Capacity != 128 || !strings.Contains(o.Acquired.String(), "acquiredHere") || time.Since(o.Since) > time.Hour {
			t.Errorf("%+v", o)
		}
		if o := kinds[pool.KindSlice]; o.Size != 3000 || o.Capacity != 4096 {
			t.Errorf("%+v", o)
		}
		l.Release()
		p.ReleaseSlice(b)
		buffer.Release()
		chain.Release()
		if list, _ := p.Outstanding(); len(list) != 0 {
			t.Errorf("%v", list)
		}
		if _, ok := newPool(t, mode, nil).Outstanding(); ok {
			t.Error("tracked without the option")
		}
	})
}

func TestStackSampling_OneInN(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.TrackOutstanding, c.StackSampling = true, 4 })
	l := make([]pool.Lease, 100)
	for i := range l {
		l[i] = p.Acquire(1)
	}
	list, _ := p.Outstanding()
	sampled := 0
	for _, o := range list {
		if o.Acquired != nil {
			sampled++
		}
	}
	if sampled != 25 {
		t.Errorf("%d of 100 were sampled, want 25", sampled)
	}
}

func TestSizeHistogram_Rows(t *testing.T) {
	p := newPool(t, pool.Fast, func(c *pool.Config) { c.SizeHistogram = true })
	for _, size := range []int{0, 1, 1024, 1024, 1000, 1025, 5 << 20} {
		l := p.Acquire(size)
		l.Release()
	}
	got, err := json.Marshal(p.SizeHistogram())
	want := `[{"min":1,"max":1,"count":2},{"min":961,"max":1024,"count":3},{"min":1025,"max":1152,"count":1},{"min":4718593,"max":5242880,"count":1}]`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	if newPool(t, pool.Fast, nil).SizeHistogram() != nil {
		t.Error("a histogram without the option")
	}
}
