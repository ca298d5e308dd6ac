package goache_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotset-go/hotset/goache"
)

// The benchmarks compare with what the standard library has. Other caches are compared
// elsewhere, since this module has no dependencies.

// store is what the common benchmarks need.
type store[V any] interface {
	Get(key string) (V, bool)
	Set(key string, value V)
	Delete(key string)
}

// locked is a map with a mutex.
type locked[V any] struct {
	mu sync.RWMutex
	m  map[string]V
}

func (l *locked[V]) Get(k string) (V, bool) {
	l.mu.RLock()
	v, ok := l.m[k]
	l.mu.RUnlock()
	return v, ok
}

func (l *locked[V]) Set(k string, v V) {
	l.mu.Lock()
	l.m[k] = v
	l.mu.Unlock()
}

func (l *locked[V]) Delete(k string) {
	l.mu.Lock()
	delete(l.m, k)
	l.mu.Unlock()
}

// syncMap is a sync.Map with types.
type syncMap[V any] struct{ m sync.Map }

func (s *syncMap[V]) Get(k string) (V, bool) {
	v, ok := s.m.Load(k)
	if !ok {
		var zero V
		return zero, false
	}
	return v.(V), true
}

func (s *syncMap[V]) Set(k string, v V) { s.m.Store(k, v) }
func (s *syncMap[V]) Delete(k string)   { s.m.Delete(k) }

// implementations are benchmarked through a type parameter, not an interface, except
// that Go compiles one body for all pointer types and calls through a table: some 2 ns
// for each alike.
func implementations[V any](b *testing.B, n int, run func(b *testing.B, s store[V])) {
	b.Run("impl=goache", func(b *testing.B) { run(b, goache.New[string, V]()) })
	b.Run("impl=goache1", func(b *testing.B) { run(b, goache.NewSingleCore[string, V]()) })
	b.Run("impl=bounded", func(b *testing.B) { run(b, goache.New[string, V](goache.WithMaxSize(2*n))) })
	b.Run("impl=rwmutex", func(b *testing.B) { run(b, &locked[V]{m: make(map[string]V)}) })
	b.Run("impl=syncmap", func(b *testing.B) { run(b, new(syncMap[V])) })
}

func benchKeys(n int, shuffled bool) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key:" + strconv.Itoa(i)
	}
	if shuffled {
		rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	return keys
}

var benchSizes = []int{1_000, 100_000}

func forSizes(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range benchSizes {
		b.Run("n="+strconv.Itoa(n), func(b *testing.B) { f(b, n) })
	}
}

func benchValues[V any](b *testing.B, value func(i int) V) {
	forSizes(b, func(b *testing.B, n int) {
		keys := benchKeys(n, false)
		shuffled := benchKeys(n, true)
		fill := func(s store[V]) {
			for i, k := range keys {
				s.Set(k, value(i))
			}
		}
		walk := func(name string, keys []string, op func(s store[V], i int, k string)) {
			b.Run(name, func(b *testing.B) {
				implementations(b, n, func(b *testing.B, s store[V]) {
					fill(s)
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						op(s, i, keys[i])
						if i++; i == n {
							i = 0
						}
					}
				})
			})
		}
		walk("op=get", keys, func(s store[V], _ int, k string) { s.Get(k) })
		walk("op=getShuffled", shuffled, func(s store[V], _ int, k string) { s.Get(k) })
		walk("op=set", keys, func(s store[V], i int, k string) { s.Set(k, value(i)) })
		walk("op=deleteSet", keys, func(s store[V], i int, k string) { s.Delete(k); s.Set(k, value(i)) })
		for name, writes := range map[string]int{"op=parallelGet": 0, "op=parallelGetSet": 10} {
			b.Run(name, func(b *testing.B) {
				implementations(b, n, func(b *testing.B, s store[V]) {
					fill(s)
					var workers atomic.Int64
					b.ResetTimer()
					b.RunParallel(func(pb *testing.PB) {
						i := int(workers.Add(1)) * 7919 % n
						for pb.Next() {
							if i%100 < writes {
								s.Set(keys[i], value(i))
							} else {
								s.Get(keys[i])
							}
							if i++; i == n {
								i = 0
							}
						}
					})
				})
			})
		}
	})
}

func BenchmarkValue(b *testing.B) {
	text := benchKeys(1024, false)
	b.Run("value=int", func(b *testing.B) { benchValues(b, func(i int) int { return i }) })
	b.Run("value=string", func(b *testing.B) { benchValues(b, func(i int) string { return text[i&1023] }) })
	b.Run("value=struct64", func(b *testing.B) { benchValues(b, func(i int) [8]int { return [8]int{i} }) })
}

// BenchmarkBounded stores twice as many keys as fit, in turn: every Set evicts.
func BenchmarkBounded(b *testing.B) {
	forSizes(b, func(b *testing.B, n int) {
		keys := benchKeys(n, false)
		for name, opts := range map[string][]goache.Option{
			"policy=WindowTinyLFU": {goache.WithMaxSize(n / 2)},
			"policy=Clock":         {goache.WithMaxSize(n / 2), goache.WithPolicy(goache.Clock)},
		} {
			b.Run(name, func(b *testing.B) {
				c := goache.New[string, int](opts...)
				for i, k := range keys {
					c.Set(k, i)
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					c.Set(keys[i], i)
					if i++; i == n {
						i = 0
					}
				}
			})
		}
	})
}

// BenchmarkOption shows what an option costs, and that it costs nothing when it is not
// given: "option=none" is the cache without any of them.
func BenchmarkOption(b *testing.B) {
	const n = 1_000
	keys := benchKeys(n, false)
	for _, tt := range []struct {
		name string
		opts []goache.Option
	}{
		{"none", nil},
		{"stats", []goache.Option{goache.WithStats()}},
		{"onRemove", []goache.Option{goache.WithOnRemove(func(string, int, goache.Cause) {})}},
		{"sliding", []goache.Option{goache.WithSlidingTTL(time.Hour)}},
		{"jitter", []goache.Option{goache.WithTTLJitter(0.1)}},
		{"coarse", []goache.Option{goache.WithCoarseClock(time.Millisecond)}},
		{"negative", []goache.Option{goache.WithNegativeTTL(time.Hour)}},
		{"refresh", []goache.Option{goache.WithLoadTTL(time.Hour), goache.WithRefreshAfter(time.Minute)}},
		{"maxSize", []goache.Option{goache.WithMaxSize(2 * n)}},
		{"maxWeight", []goache.Option{goache.WithMaxWeight(2 * n), goache.WithWeigher(func(string, int) uint32 { return 1 })}},
	} {
		b.Run("option="+tt.name, func(b *testing.B) {
			c := goache.New[string, int](tt.opts...)
			defer c.Close()
			run := func(name string, op func(i int, k string)) {
				b.Run("op="+name, func(b *testing.B) {
					i := 0
					for b.Loop() {
						op(i, keys[i])
						if i++; i == n {
							i = 0
						}
					}
				})
			}
			run("set", func(i int, k string) { c.Set(k, i) })
			run("get", func(_ int, k string) { c.Get(k) })
			run("setTTL", func(i int, k string) { c.SetWithTTL(k, i, time.Hour) })
			run("getTTL", func(_ int, k string) { c.Get(k) })
			run("getOrLoad", func(_ int, k string) { _, _ = c.GetOrLoad(b.Context(), k, nil) })
		})
	}
}
