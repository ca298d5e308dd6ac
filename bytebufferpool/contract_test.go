package bytebufferpool_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

// The sentences of the contract, one by one; docs/contract.md names the test of
// each.

func TestStatus_Numbers(t *testing.T) {
	for want, status := range []pool.ReleaseStatus{
		pool.Retained, pool.DroppedFull, pool.DroppedOversize, pool.DroppedInvalid, pool.DroppedStale,
		pool.RejectedForeign, pool.RejectedDuplicate, pool.IgnoredNil, pool.DroppedUnpooled,
	} {
		if int(status) != want {
			t.Errorf("%v = %d, want %d", status, status, want)
		}
	}
	if got := pool.DroppedUnpooled.String() + pool.ReleaseStatus(200).String(); got != "DroppedUnpooledReleaseStatus(200)" {
		t.Error(got)
	}
}

func TestConfig_Defaults(t *testing.T) {
	c := pool.DefaultConfig(pool.Bounded)
	if len(c.Classes) != 15 || c.Classes[0] != 64 || c.Classes[14] != 1<<20 {
		t.Error("classes", c.Classes)
	}
	for i := 1; i < len(c.Classes); i++ {
		if c.Classes[i] != 2*c.Classes[i-1] {
			t.Error("not powers of two:", c.Classes)
		}
	}
	if c.Mode != pool.Bounded || c.MaxPooledCapacity != 1<<20 || c.MaxRetainedCapacity != 32<<20 || c.MaxAcquireSize != 1<<30 ||
		c.ZeroOnRelease || c.ValidationEnabled || c.StatsEnabled {
		t.Errorf("%+v", c)
	}
}

func TestConfig_InvalidNamesFieldAndValue(t *testing.T) {
	for field, change := range map[string]func(*pool.Config){
		"Mode":                       func(c *pool.Config) { c.Mode = 7 },
		"Classes":                    func(c *pool.Config) { c.Classes = nil },
		"Classes of length 300":      func(c *pool.Config) { c.Classes = make([]int, 300) },
		"Classes[0]":                 func(c *pool.Config) { c.Classes = []int{0, 64} },
		"Classes[1]":                 func(c *pool.Config) { c.Classes = []int{64, 64} },
		"MaxPooledCapacity":          func(c *pool.Config) { c.MaxPooledCapacity = 1<<20 - 1 },
		"MaxRetainedCapacity":        func(c *pool.Config) { c.MaxRetainedCapacity = 0 },
		"MaxAcquireSize":             func(c *pool.Config) { c.MaxAcquireSize = 0 },
		"MaxValidationTombstones":    func(c *pool.Config) { c.ValidationEnabled = true; c.MaxValidationTombstones = -1 },
		"MaxValidationTombstones is": func(c *pool.Config) { c.MaxValidationTombstones = 5 },
		"StackSampling":              func(c *pool.Config) { c.StackSampling = -1 },
		"Quarantine":                 func(c *pool.Config) { c.Quarantine = -1 },
	} {
		config := pool.DefaultConfig(pool.Bounded)
		change(&config)
		_, err := pool.New(config)
		if !errors.Is(err, pool.ErrInvalidConfig) || !strings.Contains(err.Error(), strings.TrimSuffix(field, " of length 300")) {
			t.Errorf("%s: error is %v", field, err)
		}
	}
}

func TestConfig_RetainedIgnoredInFast(t *testing.T) {
	newPool(t, pool.Fast, func(c *pool.Config) { c.MaxRetainedCapacity = 0 })
}

func TestConfig_CopiedByNew(t *testing.T) {
	config := pool.DefaultConfig(pool.Fast)
	p, err := pool.New(config)
	if err != nil {
		t.Fatal(err)
	}
	config.Classes[0] = 1
	l := p.Acquire(1)
	if l.Cap() != 64 {
		t.Error("the pool's classes changed with the Config")
	}
}

func TestPool_ZeroValuePanics(t *testing.T) {
	mustPanic(t, func() {
		var p pool.Pool
		p.Acquire(1)
	})
}

func TestAcquire_FirstClassThatFits(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		for _, c := range []struct{ size, capacity int }{
			{0, 64}, {1, 64}, {64, 64}, {65, 128}, {1500, 2048}, {32<<10 + 1, 64 << 10}, {1 << 20, 1 << 20},
		} {
			l := p.Acquire(c.size)
			if b := l.Bytes(); len(b) != c.size || cap(b) != c.capacity || l.Len() != c.size || l.Cap() != c.capacity {
				t.Errorf("Acquire(%d) is %d of %d", c.size, len(b), cap(b))
			}
			l.Release()
			b := p.AcquireSlice(c.size)
			if len(b) != c.size || cap(b) != c.capacity {
				t.Errorf("AcquireSlice(%d) is %d of %d", c.size, len(b), cap(b))
			}
			p.ReleaseSlice(b)
		}
	})
}

func TestAcquire_AboveClassesIsExact(t *testing.T) {
	p := newPool(t, pool.Fast, nil)
	l := p.Acquire(1<<20 + 1)
	if l.Len() != 1<<20+1 || l.Cap() != 1<<20+1 {
		t.Error(l.Len(), l.Cap())
	}
	wantStatus(t, l.Release(), pool.DroppedOversize)
}

// Case K17, and the edges of what may be acquired.
func TestTryAcquire_InvalidSize_K17(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.MaxPooledCapacity, c.MaxAcquireSize = 1<<20+12345, 4<<20 })
		for _, size := range []int{-1, math.MinInt, 4<<20 + 1, math.MaxInt} {
			if _, err := p.TryAcquire(size); !errors.Is(err, pool.ErrInvalidSize) {
				t.Errorf("TryAcquire(%d): %v", size, err)
			}
			if b, err := p.TryAcquireSlice(size); b != nil || !errors.Is(err, pool.ErrInvalidSize) {
				t.Errorf("TryAcquireSlice(%d): %v", size, err)
			}
			if _, err := p.TryBuffer(size); !errors.Is(err, pool.ErrInvalidSize) {
				t.Errorf("TryBuffer(%d): %v", size, err)
			}
			if _, err := p.TryChain(size); !errors.Is(err, pool.ErrInvalidSize) {
				t.Errorf("TryChain(%d): %v", size, err)
			}
		}
		for _, size := range []int{0, 1, 64, 65, 1 << 20, 1<<20 + 1, 4 << 20} {
			l, err := p.TryAcquire(size)
			if err != nil {
				t.Fatal(err)
			}
			if size >= 64 && size <= 1<<20 && l.Cap() >= 2*size {
				t.Errorf("%d bytes got a capacity of %d", size, l.Cap())
			}
			want := pool.Retained
			switch {
			case size > 1<<20+12345:
				want = pool.DroppedOversize
			case size > 1<<20:
				want = pool.DroppedUnpooled
			}
			wantStatus(t, l.Release(), want)
		}
	})
}

func TestAcquire_PanicsForInvalidSize(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		for name, f := range map[string]func(){
			"Acquire":      func() { p.Acquire(-1) },
			"AcquireSlice": func() { p.AcquireSlice(-1) },
			"Buffer":       func() { p.Buffer(-1) },
			"Chain":        func() { p.Chain(-1) },
			"too large":    func() { p.Acquire(1<<30 + 1) },
		} {
			if err, ok := mustPanic(t, f).(error); !ok || !errors.Is(err, pool.ErrInvalidSize) {
				t.Errorf("%s panics with %v", name, err)
			}
		}
	})
}

func TestLease_ReleaseTwice(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		l := p.Acquire(1500)
		wantStatus(t, l.Release(), pool.Retained)
		wantStatus(t, l.Release(), pool.RejectedDuplicate)
		next := p.Acquire(1500)
		wantStatus(t, l.Release(), pool.RejectedDuplicate)
		next.Bytes()[0] = 1
		wantStatus(t, next.Release(), pool.Retained)
	})
}

func TestLease_PanicsAfterRelease(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		for name, use := range map[string]func(*pool.Lease){
			"Bytes": func(l *pool.Lease) { l.Bytes() },
			"Len":   func(l *pool.Lease) { l.Len() },
			"Cap":   func(l *pool.Lease) { l.Cap() },
			"Body":  func(l *pool.Lease) { l.Body() },
		} {
			l := p.Acquire(100)
			l.Release()
			check := func() {
				t.Helper()
				if text := fmt.Sprint(mustPanic(t, func() { use(&l) })); text != "bytebufferpool: Lease."+name+" after Release" {
					t.Error(text)
				}
			}
			check()
			next := p.Acquire(100) // the same storage, most likely
			check()
			next.Release()
		}
	})
}

func TestLease_Zero(t *testing.T) {
	var l pool.Lease
	wantStatus(t, l.Release(), pool.IgnoredNil)
	if text := fmt.Sprint(mustPanic(t, func() { l.Bytes() })); text != "bytebufferpool: Lease.Bytes on a zero Lease" {
		t.Error(text)
	}
}

func TestLease_KeepsItsPool(t *testing.T) {
	a, b := newPool(t, pool.Bounded, nil), newPool(t, pool.Bounded, nil)
	l := a.Acquire(64)
	other := b.Acquire(64)
	l.Release()
	other.Release()
	if a.Stats().IdleStorageCount != 1 || b.Stats().IdleStorageCount != 1 {
		t.Error("storage changed its pool")
	}
}

func TestClear_LeaseIsStale(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		for _, size := range []int{100, 1 << 20, 2 << 20} {
			seated := p.Acquire(size)
			seated.Release()
			seated = p.Acquire(size) // now from a seat
			fresh := p.Acquire(size)
			p.Clear()
			seated.Bytes()[0] = 1 // still ours
			wantStatus(t, seated.Release(), pool.DroppedStale)
			wantStatus(t, fresh.Release(), pool.DroppedStale)
			wantStatus(t, fresh.Release(), pool.RejectedDuplicate)
		}
		l := p.Acquire(100)
		wantStatus(t, l.Release(), pool.Retained)
	})
}

func TestClear_DropsIdle(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.StatsEnabled = true })
		for i := 0; i < 2; i++ {
			leases := make([]pool.Lease, 40) // more than have a seat
			slices := make([][]byte, 40)
			for i := range leases {
				leases[i] = p.Acquire(100)
				slices[i] = p.AcquireSlice(100)
			}
			for i := range leases {
				leases[i].Release()
				p.ReleaseSlice(slices[i])
			}
			p.Clear()
		}
		if s := p.Stats(); s.Hits != 0 || s.IdleStorageCount != 0 {
			t.Errorf("%d hits, %d idle after Clear", s.Hits, s.IdleStorageCount)
		}
	})
}

func TestClear_RawSliceIsBestEffort(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		b := p.AcquireSlice(100)
		p.Clear()
		wantStatus(t, p.ReleaseSlice(b), pool.Retained)
	})
}

func TestStats_Generation(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		for want := uint64(0); want < 3; want++ {
			if got := p.Stats().Generation; got != want {
				t.Errorf("generation %d, want %d", got, want)
			}
			p.Clear()
		}
	})
}

func TestReleaseSlice_Statuses(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.MaxPooledCapacity = 2 << 20 })
		wantStatus(t, p.ReleaseSlice(nil), pool.IgnoredNil)
		wantStatus(t, p.ReleaseSlice([]byte{}), pool.DroppedInvalid)
		wantStatus(t, p.ReleaseSlice(make([]byte, 0, 100)), pool.DroppedUnpooled)
		wantStatus(t, p.ReleaseSlice(make([]byte, 2<<20)), pool.DroppedUnpooled)
		wantStatus(t, p.ReleaseSlice(make([]byte, 2<<20+1)), pool.DroppedOversize)
		wantStatus(t, p.ReleaseSlice(make([]byte, 128)), pool.Retained) // provenance cannot be proved
		b := p.AcquireSlice(1500)
		wantStatus(t, p.ReleaseSlice(b[:0]), pool.Retained)
		b = p.AcquireSlice(1500)
		wantStatus(t, p.ReleaseSlice(b[1:]), pool.DroppedUnpooled)
	})
}

func TestReleaseSlice_AcquiredAgain(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		b := p.AcquireSlice(1500)
		fill(b, 7)
		p.ReleaseSlice(b)
		again := p.AcquireSlice(2048)
		if mode == pool.Bounded && base(again) != base(b) {
			t.Error("idle storage was not used again")
		}
		if cap(again) != 2048 {
			t.Error(cap(again))
		}
	})
}

func TestDroppedUnpooled_OrderOfOutcomes(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) {
		c.Classes = []int{64, 1000}
		c.MaxPooledCapacity = 2000
		c.MaxRetainedCapacity = 1000
	})
	unpooled, oversize, staleOversize := p.Acquire(1500), p.Acquire(2001), p.Acquire(5000)
	a, b := p.Acquire(1000), p.Acquire(1000)
	wantStatus(t, unpooled.Release(), pool.DroppedUnpooled)
	wantStatus(t, oversize.Release(), pool.DroppedOversize)
	wantStatus(t, a.Release(), pool.Retained)
	wantStatus(t, b.Release(), pool.DroppedFull)
	p.Clear()
	wantStatus(t, staleOversize.Release(), pool.DroppedStale)
}

func TestBounded_BudgetIsExact(t *testing.T) {
	for _, slices := range []bool{false, true} {
		p := newPool(t, pool.Bounded, func(c *pool.Config) { c.MaxRetainedCapacity = 10 * 1024 })
		var leases [20]pool.Lease
		var raw [20][]byte
		for i := range leases {
			if slices {
				raw[i] = p.AcquireSlice(1024)
			} else {
				leases[i] = p.Acquire(1024)
			}
		}
		for i := range leases {
			want := pool.Retained
			if i >= 10 {
				want = pool.DroppedFull
			}
			if slices {
				wantStatus(t, p.ReleaseSlice(raw[i]), want)
			} else {
				wantStatus(t, leases[i].Release(), want)
			}
		}
		if s := p.Stats(); s.RetainedCapacity != 10*1024 || s.IdleStorageCount != 10 {
			t.Error(s.RetainedCapacity, s.IdleStorageCount)
		}
	}
}

// A seat that is leased has a reservation, which must not make another release fail:
// the budget is about what is idle.
func TestBounded_LeasedSeatDoesNotFillBudget(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.MaxRetainedCapacity = 1024 })
	a := p.Acquire(1024)
	a.Release()
	a = p.Acquire(1024)
	b := p.Acquire(1024)
	wantStatus(t, b.Release(), pool.Retained)
	wantStatus(t, a.Release(), pool.DroppedFull)

	// The same with an open slot, and with the credit of a shard.
	p.Clear()
	s := p.AcquireSlice(1024)
	wantStatus(t, p.ReleaseSlice(s), pool.Retained)
	s = p.AcquireSlice(1024)
	c := p.Acquire(1024)
	wantStatus(t, c.Release(), pool.Retained)
	wantStatus(t, p.ReleaseSlice(s), pool.DroppedFull)
}

func TestBounded_NestedUseIsLIFO(t *testing.T) {
	p := newPool(t, pool.Bounded, nil)
	for round := 0; round < 3; round++ {
		outer, inner := p.Acquire(100), p.Acquire(100)
		first := base(outer.Bytes())
		inner.Release()
		outer.Release()
		again := p.Acquire(100)
		if round > 0 && base(again.Bytes()) != first {
			t.Error("the storage released last was not acquired first")
		}
		again.Release()
	}
}

func TestBounded_InventoryReconciles(t *testing.T) {
	p := newPool(t, pool.Bounded, nil)
	for size := 1; size <= 1<<20; size *= 3 {
		a, b := p.Acquire(size), p.AcquireSlice(size)
		a.Release()
		p.ReleaseSlice(b)
	}
	s := p.Stats()
	if !s.RetainedAvailable || len(s.ClassInventory) != 15 || s.CountersAvailable || s.Classes != nil {
		t.Fatalf("%+v", s)
	}
	count, sum := 0, 0
	for i, row := range s.ClassInventory {
		if row.Capacity != 64<<i || row.RetainedCapacity != row.Capacity*row.IdleStorageCount {
			t.Errorf("%+v", row)
		}
		count += row.IdleStorageCount
		sum += row.RetainedCapacity
	}
	if count != 2*10 || // two of each of ten classes
		count != s.IdleStorageCount || sum != s.RetainedCapacity {
		t.Errorf("%d storages of %d bytes, total says %d of %d", count, sum, s.IdleStorageCount, s.RetainedCapacity)
	}
}

func TestFast_NoInventory(t *testing.T) {
	p := newPool(t, pool.Fast, nil)
	l := p.Acquire(1)
	l.Release()
	if s := p.Stats(); s.RetainedAvailable || s.ClassInventory != nil || s.RetainedCapacity != 0 {
		t.Errorf("%+v", s)
	}
}

func TestZeroOnRelease_ClearsFullCapacity(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) {
			c.ZeroOnRelease, c.StatsEnabled = true, true
			c.MaxRetainedCapacity = 1 << 20
		})
		for _, size := range []int{100, 2 << 20} { // retained, dropped
			l := p.Acquire(size)
			whole := l.Bytes()[:l.Cap()]
			fill(whole, 0xFF)
			l.Release()
			if !all(whole, 0) {
				t.Error("a lease was not cleared")
			}
			b := p.AcquireSlice(size)
			whole = b[:cap(b)]
			fill(whole, 0xFF)
			p.ReleaseSlice(b[:1])
			if !all(whole, 0) {
				t.Error("a slice was not cleared")
			}
		}
		stale := p.Acquire(100)
		whole := stale.Bytes()
		fill(whole, 0xFF)
		p.Clear()
		stale.Release()
		if !all(whole, 0) {
			t.Error("a stale lease was not cleared")
		}
		if got := p.Stats().ZeroedBytes; got != 3*128+2*(2<<20) {
			t.Error("zeroed bytes:", got)
		}
	})
}

func TestZeroOnRelease_RejectedIsNotTouched(t *testing.T) {
	if pool.Invariants {
		t.Skip("the test writes to released storage, which the tag invariants finds")
	}
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.ZeroOnRelease, c.ValidationEnabled = true, true })
		foreign := bytes.Repeat([]byte{1}, 128)
		wantStatus(t, p.ReleaseSlice(foreign), pool.RejectedForeign)
		if !all(foreign, 1) {
			t.Error("a foreign slice was modified")
		}
		b := p.AcquireSlice(128)
		p.ReleaseSlice(b)
		fill(b, 2) // wrong, but shows whether the duplicate writes
		wantStatus(t, p.ReleaseSlice(b), pool.RejectedDuplicate)
		if !all(b, 2) {
			t.Error("a duplicate was modified")
		}
		l := p.Acquire(128)
		l.Release()
		next := p.Acquire(128)
		fill(next.Bytes(), 3)
		wantStatus(t, l.Release(), pool.RejectedDuplicate)
		if !all(next.Bytes(), 3) {
			t.Error("a duplicate release of a lease modified the next owner's bytes")
		}
	})
}

func TestZeroOnRelease_BeforeDiagnosticFill(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.ZeroOnRelease, c.DiagnosticFill = true, true })
	b := p.AcquireSlice(128)
	fill(b, 1)
	p.ReleaseSlice(b)
	if !all(b, 0) {
		t.Error("not zero")
	}
	p.AcquireSlice(128) // and the verification expects zeros
}

func TestValidation_Statuses(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		on := func(c *pool.Config) { c.ValidationEnabled = true }
		p, other := newPool(t, mode, on), newPool(t, mode, on)
		wantStatus(t, p.ReleaseSlice(nil), pool.IgnoredNil)
		wantStatus(t, p.ReleaseSlice([]byte{}), pool.RejectedForeign)
		wantStatus(t, p.ReleaseSlice(make([]byte, 128)), pool.RejectedForeign)
		wantStatus(t, p.ReleaseSlice(make([]byte, 100)), pool.RejectedForeign) // ownership before shape
		b := p.AcquireSlice(100)
		wantStatus(t, other.ReleaseSlice(b), pool.RejectedForeign)
		wantStatus(t, p.ReleaseSlice(b[1:]), pool.RejectedForeign)
		wantStatus(t, p.ReleaseSlice(b), pool.Retained)
		wantStatus(t, p.ReleaseSlice(b), pool.RejectedDuplicate)
		b = p.AcquireSlice(100)
		wantStatus(t, p.ReleaseSlice(b[:10:64]), pool.DroppedInvalid) // the capacity of another class
		wantStatus(t, p.ReleaseSlice(b), pool.RejectedDuplicate)
		big := p.AcquireSlice(2 << 20)
		wantStatus(t, p.ReleaseSlice(big), pool.DroppedOversize)
		wantStatus(t, p.ReleaseSlice(big), pool.RejectedDuplicate)
		runtime.KeepAlive(big)
	})
}

func TestValidation_ReplacedByAppend(t *testing.T) {
	p := newPool(t, pool.Fast, func(c *pool.Config) { c.ValidationEnabled = true })
	b := p.AcquireSlice(64)
	replaced := append(b, make([]byte, 64)...)
	wantStatus(t, p.ReleaseSlice(replaced), pool.RejectedForeign)
	wantStatus(t, p.ReleaseSlice(b), pool.Retained)
}

func TestValidation_TombstonesAreFIFO(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.ValidationEnabled, c.MaxValidationTombstones = true, 2 })
		var s [4][]byte
		for i := range s {
			s[i] = p.AcquireSlice(2 << 20) // dropped, so that no address is acquired again
		}
		p.ReleaseSlice(s[0])
		p.ReleaseSlice(s[1])
		wantStatus(t, p.ReleaseSlice(s[0]), pool.RejectedDuplicate) // does not refresh it
		p.ReleaseSlice(s[2])
		if got := p.Stats(); got.ValidationTombstones != 2 || got.ActiveRawSlices != 1 || got.MaxValidationTombstones != 2 || !got.ValidationAvailable {
			t.Errorf("%+v", got)
		}
		wantStatus(t, p.ReleaseSlice(s[0]), pool.RejectedForeign)
		wantStatus(t, p.ReleaseSlice(s[1]), pool.RejectedDuplicate)
		wantStatus(t, p.ReleaseSlice(s[2]), pool.RejectedDuplicate)
		wantStatus(t, p.ReleaseSlice(s[3]), pool.DroppedOversize)
		runtime.KeepAlive(&s)
	})
}

// A re-acquired address leaves the history, which then has room for another.
func TestValidation_ReacquiredLeavesHistory(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.ValidationEnabled, c.MaxValidationTombstones = true, 2 })
	a, b, c := p.AcquireSlice(2<<20), p.AcquireSlice(64), p.AcquireSlice(2<<20)
	p.ReleaseSlice(a)
	p.ReleaseSlice(b)
	if base(p.AcquireSlice(64)) != base(b) {
		t.Fatal("storage was not used again")
	}
	p.ReleaseSlice(c)
	wantStatus(t, p.ReleaseSlice(a), pool.RejectedDuplicate)
	wantStatus(t, p.ReleaseSlice(c), pool.RejectedDuplicate)
	runtime.KeepAlive([2][]byte{a, c})
}

func TestValidation_ActiveOwnersAreNotLimited(t *testing.T) {
	p := newPool(t, pool.Fast, func(c *pool.Config) { c.ValidationEnabled, c.MaxValidationTombstones = true, 1 })
	s := make([][]byte, 1000)
	for i := range s {
		s[i] = p.AcquireSlice(64)
	}
	if got := p.Stats().ActiveRawSlices; got != len(s) {
		t.Error(got)
	}
	for i := range s {
		wantStatus(t, p.ReleaseSlice(s[i]), pool.Retained)
	}
}

func TestValidation_ClearKeepsActive(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.ValidationEnabled = true })
		a, b := p.AcquireSlice(64), p.AcquireSlice(64)
		p.ReleaseSlice(a)
		p.Clear()
		if s := p.Stats(); s.ActiveRawSlices != 1 || s.ValidationTombstones != 0 {
			t.Errorf("%+v", s)
		}
		wantStatus(t, p.ReleaseSlice(a), pool.RejectedForeign)
		wantStatus(t, p.ReleaseSlice(b), pool.Retained)
		wantStatus(t, p.ReleaseSlice(b), pool.RejectedDuplicate)
		runtime.KeepAlive(a)
	})
}

func TestValidation_DefaultLimit(t *testing.T) {
	p := newPool(t, pool.Fast, func(c *pool.Config) { c.ValidationEnabled = true })
	if got := p.Stats().MaxValidationTombstones; got != 16384 {
		t.Error(got)
	}
	if s := newPool(t, pool.Fast, nil).Stats(); s.ValidationAvailable || s.MaxValidationTombstones != 0 {
		t.Error("validation figures without validation")
	}
}

func TestStats_Counters(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) {
			c.StatsEnabled, c.ValidationEnabled = true, true
			c.MaxPooledCapacity, c.MaxRetainedCapacity = 2<<20, 128
		})
		unpooled, oversize, stale := p.Acquire(1<<20+1), p.Acquire(2<<20+1), p.Acquire(100)
		p.Clear()
		unpooled2 := p.AcquireSlice(1<<20 + 1)
		stale.Release()
		unpooled.Release()
		oversize.Release()
		p.ReleaseSlice(unpooled2)
		p.ReleaseSlice(unpooled2)
		p.ReleaseSlice(make([]byte, 128))
		p.ReleaseSlice(nil)
		a := p.Acquire(100)
		b := p.Acquire(100)
		a.Release()
		a.Release()
		b.Release()
		c := p.AcquireSlice(100)
		p.ReleaseSlice(c[:10:64])
		s := p.Stats()
		want := pool.Counters{
			Acquires: 7, Misses: 6, Hits: 1, Retained: 2, DroppedInvalid: 1, DroppedStale: 3, DroppedUnpooled: 1,
			RejectedForeign: 1, RejectedDuplicate: 2, IgnoredNil: 1,
		}
		if mode == pool.Bounded {
			want.Retained, want.DroppedFull = 1, 1
		}
		if s.Counters != want || s.ValidationRejected != 2 || !s.CountersAvailable {
			t.Errorf("%+v, rejected %d\nwant %+v", s.Counters, s.ValidationRejected, want)
		}
		if row := s.Classes[1]; row.Capacity != 128 || row.Acquires != 4 || row.Hits != 1 || row.Misses != 3 {
			t.Errorf("%+v", row)
		}
		runtime.KeepAlive(unpooled2)
	})
}

func TestStats_OversizeCounted(t *testing.T) {
	p := newPool(t, pool.Fast, func(c *pool.Config) { c.StatsEnabled = true })
	l := p.Acquire(2 << 20)
	l.Release()
	if got := p.Stats().DroppedOversize; got != 1 {
		t.Error(got)
	}
}

// A lease may take over storage of a raw slice and the other way round: there is
// one budget, and idle storage of the wrong kind is not wasted.
func TestBounded_KindsShareStorage(t *testing.T) {
	p := newPool(t, pool.Bounded, nil)
	b := p.AcquireSlice(100)
	p.ReleaseSlice(b)
	l := p.Acquire(100)
	if base(l.Bytes()) != base(b) {
		t.Error("a lease did not get idle storage of a raw slice")
	}
	l.Release()
	c := p.AcquireSlice(100)
	if base(c) != base(b) {
		t.Error("a raw slice did not get idle storage of a lease")
	}
	mustPanic(t, func() { l.Bytes() })
	wantStatus(t, l.Release(), pool.RejectedDuplicate)
	p.ReleaseSlice(c)
	if s := p.Stats(); s.IdleStorageCount != 1 {
		t.Error(s.IdleStorageCount)
	}
}

func TestPowerOfTwo_Errors(t *testing.T) {
	classes, err := pool.PowerOfTwo(256, 1<<20)
	if err != nil || len(classes) != 13 || classes[0] != 256 || classes[12] != 1<<20 {
		t.Error(classes, err)
	}
	if one, err := pool.PowerOfTwo(64, 64); err != nil || len(one) != 1 {
		t.Error(one, err)
	}
	for _, c := range [][2]int{{0, 64}, {-1, 64}, {63, 64}, {64, 65}, {128, 64}, {64, 0}} {
		if _, err := pool.PowerOfTwo(c[0], c[1]); !errors.Is(err, pool.ErrInvalidConfig) {
			t.Errorf("PowerOfTwo(%d, %d): %v", c[0], c[1], err)
		}
	}
}

func TestGeometric_Steps(t *testing.T) {
	got, err := pool.Geometric(64, 256, 4)
	if want := "[64 80 96 112 128 160 192 224 256]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	if got, err := pool.Geometric(100, 1000, 1); err != nil || fmt.Sprint(got) != "[100 200 400 800 1000]" {
		t.Error(got, err)
	}
	for _, c := range [][3]int{{0, 64, 1}, {64, 32, 1}, {64, 128, 0}, {1, 1 << 30, 100}} {
		if _, err := pool.Geometric(c[0], c[1], c[2]); !errors.Is(err, pool.ErrInvalidConfig) {
			t.Errorf("Geometric%v: %v", c, err)
		}
	}
}

// Every test that docs/contract.md names must exist.
func TestContract_NamedTestsExist(t *testing.T) {
	contract, err := os.ReadFile("docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := ""
	for _, dir := range []string{".", "bytebufferpooltest", "cmd/bufpooltune"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), "_test.go") {
				text, err := os.ReadFile(dir + "/" + e.Name())
				if err != nil {
					t.Fatal(err)
				}
				sources += string(text)
			}
		}
	}
	names := regexp.MustCompile(`\b(Test|Fuzz|Example|Benchmark)[A-Za-z0-9_]*`).FindAllString(string(contract), -1)
	if len(names) < 40 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if !strings.Contains(sources, "func "+name+"(") {
			t.Errorf("docs/contract.md names %s, which does not exist", name)
		}
	}
}
