package store

import (
	"os"

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
	s.readDir(digestOf(key)[0])
	hash := s.hashKey(key)
	sh := s.shardOf(hash)
	sh.mu.Lock()
	for f := sh.fetches; f != nil; f = f.next {
		if f.hash == hash && sameAlias(f.key, key) {
			f.purged = true
		}
	}
	var n int
	var dead []*Entry
	for _, res := range sh.aliases(hash, key) {
		c, d := s.purgeResource(sh, hash, res, soft, why)
		n += c
		dead = append(dead, d...)
	}
	sh.mu.Unlock()
	s.dropBodies(dead)
	return n
}

// PurgeFunc is Purge for every key that match accepts. It finishes a rebuild first. match is called
// with locks held and must not call the store; hits go on meanwhile.
func (s *Store) PurgeFunc(match func(key string) bool, soft bool, why Cause) int {
	for i := range s.dirs {
		s.readDir(byte(i))
	}
	n := 0
	var dead []*Entry
	// Their bodies can wait: unlinking them meanwhile would slow the sidecars down.
	defer func() { s.dropBodies(dead) }()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for f := sh.fetches; f != nil; f = f.next {
			if match(f.key) {
				f.purged = true
			}
		}
		sh.mu.Unlock()
		for res := range sh.all {
			if s.closed.Load() {
				return n
			}
			if !match(res.key) {
				continue
			}
			// One resource at a time: a purge of everything must not keep the misses waiting.
			sh.mu.Lock()
			c, d := s.purgeResource(sh, s.hashKey(res.key), res, soft, why)
			sh.mu.Unlock()
			n += c
			dead = append(dead, d...)
		}
	}
	return n
}

// purgeResource purges the variants of one resource and returns their number and those whose bodies
// are to be dropped. The caller holds shard.mu.
func (s *Store) purgeResource(sh *shard, hash uint64, res *resource, soft bool, why Cause) (n int, dead []*Entry) {
	set := res.set.Load()
	if set == nil || s.closed.Load() {
		return 0, nil
	}
	for _, e := range set.list {
		if soft && !e.gone() {
			e.mark.Or(markStale)
			if err := s.markSidecar(e); err == nil {
				n++
				continue
			}
			// A mark that a restart would lose is none: the entry goes instead.
		}
		if s.ledger.remove(e, why) {
			n++
		}
		dead = append(dead, e)
	}
	if len(dead) > 0 {
		s.replaceSet(sh, hash, res, set.without(dead, nil))
		for _, e := range dead {
			s.dropSidecar(e)
		}
	}
	return n, dead
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
