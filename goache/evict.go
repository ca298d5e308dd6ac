package goache

// Bounded caches: who leaves, and how much there may be.

import "github.com/hotset-go/hotset/goache/internal/policy"

// slots shows the nodes of a locked shard to its policy.
type slots[K comparable, V any] struct {
	c *Cache[K, V]
	s *shard[K, V]
}

var _ policy.Slots = slots[int, int]{}

func (x slots[K, V]) node(slot uint32) *node {
	return x.c.at(x.s.chunks[slot/boundedChunk], int(slot%boundedChunk))
}

// Look implements policy.Slots.
func (x slots[K, V]) Look(slot uint32) (hash, uses uint32, expired bool) {
	n := x.node(slot)
	if d := n.deadline.Load(); d != 0 {
		if x.s.now == 0 {
			x.s.now = x.c.now()
		}
		expired = x.s.now >= d
	}
	return n.hash, x.c.tailOf(n).uses.Load(), expired
}

// SetUses implements policy.Slots.
func (x slots[K, V]) SetUses(slot, uses uint32) { x.c.tailOf(x.node(slot)).uses.Store(uses) }

// full reports whether an entry of the weight does not fit. The shard is locked.
func (s *shard[K, V]) full(weight uint32) bool {
	return s.limit != 0 && s.count >= s.limit || s.maxWeight != 0 && s.weight+uint64(weight) > s.maxWeight
}

// makeRoom evicts until one more entry of the weight fits. It returns a node that was
// evicted and not released, if there is one. The shard is locked.
func (c *Cache[K, V]) makeRoom(s *shard[K, V], weight uint32) *node {
	var spare *node
	s.now = 0
	for s.full(weight) {
		n := c.evict(s)
		if n == nil {
			break // what is left is pinned, and weighs nothing
		}
		if spare != nil {
			c.release(s, spare)
		}
		spare = n
	}
	return spare
}

// evict unlinks the entry that the policy chooses; nil if there is none. The shard is
// locked.
func (c *Cache[K, V]) evict(s *shard[K, V]) *node {
	slot, ok := s.policy.Victim()
	if !ok {
		return nil
	}
	n := slots[K, V]{c, s}.node(slot)
	c.unlink(s, n, c.causeOf(n, Evicted))
	return n
}

// enroll hands a new entry to the policy. The shard is locked.
func (c *Cache[K, V]) enroll(s *shard[K, V], n *node, weight uint32) {
	t := c.tailOf(n)
	if t.uses.Load() != 0 {
		t.uses.Store(0)
	}
	if s.maxWeight != 0 {
		c.heavyTailOf(n).weight = weight
		s.weight += uint64(weight)
		if weight == 0 {
			return // pinned
		}
	}
	s.policy.Add(t.slot, n.hash)
}

// pinned reports whether the policy does not know the node. The shard is locked and
// bounded.
func (c *Cache[K, V]) pinned(s *shard[K, V], n *node) bool {
	return s.maxWeight != 0 && c.heavyTailOf(n).weight == 0
}

// reweigh gives the overwritten node its new weight, and evicts what does not fit any
// more: others first, the node itself only if it does not fit alone. The shard is
// locked.
func (c *Cache[K, V]) reweigh(s *shard[K, V], n *node, weight uint32) {
	t := c.heavyTailOf(n)
	if weight == t.weight {
		return
	}
	if t.weight != 0 {
		s.policy.Remove(t.slot)
	}
	s.weight -= uint64(t.weight)
	t.weight = 0 // out of the policy's sight
	if uint64(weight) > s.maxWeight {
		c.remove(s, n, Evicted)
		return
	}
	if spare := c.makeRoom(s, weight); spare != nil {
		c.release(s, spare)
	}
	c.enroll(s, n, weight)
}

// refuse is the end of a value that is heavier than all that the shard may hold.
func (c *Cache[K, V]) refuse(s *shard[K, V], key K, value V) {
	if c.watched {
		c.note(s, key, value, Evicted)
	}
}

// shrink evicts until the shard is within its limits. The shard is locked.
func (c *Cache[K, V]) shrink(s *shard[K, V]) {
	s.now = 0
	for s.limit != 0 && s.count > s.limit || s.maxWeight != 0 && s.weight > s.maxWeight {
		n := c.evict(s)
		if n == nil {
			return
		}
		c.release(s, n)
	}
}
