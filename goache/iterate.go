package goache

import (
	"iter"

	"github.com/hotset-go/hotset/goache/internal/table"
	"github.com/hotset-go/hotset/goache/internal/word"
)

// All returns an iterator over the live entries, in no order.
//
// It holds no lock while the loop's body runs, so the body may call the cache. An
// entry that is there from the begin to the end of the loop comes exactly once; one
// that is stored, changed or removed meanwhile may come or not, and a key that is
// removed and stored again may come twice. It counts neither as use nor as read, and
// can be used several times.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range c.shards {
			if !c.iterate(&c.shards[i], yield) {
				return
			}
		}
	}
}

// Keys is [Cache.All] for keys only.
func (c *Cache[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		c.All()(func(key K, _ V) bool { return yield(key) })
	}
}

// iterate yields the entries of one shard, from one table: entries that come while it
// runs may be in a newer one.
func (c *Cache[K, V]) iterate(s *shard[K, V], yield func(K, V) bool) bool {
	t := s.table.Load()
	for i := range t.Buckets() {
		b := t.At(uint32(i))
		for m := table.Used(b.Word()); m != 0; m &= m - 1 {
			var keyBuf word.Cell[K]
			var valueBuf word.Cell[V]
			e, ok := c.read(s, (*node)(b.Entry(m)), &keyBuf, &valueBuf)
			if ok && !c.expired(e.deadline) && !yield(*e.key, *e.value) {
				return false
			}
		}
	}
	return true
}

// DeleteFunc removes the live entries for which f returns true, and returns how many
// it removed. Entries come to f as in [Cache.All], with no lock held.
//
// An entry is removed only if it still holds what f saw: the same words, so for a
// string, slice or pointer the same memory. One that was stored anew meanwhile stays.
func (c *Cache[K, V]) DeleteFunc(f func(key K, value V) bool) int {
	removed := 0
	for i := range c.shards {
		s := &c.shards[i]
		t := s.table.Load()
		for j := range t.Buckets() {
			b := t.At(uint32(j))
			for m := table.Used(b.Word()); m != 0; m &= m - 1 {
				var keyBuf word.Cell[K]
				var valueBuf word.Cell[V]
				n := (*node)(b.Entry(m))
				seen, ok := c.read(s, n, &keyBuf, &valueBuf)
				if ok && !c.expired(seen.deadline) && f(*seen.key, *seen.value) && c.removeSeen(s, n, seen) {
					removed++
				}
			}
		}
	}
	return removed
}

// removeSeen removes a node if it holds what was read from it.
func (c *Cache[K, V]) removeSeen(s *shard[K, V], n *node, seen reading[K, V]) bool {
	s.mu.Lock()
	defer c.unlock(s)
	if n.seq.Load()&1 != 0 {
		return false
	}
	var keyBuf word.Cell[K]
	var valueBuf word.Cell[V]
	// Words and not ==: the keys may be NaN, and the values need not be comparable.
	if !word.Same(seen.key, word.Load(c.keys, &keyBuf, c.keyAt(n))) ||
		!word.Same(seen.value, word.Load(c.values, &valueBuf, valueAt(n))) {
		return false
	}
	if s.flights != nil || c.absent != nil {
		c.invalidate(s, *seen.key)
	}
	c.remove(s, n, c.causeOf(n, Deleted))
	return true
}
