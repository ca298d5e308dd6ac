package store

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
)

// numShards spreads the writers' locks. 256 keeps the chance that two of 64 concurrent commits meet
// low, for 16 KiB.
const numShards = 256

// minBuckets is the smallest table: an idle shard costs one cache line.
const minBuckets = 8

// shard is a part of the index with the writers' lock for it.
//
// mu guards the chains of the table (readers walk them without it), the variant sets of the shard's
// resources, its list of fetches, and the NAMES of its entries' sidecars on disk: a sidecar appears
// and disappears under it, together with its place in the index. That is what makes a purge final.
// Lock order: directory.mu, shard.mu, ledger.mu; never two shards at once.
type shard struct {
	mu      sync.Mutex
	table   atomic.Pointer[table]
	count   int    // resources; guarded by mu
	fetches *Fetch // first of the fetches in flight; guarded by mu
	_       [64 - 32]byte
}

// table is one generation of a shard's buckets. A resize builds a new table out of new nodes, so
// that a reader who still walks an older one sees what was there when he began.
type table struct {
	buckets []atomic.Pointer[node]
}

type node struct {
	hash uint64
	res  *resource
	next atomic.Pointer[node]
}

// hashKey hashes the alias form of key, so that all schemes and ports of a host share a bucket.
func (s *Store) hashKey(key string) uint64 {
	host, rest := aliasParts(key)
	if host == "" {
		return maphash.String(s.seed, rest)
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.WriteString(host)
	h.WriteString(rest)
	return h.Sum64()
}

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash>>56] }

// find returns the resource of key, nil when there is none. It takes no lock.
func (sh *shard) find(hash uint64, key string) *resource {
	t := sh.table.Load()
	if t == nil {
		return nil
	}
	for n := t.bucket(hash).Load(); n != nil; n = n.next.Load() {
		if n.hash == hash && n.res.key == key {
			return n.res
		}
	}
	return nil
}

// aliases returns the resources that are key under any scheme and port. The caller holds mu.
func (sh *shard) aliases(hash uint64, key string) []*resource {
	t := sh.table.Load()
	if t == nil {
		return nil
	}
	var found []*resource
	for n := t.bucket(hash).Load(); n != nil; n = n.next.Load() {
		if n.hash == hash && sameAlias(n.res.key, key) {
			found = append(found, n.res)
		}
	}
	return found
}

// all yields every resource of the shard. It takes no lock: what comes or goes meanwhile may be
// yielded or not, everything else is yielded once.
func (sh *shard) all(yield func(*resource) bool) {
	t := sh.table.Load()
	if t == nil {
		return
	}
	for i := range t.buckets {
		for n := t.buckets[i].Load(); n != nil; n = n.next.Load() {
			if !yield(n.res) {
				return
			}
		}
	}
}

// insert adds a resource whose key is not in the shard. The caller holds mu.
func (sh *shard) insert(hash uint64, r *resource) {
	t := sh.table.Load()
	if t == nil {
		t = sh.resize(minBuckets)
	} else if sh.count >= len(t.buckets) {
		t = sh.resize(2 * len(t.buckets))
	}
	t.push(hash, r)
	sh.count++
}

// remove takes a resource out. The caller holds mu.
func (sh *shard) remove(hash uint64, r *resource) {
	t := sh.table.Load()
	link := t.bucket(hash)
	for n := link.Load(); n != nil; n = link.Load() {
		if n.res == r {
			// A reader that stands on n goes on through its next, which stays as it is.
			link.Store(n.next.Load())
			sh.count--
			break
		}
		link = &n.next
	}
	if sh.count < len(t.buckets)/8 && len(t.buckets) > minBuckets {
		sh.resize(len(t.buckets) / 4)
	}
}

func (sh *shard) resize(size int) *table {
	t := &table{buckets: make([]atomic.Pointer[node], size)}
	if old := sh.table.Load(); old != nil {
		for i := range old.buckets {
			for n := old.buckets[i].Load(); n != nil; n = n.next.Load() {
				t.push(n.hash, n.res)
			}
		}
	}
	sh.table.Store(t)
	return t
}

func (t *table) bucket(hash uint64) *atomic.Pointer[node] {
	return &t.buckets[hash&uint64(len(t.buckets)-1)]
}

func (t *table) push(hash uint64, r *resource) {
	b := t.bucket(hash)
	n := &node{hash: hash, res: r}
	n.next.Store(b.Load())
	b.Store(n)
}

// aliasParts splits key so that host+rest is its alias form: for an http or https URL the host
// without its port and everything behind the authority, for any other key the key itself. host is
// empty when one piece suffices, which spares the common case the joining.
func aliasParts(key string) (host, rest string) {
	rest, ok := strings.CutPrefix(key, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(key, "http://"); !ok {
			return "", key
		}
	}
	end := 0
	for end < len(rest) && rest[end] != '/' && rest[end] != '?' && rest[end] != '#' {
		end++
	}
	colon := end
	for colon > 0 && '0' <= rest[colon-1] && rest[colon-1] <= '9' {
		colon--
	}
	if colon == 0 || rest[colon-1] != ':' {
		return "", rest
	}
	return rest[:colon-1], rest[end:]
}

func sameAlias(a, b string) bool {
	if a == b {
		return true
	}
	ah, ar := aliasParts(a)
	bh, br := aliasParts(b)
	return ah+ar == bh+br
}
