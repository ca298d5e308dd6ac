package bytebufferpool

// An exact picture of a pool is taken with the lock of every shard held and every
// seat and slot frozen. The fast path's swaps then fail, and its callers wait for
// a lock on the slow path. Nothing becomes idle, leased, reserved or
// unreserved meanwhile.

// freeze stops the pool. The caller must thaw it.
func (c *core) freeze() {
	c.ctl.Lock()
	for i := range c.shards {
		c.shards[i].mu.Lock()
	}
	if c.held == nil {
		c.held = make([]*byte, len(c.cells)*slotsPerCell)
	}
	for class := 0; class < c.classes.n; class++ {
		if !c.inUse[class].Load() {
			continue
		}
		first := class << c.shardBits
		row := c.row(uint8(class))
		for i := range row {
			row[i].freeze(c.held[(first+i)*slotsPerCell:][:slotsPerCell])
		}
	}
}

func (l *cell) freeze(held []*byte) {
	for i := range l.seats {
		h := l.seats[i].Load()
		for h != nil {
			if s := h.state.Load(); h.state.CompareAndSwap(s, s|frozen) {
				break
			}
		}
	}
	for i := range l.slots {
		// A closed slot cannot be opened without the lock that is held.
		if l.slots[i].Load() != nil {
			held[i] = l.slots[i].Swap(slotHeld)
		}
	}
}

// thaw lets the pool go on after freeze.
func (c *core) thaw() {
	c.walk(func(_ uint8, cell *cell, held []*byte) {
		for i := range cell.seats {
			if h := cell.seats[i].Load(); h != nil {
				h.state.Store(h.state.Load() &^ frozen)
			}
		}
		for i, p := range held {
			if p != nil {
				held[i] = nil
				cell.slots[i].Store(p)
			}
		}
	}, nil)
	for i := range c.shards {
		c.shards[i].mu.Unlock()
	}
	c.ctl.Unlock()
}

// awaitThaw returns after the freeze that the caller has met: that holds all locks,
// so getting one is the end of it.
func (c *core) awaitThaw() {
	mu := &c.shards[0].mu
	mu.Lock()
	defer mu.Unlock()
}

// walk visits the cells of the classes in use and then, in a Bounded pool, their
// magazines, from the largest class to the smallest, of a frozen pool. Either
// function may be nil.
func (c *core) walk(visit func(class uint8, cell *cell, held []*byte), visitShard func(class uint8, sh *shard)) {
	for class := c.classes.n - 1; class >= 0; class-- {
		if !c.inUse[class].Load() {
			continue
		}
		if visit != nil {
			first := class << c.shardBits
			row := c.row(uint8(class))
			for i := range row {
				visit(uint8(class), &row[i], c.held[(first+i)*slotsPerCell:][:slotsPerCell])
			}
		}
		if visitShard != nil && c.cfg.Mode == Bounded {
			for i := range c.shards {
				visitShard(uint8(class), &c.shards[i])
			}
		}
	}
}

// evict empties a seat of a frozen pool and gives its budget back. A lease of the
// header goes on; an idle header is gone.
func (c *core) evict(cell *cell, i int, h *header) {
	h.state.Store(h.state.Load()&^frozen | unseated)
	cell.seats[i].Store(nil)
	c.unreserve(cap(h.buf))
}

// evictSlot closes a slot of a frozen pool and gives its budget back.
func (c *core) evictSlot(class uint8, cell *cell, i int, held []*byte) {
	held[i] = nil
	cell.slots[i].Store(nil)
	c.unreserve(c.classes.capacity[class])
}

// idle counts the idle storage of each class of a frozen pool, except what a
// Fast pool has in its spill.
func (c *core) idle(count []int) {
	c.walk(func(class uint8, cell *cell, held []*byte) {
		for i := range cell.seats {
			if h := cell.seats[i].Load(); h != nil && h.state.Load()&leased == 0 {
				count[class]++
			}
		}
		for _, p := range held {
			if isStorage(p) {
				count[class]++
			}
		}
	}, func(class uint8, sh *shard) {
		count[class] += sh.mags[class].len()
	})
	if c.quar != nil {
		c.quar.idle(count)
	}
}

// clear drops what is idle and starts a new generation, at one instant.
func (c *core) clear() {
	c.freeze()
	c.gen.Add(1)
	c.dropIdle(0)
	// Seated leases are of the old generation: without a seat, their release
	// takes the slow path and sees it.
	c.walk(func(_ uint8, cell *cell, _ []*byte) {
		for i := range cell.seats {
			if h := cell.seats[i].Load(); h != nil {
				c.evict(cell, i, h)
			}
		}
	}, nil)
	c.thaw()
	if c.guard != nil {
		c.guard.clear()
	}
}

// trim is Pool.Trim.
func (c *core) trim(target int) int {
	c.freeze()
	defer c.thaw()
	return c.dropIdle(max(target, 0))
}

// dropIdle drops idle storage of a frozen pool, the largest first, until at most
// target bytes are left, and returns the number of bytes dropped.
func (c *core) dropIdle(target int) (dropped int) {
	count := make([]int, c.classes.n)
	c.idle(count)
	over := -target
	for class, n := range count {
		over += n * c.classes.capacity[class]
	}
	if c.quar != nil {
		dropped = c.quar.drop(c, over)
	}
	c.walk(func(class uint8, cell *cell, held []*byte) {
		capacity := c.classes.capacity[class]
		for i := range cell.seats {
			if h := cell.seats[i].Load(); dropped < over && h != nil && h.state.Load()&leased == 0 {
				c.evict(cell, i, h)
				dropped += capacity
			}
		}
		for i, p := range held {
			if dropped < over && isStorage(p) {
				c.evictSlot(class, cell, i, held)
				dropped += capacity
			}
		}
	}, func(class uint8, sh *shard) {
		for dropped < over && sh.mags[class].len() > 0 {
			sh.discard(class, 1)
			c.unreserve(c.classes.capacity[class])
			dropped += c.classes.capacity[class]
		}
	})
	if c.cfg.Mode == Fast {
		dropped += c.dropSpill()
	}
	return dropped
}
