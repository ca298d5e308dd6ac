package goache_test

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotset-go/hotset/goache"
)

// A test for each sentence of the reference on behaviour, for New and NewSingleCore
// alike.

func bothCaches(t *testing.T, test func(t *testing.T, make func(...goache.Option) goache.Cacher[string, int])) {
	t.Run("New", func(t *testing.T) {
		test(t, func(o ...goache.Option) goache.Cacher[string, int] { return goache.New[string, int](o...) })
	})
	t.Run("NewSingleCore", func(t *testing.T) {
		test(t, func(o ...goache.Option) goache.Cacher[string, int] { return goache.NewSingleCore[string, int](o...) })
	})
}

type maker = func(...goache.Option) goache.Cacher[string, int]

func wantValue[V comparable](t *testing.T, c interface{ Get(string) (V, bool) }, key string, want V, found bool) {
	t.Helper()
	if v, ok := c.Get(key); v != want || ok != found {
		t.Errorf("Get(%q) = %v, %v, want %v, %v", key, v, ok, want, found)
	}
}

func TestCache_SetAddsOrOverwrites(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		c := make()
		wantValue(t, c, "a", 0, false)
		c.Set("a", 1)
		wantValue(t, c, "a", 1, true)
		c.Set("a", 2)
		wantValue(t, c, "a", 2, true)
		if c.Len() != 1 {
			t.Errorf("Len() = %d", c.Len())
		}
	})
}

func TestCache_DeleteAndDeleteManySkipMissingKeys(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		c := make()
		for i := range 10 {
			c.Set(strconv.Itoa(i), i)
		}
		c.Delete("missing")
		c.Delete("3")
		c.DeleteMany([]string{"4", "missing", "5", "4"})
		c.DeleteMany(nil)
		if c.Len() != 7 {
			t.Errorf("Len() = %d, want 7", c.Len())
		}
		wantValue(t, c, "3", 0, false)
		wantValue(t, c, "4", 0, false)
		wantValue(t, c, "6", 6, true)
	})
}

func TestCache_SetMany(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		synctest.Test(t, func(t *testing.T) {
			c := make()
			c.SetMany(nil)
			c.SetMany([]goache.Entry[string, int]{
				{Key: "permanent", Value: 1},
				{Key: "short", Value: 2, TTL: time.Minute},
				{Key: "negative", Value: 3, TTL: -1},
				{Key: "twice", Value: 4, TTL: time.Minute},
				{Key: "twice", Value: 5}, // the later one wins, with its TTL
			})
			time.Sleep(time.Minute)
			wantValue(t, c, "permanent", 1, true)
			wantValue(t, c, "short", 0, false)
			wantValue(t, c, "negative", 3, true)
			wantValue(t, c, "twice", 5, true)
		})
	})
}

func TestCache_SetManyReadsTheClockAtMostOnce(t *testing.T) {
	reads := 0
	clock := goache.WithClock(func() time.Time { reads++; return time.Unix(1, 0) })
	bothCaches(t, func(t *testing.T, make maker) {
		c := make(clock)
		reads = 0
		c.SetMany([]goache.Entry[string, int]{{Key: "a"}, {Key: "b", TTL: -1}})
		c.Set("c", 1)
		c.Get("a")
		c.Get("missing")
		if reads != 0 {
			t.Errorf("%d readings of the clock without a TTL", reads)
		}
		c.SetMany([]goache.Entry[string, int]{{Key: "a", TTL: 1}, {Key: "b", TTL: 2}, {Key: "c"}})
		if reads != 1 {
			t.Errorf("%d readings of the clock in one SetMany", reads)
		}
	})
}

func TestCache_ClearKeepsTheCacheUsable(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		for _, opts := range [][]goache.Option{nil, {goache.WithMaxSize(100)}} {
			c := make(opts...)
			for round := range 3 {
				for i := range 1000 {
					c.Set(strconv.Itoa(i), round)
				}
				c.Clear()
				if c.Len() != 0 {
					t.Errorf("Len() = %d after Clear", c.Len())
				}
				wantValue(t, c, "999", 0, false)
			}
			c.Set("x", 1)
			wantValue(t, c, "x", 1, true)
		}
	})
}

// TestCache_ClearRetainsStorage: filling the cache again does not allocate.
func TestCache_ClearRetainsStorage(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	bothCaches(t, func(t *testing.T, make maker) {
		c := make()
		fill := func() {
			for i, k := range names {
				c.Set(k, i)
			}
			c.Clear()
		}
		fill()
		if n := testing.AllocsPerRun(5, fill); n > 0 {
			t.Errorf("%v allocations to fill a cleared cache", n)
		}
	})
}

func TestCache_ExpiryIsLazy(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		synctest.Test(t, func(t *testing.T) {
			c := make()
			c.Set("keep", 1)
			c.SetWithTTL("expire", 2, time.Second)
			c.SetWithTTL("expire too", 3, time.Second)
			time.Sleep(time.Second - 1)
			wantValue(t, c, "expire", 2, true)
			time.Sleep(time.Nanosecond) // the deadline itself is too late
			wantValue(t, c, "expire", 0, false)
			if c.Len() != 3 {
				t.Errorf("Len() = %d: Get must not remove", c.Len())
			}
			c.Set("expire too", 4) // a write over it reclaims it
			if n := c.Purge(); n != 1 {
				t.Errorf("Purge() = %d, want 1", n)
			}
			if c.Len() != 2 {
				t.Errorf("Len() = %d after Purge", c.Len())
			}
			wantValue(t, c, "expire too", 4, true)
		})
	})
}

// TestCache_TTLArithmetic is K03.
func TestCache_TTLArithmetic(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		synctest.Test(t, func(t *testing.T) {
			c := make()
			for i, ttl := range []time.Duration{0, -1, math.MinInt64, math.MaxInt64, 290 * 365 * 24 * time.Hour} {
				c.SetWithTTL("k", i, ttl)
				time.Sleep(100 * 365 * 24 * time.Hour / 5)
				wantValue(t, c, "k", i, true)
			}
			c.SetWithTTL("k", 7, 1)
			wantValue(t, c, "k", 7, true) // no time passes here
			time.Sleep(time.Nanosecond)
			wantValue(t, c, "k", 0, false)
			for phase := range 1000 {
				time.Sleep(time.Duration(phase) * 777_777)
				c.SetWithTTL("k", phase, time.Second)
				time.Sleep(950 * time.Millisecond)
				wantValue(t, c, "k", phase, true)
				time.Sleep(100 * time.Millisecond)
				wantValue(t, c, "k", 0, false)
			}
		})
	})
}

// TestCache_ClockSteps: a clock that is set back or crosses zero, as a user's may.
func TestCache_ClockSteps(t *testing.T) {
	now := time.Unix(100, 0)
	c := goache.New[string, int](goache.WithClock(func() time.Time { return now }))
	c.SetWithTTL("a", 1, time.Second)
	now = time.Unix(99, 0)
	c.SetWithTTL("at zero", 1, time.Second) // its deadline is where the clock began
	wantValue(t, c, "at zero", 1, true)
	now = time.Unix(100, 1)
	wantValue(t, c, "at zero", 0, false)
	wantValue(t, c, "a", 1, true)
	now = time.Unix(-1<<40, 0)
	c.SetWithTTL("b", 1, math.MaxInt64)
	if _, left, ok := c.GetWithTTL("b"); !ok || left <= 0 {
		t.Errorf("%v left, %v", left, ok)
	}
}

// TestCache_OverwriteEndsTTL is the first part of K07.
func TestCache_OverwriteEndsTTL(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		synctest.Test(t, func(t *testing.T) {
			c := make()
			c.SetWithTTL("k", 1, 10*time.Millisecond)
			c.Set("k", 2)
			time.Sleep(30 * time.Millisecond)
			wantValue(t, c, "k", 2, true)
		})
	})
}

// TestCache_PurgeGivesMemoryBack is the second part of K07: what purged entries
// pointed to is collected; their own memory is used again.
func TestCache_PurgeGivesMemoryBack(t *testing.T) {
	const n, size = 2000, 4 << 10
	bytes := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	now := time.Unix(0, 0)
	for name, remove := range map[string]func(c *goache.Cache[string, []byte]){
		"Purge": func(c *goache.Cache[string, []byte]) {
			now = now.Add(time.Hour)
			if got := c.Purge(); got != n {
				t.Errorf("Purge() = %d, want %d", got, n)
			}
		},
		"Clear": func(c *goache.Cache[string, []byte]) { c.Clear() },
		"Delete": func(c *goache.Cache[string, []byte]) {
			for k := range c.Keys() {
				c.Delete(k)
			}
		},
		"DeleteFunc": func(c *goache.Cache[string, []byte]) {
			c.DeleteFunc(func(string, []byte) bool { return true })
		},
	} {
		before := bytes()
		c := goache.New[string, []byte](goache.WithClock(func() time.Time { return now }))
		for i := range n {
			c.SetWithTTL(strconv.Itoa(i), make([]byte, size), time.Minute)
		}
		full := bytes()
		remove(c)
		after := bytes()
		if c.Len() != 0 {
			t.Errorf("%s: Len() = %d", name, c.Len())
		}
		if full-before < n*size || after > before+n*size/10 {
			t.Errorf("%s: heap %d, full %d, after %d", name, before, full, after)
		}
		runtime.KeepAlive(c)
	}
}

// TestCache_ExpiredEntriesMakeRoom is the third part of K07: a full cache gives
// entries up that have expired before live ones, when it comes across them. All are
// used alike, and the live ones are older, so without that they would leave first.
func TestCache_ExpiredEntriesMakeRoom(t *testing.T) {
	for _, policy := range []goache.Policy{goache.WindowTinyLFU, goache.Clock} {
		now := time.Unix(0, 0)
		c := goache.NewSingleCore[int, int](goache.WithMaxSize(100), goache.WithPolicy(policy),
			goache.WithClock(func() time.Time { return now }))
		for i := range 50 {
			c.Set(i, i)
		}
		for i := range 50 {
			c.SetWithTTL(1000+i, i, time.Second)
		}
		for range 5 {
			for i := range 50 {
				c.Get(i)
				c.Get(1000 + i)
			}
		}
		now = now.Add(time.Minute)
		for i := range 40 {
			c.Set(2000+i, i)
		}
		lost := 0
		for i := range 50 {
			if _, ok := c.Get(i); !ok {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%v: %d live keys were evicted while expired ones were there", policy, lost)
		}
	}
}

func TestCache_StartsNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	bothCaches(t, func(t *testing.T, make maker) {
		c := make(goache.WithMaxSize(10), goache.WithStats(), goache.WithSlidingTTL(time.Second), goache.WithTTLJitter(0.1))
		for i := range 100 {
			c.SetWithTTL(strconv.Itoa(i), i, time.Second)
		}
		if n := runtime.NumGoroutine(); n > before+2 { // those of the test itself
			t.Errorf("%d goroutines, %d before", n, before)
		}
	})
}

// TestCache_NoLeftovers is K05.
func TestCache_NoLeftovers(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	rounds := 10_000
	if testing.Short() {
		rounds = 500
	}
	for i := range rounds {
		var c *goache.Cache[string, []byte]
		switch i % 3 {
		case 0:
			c = goache.New[string, []byte]()
		case 1:
			c = goache.New[string, []byte](goache.WithMaxSize(100))
		default:
			c = goache.New[string, []byte](goache.WithOnRemove(func(string, []byte, goache.Cause) { _ = c.Len() }), goache.WithStats())
		}
		for j := range 20 {
			c.SetWithTTL(strconv.Itoa(j), make([]byte, 100), time.Minute)
		}
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("heap %d before, %d after", before, after)
	}
	if n := runtime.NumGoroutine(); n > goroutines { // those of earlier tests may end meanwhile
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
}

func TestWithShardCount(t *testing.T) {
	for _, n := range []int{math.MinInt, -1, 0, 1, 2, 3, 100, 257, math.MaxInt} {
		c := goache.New[int, int](goache.WithShardCount(n))
		c.Set(1, 1)
		if c.Len() != 1 {
			t.Errorf("%d shards: Len() = %d", n, c.Len())
		}
	}
	// Meaningless, not an error.
	c := goache.NewSingleCore[int, int](goache.WithShardCount(100))
	c.Set(1, 1)
}

// TestWithShardCount_RoundsUp sees the number of shards in what Resize returns at
// least.
func TestWithShardCount_RoundsUp(t *testing.T) {
	for _, tt := range []struct{ count, maxSize, want int }{
		{100, 1 << 20, 128},
		{128, 1 << 20, 128},
		{1, 1000, 1},
		{256, 100, 64}, // lowered to the largest power of two that is not above the bound
		{256, 1, 1},
		{256, 255, 128},
	} {
		c := goache.New[int, int](goache.WithShardCount(tt.count), goache.WithMaxSize(tt.maxSize))
		if got := c.Resize(1); got != tt.want {
			t.Errorf("WithShardCount(%d), WithMaxSize(%d): %d shards, want %d", tt.count, tt.maxSize, got, tt.want)
		}
	}
	if got := goache.New[int, int](goache.WithMaxSize(1000)).Resize(1); got > 15 {
		t.Errorf("1,000 entries over %d shards: fewer than 64 each", got)
	}
}

func TestWithCapacity(t *testing.T) {
	const n = 10_000
	bothCaches(t, func(t *testing.T, make maker) {
		for _, n := range []int{math.MinInt, -1, 0} {
			c := make(goache.WithCapacity(n))
			c.Set("a", 1)
			wantValue(t, c, "a", 1, true)
		}
		// A huge hint is a hint, and a bound is a bound.
		c := make(goache.WithCapacity(math.MaxInt), goache.WithMaxSize(10))
		c.Set("a", 1)
		wantValue(t, c, "a", 1, true)
	})
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	allocs := func(opts ...goache.Option) float64 {
		return testing.AllocsPerRun(3, func() {
			c := goache.NewSingleCore[string, int](opts...)
			for i, k := range names {
				c.Set(k, i)
			}
		})
	}
	if with, without := allocs(goache.WithCapacity(n)), allocs(); with > without-10 {
		t.Errorf("%v allocations with the hint, %v without", with, without)
	}
}

func TestWithMaxSize_IsAHardCeiling(t *testing.T) {
	bothCaches(t, func(t *testing.T, make maker) {
		for _, n := range []int{math.MinInt, -1, 0} {
			c := make(goache.WithMaxSize(n))
			for i := range 5000 {
				c.Set(strconv.Itoa(i), i)
			}
			if c.Len() != 5000 {
				t.Errorf("WithMaxSize(%d): Len() = %d", n, c.Len())
			}
		}
		for n := 1; n < 3000; n = n*3/2 + 1 {
			c := make(goache.WithMaxSize(n))
			for i := range 3 * n {
				c.Set(strconv.Itoa(i), i)
				wantValue(t, c, strconv.Itoa(i), i, true) // every Set lands
				if c.Len() > n {
					t.Fatalf("WithMaxSize(%d): Len() = %d", n, c.Len())
				}
			}
			if c.Len() < n/2 {
				t.Errorf("WithMaxSize(%d): only %d entries after %d keys", n, c.Len(), 3*n)
			}
		}
		// The parts of the shards add up to n exactly: enough keys fill it.
		c := make(goache.WithMaxSize(1003))
		for i := range 30_000 {
			c.Set(strconv.Itoa(i), i)
		}
		if c.Len() != 1003 {
			t.Errorf("Len() = %d, want 1003", c.Len())
		}
	})
}

// TestCache_Allocations holds what the documentation says about allocations.
func TestCache_Allocations(t *testing.T) {
	names := make([]string, 1000)
	entries := make([]goache.Entry[string, string], len(names))
	for i := range names {
		names[i] = strconv.Itoa(i)
		entries[i] = goache.Entry[string, string]{Key: names[i], Value: names[i], TTL: time.Hour}
	}
	c := goache.New[string, string]()
	c.SetMany(entries)
	found := c.GetMany(nil, names)
	bounded := goache.New[string, string](goache.WithMaxSize(100))
	i := 0
	next := func() string { i++; return names[i%len(names)] }
	for range 10 * len(names) {
		bounded.Set(next(), "")
	}
	for name, f := range map[string]func(){
		"Get":        func() { c.Get(next()) },
		"Peek":       func() { c.Peek(next()) },
		"GetWithTTL": func() { c.GetWithTTL(next()) },
		"Set":        func() { c.Set(next(), "another") },
		"SetWithTTL": func() { c.SetWithTTL(next(), "another", time.Hour) },
		"SetMany":    func() { c.SetMany(entries) },
		"GetMany":    func() { found = c.GetMany(found[:0], names) },
		"churn":      func() { k := next(); c.Delete(k); c.Set(k, k) },
		"DeleteMany": func() { c.DeleteMany(names[:10]); c.SetMany(entries[:10]) },
		"bounded":    func() { bounded.Set(next(), "x") },
		"Purge":      func() { c.Purge() },
		"Len":        func() { c.Len() },
		"All": func() {
			for range c.All() {
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n > 1 || n > 0 && name != "All" { // All: the iterator itself
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestCache_UnhashableKey: the panic reaches the caller, and no lock stays held.
func TestCache_UnhashableKey(t *testing.T) {
	type iface struct{ v any }
	c := goache.New[iface, int](goache.WithShardCount(1))
	c.Set(iface{1}, 1)
	bad := iface{[]int{1}}
	for name, f := range map[string]func(){
		"Get":            func() { c.Get(bad) },
		"Set":            func() { c.Set(bad, 1) },
		"Delete":         func() { c.Delete(bad) },
		"SetMany":        func() { c.SetMany([]goache.Entry[iface, int]{{Key: iface{2}}, {Key: bad}}) },
		"DeleteMany":     func() { c.DeleteMany([]iface{{1}, bad}) },
		"Compute":        func() { c.Compute(bad, nil) },
		"GetOrLoad":      func() { _, _ = c.GetOrLoad(t.Context(), bad, nil) },
		"GetAndDelete":   func() { c.GetAndDelete(bad) },
		"SetIfAbsent":    func() { c.SetIfAbsent(bad, 1) },
		"CompareAndSwap": func() { goache.CompareAndSwap(c, bad, 1, 2) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
		c.Set(iface{"after"}, 1)
		if v, ok := c.Get(iface{1}); v != 1 || !ok {
			t.Errorf("%s: the cache changed", name)
		}
	}
}

func TestCache_NaNKeys(t *testing.T) {
	for _, opts := range [][]goache.Option{nil, {goache.WithMaxSize(10)}} {
		c := goache.New[float64, int](opts...)
		for i := range 20 {
			c.Set(math.NaN(), i)
		}
		if _, ok := c.Get(math.NaN()); ok {
			t.Error("NaN is found")
		}
		c.Delete(math.NaN())
		want := 20
		if opts != nil {
			want = 10
		}
		if c.Len() != want {
			t.Errorf("Len() = %d, want %d", c.Len(), want)
		}
		seen := 0
		for k := range c.Keys() {
			if k == k {
				t.Errorf("key %v", k)
			}
			seen++
		}
		if seen != want {
			t.Errorf("%d keys, want %d", seen, want)
		}
		c.Clear()
		if c.Len() != 0 {
			t.Errorf("Len() = %d after Clear", c.Len())
		}
	}
	// Signed zeros are one key.
	c := goache.New[float64, int]()
	c.Set(0, 1)
	if _, ok := c.Get(math.Copysign(0, -1)); !ok {
		t.Error("-0 is not 0")
	}
}

func TestCache_Iteration(t *testing.T) {
	c := goache.New[string, int]()
	want := map[string]int{}
	for i := range 500 {
		c.Set(strconv.Itoa(i), i)
		want[strconv.Itoa(i)] = i
	}
	for range 2 { // an iterator can be used again
		seen := map[string]int{}
		for k, v := range c.All() {
			if _, ok := seen[k]; ok {
				t.Errorf("%s comes twice", k)
			}
			seen[k] = v
			c.Set(k, v) // the body may call the cache
		}
		if len(seen) != len(want) {
			t.Errorf("%d entries, want %d", len(seen), len(want))
		}
	}
	n := 0
	for range c.Keys() {
		if n++; n == 10 {
			break
		}
	}
	if n != 10 {
		t.Errorf("%d keys before the break", n)
	}
	keys := slices.Sorted(c.Keys())
	if len(keys) != 500 || keys[0] != "0" {
		t.Errorf("%d keys from %q", len(keys), keys[0])
	}
	func() {
		defer func() { _ = recover() }()
		for range c.All() {
			panic("in the body")
		}
	}()
	c.Set("still", 1)
	wantValue(t, c, "still", 1, true)
}

// TestCache_ConcurrentUseFromTheStart: shards come into being by whoever is first.
func TestCache_ConcurrentUseFromTheStart(t *testing.T) {
	for range 50 {
		c := goache.New[int, int]()
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 50 {
					c.Set(i, i)
					if v, ok := c.Get(i); !ok || v != i {
						t.Errorf("goroutine %d: Get(%d) = %d, %v", g, i, v, ok)
					}
				}
			})
		}
		wg.Wait()
		if c.Len() != 50 {
			t.Errorf("Len() = %d", c.Len())
		}
	}
}
