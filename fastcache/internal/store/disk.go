package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// blockSize is the unit in which the disk budget counts, the block of the common file systems.
	blockSize = 4096

	metaSuffix = ".meta"
	tempSuffix = ".tmp"

	fileMode = 0o640
	dirMode  = 0o750

	// lockName and probeName lie beside the shard directories. Neither looks like a file of an entry.
	lockName  = ".lock"
	probeName = ".probe"

	// verifyChunk is the read size of a checksum run.
	verifyChunk = 128 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blocks rounds a file size up to what it occupies.
func blocks(size int64) int64 { return (size + blockSize - 1) &^ (blockSize - 1) }

// digest names a key's files: the first half of the SHA-256 of its alias form, so that all schemes
// and ports of a host lie in one directory, and no key is too long or too odd for a file name.
type digest [12]byte

func digestOf(key string) (d digest) {
	var buf [512]byte
	host, rest := aliasParts(key)
	sum := sha256.Sum256(append(append(buf[:0], host...), rest...))
	copy(d[:], sum[:])
	return d
}

// bodyPath returns the body's path; its sidecar has metaSuffix behind it.
func (s *Store) bodyPath(d digest, seq uint64) string {
	b := make([]byte, 0, len(s.path)+4+2*len(d)+1+16)
	b = append(b, s.path...)
	b = append(b, filepath.Separator)
	b = hex.AppendEncode(b, d[:1])
	b = append(b, filepath.Separator)
	return string(appendName(b, d, seq))
}

func appendName(b []byte, d digest, seq uint64) []byte {
	b = hex.AppendEncode(b, d[:])
	b = append(b, '-')
	return strconv.AppendUint(b, seq, 16)
}

// fileName is what the name of a file of ours says.
type fileName struct {
	digest digest
	seq    uint64
	meta   bool // a sidecar
	temp   bool // unfinished
}

// parseName reads a file's name; false when it is not one that appendName and the suffixes make.
func parseName(name string) (f fileName, ok bool) {
	base, temp := strings.CutSuffix(name, tempSuffix)
	base, meta := strings.CutSuffix(base, metaSuffix)
	h, q, found := strings.Cut(base, "-")
	if !found || len(h) != 2*len(f.digest) {
		return f, false
	}
	if _, err := hex.Decode(f.digest[:], []byte(h)); err != nil {
		return f, false
	}
	seq, err := strconv.ParseUint(q, 16, 64)
	if err != nil {
		return f, false
	}
	var buf [64]byte
	if !bytes.Equal(appendName(buf[:0], f.digest, seq), []byte(base)) {
		return f, false // upper case, leading zeros, a sign: not ours
	}
	f.seq, f.meta, f.temp = seq, meta, temp
	return f, true
}

// createFile makes a new file for writing, and its directory when that is missing. An existing file,
// or link, is an error: bytes on disk are written once.
func createFile(path string) (*os.File, error) {
	for try := 0; ; try++ {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, fileMode)
		if err == nil || try == 2 || !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
		// The rebuild may remove an empty directory between the two calls: hence three tries.
		if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
			return nil, err
		}
	}
}

// openRegular opens a file of ours for reading. It follows no link and does not wait for the writer
// of a pipe that someone has put in its place.
func openRegular(path string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, st, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, st, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, st, errors.New("not a regular file")
	}
	return os.NewFile(uintptr(fd), path), st, nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// stampOf folds what tells a file from a changed one into a word that is never 0. Two states of one
// file share a word with a chance of 2^-63.
func stampOf(st *unix.Stat_t) uint64 {
	h := uint64(14695981039346656037)
	//nolint:unconvert // the types of the fields differ between systems
	for _, v := range [...]uint64{uint64(st.Ino), uint64(st.Size), uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano())} {
		h ^= v
		h *= 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h | 1
}

// passing reports whether err says something about the process or the moment, not about the file.
func passing(err error) bool {
	for _, e := range [...]error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR, unix.EAGAIN, unix.EBUSY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

var verifyBuffers = sync.Pool{New: func() any { b := make([]byte, verifyChunk); return &b }}

// sumFile returns the CRC-32C of f's first size bytes and leaves its position alone.
func sumFile(f *os.File, size int64) (uint32, error) {
	buf := verifyBuffers.Get().(*[]byte)
	defer verifyBuffers.Put(buf)
	var crc uint32
	for off := int64(0); off < size; {
		n, err := f.ReadAt((*buf)[:min(size-off, verifyChunk)], off)
		crc = crc32.Update(crc, castagnoli, (*buf)[:n])
		off += int64(n)
		if err != nil && off < size {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
	}
	return crc, nil
}

var errSum = errors.New("checksum differs")

// openBody opens the body of an entry whose bytes are not in RAM.
func (s *Store) openBody(e *Entry) (Body, error) {
	if !s.onDisk {
		return Body{}, ErrGone
	}
	path := s.bodyPath(digestOf(e.res.key), e.seq)
	f, st, err := openRegular(path)
	if err == nil && st.Size != e.size {
		f.Close()
		err = fmt.Errorf("body has %d bytes instead of %d", st.Size, e.size)
	}
	if err != nil {
		return Body{}, s.openFailed(e, path, err)
	}
	if e.size <= s.promoteBelow.Load() && e.mark.Or(markPromoting)&markPromoting == 0 {
		body, err := s.promote(e, f, &st)
		e.mark.And(^uint32(markPromoting))
		if err != nil {
			f.Close()
			return Body{}, s.openFailed(e, path, err)
		}
		f.Close()
		return Body{Bytes: body}, nil
	}
	if stampOf(&st) != e.stamp.Load() {
		if err := s.verifyBody(e, f); err != nil {
			f.Close()
			return Body{}, s.openFailed(e, path, err)
		}
	}
	return Body{File: f}, nil
}

// openFailed sorts a failed open: gone, passing, or damage, which costs the entry its place.
func (s *Store) openFailed(e *Entry, path string, err error) error {
	switch {
	case e.gone():
		return ErrGone
	case passing(err):
		s.diskError(faultRead, "opening a body", path, err)
		return fmt.Errorf("store: opening a body: %w", err)
	}
	s.condemn(e, path, err)
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// promote reads a small body into RAM, checking it on the way when that is due.
func (s *Store) promote(e *Entry, f *os.File, st *unix.Stat_t) ([]byte, error) {
	body := make([]byte, e.size)
	if _, err := f.ReadAt(body, 0); err != nil {
		return nil, err
	}
	if stamp := stampOf(st); stamp != e.stamp.Load() {
		if crc32.Checksum(body, castagnoli) != e.crc {
			return nil, errSum
		}
		e.stamp.Store(stamp)
	}
	s.ledger.keep(e, nil, body)
	return body, nil
}

// verifyBody checks the sum of an open body and remembers the file that had it. One at a time for an
// entry: the others wait and find it done.
func (s *Store) verifyBody(e *Entry, f *os.File) error {
	mu := &s.verifying[e.seq%uint64(len(s.verifying))]
	mu.Lock()
	defer mu.Unlock()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	stamp := stampOf(&st)
	if stamp == e.stamp.Load() {
		return nil
	}
	crc, err := sumFile(f, e.size)
	if err != nil {
		return err
	}
	if crc != e.crc {
		return errSum
	}
	e.stamp.Store(stamp)
	return nil
}

// condemn drops a damaged entry, files and all.
func (s *Store) condemn(e *Entry, path string, err error) {
	if s.Remove(e, Damaged) {
		s.damaged.Add(1)
		s.complain(faultDamage, "dropped a damaged entry", path, err)
	}
}

// corpse is a body that waits to be unlinked.
type corpse struct {
	digest digest
	seq    uint64
	size   int64  // in blocks, in bytes
	batch  *batch // not nil: its sidecar waits too, and a journal answers for both
}

// scar is a soft purge's mark that waits to be written.
type scar struct {
	e     *Entry
	batch *batch
}

// reaper unlinks bodies in the background: a large file can take the file system long, and so can many
// small ones. Their bytes are off the accounts already. Who wants room, while they fit neither into
// what the budget has left nor into limit, unlinks himself first.
type reaper struct {
	mu    sync.Mutex
	queue []corpse // guarded by mu
	scars []scar   // guarded by mu
	busy  int      // corpses and scars that someone is at; guarded by mu
	bytes int64    // of the queue and the busy; guarded by mu
	limit int64    // guarded by mu
	wake  chan struct{}
	idle  sync.Cond // on mu: the queues are empty and no one is busy
}

const maxBacklog = 64 << 20

// backlogFor is the bytes that may wait to be unlinked under a disk budget.
func backlogFor(disk int64) int64 { return min(disk/8, maxBacklog) }

func (r *reaper) init() {
	r.wake = make(chan struct{}, 1)
	r.idle.L = &r.mu
}

func (r *reaper) setLimit(n int64) {
	r.mu.Lock()
	r.limit = n
	r.mu.Unlock()
}

func (r *reaper) add(corpses []corpse, scars []scar) {
	if len(corpses)+len(scars) == 0 {
		return
	}
	r.mu.Lock()
	r.queue = append(r.queue, corpses...)
	r.scars = append(r.scars, scars...)
	for _, c := range corpses {
		r.bytes += c.size
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// pop takes the last off a queue. An empty one leaves no array behind, as big as a purge may make it.
func pop[T any](queue *[]T) T {
	q := *queue
	last := q[len(q)-1]
	if *queue = q[:len(q)-1]; len(*queue) == 0 {
		*queue = nil
	}
	return last
}

// reap unlinks one body; false when no more than free bytes are over the limit.
func (s *Store) reap(free int64) bool {
	r := &s.reaper
	r.mu.Lock()
	if len(r.queue) == 0 || r.bytes-r.limit <= free {
		r.mu.Unlock()
		return false
	}
	s.reapOne()
	return true
}

// work unlinks one body or, first, writes one mark; false when there is nothing to do.
func (s *Store) work() bool {
	r := &s.reaper
	r.mu.Lock()
	switch {
	case len(r.scars) > 0:
		c := pop(&r.scars)
		r.busy++
		r.mu.Unlock()
		s.scar(c)
		r.mu.Lock()
		s.finish(c.batch, true)
	case len(r.queue) > 0:
		s.reapOne()
	default:
		r.mu.Unlock()
		return false
	}
	return true
}

// reapOne unlinks the last of the queue. The caller holds reaper.mu, reapOne releases it.
func (s *Store) reapOne() {
	r := &s.reaper
	c := pop(&r.queue)
	r.busy++
	r.mu.Unlock()
	path := s.bodyPath(c.digest, c.seq)
	// A body without a sidecar is an orphan to the rebuild: it is the sidecar that must go.
	ok := c.batch == nil || s.unlink(path+metaSuffix)
	s.unlink(path)
	r.mu.Lock()
	r.bytes -= c.size
	s.finish(c.batch, ok)
}

// finish ends what reap has begun; the last one of a batch ends its journal. The caller holds
// reaper.mu, finish releases it.
func (s *Store) finish(b *batch, ok bool) {
	r := &s.reaper
	if b != nil {
		b.left--
		b.kept = b.kept || !ok
		if b.left == 0 && !b.kept {
			r.mu.Unlock()
			s.unlink(b.path)
			r.mu.Lock()
		}
	}
	r.busy--
	if r.busy == 0 && len(r.queue) == 0 && len(r.scars) == 0 {
		r.idle.Broadcast()
	}
	r.mu.Unlock()
}

// scar writes the mark of a soft purge to an entry's sidecar, unless a refresh or a removal has made
// that needless.
func (s *Store) scar(c scar) {
	sh := s.shardOf(s.hashKey(c.e.res.key))
	sh.mu.Lock()
	failed := !c.e.gone() && c.e.Stale() && s.markSidecar(c.e) != nil
	sh.mu.Unlock()
	if failed {
		// A mark that a restart would lose is none: the entry goes instead.
		s.Remove(c.e, c.batch.why)
	}
}

// undertaker runs the reaper until Close, and then until the queues are empty.
func (s *Store) undertaker() {
	defer s.wg.Done()
	for {
		for s.work() {
		}
		select {
		case <-s.done:
			for s.work() {
			}
			return
		case <-s.reaper.wake:
		}
	}
}

// unlink removes a file that may be gone already. false: it is still there.
func (s *Store) unlink(path string) bool {
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return true
	}
	s.diskError(faultUnlink, "removing a file", path, err)
	return false
}
