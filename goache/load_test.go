package goache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotset-go/hotset/goache"
)

var errBackend = errors.New("backend is down")

// loader returns a load function that takes a second and counts its calls.
func loader(calls *atomic.Int32, value int) func(context.Context, string) (int, error) {
	return func(context.Context, string) (int, error) {
		calls.Add(1)
		time.Sleep(time.Second)
		return value, nil
	}
}

// TestCache_GetOrLoad_OneLoadAKey is the first part of K08: a hundred callers, one
// load, and the first who leaves takes nobody with him.
func TestCache_GetOrLoad_OneLoadAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int]()
		var calls atomic.Int32
		load := loader(&calls, 42)
		first, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.GetOrLoad(first, "k", load); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first caller: %v", err)
			}
		})
		synctest.Wait()
		for i := range 99 {
			wg.Go(func() {
				ctx := context.Background()
				if i%2 == 0 {
					ctx = t.Context()
				}
				if v, err := c.GetOrLoad(ctx, "k", load); v != 42 || err != nil {
					t.Errorf("a waiter got %d, %v", v, err)
				}
			})
		}
		wg.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d loads", n)
		}
		wantValue(t, c, "k", 42, true)
		if v, err := c.GetOrLoad(t.Context(), "k", nil); v != 42 || err != nil { // a hit needs no load
			t.Errorf("a hit: %d, %v", v, err)
		}
	})
}

// TestCache_GetOrLoad_EachWaiterHonoursItsContext, and the load goes on.
func TestCache_GetOrLoad_EachWaiterHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int]()
		var calls atomic.Int32
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*10*time.Millisecond)
				defer cancel()
				began := time.Now()
				_, err := c.GetOrLoad(ctx, "k", loader(&calls, 1))
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Duration(i+1)*10*time.Millisecond {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		}
		wg.Wait()
		wantValue(t, c, "k", 0, false)
		time.Sleep(time.Second)
		wantValue(t, c, "k", 1, true)
		if _, err := c.GetOrLoad(canceled(t), "other", loader(&calls, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
		if v, err := c.GetOrLoad(canceled(t), "k", nil); v != 1 || err != nil {
			t.Errorf("a hit with a context that has ended: %d, %v", v, err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d loads", n)
		}
	})
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestCache_GetOrLoad_Context(t *testing.T) {
	type name struct{}
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int](goache.WithLoadTimeout(time.Minute))
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, "caller"))
		defer cancel()
		_, err := c.GetOrLoad(ctx, "k", func(ctx context.Context, _ string) (int, error) {
			cancel()
			if ctx.Value(name{}) != "caller" {
				t.Error("the context's values are lost")
			}
			began := time.Now()
			<-ctx.Done()
			if time.Since(began) != time.Minute {
				t.Errorf("the load's context ends after %v", time.Since(began))
			}
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Hour) // let the load end
		unbounded := goache.New[string, int](goache.WithLoadTimeout(0))
		_, _ = unbounded.GetOrLoad(ctx, "k", nil2)
		_, _ = unbounded.GetOrLoad(context.Background(), "k", func(ctx context.Context, _ string) (int, error) {
			if _, ok := ctx.Deadline(); ok {
				t.Error("a bound that was removed")
			}
			return 1, nil
		})
	})
}

func nil2(context.Context, string) (int, error) { return 0, nil }

func TestCache_GetOrLoad_ErrorsReachEveryWaiterAndAreNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int](goache.WithStats())
		var calls atomic.Int32
		fail := func(context.Context, string) (int, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return 0, errBackend
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := c.GetOrLoad(t.Context(), "k", fail); !errors.Is(err, errBackend) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if v, err := c.GetOrLoad(t.Context(), "k", loader(&calls, 2)); v != 2 || err != nil {
			t.Errorf("after a failure: %d, %v", v, err)
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("%d loads, want 2", n)
		}
		s := c.Stats()
		if s.Loads != 2 || s.LoadFailures != 1 || s.LoadTime != 2*time.Second {
			t.Errorf("%+v", s)
		}
	})
}

// TestCache_GetOrLoad_Panic: it reaches whoever began the load, others get an error,
// and the key stays usable. In both goroutines that a load may run in.
func TestCache_GetOrLoad_Panic(t *testing.T) {
	for _, end := range []string{"panic", "Goexit"} {
		for _, kind := range []string{"background", "cancelable"} {
			t.Run(end+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := goache.New[string, int]()
					ctx := context.Background()
					if kind == "cancelable" {
						ctx = t.Context()
					}
					var recovered any
					returned := false
					var wg sync.WaitGroup
					wg.Go(func() {
						defer func() { recovered = recover() }()
						_, _ = c.GetOrLoad(ctx, "k", func(context.Context, string) (int, error) {
							time.Sleep(time.Second)
							if end == "panic" {
								panic("no backend")
							}
							runtime.Goexit()
							return 0, nil
						})
						returned = true
					})
					synctest.Wait()
					for range 5 {
						wg.Go(func() {
							if _, err := c.GetOrLoad(t.Context(), "k", nil2); !errors.Is(err, goache.ErrLoadAborted) {
								t.Errorf("a waiter got %v", err)
							}
						})
					}
					wg.Wait()
					if returned {
						t.Error("the first caller returned")
					}
					if end == "panic" && recovered != "no backend" {
						t.Errorf("the first caller recovered %v", recovered)
					}
					if v, err := c.GetOrLoad(ctx, "k", func(context.Context, string) (int, error) { return 3, nil }); v != 3 || err != nil {
						t.Errorf("afterwards: %d, %v", v, err)
					}
				})
			})
		}
	}
}

// TestCache_GetOrLoad_WritesWin: what is written during a load stays.
func TestCache_GetOrLoad_WritesWin(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(c *goache.Cache[string, int])
		want  int
		found bool
	}{
		"Set":         {func(c *goache.Cache[string, int]) { c.Set("k", 7) }, 7, true},
		"SetMany":     {func(c *goache.Cache[string, int]) { c.SetMany([]goache.Entry[string, int]{{Key: "k", Value: 7}}) }, 7, true},
		"Delete":      {func(c *goache.Cache[string, int]) { c.Delete("k") }, 0, false},
		"DeleteMany":  {func(c *goache.Cache[string, int]) { c.DeleteMany([]string{"k"}) }, 0, false},
		"Clear":       {func(c *goache.Cache[string, int]) { c.Clear() }, 0, false},
		"SetIfAbsent": {func(c *goache.Cache[string, int]) { c.SetIfAbsent("k", 7) }, 7, true},
		"Compute": {func(c *goache.Cache[string, int]) {
			c.Compute("k", func(int, bool) (int, goache.Op) { return 0, goache.Remove })
		}, 0, false},
		"another key": {func(c *goache.Cache[string, int]) { c.Set("other", 7) }, 42, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := goache.New[string, int](goache.WithShardCount(1))
				var calls atomic.Int32
				var wg sync.WaitGroup
				wg.Go(func() {
					if v, err := c.GetOrLoad(t.Context(), "k", loader(&calls, 42)); v != 42 || err != nil {
						t.Errorf("the load's caller got %d, %v", v, err)
					}
				})
				synctest.Wait()
				tt.write(c)
				if !tt.found {
					// Who asks after a removal must not get what was loaded before it.
					wg.Go(func() {
						if v, err := c.GetOrLoad(t.Context(), "k", loader(&calls, 43)); v != 43 || err != nil {
							t.Errorf("a later caller got %d, %v", v, err)
						}
					})
					wg.Wait()
					wantValue(t, c, "k", 43, true)
					return
				}
				wg.Wait()
				wantValue(t, c, "k", tt.want, tt.found)
			})
		})
	}
}

func TestCache_GetOrLoad_NotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int](goache.WithNegativeTTL(time.Minute))
		var calls atomic.Int32
		none := func(context.Context, string) (int, error) {
			calls.Add(1)
			return 0, fmt.Errorf("row k: %w", goache.ErrNotFound)
		}
		ask := func(wantCalls int32) {
			t.Helper()
			if _, err := c.GetOrLoad(t.Context(), "k", none); !errors.Is(err, goache.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			if n := calls.Load(); n != wantCalls {
				t.Errorf("%d loads, want %d", n, wantCalls)
			}
		}
		ask(1)
		ask(1)
		if c.Len() != 0 {
			t.Errorf("Len() = %d: absence is no entry", c.Len())
		}
		time.Sleep(time.Minute)
		ask(2)
		// Each write ends what is known.
		c.Set("k", 1)
		wantValue(t, c, "k", 1, true)
		c.Delete("k")
		ask(3)
		c.Delete("k")
		ask(4)
		c.Clear()
		ask(5)
		c.DeleteMany([]string{"k"})
		ask(6)

		found, err := c.GetOrLoadMany(t.Context(), []string{"k", "l"}, func(_ context.Context, keys []string) (map[string]int, error) {
			if !slices.Equal(keys, []string{"l"}) {
				t.Errorf("asked for %v: k is known to be absent", keys)
			}
			return nil, nil
		})
		if len(found) != 0 || err != nil {
			t.Errorf("%v, %v", found, err)
		}
		if _, err := c.GetOrLoad(t.Context(), "l", nil2); !errors.Is(err, goache.ErrNotFound) {
			t.Errorf("l was not in the result, but: %v", err)
		}

		forgetful := goache.New[string, int]()
		calls.Store(0)
		for range 3 {
			_, _ = forgetful.GetOrLoad(t.Context(), "k", none)
		}
		if n := calls.Load(); n != 3 {
			t.Errorf("%d loads without WithNegativeTTL, want 3", n)
		}
	})
}

func TestCache_GetOrLoad_TTLAndRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int](goache.WithLoadTTL(time.Minute), goache.WithRefreshAfter(40*time.Second))
		var calls atomic.Int32
		value, failing := atomic.Int32{}, atomic.Bool{}
		load := func(context.Context, string) (int, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			if failing.Load() {
				return 0, errBackend
			}
			return int(value.Load()), nil
		}
		get := func(want int, wantCalls int32) {
			t.Helper()
			v, err := c.GetOrLoad(t.Context(), "k", load)
			if v != want || err != nil {
				t.Errorf("got %d, %v, want %d", v, err, want)
			}
			synctest.Wait()
			if n := calls.Load(); n != wantCalls {
				t.Errorf("%d loads, want %d", n, wantCalls)
			}
		}
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		value.Store(1)
		get(1, 1)
		if _, left, _ := c.GetWithTTL("k"); left != time.Minute {
			t.Errorf("%v to live", left)
		}
		value.Store(2)
		pass(39 * time.Second)
		get(1, 1) // too early
		pass(time.Second)
		get(1, 2) // the old value at once, and a reload behind it
		get(1, 2) // one at a time
		pass(time.Second)
		get(2, 2)

		failing.Store(true)
		pass(45 * time.Second)
		get(2, 3)
		pass(time.Second)
		get(2, 4) // the old value stays, and the next hit tries again
		pass(time.Second)
		failing.Store(false)
		value.Store(3)
		get(2, 5)
		pass(time.Second)
		get(3, 5)

		pass(time.Minute)
		value.Store(4)
		get(4, 6) // expired: this one waits

		// A reload that finds nothing removes the value.
		pass(45 * time.Second)
		_, _ = c.GetOrLoad(t.Context(), "k", func(context.Context, string) (int, error) { return 0, goache.ErrNotFound })
		synctest.Wait()
		wantValue(t, c, "k", 0, false)

		// A panic in the background has nobody to go to.
		get(4, 7)
		pass(45 * time.Second)
		_, _ = c.GetOrLoad(t.Context(), "k", func(context.Context, string) (int, error) { panic("background") })
		synctest.Wait()
		wantValue(t, c, "k", 4, true)
	})
}

func TestCache_GetOrLoadMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			c := goache.New[string, int](goache.WithLoadTTL(time.Minute))
			c.Set("stored", 1)
			var calls atomic.Int32
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = c.GetOrLoad(ctx, "flying", loader(&calls, 2)) })
			synctest.Wait()
			asked := 0
			load := func(_ context.Context, keys []string) (map[string]int, error) {
				asked++
				slices.Sort(keys)
				if !slices.Equal(keys, []string{"a", "b", "none"}) {
					t.Errorf("asked for %v", keys)
				}
				clear(keys) // it owns them
				return map[string]int{"a": 3, "b": 4, "not asked for": 5}, nil
			}
			keys := []string{"a", "stored", "b", "a", "flying", "none", "none"}
			want := map[string]int{"stored": 1, "flying": 2, "a": 3, "b": 4}
			if found, err := c.GetOrLoadMany(ctx, keys, load); !maps.Equal(found, want) || err != nil {
				t.Errorf("%v, %v", found, err)
			}
			wg.Wait()
			wantValue(t, c, "a", 3, true)
			wantValue(t, c, "not asked for", 0, false)
			if _, left, _ := c.GetWithTTL("b"); left <= 0 {
				t.Error("no TTL on what was loaded")
			}
			if found, err := c.GetOrLoadMany(ctx, []string{"a", "b"}, load); len(found) != 2 || err != nil || asked != 1 {
				t.Errorf("a second time: %v, %v, %d loads", found, err, asked)
			}
			found, err := c.GetOrLoadMany(ctx, []string{"a", "x"}, func(context.Context, []string) (map[string]int, error) { return nil, errBackend })
			if !maps.Equal(found, map[string]int{"a": 3}) || !errors.Is(err, errBackend) {
				t.Errorf("with an error: %v, %v", found, err)
			}
			if found, err := c.GetOrLoadMany(ctx, nil, load); len(found) != 0 || err != nil {
				t.Errorf("of nothing: %v, %v", found, err)
			}
			found, err = c.GetOrLoadMany(canceled(t), []string{"a", "x"}, load)
			if len(found) != 1 || !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that has ended: %v, %v", found, err)
			}
		}
	})
}

func TestCache_GetOrLoadMany_Panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := goache.New[string, int]()
		func() {
			defer func() {
				if r := recover(); r != "many" {
					t.Errorf("recovered %v", r)
				}
			}()
			_, _ = c.GetOrLoadMany(t.Context(), []string{"a", "b"}, func(context.Context, []string) (map[string]int, error) { panic("many") })
		}()
		for _, k := range []string{"a", "b"} {
			if v, err := c.GetOrLoad(t.Context(), k, func(context.Context, string) (int, error) { return 1, nil }); v != 1 || err != nil {
				t.Errorf("%s afterwards: %d, %v", k, v, err)
			}
		}
	})
}

// TestCache_GetOrLoad_CallbackPanics: a weigher or OnRemove that panics while a loaded
// value is stored must not leave the key loading for ever.
func TestCache_GetOrLoad_CallbackPanics(t *testing.T) {
	bad := true
	boom := func() {
		if bad {
			panic("callback")
		}
	}
	for name, c := range map[string]*goache.Cache[string, int]{
		"weigher": goache.New[string, int](goache.WithMaxWeight(100),
			goache.WithWeigher(func(string, int) uint32 { boom(); return 1 })),
		"OnRemove": goache.New[string, int](goache.WithMaxSize(1),
			goache.WithOnRemove(func(string, int, goache.Cause) { boom() })),
	} {
		bad = false
		c.Set("other", 1)
		bad = true
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			_, _ = c.GetOrLoadMany(context.Background(), []string{"a", "b"}, func(context.Context, []string) (map[string]int, error) {
				return map[string]int{"a": 1, "b": 2}, nil
			})
		}()
		bad = false
		for _, k := range []string{"a", "b"} {
			if _, err := c.GetOrLoad(t.Context(), k, func(context.Context, string) (int, error) { return 3, nil }); err != nil {
				t.Errorf("%s: %s afterwards: %v", name, k, err)
			}
		}
	}
}

func TestCache_GetOrLoad_NilArguments(t *testing.T) {
	c := goache.New[string, int]()
	for name, f := range map[string]func(){
		"nil load":         func() { _, _ = c.GetOrLoad(t.Context(), "k", nil) },
		"nil context":      func() { _, _ = c.GetOrLoad(nil, "k", nil2) }, //nolint:staticcheck // that is the test
		"nil load of many": func() { _, _ = c.GetOrLoadMany(t.Context(), nil, nil) },
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "goache: ") {
					t.Errorf("%s: recovered %v", name, r)
				}
			}()
			f()
		}()
	}
	if v, err := c.GetOrLoad(t.Context(), "k", func(context.Context, string) (int, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("afterwards: %d, %v", v, err)
	}
}

// TestCache_LoadUnderFire: loads, writes and removals of the same keys, for the race
// detector. A value tells the version of its key, which only goes up.
func TestCache_LoadUnderFire(t *testing.T) {
	c := goache.New[int, int64](goache.WithMaxSize(40), goache.WithLoadTTL(time.Millisecond), goache.WithRefreshAfter(100*time.Microsecond),
		goache.WithNegativeTTL(time.Millisecond))
	var versions [64]atomic.Int64
	deadline := time.Now().Add(under(t))
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := g; time.Now().Before(deadline); i += 7 {
				k := i % len(versions)
				switch i % 5 {
				case 0:
					versions[k].Add(1)
					c.Delete(k)
					// What is loaded from here on is not older than this.
					least := versions[k].Load()
					v, err := c.GetOrLoad(t.Context(), k, func(context.Context, int) (int64, error) { return versions[k].Load(), nil })
					if err == nil && v < least {
						t.Errorf("key %d: version %d, but %d was deleted before", k, v, least-1)
					}
				case 1:
					_, _ = c.GetOrLoad(context.Background(), k, func(context.Context, int) (int64, error) { return versions[k].Load(), nil })
				case 2:
					_, _ = c.GetOrLoad(t.Context(), k, func(context.Context, int) (int64, error) { return versions[k].Load(), nil })
				case 3:
					_, _ = c.GetOrLoadMany(t.Context(), []int{k, (k + 1) % 64, (k + 2) % 64}, func(_ context.Context, keys []int) (map[int]int64, error) {
						m := map[int]int64{}
						for _, k := range keys {
							m[k] = versions[k].Load()
						}
						return m, nil
					})
				case 4:
					if i%100 == 4 {
						c.Clear()
					}
				}
			}
		})
	}
	wg.Wait()
}
