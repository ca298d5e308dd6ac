package bytebufferpool_test

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

// collect runs a garbage collection and waits until the pool has been swept after it.
func collect(t *testing.T, p *pool.Pool) {
	t.Helper()
	before := p.LastSweep()
	runtime.GC()
	for deadline := time.Now().Add(20 * time.Second); p.LastSweep() == before; {
		if time.Now().After(deadline) {
			t.Fatal("no sweep after a garbage collection")
		}
		runtime.Gosched()
	}
}

func watch(b []byte) chan struct{} {
	freed := make(chan struct{})
	runtime.SetFinalizer(base(b), func(*byte) { close(freed) })
	return freed
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(2 * time.Second):
		return false
	}
}

// Storage of a Fast pool survives one collection, and is gone after the third.
func TestFast_GivesBackOnGC(t *testing.T) {
	p := newPool(t, pool.Fast, nil)
	use := func() (freedLease, freedSlice chan struct{}, address uintptr) {
		for i := 0; i < 2; i++ { // the second time from the seat
			l := p.Acquire(1000)
			l.Release()
		}
		l := p.Acquire(1000)
		defer l.Release()
		s := p.AcquireSlice(5000)
		defer p.ReleaseSlice(s)
		return watch(l.Bytes()), watch(s), uintptr(unsafe.Pointer(base(l.Bytes())))
	}
	again := func(address uintptr) {
		l := p.Acquire(1000)
		defer l.Release()
		if uintptr(unsafe.Pointer(base(l.Bytes()))) != address {
			t.Error("gone after one collection")
		}
	}
	freedLease, freedSlice, address := use()
	collect(t, p)
	again(address)
	collect(t, p)
	collect(t, p)
	collect(t, p)
	if !isClosed(freedLease) {
		t.Error("storage of a lease is still there after three collections")
	}
	if !isClosed(freedSlice) {
		t.Error("storage of a slice is still there after three collections")
	}
	runtime.KeepAlive(p)
}

func TestFast_AcquireAfterGCDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := newPool(t, pool.Fast, nil)
	l := p.Acquire(1000)
	l.Release()
	allocs := testing.AllocsPerRun(5, func() {
		collect(t, p)
		l := p.Acquire(1000)
		l.Release()
	})
	// Those of runtime.GC and the sweep's clock, but not the KiB and its header.
	if allocs > 1 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestBounded_SurvivesGC(t *testing.T) {
	p := newPool(t, pool.Bounded, nil)
	l := p.Acquire(1000)
	l.Release()
	for i := 0; i < 5; i++ {
		runtime.GC()
	}
	if got := p.Stats().IdleStorageCount; got != 1 {
		t.Error(got)
	}
}

// A pool needs no closing: it is collected with all it has, sweeps included.
func TestPool_IsCollected(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		freed := func() chan struct{} {
			p := newPool(t, mode, func(c *pool.Config) { c.ValidationEnabled, c.StatsEnabled = true, true })
			l := p.Acquire(1000)
			freed := watch(l.Bytes())
			l.Release()
			p.ReleaseSlice(p.AcquireSlice(1000))
			return freed
		}()
		for i := 0; i < 10; i++ {
			runtime.GC()
			select {
			case <-freed:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		t.Error("a pool that nobody can reach is still there after ten collections")
	})
}

// A pool starts no goroutine at all.
func TestPool_NoGoroutines(t *testing.T) {
	runtime.GC()
	before := runtime.NumGoroutine()
	for _, mode := range modes {
		p := newPool(t, mode, func(c *pool.Config) { c.TrackOutstanding, c.Quarantine = true, 2 })
		for i := 0; i < 100; i++ {
			l := p.Acquire(1000)
			l.Release()
		}
		p.Clear()
		p.TrimIdle(0)
		if mode == pool.Fast {
			collect(t, p)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

func TestTrim_Target(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		var l [40]pool.Lease
		for i := range l {
			l[i] = p.Acquire(64 << (i % 8))
		}
		sum := 0
		for i := range l {
			sum += l[i].Cap()
			l[i].Release()
		}
		if mode == pool.Bounded {
			if dropped := p.Trim(1000); dropped < sum-1000 || p.Stats().RetainedCapacity > 1000 {
				t.Errorf("dropped %d of %d, %d are left", dropped, sum, p.Stats().RetainedCapacity)
			}
			// The small ones are those that are left.
			for _, row := range p.Stats().ClassInventory[4:] {
				if row.IdleStorageCount > 0 {
					t.Errorf("%+v", row)
				}
			}
		}
		p.Trim(0)
		if got := p.Trim(0); got != 0 || p.Stats().RetainedCapacity != 0 {
			t.Errorf("%d bytes after Trim(0)", got)
		}
		if mode == pool.Bounded {
			if err := p.CheckReservations(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTrim_LeavesLeasesAlone(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		l := p.Acquire(1000)
		l.Release()
		l = p.Acquire(1000)
		p.Trim(0)
		l.Bytes()[0] = 1
		wantStatus(t, l.Release(), pool.Retained)
	})
}

func TestTrimIdle_DropsUnused(t *testing.T) {
	p := newPool(t, pool.Bounded, nil)
	const age = int64(time.Minute)
	now := p.LastSweep()
	release := func(n int) { // n leases and slices at once
		leases, slices := make([]pool.Lease, n), make([][]byte, n)
		for i := range leases {
			leases[i], slices[i] = p.Acquire(1000), p.AcquireSlice(1000)
		}
		for i := range leases {
			leases[i].Release()
			p.ReleaseSlice(slices[i])
		}
	}
	release(40)
	want := func(dropped, left int) {
		t.Helper()
		if got := p.SweepAt(age, now); got != dropped*1024 {
			t.Errorf("dropped %d bytes, want %d KiB", got, dropped)
		}
		if got := p.Stats().IdleStorageCount; got != left {
			t.Errorf("%d are left, want %d", got, left)
		}
	}
	now += age - 1
	want(0, 80) // too early: nothing is looked at
	now++
	want(0, 80) // all were used since New
	release(2)
	now += age
	want(2*38, 4)
	now += age / 2
	want(0, 4)
	now += age / 2
	want(4, 0)
	if err := p.CheckReservations(); err != nil {
		t.Error(err)
	}
}

// A lease that is lost gives its seat's budget back to the pool in time, and a
// lease that is only held long goes on.
func TestTrimIdle_UnseatsLongLeases(t *testing.T) {
	p := newPool(t, pool.Bounded, nil)
	l := p.Acquire(1000)
	l.Release()
	l = p.Acquire(1000)
	now := p.LastSweep()
	for i := 0; i < 3; i++ {
		now++
		if got := p.SweepAt(0, now); got != 0 {
			t.Errorf("dropped %d bytes that are leased", got)
		}
	}
	l.Bytes()[0] = 1
	wantStatus(t, l.Release(), pool.Retained)
	if got := p.Stats().IdleStorageCount; got != 1 {
		t.Error(got)
	}
	if err := p.CheckReservations(); err != nil {
		t.Error(err)
	}
}

// Case K15: a few giants do not stay.
func TestBounded_PinnedGiants_K15(t *testing.T) {
	giants, small, size := 10, rounds(1_000_000), 256<<20
	if testing.Short() || raceEnabled || ^uint(0)>>63 == 0 {
		giants, size = 3, 8<<20
	}
	p := newPool(t, pool.Bounded, nil)
	for i := 0; i < giants; i++ {
		l := p.Acquire(size)
		b := l.Bytes()
		b[0], b[len(b)-1] = 1, 1
		wantStatus(t, l.Release(), pool.DroppedOversize)
	}
	for i := 0; i < small; i++ {
		l := p.Acquire(1024)
		l.Bytes()[0] = 1
		l.Release()
		if i%(small/10) == 0 {
			runtime.GC()
			if got := p.Stats().RetainedCapacity; got > 32<<20 {
				t.Fatalf("retained %d", got)
			}
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 10<<20 {
		t.Errorf("the heap is %d MiB", m.HeapAlloc>>20)
	}
	runtime.KeepAlive(p)
}

func TestAllocations_None(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	// A finalizer that runs in between would count: the collector stays off.
	inModes(t, func(t *testing.T, mode pool.Mode) {
		plain := newPool(t, mode, nil)
		optioned := newPool(t, mode, func(c *pool.Config) {
			c.ZeroOnRelease, c.ValidationEnabled, c.StatsEnabled, c.SizeHistogram = true, true, true, true
		})
		payload := make([]byte, 64)
		sink := discard{}
		for name, f := range map[string]func(p *pool.Pool){
			"lease":     func(p *pool.Pool) { l := p.Acquire(1000); l.Bytes()[0] = 1; l.Release() },
			"slice":     func(p *pool.Pool) { s := p.AcquireSlice(1000); s[0] = 1; p.ReleaseSlice(s) },
			"try":       func(p *pool.Pool) { l, _ := p.TryAcquire(1000); l.Release() },
			"duplicate": func(p *pool.Pool) { l := p.Acquire(1000); l.Release(); l.Release() },
			"proxy":     func(p *pool.Pool) { s := p.ProxyBuffers(32 << 10); s.Put(s.Get()) },
			"sixteen":   func(p *pool.Pool) { sixteen(p) },
			"two sizes": func(p *pool.Pool) { l := p.Acquire(100); m := p.Acquire(60_000); l.Release(); m.Release() },
			"buffer":    func(p *pool.Pool) { b := p.Buffer(64); grow(&b, payload, 256); b.Release() },
			"chain": func(p *pool.Pool) {
				c := p.Chain(64)
				writeChain(&c, payload, 256)
				_, _ = c.WriteTo(sink)
				c.Release()
			},
			"chain 2MiB": func(p *pool.Pool) { c := p.Chain(4096); writeChain(&c, plainPage[:], 512); c.Release() },
		} {
			for kind, p := range map[string]*pool.Pool{"plain": plain, "options": optioned} {
				f(p)
				if allocs := testing.AllocsPerRun(20, func() { f(p) }); allocs > 0.5 {
					t.Errorf("%s, %s: %v allocations", name, kind, allocs)
				}
			}
		}
	})
}

var plainPage [4096]byte

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func sixteen(p *pool.Pool) {
	var l [16]pool.Lease
	for i := range l {
		l[i] = p.Acquire(1000)
	}
	for i := range l {
		l[i].Release()
	}
}

func grow(b *pool.Buffer, payload []byte, n int) {
	for i := 0; i < n; i++ {
		_, _ = b.Write(payload)
	}
}

func writeChain(c *pool.Chain, payload []byte, n int) {
	for i := 0; i < n; i++ {
		_, _ = c.Write(payload)
	}
}
