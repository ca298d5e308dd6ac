package bytebufferpool

import "sync/atomic"

// Stats is what a pool tells about itself. Which parts are exact, and when:
//
//   - Generation: always.
//   - Inventory (IdleStorageCount, RetainedCapacity, ClassInventory): in Bounded
//     mode, all of one instant, also under load.
//   - Validation: with ValidationEnabled, all of one instant, which is not the
//     inventory's.
//   - Counters and Classes: with StatsEnabled. Each is exact, but they are read one
//     after the other while the pool goes on.
type Stats struct {
	// Generation is the number of Clears.
	Generation uint64

	// RetainedAvailable tells that the inventory below is there: in Bounded
	// mode.
	RetainedAvailable bool

	// IdleStorageCount is the number of idle storages.
	IdleStorageCount int

	// RetainedCapacity is the sum of their capacities in bytes. It is not heap
	// or RSS.
	RetainedCapacity int

	// ClassInventory has a row for each configured class, ascending; nil in Fast
	// mode. Its sums are the two totals above.
	ClassInventory []ClassInventory

	// ValidationAvailable tells that the validation figures below are there.
	ValidationAvailable bool

	// ActiveRawSlices is the number of raw slices that are acquired.
	ActiveRawSlices int

	// ValidationTombstones is the number of released ones that are remembered.
	ValidationTombstones int

	// MaxValidationTombstones is its limit.
	MaxValidationTombstones int

	// CountersAvailable tells that the counters below are there.
	CountersAvailable bool

	// Counters are the sums over the classes and over storage without one.
	Counters

	// ValidationRejected counts raw slices that validation did not take:
	// foreign and duplicate ones.
	ValidationRejected uint64

	// ZeroedBytes is the number of bytes cleared by ZeroOnRelease.
	ZeroedBytes uint64

	// Classes has a row for each configured class, ascending; nil without
	// StatsEnabled.
	Classes []ClassStats
}

// ClassInventory is the idle storage of a class.
type ClassInventory struct {
	Capacity         int // of the class, in bytes
	IdleStorageCount int
	RetainedCapacity int // Capacity * IdleStorageCount
}

// ClassStats is what happened in a class since New.
type ClassStats struct {
	Capacity int // of the class, in bytes
	Counters
}

// Counters count operations since New. Acquires is Hits plus Misses. Each release
// counts under its status.
type Counters struct {
	Acquires          uint64
	Hits              uint64 // served from idle storage
	Misses            uint64 // allocated
	Retained          uint64
	DroppedFull       uint64
	DroppedOversize   uint64
	DroppedInvalid    uint64
	DroppedStale      uint64
	RejectedForeign   uint64
	RejectedDuplicate uint64
	IgnoredNil        uint64
	DroppedUnpooled   uint64
}

// Stats returns the state of the pool. In Bounded mode it stops the pool for the
// time of a walk over the classes in use, in the order of microseconds, so do
// not call it per operation.
func (p *Pool) Stats() Stats {
	c := p.core
	var s Stats
	if c.cfg.Mode == Bounded {
		count := make([]int, c.classes.n)
		c.freeze()
		s.Generation = c.gen.Load()
		c.idle(count)
		c.thaw()
		s.RetainedAvailable = true
		s.ClassInventory = make([]ClassInventory, c.classes.n)
		for class, n := range count {
			capacity := c.classes.capacity[class]
			s.ClassInventory[class] = ClassInventory{capacity, n, n * capacity}
			s.IdleStorageCount += n
			s.RetainedCapacity += n * capacity
		}
	} else {
		c.ctl.Lock() // not in the middle of a Clear
		s.Generation = c.gen.Load()
		c.ctl.Unlock()
	}
	if g := c.guard; g != nil {
		g.mu.Lock()
		s.ValidationAvailable = true
		s.ActiveRawSlices, s.ValidationTombstones, s.MaxValidationTombstones = g.active, g.dead, g.limit
		g.mu.Unlock()
	}
	if c.stats != nil {
		s.CountersAvailable = true
		c.stats.read(c, &s)
	}
	return s
}

// counters are the operation counters of a pool, kept by shard so that
// processors do not share them.
type counters struct {
	shards []*shardCounters
}

type shardCounters struct {
	classes  []classCounters // one more than there are classes: storage without one
	zeroed   atomic.Uint64   // bytes of storage without a class
	rejected atomic.Uint64
}

type classCounters struct {
	hits, misses atomic.Uint64
	released     [statuses]atomic.Uint64
}

func newCounters(shards, classes int) *counters {
	c := &counters{shards: make([]*shardCounters, shards)}
	for i := range c.shards {
		// Allocated one by one: those of two shards share no cache line.
		c.shards[i] = &shardCounters{classes: make([]classCounters, classes+1)}
	}
	return c
}

// countAcquire counts an acquisition.
func (c *core) countAcquire(class uint8, hit bool) {
	if c.stats == nil {
		return
	}
	row := &c.stats.shards[c.shard()].classes[class]
	if hit {
		row.hits.Add(1)
	} else {
		row.misses.Add(1)
	}
}

// count counts a release of storage of a class, or of none (-1).
func (c *core) count(class int, status ReleaseStatus) {
	if c.stats == nil {
		return
	}
	if class < 0 {
		class = c.classes.n
	}
	c.stats.shards[c.shard()].classes[class].released[status].Add(1)
}

func (s *counters) read(c *core, out *Stats) {
	out.Classes = make([]ClassStats, c.classes.n)
	for class := 0; class <= c.classes.n; class++ {
		var sum Counters
		for _, shard := range s.shards {
			shard.classes[class].addTo(&sum)
		}
		out.Counters.add(&sum)
		if class == c.classes.n {
			break
		}
		out.Classes[class] = ClassStats{c.classes.capacity[class], sum}
		if c.cfg.ZeroOnRelease {
			// The valid releases of storage with a class.
			n := sum.Retained + sum.DroppedFull + sum.DroppedStale
			out.ZeroedBytes += n * uint64(c.classes.capacity[class])
		}
	}
	for _, shard := range s.shards {
		out.ZeroedBytes += shard.zeroed.Load()
		out.ValidationRejected += shard.rejected.Load()
	}
}

func (c *classCounters) addTo(sum *Counters) {
	sum.Hits += c.hits.Load()
	sum.Misses += c.misses.Load()
	sum.Acquires = sum.Hits + sum.Misses
	for status := range c.released {
		*sum.of(ReleaseStatus(status)) += c.released[status].Load()
	}
}

func (c *Counters) add(other *Counters) {
	c.Acquires += other.Acquires
	c.Hits += other.Hits
	c.Misses += other.Misses
	for status := ReleaseStatus(0); int(status) < statuses; status++ {
		*c.of(status) += *other.of(status)
	}
}

// of returns the counter of a status.
func (c *Counters) of(s ReleaseStatus) *uint64 {
	return [statuses]*uint64{
		&c.Retained, &c.DroppedFull, &c.DroppedOversize, &c.DroppedInvalid, &c.DroppedStale,
		&c.RejectedForeign, &c.RejectedDuplicate, &c.IgnoredNil, &c.DroppedUnpooled,
	}[s]
}
