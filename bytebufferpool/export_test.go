package bytebufferpool

import (
	"fmt"
	"time"
)

// CheckReservations reports whether the reserved bytes of a pool at rest are those
// of its seats, open slots, credits and magazines.
func (p *Pool) CheckReservations() error {
	c := p.core
	c.freeze()
	defer c.thaw()
	sum := int64(0)
	c.walk(func(class uint8, cell *cell, held []*byte) {
		for i := range cell.seats {
			if cell.seats[i].Load() != nil {
				sum += int64(c.classes.capacity[class])
			}
		}
		for _, p := range held {
			if p != nil {
				sum += int64(c.classes.capacity[class])
			}
		}
	}, func(class uint8, sh *shard) {
		sum += int64(sh.mags[class].len() * c.classes.capacity[class])
	})
	for i := range c.shards {
		sum += c.shards[i].credit
	}
	if c.quar != nil {
		for _, s := range c.quar.queue {
			sum += int64(c.classes.capacity[s.class])
		}
	}
	if got := c.reserved.Load(); got != sum {
		return fmt.Errorf("%d bytes are reserved, %d are owned by someone", got, sum)
	}
	return nil
}

// Invariants tells that every pool fills and verifies released storage.
const Invariants = invariants

// SweepAt is TrimIdle at a time of the test's choice, in Unix nanoseconds.
func (p *Pool) SweepAt(age, now int64) int {
	return p.core.trimIdle(time.Duration(age), now)
}

// LastSweep returns when the last sweep was, in Unix nanoseconds.
func (p *Pool) LastSweep() int64 {
	p.core.ctl.Lock()
	defer p.core.ctl.Unlock()
	return p.core.sweptAt
}
