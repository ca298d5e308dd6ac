package bytebufferpool

import (
	"math"
	"sync"
	"unsafe"
)

// Validation of raw slices: a record for each address that is acquired, or that
// was released lately. Everything is under one lock, because the bound on the
// history and its order are exact.
//
// Addresses are numbers, not pointers: a pointer would keep dropped storage, up
// to the number of tombstones times the largest capacity, from being collected.
// So a record may name an address that the garbage collector has since given to
// something else: a foreign slice there is reported as a duplicate. Both are
// rejected.

// record is one address. 32 bytes without the stack.
type record struct {
	addr       uintptr
	capacity   int
	prev, next int32 // neighbours among the tombstones, or none; next also links free records
	active     bool
	trace      *trace // stacks, if sampled
}

const none = -1

// guard is the validation storage of a pool.
type guard struct {
	mu    sync.Mutex
	limit int // immutable after New

	// All guarded by mu.
	records        []record
	table          []int32 // open addressing by hash of addr: record number + 1, 0 is empty
	shift          uint8   // 64 - log2(len(table))
	free           int32   // first free record, or none
	oldest, newest int32   // ends of the tombstone list, or none
	active, dead   int
}

func newGuard(limit int) *guard {
	if limit == 0 {
		limit = DefaultMaxValidationTombstones
	}
	g := &guard{limit: limit}
	g.reset(0)
	return g
}

// reset makes empty storage with room for n records.
func (g *guard) reset(n int) {
	bits := uint8(4)
	for 1<<bits < 2*n {
		bits++
	}
	g.records = make([]record, 0, n)
	g.table = make([]int32, 1<<bits)
	g.shift = 64 - bits
	g.free, g.oldest, g.newest = none, none, none
	g.active, g.dead = 0, 0
}

func (g *guard) bucket(addr uintptr) int {
	return int(uint64(addr) * 0x9E3779B97F4A7C15 >> g.shift)
}

// find returns the table position of addr: its record's, or the empty one where
// it belongs.
func (g *guard) find(addr uintptr) int {
	mask := len(g.table) - 1
	for i := g.bucket(addr); ; i = (i + 1) & mask {
		if n := g.table[i]; n == 0 || g.records[n-1].addr == addr {
			return i
		}
	}
}

// remove takes the entry at table position i out and closes the gap, so that
// searches need no marks of removed entries.
func (g *guard) remove(i int) {
	mask := len(g.table) - 1
	for j := (i + 1) & mask; g.table[j] != 0; j = (j + 1) & mask {
		// An entry may move back to i unless its own bucket lies after i.
		home := g.bucket(g.records[g.table[j]-1].addr)
		if (j-home)&mask >= (j-i)&mask {
			g.table[i] = g.table[j]
			i = j
		}
	}
	g.table[i] = 0
}

// grow doubles the table when it is more than half full.
func (g *guard) grow() {
	if 2*(g.active+g.dead+1) <= len(g.table) {
		return
	}
	old := g.table
	g.table = make([]int32, 2*len(old))
	g.shift--
	for _, n := range old {
		if n != 0 {
			g.table[g.find(g.records[n-1].addr)] = n
		}
	}
}

// activate notes that a slice was handed out.
func (g *guard) activate(b []byte, t *trace) {
	addr := address(b)
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.find(addr)
	if n := g.table[i]; n != 0 {
		// The address is in use again. If it was active, its owner lost it to the
		// garbage collector without releasing it.
		r := &g.records[n-1]
		if !r.active {
			g.unlink(n - 1)
			g.active++
		}
		r.active, r.capacity, r.trace = true, cap(b), t
		return
	}
	g.add(addr, cap(b), t)
}

func (g *guard) add(addr uintptr, capacity int, t *trace) {
	g.grow()
	n := g.free
	if n != none {
		g.free = g.records[n].next
	} else {
		if len(g.records) == math.MaxInt32 {
			panic("bytebufferpool: more than 2^31 raw slices are acquired")
		}
		n = int32(len(g.records))
		g.records = append(g.records, record{})
	}
	g.records[n] = record{addr: addr, capacity: capacity, prev: none, next: none, active: true, trace: t}
	g.table[g.find(addr)] = n + 1
	g.active++
}

// retire judges a release: Retained if the slice may be taken, and for the others
// what is known of it. An accepted slice becomes a tombstone, and so does one
// whose capacity was changed.
func (g *guard) retire(b []byte) (ReleaseStatus, *trace) {
	addr := address(b)
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.table[g.find(addr)]
	if n == 0 {
		return RejectedForeign, nil
	}
	r := &g.records[n-1]
	if !r.active {
		return RejectedDuplicate, r.trace
	}
	r.active = false
	r.trace = r.trace.withRelease()
	g.active--
	g.link(n - 1)
	if g.dead > g.limit {
		g.forgetOldest()
	}
	if r.capacity != cap(b) {
		return DroppedInvalid, r.trace
	}
	return Retained, r.trace
}

// link makes a record the newest tombstone.
func (g *guard) link(n int32) {
	r := &g.records[n]
	r.prev, r.next = g.newest, none
	if g.newest != none {
		g.records[g.newest].next = n
	} else {
		g.oldest = n
	}
	g.newest = n
	g.dead++
}

// unlink takes a record out of the tombstones.
func (g *guard) unlink(n int32) {
	r := &g.records[n]
	if r.prev != none {
		g.records[r.prev].next = r.next
	} else {
		g.oldest = r.next
	}
	if r.next != none {
		g.records[r.next].prev = r.prev
	} else {
		g.newest = r.prev
	}
	r.prev, r.next = none, none
	g.dead--
}

func (g *guard) forgetOldest() {
	n := g.oldest
	g.unlink(n)
	g.remove(g.find(g.records[n].addr))
	g.records[n] = record{prev: none, next: g.free}
	g.free = n
}

// clear rebuilds the storage with the active records alone.
func (g *guard) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.records
	g.reset(g.active)
	for i := range old {
		if r := &old[i]; r.active {
			g.add(r.addr, r.capacity, r.trace)
		}
	}
}

// address is where the storage of a slice begins.
func address(b []byte) uintptr {
	// Safety: the address is used as a number only.
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}
