package bytebufferpool

import "time"

// TrimIdle drops storage that has not been used for at least age, and returns
// how many bytes it dropped. Call it from a ticker of your own: storage is
// dropped by the first call that finds it unused since an earlier call at
// least age ago, hence between age and twice age after its last use when the
// calls are frequent. A call before age has passed since the last one that looked does
// nothing. The time comes from the system clock.
//
// A Fast pool does this by itself after every garbage collection.
func (p *Pool) TrimIdle(age time.Duration) int {
	return p.core.trimIdle(age, time.Now().UnixNano())
}

func (c *core) trimIdle(age time.Duration, now int64) int {
	c.ctl.Lock()
	defer c.ctl.Unlock()
	if now-c.sweptAt < int64(age) {
		return 0
	}
	return c.sweep(now)
}

// sweep drops what is idle and was not used since the last sweep, and unseats
// leases that were neither released nor acquired since, which may be lost. It
// returns the number of bytes that were idle. ctl is held.
//
// The pool goes on meanwhile: each cell is swept under its shard's lock.
func (c *core) sweep(now int64) (dropped int) {
	c.sweptAt = now
	for shard := range c.shards {
		sh := &c.shards[shard]
		sh.mu.Lock()
		for class := 0; class < c.classes.n; class++ {
			if c.inUse[class].Load() {
				n, freed := c.cell(uint8(class), uint32(shard)).sweep()
				if c.cfg.Mode == Bounded {
					inMagazine := sh.mags[class].lowHeaders + sh.mags[class].lowSlices
					sh.sweep(uint8(class))
					n, freed = n+inMagazine, freed+inMagazine
				}
				dropped += n * c.classes.capacity[class]
				sh.credit += int64(freed * c.classes.capacity[class])
			}
		}
		c.refund(sh)
		sh.mu.Unlock()
	}
	return dropped
}

// sweep empties the seats and slots that stand as the last sweep left them. It
// returns how many of them held idle storage, and how many gave budget back. The
// shard's lock and ctl are held.
func (l *cell) sweep() (idle, freed int) {
	for i := range l.seats {
		h := l.seats[i].Load()
		if h == nil {
			continue
		}
		s := h.state.Load()
		if uint32(s) != h.seen {
			h.seen = uint32(s)
			continue
		}
		// Fails if it has just been used after all.
		if h.state.CompareAndSwap(s, s|unseated) {
			l.seats[i].CompareAndSwap(h, nil)
			freed++
			if s&leased == 0 {
				idle++
			}
		}
	}
	used := l.used.Swap(0)
	for i := range l.slots {
		if p := l.slots[i].Load(); used>>i&1 == 0 && isStorage(p) && l.slots[i].CompareAndSwap(p, nil) {
			idle++
			freed++
		}
	}
	return idle, freed
}

// sweep drops the storages of a magazine that were not taken since the last
// sweep, and marks what is left.
func (sh *shard) sweep(class uint8) {
	m := &sh.mags[class]
	headers, slices := m.lowHeaders, m.lowSlices
	m.headers = dropFirst(m.headers, headers)
	m.slices = dropFirst(m.slices, slices)
	m.lowHeaders, m.lowSlices = len(m.headers), len(m.slices)
	sh.stock.Add(-int64(headers + slices))
}
