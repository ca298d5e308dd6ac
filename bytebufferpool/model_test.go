package bytebufferpool_test

import (
	"fmt"
	"math/rand"
	"testing"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

// The reference model: what a pool must answer to a sequence of operations, told
// without seats, shards and locks.

type modelLease struct {
	lease    pool.Lease
	gen      uint64
	capacity int
	pattern  byte
	dead     bool
}

type modelSlice struct {
	b       []byte
	pattern byte
}

type model struct {
	t      *testing.T
	r      *rand.Rand
	pool   *pool.Pool
	config pool.Config

	gen    uint64
	leases []*modelLease
	slices []modelSlice
	live   map[*byte]bool // storage that somebody owns
	idle   map[int]int    // idle storages by capacity
	kept   map[*byte]int  // those, with their capacity
	counts pool.Counters
}

func (m *model) class(size int) (capacity int, pooled bool) {
	for _, c := range m.config.Classes {
		if c >= size {
			return c, true
		}
	}
	return size, false
}

// size picks sizes around the edges of classes, and now and then an unpooled one.
func (m *model) size() int {
	switch m.r.Intn(10) {
	case 0:
		return m.config.MaxPooledCapacity + m.r.Intn(100) - 50
	case 1:
		return m.r.Intn(m.config.MaxPooledCapacity)
	default:
		c := m.config.Classes[m.r.Intn(len(m.config.Classes))]
		return max(c-m.r.Intn(3), 0)
	}
}

// acquired checks what every acquisition promises.
func (m *model) acquired(b []byte, size int) (capacity int, pattern byte) {
	capacity, pooled := m.class(size)
	if len(b) != size || cap(b) != capacity {
		m.t.Fatalf("acquired %d of %d, want %d of %d", len(b), cap(b), size, capacity)
	}
	if m.live[base(b)] {
		m.t.Fatal("storage with two owners")
	}
	m.live[base(b)] = true
	if m.config.ZeroOnRelease && !all(b[:cap(b)], 0) {
		m.t.Fatal("storage is not zero")
	}
	m.counts.Acquires++
	if _, hit := m.kept[base(b)]; hit {
		m.idle[capacity]--
		delete(m.kept, base(b))
		m.counts.Hits++
	} else {
		if pooled && m.idle[capacity] > 0 && m.config.Mode == pool.Bounded && m.config.Quarantine == 0 {
			m.t.Fatal("allocated with idle storage at hand")
		}
		m.counts.Misses++
	}
	pattern = byte(m.r.Int())
	fill(b[:cap(b)], pattern)
	return capacity, pattern
}

// released says what the release of valid storage must report.
func (m *model) released(p *byte, capacity int, stale bool) (want pool.ReleaseStatus) {
	_, pooled := m.class(capacity)
	sum := 0
	for c, n := range m.idle {
		sum += c * n
	}
	switch {
	case stale:
		return pool.DroppedStale
	case capacity > m.config.MaxPooledCapacity:
		return pool.DroppedOversize
	case !pooled:
		return pool.DroppedUnpooled
	case m.config.Mode == pool.Bounded && sum+capacity > m.config.MaxRetainedCapacity:
		return pool.DroppedFull
	}
	m.idle[capacity]++
	m.kept[p] = capacity
	return pool.Retained
}

func (m *model) count(s pool.ReleaseStatus) {
	*map[pool.ReleaseStatus]*uint64{
		pool.Retained: &m.counts.Retained, pool.DroppedFull: &m.counts.DroppedFull, pool.DroppedOversize: &m.counts.DroppedOversize,
		pool.DroppedInvalid: &m.counts.DroppedInvalid, pool.DroppedStale: &m.counts.DroppedStale,
		pool.RejectedForeign: &m.counts.RejectedForeign, pool.RejectedDuplicate: &m.counts.RejectedDuplicate,
		pool.IgnoredNil: &m.counts.IgnoredNil, pool.DroppedUnpooled: &m.counts.DroppedUnpooled,
	}[s]++
}

func (m *model) acquireLease() {
	size := m.size()
	l := &modelLease{lease: m.pool.Acquire(size), gen: m.gen}
	l.capacity, l.pattern = m.acquired(l.lease.Bytes(), size)
	m.leases = append(m.leases, l)
}

func (m *model) releaseLease() {
	if len(m.leases) == 0 {
		return
	}
	i := m.r.Intn(len(m.leases))
	l := m.leases[i]
	if l.dead {
		// Whatever has become of the storage since.
		if got := l.lease.Release(); got != pool.RejectedDuplicate {
			m.t.Fatalf("second release: %v", got)
		}
		m.count(pool.RejectedDuplicate)
		mustPanic(m.t, func() { l.lease.Bytes() })
		m.leases = append(m.leases[:i], m.leases[i+1:]...)
		return
	}
	if b := l.lease.Bytes(); !all(b[:cap(b)], l.pattern) {
		m.t.Fatal("somebody wrote to leased storage")
	}
	delete(m.live, base(l.lease.Bytes()))
	want := m.released(base(l.lease.Bytes()), l.capacity, l.gen != m.gen)
	got := l.lease.Release()
	if got != want {
		m.t.Fatalf("release of a lease of %d: %v, want %v", l.capacity, got, want)
	}
	m.count(want)
	l.dead = true
}

func (m *model) acquireSlice() {
	size := m.size()
	b := m.pool.AcquireSlice(size)
	_, pattern := m.acquired(b, size)
	m.slices = append(m.slices, modelSlice{b, pattern})
}

func (m *model) releaseSlice() {
	if len(m.slices) == 0 {
		return
	}
	i := m.r.Intn(len(m.slices))
	s := m.slices[i]
	m.slices = append(m.slices[:i], m.slices[i+1:]...)
	if !all(s.b[:cap(s.b)], s.pattern) {
		m.t.Fatal("somebody wrote to a raw slice")
	}
	delete(m.live, base(s.b))
	var want pool.ReleaseStatus
	if m.config.ValidationEnabled && m.r.Intn(8) == 0 {
		want = pool.DroppedInvalid
		s.b = s.b[: 0 : cap(s.b)-1]
	} else {
		want = m.released(base(s.b), cap(s.b), false)
	}
	if got := m.pool.ReleaseSlice(s.b); got != want {
		m.t.Fatalf("release of a slice of %d: %v, want %v", cap(s.b), got, want)
	}
	m.count(want)
	if m.config.ValidationEnabled && want != pool.Retained && m.r.Intn(2) == 0 {
		// Nobody has the storage now, so its record is still a tombstone, if
		// the history is long enough.
		if got := m.pool.ReleaseSlice(s.b); got != pool.RejectedDuplicate {
			m.t.Fatalf("second release of a slice: %v", got)
		}
		m.count(pool.RejectedDuplicate)
	}
}

func (m *model) clear() {
	m.pool.Clear()
	m.gen++
	m.idle, m.kept = map[int]int{}, map[*byte]int{}
}

func (m *model) trim() {
	target := m.r.Intn(m.config.MaxRetainedCapacity)
	before, after := 0, 0
	for c, n := range m.idle {
		before += c * n
	}
	dropped := m.pool.Trim(target)
	if m.config.Mode != pool.Bounded {
		dropped += m.pool.Trim(0)
		m.idle, m.kept = map[int]int{}, map[*byte]int{}
		if dropped > before { // or less: the garbage collector takes its part
			m.t.Fatalf("dropped %d of %d", dropped, before)
		}
		return
	}
	for i := len(m.config.Classes) - 1; i >= 0; i-- {
		c := m.config.Classes[i]
		for before-after > target && m.idle[c] > 0 {
			m.idle[c]--
			after += c
		}
	}
	if m.config.Quarantine > 0 {
		// What is in quarantine goes first.
		for _, row := range m.pool.Stats().ClassInventory {
			m.idle[row.Capacity] = row.IdleStorageCount
		}
		if dropped < before-target || dropped > before {
			m.t.Fatalf("Trim(%d) of %d dropped %d", target, before, dropped)
		}
		return
	}
	if dropped != after {
		m.t.Fatalf("Trim(%d) of %d dropped %d, want %d", target, before, dropped, after)
	}
}

func (m *model) checkStats() {
	s := m.pool.Stats()
	if s.Generation != m.gen {
		m.t.Fatalf("generation %d, want %d", s.Generation, m.gen)
	}
	if m.config.Mode == pool.Bounded {
		sum := 0
		for _, row := range s.ClassInventory {
			if row.IdleStorageCount != m.idle[row.Capacity] {
				m.t.Fatalf("%d idle of %d bytes, want %d", row.IdleStorageCount, row.Capacity, m.idle[row.Capacity])
			}
			sum += row.RetainedCapacity
		}
		if s.RetainedCapacity != sum || sum > m.config.MaxRetainedCapacity {
			m.t.Fatalf("retained %d, sum of classes %d, budget %d", s.RetainedCapacity, sum, m.config.MaxRetainedCapacity)
		}
	}
	if m.config.ValidationEnabled && s.ActiveRawSlices != len(m.slices) {
		m.t.Fatalf("%d active slices, want %d", s.ActiveRawSlices, len(m.slices))
	}
	if m.config.StatsEnabled {
		got := s.Counters
		want := m.counts
		if got != want {
			m.t.Fatalf("counters %+v\nwant %+v", got, want)
		}
	}
	if list, tracked := m.pool.Outstanding(); tracked {
		alive := len(m.slices)
		for _, l := range m.leases {
			if !l.dead {
				alive++
			}
		}
		if len(list) != alive {
			m.t.Fatalf("%d outstanding, want %d", len(list), alive)
		}
	}
}

func (m *model) step() {
	switch n := m.r.Intn(100); {
	case n < 28:
		m.acquireLease()
	case n < 58:
		m.releaseLease()
	case n < 76:
		m.acquireSlice()
	case n < 94:
		m.releaseSlice()
	case n < 95:
		m.clear()
	case n < 96:
		m.trim()
	default:
		m.checkStats()
	}
}

func runModel(t *testing.T, seed int64, config pool.Config, steps int) {
	p, err := pool.New(config)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{t: t, r: rand.New(rand.NewSource(seed)), pool: p, config: config, live: map[*byte]bool{}, idle: map[int]int{}, kept: map[*byte]int{}}
	for i := 0; i < steps; i++ {
		m.step()
	}
	m.checkStats()
}

// modelConfig draws a configuration: every option on its own and with others.
func modelConfig(r *rand.Rand, mode pool.Mode) pool.Config {
	config := pool.DefaultConfig(mode)
	switch r.Intn(3) {
	case 0:
		config.Classes = []int{64, 128, 256, 512, 1024}
	case 1:
		config.Classes = []int{1, 10, 100, 1000}
	case 2:
		config.Classes = []int{333}
	}
	largest := config.Classes[len(config.Classes)-1]
	config.MaxPooledCapacity = largest + r.Intn(2)*200
	config.MaxRetainedCapacity = 1 + r.Intn(40*largest)
	on := func() bool { return r.Intn(3) == 0 }
	config.ZeroOnRelease = on()
	config.StatsEnabled = on()
	config.DiagnosticFill = on()
	config.TrackOutstanding = on()
	config.SizeHistogram = on()
	if config.ValidationEnabled = on(); config.ValidationEnabled {
		config.MaxValidationTombstones = 100_000 // the model does not forget
	}
	if on() {
		config.StackSampling = 2
	}
	if on() {
		config.Quarantine = 5
	}
	return config
}

func TestModel_RandomOperations(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		seeds := int64(300)
		if testing.Short() {
			seeds = 40
		}
		for seed := int64(0); seed < seeds; seed++ {
			config := modelConfig(rand.New(rand.NewSource(seed)), mode)
			config.OnMisuse = func(m pool.Misuse) {
				if m.Kind == pool.WriteAfterRelease {
					t.Error(m)
				}
			}
			if seed%3 == 0 {
				// The fast path: no options.
				plain := pool.DefaultConfig(mode)
				plain.Classes, plain.MaxPooledCapacity, plain.MaxRetainedCapacity = config.Classes, config.MaxPooledCapacity, config.MaxRetainedCapacity
				config = plain
			}
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { runModel(t, seed, config, 1000) })
		}
	})
}

func FuzzModel(f *testing.F) {
	f.Add(int64(1), true)
	f.Add(int64(2), false)
	f.Fuzz(func(t *testing.T, seed int64, bounded bool) {
		mode := pool.Fast
		if bounded {
			mode = pool.Bounded
		}
		runModel(t, seed, modelConfig(rand.New(rand.NewSource(seed)), mode), 300)
	})
}
