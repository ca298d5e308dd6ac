package bytebufferpool

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// The engine keeps idle storage where it was last used. A cell (shard x class)
// has seats for leased storage and slots for raw slices. A header stays in its
// seat while it is leased, so an acquisition and a release are one
// compare-and-swap each on the header's state, and nothing shared is written.
//
// What does not find a seat or a slot goes to the overflow: fast.go or bounded.go.

// The state of a header is one word: three flags, one mark and a serial that
// rises with each release. A lease keeps the word that it was issued with.
// Releasing swaps that word for the next serial without the leased flag: one
// operation gives the storage back, invalidates every copy of the lease
// and lets exactly one of racing releases win. With 60 bits a serial does not
// repeat: at one release a nanosecond it lasts 36 years.
const (
	leased   = 1 << 0 // somebody owns the storage
	unseated = 1 << 1 // in no seat: the fast path keeps its hands off
	frozen   = 1 << 2 // in a seat, and all shards are locked for an exact picture
	checked  = 1 << 3 // options want to see the release
	serial   = 1 << 4

	// noise are the flags that a lease's word is compared without. The word keeps
	// those of slow, so that a release that cannot be a single swap does not try.
	noise = unseated | frozen | checked
	slow  = unseated | checked

	// handBack turns the word of a lease into that of idle storage.
	handBack = serial - leased
)

// header is the identity of a storage that is leased, allocated with it and gone
// with it. 64 bytes on 64-bit machines: one cache line, and a size class of the
// Go allocator; TestHeader_Size pins it.
type header struct {
	state atomic.Uint64
	core  *core   // immutable
	buf   []byte  // immutable, len = cap
	gen   uint64  // generation of the pool when it was allocated; immutable
	next  *header // the next segment of a Chain; owned by whoever holds the lease
	seen  uint32  // state at the last sweep, its lower half; guarded by core.ctl
	home  uint32  // shard that leases it, and where it is seated; owned like next
}

// A cell has room for what one goroutine holds at once, more overflows. A seat
// costs a load while it is searched for a free one, the overflow two locks:
// BenchmarkHeld is fastest with room for all.
const (
	seatsPerCell = 16
	slotsPerCell = 15
)

// cell holds the idle storage of a class in a shard. A seat is filled under the
// shard's lock only, and emptied by whoever unseated its header.
//
// A slot holds storage of raw slices, or one of
//
//	nil        closed: no budget is reserved for it
//	slotOpen   empty, with budget for one storage of the class
//	slotHeld   frozen
//
// It is opened under the shard's lock only. A Fast pool has budget without end.
type cell struct {
	seats [seatsPerCell]atomic.Pointer[header]
	slots [slotsPerCell]atomic.Pointer[byte]

	// Bit i tells that slot i was filled since the last sweep.
	used atomic.Uint32
	_    [unsafe.Sizeof(uintptr(0)) - 4]byte
}

var (
	slotMarks [2]byte
	slotOpen  = &slotMarks[0]
	slotHeld  = &slotMarks[1]
)

// isStorage tells storage in a slot from the marks.
func isStorage(p *byte) bool { return p != nil && p != slotOpen && p != slotHeld }

// front is what the fast path reads, the same in the Pool and in its core.
// Immutable after New.
type front struct {
	// Sizes below direct, at most the largest class, take the fast path. 0 when an
	// option needs to see every operation, so that options cost nothing while off.
	direct uint

	classes *lookup
	cells   []cell // class<<shardBits | shard: cells of unused classes stay untouched memory
	core    *core

	shardBits  uint8
	shardShift uint8 // 32 - shardBits
}

// core is the engine of a pool. It does not refer to the Pool that the user
// holds, whose finalizer tells when nobody can acquire any more.
type core struct {
	front
	cfg Config

	gen    atomic.Uint64 // written under ctl with all shards frozen
	closed atomic.Bool   // the Pool is unreachable: stop the sweeps

	// ctl serialises everything that looks at or changes all shards. It is taken
	// before the lock of any shard, never while holding one.
	ctl     sync.Mutex
	held    []*byte // what frozen slots contained, nil for closed ones; guarded by ctl
	sweptAt int64   // time of the last sweep, Unix nanoseconds; guarded by ctl

	// inUse[class] is set before the first storage of a class is placed, and lets
	// walks over the cells skip the others.
	inUse [MaxClasses + 1]atomic.Bool

	// The shard where storage of a class was found or seated last, for those who find
	// nothing in their own. Written on the slow path only.
	seatHint, slotHint [MaxClasses + 1]atomic.Uint32

	shards []shard // by shard number, as the cells of a row

	reserved atomic.Int64          // Bounded: bytes of budget handed out, see bounded.go
	spill    atomic.Pointer[spill] // Fast: the overflow, see fast.go

	// work tells that options do something to released storage before others may
	// find it. Immutable after New.
	work bool

	// Each is nil without its option.
	guard   *guard      // ValidationEnabled
	tracker *tracker    // TrackOutstanding
	stats   *counters   // StatsEnabled
	sizes   *histogram  // SizeHistogram
	quar    *quarantine // Quarantine

	sampler atomic.Uint64 // acquisitions, for StackSampling
}

// shard holds what the slow path needs a lock for.
type shard struct {
	mu     sync.Mutex
	credit int64      // reserved by this shard and not used; guarded by mu
	mags   []magazine // by class, Bounded only; guarded by mu

	// stock is the number of storages in all magazines. It is written under mu, and read
	// without it to skip empty shards.
	stock atomic.Int64
	_     [64]byte // keep the locks of two shards out of one line
}

// maxShards bounds the memory of a pool (256 bytes a cell) and the time
// of an exact picture on machines with many cores.
const maxShards = 256

func newCore(cfg Config) *core {
	c := &core{cfg: cfg}
	// Four shards for each processor: with as many as processors, two
	// running goroutines would share one too often.
	shards := 1
	for shards < 4*runtime.GOMAXPROCS(0) && shards < maxShards {
		shards *= 2
	}
	c.shardBits = uint8(bits.Len(uint(shards - 1)))
	c.shardShift = 32 - c.shardBits
	c.classes = newLookup(cfg.Classes)
	c.cells = make([]cell, len(cfg.Classes)<<c.shardBits)
	c.shards = make([]shard, shards)
	c.core = c
	if !c.optioned() {
		c.direct = uint(min(cfg.MaxAcquireSize, cfg.Classes[len(cfg.Classes)-1])) + 1
	}
	c.work = cfg.ZeroOnRelease || cfg.DiagnosticFill || cfg.TrackOutstanding || cfg.StackSampling > 0 || cfg.Quarantine > 0
	c.sweptAt = time.Now().UnixNano()
	if cfg.Mode == Bounded {
		for i := range c.shards {
			c.shards[i].mags = make([]magazine, len(cfg.Classes))
		}
	} else {
		c.spill.Store(newSpill(len(cfg.Classes)))
	}
	if cfg.ValidationEnabled {
		c.guard = newGuard(cfg.MaxValidationTombstones)
	}
	if cfg.TrackOutstanding {
		c.tracker = newTracker()
	}
	if cfg.StatsEnabled {
		c.stats = newCounters(shards, len(cfg.Classes))
	}
	if cfg.SizeHistogram {
		c.sizes = new(histogram)
	}
	if cfg.Quarantine > 0 {
		c.quar = &quarantine{limit: cfg.Quarantine}
	}
	return c
}

// optioned reports whether releases or acquisitions have work beyond the seats.
func (c *core) optioned() bool {
	f := &c.cfg
	return f.ZeroOnRelease || f.ValidationEnabled || f.StatsEnabled || f.SizeHistogram ||
		f.DiagnosticFill || f.TrackOutstanding || f.StackSampling > 0 || f.Quarantine > 0
}

// shard returns the shard of the calling goroutine: a hash of where its stack is.
// That costs 1 ns, needs no linkname, and stays the same while the goroutine
// works at about the same depth. It is computed once for an operation, since
// deeper calls may lie in another piece of the stack. A caller in another piece finds
// what it needs by the hints of the core.
func (f *front) shard() uint32 {
	var here byte
	// Safety: the address is used as a number only.
	return f.hash(uintptr(unsafe.Pointer(&here)))
}

// stackBits is the size of a piece of stack in bits: half of the smallest stack
// that a goroutine has, so that neighbours differ.
const stackBits = 10

func (f *front) hash(at uintptr) uint32 {
	return uint32(at>>stackBits) * 0x9E3779B1 >> f.shardShift
}

func (f *front) cell(class uint8, shard uint32) *cell {
	return &f.cells[uint32(class)<<f.shardBits|shard]
}

// row returns the cells of a class, one a shard.
func (f *front) row(class uint8) []cell {
	return f.cells[int(class)<<f.shardBits : (int(class)+1)<<f.shardBits]
}

// lease returns a claim on storage for size bytes. It panics for an invalid size.
func (f *front) lease(size int, kind Kind) claim {
	shard := f.shard()
	if uint(size) < f.direct {
		class := f.classes.class(size)
		cell := f.cell(class, shard)
		for i := range cell.seats {
			h := cell.seats[i].Load()
			if h == nil {
				break // seats are filled from the front; the slow path looks behind gaps
			}
			s := h.state.Load()
			if s&(leased|unseated|frozen) == 0 && h.state.CompareAndSwap(s, s|leased) {
				return claim{h, s | leased}
			}
		}
		// Whoever changes the depth of its stack finds its storage where the hint says.
		// The whole slow path would take as long as two cycles.
		if found := f.core.borrow(class, shard, f.core.seatHint[class].Load()); found.h != nil {
			return found
		}
	}
	owned, err := f.core.acquire(size, kind, shard)
	if err != nil {
		panic(err)
	}
	return owned
}

// slice returns storage for a raw slice of size bytes. It panics like lease.
func (f *front) slice(size int) []byte {
	shard := f.shard()
	if uint(size) < f.direct {
		class := f.classes.class(size)
		slots := &f.cell(class, shard).slots
		for i := range slots {
			if p := slots[i].Load(); isStorage(p) && slots[i].CompareAndSwap(p, slotOpen) {
				// Safety: storage in a cell of a class has that class's capacity.
				return unsafe.Slice(p, f.classes.capacity[class])[:size]
			}
		}
	}
	b, err := f.core.acquireSlice(size, shard)
	if err != nil {
		panic(err)
	}
	return b
}

// putSlice takes a raw slice back.
func (f *front) putSlice(b []byte) ReleaseStatus {
	shard := f.shard()
	if n := cap(b); uint(n-1) < f.direct {
		if class := f.classes.class(n); f.classes.capacity[class] == n {
			cell := f.cell(class, shard)
			for i := range cell.slots {
				if cell.slots[i].Load() == slotOpen && cell.slots[i].CompareAndSwap(slotOpen, unsafe.SliceData(b)) {
					if cell.used.Load()>>i&1 == 0 {
						cell.markUsed(i)
					}
					return Retained
				}
			}
		}
	}
	return f.core.releaseSlice(b, shard)
}

// fill puts storage into an open slot, if there is one.
func (l *cell) fill(p *byte) bool {
	for i := range l.slots {
		if l.slots[i].Load() == slotOpen && l.slots[i].CompareAndSwap(slotOpen, p) {
			l.markUsed(i)
			return true
		}
	}
	return false
}

func (l *cell) markUsed(i int) {
	for {
		u := l.used.Load()
		if u>>i&1 == 1 || l.used.CompareAndSwap(u, u|1<<i) {
			return
		}
	}
}

// newHeader allocates an identity for storage, leased and in no seat.
func (c *core) newHeader(buf []byte) *header {
	var h *header
	if c.cfg.StackSampling > 0 {
		h = &new(tracedHeader).header
	} else {
		h = new(header)
	}
	h.core, h.buf, h.gen = c, buf, c.gen.Load()
	state := uint64(leased | unseated)
	if c.work || c.stats != nil {
		state |= checked
	}
	h.state.Store(state)
	return h
}
