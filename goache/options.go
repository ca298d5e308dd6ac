package goache

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"runtime"
	"strconv"
	"time"
)

// Option configures a cache created with [New] or [NewSingleCore]. One slice of
// options can be passed to both, and to caches of different types unless it holds a
// function: that must fit the cache's types.
type Option func(*config)

// config is what the options say. Functions are generic, and options are not: so they
// are held as any and checked by New.
type config struct {
	single    bool // NewSingleCore
	shards    int  // 0: not set
	capacity  int
	maxSize   int
	maxWeight uint64
	weigher   any
	policy    Policy

	onRemove any
	stats    bool

	clock   func() time.Time
	coarse  time.Duration
	jitter  float64
	sliding time.Duration

	loadTTL      time.Duration
	negativeTTL  time.Duration
	refreshAfter time.Duration
	loadTimeout  time.Duration
}

// defaultLoadTimeout bounds a load when nothing else does.
const defaultLoadTimeout = 30 * time.Second

func newConfig(opts []Option) config {
	cfg := config{loadTimeout: defaultLoadTimeout}
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	switch {
	case cfg.maxWeight > 0 && cfg.maxSize > 0:
		panic("goache: WithMaxSize and WithMaxWeight exclude each other")
	case cfg.maxWeight > 0 && cfg.weigher == nil:
		panic("goache: WithMaxWeight needs WithWeigher")
	case cfg.clock != nil && cfg.coarse > 0:
		panic("goache: WithClock and WithCoarseClock exclude each other")
	case cfg.refreshAfter > 0 && cfg.refreshAfter >= cfg.loadTTL:
		panic(fmt.Sprintf("goache: WithRefreshAfter(%v) must be less than WithLoadTTL(%v)", cfg.refreshAfter, cfg.loadTTL))
	}
	return cfg
}

const (
	// Writers of a shard exclude each other, readers do not: four shards a core make
	// it rare that two of the cores' writers meet, and at 1 to 2 cores 16 were as good
	// as or better than 256.
	shardsPerCore = 4
	minShards     = 16

	// maxShards is far beyond what any machine needs. It keeps a typing error from
	// allocating gigabytes.
	maxShards = 1 << 16

	// minDomain is the smallest number of entries that a policy chooses among, unless
	// WithShardCount asks for more shards. Over 256 shards a bound of 300 costs up to
	// 7 points of hit ratio.
	minDomain = 64

	// maxCapacity bounds what a hint alone may allocate: some 200 MB.
	maxCapacity = 1 << 24
)

// shardCount returns a power of two.
func (c *config) shardCount() int {
	if c.single {
		return 1
	}
	n, least := ceilPow2(max(shardsPerCore*runtime.GOMAXPROCS(0), minShards)), minDomain
	if c.shards > 0 {
		n, least = ceilPow2(min(c.shards, maxShards)), 1
	}
	if c.maxSize > 0 {
		n = min(n, floorPow2(max(c.maxSize/least, 1)))
	}
	if c.maxWeight > 0 {
		n = min(n, floorPow2(int(min(c.maxWeight, maxShards))))
	}
	return n
}

// shardCapacity returns a shard's part of the hint, with room for the spread of
// hashes: three standard deviations.
func (c *config) shardCapacity(shards int) int {
	n := min(max(c.capacity, 0), maxCapacity)
	if c.maxSize > 0 {
		n = min(n, c.maxSize)
	}
	if n == 0 || shards == 1 {
		return n
	}
	mean := float64(n) / float64(shards)
	return int(math.Ceil(mean + 3*math.Sqrt(mean)))
}

func ceilPow2(n int) int  { return 1 << bits.Len(uint(n-1)) }
func floorPow2(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// WithShardCount sets the number of shards, each with a lock for writers. It is
// rounded up to a power of two, and ignored if n <= 0. More shards let more writers
// work at the same time and cost 256 bytes each; readers never wait for a lock.
//
// The default is four for each core (GOMAXPROCS when the cache is made), at least 16,
// and with [WithMaxSize] so few that each has at least 64 entries to choose from when
// it evicts. An explicit count may go down to one entry a shard, at the price of hit
// ratio. [NewSingleCore] ignores it.
func WithShardCount(n int) Option {
	return func(c *config) {
		if n > 0 {
			c.shards = n
		}
	}
}

// WithCapacity sizes the tables for roughly n entries, split evenly across the shards,
// so that loading that many does not grow them step by step. A shard allocates when
// its first entry comes. Ignored if n <= 0; a hint above 16 million counts as that.
func WithCapacity(n int) Option {
	return func(c *config) {
		if n > 0 {
			c.capacity = n
		}
	}
}

// WithMaxSize bounds the cache to at most n entries. When a shard is full, storing a
// new key evicts another one ([WithPolicy]). Ignored if n <= 0: no limit and no
// eviction.
//
// n is a hard upper bound: it is split across shards so that their limits add up to
// exactly n, and Len never exceeds it. Since keys are spread by hash and not perfectly
// evenly, a shard can be full while others have room, so a cache under churn settles
// somewhat below n. If n is smaller than the shard count, the count is lowered to the
// largest power of two that is not above n.
//
// Every Set lands: a value is there right after it was stored, and stays until later
// writes to its shard push it out.
//
// An entry takes 8 bytes more than in an unbounded cache, and the policy another 12 to
// 16.
func WithMaxSize(n int) Option {
	return func(c *config) {
		if n > 0 {
			c.maxSize = n
		}
	}
}

// Policy is the order in which a bounded cache evicts.
type Policy uint8

// The policies.
const (
	// WindowTinyLFU is the default: new entries pass a window of a tenth of the cache,
	// and stay only if they are asked for more often than what they would displace, as
	// a sketch of the past remembers.
	WindowTinyLFU Policy = iota

	// Clock is a second-chance approximation of LRU with a count of up to three
	// chances. It needs no sketch and adapts at once, and is lost in loops and scans
	// that are longer than the cache.
	Clock
)

// String returns the policy's name.
func (p Policy) String() string {
	switch p {
	case WindowTinyLFU:
		return "WindowTinyLFU"
	case Clock:
		return "Clock"
	}
	return "Policy(" + strconv.Itoa(int(p)) + ")"
}

// WithPolicy chooses how a bounded cache evicts; the default is [WindowTinyLFU]. It
// has no effect without a bound, and an unknown policy counts as the default.
func WithPolicy(p Policy) Option {
	return func(c *config) { c.policy = p }
}

// WithMaxWeight bounds the sum of the weights that the weigher gives ([WithWeigher])
// instead of the number of entries. It cannot be combined with [WithMaxSize]; New
// panics. Ignored if n is 0.
//
// n is a hard upper bound, split across shards like that of WithMaxSize: a value that
// is heavier than its shard's part cannot be kept, and leaves again within its Set
// (cause [Evicted]). With few and heavy values, use few shards ([WithShardCount]).
func WithMaxWeight(n uint64) Option {
	return func(c *config) { c.maxWeight = n }
}

// WithWeigher sets the function that weighs each value for [WithMaxWeight] when it is
// stored. A weight of 0 pins the entry: it is never evicted, and only expires or is
// deleted.
//
// weigh is called by the writer, once for each value, outside locks except in
// [Cache.Compute]. It must not call the cache there. If it panics, nothing is stored.
// nil is ignored.
func WithWeigher[K comparable, V any](weigh func(key K, value V) uint32) Option {
	return func(c *config) {
		if weigh != nil {
			c.weigher = weigh
		}
	}
}

// WithOnRemove sets a function that is called exactly once for each value that leaves
// the cache, with the cause.
//
// It is called by the goroutine whose call removed the value, before that call returns
// and with no lock held, so it may call the cache. When several goroutines remove at
// once, calls may come in another order than the removals. Reads never remove
// anything. If it panics, the panic reaches the caller of the cache once all removals
// of the shard were reported; what a bulk call had not done by then stays undone. nil
// is ignored.
//
// A write that replaces, and an eviction, read the clock to tell [Expired] from other
// causes, if the entry had a TTL.
func WithOnRemove[K comparable, V any](f func(key K, value V, cause Cause)) Option {
	return func(c *config) {
		if f != nil {
			c.onRemove = f
		}
	}
}

// WithStats turns on counting, for [Cache.Stats]. It costs an atomic addition a read,
// 2 to 6 ns without contention, on a cache line that the readers of a shard share.
func WithStats() Option {
	return func(c *config) { c.stats = true }
}

// WithClock replaces the clock, for tests: deadlines are computed and checked by the
// times that now returns. It may be called at any time by any goroutine, with locks
// held, and must not call the cache. nil is ignored.
//
// Tests with testing/synctest need no clock of their own.
func WithClock(now func() time.Time) Option {
	return func(c *config) {
		if now != nil {
			c.clock = now
		}
	}
}

// WithCoarseClock reads the time from a counter that a goroutine sets every step,
// which takes the cost of a clock from reads of entries with a TTL and from
// SetWithTTL: some 25 ns each. Deadlines are then off by up to a step, and by as much
// as the goroutine comes late, in both directions. Ignored if step <= 0.
//
// The goroutine ends at [Cache.Close], or when the cache is garbage. It is the only
// one that a cache keeps; loading has goroutines that end with the load. It cannot be
// combined with [WithClock]; New panics.
func WithCoarseClock(step time.Duration) Option {
	return func(c *config) { c.coarse = step }
}

// WithTTLJitter shortens each TTL by a random part of itself, up to the fraction, so
// that entries that were stored together do not expire together. It is limited to 0
// (the default, no cost) to 1; NaN counts as 0.
func WithTTLJitter(fraction float64) Option {
	return func(c *config) {
		if fraction > 0 {
			c.jitter = min(fraction, 1)
		}
	}
}

// WithSlidingTTL lets entries live on while they are used: a hit on an entry that has
// a TTL moves its deadline to ttl from now, if that is later. Ignored if ttl <= 0.
//
// To keep hits cheap, the deadline is moved only by a sixteenth of ttl or more: an
// entry may expire up to that much too early. Such a hit takes the shard's lock. Peek,
// GetWithTTL and iteration do not move deadlines.
func WithSlidingTTL(ttl time.Duration) Option {
	return func(c *config) { c.sliding = ttl }
}

// WithLoadTTL sets the TTL of values that a load function returned. The default, and
// ttl <= 0, is no expiry.
func WithLoadTTL(ttl time.Duration) Option {
	return func(c *config) { c.loadTTL = ttl }
}

// WithNegativeTTL remembers for ttl that a load function found nothing
// ([ErrNotFound]): until then GetOrLoad returns the same without a load. A Set, Delete
// or Clear ends that earlier. The default, and ttl <= 0, is not to remember.
//
// The keys are kept apart from the entries, at most as many as WithMaxSize says, or
// 65,536, and do not count in Len. Writes cost about 30 ns more.
func WithNegativeTTL(ttl time.Duration) Option {
	return func(c *config) { c.negativeTTL = ttl }
}

// WithRefreshAfter reloads a loaded value in the background when GetOrLoad hits it
// later than d after its load. The hit returns the value that is there, and so do
// others until the new one has come. When the reload fails, the old value stays until
// it expires, and the next hit tries again; when it finds nothing ([ErrNotFound]), the
// value is removed.
//
// It needs [WithLoadTTL], and d must be less than that; New panics. Ignored if d <= 0.
// Entries of Set have no time of load: for them it is their deadline less the load
// TTL.
func WithRefreshAfter(d time.Duration) Option {
	return func(c *config) { c.refreshAfter = d }
}

// WithLoadTimeout bounds the context that a load function gets. The default is 30
// seconds; d <= 0 removes the bound.
func WithLoadTimeout(d time.Duration) Option {
	return func(c *config) { c.loadTimeout = d }
}

// setFunctions takes the functions of the options over, whose types the compiler could
// not check.
func (c *Cache[K, V]) setFunctions(cfg *config) {
	c.weigher = function[func(K, V) uint32]("WithWeigher", cfg.weigher)
	c.onRemove = function[func(K, V, Cause)]("WithOnRemove", cfg.onRemove)
	if cfg.maxWeight == 0 {
		c.weigher = nil // nobody would look at the weights
	}
}

// function returns the option's value as an F, nil if there is none.
func function[F any](option string, value any) F {
	var none F
	if value == nil {
		return none
	}
	f, ok := value.(F)
	if !ok {
		panic(fmt.Sprintf("goache: %s has a %T, this cache needs a %v", option, value, reflect.TypeFor[F]()))
	}
	return f
}
