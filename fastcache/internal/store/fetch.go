package store

// Fetch is a request to the origin that is in flight, from before the request is sent until its
// response is stored or given up. It is the fence of a purge: what was asked for before a purge
// must not be stored after it. Its methods are safe for concurrent use.
type Fetch struct {
	s    *Store
	key  string
	hash uint64

	prev, next *Fetch // in shard.fetches; guarded by shard.mu
	purged     bool   // guarded by shard.mu
	over       bool   // guarded by shard.mu
	bars       tagBars
}

// Fetch registers a fetch of key. The caller calls Done when it is over, whatever its end.
func (s *Store) Fetch(key string) *Fetch {
	f := &Fetch{s: s, key: key, hash: s.hashKey(key)}
	sh := s.shardOf(f.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if f.next = sh.fetches; f.next != nil {
		f.next.prev = f
	}
	sh.fetches = f
	return f
}

// Done ends the fetch. Writers of it that have not committed by now cannot any more. Later calls do
// nothing.
func (f *Fetch) Done() {
	sh := f.s.shardOf(f.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if f.over {
		return
	}
	f.over = true
	if f.next != nil {
		f.next.prev = f.prev
	}
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		sh.fetches = f.next
	}
	f.prev, f.next = nil, nil
}

// Purged reports whether the key was purged since the fetch was registered.
func (f *Fetch) Purged() bool {
	sh := f.s.shardOf(f.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return f.purged
}

// TagsPurged reports whether one of tags was purged since the fetch was registered.
func (f *Fetch) TagsPurged(tags []string) bool {
	sh := f.s.shardOf(f.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return f.bars.meet(tags)
}

// Refresh is Store.Refresh behind the fence: it fails with ErrPurged when the key, or a tag that e
// carries or that r names, was purged, hard or soft, after the fetch that brought the 304 had begun.
func (f *Fetch) Refresh(e *Entry, r *Response) (*Entry, error) { return f.s.refresh(e, r, f) }

// barred is fenced for those who do not hold the lock.
func (f *Fetch) barred(tags []string) bool {
	sh := f.s.shardOf(f.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return f.fenced(tags)
}

// fenced reports whether f may no longer store a response with tags. The caller holds shard.mu.
func (f *Fetch) fenced(tags []string) bool { return f.purged || f.over || f.bars.meet(tags) }
