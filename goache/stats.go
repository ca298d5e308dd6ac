package goache

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Stats counts what happened since the cache was made. See [WithStats].
type Stats struct {
	Hits, Misses uint64 // reads that found a live value, and that did not; Peek and iteration do not count
	Sets         uint64 // values stored, by whatever method

	// Values that left, by cause. Expired counts those that were purged, evicted or
	// written over after their deadline, not those that still lie in the cache.
	Replaced, Deleted, Expired, Evicted, Cleared uint64

	Loads        uint64        // calls of load functions that ended, also for refreshing
	LoadFailures uint64        // those of them that ended with an error, a panic or runtime.Goexit
	LoadTime     time.Duration // of all of them together
}

// HitRatio returns hits as a part of hits and misses; 0 before the first.
func (s Stats) HitRatio() float64 {
	if s.Hits+s.Misses == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Hits+s.Misses)
}

// readTally counts reads of a shard, on cache lines of its own.
type readTally struct {
	readCounts
	_ [cacheLine - unsafe.Sizeof(readCounts{})%cacheLine]byte
}

type readCounts struct {
	hits, misses atomic.Uint64
}

// tally counts writes of a shard. Guarded by the shard's mutex.
type tally struct {
	sets    uint64
	removed [causes]uint64
}

// loadTally counts loads of the cache. A load is slow enough to share a line.
type loadTally struct {
	loads, failures atomic.Uint64
	nanoseconds     atomic.Int64
}

// Stats returns the counts. Without [WithStats] it is all zeros.
//
// It locks one shard after the other, so under traffic the counts need not be of the
// same instant.
func (c *Cache[K, V]) Stats() Stats {
	if c.reads == nil {
		return Stats{}
	}
	stats := Stats{
		Loads:        c.loadTally.loads.Load(),
		LoadFailures: c.loadTally.failures.Load(),
		LoadTime:     time.Duration(c.loadTally.nanoseconds.Load()),
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		t := s.tally
		s.mu.Unlock()
		stats.Hits += c.reads[i].hits.Load()
		stats.Misses += c.reads[i].misses.Load()
		stats.Sets += t.sets
		stats.Replaced += t.removed[Replaced]
		stats.Deleted += t.removed[Deleted]
		stats.Expired += t.removed[Expired]
		stats.Evicted += t.removed[Evicted]
		stats.Cleared += t.removed[Cleared]
	}
	return stats
}
