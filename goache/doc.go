// Package goache is a cache for Go values in memory: generic, sharded, safe for any
// number of goroutines, without dependencies.
//
//	c := goache.New[string, User](goache.WithMaxSize(100_000))
//	c.SetWithTTL("ada", user, 5*time.Minute)
//	user, ok := c.Get("ada")
//
// # What holds
//
// Each write is done when its method returns, and visible to every read that begins
// after that; none is queued or dropped. Operations on one key are linearizable. A
// bound is a hard ceiling at every instant ([WithMaxSize], [WithMaxWeight]).
//
// Reads take no lock and allocate nothing. Overwriting, and in a cache that has found
// its size storing new keys, allocates nothing either, for keys and values of up to
// four words; larger ones are copied to the heap when they are stored.
//
// Expiry is lazy: an expired entry is a miss at once, and its memory is given back
// when it is written over, evicted or purged ([Cache.Purge]). The cache keeps no
// goroutine, timer or ticker, except that [WithCoarseClock] asks for one. There is
// nothing to close. Time is monotonic: steps of the wall clock do not matter.
//
// # How it works
//
// A key is hashed once. The upper half of the hash chooses the shard, the lower half a
// bucket of one cache line: seven tags of a byte and seven pointers to entries.
// Writers of a shard exclude each other by its mutex. Entries lie in chunks at
// addresses that never change, and are used again for other keys; each has a sequence
// count that is odd while it is written. A reader loads the count, then key, value and
// deadline word by word with atomic loads, then the count again, and trusts what it
// has only if the count is even and the same. After three failures it takes the lock.
//
// A bounded cache evicts by a window, a CLOCK and a sketch of the past
// ([WindowTinyLFU]) that are fed when keys are stored and evicted; a hit only counts
// in its entry, up to three.
//
// # Callbacks
//
// Functions that depend on K and V are given as options by generic functions that
// return the plain [Option]: one slice of options fits several caches. New panics if a
// function has other types than the cache. Which function runs with a lock held, and
// what happens if it panics, is said where it is set; in short: only the function of
// [Cache.Compute], with the weigher there, and the clock of [WithClock] do.
//
// # When not to use it
//
// For raw bytes by the million where the garbage collector is the problem, use an
// off-heap cache. For a map that needs neither bound nor expiry, a concurrent map does
// less. It is a cache of one process: nothing is shared or kept on disk.
package goache
