package table_test

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/hotset-go/hotset/goache/internal/table"
)

type item struct{ hash uint32 }

func hashOf(p unsafe.Pointer) uint32 { return (*item)(p).hash }

// lookup walks the candidates of a hash as a reader does.
func lookup(t *table.Table, want *item) (found bool, walked int) {
	i := t.Home(want.hash)
	for range t.Buckets() {
		walked++
		b := t.At(i)
		w := b.Word()
		for m := table.Match(w, table.Tag(want.hash)); m != 0; m &= m - 1 {
			if (*item)(b.Entry(m)) == want {
				return true, walked
			}
		}
		if !table.Overflowed(w) {
			break
		}
		i = t.Next(i)
	}
	return false, walked
}

// count counts all entries.
func count(t *table.Table) (n int) {
	for i := range t.Buckets() {
		for m := table.Used(t.At(uint32(i)).Word()); m != 0; m &= m - 1 {
			n++
		}
	}
	return n
}

// TestTable_Model holds the table against a set. With few distinct hashes, buckets
// overflow far beyond what chance would do.
func TestTable_Model(t *testing.T) {
	for _, hashes := range []uint32{1, 3, 40, 1 << 31} {
		rng := rand.New(rand.NewPCG(uint64(hashes), 2))
		tab := table.New(1)
		in := map[*item]bool{}
		var all []*item
		for range 400 {
			all = append(all, &item{rng.Uint32N(hashes) * (0xffff_ffff/hashes + 1)})
		}
		for step := range 20_000 {
			e := all[rng.IntN(len(all))]
			switch rng.IntN(5) {
			case 0, 1, 2:
				if in[e] {
					continue
				}
				if len(in) == tab.Room() || tab.Worn() {
					tab = tab.Grown(max(2*len(in), 8), hashOf)
				}
				tab.Insert(e.hash, unsafe.Pointer(e))
				in[e] = true
			case 3:
				if tab.Remove(e.hash, unsafe.Pointer(e)) != in[e] {
					t.Fatalf("%d hashes, step %d: Remove found an entry that is not there, or did not find one", hashes, step)
				}
				delete(in, e)
			case 4:
				if rng.IntN(200) == 0 {
					tab.Clear()
					clear(in)
				}
			}
			probe := all[rng.IntN(len(all))]
			if found, _ := lookup(tab, probe); found != in[probe] {
				t.Fatalf("%d hashes, step %d: found %v, want %v", hashes, step, found, in[probe])
			}
			if step%500 == 0 && count(tab) != len(in) {
				t.Fatalf("%d hashes, step %d: %d entries, want %d", hashes, step, count(tab), len(in))
			}
		}
	}
}

// TestTable_ChurnDoesNotLengthenWalks: without counts that go down, or without
// rebuilding, misses in a full table walk further and further.
func TestTable_ChurnDoesNotLengthenWalks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab := table.New(2000)
	var in []*item
	for len(in) < 2000 {
		e := &item{rng.Uint32()}
		tab.Insert(e.hash, unsafe.Pointer(e))
		in = append(in, e)
	}
	walked := func() (sum int) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 10_000 {
			_, n := lookup(tab, &item{r.Uint32()})
			sum += n
		}
		return sum
	}
	rebuilt := 0
	for step := range 200_000 {
		i := rng.IntN(len(in))
		if !tab.Remove(in[i].hash, unsafe.Pointer(in[i])) {
			t.Fatal("an entry is lost")
		}
		if tab.Worn() {
			tab = tab.Grown(table.RoomWorn(len(in)), hashWithout(in[i]))
			rebuilt++
		}
		in[i].hash = rng.Uint32()
		tab.Insert(in[i].hash, unsafe.Pointer(in[i]))
		if step%1000 == 0 {
			if n := walked(); n > 60_000 {
				t.Fatalf("step %d: 10,000 misses walk %d buckets", step, n)
			}
		}
	}
	// The first rebuilding leaves room enough.
	if n := walked(); n > 25_000 || rebuilt > 20 {
		t.Errorf("10,000 misses walk %d buckets after churn, with %d rebuilds", n, rebuilt)
	}
	for _, e := range in {
		tab.Remove(e.hash, unsafe.Pointer(e))
	}
	if n := walked(); n != 10_000 {
		t.Errorf("10,000 misses walk %d buckets of an empty table", n)
	}
}

// hashWithout is hashOf where e must not occur.
func hashWithout(e *item) func(unsafe.Pointer) uint32 {
	return func(p unsafe.Pointer) uint32 {
		if (*item)(p) == e {
			panic("a removed entry is in the table")
		}
		return hashOf(p)
	}
}

// TestTable_AllInOneBucket: chosen keys cannot make a walk endless or a table
// too full, and the count of overflows may stick at its end.
func TestTable_AllInOneBucket(t *testing.T) {
	const n = 1000
	tab := table.New(n)
	items := make([]item, n)
	for i := range items {
		items[i].hash = 0xffff_ffff
		tab.Insert(items[i].hash, unsafe.Pointer(&items[i]))
	}
	for i := range items {
		if found, _ := lookup(tab, &items[i]); !found {
			t.Fatalf("entry %d is lost", i)
		}
	}
	for i := range items {
		if !tab.Remove(items[i].hash, unsafe.Pointer(&items[i])) {
			t.Fatalf("entry %d is lost", i)
		}
	}
	if found, walked := lookup(tab, &item{0xffff_ffff}); found || walked > tab.Buckets() {
		t.Errorf("found %v after a walk of %d in %d buckets", found, walked, tab.Buckets())
	}
}

// TestMatch_FindsEveryTag: no slot with the tag is left out, and none that is free is
// in.
func TestMatch_FindsEveryTag(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		var w uint64
		tag := rng.Uint32N(128)
		var want, free uint64
		for i := range 7 {
			b := uint64(0)
			switch rng.IntN(4) {
			case 0:
				free |= 0x80 << (8 * i)
			case 1:
				b = uint64(0x80 | tag)
				want |= 0x80 << (8 * i)
			case 2:
				b = uint64(0x80 | tag ^ 1)
			case 3:
				b = uint64(0x80 | rng.Uint32N(128))
				if b == uint64(0x80|tag) {
					want |= 0x80 << (8 * i)
				}
			}
			w |= b << (8 * i)
		}
		w |= uint64(rng.Uint32N(256)) << 56
		got := table.Match(w, table.Tag(tag))
		if got&want != want || got&free != 0 {
			t.Fatalf("Match(%x, %x) = %x, want %x and nothing of %x", w, tag, got, want, free)
		}
	}
}

func TestTable_Room(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 5, 6, 7, 100, 12345} {
		tab := table.New(n)
		if tab.Room() < n || tab.Room() >= 7*tab.Buckets() {
			t.Errorf("New(%d): room for %d in %d buckets", n, tab.Room(), tab.Buckets())
		}
		for _, h := range []uint32{0, 1, 1 << 31, 0xffff_ffff} {
			if i := tab.Home(h); int(i) >= tab.Buckets() {
				t.Errorf("New(%d): the home of %x is %d of %d", n, h, i, tab.Buckets())
			}
		}
	}
}

func TestBucket_IsACacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("32-bit")
	}
	if n := unsafe.Sizeof(*table.New(1).At(0)); n != 64 {
		t.Errorf("a bucket has %d bytes, want 64", n)
	}
}
