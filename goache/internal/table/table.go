// Package table is the index of one shard: from the hash of a key to the places where
// an entry with that key may be.
//
// It knows neither keys nor entries. An entry is a pointer with a 32-bit hash, told
// apart from others by its address. Whoever asks walks the candidates of a hash and
// compares keys himself:
//
//	i := t.Home(h)
//	for range t.Buckets() {
//		b := t.At(i)
//		w := b.Word()
//		for m := Match(w, Tag(h)); m != 0; m &= m - 1 {
//			… b.Entry(m) …
//		}
//		if !Overflowed(w) {
//			break
//		}
//		i = t.Next(i)
//	}
//
// Any number of readers may walk while one writer changes the table: a reader sees an
// entry from its insertion on, and until its removal. Writers exclude each other. A
// table does not grow; [Table.Grown] returns a new one with the same entries, and
// readers may finish their walk in the old one. Entries never move within a table, or
// a reader could miss one by walking past it.
package table

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

const (
	// slots is the number of entries in a bucket: with the word of tags, seven
	// pointers make one cache line of 64 bytes.
	slots = 7

	low  = 0x0001_0101_0101_0101 // bit 0 of each slot's byte
	used = 0x0080_8080_8080_8080 // bit 7 of each slot's byte: the slot holds an entry

	overflowShift = 8 * slots
	overflowOne   = uint64(1) << overflowShift
	overflowMax   = 0xff
)

// Load factor: a table is full when 13 of 16 slots are taken, 5.7 of 7. Fuller, more
// than a fifth of the buckets overflow and a miss walks two lines.
const (
	loadNum = 13
	loadDen = 16
)

// A bucket is one cache line (on 64-bit systems): a byte for each slot, 0 when it is
// free and otherwise bit 7 and the low 7 bits of the entry's hash, and in the eighth
// byte how many entries went on to a later bucket because this one was full.
//
// The count does better than a tombstone or a flag: it goes down when such an entry
// leaves. Only at 255 it sticks, since then it is not known any more.
type bucket struct {
	word    atomic.Uint64
	entries [slots]unsafe.Pointer // atomic; what stands in a free slot is old
}

// Table is an index of fixed size. Make one with [New].
type Table struct {
	buckets []bucket // immutable; the elements are atomic

	// For writers. Entries that went on stay where they are when room comes up nearer
	// to their home: with removals and insertions in turn, walks get longer until the
	// table is rebuilt.
	displaced int // by how many buckets, summed up over all entries
	removed   int // entries, since the table was made
}

// wornOverflow is how many entries, on average, may have gone on from a bucket before
// the table is worn. With 60 % of the slots taken, churn settles below that (a miss
// walks 1.7 buckets, 1.1 in a fresh table); with 75 % a miss would walk 7.
const wornOverflow = 2

// Worn reports whether walks have become long by churn, so that the table should be
// replaced by [Table.Grown]. Between two times at least half of the entries that fit
// were removed.
func (t *Table) Worn() bool {
	return t.displaced > wornOverflow*len(t.buckets) && t.removed > t.Room()/2
}

// RoomWorn is the room to ask of Grown for n entries in a worn table: so that 60 % of
// the slots are taken.
func RoomWorn(n int) int { return n + n/3 }

// New returns a table with room for n entries.
func New(n int) *Table {
	n = max(n, 1)
	return &Table{buckets: make([]bucket, (n*loadDen+slots*loadNum-1)/(slots*loadNum))}
}

// Room returns how many entries the table takes before it must grow. It is less than
// the number of slots, so an insertion finds a free one.
func (t *Table) Room() int { return (len(t.buckets)*slots*loadNum + loadDen - 1) / loadDen }

// Buckets returns the number of buckets: no walk is longer.
func (t *Table) Buckets() int { return len(t.buckets) }

// Home returns where the walk of a hash begins. It depends on the high bits.
func (t *Table) Home(h uint32) uint32 {
	return uint32(uint64(h) * uint64(len(t.buckets)) >> 32)
}

// Next returns the bucket after i, in a ring.
func (t *Table) Next(i uint32) uint32 {
	if i++; int(i) < len(t.buckets) {
		return i
	}
	return 0
}

// At returns bucket i.
func (t *Table) At(i uint32) *bucket { return &t.buckets[i] }

// Word returns the tags of a bucket, for [Match] and [Overflowed].
func (b *bucket) Word() uint64 { return b.word.Load() }

// Entry returns the entry in the slot of m's lowest bit.
func (b *bucket) Entry(m uint64) unsafe.Pointer {
	return atomic.LoadPointer(b.slot(m))
}

func (b *bucket) slot(m uint64) *unsafe.Pointer {
	// Safety: m has a bit set in one of the low seven bytes, as all that Match and the
	// masks of this package return; so the index is below seven.
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(&b.entries), uintptr(bits.TrailingZeros64(m)>>3)*unsafe.Sizeof(b.entries[0])))
}

// Tag returns what [Match] looks for: the low bits of the hash in each slot's byte.
func Tag(h uint32) uint64 { return uint64(h&0x7f|0x80) * low }

// Match returns a mask with bit 7 set in the byte of each slot of w that has the tag.
// A slot above a matching one may be in it wrongly, which the comparison of keys finds
// out.
func Match(w, tag uint64) uint64 {
	x := w ^ tag
	return (x - low) &^ x & used
}

// Overflowed reports whether the walk goes on to the next bucket.
func Overflowed(w uint64) bool { return w >= overflowOne }

// Used returns a mask like [Match]'s of the slots that hold an entry.
func Used(w uint64) uint64 { return w & used }

// Insert adds an entry that is not in the table. There must be room.
func (t *Table) Insert(h uint32, entry unsafe.Pointer) {
	i := t.Home(h)
	for range t.buckets {
		b := &t.buckets[i]
		w := b.word.Load()
		if free := ^w & used; free != 0 {
			// The pointer first: a reader that finds the tag finds the entry. After a
			// removal it is often there already, and a load is cheaper than a store.
			if p := b.slot(free); *p != entry {
				atomic.StorePointer(p, entry)
			}
			b.word.Store(w | uint64(h&0x7f|0x80)<<(bits.TrailingZeros64(free)&^7))
			return
		}
		// Before the entry can be found: a reader never stops too early.
		if w>>overflowShift != overflowMax {
			b.word.Store(w + overflowOne)
			t.displaced++
		}
		i = t.Next(i)
	}
	panic("goache: internal error: the table is full")
}

// Remove takes an entry out and reports whether it was in. The entry's pointer may
// stay behind in its slot until that is used again.
func (t *Table) Remove(h uint32, entry unsafe.Pointer) bool {
	home := t.Home(h)
	tag := Tag(h)
	i := home
	for range t.buckets {
		b := &t.buckets[i]
		w := b.word.Load()
		for m := Match(w, tag); m != 0; m &= m - 1 {
			if *b.slot(m) != entry || w&(m&-m) == 0 {
				continue
			}
			b.word.Store(w &^ (0xff << (bits.TrailingZeros64(m) &^ 7)))
			t.removed++
			for j := home; j != i; j = t.Next(j) {
				t.settle(&t.buckets[j])
			}
			return true
		}
		if !Overflowed(w) {
			return false
		}
		i = t.Next(i)
	}
	return false
}

// settle counts one overflowed entry less.
func (t *Table) settle(b *bucket) {
	if w := b.word.Load(); w>>overflowShift != overflowMax {
		b.word.Store(w - overflowOne)
		t.displaced--
	}
}

// Clear takes all entries out.
func (t *Table) Clear() {
	for i := range t.buckets {
		if b := &t.buckets[i]; b.word.Load() != 0 {
			b.word.Store(0)
		}
	}
	t.displaced, t.removed = 0, 0
}

// Grown returns a table with room for n entries that holds those of t. hash returns an
// entry's hash.
func (t *Table) Grown(n int, hash func(entry unsafe.Pointer) uint32) *Table {
	g := New(max(n, t.Room()))
	for i := range t.buckets {
		b := &t.buckets[i]
		for m := Used(b.word.Load()); m != 0; m &= m - 1 {
			e := *b.slot(m)
			g.Insert(hash(e), e)
		}
	}
	return g
}
