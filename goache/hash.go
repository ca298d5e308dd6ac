package goache

import "hash/maphash"

// A key is hashed once. The upper half of the hash chooses the shard, the lower half
// the bucket and the tag in it.

func shardBits(h uint64) uint32  { return uint32(h >> 32) }
func bucketBits(h uint64) uint32 { return uint32(h) }

// hash panics, as a map does, if the key is or holds an interface whose dynamic type
// cannot be compared. It is always called before a lock is taken.
func (c *Cache[K, V]) hash(key K) uint64 { return maphash.Comparable(c.seed, key) }
