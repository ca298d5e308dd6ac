package policy

// slotSet is a set of slots.
type slotSet []uint64

func (b slotSet) get(slot uint32) bool {
	i := slot / 64
	return i < uint32(len(b)) && b[i]>>(slot%64)&1 != 0
}

func (b *slotSet) set(slot uint32, in bool) {
	i := slot / 64
	for in && uint32(len(*b)) <= i {
		*b = append(*b, 0)
	}
	if in {
		(*b)[i] |= 1 << (slot % 64)
	} else if i < uint32(len(*b)) {
		(*b)[i] &^= 1 << (slot % 64)
	}
}
