package goache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/hotset-go/hotset/goache"
)

// The common case: no configuration.
func ExampleNew() {
	cache := goache.New[string, int]()

	cache.Set("answer", 42)

	value, ok := cache.Get("answer")
	fmt.Println(value, ok)

	_, ok = cache.Get("missing")
	fmt.Println(ok)
	// Output:
	// 42 true
	// false
}

// Any comparable type can be a key, structs too. There is no reflection and no
// allocation per key.
func ExampleNew_structKey() {
	type coord struct{ X, Y int }

	cache := goache.New[coord, string]()
	cache.Set(coord{1, 2}, "near the origin")

	value, ok := cache.Get(coord{1, 2})
	fmt.Println(value, ok)
	// Output: near the origin true
}

// WithCapacity sizes the tables when the number of entries is known before.
func ExampleNew_withCapacity() {
	cache := goache.New[int, int](goache.WithCapacity(10_000))

	for i := range 10_000 {
		cache.Set(i, i*i)
	}

	fmt.Println(cache.Len())
	// Output: 10000
}

// WithMaxSize bounds the cache: Len stops there, and each new key evicts another.
func ExampleNew_withMaxSize() {
	cache := goache.New[int, int](goache.WithMaxSize(100))

	for i := range 1_000 {
		cache.Set(i, i)
	}

	fmt.Println(cache.Len() <= 100)
	// Output: true
}

// WithShardCount replaces the default. The count is rounded up to a power of two.
func ExampleNew_withShardCount() {
	cache := goache.New[string, int](goache.WithShardCount(100)) // makes 128

	cache.Set("k", 1)
	fmt.Println(cache.Len())
	// Output: 1
}

// SetMany takes each lock at most once, however many entries there are. A zero TTL
// means no expiry.
func ExampleCache_SetMany() {
	cache := goache.New[string, string]()

	cache.SetMany([]goache.Entry[string, string]{
		{Key: "permanent", Value: "stays"},
		{Key: "temporary", Value: "goes", TTL: 10 * time.Millisecond},
	})
	fmt.Println(cache.Len())

	time.Sleep(50 * time.Millisecond)

	_, ok := cache.Get("permanent")
	fmt.Println("permanent:", ok)
	_, ok = cache.Get("temporary")
	fmt.Println("temporary:", ok)
	// Output:
	// 2
	// permanent: true
	// temporary: false
}

// An expired entry is a miss at once, and stays in memory until Purge: there is no
// goroutine that would remove it.
func ExampleCache_Purge() {
	cache := goache.New[string, int]()

	cache.Set("keep", 1)
	cache.SetWithTTL("expire", 2, 10*time.Millisecond)

	time.Sleep(50 * time.Millisecond)

	_, ok := cache.Get("expire")
	fmt.Println("readable:", ok)
	fmt.Println("stored:", cache.Len())

	fmt.Println("purged:", cache.Purge())
	fmt.Println("stored:", cache.Len())
	// Output:
	// readable: false
	// stored: 2
	// purged: 1
	// stored: 1
}

// DeleteMany skips keys that are not there.
func ExampleCache_DeleteMany() {
	cache := goache.New[string, int]()
	cache.SetMany([]goache.Entry[string, int]{
		{Key: "a", Value: 1},
		{Key: "b", Value: 2},
		{Key: "c", Value: 3},
	})

	cache.DeleteMany([]string{"a", "c", "never-existed"})

	fmt.Println(cache.Len())
	_, ok := cache.Get("b")
	fmt.Println(ok)
	// Output:
	// 1
	// true
}

// NewSingleCore is New with one shard.
func ExampleNewSingleCore() {
	cache := goache.NewSingleCore[string, int]()

	cache.Set("answer", 42)
	cache.SetWithTTL("session", 7, time.Hour)

	value, ok := cache.Get("answer")
	fmt.Println(value, ok)
	fmt.Println(cache.Len())
	// Output:
	// 42 true
	// 2
}

// A variable that can hold either kind of cache, at the price of an indirect call.
func ExampleCacher() {
	var cache goache.Cacher[string, int]

	if runtime.GOMAXPROCS(0) == 1 {
		cache = goache.NewSingleCore[string, int]()
	} else {
		cache = goache.New[string, int]()
	}

	cache.Set("answer", 42)

	value, ok := cache.Get("answer")
	fmt.Println(value, ok)
	// Output: 42 true
}

// One load a key, however many ask at the same time.
func ExampleCache_GetOrLoad() {
	cache := goache.New[string, string](goache.WithLoadTTL(time.Minute), goache.WithNegativeTTL(10*time.Second))
	load := func(_ context.Context, name string) (string, error) {
		if name == "nobody" {
			return "", goache.ErrNotFound
		}
		fmt.Println("loading", name)
		return strings.ToUpper(name), nil
	}

	for range 2 {
		user, err := cache.GetOrLoad(context.Background(), "ada", load)
		fmt.Println(user, err)
	}
	_, err := cache.GetOrLoad(context.Background(), "nobody", load)
	fmt.Println(errors.Is(err, goache.ErrNotFound))
	// Output:
	// loading ada
	// ADA <nil>
	// ADA <nil>
	// true
}

// All keys that are missing in one call of the backend.
func ExampleCache_GetOrLoadMany() {
	cache := goache.New[int, int]()
	cache.Set(1, 1)

	squares, err := cache.GetOrLoadMany(context.Background(), []int{1, 2, 3}, func(_ context.Context, keys []int) (map[int]int, error) {
		fmt.Println("loading", keys)
		m := make(map[int]int)
		for _, k := range keys {
			m[k] = k * k
		}
		return m, nil
	})
	fmt.Println(squares, err)
	// Output:
	// loading [2 3]
	// map[1:1 2:4 3:9] <nil>
}

// Counting in one step. The TTL of the entry stays as it is.
func ExampleCache_Compute() {
	cache := goache.New[string, int]()
	for range 3 {
		cache.Compute("visits", func(n int, _ bool) (int, goache.Op) { return n + 1, goache.Store })
	}
	n, _ := cache.Get("visits")
	fmt.Println(n)
	// Output: 3
}

// The first who stores the key has the lease, until it expires.
func ExampleCache_SetIfAbsentWithTTL() {
	leases := goache.New[string, string]()
	for _, worker := range []string{"first", "second"} {
		holder, mine := leases.SetIfAbsentWithTTL("report", worker, time.Minute)
		fmt.Println(worker, mine, holder)
	}
	// Output:
	// first true first
	// second false first
}

func ExampleCompareAndSwap() {
	cache := goache.New[string, int]()
	cache.Set("version", 1)
	fmt.Println(goache.CompareAndSwap(cache, "version", 1, 2))
	fmt.Println(goache.CompareAndSwap(cache, "version", 1, 3))
	// Output:
	// true
	// false
}

// Bound by bytes instead of entries. A weight of 0 would pin an entry.
func ExampleWithMaxWeight() {
	pages := goache.New[string, []byte](
		goache.WithMaxWeight(1<<20),
		goache.WithWeigher(func(key string, page []byte) uint32 { return uint32(len(key) + len(page)) }),
	)
	for i := range 10_000 {
		pages.Set(fmt.Sprint("/page/", i), make([]byte, 1000))
	}
	fmt.Println(pages.Weight() <= 1<<20)
	// Output: true
}

// Hearing of each value that leaves, and why.
func ExampleWithOnRemove() {
	sessions := goache.New[string, int](goache.WithOnRemove(func(key string, n int, cause goache.Cause) {
		fmt.Println(key, n, cause)
	}))
	sessions.Set("ada", 1)
	sessions.Set("ada", 2)
	sessions.Delete("ada")
	// Output:
	// ada 1 Replaced
	// ada 2 Deleted
}

func ExampleWithStats() {
	cache := goache.New[string, int](goache.WithStats())
	cache.Set("a", 1)
	cache.Get("a")
	cache.Get("b")
	stats := cache.Stats()
	fmt.Println(stats.Hits, stats.Misses, stats.HitRatio())
	// Output: 1 1 0.5
}

// Deleting by what keys or values look like. The function may call the cache.
func ExampleCache_DeleteFunc() {
	cache := goache.New[string, int]()
	cache.Set("user:1", 1)
	cache.Set("user:2", 2)
	cache.Set("page:1", 3)
	fmt.Println(cache.DeleteFunc(func(key string, _ int) bool { return strings.HasPrefix(key, "user:") }))
	for key, value := range cache.All() {
		fmt.Println(key, value)
	}
	// Output:
	// 2
	// page:1 3
}

// How long an entry has to live, and a new life for it.
func ExampleCache_Touch() {
	cache := goache.New[string, int]()
	cache.SetWithTTL("token", 1, time.Minute)
	fmt.Println(cache.Touch("token", time.Hour))
	_, left, ok := cache.GetWithTTL("token")
	fmt.Println(left > 59*time.Minute, ok)
	// Output:
	// true
	// true true
}
