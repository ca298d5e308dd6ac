package store

import (
	"context"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Purge removes every variant of key, under every scheme and port of its host, and bars the fetches
// of them that are in flight from storing what they bring. soft: the entries stay, marked stale. It
// returns the number of variants. When it returns, no restart brings back what it removed. During a
// rebuild it first has the files of key read.
func (s *Store) Purge(key string, soft bool, why Cause) int {
	if s.closed.Load() {
		return 0
	}
	n, _ := s.purgeKey(key, soft, why, nil)
	return n
}

// purgeKey purges a key and bars its fetches, all but one that was not barred before.
func (s *Store) purgeKey(key string, soft bool, why Cause, but *Fetch) (int, bool) {
	s.readDir(digestOf(key)[0])
	hash := s.hashKey(key)
	sh := s.shardOf(hash)
	sh.mu.Lock()
	for f := sh.fetches; f != nil; f = f.next {
		if f != but && f.hash == hash && sameAlias(f.key, key) {
			f.purged = true
		}
	}
	current := but != nil && !but.purged && !but.over
	var n int
	var dead []*Entry
	for _, res := range sh.aliases(hash, key) {
		c, d := s.purgeResource(sh, hash, res, soft, why)
		n += c
		dead = append(dead, d...)
	}
	sh.mu.Unlock()
	s.dropBodies(dead)
	return n, current
}

// Purge is Store.Purge for f's key, except that f itself may still store what it brings: the answer to
// the request that made the stored responses out of date. It fails, having purged all the same, when the key
// was purged since f was registered: somebody else's purge is not to be undone.
func (f *Fetch) Purge(soft bool, why Cause) (n int, current bool) {
	s := f.s
	if s.closed.Load() {
		return 0, false
	}
	n, current = s.purgeKey(f.key, soft, why, f)
	return n, current
}

// PurgeFunc is Purge for every key that match accepts. It finishes a rebuild first; ErrUnread when that
// is not possible. It looks at ctx after each key and each batch of entries: when ctx is over, it returns
// what it has purged so far with ctx's error. match is called with locks held and must not call the
// store. Hits go on meanwhile, and the files of many entries go in the background: what takes time is
// matching, and 1 to 2 us an entry (BenchmarkPurge).
func (s *Store) PurgeFunc(ctx context.Context, match func(key string) bool, soft bool, why Cause) (int, error) {
	p, err := s.newPurge(ctx, soft, why)
	if p == nil {
		return 0, err
	}
	for i := 0; i < len(s.shards) && ctx.Err() == nil; i++ {
		sh := &s.shards[i]
		sh.mu.Lock()
		for f := sh.fetches; f != nil; f = f.next {
			if match(f.key) {
				f.purged = true
			}
		}
		sh.mu.Unlock()
		// What a fetch that was in flight before has stored is in the index by now.
		for res := range sh.all {
			if match(res.key) {
				if set := res.set.Load(); set != nil {
					p.add(set.list)
				}
			}
			if ctx.Err() != nil {
				break
			}
		}
	}
	return p.end(err)
}

// PurgeTags is PurgeFunc for every entry that carries one of tags, at a cost that does not depend on the
// others. A fetch in flight is barred if its response turns out to carry one.
func (s *Store) PurgeTags(ctx context.Context, tags []string, soft bool, why Cause) (int, error) {
	if len(tags) == 0 {
		return 0, nil
	}
	p, err := s.newPurge(ctx, soft, why)
	if p == nil {
		return 0, err
	}
	set := slices.Compact(slices.Sorted(slices.Values(tags)))
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for f := sh.fetches; f != nil; f = f.next {
			f.bars.add(set)
		}
		sh.mu.Unlock()
	}
	// What a fetch that was in flight before has stored is in the tag index by now.
	p.add(s.tags.carriers(set))
	return p.end(err)
}

// purge is a purge of many entries, in batches.
type purge struct {
	s       *Store
	ctx     context.Context
	soft    bool
	why     Cause
	journal bool     // may leave files to the background
	list    []*Entry // found and not purged yet
	purged  int
}

// newPurge reads what earlier runs left. Without a purge the error says why there can be none; with one
// it is what end returns.
func (s *Store) newPurge(ctx context.Context, soft bool, why Cause) (*purge, error) {
	complete := true
	for i := range s.dirs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		complete = s.readDir(byte(i)) && complete
	}
	if s.closed.Load() {
		return nil, ErrClosed
	}
	// A directory that has to be read again must not show sidecars of what was purged.
	p := &purge{s: s, ctx: ctx, soft: soft, why: why, journal: s.onDisk && complete}
	if !complete {
		return p, ErrUnread
	}
	return p, nil
}

// add adds entries to the purge, unless its context is over.
func (p *purge) add(list []*Entry) {
	for len(list) > 0 && p.ctx.Err() == nil {
		n := min(len(list), purgeBatch-len(p.list))
		p.list = append(p.list, list[:n]...)
		if list = list[n:]; len(p.list) == purgeBatch {
			p.flush()
		}
	}
}

func (p *purge) end(err error) (int, error) {
	if ctxErr := p.ctx.Err(); ctxErr != nil {
		return p.purged, ctxErr
	}
	p.flush()
	return p.purged, err
}

// flush purges the list: first the journal, if it is long, then the index, then the files.
func (p *purge) flush() {
	s := p.s
	var b *batch
	if p.journal && len(p.list) >= journalMin && !s.closed.Load() {
		b = s.writeJournal(p.list, p.soft, p.why)
	}
	var corpses []corpse
	var scars []scar
	for _, e := range p.list {
		hash := s.hashKey(e.res.key)
		sh := s.shardOf(hash)
		sh.mu.Lock()
		counts, dead := s.purgeEntry(sh, hash, e, p.soft, p.why, b != nil)
		sh.mu.Unlock()
		if counts {
			p.purged++
		}
		switch {
		case dead:
			c := corpse{digestOf(e.res.key), e.seq, blocks(e.size), b}
			if b != nil {
				c.size += int64(e.metaBlock) * blockSize // nobody changes it any more
			}
			corpses = append(corpses, c)
		case counts && b != nil:
			scars = append(scars, scar{e, b})
		}
	}
	clear(p.list)
	p.list = p.list[:0]
	if !s.onDisk {
		return
	}
	if b != nil {
		b.left = len(corpses) + len(scars)
		if b.left == 0 {
			s.unlink(b.path) // others were faster
		}
	}
	s.reaper.add(corpses, scars)
}

// purgeResource purges the variants of one resource and returns their number and those whose bodies
// are to be dropped. The caller holds shard.mu.
func (s *Store) purgeResource(sh *shard, hash uint64, res *resource, soft bool, why Cause) (n int, dead []*Entry) {
	set := res.set.Load()
	if set == nil {
		return 0, nil
	}
	for _, e := range set.list {
		counts, died := s.purgeEntry(sh, hash, e, soft, why, false)
		if counts {
			n++
		}
		if died {
			dead = append(dead, e)
		}
	}
	return n, dead
}

// purgeEntry purges one entry, if it is still in the index. counts: it was this purge that did; dead: it
// has left the index and its body is to be dropped. later: there is a journal, so that the sidecar can
// wait. The caller holds shard.mu.
func (s *Store) purgeEntry(sh *shard, hash uint64, e *Entry, soft bool, why Cause, later bool) (counts, dead bool) {
	set := e.res.set.Load()
	if set == nil || s.closed.Load() || !slices.Contains(set.list, e) {
		return false, false
	}
	if soft && !e.gone() {
		e.mark.Or(markStale)
		if later || s.markSidecar(e) == nil {
			return true, false
		}
		// A mark that a restart would lose is none: the entry goes instead.
	}
	later = later && !soft // such a journal would keep what is removed here
	counts = s.ledger.remove(e, why)
	s.replaceSet(sh, hash, e.res, set.without([]*Entry{e}, nil))
	if later {
		s.tags.leave(e)
	} else {
		s.retire(e)
	}
	return counts, true
}

// markSidecar writes the stale mark in place: one byte, so that a reader or a crash sees it written or
// not. The caller holds shard.mu.
func (s *Store) markSidecar(e *Entry) error {
	if !s.onDisk {
		return nil
	}
	path := s.bodyPath(digestOf(e.res.key), e.seq) + metaSuffix
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err == nil {
		_, err = f.WriteAt([]byte{staleByte}, markOffset)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		s.diskError(faultWrite, "marking a sidecar", path, err)
	}
	return err
}
