package goache

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/hotset-go/hotset/goache/internal/policy"
	"github.com/hotset-go/hotset/goache/internal/table"
	"github.com/hotset-go/hotset/goache/internal/word"
)

// cacheLine is the unit in which cores take memory from each other. Apple's and some
// other arm64 have 128 bytes; amd64 prefetches pairs of 64.
const cacheLine = 128

// shard is a part of the cache with a lock of its own.
type shard[K comparable, V any] struct {
	shardRead
	_ [cacheLine - unsafe.Sizeof(shardRead{})%cacheLine]byte
	shardWrite[K, V]
	_ [cacheLine - unsafe.Sizeof(shardWrite[int, int]{})%cacheLine]byte
}

// shardRead is what readers need: its line is written only when the table grows.
type shardRead struct {
	table atomic.Pointer[table.Table]
}

// shardWrite is guarded by mu, unless it says otherwise.
type shardWrite[K comparable, V any] struct {
	mu    sync.Mutex
	count int     // entries stored
	room  int     // entries that the table takes
	limit int     // entries at most; 0: no limit
	timed bool    // an entry with a deadline was stored since the last Clear
	free  []*node // removed nodes: their seq is odd, their pointers are cleared

	chunks []unsafe.Pointer // all nodes; chunks of a bounded shard have boundedChunk nodes
	fresh  int              // nodes of the newest chunk that were never used
	size   int              // nodes of the newest chunk

	policy    policy.Policy // nil: unbounded
	now       int64         // while the policy looks for a victim: the clock, 0 when not read yet
	weight    uint64        // of all entries
	maxWeight uint64        // 0: not bounded by weight

	gone    []removal[K, V]  // for the caller of OnRemove, once the lock is free
	flights map[K]*flight[V] // loads under way; nil when there are none
	tally   tally
}

const (
	// boundedChunk is how many nodes a bounded shard makes at a time. A power of two:
	// their slot numbers are divided by it.
	boundedChunk = 128

	// An unbounded shard makes as many nodes as it has, within these limits: small
	// caches stay small, and large ones allocate once for 512 new keys.
	minChunk, maxChunk = 8, 512

	// firstRoom is the room in a shard's first table: two cache lines.
	firstRoom = 11
)

// noTable is the table of a shard without entries. It is never written.
var noTable = table.New(1)

func nodeHash(p unsafe.Pointer) uint32 { return (*node)(p).hash }

// find returns the node of the key, or nil. The shard is locked.
func (c *Cache[K, V]) find(s *shard[K, V], h uint32, key K) *node {
	t := s.table.Load()
	tag := table.Tag(h)
	i := t.Home(h)
	for range t.Buckets() {
		b := t.At(i)
		w := b.Word()
		for m := table.Match(w, tag); m != 0; m &= m - 1 {
			// Nobody writes while we hold the lock, so the key can be compared in
			// place.
			n := (*node)(b.Entry(m))
			if *word.Peek[K](c.keyAt(n)) == key {
				return n
			}
		}
		if !table.Overflowed(w) {
			break
		}
		i = t.Next(i)
	}
	return nil
}

// put stores the value under the key. The shard is locked.
func (c *Cache[K, V]) put(s *shard[K, V], h uint64, key K, value V, deadline int64, weight uint32) {
	if s.flights != nil || c.absent != nil {
		c.invalidate(s, key)
	}
	if n := c.find(s, bucketBits(h), key); n != nil {
		c.overwrite(s, n, value, deadline, weight)
		return
	}
	c.insert(s, bucketBits(h), key, value, deadline, weight)
}

// overwrite replaces the value and the deadline of a node. The shard is locked.
func (c *Cache[K, V]) overwrite(s *shard[K, V], n *node, value V, deadline int64, weight uint32) {
	if c.watched {
		c.observe(s, n, c.causeOf(n, Replaced))
		s.tally.sets++
	}
	if deadline == n.deadline.Load() && word.CellSize[V]() <= word.Size {
		// One word is never torn: no need to hold readers up.
		word.Store(c.values, valueAt(n), value)
	} else {
		n.begin()
		word.Store(c.values, valueAt(n), value)
		s.setDeadline(n, deadline)
		n.end()
	}
	if s.maxWeight != 0 {
		c.reweigh(s, n, weight)
	}
}

// setDeadline sets the deadline of a node that readers do not see.
func (s *shard[K, V]) setDeadline(n *node, deadline int64) {
	if deadline != n.deadline.Load() { // a store costs 2 ns, a load nothing
		n.deadline.Store(deadline)
	}
	if deadline != 0 {
		s.timed = true
	}
}

// insert adds a key that is not stored. The shard is locked.
func (c *Cache[K, V]) insert(s *shard[K, V], h uint32, key K, value V, deadline int64, weight uint32) {
	if c.watched {
		s.tally.sets++
	}
	var n *node
	if s.policy != nil {
		if s.maxWeight != 0 && uint64(weight) > s.maxWeight {
			c.refuse(s, key, value)
			return
		}
		n = c.makeRoom(s, weight)
	}
	if s.count >= s.room || s.table.Load().Worn() {
		c.grow(s)
	}
	if n == nil && len(s.free) > 0 {
		last := len(s.free) - 1
		n = s.free[last]
		s.free = s.free[:last]
	}
	if n != nil {
		n.hash = h
		word.Store(c.values, valueAt(n), value)
		word.Store(c.keys, c.keyAt(n), key)
		s.setDeadline(n, deadline)
		n.end()
	} else {
		n = c.newNode(s)
		n.hash = h
		word.Init(valueAt(n), value)
		word.Init(c.keyAt(n), key)
		s.setDeadline(n, deadline)
	}
	s.table.Load().Insert(h, unsafe.Pointer(n))
	s.count++
	if s.policy != nil {
		c.enroll(s, n, weight)
	}
}

// newNode returns a node that was never used. The shard is locked.
func (c *Cache[K, V]) newNode(s *shard[K, V]) *node {
	if s.fresh == 0 {
		s.size = boundedChunk
		if s.policy == nil {
			s.size = min(max(s.count, minChunk), maxChunk)
		}
		s.fresh = s.size
		s.chunks = append(s.chunks, c.chunk(s.size))
	}
	i := s.size - s.fresh
	s.fresh--
	n := c.at(s.chunks[len(s.chunks)-1], i)
	if s.policy != nil {
		c.tailOf(n).slot = uint32((len(s.chunks)-1)*boundedChunk + i)
	}
	return n
}

// grow replaces a table that is full, or worn by churn. Readers finish their walk in
// the old one. The shard is locked.
func (c *Cache[K, V]) grow(s *shard[K, V]) {
	var t *table.Table
	switch {
	case s.room == 0:
		t = table.New(max(c.capacity, firstRoom))
	case s.count >= s.room:
		n := 2 * s.room
		if s.limit > s.room {
			n = min(n, table.RoomWorn(s.limit)) // it will be full, and churn
		}
		t = s.table.Load().Grown(n, nodeHash)
	default:
		t = s.table.Load().Grown(table.RoomWorn(s.count), nodeHash)
	}
	s.room = t.Room()
	s.table.Store(t)
	if s.maxWeight != 0 {
		// How many entries a weight is, only time tells.
		s.policy.Resize(s.room)
	}
}

// unlink takes a node out of the table. Readers do not see it any more, nobody has
// used it yet for anything else. The shard is locked.
func (c *Cache[K, V]) unlink(s *shard[K, V], n *node, cause Cause) {
	if c.watched {
		c.observe(s, n, cause)
	}
	s.table.Load().Remove(n.hash, unsafe.Pointer(n))
	n.begin()
	s.count--
	if s.maxWeight != 0 {
		s.weight -= uint64(c.heavyTailOf(n).weight)
	}
}

// release lets an unlinked node be used again. The shard is locked.
func (c *Cache[K, V]) release(s *shard[K, V], n *node) {
	word.Clear[V](c.values, valueAt(n))
	word.Clear[K](c.keys, c.keyAt(n))
	s.free = append(s.free, n)
}

// remove deletes a node. The shard is locked.
func (c *Cache[K, V]) remove(s *shard[K, V], n *node, cause Cause) {
	if s.policy != nil && !c.pinned(s, n) {
		s.policy.Remove(c.tailOf(n).slot)
	}
	c.unlink(s, n, cause)
	c.release(s, n)
}

// each calls f with every node of a locked shard. f may remove the node.
func (s *shard[K, V]) each(f func(n *node)) {
	t := s.table.Load()
	for i := range t.Buckets() {
		b := t.At(uint32(i))
		for m := table.Used(b.Word()); m != 0; m &= m - 1 {
			f((*node)(b.Entry(m)))
		}
	}
}

// clear removes all entries and keeps table and nodes for others. The shard is locked.
func (c *Cache[K, V]) clear(s *shard[K, V]) {
	s.invalidateAll()
	if s.count == 0 {
		return
	}
	s.each(func(n *node) {
		if c.watched {
			c.observe(s, n, c.causeOf(n, Cleared))
		}
		n.begin()
		c.release(s, n)
	})
	s.table.Load().Clear()
	if s.policy != nil {
		s.policy.Clear()
	}
	s.count, s.weight, s.timed = 0, 0, false
}
