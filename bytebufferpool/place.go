package bytebufferpool

import "unsafe"

// The slow path of both modes: where storage is looked for when the caller's own
// seats have none, and where it goes when it has no seat to return to.

// acquire leases storage for size bytes on the slow path.
func (c *core) acquire(size int, kind Kind, shard uint32) (claim, error) {
	if err := c.checkSize(size); err != nil {
		return claim{}, err
	}
	var h *header
	class := c.classes.class(size)
	hit := false
	if int(class) < c.classes.n {
		h = c.takeHeader(class, shard)
		hit = h != nil
	}
	if h == nil {
		h = c.newHeader(c.allocate(class, size))
	}
	h.home = shard
	word := h.claimed()
	if c.direct == 0 {
		if t := c.onAcquire(h.buf, size, class, hit, kind); t != nil {
			t.word = word
			traced(h).push(t)
		}
	}
	return claim{h, word}, nil
}

// acquireSlice returns storage for a raw slice on the slow path.
func (c *core) acquireSlice(size int, shard uint32) ([]byte, error) {
	if err := c.checkSize(size); err != nil {
		return nil, err
	}
	class := c.classes.class(size)
	var b []byte
	if int(class) < c.classes.n {
		if p := c.takeSlice(class, shard); p != nil {
			// Safety: what is taken from a class has its capacity.
			b = unsafe.Slice(p, c.classes.capacity[class])
		}
	}
	hit := b != nil
	if b == nil {
		b = c.allocate(class, size)
	}
	if c.direct == 0 {
		t := c.onAcquire(b, size, class, hit, KindSlice)
		if c.guard != nil {
			c.guard.activate(b, t)
		}
	}
	return b[:size], nil
}

// allocate makes storage, of the class's capacity or of exactly size bytes.
func (c *core) allocate(class uint8, size int) []byte {
	if int(class) < c.classes.n {
		size = c.classes.capacity[class]
	}
	return make([]byte, size)
}

// takeHeader finds an idle header of a class and leases it: in the own seats, where
// one was found last, in the overflow, in others' seats, in storage of raw
// slices.
func (c *core) takeHeader(class uint8, shard uint32) *header {
	if c.direct == 0 { // otherwise the fast path has just looked in these two
		for _, other := range [...]uint32{shard, c.seatHint[class].Load()} {
			if h := c.borrow(class, shard, other).h; h != nil {
				return h
			}
		}
	}
	if h := c.popHeader(class, shard); h != nil {
		return h
	}
	for i := range c.shards {
		other := (shard + uint32(i)) & uint32(len(c.shards)-1)
		if h := c.borrow(class, shard, other).h; h != nil {
			c.seatHint[class].Store(other)
			return h
		}
	}
	if h := c.raidHeader(class, shard); h != nil {
		return h
	}
	p := c.popSlice(class, shard)
	if p == nil {
		p = c.seekSlice(class, shard)
	}
	if p == nil {
		return nil
	}
	// Safety: what is taken from a class has its capacity.
	return c.newHeader(unsafe.Slice(p, c.classes.capacity[class]))
}

// takeSlice finds idle storage of a class for a raw slice, in the same order.
// Storage of a lease loses its header, which stays leased for ever and so
// rejects whatever copies of its leases are left.
func (c *core) takeSlice(class uint8, shard uint32) *byte {
	if p := c.cell(class, shard).takeSlot(); p != nil {
		return p
	}
	if hint := c.slotHint[class].Load(); hint != shard {
		if p := c.cell(class, hint).takeSlot(); p != nil {
			return p
		}
	}
	if p := c.popSlice(class, shard); p != nil {
		return p
	}
	if p := c.seekSlice(class, shard); p != nil {
		return p
	}
	h := c.popHeader(class, shard)
	if h == nil {
		h = c.stripSeat(class, shard)
	}
	if h == nil {
		return nil
	}
	return unsafe.SliceData(h.buf)
}

// moveMask picks the serials at which a header moves to the shard of whoever borrows it:
// every 256th of its uses. To lease it where it sits takes a few nanoseconds more
// than a seat of one's own, and is right for those who come once or change their depth. For
// one who stays it must end; moving takes two locks, and at every sixteenth use it
// was the larger part of what a miss costs.
const moveMask = 255 * serial

// borrow leases a header in the seats of any shard, if one is idle. It keeps its seat
// unless it is time to move; behind a gap in the own seats it moves to the front.
func (c *core) borrow(class uint8, shard, other uint32) claim {
	from := c.cell(class, other)
	for i := range from.seats {
		h := from.seats[i].Load()
		if h == nil {
			continue
		}
		s := h.state.Load()
		if s&(leased|unseated|frozen) == 0 && h.state.CompareAndSwap(s, s|leased) {
			if s&moveMask == 0 && c.direct != 0 {
				c.unseat(shard, from, i, h)
				h.home = shard
				return claim{h, h.claimed()}
			}
			return claim{h, s | leased}
		}
	}
	return claim{}
}

// stripSeat takes a header out of the seats of any shard for good.
func (c *core) stripSeat(class uint8, shard uint32) *header {
	for i := range c.shards {
		from := c.cell(class, (shard+uint32(i))&uint32(len(c.shards)-1))
		if h, seat := from.takeSeated(); h != nil {
			c.unseat(shard, from, seat, h)
			return h
		}
	}
	return c.raidHeader(class, shard)
}

// unseat empties the seat of a header that the caller has leased, and moves its
// budget to the caller's shard, whose lock keeps exact pictures from being taken in
// between.
func (c *core) unseat(shard uint32, from *cell, seat int, h *header) {
	sh := &c.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s := h.state.Load(); s&unseated == 0 && h.state.CompareAndSwap(s, s|unseated) {
		from.seats[seat].CompareAndSwap(h, nil)
		sh.credit += int64(cap(h.buf))
	}
}

// takeSeated leases an idle header of the cell and tells its seat.
func (l *cell) takeSeated() (*header, int) {
	for i := range l.seats {
		h := l.seats[i].Load()
		if h == nil {
			continue
		}
		s := h.state.Load()
		if s&(leased|unseated|frozen) == 0 && h.state.CompareAndSwap(s, s|leased) {
			return h, i
		}
	}
	return nil, 0
}

// takeSlot takes storage out of a slot of the cell, which stays open: whoever fills
// it again needs no lock.
func (l *cell) takeSlot() *byte {
	for i := range l.slots {
		if p := l.slots[i].Load(); isStorage(p) && l.slots[i].CompareAndSwap(p, slotOpen) {
			return p
		}
	}
	return nil
}

// seekSlice takes storage from the slots of any shard, or from others' overflow.
func (c *core) seekSlice(class uint8, shard uint32) *byte {
	for i := range c.shards {
		other := (shard + uint32(i)) & uint32(len(c.shards)-1)
		if p := c.cell(class, other).takeSlot(); p != nil {
			c.slotHint[class].Store(other)
			return p
		}
	}
	return c.raidSlice(class, shard)
}

// release ends a lease whose release was not a single swap: it is over already,
// it has no seat, a picture is being taken, or options have to see it.
func (c *core) release(h *header, word uint64) ReleaseStatus {
	for {
		s := h.state.Load()
		switch {
		case (s^word)&^noise != 0:
			c.count(c.classOf(h.buf), RejectedDuplicate)
			c.misused(Misuse{Kind: DuplicateRelease, Capacity: cap(h.buf), Offset: -1}, h, word)
			return RejectedDuplicate
		case s&frozen != 0:
			c.awaitThaw()
			continue
		}
		next, seated := s+handBack, s&unseated == 0
		if seated && c.work {
			// Found by others as soon as it is idle: end the lease first, keep
			// the storage, do the work on it, then hand it back.
			next = s + serial
		}
		if !h.state.CompareAndSwap(s, next) {
			continue
		}
		if c.work {
			c.onRelease(h.buf)
			if c.cfg.StackSampling > 0 {
				traced(h).released(word)
			}
		} else if seated {
			c.count(c.classOf(h.buf), Retained)
			return Retained
		}
		status := c.placeHeader(h)
		c.count(c.classOf(h.buf), status)
		return status
	}
}

// placeHeader makes a header idle that nobody has a lease of.
func (c *core) placeHeader(h *header) ReleaseStatus {
	for {
		s := h.state.Load()
		if s&leased == 0 {
			break
		}
		if s&frozen != 0 {
			c.awaitThaw()
			continue
		}
		if h.state.CompareAndSwap(s, s+handBack) && s&unseated == 0 {
			return Retained
		}
	}
	if h.gen != c.gen.Load() {
		return DroppedStale
	}
	class := c.classOf(h.buf)
	if class < 0 {
		return c.unpooled(h.buf)
	}
	return c.keep(stored{header: h}, uint8(class), h.home)
}

// releaseSlice takes a raw slice back on the slow path.
func (c *core) releaseSlice(b []byte, shard uint32) ReleaseStatus {
	status := c.checkSlice(b)
	if status == Retained {
		b = b[:cap(b)]
		if c.work {
			c.onRelease(b)
		}
		if class := c.classOf(b); class < 0 {
			status = c.unpooled(b)
		} else {
			status = c.placeSlice(unsafe.SliceData(b), uint8(class), shard)
		}
	}
	c.count(c.classOf(b), status)
	return status
}

// checkSlice decides about ownership and shape, with Retained for a slice that
// may be taken.
func (c *core) checkSlice(b []byte) ReleaseStatus {
	switch {
	case b == nil:
		return IgnoredNil
	case c.guard != nil:
		status, t := c.guard.retire(b)
		switch status {
		case RejectedForeign:
			c.reportSlice(ForeignRelease, b, t)
		case RejectedDuplicate:
			c.reportSlice(DuplicateRelease, b, t)
		case DroppedInvalid:
			c.forget(b)
			c.reportSlice(ChangedCapacity, b, t)
		}
		return status
	case cap(b) == 0:
		return DroppedInvalid
	}
	return Retained
}

// placeSlice makes the storage of a raw slice idle.
func (c *core) placeSlice(p *byte, class uint8, shard uint32) ReleaseStatus {
	if c.quar == nil && c.cell(class, shard).fill(p) {
		return Retained
	}
	return c.keep(stored{slice: p}, class, shard)
}

// unpooled tells why storage without a class is dropped.
func (c *core) unpooled(b []byte) ReleaseStatus {
	if cap(b) > c.cfg.MaxPooledCapacity {
		return DroppedOversize
	}
	return DroppedUnpooled
}

// classOf returns the class of storage by its capacity, or -1.
func (c *core) classOf(b []byte) int { return c.classes.exact(cap(b)) }

// stored is idle storage outside seats and slots: a header, or the storage of a
// raw slice.
type stored struct {
	header *header
	slice  *byte
}

// keep stores what has found no seat or slot.
func (c *core) keep(s stored, class uint8, shard uint32) ReleaseStatus {
	if c.cfg.Mode == Bounded {
		return c.keepBounded(s, class, shard)
	}
	return c.keepFast(s, class, shard)
}

// settle puts storage into an empty seat or a closed slot of the shard, whose
// lock is held and which has the budget for it. Nothing is settled in a pool
// with a quarantine, whose storage must not be found before its time.
func (c *core) settle(s stored, class uint8, shard uint32) bool {
	if c.quar != nil {
		return false
	}
	cell := c.cell(class, shard)
	if s.header != nil {
		for i := range cell.seats {
			if cell.seats[i].Load() == nil {
				c.inUse[class].Store(true)
				// In this order: whoever finds it in the seat may lease it.
				s.header.state.Store(s.header.state.Load() &^ unseated)
				cell.seats[i].Store(s.header)
				if c.seatHint[class].Load() != shard {
					c.seatHint[class].Store(shard)
				}
				return true
			}
		}
		return false
	}
	for i := range cell.slots {
		if cell.slots[i].Load() == nil {
			c.inUse[class].Store(true)
			cell.markUsed(i)
			cell.slots[i].Store(s.slice)
			return true
		}
	}
	return false
}
