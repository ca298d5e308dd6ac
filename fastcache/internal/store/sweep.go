package store

import (
	"math"
	"time"
)

const (
	// sweepInterval is the tick of the sweeper and of the coarse clock.
	sweepInterval = 500 * time.Millisecond

	// sweepBatch is how many entries are taken out in one hold of the ledger's lock.
	sweepBatch = 256
)

// dueLinks is an entry's place in the wheel.
type dueLinks struct{ prev, next *Entry }

const (
	wheelLevels = 5
	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
)

// wheel is a hierarchical timing wheel (Varghese and Lauck, 1987) at one second's resolution: add
// and remove are O(1), and an entry that leaves early leaves nothing behind. Five levels of 64 slots
// reach 34 years; what is due later waits in the last level. Guarded by ledger.mu.
type wheel struct {
	now   int64 // Unix seconds up to which the slots have been emptied
	slots [wheelLevels][wheelSlots]Entry
	ready Entry // entries that are due but not yet handed out
}

func (w *wheel) init(now int64) {
	w.now = now
	w.ready.due = dueLinks{&w.ready, &w.ready}
	for i := range w.slots {
		for j := range w.slots[i] {
			s := &w.slots[i][j]
			s.due = dueLinks{s, s}
		}
	}
}

// add links e by its deadline; without one it does nothing.
func (w *wheel) add(e *Entry) {
	if e.deadline == 0 {
		return
	}
	at := max(int64(e.deadline), w.now+1)
	for level := range wheelLevels {
		shift := level * wheelBits
		if at>>shift-w.now>>shift < wheelSlots || level == wheelLevels-1 {
			// Beyond the last level's reach it waits in the farthest slot and is placed again then.
			tick := min(at>>shift, w.now>>shift+wheelSlots-1)
			link(&w.slots[level][tick&(wheelSlots-1)], e)
			return
		}
	}
}

func (w *wheel) remove(e *Entry) {
	if e.due.next == nil {
		return
	}
	unlink(e)
}

// next unlinks and returns an entry that is due at now, nil when there is none.
func (w *wheel) next(now int64) *Entry {
	w.advance(now)
	e := w.ready.due.next
	if e == &w.ready {
		return nil
	}
	unlink(e)
	return e
}

// advance empties the slots that the clock has passed. A clock that goes back is waited for.
func (w *wheel) advance(now int64) {
	then := w.now
	if now <= then {
		return
	}
	w.now = now
	for level := range wheelLevels {
		shift := level * wheelBits
		from, to := then>>shift, now>>shift
		if from == to {
			return
		}
		for tick := from + 1; tick <= min(to, from+wheelSlots); tick++ {
			slot := &w.slots[level][tick&(wheelSlots-1)]
			first := slot.due.next
			slot.due.prev.due.next = nil // cut the ring open
			slot.due = dueLinks{slot, slot}
			if first == slot {
				continue
			}
			for e := first; e != nil; {
				next := e.due.next
				e.due = dueLinks{}
				if int64(e.deadline) <= now {
					link(&w.ready, e)
				} else {
					w.add(e)
				}
				e = next
			}
		}
	}
}

func link(slot, e *Entry) {
	last := slot.due.prev
	e.due = dueLinks{last, slot}
	last.due.next = e
	slot.due.prev = e
}

func unlink(e *Entry) {
	e.due.prev.due.next = e.due.next
	e.due.next.due.prev = e.due.prev
	e.due = dueLinks{}
}

// deadlineOf turns a Discard time into whole seconds, rounded up; 0, never, for the zero time and
// for what 32 bits cannot tell (2106).
func deadlineOf(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	sec := t.Unix()
	if t.Nanosecond() > 0 {
		sec++
	}
	if sec > math.MaxUint32 {
		return 0
	}
	return uint32(max(sec, 1))
}

// sweeper runs the clock, drops what is due and evicts down after SetLimits, until Close.
func (s *Store) sweeper() {
	defer s.wg.Done()
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
			s.sweep()
		case <-s.trimNow:
			s.trim()
		}
	}
}

func (s *Store) sweep() {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	now := s.now()
	s.setClock(now)
	for more := true; more && !s.closed.Load(); {
		var due []*Entry
		due, more = s.ledger.expire(now.Unix(), sweepBatch)
		s.bury(due)
	}
}

func (s *Store) trim() {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	for more := true; more && !s.closed.Load(); {
		var victims []*Entry
		victims, more = s.ledger.trim(sweepBatch)
		s.bury(victims)
	}
}

// setClock sets the clock that uses are stamped with: seconds since the store was opened.
func (s *Store) setClock(now time.Time) {
	if d := now.Sub(s.opened); d > 0 {
		s.clock.Store(uint32(d / time.Second))
	}
}
