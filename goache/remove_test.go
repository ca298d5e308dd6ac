package goache_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotset-go/hotset/goache"
)

// TestWithOnRemove_MayCallTheCache is K09: no deadlock, and one call for each value
// that leaves.
func TestWithOnRemove_MayCallTheCache(t *testing.T) {
	for name, opts := range map[string][]goache.Option{
		"unbounded": {goache.WithShardCount(1)},
		"bounded":   {goache.WithMaxSize(16), goache.WithShardCount(1)},
		"by weight": {goache.WithMaxWeight(40), goache.WithShardCount(1), goache.WithWeigher(func(_, v int) uint32 { return uint32(v % 5) })},
	} {
		t.Run(name, func(t *testing.T) {
			var c *goache.Cache[int, int]
			var mu sync.Mutex
			removed := map[int]int{} // by value: each value is stored once
			depth := 0
			opts = append(opts, goache.WithOnRemove(func(k, v int, cause goache.Cause) {
				mu.Lock()
				removed[v]++
				deeper := depth < 3
				if deeper {
					depth++
				}
				mu.Unlock()
				if deeper {
					c.Len()
					c.Get(k)
					c.Peek(k)
					c.Delete(k + 1)
					c.Touch(k, time.Hour)
					mu.Lock()
					depth--
					mu.Unlock()
				}
			}), goache.WithStats())
			c = goache.New[int, int](opts...)
			rng := rand.New(rand.NewPCG(1, 1))
			stored := 0
			for range 3000 {
				k := rng.IntN(40)
				switch rng.IntN(8) {
				case 0:
					c.Delete(k)
				case 1:
					c.GetAndDelete(k)
				case 2:
					stored++
					c.SetWithTTL(k, stored, time.Nanosecond)
				case 3:
					if rng.IntN(50) == 0 {
						c.Clear()
					}
					c.Purge()
				case 4:
					c.DeleteFunc(func(k, v int) bool { return v%40 == 0 })
				default:
					stored++
					c.Set(k, stored)
				}
			}
			c.Clear()
			for v := 1; v <= stored; v++ {
				if removed[v] != 1 {
					t.Errorf("value %d was reported %d times", v, removed[v])
				}
			}
			s := c.Stats()
			if left := s.Replaced + s.Deleted + s.Expired + s.Evicted + s.Cleared; left != uint64(stored) || s.Sets < uint64(stored)-s.Evicted {
				t.Errorf("%d stored, %+v", stored, s)
			}
			if c.Weight() != 0 {
				t.Errorf("an empty cache weighs %d", c.Weight())
			}
		})
	}
}

func TestWithOnRemove_Causes(t *testing.T) {
	now := time.Unix(0, 0)
	var got []string
	c := goache.NewSingleCore[string, int](goache.WithMaxSize(2), goache.WithPolicy(goache.Clock),
		goache.WithClock(func() time.Time { return now }),
		goache.WithOnRemove(func(k string, v int, cause goache.Cause) { got = append(got, fmt.Sprint(k, v, cause)) }))
	expect := func(want ...string) {
		t.Helper()
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("reported %q, want %q", got, want)
		}
		got = nil
	}
	c.Set("a", 1)
	expect()
	c.Set("a", 2)
	expect("a1 Replaced")
	c.Delete("a")
	expect("a2 Deleted")
	c.Delete("a")
	expect()
	c.SetWithTTL("a", 3, 1)
	now = now.Add(1)
	c.Set("a", 4)
	expect("a3 Expired")
	c.Set("b", 5)
	c.Set("c", 6)
	expect("a4 Evicted")
	c.SetWithTTL("c", 7, 1)
	now = now.Add(1)
	expect("c6 Replaced")
	c.Delete("c")
	expect("c7 Expired")
	c.Clear()
	expect("b5 Cleared")
	c.SetWithTTL("d", 8, 1)
	now = now.Add(1)
	c.Purge()
	expect("d8 Expired")
	for cause, want := range map[fmt.Stringer]string{
		goache.Replaced: "Replaced", goache.Cleared: "Cleared", goache.Cause(99): "Cause(99)",
		goache.Clock: "Clock", goache.WindowTinyLFU: "WindowTinyLFU", goache.Policy(9): "Policy(9)",
		goache.Keep: "Keep", goache.Store: "Store", goache.Remove: "Remove", goache.Op(9): "Op(9)",
	} {
		if cause.String() != want {
			t.Errorf("%q, want %q", cause, want)
		}
	}
}

// TestWithOnRemove_Panics: the panic reaches the caller after the other calls that are
// due, and the cache goes on.
func TestWithOnRemove_Panics(t *testing.T) {
	for _, how := range []string{"panic", "Goexit"} {
		calls := 0
		c := goache.NewSingleCore[int, int](goache.WithOnRemove(func(int, int, goache.Cause) {
			calls++
			if calls == 2 {
				if how == "panic" {
					panic("callback")
				}
				runtime.Goexit()
			}
		}))
		for i := range 5 {
			c.Set(i, i)
		}
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			c.Clear()
			t.Error("Clear returned")
		}()
		if r := <-done; how == "panic" && r != "callback" {
			t.Errorf("recovered %v", r)
		}
		if calls != 5 {
			t.Errorf("%d calls for 5 values", calls)
		}
		c.Set(1, 1)
		if c.Len() != 1 {
			t.Errorf("Len() = %d", c.Len())
		}
	}
}

// TestCache_CallbackPanics: functions of the user's that run inside an operation leave
// the cache as it was, and no lock held.
func TestCache_CallbackPanics(t *testing.T) {
	bad := false
	c := goache.New[int, any](goache.WithShardCount(1), goache.WithMaxWeight(100), goache.WithWeigher(func(int, any) uint32 {
		if bad {
			panic("weigher")
		}
		return 1
	}))
	c.Set(1, "one")
	c.Set(2, []int{1}) // a value that cannot be compared
	for name, f := range map[string]func(){
		"Compute":        func() { c.Compute(1, func(any, bool) (any, goache.Op) { panic("f") }) },
		"CompareAndSwap": func() { goache.CompareAndSwap(c, 2, any([]int{1}), any(1)) },
		"Set":            func() { bad = true; c.Set(1, "two") },
		"SetMany":        func() { bad = true; c.SetMany([]goache.Entry[int, any]{{Key: 1}, {Key: 3}}) },
		"SetIfAbsent":    func() { bad = true; c.SetIfAbsent(3, 1) },
		"Compute stores": func() {
			bad = true
			c.Compute(1, func(any, bool) (any, goache.Op) { return 2, goache.Store })
		},
		"DeleteFunc": func() { c.DeleteFunc(func(int, any) bool { panic("f") }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
		bad = false
		if v, ok := c.Get(1); v != "one" || !ok || c.Len() != 2 {
			t.Errorf("%s: the cache changed: %v, %v, %d entries", name, v, ok, c.Len())
		}
	}
}

func TestOptions_WrongTypes(t *testing.T) {
	for name, tt := range map[string]struct {
		make func()
		want []string
	}{
		"weigher": {
			func() {
				goache.New[string, int](goache.WithMaxWeight(1), goache.WithWeigher(func(int, int) uint32 { return 1 }))
			},
			[]string{"WithWeigher", "func(int, int) uint32", "func(string, int) uint32"},
		},
		"OnRemove": {
			func() { goache.NewSingleCore[string, int](goache.WithOnRemove(func(string, string, goache.Cause) {})) },
			[]string{"WithOnRemove", "func(string, string, goache.Cause)", "func(string, int, goache.Cause)"},
		},
		"two bounds": {
			func() {
				goache.New[string, int](goache.WithMaxSize(1), goache.WithMaxWeight(1), goache.WithWeigher(func(string, int) uint32 { return 1 }))
			},
			[]string{"WithMaxSize", "WithMaxWeight"},
		},
		"nil weigher": {
			func() { goache.New[string, int](goache.WithMaxWeight(1), goache.WithWeigher[string, int](nil)) },
			[]string{"WithWeigher"},
		},
		"no weigher": {func() { goache.New[string, int](goache.WithMaxWeight(1)) }, []string{"WithWeigher"}},
		"refresh":    {func() { goache.New[string, int](goache.WithRefreshAfter(time.Second)) }, []string{"WithRefreshAfter(1s)", "WithLoadTTL"}},
		"two clocks": {func() { goache.New[string, int](goache.WithClock(time.Now), goache.WithCoarseClock(1)) }, []string{"WithClock", "WithCoarseClock"}},
		"nil options": {func() {
			goache.New[string, int](nil, goache.WithClock(nil), goache.WithOnRemove[string, int](nil)).Clear()
			panic("goache: fine")
		}, nil},
	} {
		func() {
			defer func() {
				r := fmt.Sprint(recover())
				if !strings.HasPrefix(r, "goache: ") {
					t.Errorf("%s: panic %q", name, r)
				}
				for _, w := range tt.want {
					if !strings.Contains(r, w) {
						t.Errorf("%s: panic %q does not name %s", name, r, w)
					}
				}
			}()
			tt.make()
		}()
	}
}

func TestWithMaxWeight(t *testing.T) {
	var gone []int
	c := goache.New[int, int](goache.WithMaxWeight(1000), goache.WithShardCount(1),
		goache.WithWeigher(func(_, v int) uint32 { return uint32(v) }),
		goache.WithOnRemove(func(k, _ int, cause goache.Cause) {
			if cause == goache.Evicted {
				gone = append(gone, k)
			}
		}))
	weight := func(want uint64) {
		t.Helper()
		if got := c.Weight(); got != want {
			t.Errorf("weight %d, want %d", got, want)
		}
	}
	c.Set(-1, 0) // pinned
	for i := range 10 {
		c.Set(i, 100)
	}
	weight(1000)
	c.Set(10, 250)
	if len(gone) != 3 {
		t.Errorf("evicted %v for a weight of 250", gone)
	}
	weight(950)
	if _, ok := c.Peek(10); !ok {
		t.Error("a Set did not land")
	}
	c.Set(10, 50) // lighter
	weight(750)
	c.Set(10, 900) // heavier: others leave
	if _, ok := c.Peek(10); !ok {
		t.Error("a heavier value evicted itself")
	}
	weight(1000)
	gone = nil
	c.Set(10, 1001) // does not fit at all
	if _, ok := c.Peek(10); ok || len(gone) != 1 {
		t.Errorf("a value beyond the bound is kept, evicted %v", gone)
	}
	c.Set(11, 5000)
	if _, ok := c.Peek(11); ok || len(gone) != 2 {
		t.Errorf("a new value beyond the bound is kept, evicted %v", gone)
	}
	weight(100)
	for i := range 1000 {
		c.Set(100+i, 1)
		if c.Weight() > 1000 {
			t.Fatalf("weight %d", c.Weight())
		}
	}
	if _, ok := c.Peek(-1); !ok {
		t.Error("a pinned entry was evicted")
	}
	if got := c.SetMaxWeight(10); got != 10 {
		t.Errorf("SetMaxWeight returned %d", got)
	}
	weight(10)
	if c.SetMaxWeight(0) != 10 || c.Resize(5) != 0 {
		t.Error("nothing to change, but")
	}
	c.Set(-1, 5) // not pinned any more
	weight(10)
	c.Set(-1, 0)
	c.Delete(-1)
	if c.Len() != int(c.Weight()) {
		t.Errorf("%d entries of weight 1 weigh %d", c.Len(), c.Weight())
	}
}

// TestWithMaxWeight_PolicyKnowsItsSize: a loop over a third more than fits hits, which
// needs a window and a sketch of the right size, also when only a weight is given.
func TestWithMaxWeight_PolicyKnowsItsSize(t *testing.T) {
	const n, loop, rounds = 3000, 4000, 30
	c := goache.NewSingleCore[int, int](goache.WithMaxWeight(n), goache.WithWeigher(func(int, int) uint32 { return 1 }))
	hits := 0
	for range rounds {
		for k := range loop {
			if _, ok := c.Get(k); ok {
				hits++
			} else {
				c.Set(k, k)
			}
		}
	}
	if ratio := float64(hits) / (rounds * loop); ratio < 0.5 {
		t.Errorf("hit ratio %.2f", ratio)
	}
}

func TestCache_Resize(t *testing.T) {
	for _, policy := range []goache.Policy{goache.WindowTinyLFU, goache.Clock} {
		c := goache.New[int, int](goache.WithMaxSize(1000), goache.WithShardCount(4), goache.WithPolicy(policy))
		fill := func(want int) {
			t.Helper()
			for i := range 10_000 {
				c.Set(i, i)
			}
			if c.Len() != want {
				t.Errorf("%v: Len() = %d, want %d", policy, c.Len(), want)
			}
		}
		fill(1000)
		if got := c.Resize(101); got != 101 || c.Len() != 101 {
			t.Errorf("%v: Resize(101) = %d, Len() = %d", policy, got, c.Len())
		}
		fill(101)
		c.Resize(3000)
		fill(3000)
		if got := c.Resize(0); got != 3000 {
			t.Errorf("%v: Resize(0) = %d", policy, got)
		}
		if got := c.Resize(1); got != 4 || c.Len() != 4 {
			t.Errorf("%v: Resize(1) = %d, Len() = %d", policy, got, c.Len())
		}
	}
	if got := goache.New[int, int]().Resize(10); got != 0 {
		t.Errorf("unbounded: Resize(10) = %d", got)
	}
}

func TestWithStats(t *testing.T) {
	c := goache.New[string, int](goache.WithStats(), goache.WithMaxSize(2), goache.WithShardCount(1))
	if r := c.Stats().HitRatio(); r != 0 {
		t.Errorf("hit ratio %v of nothing", r)
	}
	c.Set("a", 1)
	c.Get("a")
	c.Get("a")
	c.Get("b")
	c.Peek("a")
	c.Peek("b")
	c.GetMany(nil, []string{"a", "b"})
	c.GetWithTTL("a")
	s := c.Stats()
	if s.Hits != 4 || s.Misses != 2 || s.Sets != 1 || s.HitRatio() != 4.0/6 {
		t.Errorf("%+v, ratio %v", s, s.HitRatio())
	}
	c.SetMany([]goache.Entry[string, int]{{Key: "b"}, {Key: "c"}})
	if s := c.Stats(); s.Sets != 3 || s.Evicted != 1 {
		t.Errorf("%+v", s)
	}
	if s := goache.New[string, int]().Stats(); s != (goache.Stats{}) {
		t.Errorf("without WithStats: %+v", s)
	}
}

func TestWithSlidingTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int](goache.WithSlidingTTL(16 * time.Second))
		c.SetWithTTL("used", 1, 16*time.Second)
		c.SetWithTTL("peeked", 1, 16*time.Second)
		c.SetWithTTL("long", 1, time.Hour)
		c.Set("for ever", 1)
		for range 10 {
			time.Sleep(10 * time.Second)
			wantValue(t, c, "used", 1, true)
			c.Peek("peeked")
			c.GetWithTTL("peeked")
		}
		wantValue(t, c, "peeked", 0, false)
		if _, left, _ := c.GetWithTTL("used"); left != 16*time.Second {
			t.Errorf("%v left", left)
		}
		time.Sleep(500 * time.Millisecond)
		c.Get("used") // not worth a write
		if _, left, _ := c.GetWithTTL("used"); left != 15500*time.Millisecond {
			t.Errorf("%v left", left)
		}
		c.Get("long")
		if _, left, _ := c.GetWithTTL("long"); left < time.Hour-2*time.Minute {
			t.Errorf("a longer TTL was cut to %v", left)
		}
		c.Get("for ever")
		if _, left, _ := c.GetWithTTL("for ever"); left != 0 {
			t.Errorf("an entry without TTL got %v", left)
		}
		time.Sleep(16 * time.Second)
		wantValue(t, c, "used", 0, false)
	})
}

func TestWithTTLJitter(t *testing.T) {
	now := time.Unix(0, 0)
	c := goache.New[int, int](goache.WithTTLJitter(0.5), goache.WithClock(func() time.Time { return now }))
	short, long := 0, 0
	for i := range 1000 {
		c.SetWithTTL(i, i, time.Hour)
		_, left, ok := c.GetWithTTL(i)
		if !ok || left > time.Hour || left < time.Hour/2 {
			t.Fatalf("%v left", left)
		}
		if left < 40*time.Minute {
			short++
		}
		if left > 50*time.Minute {
			long++
		}
	}
	if short < 200 || long < 200 {
		t.Errorf("%d of 1,000 below 40 minutes, %d above 50", short, long)
	}
	c = goache.New[int, int](goache.WithTTLJitter(5), goache.WithClock(func() time.Time { return now }))
	for range 1000 {
		if c.SetWithTTL(1, 1, 1); c.Len() != 1 {
			t.Fatal("lost")
		}
		if _, left, ok := c.GetWithTTL(1); !ok || left != 1 {
			t.Fatalf("a TTL of 1 ns has %v left, %v", left, ok)
		}
	}
}

func TestWithCoarseClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int](goache.WithCoarseClock(time.Second))
		c.SetWithTTL("a", 1, 10*time.Second)
		time.Sleep(8900 * time.Millisecond)
		wantValue(t, c, "a", 1, true)
		time.Sleep(2200 * time.Millisecond)
		wantValue(t, c, "a", 0, false)
		c.Close()
		c.Close()
		synctest.Wait() // the goroutine has ended, or the bubble would not
		c.SetWithTTL("b", 1, time.Millisecond)
		wantValue(t, c, "b", 1, true)
		time.Sleep(time.Millisecond)
		wantValue(t, c, "b", 0, false) // an exact clock from now on
	})
	goache.New[string, int]().Close()
}

// TestWithCoarseClock_GarbageStopsIt: nobody has to call Close.
func TestWithCoarseClock_GarbageStopsIt(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		for range 10 {
			goache.New[string, int](goache.WithCoarseClock(time.Hour)).Set("a", 1)
			goache.NewSingleCore[string, int](goache.WithCoarseClock(time.Hour)).Set("a", 1)
		}
		if n := runtime.NumGoroutine(); n < before+20 {
			t.Errorf("%d goroutines, want 20 more than %d", n, before)
		}
	}()
	for range 100 {
		runtime.GC()
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
