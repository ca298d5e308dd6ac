package store

import "sync"

// Limits are a store's budgets. Zero and negative values: see each.
type Limits struct {
	// Memory is the RAM budget in bytes: bodies, response headers, and in RAM-only mode the entries
	// themselves. 0: no body is kept in RAM; headers of hot entries still are, in headerAllowance.
	Memory int64

	// Disk is the disk budget in bytes. 0 when the store is opened: RAM-only mode, nothing touches
	// the file system. Both 0: nothing is stored.
	Disk int64

	// Items bounds the number of entries, each variant counted. 0: no bound.
	Items int

	// Variants bounds the entries of one key: the least recently used one goes. 0: 64.
	Variants int

	// Body is the largest body that is stored, in bytes. 0: any that fits the budget. What is stored
	// already stays when it is lowered.
	Body int64

	// PromoteBelow is the largest body that RAM holds beside the disk. 0: none. RAM-only mode
	// ignores it.
	PromoteBelow int64
}

const (
	defaultVariants = 64

	// headerAllowance is the RAM for responses of hot entries when Limits.Memory is 0: about 8,000
	// of them. Reading a sidecar for each hit would double the cost of a disk hit.
	headerAllowance = 8 << 20

	// largeCapture is where a capture begins to be one that must stand back: what is smaller is soon
	// complete.
	largeCapture = 1 << 20
)

func (l Limits) normal() Limits {
	l.Memory, l.Disk = max(l.Memory, 0), max(l.Disk, 0)
	l.Items, l.Body, l.PromoteBelow = max(l.Items, 0), max(l.Body, 0), max(l.PromoteBelow, 0)
	if l.Variants <= 0 {
		l.Variants = defaultVariants
	}
	return l
}

// ledger keeps the accounts. One lock guards them all, so that every limit holds at every instant
// at which the lock is free. What it decides takes O(1) amortised; the disk is never touched under it.
//
// An entry is live from admit to the first take or eviction, which sets markGone; whoever caused that
// sees to it that the entry is buried: taken out of the index, its files unlinked.
type ledger struct {
	mu sync.Mutex

	onDisk bool // immutable after init

	// All below: guarded by mu.
	limits   Limits
	capacity int64 // the budget that entries live on: disk, or memory in RAM-only mode
	headroom int64 // the budget of warm: memory, or headerAllowance; with a disk tier only
	reserved int64 // held by captures in flight
	entries  queues[Entry, *Entry]
	warm     queues[warm, *warm]
	wheel    wheel
	left     [numCauses]uint64
}

func (l *ledger) init(onDisk bool, limits Limits, now int64) {
	l.onDisk = onDisk
	l.entries.init()
	l.warm.init()
	l.wheel.init(now)
	l.setLimits(limits)
}

// setLimits changes the budgets; evicting down to them is trim's.
func (l *ledger) setLimits(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = limits
	if !l.onDisk {
		l.capacity = limits.Memory
		return
	}
	l.capacity = limits.Disk
	l.headroom = limits.Memory
	if limits.Memory == 0 {
		l.headroom = headerAllowance
	}
}

// trim evicts at most n entries and n warm halves that are over the limits. It returns the entries,
// and whether there may be more to do.
func (l *ledger) trim(n int) (victims []*Entry, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		if l.warm.bytes() <= l.headroom || !l.cool() {
			break
		}
	}
	for len(victims) < n {
		why, over := l.over(0, 0)
		if !over {
			return victims, l.warm.bytes() > l.headroom
		}
		e := l.entries.evict(l.capacity, l.limits.Items)
		if e == nil {
			return victims, false
		}
		l.drop(e, why)
		victims = append(victims, e)
	}
	return victims, true
}

// over reports whether bytes and items more would break a limit, and which.
func (l *ledger) over(bytes int64, items int) (Cause, bool) {
	switch {
	case l.entries.bytes()+l.reserved+bytes > l.capacity:
		if l.onDisk {
			return Disk, true
		}
		return Memory, true
	case l.limits.Items > 0 && l.entries.count()+items > l.limits.Items:
		return Count, true
	}
	return 0, false
}

// makeRoom evicts until bytes and items more fit. It evicts nothing when captures in flight hold too
// much for that.
func (l *ledger) makeRoom(bytes int64, items int) (victims []*Entry, ok bool) {
	if l.reserved+bytes > l.capacity {
		return nil, false
	}
	for {
		why, over := l.over(bytes, items)
		if !over {
			return victims, true
		}
		e := l.entries.evict(l.capacity, l.limits.Items)
		if e == nil {
			return victims, false
		}
		l.drop(e, why)
		victims = append(victims, e)
	}
}

// fits reports whether something that costs n bytes can be stored at all.
func (l *ledger) fits(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.capacity > 0 && n <= l.capacity
}

// booking is what reserve has booked.
type booking struct {
	bytes   int64    // of them
	free    int64    // what the budget has left after that
	victims []*Entry // for the caller to bury, whatever else reserve returns
}

// reserve books n bytes for a capture that holds have already, and up to ahead more as far as nothing
// is evicted for them. partial: more is to come; such a capture, once it is large, evicts only while the
// others hold no more than half the budget. Of many that compete for it few would be stored in the end,
// and the rest would have emptied the store for nothing. endless: nobody knows how much more; such a
// capture evicts until it holds a quarter of the budget, and from there on takes free room only.
func (l *ledger) reserve(have, n, ahead int64, partial, endless bool) (b booking, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.capacity == 0 || have+n > l.capacity {
		return b, ErrTooBig
	}
	crowd, share := l.reserved-have > l.capacity/2, endless && have+n > l.capacity/4
	if partial && have+n > largeCapture && (crowd || share) {
		if _, over := l.over(n, 0); over {
			return b, ErrFull
		}
	}
	var ok bool
	if b.victims, ok = l.makeRoom(n, 0); !ok {
		return b, ErrFull
	}
	free := l.capacity - l.entries.bytes() - l.reserved - n
	ahead = max(min(ahead, free, l.capacity-have-n), 0)
	b.bytes, b.free = n+ahead, free-ahead
	l.reserved += b.bytes
	return b, nil
}

func (l *ledger) release(n int64) {
	l.mu.Lock()
	l.reserved -= n
	l.mu.Unlock()
}

// admit turns a reservation of held bytes into the entry e. First it takes out what e replaces and,
// for want of a free variant, what it crowds out: the caller buries these whatever admit returns, the
// victims too. On an error the reservation is still the caller's; that happens only when SetLimits has
// lowered a budget under a capture in flight.
func (l *ledger) admit(e *Entry, held int64, replaced, crowded []*Entry) (victims []*Entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, old := range replaced {
		l.take(old, Replaced)
	}
	for _, old := range crowded {
		l.take(old, Count)
	}
	victims, ok := l.makeRoom(e.cost()-held, 1)
	if !ok {
		return victims, ErrFull
	}
	l.reserved -= held
	l.entries.insert(e)
	l.wheel.add(e)
	return victims, nil
}

// adopt enters an entry of an earlier run: straight into the main queue, so that what is hot again
// soon is not washed out by the first flood after a restart. It evicts nothing: false when there is
// no room.
func (l *ledger) adopt(e *Entry, replaced []*Entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	room, items := e.cost(), 1
	for _, old := range replaced {
		if !old.gone() {
			room -= old.cost()
			items--
		}
	}
	if _, over := l.over(room, items); over {
		return false
	}
	for _, old := range replaced {
		l.take(old, Replaced)
	}
	l.entries.insertMain(e)
	l.wheel.add(e)
	return true
}

// remove takes e out of the accounts. Only the first to do so gets true.
func (l *ledger) remove(e *Entry, why Cause) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(e, why)
}

func (l *ledger) take(e *Entry, why Cause) bool {
	if e.gone() {
		return false
	}
	l.entries.remove(e)
	l.drop(e, why)
	return true
}

// drop ends the life of an entry that has no seat any more.
func (l *ledger) drop(e *Entry, why Cause) {
	l.wheel.remove(e)
	if w := e.warm.Load(); w != nil && w.place.queue != inNone {
		l.warm.remove(w)
	}
	e.mark.Or(markGone)
	l.left[why]++
}

// cool takes the least deserving warm half out of RAM; false when there is none.
func (l *ledger) cool() bool {
	w := l.warm.evict(l.headroom, 0)
	if w == nil {
		return false
	}
	w.e.warm.Store(nil)
	if w.body != nil {
		l.left[Memory]++
	}
	return true
}

// keep brings a response or a body of e into RAM; each may be nil, and what is there stays then. A
// caller with a response holds shard.mu, so that responses come in the order of the sidecars. Entries
// that are gone, and what is larger than the budget, are not kept. With a disk tier only.
func (l *ledger) keep(e *Entry, r *Response, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.gone() {
		return
	}
	if l.limits.Memory == 0 {
		body = nil
	}
	old := e.warm.Load()
	if old != nil {
		if r == nil {
			r = old.resp
		}
		if body == nil {
			body = old.body
		}
	}
	w := newWarm(e, r, body)
	if w.bytes > l.headroom {
		w = newWarm(e, r, nil)
	}
	main := false
	if old != nil {
		main = old.place.queue == inMain
		w.place.use.word.Store(old.place.use.word.Load())
		l.warm.remove(old)
		e.warm.Store(nil)
	}
	if w.bytes > l.headroom {
		return
	}
	for l.warm.bytes()+w.bytes > l.headroom {
		l.cool()
	}
	if main {
		l.warm.insertMain(w)
	} else {
		l.warm.insert(w)
	}
	e.warm.Store(w)
}

// renewal is what a refresh changes in the accounts.
type renewal struct {
	deadline   uint32
	metaBlocks uint16 // with a disk tier
	warm       *warm  // without one
}

// renew books a refresh of e and makes room for what it costs more. false: e is gone, or went for
// that. Whatever it returns, the caller buries the victims.
func (l *ledger) renew(e *Entry, next renewal) (victims []*Entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.gone() {
		return nil, false
	}
	before := e.cost()
	if l.onDisk {
		e.metaBlock = next.metaBlocks
	} else {
		e.warm.Store(next.warm)
	}
	l.entries.resize(e, e.cost()-before)
	l.wheel.remove(e)
	e.deadline = next.deadline
	l.wheel.add(e)
	// The lock is held, so nobody sees the accounts overdrawn.
	victims, ok = l.makeRoom(0, 0)
	return victims, ok && !e.gone()
}

// expire takes out at most n entries whose deadline is not after now, and tells whether there may
// be more.
func (l *ledger) expire(now int64, n int) (victims []*Entry, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(victims) < n {
		e := l.wheel.next(now)
		if e == nil {
			return victims, false
		}
		l.take(e, Expired)
		victims = append(victims, e)
	}
	return victims, true
}

// note counts an entry that left before it was admitted.
func (l *ledger) note(why Cause) {
	l.mu.Lock()
	l.left[why]++
	l.mu.Unlock()
}

func (l *ledger) variants() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits.Variants
}
