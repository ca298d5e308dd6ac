package goache_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotset-go/hotset/goache"
)

// These tests are for the race detector, and for values that carry their key: whatever
// is read under a key must have been stored under it, whole.

// carrier is a value that tells which key it belongs to and whether it is whole.
type carrier[V any] struct {
	name  string
	make  func(key, n int) V
	check func(key int, v V) bool
}

type wide struct {
	Key  int
	Text string
	Ptr  *int
}

type box struct {
	Key  int
	Rest [6]int
	Text string
}

var (
	carryInt    = carrier[int]{"int", func(k, n int) int { return k<<16 | n&0xffff }, func(k, v int) bool { return v>>16 == k }}
	carryString = carrier[string]{
		"string",
		func(k, n int) string { return fmt.Sprintf("%d:%0*d", k, n%40, n) },
		func(k int, v string) bool {
			var key, n int
			_, err := fmt.Sscanf(v, "%d:%d", &key, &n)
			return err == nil && key == k
		},
	}
	carryAny = carrier[any]{
		"interface",
		func(k, n int) any {
			if n%2 == 0 {
				return k
			}
			return strconv.Itoa(k)
		},
		func(k int, v any) bool { return v == k || v == strconv.Itoa(k) },
	}
	carryWide = carrier[wide]{
		"wide",
		func(k, n int) wide { return wide{k, strconv.Itoa(k)[:1], &k} },
		func(k int, v wide) bool { return v.Key == k && v.Text == strconv.Itoa(k)[:1] && *v.Ptr == k },
	}
	carryBox = carrier[box]{
		"boxed",
		func(k, n int) box { return box{k, [6]int{n, n, n, n, n, n}, strconv.Itoa(k)} },
		func(k int, v box) bool {
			return v.Key == k && v.Text == strconv.Itoa(k) && v.Rest[0] == v.Rest[5]
		},
	}
)

// under returns how long a test with goroutines runs: HOTSET_STRESS=10m for long ones.
func under(t *testing.T) time.Duration {
	if s := os.Getenv("HOTSET_STRESS"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("HOTSET_STRESS: %v", err)
		}
		return d / 16 // the tests of a run take 16 times this together
	}
	if testing.Short() {
		return 50 * time.Millisecond
	}
	return 300 * time.Millisecond
}

// TestCache_Recycling is K06: entries of a full cache are used again for other keys
// while readers look at them.
func TestCache_Recycling(t *testing.T) {
	recycling(t, carryInt)
	recycling(t, carryString)
	recycling(t, carryAny)
	recycling(t, carryWide)
	recycling(t, carryBox)
}

func recycling[V any](t *testing.T, c carrier[V]) {
	intKeys := func(i int) int { return i }
	hammer(t, c.name+"/bounded", c, intKeys, 1000, goache.WithMaxSize(64))
	if c.name == "string" || c.name == "int" {
		hammer(t, c.name+"/clock", c, strconv.Itoa, 200, goache.WithMaxSize(64), goache.WithPolicy(goache.Clock), goache.WithShardCount(4))
		hammer(t, c.name+"/unbounded", c, strconv.Itoa, 300, goache.WithShardCount(2), goache.WithStats(), goache.WithSlidingTTL(time.Second))
	}
}

// hammer runs readers and writers over the keys and checks what they see.
func hammer[K comparable, V any](t *testing.T, name string, carry carrier[V], key func(int) K, keys int, opts ...goache.Option) {
	t.Run(name, func(t *testing.T) {
		c := goache.New[K, V](opts...)
		var wrong atomic.Pointer[string]
		fail := func(format string, args ...any) {
			s := fmt.Sprintf(format, args...)
			wrong.Store(&s)
		}
		deadline := time.Now().Add(under(t) / 2)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 7))
				for n := 0; wrong.Load() == nil && time.Now().Before(deadline); n++ {
					for range 50 {
						i := rng.IntN(keys)
						k := key(i)
						switch op := rng.IntN(100); {
						case op < 50:
							if v, ok := c.Get(k); ok && !carry.check(i, v) {
								fail("Get(%v) = %v", k, v)
							}
						case op < 75:
							c.Set(k, carry.make(i, n))
						case op < 80:
							c.SetWithTTL(k, carry.make(i, n), time.Duration(rng.IntN(100))*time.Microsecond)
						case op < 88:
							c.Delete(k)
						case op < 91:
							c.Compute(k, func(old V, ok bool) (V, goache.Op) {
								if ok && !carry.check(i, old) {
									fail("Compute(%v) sees %v", k, old)
								}
								return carry.make(i, n), goache.Op(rng.IntN(3))
							})
						case op < 93:
							if v, ok := c.GetAndDelete(k); ok && !carry.check(i, v) {
								fail("GetAndDelete(%v) = %v", k, v)
							}
						case op < 96:
							if v, _ := c.SetIfAbsent(k, carry.make(i, n)); !carry.check(i, v) {
								fail("SetIfAbsent(%v) = %v", k, v)
							}
						case op < 97:
							c.SetMany([]goache.Entry[K, V]{{Key: k, Value: carry.make(i, n)}, {Key: key(i / 2), Value: carry.make(i/2, n)}})
						case op < 98:
							if v, left, ok := c.GetWithTTL(k); ok && (left < 0 || !carry.check(i, v)) {
								fail("GetWithTTL(%v) = %v %v", k, v, left)
							}
						case op < 99:
							c.Purge()
						default:
							if rng.IntN(20) == 0 {
								c.Clear()
							}
						}
					}
					if n%20 == 0 {
						index := map[K]int{}
						for i := range keys {
							index[key(i)] = i
						}
						for k, v := range c.All() {
							if !carry.check(index[k], v) {
								fail("All yields %v: %v", k, v)
							}
						}
						c.DeleteFunc(func(k K, v V) bool {
							if !carry.check(index[k], v) {
								fail("DeleteFunc sees %v: %v", k, v)
							}
							return rng.IntN(10) == 0
						})
					}
					runtime.Gosched()
				}
			})
		}
		wg.Wait()
		if s := wrong.Load(); s != nil {
			t.Fatal(*s)
		}
		c.Clear()
		if n := c.Len(); n != 0 {
			t.Errorf("%d entries after Clear, with nobody else", n)
		}
	})
}

// TestCache_HotEntry has writers change one entry as fast as they can, and readers
// read nothing else: where the tests above see a node being written now and then, this
// one sees it all the time. The entry is overwritten, or it is used by two keys in
// turn.
func TestCache_HotEntry(t *testing.T) {
	hot(t, carryInt)
	hot(t, carryString)
	hot(t, carryAny)
	hot(t, carryWide)
	hot(t, carryBox)
	hot(t, carrier[[4]int]{"words", func(k, n int) [4]int { return [4]int{k, n, n, n} }, func(k int, v [4]int) bool {
		return v[0] == k && v[1] == v[2] && v[2] == v[3]
	}})
}

func hot[V any](t *testing.T, carry carrier[V]) {
	for name, opts := range map[string][]goache.Option{
		"overwritten": {goache.WithShardCount(1)},
		"recycled":    {goache.WithMaxSize(1)},
	} {
		t.Run(carry.name+"/"+name, func(t *testing.T) {
			c := goache.New[string, V](opts...)
			keys := []string{"1", "22"}
			if name == "overwritten" {
				keys = keys[:1]
			}
			// What to store is made before: the writer does nothing but write.
			var values [2][64]V
			for k := range values {
				for n := range values[k] {
					values[k][n] = carry.make(k+1, n)
				}
			}
			deadline := time.Now().Add(under(t) / 2)
			var done atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				defer done.Store(true)
				for n := 0; n%1024 != 0 || time.Now().Before(deadline); n++ {
					k := n % len(keys)
					c.Set(keys[k], values[k][n>>1&63])
				}
			})
			for range 2 {
				wg.Go(func() {
					for n := 0; !done.Load(); n++ {
						k := n % len(keys)
						if v, ok := c.Get(keys[k]); ok && !carry.check(k+1, v) {
							t.Errorf("Get(%q) = %v", keys[k], v)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestCache_OwnWrites is K01: what a goroutine did to its own keys it sees at once.
func TestCache_OwnWrites(t *testing.T) {
	for name, opts := range map[string][]goache.Option{"unbounded": nil, "one shard": {goache.WithShardCount(1)}} {
		t.Run(name, func(t *testing.T) {
			c := goache.New[int, string](opts...)
			deadline := time.Now().Add(under(t))
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := 0; time.Now().Before(deadline); i++ {
						k := i%512*8 + g
						expect := func(want string, found bool) {
							if v, ok := c.Get(k); v != want || ok != found {
								t.Errorf("Get(%d) = %q, %v, want %q, %v", k, v, ok, want, found)
							}
						}
						c.Set(k, "one")
						expect("one", true)
						c.Set(k, "another")
						expect("another", true)
						c.Delete(k)
						expect("", false)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestCache_GrowthUnderReaders: readers lose no key that is there while tables grow,
// wear out by churn and are replaced.
func TestCache_GrowthUnderReaders(t *testing.T) {
	deadline := time.Now().Add(under(t))
	for round := 0; round == 0 || time.Now().Before(deadline); round++ {
		c := goache.New[int, int](goache.WithShardCount(2))
		const kept = 4 // few, so that each is read all the time
		for i := range kept {
			c.Set(i, i)
		}
		var done atomic.Bool
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for !done.Load() {
					for i := range kept {
						if v, ok := c.Get(i); !ok || v != i {
							t.Errorf("Get(%d) = %d, %v while the table grows", i, v, ok)
							return
						}
					}
				}
			})
		}
		for i := range 5000 {
			c.Set(kept+i, i)
		}
		for i := range 20_000 * (round % 2) { // nearly full: this wears the tables
			c.Delete(kept + i)
			c.Set(kept+5000+i, i)
		}
		done.Store(true)
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// TestCache_BulkUnderFire is K04.
func TestCache_BulkUnderFire(t *testing.T) {
	for name, opts := range map[string][]goache.Option{"unbounded": nil, "bounded": {goache.WithMaxSize(500)}} {
		t.Run(name, func(t *testing.T) {
			c := goache.New[int, string](opts...)
			deadline := time.Now().Add(under(t))
			var wg sync.WaitGroup
			run := func(f func(rng *rand.Rand)) {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(1, 1))
					for time.Now().Before(deadline) {
						f(rng)
					}
				})
			}
			keys := make([]int, 1000)
			entries := make([]goache.Entry[int, string], 1000)
			for i := range keys {
				keys[i] = i
				entries[i] = goache.Entry[int, string]{Key: i, Value: strconv.Itoa(i), TTL: time.Duration(i%3) * time.Microsecond}
			}
			run(func(*rand.Rand) { c.Clear() })
			run(func(*rand.Rand) { c.Purge() })
			run(func(*rand.Rand) { c.DeleteMany(keys) })
			for range 2 {
				run(func(*rand.Rand) { c.SetMany(entries) })
				run(func(rng *rand.Rand) { c.Set(rng.IntN(1000), "x") })
				run(func(*rand.Rand) {
					for _, e := range c.GetMany(nil, keys) {
						if e.Value != "x" && e.Value != strconv.Itoa(e.Key) {
							t.Errorf("GetMany: %d has %q", e.Key, e.Value)
						}
					}
				})
			}
			wg.Wait()
			c.Clear()
			if n := c.Len(); n != 0 {
				t.Errorf("Len() = %d after Clear", n)
			}
			if n := len(c.GetMany(nil, keys)); n != 0 {
				t.Errorf("%d keys found after Clear", n)
			}
		})
	}
}

// TestCache_LimitIsALimit is K02.
func TestCache_LimitIsALimit(t *testing.T) {
	for _, n := range []int{1, 2, 3, 255, 256, 257, 10_000} {
		for name, c := range map[string]goache.Cacher[int, int]{
			"New":           goache.New[int, int](goache.WithMaxSize(n)),
			"NewSingleCore": goache.NewSingleCore[int, int](goache.WithMaxSize(n)),
			"256 shards":    goache.New[int, int](goache.WithMaxSize(n), goache.WithShardCount(256), goache.WithPolicy(goache.Clock)),
		} {
			var wg sync.WaitGroup
			var done atomic.Bool
			wg.Go(func() {
				for !done.Load() {
					if got := c.Len(); got > n {
						t.Errorf("%s, n = %d: Len() = %d", name, n, got)
						return
					}
					runtime.Gosched()
				}
			})
			var writers sync.WaitGroup
			for g := range 4 {
				writers.Go(func() {
					for i := range 2000 {
						c.Set(i*4+g, i)
					}
				})
			}
			writers.Wait()
			many := make([]goache.Entry[int, int], min(10*n, 20_000))
			for i := range many {
				many[i].Key = -i
			}
			c.SetMany(many)
			done.Store(true)
			wg.Wait()
			if got := c.Len(); got > n || got == 0 {
				t.Errorf("%s, n = %d: Len() = %d at the end", name, n, got)
			}
			c.Set(1, 2)
			if v, ok := c.Get(1); !ok || v != 2 {
				t.Errorf("%s, n = %d: Get after Set: %d, %v", name, n, v, ok)
			}
		}
	}
}
