package policy

// links are the places of slots in the lists that they are on: slots are cheap to take
// out of the middle, as a removed key must be.
type links []link

type link struct{ prev, next uint32 }

// grow makes room for a slot. Slots are numbered as they are needed, so there are no
// more than the capacity, if that is known: nothing is allocated beyond it.
func (l *links) grow(slot uint32, capacity int) {
	if n := int(slot) + 1; n > len(*l) {
		if n > cap(*l) {
			size := max(2*n, 64)
			if capacity >= n {
				size = min(size, capacity)
			}
			*l = append(make(links, 0, size), *l...)
		}
		*l = (*l)[:n]
	}
}

// list is a ring of slots, from the oldest to the newest. In a CLOCK the oldest is
// where the hand stands.
type list struct {
	oldest uint32
	len    int
}

// push adds a slot as the newest.
func (r *list) push(l links, slot uint32) {
	if r.len == 0 {
		l[slot] = link{slot, slot}
		r.oldest = slot
	} else {
		newest := l[r.oldest].prev
		l[slot] = link{newest, r.oldest}
		l[newest].next = slot
		l[r.oldest].prev = slot
	}
	r.len++
}

// remove takes a slot of the list out.
func (r *list) remove(l links, slot uint32) {
	e := l[slot]
	l[e.prev].next = e.next
	l[e.next].prev = e.prev
	if r.oldest == slot {
		r.oldest = e.next
	}
	r.len--
}

// turn makes the oldest the newest: the hand of a CLOCK moves on.
func (r *list) turn(l links) { r.oldest = l[r.oldest].next }
