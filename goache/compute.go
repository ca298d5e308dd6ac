package goache

import (
	"strconv"
	"time"

	"github.com/hotset-go/hotset/goache/internal/word"
)

// Operations that read and write one key in one step. They find an expired entry
// absent.

// SetIfAbsent stores the value, without expiry, if the key has none. It returns the
// value that is now there, and whether it was stored by this call.
func (c *Cache[K, V]) SetIfAbsent(key K, value V) (actual V, stored bool) {
	return c.setIfAbsent(key, value, 0)
}

// SetIfAbsentWithTTL is [Cache.SetIfAbsent] with an expiry for the value that it
// stores; ttl <= 0 means none. The TTL of a value that is there already stays.
func (c *Cache[K, V]) SetIfAbsentWithTTL(key K, value V, ttl time.Duration) (actual V, stored bool) {
	return c.setIfAbsent(key, value, c.deadline(ttl))
}

func (c *Cache[K, V]) setIfAbsent(key K, value V, deadline int64) (V, bool) {
	h := c.hash(key)
	weight := c.weigh(key, value)
	s := c.shardOf(h)
	s.mu.Lock()
	if old, ok := c.live(s, h, key); ok {
		actual := *word.Peek[V](valueAt(old))
		s.mu.Unlock()
		return actual, false
	}
	c.put(s, h, key, value, deadline, weight)
	c.unlock(s)
	return value, true
}

// Replace overwrites the value of a key that has one, and reports whether it did. The
// TTL of the entry stays as it is.
func (c *Cache[K, V]) Replace(key K, value V) bool {
	h := c.hash(key)
	weight := c.weigh(key, value)
	s := c.shardOf(h)
	s.mu.Lock()
	n, ok := c.live(s, h, key)
	if ok {
		c.put(s, h, key, value, n.deadline.Load(), weight)
	}
	c.unlock(s)
	return ok
}

// CompareAndSwap stores value under the key if old is there, and reports whether it
// did. The TTL of the entry stays as it is. It is a function since only it, and not
// the cache, needs values that can be compared; a [SingleCoreCache] is passed as
// &c.Cache.
func CompareAndSwap[K, V comparable](c *Cache[K, V], key K, old, value V) bool {
	h := c.hash(key)
	weight := c.weigh(key, value)
	s := c.shardOf(h)
	s.mu.Lock()
	defer c.unlock(s) // the comparison of values may panic
	n, ok := c.live(s, h, key)
	if !ok || *word.Peek[V](valueAt(n)) != old {
		return false
	}
	c.put(s, h, key, value, n.deadline.Load(), weight)
	return true
}

// CompareAndDelete removes the key if old is its value, and reports whether it did.
func CompareAndDelete[K, V comparable](c *Cache[K, V], key K, old V) bool {
	h := c.hash(key)
	s := c.shardOf(h)
	s.mu.Lock()
	defer c.unlock(s)
	n, ok := c.live(s, h, key)
	if !ok || *word.Peek[V](valueAt(n)) != old {
		return false
	}
	c.delete(s, h, key)
	return true
}

// GetAndDelete removes the key and returns the value that it had.
func (c *Cache[K, V]) GetAndDelete(key K) (value V, ok bool) {
	h := c.hash(key)
	s := c.shardOf(h)
	s.mu.Lock()
	if n, found := c.live(s, h, key); found {
		value, ok = *word.Peek[V](valueAt(n)), true
	}
	c.delete(s, h, key)
	c.unlock(s)
	return value, ok
}

// Op is what the function of [Cache.Compute] wants done.
type Op uint8

// The operations.
const (
	Keep   Op = iota // leave the entry, or its absence, as it is
	Store            // store the returned value
	Remove           // delete the entry, if there is one
)

// String returns the operation's name.
func (o Op) String() string {
	switch o {
	case Keep:
		return "Keep"
	case Store:
		return "Store"
	case Remove:
		return "Remove"
	}
	return "Op(" + strconv.Itoa(int(o)) + ")"
}

// Compute calls f with the value of the key, or with ok false when there is none, and
// does what f says. It returns the value that is there afterwards, if any. A stored
// value keeps the TTL of the one it follows, or has none.
//
// Nobody else writes the key, or any other of its shard, meanwhile; reads go on. So f
// must be quick, and must not call the cache, or it may wait for itself. If f panics
// or ends its goroutine, nothing changes. An unknown Op counts as Keep.
func (c *Cache[K, V]) Compute(key K, f func(old V, ok bool) (V, Op)) (value V, ok bool) {
	h := c.hash(key)
	s := c.shardOf(h)
	s.mu.Lock()
	defer c.unlock(s)
	var old V
	var deadline int64
	n, found := c.live(s, h, key)
	if found {
		old, deadline = *word.Peek[V](valueAt(n)), n.deadline.Load()
	}
	value, op := f(old, found)
	switch op {
	case Store:
		c.put(s, h, key, value, deadline, c.weigh(key, value))
		return value, true
	case Remove:
		c.delete(s, h, key)
		var zero V
		return zero, false
	default:
		return old, found
	}
}

// live returns the node of a key that has not expired. The shard is locked.
func (c *Cache[K, V]) live(s *shard[K, V], h uint64, key K) (*node, bool) {
	n := c.find(s, bucketBits(h), key)
	return n, n != nil && !c.expired(n.deadline.Load())
}
