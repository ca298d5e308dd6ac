package bytebufferpool

import (
	"math"
	"math/rand"
	"runtime"
	"sort"
	"testing"
	"unsafe"
)

func TestHeader_Size(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are pinned on 64-bit machines")
	}
	if got := unsafe.Sizeof(header{}); got != 64 {
		t.Errorf("a header is %d bytes, want a cache line of 64", got)
	}
	if got := unsafe.Sizeof(cell{}); got != 256 {
		t.Errorf("a cell is %d bytes, want 256, so that no two share a cache line", got)
	}
	if seats := unsafe.Offsetof(cell{}.slots); seats != 128 {
		t.Errorf("slots begin at %d, want 128: seats and slots share a cache line", seats)
	}
	if got := unsafe.Sizeof(Lease{}); got != 24 {
		t.Errorf("a lease is %d bytes, want 24", got)
	}
}

func TestLookup_AgreesWithSearch(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	tables := [][]int{{1}, {64}, {math.MaxInt}, {1, 2, 3, 4, 5}, {63, 64, 65, 1000, math.MaxInt - 1}}
	for i := 0; i < 200; i++ {
		set := map[int]bool{}
		for n := 1 + r.Intn(MaxClasses); len(set) < n; {
			set[1+r.Intn(1<<uint(8+r.Intn(22)))] = true
		}
		var classes []int
		for c := range set {
			classes = append(classes, c)
		}
		sort.Ints(classes)
		tables = append(tables, classes)
	}
	for _, classes := range tables {
		l := newLookup(classes)
		sizes := []int{0, 1, 2, math.MaxInt, math.MaxInt - 1}
		for _, c := range classes {
			sizes = append(sizes, c-1, c, min(c, math.MaxInt-1)+1)
		}
		for _, size := range sizes {
			want := sort.SearchInts(classes, size)
			if size == math.MaxInt && want == len(classes) {
				continue // larger than any storage
			}
			if got := int(l.class(size)); got != want {
				t.Fatalf("class of %d in %v is %d, want %d", size, classes, got, want)
			}
			exact := -1
			if want < len(classes) && classes[want] == size {
				exact = want
			}
			if got := l.exact(size); got != exact {
				t.Fatalf("exact class of %d in %v is %d, want %d", size, classes, got, exact)
			}
		}
	}
}

func FuzzLookup(f *testing.F) {
	f.Add(64, 1<<20, 4, 1500)
	f.Add(1, 1, 1, 0)
	f.Add(3, math.MaxInt32, 3, 65)
	f.Fuzz(func(t *testing.T, smallest, largest, steps, size int) {
		classes, err := Geometric(smallest, largest, steps)
		if err != nil {
			return
		}
		if classes[0] != smallest || classes[len(classes)-1] != largest || !sort.IntsAreSorted(classes) || len(classes) > MaxClasses {
			t.Fatalf("Geometric(%d, %d, %d) = %v", smallest, largest, steps, classes)
		}
		for i := 1; i < len(classes); i++ {
			// At most one step of the doubling, and the rounding.
			if uint64(classes[i])-uint64(classes[i-1]) > uint64(classes[i-1])/uint64(steps)+minStep+1 {
				t.Fatalf("a step from %d to %d with %d steps per doubling", classes[i-1], classes[i], steps)
			}
		}
		if size < 0 || size == math.MaxInt {
			return
		}
		if got, want := int(newLookup(classes).class(size)), sort.SearchInts(classes, size); got != want {
			t.Fatalf("class of %d in %v is %d, want %d", size, classes, got, want)
		}
	})
}

// guardModel is the validation as the contract tells it: a map and a list.
type guardModel struct {
	limit   int
	active  map[uintptr]int // capacity by address
	history []uintptr       // the oldest first
}

func (m *guardModel) forget(addr uintptr) {
	for i, a := range m.history {
		if a == addr {
			m.history = append(m.history[:i], m.history[i+1:]...)
			return
		}
	}
}

func (m *guardModel) retire(addr uintptr, capacity int) ReleaseStatus {
	c, ok := m.active[addr]
	if !ok {
		for _, a := range m.history {
			if a == addr {
				return RejectedDuplicate
			}
		}
		return RejectedForeign
	}
	delete(m.active, addr)
	m.history = append(m.history, addr)
	if len(m.history) > m.limit {
		m.history = m.history[1:]
	}
	if c != capacity {
		return DroppedInvalid
	}
	return Retained
}

// arena is on the heap: storage on a stack moves when the stack grows.
var arena []byte

func TestGuard_AgreesWithModel(t *testing.T) {
	for seed := int64(0); seed < 50; seed++ {
		r := rand.New(rand.NewSource(seed))
		limit := 1 + r.Intn(20)
		g := newGuard(limit)
		m := &guardModel{limit: limit, active: map[uintptr]int{}}
		arena = make([]byte, 64*100)
		at := func() []byte {
			n := r.Intn(100)
			return arena[n*64 : n*64+1 : n*64+1+r.Intn(2)]
		}
		for i := 0; i < 3000; i++ {
			b := at()
			switch n := r.Intn(100); {
			case n < 45:
				g.activate(b, nil)
				m.forget(address(b))
				m.active[address(b)] = cap(b)
			case n < 99:
				got, _ := g.retire(b)
				if want := m.retire(address(b), cap(b)); got != want {
					t.Fatalf("seed %d, step %d: %v, want %v", seed, i, got, want)
				}
			default:
				g.clear()
				m.history = nil
			}
			if g.active != len(m.active) || g.dead != len(m.history) {
				t.Fatalf("seed %d, step %d: %d active and %d tombstones, want %d and %d",
					seed, i, g.active, g.dead, len(m.active), len(m.history))
			}
		}
	}
}

func TestGuard_ClearRebuilds(t *testing.T) {
	g := newGuard(0)
	arena = make([]byte, 5000)
	for i := range arena {
		b := arena[i : i+1]
		g.activate(b, nil)
		g.retire(b)
	}
	before := len(g.table)
	g.clear()
	if len(g.table) >= before/10 || cap(g.records) > 16 {
		t.Errorf("the table has %d places and %d records after Clear, %d before", len(g.table), cap(g.records), before)
	}
}

func TestHistogram_Buckets(t *testing.T) {
	last := -1
	for size := 0; size < 1<<16; size++ {
		b := bucketOf(size)
		if b != last && b != last+1 {
			t.Fatalf("bucket of %d is %d after %d", size, b, last)
		}
		last = b
		if low, high := int(bucketStart(b))+1, int(bucketStart(b+1)); max(size, 1) < low || size > high || high-low > size/subBuckets {
			t.Fatalf("%d is in a bucket from %d through %d", size, low, high)
		}
	}
	if b := bucketOf(math.MaxInt); b >= len(histogram{}.counts) {
		t.Errorf("bucket %d", b)
	}
}

// A storage that was acquired at one depth of the stack and is released at another
// must not make every later acquisition a search.
func TestShard_DepthDoesNotMatter(t *testing.T) {
	if invariants {
		t.Skip("with the tag invariants nothing is on the fast path")
	}
	for _, mode := range []Mode{Fast, Bounded} {
		p, err := New(DefaultConfig(mode))
		if err != nil {
			t.Fatal(err)
		}
		var deep func(n int, f func())
		deep = func(n int, f func()) {
			var pad [256]byte
			if n > 0 {
				deep(n-1, f)
			} else {
				f()
			}
			runtime.KeepAlive(&pad)
		}
		for depth := 0; depth < 16; depth++ {
			l := p.Acquire(1000)
			deep(depth, func() { l.Release() })
			fast := 0
			for i := 0; i < 10; i++ {
				l := p.Acquire(1000)
				if l.word&slow == 0 {
					fast++
				}
				deep(depth, func() { l.Release() })
			}
			if fast < 8 {
				t.Errorf("%v, depth %d: %d of 10 acquisitions were fast", mode, depth, fast)
			}
		}
	}
}

// Bounded overflow is last in, first out.
func TestMagazine_LIFO(t *testing.T) {
	sh := &shard{mags: make([]magazine, 1)}
	var h [3]header
	for i := range h {
		sh.push(stored{header: &h[i]}, 0)
	}
	for i := len(h) - 1; i >= 0; i-- {
		if sh.popHeader(0) != &h[i] {
			t.Errorf("%d is not on top", i)
		}
	}
	if sh.popHeader(0) != nil || sh.stock.Load() != 0 {
		t.Error("not empty")
	}
}

// A frozen pool gives nothing away, and all of it again after the thaw.
func TestFreeze_HoldsSeatsAndSlots(t *testing.T) {
	p, err := New(DefaultConfig(Bounded))
	if err != nil {
		t.Fatal(err)
	}
	l := p.Acquire(64)
	word := l.word
	l.Release()
	p.ReleaseSlice(p.AcquireSlice(128))
	c := p.core
	find := func() (seats, slots int) {
		for i := range c.cells {
			if h, _ := c.cells[i].takeSeated(); h != nil {
				seats++
			}
			if c.cells[i].takeSlot() != nil {
				slots++
			}
			if c.cells[i].fill(&make([]byte, 64)[0]) {
				slots++
			}
		}
		return seats, slots
	}
	c.freeze()
	if seats, slots := find(); seats+slots != 0 {
		t.Errorf("%d seats and %d slots of a frozen pool gave way", seats, slots)
	}
	if status := (&claim{l.h, word}); !status.dead() {
		t.Error("a frozen header revives an old lease")
	}
	count := make([]int, c.classes.n)
	if c.idle(count); count[0] != 1 || count[1] != 1 {
		t.Errorf("idle: %v", count)
	}
	c.thaw()
	if seats, slots := find(); seats != 1 || slots != 2 { // taken, and its slot filled again
		t.Errorf("%d seats and %d slots after the thaw", seats, slots)
	}
}

// What Clear makes stale between the look at the generation and the placing is
// dropped all the same: in a seat it would be found by nobody's next Clear.
func TestKeep_StaleIsDropped(t *testing.T) {
	for _, mode := range []Mode{Fast, Bounded} {
		p, err := New(DefaultConfig(mode))
		if err != nil {
			t.Fatal(err)
		}
		c := p.core
		h := c.newHeader(make([]byte, 64))
		h.state.Store(serial | unseated)
		p.Clear()
		if got := c.keep(stored{header: h}, 0, 0); got != DroppedStale {
			t.Errorf("%v: %v", mode, got)
		}
		if mode == Fast {
			c.spill.Load().classes[0].headers.put(h)
			if c.unspillHeader(0) != nil {
				t.Error("a stale header came out of the spill")
			}
		}
	}
}

// A header is seated where it was acquired, whoever releases it.
func TestHeader_GoesHome(t *testing.T) {
	p, err := New(DefaultConfig(Bounded))
	if err != nil {
		t.Fatal(err)
	}
	for shard := range p.core.shards {
		owned, err := p.core.acquire(1<<20, KindLease, uint32(shard))
		if err != nil {
			t.Fatal(err)
		}
		owned.release()
		if h := p.core.cell(14, uint32(shard)).seats[0].Load(); h != owned.h {
			t.Errorf("shard %d: not there", shard)
		}
		p.Clear()
	}
}

// One who always finds its seats empty gets a header of its own in the end.
func TestHeader_MovesToWhoStays(t *testing.T) {
	if invariants {
		t.Skip("with the tag invariants nothing is on the fast path")
	}
	p, err := New(DefaultConfig(Fast))
	if err != nil {
		t.Fatal(err)
	}
	c := p.core
	if len(c.shards) < 2 {
		t.Skip("one shard")
	}
	use := func(shard uint32) {
		owned, err := c.acquire(64, KindLease, shard)
		if err != nil {
			t.Fatal(err)
		}
		owned.release()
	}
	use(0)
	if c.cell(0, 0).seats[0].Load() == nil {
		t.Fatal("not seated at home")
	}
	for i := 0; i <= int(moveMask/serial); i++ {
		use(1)
	}
	if c.cell(0, 1).seats[0].Load() == nil || c.cell(0, 0).seats[0].Load() != nil {
		t.Error("it did not move")
	}
}
