package goache

import "time"

// Cacher is the operation set of the reference that [Cache] and [SingleCoreCache]
// share, for callers that choose between the two at run time and therefore need one
// variable that can hold either.
//
// Calls through it are indirect and cannot be inlined, some 2 ns each. New and
// NewSingleCore return their concrete types so that nobody pays this unasked.
type Cacher[K comparable, V any] interface {
	// Set adds or overwrites a single key/value pair with no expiry.
	Set(key K, value V)

	// SetWithTTL adds or overwrites a single key/value pair that expires after ttl.
	// ttl <= 0 means no expiry.
	SetWithTTL(key K, value V, ttl time.Duration)

	// SetMany adds or overwrites 1..N pairs, each optionally expiring per its own
	// Entry.TTL.
	SetMany(entries []Entry[K, V])

	// Get returns the value stored for key and whether it was found. An entry past its
	// TTL is a miss.
	Get(key K) (V, bool)

	// Delete removes key if present.
	Delete(key K)

	// DeleteMany removes 1..N keys, skipping any that are not present.
	DeleteMany(keys []K)

	// Clear removes every entry.
	Clear()

	// Len returns the number of entries stored, including expired entries not yet
	// reclaimed by Purge.
	Len() int

	// Purge removes all expired entries and returns how many were removed.
	Purge() int
}

var (
	_ Cacher[int, int] = (*Cache[int, int])(nil)
	_ Cacher[int, int] = (*SingleCoreCache[int, int])(nil)
)
