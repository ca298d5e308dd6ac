package store

import (
	"fmt"
	"os"
)

// Refresh gives e a new response after a 304 has confirmed its body, and clears a soft purge's mark.
// The entry keeps its variant key, whatever r.Vary says; its tags are r's from now on. It fails with ErrGone when e has left the
// store, or must leave it for a longer sidecar to fit; or with a disk error, and e is then as it was.
func (s *Store) Refresh(e *Entry, r *Response) (*Entry, error) { return s.refresh(e, r, nil) }

func (s *Store) refresh(e *Entry, r *Response, f *Fetch) (*Entry, error) {
	if !strictlySorted(r.Tags) {
		return nil, ErrTags
	}
	next := renewal{deadline: deadlineOf(r.Discard)}
	if !s.onDisk {
		next.warm = newWarm(e, r, e.warm.Load().body)
		return s.renew(e, r, f, next, "")
	}
	buf := metaBuffers.Get().(*[]byte)
	defer metaBuffers.Put(buf)
	meta, err := appendSidecar((*buf)[:0], sidecarOf{e.res.key, e.vkey, e.scheme.names, e.size, e.crc}, r)
	*buf = meta[:0]
	if err != nil {
		return nil, err
	}
	next.metaBlocks = uint16(blocks(int64(len(meta))) / blockSize)
	// Under a file number of its own, since two refreshes of one entry may meet.
	temp := s.bodyPath(digestOf(e.res.key), s.seq.Add(1)) + metaSuffix + tempSuffix
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if err := writeFile(temp, meta); err != nil {
		s.diskError(faultWrite, "writing a sidecar", temp, err)
		return nil, fmt.Errorf("store: writing a sidecar: %w", err)
	}
	fresh, err := s.renew(e, r, f, next, temp)
	if err != nil {
		s.unlink(temp)
	}
	return fresh, err
}

// renew makes a refresh take effect: temp, if any, becomes the sidecar.
func (s *Store) renew(e *Entry, r *Response, f *Fetch, next renewal, temp string) (*Entry, error) {
	sh := s.shardOf(s.hashKey(e.res.key))
	sh.mu.Lock()
	switch {
	case s.closed.Load():
		sh.mu.Unlock()
		return nil, ErrClosed
	case f != nil && (f.fenced(r.Tags) || f.bars.any() && f.bars.meet(s.tags.of(e))):
		sh.mu.Unlock()
		return nil, ErrPurged
	case e.gone():
		sh.mu.Unlock()
		return nil, ErrGone
	}
	if temp != "" {
		path := s.bodyPath(digestOf(e.res.key), e.seq) + metaSuffix
		if err := os.Rename(temp, path); err != nil {
			sh.mu.Unlock()
			s.diskError(faultWrite, "naming a sidecar", path, err)
			return nil, fmt.Errorf("store: naming a sidecar: %w", err)
		}
	}
	// Should e have gone since, its burial waits for the lock and takes the new sidecar with it.
	victims, ok := s.ledger.renew(e, next)
	if ok {
		e.born.Store(nanosOf(r.Born))
		e.mark.And(^uint32(markStale))
		s.tags.change(e, r.Tags)
		if s.onDisk {
			s.ledger.keep(e, r, nil)
		}
	}
	sh.mu.Unlock()
	s.bury(victims)
	if !ok {
		return nil, ErrGone
	}
	return e, nil
}
