package bytebufferpool

// Lease is storage on loan from a [Pool], until [Lease.Release]. It is a small
// value: keep it where it was returned to, pass a pointer to it, and do not copy it
// (go vet finds copies). A copy is nevertheless harmless: exactly one release of
// all copies, on whatever goroutines, gives the storage back, and every use of
// any of them after that is caught.
//
// A Lease belongs to one goroutine at a time, but Release may race: one wins. The
// zero Lease holds nothing; releasing it is ignored, using it panics.
//
// A released Lease still keeps the memory of its storage from the garbage
// collector: do not hold on to it.
type Lease struct {
	_ noCopy
	claim
	n int
}

// Bytes returns the leased bytes, of the requested length and the capacity of the
// class. They are the caller's until Release, and not valid after it. Bytes
// panics after Release. It is two loads and a comparison.
func (l *Lease) Bytes() []byte {
	if l.dead() {
		l.panicDead("Bytes")
	}
	return l.h.buf[:l.n]
}

// Len returns the requested length. It panics after Release.
func (l *Lease) Len() int {
	if l.dead() {
		l.panicDead("Len")
	}
	return l.n
}

// Cap returns the capacity of the storage. It panics after Release.
func (l *Lease) Cap() int {
	if l.dead() {
		l.panicDead("Cap")
	}
	return cap(l.h.buf)
}

// Release gives the storage back and reports what became of it. The bytes must
// not be used any more. A repeated Release, also through a copy and also after
// the storage has a new owner, returns [RejectedDuplicate] and touches nothing.
// It does not block on other owners and does not allocate.
//
// Of releases that race, the one that comes first counts, and what becomes of the storage
// is decided by its end: others may return before it.
func (l *Lease) Release() ReleaseStatus {
	if l.word&(leased|slow) == leased && l.h.state.CompareAndSwap(l.word, l.word+handBack) {
		return Retained
	}
	return l.releaseSlow()
}

func (l *Lease) panicDead(method string) { l.claim.panicDead("Lease", method) }

// claim is the right to a storage: what a Lease and a Buffer are at heart.
type claim struct {
	h    *header
	word uint64 // the state of h when the claim was issued, see noise
}

// claimed returns the word for the owner of a leased header, which nobody else can
// release or lease.
func (h *header) claimed() uint64 { return h.state.Load() &^ frozen }

// dead reports whether the claim is over or never was.
func (l *claim) dead() bool {
	return l.h == nil || (l.h.state.Load()^l.word)&^noise != 0
}

func (l *claim) release() ReleaseStatus {
	if l.word&(leased|slow) == leased && l.h.state.CompareAndSwap(l.word, l.word+handBack) {
		return Retained
	}
	return l.releaseSlow()
}

func (l *claim) releaseSlow() ReleaseStatus {
	if l.h == nil {
		return IgnoredNil
	}
	return l.h.core.release(l.h, l.word)
}

// renew ends a claim in favour of a new one for the same storage, of which
// there are no copies. It fails if the claim is over.
func (l *claim) renew() (renewed claim, ok bool) {
	h := l.h
	for h != nil {
		s := h.state.Load()
		switch {
		case (s^l.word)&^noise != 0:
			return claim{}, false
		case s&frozen != 0:
			h.core.awaitThaw()
		case h.state.CompareAndSwap(s, s+serial):
			return claim{h, (s + serial) &^ frozen}, true
		}
	}
	return claim{}, false
}

// panicDead reports the use of a claim that is dead, and panics.
func (l *claim) panicDead(typ, method string) {
	if l.h == nil {
		panic("bytebufferpool: " + typ + "." + method + " on a zero " + typ)
	}
	l.h.core.misused(Misuse{Kind: UseAfterRelease, Capacity: cap(l.h.buf), Offset: -1}, l.h, l.word)
	panic("bytebufferpool: " + typ + "." + method + " after Release")
}
