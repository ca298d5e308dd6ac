package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// reserveStep is how far a capture on disk reserves ahead of what has arrived, where the budget has
	// room to spare. Nothing is evicted for bytes that may never come.
	reserveStep = 256 << 10

	// With a disk tier a body is held in RAM until it is complete if it is not larger than
	// PromoteBelow or minBuffer, and never beyond maxBuffer: one create and one write for most
	// bodies, and a known bound on the RAM of captures in flight, which is not in the accounts.
	minBuffer = 64 << 10
	maxBuffer = 1 << 20

	// The chunks of a buffered body grow from minChunk to maxChunk by doubling; with a known length the
	// first one is firstChunk, or all of it if that is less. In RAM-only mode they are what a capture
	// holds, and evicts for, ahead of what has arrived.
	minChunk   = 4 << 10
	firstChunk = 64 << 10
	maxChunk   = 256 << 10
)

// Writer captures one response body. It is for one goroutine. Commit or Discard ends it; one of them
// must be called, or its reservation and its file stay.
type Writer struct {
	s        *Store
	f        *Fetch
	declared int64 // -1 when unknown
	most     int64 // largest body that is stored
	size     int64 // written so far
	crc      uint32
	reserved int64    // in the ledger
	limit    int64    // the body goes to disk when it gets larger than this; with a disk tier only
	chunks   [][]byte // what is not on disk
	file     *os.File // what is; nil until the body outgrows the buffer
	digest   digest
	seq      uint64 // names the files; 0 until the first is made
	err      error  // why the capture is over; nil while it goes on
}

// Create starts capturing a response of size bytes, -1 when that is unknown; ErrTooBig when that can
// never be stored. Room is not taken before the bytes arrive: a length is a promise, and who breaks it
// must not have emptied the store.
func (f *Fetch) Create(size int64) (*Writer, error) {
	s := f.s
	if s.closed.Load() {
		return nil, ErrClosed
	}
	w := &Writer{s: s, f: f, declared: max(size, -1), most: s.maxBody.Load(), limit: s.bufferBelow.Load()}
	if size > w.limit {
		w.limit = -1
	}
	need := w.footprint(max(size, 0))
	// Rounding up may have overflowed.
	if size > w.most || need < 0 || !s.ledger.fits(need) {
		return nil, ErrTooBig
	}
	return w, nil
}

// footprint is what a body of n bytes will cost, with the least that goes with it.
func (w *Writer) footprint(n int64) int64 {
	if w.s.onDisk {
		return blocks(n) + blockSize
	}
	return n + entryOverhead
}

// reserve raises the reservation to total, or to as much as ahead more that the budget has to spare.
func (w *Writer) reserve(total, ahead int64, partial bool) error {
	b, err := w.s.ledger.reserve(w.reserved, max(total-w.reserved, 0), ahead, partial, w.declared < 0)
	w.s.bury(b.victims)
	if err != nil {
		return err
	}
	w.reserved += b.bytes
	// Room on the accounts is not room on the disk while bodies wait to be unlinked.
	for w.s.reap(b.free) {
	}
	return nil
}

// Write takes the next bytes of the body. After an error the capture is over: what it held is free
// again at once, and every later call returns the same error: ErrTooBig when what has arrived can never
// be stored, ErrFull when it does not fit beside the other captures in flight, ErrSize when there are
// more bytes than declared, else a disk error.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := w.write(p); err != nil {
		w.end(err)
		return 0, err
	}
	return len(p), nil
}

func (w *Writer) write(p []byte) error {
	total := w.size + int64(len(p))
	if w.declared >= 0 && total > w.declared {
		return ErrSize
	}
	switch {
	case w.s.closed.Load():
		return ErrClosed
	case total > w.most:
		return ErrTooBig
	case !w.s.onDisk:
		if err := w.buffer(p); err != nil {
			return err
		}
	case w.file == nil && total <= w.limit:
		if err := w.buffer(p); err != nil {
			return err
		}
	default:
		if err := w.spill(p, total); err != nil {
			return err
		}
	}
	w.crc = crc32.Update(w.crc, castagnoli, p)
	w.size = total
	return nil
}

// buffer appends p to the chunks. In RAM-only mode their capacity is what is paid for.
func (w *Writer) buffer(p []byte) error {
	for len(p) > 0 {
		i := len(w.chunks) - 1
		if i < 0 || len(w.chunks[i]) == cap(w.chunks[i]) {
			size, err := w.nextChunk(len(p))
			if err != nil {
				return err
			}
			w.chunks = append(w.chunks, make([]byte, 0, size))
			i++
		}
		c := w.chunks[i]
		n := min(len(p), cap(c)-len(c))
		w.chunks[i] = append(c, p[:n]...)
		p = p[n:]
	}
	return nil
}

// nextChunk decides on the next chunk's size, with n bytes at hand, and pays for it.
func (w *Writer) nextChunk(n int) (int, error) {
	held, last := int64(0), minChunk/2
	if w.declared >= 0 {
		last = firstChunk / 2
	}
	for _, c := range w.chunks {
		last = cap(c)
		held += int64(last)
	}
	size := min(max(2*last, n), maxChunk)
	if w.declared >= 0 {
		size = int(min(int64(size), w.declared-held))
	}
	if w.s.onDisk {
		return size, nil
	}
	err := w.reserve(w.footprint(held+int64(size)), 0, true)
	if err != nil && size > n {
		size = n
		err = w.reserve(w.footprint(held+int64(size)), 0, true)
	}
	return size, err
}

// spill writes p to the temporary file, after what has been buffered.
func (w *Writer) spill(p []byte, total int64) error {
	if need := w.footprint(total); need > w.reserved {
		ahead := int64(reserveStep)
		if w.declared >= 0 {
			ahead = min(ahead, w.footprint(w.declared)-need)
		}
		if err := w.reserve(need, ahead, true); err != nil {
			return err
		}
	}
	if w.file == nil {
		f, err := createFile(w.newPath() + tempSuffix)
		if err != nil {
			return w.diskError("creating a body", err)
		}
		w.file = f
		for _, c := range w.chunks {
			if _, err := f.Write(c); err != nil {
				return w.diskError("writing a body", err)
			}
		}
		w.chunks = nil
	}
	if _, err := w.file.Write(p); err != nil {
		return w.diskError("writing a body", err)
	}
	return nil
}

// newPath names the body, once.
func (w *Writer) newPath() string {
	if w.seq == 0 {
		w.digest = digestOf(w.f.key)
		w.seq = w.s.seq.Add(1)
	}
	return w.s.bodyPath(w.digest, w.seq)
}

func (w *Writer) diskError(action string, err error) error {
	w.s.diskError(faultWrite, action, w.s.bodyPath(w.digest, w.seq), err)
	return fmt.Errorf("store: %s: %w", action, err)
}

// end gives back everything that the capture holds.
func (w *Writer) end(err error) {
	w.err = err
	w.chunks = nil
	if w.file != nil {
		w.file.Close()
		w.file = nil
		w.s.unlink(w.s.bodyPath(w.digest, w.seq) + tempSuffix)
	}
	if w.reserved > 0 {
		w.s.ledger.release(w.reserved)
		w.reserved = 0
	}
}

// Discard gives the capture up. After Commit, or a second time, it does nothing.
func (w *Writer) Discard() {
	if w.err == nil {
		w.end(errDiscarded)
	}
}

var (
	errDiscarded = errors.New("store: capture was discarded")
	errCommitted = errors.New("store: capture was committed")
)

// Commit stores the captured body with r, in the place of every response that would have answered the
// same request: reqHeader is that request's header, as the origin got it. It fails, and stores
// nothing, with ErrPurged when the key or one of r's tags was purged since the fetch was registered,
// with ErrSize when the body is shorter than declared, and with what Write fails with. The entry is complete on disk
// when Commit returns, though not synced.
func (w *Writer) Commit(r *Response, reqHeader http.Header) (*Entry, error) {
	if w.err != nil {
		return nil, w.err
	}
	e, err := w.commit(r, reqHeader)
	if err != nil {
		w.end(err)
		return nil, err
	}
	w.end(errCommitted)
	return e, nil
}

func (w *Writer) commit(r *Response, reqHeader http.Header) (*Entry, error) {
	s := w.s
	switch {
	case s.closed.Load():
		return nil, ErrClosed
	case w.declared >= 0 && w.size != w.declared:
		return nil, ErrSize
	case !strictlySorted(r.Tags):
		return nil, ErrTags
	case w.f.barred(r.Tags): // publish decides; this spares the files
		return nil, ErrPurged
	}
	sc := s.schemes.of(r.Vary)
	e := &Entry{
		scheme:   sc,
		size:     w.size,
		crc:      w.crc,
		deadline: deadlineOf(r.Discard),
	}
	if len(sc.names) > 0 {
		e.vkey = string(s.variantKey(nil, sc.names, reqHeader))
	}
	e.born.Store(nanosOf(r.Born))
	e.place.use.age(s.clock.Load())

	if !s.onDisk {
		e.res = &resource{store: s, key: w.f.key} // for the price; publish sets the one in the index
		e.seq = s.seq.Add(1)
		warm := newWarm(e, r, w.join())
		if err := w.reserve(warm.bytes, 0, false); err != nil {
			return nil, err
		}
		e.warm.Store(warm)
		return e, w.publish(e, r.Tags, reqHeader, "", nil)
	}

	path := w.newPath()
	e.seq = w.seq
	buf := metaBuffers.Get().(*[]byte)
	defer metaBuffers.Put(buf)
	meta, err := appendSidecar((*buf)[:0], sidecarOf{w.f.key, e.vkey, sc.names, e.size, e.crc}, r)
	*buf = meta[:0]
	if err != nil {
		return nil, err
	}
	e.metaBlock = uint16(blocks(int64(len(meta))) / blockSize)
	if err := w.reserve(blocks(e.size)+blocks(int64(len(meta))), 0, false); err != nil {
		return nil, err
	}
	body, err := w.storeBody(e, path)
	if err != nil {
		return nil, err
	}
	if err := w.storeMeta(path, meta); err != nil {
		s.unlink(path)
		return nil, err
	}
	small := e.size <= s.promoteBelow.Load()
	if !small {
		body = nil
	}
	err = w.publish(e, r.Tags, reqHeader, path+metaSuffix, func() { s.ledger.keep(e, r, body) })
	if err != nil {
		s.unlink(path + metaSuffix + tempSuffix)
		s.unlink(path)
		return nil, err
	}
	if small && body == nil {
		if b, err := e.Open(); err == nil { // it went through the disk: bring it back
			b.Close()
		}
	}
	return e, nil
}

// join returns the buffered body in one piece that is not much larger than the body.
func (w *Writer) join() []byte {
	if len(w.chunks) == 1 {
		if c := w.chunks[0]; cap(c)-len(c) <= cap(c)/8 {
			return c
		}
	}
	body := make([]byte, 0, w.size)
	for _, c := range w.chunks {
		body = append(body, c...)
	}
	return body
}

// storeBody brings the body's file to its place and notes its stamp. It returns the bytes when they
// are at hand.
func (w *Writer) storeBody(e *Entry, path string) (body []byte, err error) {
	f := w.file
	if f == nil {
		// A body without a sidecar is an orphan to the rebuild, so it needs no temporary name.
		body = w.join()
		if f, err = createFile(path); err != nil {
			return nil, w.diskError("creating a body", err)
		}
		_, err = f.Write(body)
	} else {
		w.file = nil
		err = os.Rename(path+tempSuffix, path)
		if err != nil {
			w.s.unlink(path + tempSuffix)
		}
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		w.s.unlink(path)
		return nil, w.diskError("writing a body", err)
	}
	e.stamp.Store(stampOf(&st))
	return body, nil
}

// storeMeta writes the sidecar under its temporary name.
func (w *Writer) storeMeta(path string, meta []byte) error {
	if err := writeFile(path+metaSuffix+tempSuffix, meta); err != nil {
		return w.diskError("writing a sidecar", err)
	}
	return nil
}

// writeFile makes a new file of b; on an error nothing is left of it.
func writeFile(path string, b []byte) error {
	f, err := createFile(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}

// publish makes e visible: on disk by giving its sidecar the name meta, if there is one, and in the
// index. Both happen under the shard's lock, together with the look at the fence: a purge comes
// before, and e is not stored, or after, and finds it. warm, unless nil, is called when e is in.
func (w *Writer) publish(e *Entry, tags []string, reqHeader http.Header, meta string, warm func()) error {
	s, f := w.s, w.f
	sh := s.shardOf(f.hash)
	sh.mu.Lock()
	switch {
	case s.closed.Load():
		sh.mu.Unlock()
		return ErrClosed
	case f.fenced(tags):
		sh.mu.Unlock()
		return ErrPurged
	}
	if meta != "" {
		if err := os.Rename(meta+tempSuffix, meta); err != nil {
			sh.mu.Unlock()
			return w.diskError("naming a sidecar", err)
		}
	}
	res := sh.find(f.hash, f.key)
	isNew := res == nil
	if isNew {
		res = &resource{store: s, key: f.key}
	}
	e.res = res
	old := res.set.Load()
	replaced, crowded := s.displaced(old, e, reqHeader)
	victims, err := s.ledger.admit(e, w.reserved, replaced, crowded)
	drop := slices.Concat(replaced, crowded)
	if err == nil {
		w.reserved = 0
		if isNew {
			sh.insert(f.hash, res)
		}
		res.set.Store(old.without(drop, e))
		s.tags.enter(e, tags)
		if warm != nil {
			warm()
		}
	} else {
		if meta != "" {
			s.unlink(meta)
		}
		if len(drop) > 0 {
			s.replaceSet(sh, f.hash, res, old.without(drop, nil))
		}
	}
	for _, d := range drop {
		s.retire(d)
	}
	sh.mu.Unlock()
	s.dropBodies(drop)
	s.bury(victims)
	return err
}

// displaced returns the variants that must go when e is stored: those that would have answered its
// request, and of the rest the least recently used while there is one too many.
func (s *Store) displaced(v *variants, e *Entry, reqHeader http.Header) (replaced, crowded []*Entry) {
	if v == nil {
		return nil, nil
	}
	m := matcher{s: s, h: reqHeader}
	defer m.release()
	for _, old := range v.list {
		if m.matches(old) {
			replaced = append(replaced, old)
		}
	}
	for left, limit := len(v.list)-len(replaced), s.ledger.variants(); left >= limit; left-- {
		crowded = append(crowded, leastUsed(v.list, replaced, crowded))
	}
	return replaced, crowded
}

func leastUsed(list []*Entry, but ...[]*Entry) (least *Entry) {
	for _, e := range list {
		if slices.ContainsFunc(but, func(b []*Entry) bool { return slices.Contains(b, e) }) {
			continue
		}
		if least == nil {
			least = e
			continue
		}
		a, b := e.place.use.last(), least.place.use.last()
		if a < b || a == b && e.seq < least.seq {
			least = e
		}
	}
	return least
}
