package goache

import "time"

// Peek is [Cache.Get] without its side effects: it counts neither as a use for
// eviction nor in [Cache.Stats], and moves no deadline.
func (c *Cache[K, V]) Peek(key K) (V, bool) {
	v, _, ok := c.lookup(key, 0)
	return v, ok
}

// GetWithTTL is [Cache.Get] that also returns how long the entry has to live: at least
// a nanosecond, or 0 if it never expires.
func (c *Cache[K, V]) GetWithTTL(key K) (value V, left time.Duration, ok bool) {
	value, deadline, ok := c.lookup(key, c.onHit&^slideTTL)
	if deadline != 0 {
		// The clock went on since lookup read it.
		left = max(remaining(deadline, c.now()), 1)
	}
	return value, left, ok
}

// Touch gives the entry of the key a new TTL that begins now, none if ttl <= 0, and
// reports whether there is one. An entry that has expired stays so.
func (c *Cache[K, V]) Touch(key K, ttl time.Duration) bool {
	h := c.hash(key)
	deadline := c.deadline(ttl)
	s := c.shardOf(h)
	s.mu.Lock()
	n, ok := c.live(s, h, key)
	if ok {
		s.move(n, deadline)
	}
	s.mu.Unlock()
	return ok
}

// move changes the deadline of a node that readers see. The shard is locked.
func (s *shard[K, V]) move(n *node, deadline int64) {
	if deadline == n.deadline.Load() {
		return
	}
	n.begin()
	s.setDeadline(n, deadline)
	n.end()
}

// slideStep is the part of a sliding TTL, as a divisor, by which a deadline moves at
// least. A hit that moves one takes a lock.
const slideStep = 16

// slide moves the deadline of an entry that was hit, if it is worth it.
func (c *Cache[K, V]) slide(key K, h uint64, deadline int64) {
	now := c.now()
	to := c.deadlineFrom(now, c.sliding)
	if to-deadline < int64(c.sliding/slideStep) {
		return
	}
	s := c.shardOf(h)
	s.mu.Lock()
	if n, ok := c.live(s, h, key); ok {
		if d := n.deadline.Load(); d != 0 && d < to {
			s.move(n, to)
		}
	}
	s.mu.Unlock()
}
