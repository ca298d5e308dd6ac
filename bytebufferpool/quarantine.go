package bytebufferpool

import "sync"

// quarantine holds released storage back, first in first out. What it holds is
// idle and has its reservation, but nobody can acquire it.
type quarantine struct {
	limit int // immutable after New

	mu    sync.Mutex // taken after the lock of a shard
	queue []struct { // guarded by mu, the oldest first
		stored
		class uint8
	}
}

// exchange holds s and returns the storage whose time is over, with its class;
// done when there is none.
func (q *quarantine) exchange(s stored, class uint8) (out stored, outClass uint8, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, struct {
		stored
		class uint8
	}{s, class})
	if len(q.queue) <= q.limit {
		return stored{}, 0, true
	}
	oldest := q.queue[0]
	q.queue = dropFirst(q.queue, 1)
	return oldest.stored, oldest.class, false
}

// idle adds what is held to count.
func (q *quarantine) idle(count []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.queue {
		count[s.class]++
	}
}

// drop drops the oldest until over bytes are dropped, and returns how many were.
// The pool is frozen.
func (q *quarantine) drop(c *core, over int) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.queue) && dropped < over; n++ {
		capacity := c.classes.capacity[q.queue[n].class]
		c.unreserve(capacity)
		dropped += capacity
	}
	q.queue = dropFirst(q.queue, n)
	return dropped
}
