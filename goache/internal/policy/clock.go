package policy

// Clock is CLOCK with a count instead of one bit (Corbató 1968; the counting form is
// also known as GCLOCK): the hand passes the entries in the order of their insertion
// and evicts the first that was not used since as many rounds as it had uses.
type Clock struct {
	slots    Slots
	links    links
	ring     list
	capacity int
}

// NewClock returns an empty CLOCK for a shard of the capacity; 0 if that is not known.
func NewClock(slots Slots, capacity int) *Clock { return &Clock{slots: slots, capacity: capacity} }

var _ Policy = (*Clock)(nil)

// Add puts the slot behind the hand.
func (c *Clock) Add(slot, _ uint32) {
	c.links.grow(slot, c.capacity)
	c.ring.push(c.links, slot)
}

// Remove takes the slot out.
func (c *Clock) Remove(slot uint32) { c.ring.remove(c.links, slot) }

// Victim turns the hand to the first entry without uses. A use is given up at each
// pass, so that takes at most MaxUses rounds and one step.
func (c *Clock) Victim() (uint32, bool) {
	if c.ring.len == 0 {
		return 0, false
	}
	slot := sweep(c.slots, c.links, &c.ring, nil)
	c.ring.remove(c.links, slot)
	return slot, true
}

// Clear takes all slots out.
func (c *Clock) Clear() { c.ring = list{} }

// Resize takes note: the order does not depend on the capacity.
func (c *Clock) Resize(capacity int) { c.capacity = capacity }

// sweep turns the hand to the entry that leaves next and returns it, still in the
// ring. passed, if not nil, is told the hash of each entry that was spared.
//
// Other goroutines may use entries faster than the hand passes them; so after the
// rounds that suffice without them, the entry at the hand leaves whatever it is.
func sweep(slots Slots, l links, ring *list, passed *sketch) uint32 {
	for range (MaxUses + 1) * ring.len {
		slot := ring.oldest
		hash, uses, expired := slots.Look(slot)
		if uses == 0 || expired {
			break
		}
		slots.SetUses(slot, uses-1)
		if passed != nil {
			passed.add(hash)
		}
		ring.turn(l)
	}
	return ring.oldest
}
