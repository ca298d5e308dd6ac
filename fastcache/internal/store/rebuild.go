package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// directory is one of the 256 shard directories. Its lock is taken before any other and held while
// the files of earlier runs in it are read, so that whoever needs them read can wait for that.
type directory struct {
	mu   sync.Mutex
	read bool // guarded by mu
}

// rebuild reads what earlier runs left, directory by directory. The store serves meanwhile.
func (s *Store) rebuild() {
	defer s.wg.Done()
	defer close(s.ready)
	for range rebuildTries {
		complete := true
		for i := range s.dirs {
			complete = s.readDir(byte(i)) && complete
		}
		if complete {
			return
		}
		select {
		case <-s.done:
			return
		case <-time.After(rebuildPause):
		}
	}
}

const (
	// A directory that could not be read for a passing reason (no file descriptors) is tried again
	// this often, and again by a purge that needs it.
	rebuildTries = 3
	rebuildPause = time.Second
)

// readDir brings the entries of one shard directory into the index, once, and deletes what is left
// over there: temporary files, bodies without a sidecar, sidecars that are damaged, of another version,
// out of date or purged. Files that this process made, and files that are not ours, are left alone. false: for
// a passing reason not everything could be read.
func (s *Store) readDir(i byte) bool {
	d := &s.dirs[i]
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read || !s.onDisk {
		return true
	}
	if s.closed.Load() || !s.readFiles(i) {
		return false
	}
	d.read = true
	if s.dirsRead.Add(1) == int32(len(s.dirs)) {
		s.dropJournals()
	}
	return true
}

func (s *Store) readFiles(i byte) bool {
	fateOf, ok := s.fates()
	if !ok {
		return false
	}
	dir := filepath.Join(s.path, hex.EncodeToString([]byte{i}))
	list, err := os.ReadDir(dir)
	if err != nil {
		// No directory, no entries; nor are there any when the name is taken by something else.
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
			s.diskError(faultRead, "reading a shard directory", dir, err)
			s.keepJournals()
		}
		return !passing(err)
	}

	// Numbers in between are of this process. Those above it come from a clock that was ahead of
	// today's: the counter moves by one for each file.
	first, last := s.first, s.seq.Load()
	orphans := make(map[string]struct{}) // bodies that no sidecar has spoken for
	var metas []fileName
	for _, entry := range list {
		f, ok := parseName(entry.Name())
		if !ok || f.digest[0] != i || entry.IsDir() {
			continue
		}
		switch {
		case first <= f.seq && f.seq <= last:
		case f.temp || f.seq > last:
			s.unlink(filepath.Join(dir, entry.Name()))
		case f.meta:
			metas = append(metas, f)
		default:
			orphans[entry.Name()] = struct{}{}
		}
	}
	complete := true
	for _, f := range metas {
		if s.closed.Load() {
			return false
		}
		body := string(appendName(nil, f.digest, f.seq))
		delete(orphans, body)
		complete = s.readEntry(f, filepath.Join(dir, body), fateOf(f.seq)) && complete
	}
	for name := range orphans {
		s.unlink(filepath.Join(dir, name))
	}
	_ = unix.Rmdir(dir) // fails when something is left in it, as it should
	return complete
}

// readEntry brings one entry into the index, or deletes its files. false: neither, for a passing
// reason.
func (s *Store) readEntry(f fileName, path string, fate fate) bool {
	if fate == fateGone {
		if !s.unlink(path + metaSuffix) {
			s.keepJournals()
		}
		s.unlink(path)
		return true
	}
	e, tags, err := s.loadEntry(f, path)
	if err == nil && fate == fateStale && !e.Stale() {
		e.mark.Or(markStale)
		if s.markSidecar(e) != nil {
			err = errUnmarked
		}
	}
	switch {
	case err == nil && s.adopt(e, tags, path+metaSuffix):
		return true
	case err == nil || errors.Is(err, errExpired) || errors.Is(err, errUnmarked):
	case passing(err):
		s.diskError(faultRead, "reading a sidecar", path+metaSuffix, err)
		return false
	default:
		s.damaged.Add(1)
		s.complain(faultDamage, "dropped a damaged entry of an earlier run", path, err)
	}
	s.unlink(path + metaSuffix)
	s.unlink(path)
	return true
}

var (
	errExpired  = errors.New("out of date")
	errUnmarked = errors.New("a soft purge could not be finished")
)

func (s *Store) loadEntry(f fileName, path string) (e *Entry, tags []string, err error) {
	buf := metaBuffers.Get().(*[]byte)
	defer metaBuffers.Put(buf)
	raw, err := readSidecar(path+metaSuffix, buf)
	if err != nil {
		return nil, nil, err
	}
	rec, err := parseSidecar(raw)
	if err != nil {
		return nil, nil, err
	}
	key := string(rec.key)
	if digestOf(key) != f.digest {
		return nil, nil, errors.New("sidecar belongs to another key")
	}
	st, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() || st.Size() != rec.size {
		return nil, nil, fmt.Errorf("body is %v of %d bytes instead of a file of %d", st.Mode().Type(), st.Size(), rec.size)
	}
	e = &Entry{
		res:       &resource{store: s, key: key},
		scheme:    s.schemes.of(rec.vary.names()),
		vkey:      string(rec.vkey),
		size:      rec.size,
		seq:       f.seq,
		crc:       rec.crc,
		deadline:  deadlineOf(timeOf(rec.discard)),
		metaBlock: uint16(blocks(int64(len(raw))) / blockSize),
	}
	if e.deadline != 0 && int64(e.deadline) <= s.now().Unix() {
		s.ledger.note(Expired)
		return nil, nil, errExpired
	}
	e.born.Store(rec.born)
	if rec.stale {
		e.mark.Store(markStale)
	}
	return e, rec.tags.names(), nil
}

// adopt puts e into the index. false: a newer response holds its place, or there is no room for it.
func (s *Store) adopt(e *Entry, tags []string, meta string) bool {
	hash := s.hashKey(e.res.key)
	sh := s.shardOf(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// Sidecars go under this lock. One that a first try had brought in may have gone with its entry
	// since it was read.
	if s.closed.Load() || unix.Access(meta, unix.F_OK) != nil {
		return true
	}
	res := sh.find(hash, e.res.key)
	isNew := res == nil
	if isNew {
		res = e.res
	}
	e.res = res
	old := res.set.Load()
	var replaced []*Entry
	if old != nil {
		for _, o := range old.list {
			if !o.scheme.same(e.scheme) || o.vkey != e.vkey {
				continue
			}
			if o.seq == e.seq {
				return true // a second try at the directory
			}
			if o.seq > e.seq {
				return false
			}
			replaced = append(replaced, o)
		}
		if len(old.list)-len(replaced) >= s.ledger.variants() {
			return false
		}
	}
	if !s.ledger.adopt(e, replaced) {
		return false
	}
	if isNew {
		sh.insert(hash, res)
	}
	res.set.Store(old.without(replaced, e))
	s.tags.enter(e, tags)
	for _, o := range replaced {
		s.retire(o)
	}
	s.dropBodies(replaced)
	s.loaded.Add(1)
	return true
}
