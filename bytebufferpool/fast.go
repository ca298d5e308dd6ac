package bytebufferpool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Fast mode: what finds no seat or slot spills into one runtime-managed pool for
// each class and kind of storage. The runtime empties those by itself. It does not
// know the seats: a sweep after each garbage collection does the same for them.

// spill is the overflow of a Fast pool. Clear replaces it as a whole: the storage of
// raw slices in it carries no generation.
type spill struct {
	classes []struct {
		headers spillPool // of *header, idle and unseated
		slices  spillPool // of *byte: pointers need no allocation to be an any
	}
}

func newSpill(classes int) *spill {
	s := new(spill)
	s.classes = make([]struct{ headers, slices spillPool }, classes)
	return s
}

// spillPool is a sync.Pool that is not asked before something was put into it: an
// empty one allocates at its first use, and searches all processors.
type spillPool struct {
	pool sync.Pool
	used atomic.Bool
}

func (p *spillPool) put(v any) {
	if !p.used.Load() {
		p.used.Store(true)
	}
	p.pool.Put(v)
}

func (p *spillPool) get() any {
	if !p.used.Load() {
		return nil
	}
	return p.pool.Get()
}

// keepFast stores what has found no open slot or is not seated.
func (c *core) keepFast(s stored, class uint8, shard uint32) ReleaseStatus {
	if c.quar != nil || c.cell(class, shard).vacant(s) {
		sh := &c.shards[shard]
		sh.mu.Lock()
		// Under the lock, because Clear looks for headers in seats just once.
		if s.header != nil && s.header.gen != c.gen.Load() {
			sh.mu.Unlock()
			return DroppedStale
		}
		done := c.settle(s, class, shard)
		if c.quar != nil {
			s, class, done = c.quar.exchange(s, class)
		}
		sh.mu.Unlock()
		if done {
			return Retained
		}
	}
	pools := &c.spill.Load().classes[class]
	if s.header != nil {
		pools.headers.put(s.header)
	} else {
		pools.slices.put(s.slice)
	}
	return Retained
}

// vacant reports whether the cell looks like having room.
func (l *cell) vacant(s stored) bool {
	if s.header != nil {
		for i := range l.seats {
			if l.seats[i].Load() == nil {
				return true
			}
		}
		return false
	}
	for i := range l.slots {
		if l.slots[i].Load() == nil {
			return true
		}
	}
	return false
}

// unspillHeader leases a header of the spill.
func (c *core) unspillHeader(class uint8) *header {
	spilled := &c.spill.Load().classes[class].headers
	for {
		h, _ := spilled.get().(*header)
		if h == nil {
			return nil
		}
		// A release that raced with Clear may have spilled an old one.
		if h.gen == c.gen.Load() {
			h.state.Store(h.state.Load() | leased)
			return h
		}
	}
}

func (c *core) unspillSlice(class uint8) *byte {
	p, _ := c.spill.Load().classes[class].slices.get().(*byte)
	return p
}

// dropSpill empties the spill and returns the number of bytes in it.
func (c *core) dropSpill() (dropped int) {
	old := c.spill.Swap(newSpill(c.classes.n))
	// Nobody adds to the old one any more, except for releases under way.
	for class := range old.classes {
		pools := &old.classes[class]
		for pools.headers.get() != nil {
			dropped += c.classes.capacity[class]
		}
		for pools.slices.get() != nil {
			dropped += c.classes.capacity[class]
		}
	}
	return dropped
}

// collection is an unreachable object whose finalizer runs after each garbage
// collection. It refers to the core and not to the Pool, so it does not keep the
// Pool alive.
type collection struct{ core *core }

// sweepAfterGC has the seats swept after each collection, until the Pool is
// unreachable: what was not used between two of them is dropped by the second
// and freed by the third, as sync.Pool has it.
func (c *core) sweepAfterGC() {
	runtime.SetFinalizer(&collection{c}, (*collection).done)
}

func (g *collection) done() {
	if g.core.closed.Load() {
		return
	}
	g.core.ctl.Lock()
	g.core.sweep(time.Now().UnixNano())
	g.core.ctl.Unlock()
	runtime.SetFinalizer(g, (*collection).done)
}
