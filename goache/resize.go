package goache

// weigh returns a value's weight, 0 in a cache that is not bounded by weight.
func (c *Cache[K, V]) weigh(key K, value V) uint32 {
	if c.weigher == nil {
		return 0
	}
	return c.weigher(key, value)
}

// Resize changes the bound of [WithMaxSize] and evicts at once what is too much. It
// returns the bound that is now in force: n, or the number of shards if that is
// larger, since each shard holds at least one entry.
//
// A cache without that bound cannot get one later: then Resize changes nothing and
// returns 0. If n <= 0 it changes nothing and returns the bound.
func (c *Cache[K, V]) Resize(n int) int {
	c.resizing.Lock()
	defer c.resizing.Unlock()
	if c.maxSize == 0 || n <= 0 {
		return c.maxSize
	}
	n = max(n, len(c.shards))
	c.maxSize = n
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.limit = part(n, i, len(c.shards))
		s.policy.Resize(s.limit)
		c.shrink(s)
		c.unlock(s)
	}
	return n
}

// SetMaxWeight changes the bound of [WithMaxWeight] and evicts at once what is too
// much; entries of weight 0 stay. It returns the bound that is now in force: n, or the
// number of shards if that is larger.
//
// A cache without that bound cannot get one later: then SetMaxWeight changes nothing
// and returns 0. If n is 0 it changes nothing and returns the bound.
func (c *Cache[K, V]) SetMaxWeight(n uint64) uint64 {
	c.resizing.Lock()
	defer c.resizing.Unlock()
	if c.maxWeight == 0 || n == 0 {
		return c.maxWeight
	}
	n = max(n, uint64(len(c.shards)))
	c.maxWeight = n
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.maxWeight = part(n, i, len(c.shards))
		c.shrink(s)
		c.unlock(s)
	}
	return n
}

// Weight returns the sum of the weights of all entries; 0 without [WithMaxWeight].
func (c *Cache[K, V]) Weight() uint64 {
	var sum uint64
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		sum += s.weight
		s.mu.Unlock()
	}
	return sum
}
