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
// body. The tag index (tags.go) finds the entries that carry a tag; a journal (journal.go) answers for a
// big purge whose files are not gone yet.
//
// # Invariants
//
//   - The accounts never exceed the budgets: room is reserved before bytes are written, and eviction
//     happens in the reserving call, by O(1) steps. Disk is counted in blocks of 4096 bytes, body and
//     sidecar each rounded up.
//   - Nothing is evicted for bytes that have not come: what a response announces about its length only
//     decides whether it can be stored at all. In RAM-only mode a capture is ahead by one chunk, at most
//     256 KiB. Nor do the large captures in flight together evict more than half the budget and one body.
//   - An entry leaves the ledger once (markGone), then the index and the tag index. Its sidecar is
//     unlinked in the same hold of the shard's lock in which it leaves the index, unless a journal names
//     it since before that; its body later, in the background.
//   - A sidecar gets its name in the same hold of that lock in which the fence is checked and the entry
//     enters the index and the tag index. So a purge, which takes the lock, is final when it returns:
//     nothing in flight, no rebuild and no crash brings back what it removed.
//   - A fetch in flight is told of every purge that might concern it, under its shard's lock and before
//     the purge looks at what is stored: of keys at once, of tags by remembering them, since the tags of
//     its response come with its end.
//   - Body bytes are written once. A file is never overwritten, truncated or reused, only unlinked: a
//     sendfile may still be reading it.
//   - Lock order: directory.mu, shard.mu, ledger.mu. The others (journals, tag index, reaper, schemes,
//     faults) are taken last and hold none of these inside. No lock is held while a body is written or
//     read, none but the shard's while a sidecar is.
//
// # Disk
//
//	path/.lock                       flock of the process that owns the path
//	path/.purge-<hex>[.tmp]          journal of a purge, its number; unfinished
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
// dropped and counted, and is a miss. A damaged journal costs everything that earlier runs left.
//
// # What may exceed a budget
//
// The accounts leave out: files whose unlinking is pending (they may fill what the budget has left, and
// beyond it an eighth of the disk budget and at most 64 MiB, above which whoever wants room unlinks
// first; captures that evict at the same moment add what they have evicted), files that the rebuild has
// not come to, a sidecar being rewritten, the directories, journals (8 bytes an entry), the memory of
// bodies being captured in front of a disk tier (at most 64 KiB each, or PromoteBelow up to 1 MiB), the
// doubling while a capture of more than one chunk is joined in RAM-only mode, and, in front of a disk
// tier, the index itself: about 300 bytes an entry with a key of 60 bytes, and what its tags take
// (tags.go).
//
// # Trust
//
// Links, pipes and devices in the place of files are damage, not followed. Files that do not look like
// the store's, and directories other than 00 to ff, are left alone.
package store
