// Package policy decides which entry leaves a full shard.
//
// A policy works on slot numbers. It never sees keys, values or time, takes no lock
// and calls nothing but its [Slots], so the cache and a simulator drive the same code.
// A hit is not reported to it: whoever serves the hit counts it in the slot
// ([MaxUses]), and the policy looks at the count when it needs to decide.
//
// A policy belongs to one shard. Its methods exclude each other; the counts of uses
// may change at any time.
package policy

// MaxUses is where the count of uses saturates: two bits. One bit loses a third of a
// point of hit ratio on the mean of 36 traces; more was not better.
const MaxUses = 3

// Slots is what a policy wants to know of slots that hold an entry.
type Slots interface {
	// Look returns the hash that the slot was added with, how often the entry was used
	// since the policy last set that, at most MaxUses, and whether it has expired:
	// then it leaves at once.
	Look(slot uint32) (hash uint32, uses uint32, expired bool)

	// SetUses replaces the count of uses.
	SetUses(slot, uses uint32)
}

// Policy is the order in which entries leave. A slot is in it from Add to Remove or
// Victim.
type Policy interface {
	// Add takes in a slot with a new entry, whose uses are 0.
	Add(slot, hash uint32)

	// Remove takes out a slot whose entry left for another reason.
	Remove(slot uint32)

	// Victim chooses the slot to evict, and takes it out. ok is false when there is
	// none.
	Victim() (slot uint32, ok bool)

	// Clear takes all slots out. What was learned about keys stays.
	Clear()

	// Resize tells the number of entries that the policy is to choose among.
	Resize(capacity int)
}
