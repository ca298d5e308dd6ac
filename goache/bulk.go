package goache

import "time"

// Entry is a key/value pair of bulk operations. A TTL of zero or less means no expiry;
// a positive one counts from the call of SetMany.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
	TTL   time.Duration
}

// SetMany adds or overwrites 1..N key/value pairs, each optionally expiring per its
// own [Entry.TTL]. If a key occurs twice, the later entry wins.
//
// Entries are grouped by shard, so each lock is taken at most once a call. The clock
// is read at most once, and only if there is a positive TTL. Repeated calls allocate
// nothing, unless several run at the same time. It is not atomic as a whole: others
// may see some of the pairs before the rest.
func (c *Cache[K, V]) SetMany(entries []Entry[K, V]) {
	if len(entries) == 0 {
		return
	}
	b := c.borrowScratch()
	now, timed := int64(0), false
	for i := range entries {
		e := &entries[i]
		b.hashes = append(b.hashes, c.hash(e.Key))
		if c.weigher != nil {
			b.weights = append(b.weights, c.weigher(e.Key, e.Value))
		}
		timed = timed || e.TTL > 0
	}
	if timed {
		now = c.now()
	}
	b.group(len(c.shards))
	for i, from := 0, 0; i < len(c.shards); i++ {
		to := b.ends[i]
		if from == to {
			continue
		}
		s := &c.shards[i]
		s.mu.Lock()
		for _, j := range b.order[from:to] {
			e := &entries[j]
			weight := uint32(0)
			if c.weigher != nil {
				weight = b.weights[j]
			}
			c.put(s, b.hashes[j], e.Key, e.Value, c.deadlineFrom(now, e.TTL), weight)
		}
		c.unlock(s)
		from = to
	}
	c.returnScratch(b)
}

// DeleteMany removes 1..N keys, skipping those that are not present. Like
// [Cache.SetMany] it takes each lock at most once, and allocates nothing when
// repeated.
func (c *Cache[K, V]) DeleteMany(keys []K) {
	if len(keys) == 0 {
		return
	}
	b := c.borrowScratch()
	for _, key := range keys {
		b.hashes = append(b.hashes, c.hash(key))
	}
	b.group(len(c.shards))
	for i, from := 0, 0; i < len(c.shards); i++ {
		to := b.ends[i]
		if from == to {
			continue
		}
		s := &c.shards[i]
		s.mu.Lock()
		for _, j := range b.order[from:to] {
			c.delete(s, b.hashes[j], keys[j])
		}
		c.unlock(s)
		from = to
	}
	c.returnScratch(b)
}

// GetMany appends an entry for each key that is found to found, in the order of keys,
// and returns the result. TTL is what remains to live, 0 for an entry without expiry;
// so the result can be given to the SetMany of another cache.
//
// It reads one key after the other as [Cache.Get] does, and allocates nothing if found
// has room.
func (c *Cache[K, V]) GetMany(found []Entry[K, V], keys []K) []Entry[K, V] {
	for _, key := range keys {
		value, deadline, ok := c.lookup(key, c.onHit)
		if !ok {
			continue
		}
		e := Entry[K, V]{Key: key, Value: value}
		if deadline != 0 {
			e.TTL = max(remaining(deadline, c.now()), 1)
		}
		found = append(found, e)
	}
	return found
}

// scratch is the memory of a bulk call. The cache keeps one.
type scratch struct {
	hashes  []uint64
	weights []uint32
	order   []int // indexes, grouped by shard and in order within
	ends    []int // by shard: the end of its group
}

// maxScratch is the size, in entries, of the largest scratch that is kept.
const maxScratch = 1 << 16

func (c *Cache[K, V]) borrowScratch() *scratch {
	if b := c.scratch.Swap(nil); b != nil {
		return b
	}
	return new(scratch)
}

func (c *Cache[K, V]) returnScratch(b *scratch) {
	if cap(b.hashes) > maxScratch {
		return
	}
	b.hashes, b.weights = b.hashes[:0], b.weights[:0]
	c.scratch.Store(b)
}

// group sorts the indexes of hashes by shard.
func (b *scratch) group(shards int) {
	b.ends = resized(b.ends, shards)
	b.order = resized(b.order, len(b.hashes))
	clear(b.ends)
	mask := uint32(shards - 1)
	for _, h := range b.hashes {
		b.ends[shardBits(h)&mask]++
	}
	sum := 0
	for i, n := range b.ends {
		b.ends[i] = sum // the group's begin, until it is filled
		sum += n
	}
	for i, h := range b.hashes {
		end := &b.ends[shardBits(h)&mask]
		b.order[*end] = i
		*end++
	}
}

// resized returns a slice of n elements, s itself if it is large enough.
func resized(s []int, n int) []int {
	if cap(s) < n {
		return make([]int, n)
	}
	return s[:n]
}
