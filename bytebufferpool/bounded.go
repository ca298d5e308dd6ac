package bytebufferpool

// Bounded mode: the budget is handed out as reservations. A seat owns the
// capacity of its header as long as the header sits in it, idle or leased, and an open slot
// owns the capacity of its class. So the fast path reads no global
// counter, and idle bytes <= reserved bytes <= budget holds at any instant.
//
// What has no seat lies in a magazine of its shard. Budget that a
// shard does not need at the moment stays with it as credit.
//
// When nothing is left to reserve, makeRoom takes back what leased seats, open
// slots and credits own. Only storage for which that is not enough is dropped: its
// capacity and the idle bytes together exceed the budget.

// magazine holds the idle storage of a class in a shard that has no seat, last in
// first out.
type magazine struct {
	headers []*header // idle and unseated
	slices  []*byte

	// The fewest of each since the last sweep: so many at the bottom have not
	// been used since.
	lowHeaders, lowSlices int
}

func (m *magazine) len() int { return len(m.headers) + len(m.slices) }

// reserve takes budget for a storage of this capacity, from the shard's credit or
// from what is left. The lock of sh is held.
func (c *core) reserve(sh *shard, capacity int) bool {
	n := int64(capacity)
	if sh.credit >= n {
		sh.credit -= n
		return true
	}
	return c.reserveShared(n)
}

// reserveShared takes n bytes from what is left of the budget. The lock of some shard is
// held, so that a frozen pool's reservations stand still.
func (c *core) reserveShared(n int64) bool {
	for {
		r := c.reserved.Load()
		if r+n > int64(c.cfg.MaxRetainedCapacity) {
			return false
		}
		if c.reserved.CompareAndSwap(r, r+n) {
			return true
		}
	}
}

// unreserve gives budget back.
func (c *core) unreserve(capacity int) {
	if c.cfg.Mode == Bounded {
		c.reserved.Add(-int64(capacity))
	}
}

// refund gives the credit of a shard back. Its lock is held.
func (c *core) refund(sh *shard) {
	if c.cfg.Mode == Bounded {
		c.reserved.Add(-sh.credit)
	}
	sh.credit = 0
}

// keepBounded stores what has found no open slot or is not seated.
func (c *core) keepBounded(s stored, class uint8, shard uint32) ReleaseStatus {
	sh := &c.shards[shard]
	capacity := c.classes.capacity[class]
	stale := func() bool { return s.header != nil && s.header.gen != c.gen.Load() }

	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Under the lock, because Clear looks for headers just once.
	if stale() {
		return DroppedStale
	}
	if !c.reserve(sh, capacity) {
		sh.mu.Unlock()
		ok := c.makeRoom(capacity)
		sh.mu.Lock()
		if !ok {
			return DroppedFull
		}
		if stale() {
			sh.credit += int64(capacity)
			return DroppedStale
		}
	}
	if c.quar != nil {
		done := false
		if s, class, done = c.quar.exchange(s, class); done {
			return Retained
		}
	}
	if !c.settle(s, class, shard) {
		c.inUse[class].Store(true)
		sh.push(s, class)
	}
	return Retained
}

// makeRoom reserves budget for a storage of this capacity if the idle bytes leave
// room for it, taking reservations from where nothing is idle. Its cost is a walk
// over the classes in use, and it is called only when the budget is exhausted.
func (c *core) makeRoom(capacity int) bool {
	c.freeze()
	defer c.thaw()
	count := make([]int, 0, MaxClasses)[:c.classes.n]
	c.idle(count)
	sum := int64(capacity)
	for class, n := range count {
		sum += int64(n) * int64(c.classes.capacity[class])
	}
	if sum > int64(c.cfg.MaxRetainedCapacity) {
		return false
	}
	for i := range c.shards {
		c.refund(&c.shards[i])
	}
	if c.reserveShared(int64(capacity)) {
		return true
	}
	done := false
	c.walk(func(class uint8, cell *cell, held []*byte) {
		for i := range held {
			if !done && held[i] == slotOpen {
				c.evictSlot(class, cell, i, held)
				done = c.reserveShared(int64(capacity))
			}
		}
		for i := range cell.seats {
			if h := cell.seats[i].Load(); !done && h != nil && h.state.Load()&leased != 0 {
				c.evict(cell, i, h)
				done = c.reserveShared(int64(capacity))
			}
		}
	}, nil)
	return done
}

// popHeader leases a header of the own overflow.
func (c *core) popHeader(class uint8, shard uint32) *header {
	if c.cfg.Mode == Fast {
		return c.unspillHeader(class)
	}
	sh := &c.shards[shard]
	if sh.stock.Load() == 0 {
		return nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	h := sh.popHeader(class)
	if h != nil {
		sh.credit += int64(cap(h.buf))
	}
	return h
}

// popSlice takes storage of a raw slice from the own overflow.
func (c *core) popSlice(class uint8, shard uint32) *byte {
	if c.cfg.Mode == Fast {
		return c.unspillSlice(class)
	}
	sh := &c.shards[shard]
	if sh.stock.Load() == 0 {
		return nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	p := sh.popSlice(class)
	if p != nil {
		sh.credit += int64(c.classes.capacity[class])
	}
	return p
}

// raidHeader leases a header of the overflow of another shard.
func (c *core) raidHeader(class uint8, own uint32) (h *header) {
	c.raid(own, class, func(other *shard) bool {
		h = other.popHeader(class)
		return h != nil
	})
	return h
}

// raidSlice is raidHeader for raw slices.
func (c *core) raidSlice(class uint8, own uint32) (p *byte) {
	c.raid(own, class, func(other *shard) bool {
		p = other.popSlice(class)
		return p != nil
	})
	return p
}

// raid takes from the overflow of another shard, whose credit gets the budget.
func (c *core) raid(own uint32, class uint8, take func(other *shard) bool) {
	if c.cfg.Mode == Fast {
		return
	}
	for i := 1; i < len(c.shards); i++ {
		other := &c.shards[(int(own)+i)&(len(c.shards)-1)]
		if other.stock.Load() == 0 {
			continue
		}
		other.mu.Lock()
		ok := take(other)
		if ok {
			other.credit += int64(c.classes.capacity[class])
		}
		other.mu.Unlock()
		if ok {
			return
		}
	}
}

func (sh *shard) push(s stored, class uint8) {
	m := &sh.mags[class]
	if s.header != nil {
		m.headers = append(m.headers, s.header)
	} else {
		m.slices = append(m.slices, s.slice)
	}
	sh.stock.Add(1)
}

func (sh *shard) popHeader(class uint8) *header {
	m := &sh.mags[class]
	n := len(m.headers) - 1
	if n < 0 {
		return nil
	}
	h := m.headers[n]
	m.headers[n] = nil
	m.headers = m.headers[:n]
	m.lowHeaders = min(m.lowHeaders, n)
	sh.stock.Add(-1)
	h.state.Store(h.state.Load() | leased)
	return h
}

func (sh *shard) popSlice(class uint8) *byte {
	m := &sh.mags[class]
	n := len(m.slices) - 1
	if n < 0 {
		return nil
	}
	p := m.slices[n]
	m.slices[n] = nil
	m.slices = m.slices[:n]
	m.lowSlices = min(m.lowSlices, n)
	sh.stock.Add(-1)
	return p
}

// discard drops n storages of a magazine, the longest unused first.
func (sh *shard) discard(class uint8, n int) {
	m := &sh.mags[class]
	headers := min(n, len(m.headers))
	m.headers = dropFirst(m.headers, headers)
	m.slices = dropFirst(m.slices, n-headers)
	m.lowHeaders = min(m.lowHeaders, len(m.headers))
	m.lowSlices = min(m.lowSlices, len(m.slices))
	sh.stock.Add(-int64(n))
}

// dropFirst removes the first n elements in place.
func dropFirst[T any](s []T, n int) []T {
	if n == 0 {
		return s
	}
	left := copy(s, s[n:])
	clear(s[left:])
	return s[:left]
}
