package policy

// Window is a FIFO window of a tenth of the capacity for what is new, a [Clock] for
// the rest, and between them the admission of TinyLFU: what leaves the window takes
// the place of the CLOCK's victim only if its key was asked for more often, as far as
// a sketch remembers (W-TinyLFU: Einziger, Friedman and Manes 2017, with CLOCK in the
// place of LRU).
//
// The sketch is fed when a key enters and when the hand passes a used entry, never on
// a hit. Feeding it on hits too brought nothing in simulation and would cost every
// hit.
type Window struct {
	slots    Slots
	links    links
	inMain   slotSet // by slot; else it is in the window
	window   list
	main     list
	capacity int
	room     int // of the window
	sketch   sketch
}

// windowShare is the window's part of the capacity, as a divisor: over 36 cells a
// tenth has the best mean; a twentieth fails loops of new keys, a fifth gives up too
// much to admission (docs/adr).
const windowShare = 10

// NewWindow returns an empty policy for a shard of the capacity; 0 if that is not known.
func NewWindow(slots Slots, capacity int) *Window {
	w := &Window{slots: slots}
	w.Resize(capacity)
	return w
}

var _ Policy = (*Window)(nil)

// Resize sizes the window and the sketch.
func (w *Window) Resize(capacity int) {
	w.capacity = capacity
	w.room = max(capacity/windowShare, 1)
	w.sketch.resize(capacity)
}

// Add puts the slot into the window. If that gets too full, and an eviction did not
// just make it smaller, its oldest entry goes to main without a contest: there is
// room.
func (w *Window) Add(slot, hash uint32) {
	w.links.grow(slot, w.capacity)
	w.sketch.add(hash)
	w.inMain.set(slot, false)
	w.window.push(w.links, slot)
	if w.window.len > w.room {
		w.promote(w.window.oldest)
	}
}

// promote moves a slot from the window to main, behind the hand.
func (w *Window) promote(slot uint32) {
	w.window.remove(w.links, slot)
	w.main.push(w.links, slot)
	w.inMain.set(slot, true)
}

// Remove takes the slot out.
func (w *Window) Remove(slot uint32) {
	if w.inMain.get(slot) {
		w.main.remove(w.links, slot)
	} else {
		w.window.remove(w.links, slot)
	}
}

// Victim lets the window's oldest entry and the entry at the hand of the CLOCK
// compete, once the window is full.
func (w *Window) Victim() (uint32, bool) {
	switch {
	case w.main.len == 0 && w.window.len == 0:
		return 0, false
	case w.main.len == 0:
		return w.evict(w.window.oldest), true
	case w.window.len < w.room:
		return w.evict(sweep(w.slots, w.links, &w.main, &w.sketch)), true
	}
	candidate := w.window.oldest
	hash, uses, expired := w.slots.Look(candidate)
	if expired {
		return w.evict(candidate), true
	}
	victim := sweep(w.slots, w.links, &w.main, &w.sketch)
	victimHash, _, expired := w.slots.Look(victim)
	if expired || w.sketch.estimate(hash)+uses > w.sketch.estimate(victimHash) {
		w.evict(victim)
		w.promote(candidate)
		return victim, true
	}
	return w.evict(candidate), true
}

func (w *Window) evict(slot uint32) uint32 {
	w.Remove(slot)
	return slot
}

// Clear takes all slots out and keeps the sketch.
func (w *Window) Clear() { w.window, w.main = list{}, list{} }
