package store

import (
	"math/bits"
	"sync/atomic"
)

// Eviction is S3-FIFO (Yang et al., SOSP 2023): newcomers enter a small queue that may take a
// tenth of the budget, those used again move to the main queue, those not used leave and are
// remembered by a ghost, which lets them into the main queue at once should they come back. A flood
// of keys asked once therefore washes through the small queue and leaves the hot set alone.
// Every operation is O(1); all but the reading and raising of a use word happens under ledger.mu.

const (
	// maxUses caps the use counter: 2 bits, as in the paper.
	maxUses = 3

	// promoteUses is how many uses in the small queue earn a place in the main queue. The paper's
	// value; 1 would let in every key that a client asks for twice in a row.
	promoteUses = 2

	// smallShare is the small queue's part of a budget, as a divisor.
	smallShare = 10

	// maxSkips bounds how many used members one eviction may spare, so that a main queue in which
	// everything is hot cannot keep the lock for a walk over all of it.
	maxSkips = 256
)

// use packs what a hit records into one word, so that a hit writes at most one and writes it only
// when it changes: the low two bits count uses up to maxUses, the rest is the coarse clock in
// seconds. Lost updates between racing hits are harmless.
type use struct{ word atomic.Uint32 }

func (u *use) touch(clock uint32) {
	old := u.word.Load()
	n := old & maxUses
	if n < maxUses {
		n++
	}
	if next := clock<<2 | n; next != old {
		u.word.Store(next)
	}
}

// age sets the clock without counting a use.
func (u *use) age(clock uint32) { u.word.Store(clock<<2 | u.word.Load()&maxUses) }

func (u *use) uses() uint32 { return u.word.Load() & maxUses }

func (u *use) last() uint32 { return u.word.Load() >> 2 }

// spare takes one use off.
func (u *use) spare() {
	if old := u.word.Load(); old&maxUses > 0 {
		u.word.CompareAndSwap(old, old-1)
	}
}

type queueID uint8

const (
	inNone queueID = iota
	inSmall
	inMain
)

// seat is a member's place in the queues. prev, next and queue are guarded by ledger.mu.
type seat[T any] struct {
	prev, next *T
	use        use
	queue      queueID
}

// member is what the queues hold: something with a seat, a cost that does not change while it is
// seated (but through queues.resize), and an identity that survives its removal.
type member[T any] interface {
	*T
	seatOf() *seat[T]
	cost() int64
	id() uint64
}

// fifo is a circular doubly linked list with a sentinel. The zero value is not ready: call init.
type fifo[T any, P member[T]] struct {
	root  T
	bytes int64
	len   int
}

func (f *fifo[T, P]) init() {
	s := P(&f.root).seatOf()
	s.prev, s.next = &f.root, &f.root
}

func (f *fifo[T, P]) pushFront(t *T) {
	root, s := P(&f.root).seatOf(), P(t).seatOf()
	s.prev, s.next = &f.root, root.next
	P(root.next).seatOf().prev = t
	root.next = t
	f.bytes += P(t).cost()
	f.len++
}

func (f *fifo[T, P]) remove(t *T) {
	s := P(t).seatOf()
	P(s.prev).seatOf().next = s.next
	P(s.next).seatOf().prev = s.prev
	s.prev, s.next = nil, nil
	f.bytes -= P(t).cost()
	f.len--
}

func (f *fifo[T, P]) back() *T { return P(&f.root).seatOf().prev }

// queues is one S3-FIFO.
type queues[T any, P member[T]] struct {
	small, main fifo[T, P]
	ghost       ghost
}

func (q *queues[T, P]) init() {
	q.small.init()
	q.main.init()
}

func (q *queues[T, P]) bytes() int64 { return q.small.bytes + q.main.bytes }

func (q *queues[T, P]) count() int { return q.small.len + q.main.len }

// insert seats a newcomer: in the main queue when its ghost is still remembered.
func (q *queues[T, P]) insert(t *T) {
	if q.ghost.forget(P(t).id()) {
		q.insertMain(t)
		return
	}
	P(t).seatOf().queue = inSmall
	q.small.pushFront(t)
}

func (q *queues[T, P]) insertMain(t *T) {
	P(t).seatOf().queue = inMain
	q.main.pushFront(t)
}

// remove unseats t and leaves no trace of it.
func (q *queues[T, P]) remove(t *T) {
	s := P(t).seatOf()
	q.of(s.queue).remove(t)
	s.queue = inNone
}

func (q *queues[T, P]) of(id queueID) *fifo[T, P] {
	if id == inSmall {
		return &q.small
	}
	return &q.main
}

// resize books a change of t's cost, to be called with t seated, before the change is visible in
// t.cost or after it, but under one lock with it.
func (q *queues[T, P]) resize(t *T, delta int64) { q.of(P(t).seatOf().queue).bytes += delta }

// evict unseats and returns the member that should go, nil when there is none. bytes and items are
// the budgets, items 0 for none; they only steer which queue pays.
func (q *queues[T, P]) evict(bytes int64, items int) *T {
	for skips := 0; ; skips++ {
		fromSmall := q.small.len > 0 &&
			(q.main.len == 0 || q.small.bytes > bytes/smallShare || items > 0 && q.small.len > items/smallShare)
		switch {
		case fromSmall:
			t := q.small.back()
			if P(t).seatOf().use.uses() >= promoteUses && skips < maxSkips {
				q.remove(t)
				q.insertMain(t)
				continue
			}
			q.remove(t)
			q.ghost.remember(P(t).id(), q.count())
			return t
		case q.main.len > 0:
			t := q.main.back()
			u := &P(t).seatOf().use
			if u.uses() > 0 && skips < maxSkips {
				u.spare()
				q.remove(t)
				q.insertMain(t)
				continue
			}
			q.remove(t)
			return t
		default:
			return nil
		}
	}
}

const (
	ghostWays = 4
	minGhosts = 64
)

// ghost remembers about as many identities as the cache holds members, in 8 bytes each: groups of
// four slots, each slot a 32-bit fingerprint and the time it was put there, counted in insertions.
// A false match costs one newcomer a better seat than it earned. The zero value is ready.
type ghost struct {
	slots []uint64
	clock uint32
}

func (g *ghost) group(id uint64) ([]uint64, uint64) {
	i := int(id) & (len(g.slots) - 1) &^ (ghostWays - 1)
	return g.slots[i : i+ghostWays], id >> 32
}

// remember adds id; live is the number of members in the cache.
func (g *ghost) remember(id uint64, live int) {
	if want := max(live, minGhosts); len(g.slots) < want {
		// Growing forgets: it happens log2(n) times in the life of a cache, before it is full.
		g.slots = make([]uint64, 1<<bits.Len(uint(want-1)))
	}
	g.clock++
	slots, print := g.group(id)
	oldest, age := 0, uint32(0)
	for i, s := range slots {
		if s == 0 {
			oldest = i
			break
		}
		if a := g.clock - uint32(s); a >= age {
			oldest, age = i, a
		}
	}
	slots[oldest] = print<<32 | uint64(g.clock)
}

// forget removes id and reports whether it was remembered.
func (g *ghost) forget(id uint64) bool {
	if len(g.slots) == 0 {
		return false
	}
	slots, print := g.group(id)
	for i, s := range slots {
		if s != 0 && s>>32 == print && g.clock-uint32(s) < uint32(len(g.slots)) {
			slots[i] = 0
			return true
		}
	}
	return false
}
