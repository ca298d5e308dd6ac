package store

// Cause says why an entry left the store.
type Cause uint8

// The causes, in the order of [Stats.Evictions].
const (
	Expired     Cause = iota // its Discard time passed
	Disk                     // the disk budget
	Count                    // the limit on items, or on variants of one key
	Memory                   // the memory budget; with a disk tier: the body left RAM, the entry stayed
	Purged                   // an operator's purge
	Invalidated              // an unsafe request (RFC 9111, 4.4)
	Replaced                 // a newer response to the same request
	Damaged                  // a stored file failed a check
	numCauses
)

var causeNames = [numCauses]string{
	Expired:     "expired",
	Disk:        "disk",
	Count:       "count",
	Memory:      "memory",
	Purged:      "purge",
	Invalidated: "invalidate",
	Replaced:    "replaced",
	Damaged:     "damaged",
}

// Causes is the number of causes: every Cause is below it.
const Causes = int(numCauses)

// String returns the metric label of c.
func (c Cause) String() string {
	if c < numCauses {
		return causeNames[c]
	}
	return "unknown"
}

// Stats is a snapshot of a store. Entries, MemoryBytes and DiskBytes never exceed their limits,
// except between a SetLimits that lowers one and the end of the eviction that it starts.
type Stats struct {
	// Entries is the number of stored responses, each variant counted.
	Entries int64

	// MemoryBytes is what the RAM tier holds: bodies and headers, and in RAM-only mode also what
	// captures in flight have reserved. It is 0 when Limits.Memory is 0.
	MemoryBytes int64

	// DiskBytes is what bodies and sidecars occupy in blocks of 4096 bytes, plus what captures in
	// flight have reserved. Files whose removal is still pending are not in it (see package doc).
	DiskBytes int64

	// Evictions counts the entries that left, by cause.
	Evictions [numCauses]uint64

	// Rebuilding is true until the files of earlier runs have been read.
	Rebuilding bool

	// RebuildDone is how many of the RebuildTotal directories of earlier runs have been read. The
	// total is 256, or 0 without a disk tier. Done stays below it when one cannot be read.
	RebuildDone, RebuildTotal int

	// Loaded is the number of entries that the rebuild found and kept.
	Loaded int64

	// Damaged is the number of stored responses that failed a check, in the rebuild or when served.
	Damaged int64

	// DiskErrors is the number of file operations that failed for a reason other than damage.
	DiskErrors uint64
}

// Stats returns a snapshot. It takes one short lock, no disk access.
func (s *Store) Stats() Stats {
	st := Stats{
		Loaded:     s.loaded.Load(),
		Damaged:    s.damaged.Load(),
		DiskErrors: s.diskErrors.Load(),
	}
	if s.onDisk {
		st.RebuildDone, st.RebuildTotal = int(s.dirsRead.Load()), len(s.dirs)
	}
	select {
	case <-s.ready:
	default:
		st.Rebuilding = true
	}
	l := &s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	st.Entries = int64(l.entries.count())
	st.Evictions = l.left
	used := l.entries.bytes() + l.reserved
	switch {
	case !s.onDisk:
		st.MemoryBytes = used
	case l.limits.Memory > 0:
		st.MemoryBytes = l.warm.bytes()
		fallthrough
	default:
		st.DiskBytes = used
	}
	return st
}
