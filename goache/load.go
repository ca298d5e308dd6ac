package goache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/hotset-go/hotset/goache/internal/word"
)

// loading is how a cache loads. Immutable after New.
type loading[K comparable] struct {
	loadTTL, refreshAfter, loadTimeout time.Duration

	negativeTTL time.Duration
	absent      *Cache[K, struct{}] // keys that a load did not find; nil without WithNegativeTTL
}

// maxAbsent bounds the keys that are remembered as absent, if nothing else does:
// requests for names that do not exist must not fill the memory.
const maxAbsent = 1 << 16

func (c *Cache[K, V]) setLoading(cfg *config) {
	c.loading = loading[K]{
		loadTTL:      max(cfg.loadTTL, 0),
		refreshAfter: max(cfg.refreshAfter, 0),
		loadTimeout:  cfg.loadTimeout,
		negativeTTL:  max(cfg.negativeTTL, 0),
	}
	if c.negativeTTL > 0 {
		size := cfg.maxSize
		if size == 0 {
			size = maxAbsent
		}
		c.absent = new(Cache[K, struct{}])
		c.absent.init(config{single: cfg.single, shards: cfg.shards, maxSize: size, clock: cfg.clock, jitter: cfg.jitter})
	}
}

// flight is a load under way, or done.
type flight[V any] struct {
	done chan struct{} // closed when the rest is set

	value    V
	err      error
	panicked any  // what the load panicked with, in a goroutine of its own
	exited   bool // the load ended that goroutine

	fenced bool // a write came first: the value must not be stored; guarded by the shard's mutex
}

func newFlight[V any]() *flight[V] { return &flight[V]{done: make(chan struct{})} }

// invalidate keeps a load that is under way from storing its value over what is
// written now, and forgets that the key was absent. The shard is locked.
func (c *Cache[K, V]) invalidate(s *shard[K, V], key K) {
	if f := s.flights[key]; f != nil {
		f.fenced = true
		s.endFlight(key)
	}
	if c.absent != nil {
		c.absent.Delete(key)
	}
}

// invalidateAll is invalidate for all keys of the shard, except that it leaves the
// absent keys alone.
func (s *shard[K, V]) invalidateAll() {
	for _, f := range s.flights {
		f.fenced = true
	}
	s.flights = nil
}

// board returns the flight for a key, and whether it is a new one, which the caller
// must then make happen. The shard is locked.
func (s *shard[K, V]) board(key K) (f *flight[V], first bool) {
	if f := s.flights[key]; f != nil {
		return f, false
	}
	if s.flights == nil {
		s.flights = make(map[K]*flight[V])
	}
	f = newFlight[V]()
	s.flights[key] = f
	return f, true
}

// endFlight takes a key's flight off the board. The shard is locked.
func (s *shard[K, V]) endFlight(key K) {
	delete(s.flights, key)
	if len(s.flights) == 0 {
		s.flights = nil // so that writers need not look
	}
}

// GetOrLoad returns the value of the key. If there is none, it calls load and stores
// what that returns, with the TTL of [WithLoadTTL].
//
// One load runs at a time for a key, and all who ask meanwhile wait for it. Its
// context has the values of the first caller's, but neither its deadline nor its
// cancellation, since others wait for the same load; [WithLoadTimeout] bounds it. Each
// caller waits no longer than its own ctx allows and then returns its error. An error
// of the load reaches all who wait, and is not stored; except that ErrNotFound is
// remembered with [WithNegativeTTL].
//
// A Set, Delete or Clear during the load wins over its result: that is still returned
// to those who wait, but not stored, and later callers load anew.
//
// If load panics, so does the call that began the load; others get [ErrLoadAborted].
// With runtime.Goexit it is the same. The load runs in the first caller's goroutine if
// that caller's ctx can never end, as context.Background, and else in one of its own
// that ends with the load; if the caller has left by then, its panic becomes the error
// and nothing more.
//
// A hit costs what Get does. The key must be equal to itself to be loaded only once.
func (c *Cache[K, V]) GetOrLoad(ctx context.Context, key K, load func(ctx context.Context, key K) (V, error)) (V, error) {
	if value, deadline, ok := c.lookup(key, c.onHit); ok {
		if c.refreshAfter > 0 && deadline != 0 {
			c.refresh(ctx, key, c.hash(key), deadline, load)
		}
		return value, nil
	}
	return c.fetch(ctx, key, c.hash(key), load)
}

// fetch is GetOrLoad after a miss.
func (c *Cache[K, V]) fetch(ctx context.Context, key K, h uint64, load func(context.Context, K) (V, error)) (V, error) {
	var zero V
	if ctx == nil || load == nil {
		panic("goache: GetOrLoad with a nil context or a nil load function")
	}
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	if key != key { //nolint:staticcheck // NaN: nobody else can ask for it, and nobody could find it
		ctx, cancel := c.loadContext(ctx)
		defer cancel()
		return load(ctx, key)
	}
	s := c.shardOf(h)
	s.mu.Lock()
	if n, ok := c.live(s, h, key); ok { // stored since we looked
		value := *word.Peek[V](valueAt(n))
		s.mu.Unlock()
		return value, nil
	}
	if c.knownAbsent(key) {
		s.mu.Unlock()
		return zero, ErrNotFound
	}
	f, first := s.board(key)
	s.mu.Unlock()

	l := c.single(key, h, f, load)
	switch {
	case !first:
		return f.wait(ctx)
	case ctx.Done() == nil:
		l.run(ctx, false)
		return f.value, f.err
	default:
		go l.run(ctx, true)
		return f.waitFirst(ctx)
	}
}

// refresh reloads a value in the background, if it is old enough and nobody does yet.
func (c *Cache[K, V]) refresh(ctx context.Context, key K, h uint64, deadline int64, load func(context.Context, K) (V, error)) {
	if ctx == nil || load == nil {
		panic("goache: GetOrLoad with a nil context or a nil load function")
	}
	if remaining(deadline, c.now()) > c.loadTTL-c.refreshAfter || key != key { //nolint:staticcheck // NaN
		return
	}
	s := c.shardOf(h)
	s.mu.Lock()
	f, first := s.board(key)
	s.mu.Unlock()
	if first {
		l := c.single(key, h, f, load)
		go l.run(ctx, true)
	}
}

// loadContext returns the context of a load that was asked for with ctx.
func (c *Cache[K, V]) loadContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if c.loadTimeout > 0 {
		return context.WithTimeout(ctx, c.loadTimeout)
	}
	return context.WithCancel(ctx)
}

// wait waits for the load of another caller.
func (f *flight[V]) wait(ctx context.Context) (V, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var zero V
		return zero, ctx.Err()
	}
}

// waitFirst waits for a load that this caller began.
func (f *flight[V]) waitFirst(ctx context.Context) (V, error) {
	value, err := f.wait(ctx)
	if ctx.Err() != nil {
		select {
		case <-f.done:
		default:
			return value, err // left early
		}
	}
	switch {
	case f.panicked != nil:
		panic(f.panicked)
	case f.exited:
		runtime.Goexit()
	}
	return value, err
}

// trip is one call of a load function for one or many flights.
type trip[K comparable, V any] struct {
	c       *Cache[K, V]
	keys    []K
	hashes  []uint64
	flights []*flight[V]
	load    func(ctx context.Context, keys []K) (map[K]V, error) // GetOrLoadMany
	loadOne func(ctx context.Context, key K) (V, error)          // GetOrLoad
}

func (c *Cache[K, V]) single(key K, h uint64, f *flight[V], load func(context.Context, K) (V, error)) trip[K, V] {
	return trip[K, V]{c: c, keys: []K{key}, hashes: []uint64{h}, flights: []*flight[V]{f}, loadOne: load}
}

// run calls the load function, stores what it returns and releases all who wait. In a
// goroutine of its own it catches panics.
func (t *trip[K, V]) run(ctx context.Context, own bool) {
	c := t.c
	ctx, cancel := c.loadContext(ctx)
	defer cancel()
	began := time.Now()
	returned := false
	var values map[K]V
	var value V
	var err error
	defer func() {
		var panicked any
		if !returned {
			err = ErrLoadAborted
			if own {
				if panicked = recover(); panicked != nil {
					err = fmt.Errorf("%w: panic: %v", ErrLoadAborted, panicked)
				}
			}
		}
		if c.reads != nil {
			c.loadTally.loads.Add(1)
			if err != nil {
				c.loadTally.failures.Add(1)
			}
			c.loadTally.nanoseconds.Add(int64(time.Since(began)))
		}
		for i, f := range t.flights {
			f.value, f.err = value, err
			f.panicked, f.exited = panicked, !returned && panicked == nil
			if t.load != nil && err == nil {
				var ok bool
				if f.value, ok = values[t.keys[i]]; !ok {
					f.err = ErrNotFound
				}
			}
		}
		c.land(t.keys, t.hashes, t.flights)
	}()
	if t.load != nil {
		values, err = t.load(ctx, slices.Clone(t.keys)) // load may sort it
	} else {
		value, err = t.loadOne(ctx, t.keys[0])
	}
	returned = true
}

// land stores what the flights of keys brought, unless a write came first, and lets go
// all who wait for them. It goes on with the rest when the weigher or OnRemove panic.
func (c *Cache[K, V]) land(keys []K, hashes []uint64, flights []*flight[V]) {
	defer func() {
		if len(flights) > 0 {
			c.land(keys, hashes, flights)
		}
	}()
	for len(flights) > 0 {
		key, h, f := keys[0], hashes[0], flights[0]
		keys, hashes, flights = keys[1:], hashes[1:], flights[1:]
		c.landOne(key, h, f)
	}
}

func (c *Cache[K, V]) landOne(key K, h uint64, f *flight[V]) {
	s := c.shardOf(h)
	weight, weighed := uint32(0), false
	defer close(f.done)
	defer func() {
		if !weighed { // the weigher panicked
			s.mu.Lock()
			if !f.fenced {
				s.endFlight(key)
			}
			s.mu.Unlock()
		}
	}()
	if f.err == nil {
		weight = c.weigh(key, f.value)
	}
	weighed = true
	deadline := c.deadline(c.loadTTL)

	s.mu.Lock()
	if f.fenced {
		s.mu.Unlock()
		return
	}
	s.endFlight(key)
	switch {
	case f.err == nil:
		c.put(s, h, key, f.value, deadline, weight)
	case errors.Is(f.err, ErrNotFound):
		c.delete(s, h, key) // when refreshing, there is an old value
		if c.absent != nil {
			c.absent.SetWithTTL(key, struct{}{}, c.negativeTTL)
		}
	}
	c.unlock(s)
}
