package goache

import (
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotset-go/hotset/goache/internal/policy"
	"github.com/hotset-go/hotset/goache/internal/table"
	"github.com/hotset-go/hotset/goache/internal/word"
)

// Cache is a goroutine-safe, sharded key/value cache. Make one with [New]; the zero
// value does not work, and a Cache must not be copied.
//
// Reads take no lock. Each write is done before its method returns, and a read that
// begins after that sees it. All methods may be called at any time from any number of
// goroutines; operations on one key are linearizable.
//
// The cache keeps copies of keys and values as assignment makes them, and drops them
// when they are deleted, evicted, replaced or cleared. An expired value is kept until
// one of these happens, or [Cache.Purge].
//
// NaN is a key as in a map: each Set with it adds an entry that only iteration, Clear,
// Purge and eviction reach. A key that holds an interface with a dynamic type that
// cannot be compared panics, as in a map, and leaves the cache as it was.
type Cache[K comparable, V any] struct {
	// What reads use comes first. Immutable after New, like all but the marked fields.

	seed   maphash.Seed
	shards []shard[K, V]
	mask   uint32 // len(shards) - 1
	onHit  hitWork
	layout

	reads     []readTally // by shard; nil without WithStats
	loadTally loadTally   // atomic
	watched   bool        // values that leave are counted or reported
	onRemove  func(key K, value V, cause Cause)

	capacity int // the hint, a shard's part
	weigher  func(key K, value V) uint32

	resizing  sync.Mutex // for the next two, and so that the shards' parts add up
	maxSize   int        // 0: not bounded
	maxWeight uint64

	start   time.Time
	clock   func() time.Time // nil: the system's
	coarse  *coarseClock     // nil: none
	jitter  float64          // the part of a TTL that chance may take
	sliding time.Duration

	scratch atomic.Pointer[scratch] // for one bulk call at a time
	loading[K]
}

// hitWork is what a hit has to do besides returning the value.
type hitWork uint8

const (
	countUse  hitWork = 1 << iota // in the node, for the policy
	countRead                     // hits and misses, for Stats
	slideTTL                      // the deadline
)

// New creates an empty cache. It allocates little: tables come with the first entries.
//
// It panics if a function among the options is not of the types that K and V make it,
// or if options contradict each other; their documentation says which.
func New[K comparable, V any](opts ...Option) *Cache[K, V] {
	c := new(Cache[K, V])
	c.init(newConfig(opts))
	return c
}

// init sets a new cache up.
func (c *Cache[K, V]) init(cfg config) {
	c.seed = maphash.MakeSeed()
	c.shards = make([]shard[K, V], cfg.shardCount())
	c.mask = uint32(len(c.shards) - 1)
	kind := noTail
	switch {
	case cfg.maxWeight > 0:
		kind = withHeavyTail
	case cfg.maxSize > 0:
		kind = withTail
	}
	c.layout = newLayout[K, V](kind)
	c.capacity = cfg.shardCapacity(len(c.shards))
	c.setFunctions(&cfg)
	c.setClock(&cfg)
	c.setLoading(&cfg)

	if kind != noTail {
		c.onHit |= countUse
	}
	if cfg.stats {
		c.onHit |= countRead
		c.reads = make([]readTally, len(c.shards))
	}
	if c.sliding > 0 {
		c.onHit |= slideTTL
	}
	c.watched = cfg.stats || c.onRemove != nil
	c.maxSize, c.maxWeight = cfg.maxSize, cfg.maxWeight
	for i := range c.shards {
		s := &c.shards[i]
		s.table.Store(noTable)
		s.limit = part(cfg.maxSize, i, len(c.shards))
		s.maxWeight = part(cfg.maxWeight, i, len(c.shards))
		if kind == noTail {
			continue
		}
		x := slots[K, V]{c, s}
		if cfg.policy == Clock {
			s.policy = policy.NewClock(x, s.limit)
		} else {
			s.policy = policy.NewWindow(x, s.limit)
		}
	}
}

// part divides a budget so that the parts of all n shards add up to it exactly.
func part[T int | uint64](budget T, shard, n int) T {
	p := budget / T(n)
	if T(shard) < budget%T(n) {
		p++
	}
	return p
}

func (c *Cache[K, V]) shardOf(h uint64) *shard[K, V] {
	return &c.shards[shardBits(h)&c.mask]
}

// Set adds or overwrites a single key/value pair with no expiry. It never reads a
// clock. Overwriting allocates nothing, unless V is larger than four words.
func (c *Cache[K, V]) Set(key K, value V) {
	c.set(key, value, 0)
}

// SetWithTTL adds or overwrites a single key/value pair that expires after ttl. ttl <=
// 0 means no expiry, same as [Cache.Set]. A ttl that reaches beyond what the clock can
// count, some 292 years, is as long as that.
func (c *Cache[K, V]) SetWithTTL(key K, value V, ttl time.Duration) {
	c.set(key, value, c.deadline(ttl))
}

func (c *Cache[K, V]) set(key K, value V, deadline int64) {
	h := c.hash(key)
	weight := uint32(0)
	if c.weigher != nil {
		weight = c.weigher(key, value)
	}
	s := c.shardOf(h)
	s.mu.Lock()
	c.put(s, h, key, value, deadline, weight)
	if s.gone != nil {
		c.unlock(s)
		return
	}
	s.mu.Unlock()
}

// Get returns the value stored for key, and whether it was found. An entry past its
// TTL is a miss, and is not removed: see [Cache.Purge].
//
// Get takes no lock, allocates nothing, and reads a clock only if the entry has a TTL.
// In a bounded cache a hit also counts as a use, which is a load and now and then a
// store.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	v, _, ok := c.lookup(key, c.onHit)
	return v, ok
}

// lookup returns the value and the deadline of a live entry. It is the whole of a Get:
// what it does in place, and the order of it, is there for speed.
func (c *Cache[K, V]) lookup(key K, work hitWork) (value V, deadline int64, ok bool) {
	h := maphash.Comparable(c.seed, key)
	t := c.shardOf(h).table.Load()
	b := t.At(t.Home(bucketBits(h)))
	w := b.Word()
	for m := table.Match(w, table.Tag(bucketBits(h))); m != 0; m &= m - 1 {
		n := (*node)(b.Entry(m))
		seq := n.seq.Load()
		d := n.deadline.Load()
		var valueBuf word.Cell[V]
		var keyBuf word.Cell[K]
		at := valueAt(n)
		word.LoadWord(0, c.values, &valueBuf, at)
		word.LoadWord(1, c.values, &valueBuf, at)
		word.LoadWord(2, c.values, &valueBuf, at)
		word.LoadWord(3, c.values, &valueBuf, at)
		v := word.Loaded(&valueBuf, at)
		at = c.keyAt(n)
		word.LoadWord(0, c.keys, &keyBuf, at)
		word.LoadWord(1, c.keys, &keyBuf, at)
		word.LoadWord(2, c.keys, &keyBuf, at)
		word.LoadWord(3, c.keys, &keyBuf, at)
		k := word.Loaded(&keyBuf, at)
		if seq&1 != 0 || n.seq.Load() != seq {
			// Being written, or written while we read. What we have is not a key or a
			// value and must not be looked at.
			return c.lookupFar(key, h, work)
		}
		if *k != key {
			continue
		}
		if d != 0 && c.now() >= d {
			return c.miss(h, work)
		}
		if work != 0 {
			c.hit(n, key, h, d, work)
		}
		return *v, d, true
	}
	if table.Overflowed(w) {
		return c.lookupFar(key, h, work)
	}
	return c.miss(h, work)
}

// lookupFar is lookup for what is not in its home bucket or is being written: it
// begins anew, and goes all the way.
func (c *Cache[K, V]) lookupFar(key K, h uint64, work hitWork) (value V, deadline int64, ok bool) {
	s := c.shardOf(h)
	t := s.table.Load()
	tag := table.Tag(bucketBits(h))
	i := t.Home(bucketBits(h))
	for range t.Buckets() {
		b := t.At(i)
		w := b.Word()
		for m := table.Match(w, tag); m != 0; m &= m - 1 {
			var keyBuf word.Cell[K]
			var valueBuf word.Cell[V]
			n := (*node)(b.Entry(m))
			r, ok := c.read(s, n, &keyBuf, &valueBuf)
			// A node that is free by now, or another key's, held ours some time ago at
			// most: then there was an instant without it since we began.
			if !ok || *r.key != key {
				continue
			}
			if c.expired(r.deadline) {
				return c.miss(h, work)
			}
			c.hit(n, key, h, r.deadline, work)
			return *r.value, r.deadline, true
		}
		if !table.Overflowed(w) {
			break
		}
		i = t.Next(i)
	}
	return c.miss(h, work)
}

// reading is what a node held at one instant.
type reading[K comparable, V any] struct {
	key      *K // in the buffer that was given for it, or in its box
	value    *V
	deadline int64
}

// readTries is how often a read tries to get past writers of a node before it takes
// the shard's lock. A writer that lost its core would keep it trying for long.
const readTries = 3

// read reads a node of the shard; ok is false if it is free.
func (c *Cache[K, V]) read(s *shard[K, V], n *node, keyBuf *word.Cell[K], valueBuf *word.Cell[V]) (r reading[K, V], ok bool) {
	for range readTries {
		seq := n.seq.Load()
		r = c.load(n, keyBuf, valueBuf)
		if seq&1 == 0 && n.seq.Load() == seq {
			return r, true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Nobody writes now: an odd count means that the node is free.
	if n.seq.Load()&1 != 0 {
		return r, false
	}
	return c.load(n, keyBuf, valueBuf), true
}

// load copies what is in a node, whether it is whole or not.
func (c *Cache[K, V]) load(n *node, keyBuf *word.Cell[K], valueBuf *word.Cell[V]) reading[K, V] {
	return reading[K, V]{
		deadline: n.deadline.Load(),
		value:    word.Load(c.values, valueBuf, valueAt(n)),
		key:      word.Load(c.keys, keyBuf, c.keyAt(n)),
	}
}

// hit does the work of a hit. The node may have become another key's by now: then that
// key gets a use too many.
func (c *Cache[K, V]) hit(n *node, key K, h uint64, deadline int64, work hitWork) {
	if work&countUse != 0 {
		t := c.tailOf(n)
		if u := t.uses.Load(); u < policy.MaxUses {
			t.uses.Store(u + 1)
		}
	}
	if work&countRead != 0 {
		c.reads[shardBits(h)&c.mask].hits.Add(1)
	}
	if work&slideTTL != 0 && deadline != 0 {
		c.slide(key, h, deadline)
	}
}

// miss does the work of a miss, and returns what lookup returns then.
func (c *Cache[K, V]) miss(h uint64, work hitWork) (value V, deadline int64, ok bool) {
	if work&countRead != 0 {
		c.reads[shardBits(h)&c.mask].misses.Add(1)
	}
	return value, 0, false
}

// Delete removes key from the cache, if present.
func (c *Cache[K, V]) Delete(key K) {
	h := c.hash(key)
	s := c.shardOf(h)
	s.mu.Lock()
	c.delete(s, h, key)
	c.unlock(s)
}

// delete removes the key. The shard is locked.
func (c *Cache[K, V]) delete(s *shard[K, V], h uint64, key K) {
	if s.flights != nil || c.absent != nil {
		c.invalidate(s, key)
	}
	if n := c.find(s, bucketBits(h), key); n != nil {
		c.remove(s, n, c.causeOf(n, Deleted))
	}
}

// Clear removes every entry. The memory of tables and entries is kept for later
// entries, so that filling the cache again costs no growth; what keys and values point
// to is free for the garbage collector. To give all of it back, drop the cache.
//
// It clears one shard after the other: a Set during Clear may survive or not.
func (c *Cache[K, V]) Clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		c.clear(s)
		c.unlock(s)
	}
	if c.absent != nil {
		c.absent.Clear()
	}
}

// Len returns the number of entries stored, including expired ones that were not
// purged yet. It costs a lock a shard, however many entries there are.
func (c *Cache[K, V]) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += s.count
		s.mu.Unlock()
	}
	return n
}

// Purge removes all expired entries and returns how many were removed. Nothing calls
// it for you: whoever stores entries with a TTL that nobody reads or writes again
// calls it from time to time, for example from a ticker of his own.
//
// It locks one shard at a time, and skips those where no TTL was used.
func (c *Cache[K, V]) Purge() int {
	purged := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		if s.timed {
			purged += c.purge(s)
		}
		c.unlock(s)
	}
	if c.absent != nil {
		c.absent.Purge()
	}
	return purged
}

func (c *Cache[K, V]) purge(s *shard[K, V]) int {
	purged, now := 0, c.now()
	s.each(func(n *node) {
		if d := n.deadline.Load(); d != 0 && now >= d {
			c.remove(s, n, Expired)
			purged++
		}
	})
	return purged
}

// Close stops the goroutine of [WithCoarseClock]; the cache goes on with an exact
// clock. Without that option there is nothing to close. Close may be called more than
// once, and need not be called: a cache that became garbage stops its goroutine.
func (c *Cache[K, V]) Close() {
	if c.coarse != nil {
		c.coarse.stop()
	}
}

func (c *Cache[K, V]) setClock(cfg *config) {
	c.clock, c.jitter, c.sliding = cfg.clock, cfg.jitter, cfg.sliding
	if c.clock != nil {
		c.start = c.clock()
		return
	}
	c.start = time.Now()
	if cfg.coarse > 0 {
		c.coarse = startCoarseClock(c.start, cfg.coarse)
		runtime.AddCleanup(c, (*coarseClock).stop, c.coarse)
	}
}
