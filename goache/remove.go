package goache

import (
	"strconv"

	"github.com/hotset-go/hotset/goache/internal/word"
)

// Cause is why a value left the cache.
type Cause uint8

// The causes. A value that had expired before something else happened to it left
// because it Expired, whatever that was.
const (
	Replaced Cause = iota // a write stored another value under the key
	Deleted               // Delete, DeleteMany, DeleteFunc, GetAndDelete, Compute
	Expired               // its deadline had come when it was purged, evicted or written over
	Evicted               // a bound of the cache was reached
	Cleared               // Clear
	causes
)

// String returns the cause's name.
func (c Cause) String() string {
	switch c {
	case Replaced:
		return "Replaced"
	case Deleted:
		return "Deleted"
	case Expired:
		return "Expired"
	case Evicted:
		return "Evicted"
	case Cleared:
		return "Cleared"
	}
	return "Cause(" + strconv.Itoa(int(c)) + ")"
}

// removal is a call of OnRemove that is due.
type removal[K comparable, V any] struct {
	key   K
	value V
	cause Cause
}

// causeOf returns Expired for an expired node and else the cause.
func (c *Cache[K, V]) causeOf(n *node, cause Cause) Cause {
	if c.watched && c.expired(n.deadline.Load()) {
		return Expired
	}
	return cause
}

// observe notes that a node's value leaves. The shard is locked, and the cache
// watched.
func (c *Cache[K, V]) observe(s *shard[K, V], n *node, cause Cause) {
	c.note(s, *word.Peek[K](c.keyAt(n)), *word.Peek[V](valueAt(n)), cause)
}

// note notes that a value leaves. The shard is locked, and the cache watched.
func (c *Cache[K, V]) note(s *shard[K, V], key K, value V, cause Cause) {
	s.tally.removed[cause]++
	if c.onRemove != nil {
		s.gone = append(s.gone, removal[K, V]{key, value, cause})
	}
}

// unlock unlocks the shard and then calls OnRemove for what left it.
func (c *Cache[K, V]) unlock(s *shard[K, V]) {
	if s.gone == nil {
		s.mu.Unlock()
		return
	}
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()
	c.notify(gone)
}

// notify calls OnRemove for each of gone, also when a call panics or ends its
// goroutine.
func (c *Cache[K, V]) notify(gone []removal[K, V]) {
	defer func() {
		if len(gone) > 0 {
			c.notify(gone)
		}
	}()
	for len(gone) > 0 {
		r := gone[0]
		gone = gone[1:]
		c.onRemove(r.key, r.value, r.cause)
	}
}
