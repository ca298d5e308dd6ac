// Package store is the storage of an HTTP cache: an index of keys with their variants, over two tiers
// of bodies, RAM and disk. It knows nothing of HTTP's rules: what may be stored, what is fresh and what
// a header field means is the caller's business.
//
// # Shape
//
// The index (index.go) is a hash table in 256 shards that readers walk without a lock. A key maps to a
// resource (resource.go), a copy-on-write set of entries: one entry for each variant, matched by its
// own Vary list. An [Entry] (entry.go) is small and without its headers: what RAM holds of a response
// is its warm half, that is the decoded [Response], the body, or both, loaded from disk when asked for.
// The ledger (ledger.go) keeps the accounts under one lock: budgets, reservations, the queues of two
// S3-FIFO evictors (policy.go), one for entries and one for warm halves, and the timing wheel of
// expiry (sweep.go). A [Fetch] (fetch.go) is a request in flight, a [Writer] (writer.go) captures its
// body.
//
// # Invariants
//
//   - The accounts never exceed the budgets: room is reserved before bytes are written, and eviction
//     happens in the reserving call, by O(1) steps. Disk is counted in blocks of 4096 bytes, body and
//     sidecar each rounded up.
//   - An entry leaves the ledger once (markGone), then the index. Its sidecar is unlinked in the same
//     hold of the shard's lock in which it leaves the index; its body later, in the background.
//   - A sidecar gets its name in the same hold of that lock in which the fence is checked and the entry
//     enters the index. So a purge, which takes the lock, is final when it returns: nothing in flight,
//     no rebuild and no crash brings back what it removed.
//   - Body bytes are written once. A file is never overwritten, truncated or reused, only unlinked: a
//     sendfile may still be reading it.
//   - Lock order: directory.mu, shard.mu, ledger.mu. No lock is held while a body is written or read,
//     none but the shard's while a sidecar is.
//
// # Disk
//
//	path/.lock                       flock of the process that owns the path
//	path/3f/<24 hex>-<hex>           body: half of the SHA-256 of the key's alias form, file number
//	path/3f/<24 hex>-<hex>.meta      its sidecar (sidecar.go), written after the body
//	path/3f/<24 hex>-<hex>[.meta].tmp  unfinished
//
// The alias form of a key is, for an http or https URL, the URL without scheme and port. File numbers
// start at the wall clock's nanoseconds and go up by one, so that a restart does not meet earlier files
// and the higher of two numbers is the newer response. One process at a time may use a path; on file
// systems with flock, Open refuses a second one.
//
// Nothing is synced: this is a cache. After a crash or a power cut an entry is served only if its
// sidecar and its body match their checksums: a body is verified before it is first served in a run,
// and again whenever its file has changed by inode, size, mtime or ctime. What does not match is
// dropped and counted, and is a miss.
//
// # What may exceed a budget
//
// The accounts leave out: bodies whose unlinking is pending (an eighth of the disk budget and at most
// 64 MiB, above which whoever wants room unlinks first; a purge or an expiry adds what it drops, and
// captures that evict at the same moment what they have evicted), files that the rebuild has not come
// to, a sidecar being rewritten, the directories, the memory of bodies being captured in front of a disk
// tier (at most 64 KiB each, or PromoteBelow up to 1 MiB), the doubling while a capture of unknown
// length is joined in RAM-only mode, and, in front of a disk tier, the index itself: about 300 bytes an
// entry with a key of 60 bytes.
//
// # Trust
//
// Links, pipes and devices in the place of files are damage, not followed. Files that do not look like
// the store's, and directories other than 00 to ff, are left alone.
package store
