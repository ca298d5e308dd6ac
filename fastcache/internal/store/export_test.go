package store

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"
)

const (
	BlockSize    = blockSize
	MaxSidecar   = maxSidecar
	SidecarFixed = sidecarFixed
	MarkOffset   = markOffset
	JournalMin   = journalMin
	MaxTagBars   = maxTagBars
)

var (
	BacklogFor = backlogFor
	SameAlias  = sameAlias
	SizeEntry  = unsafe.Sizeof(Entry{})
	SizeShard  = unsafe.Sizeof(shard{})
)

// Sweep does what the sweeper does at a tick, now.
func (s *Store) Sweep() { s.sweep() }

// Settle finishes what the background has been asked to do.
func (s *Store) Settle() {
	s.trim()
	r := &s.reaper
	r.mu.Lock()
	defer r.mu.Unlock()
	for s.onDisk && (r.busy > 0 || len(r.queue) > 0 || len(r.scars) > 0) {
		r.idle.Wait()
	}
}

// AddBacklog queues n bodies that are not there, without waking who unlinks them.
func (s *Store) AddBacklog(n int, size int64) {
	s.reaper.mu.Lock()
	defer s.reaper.mu.Unlock()
	for i := range n {
		s.reaper.queue = append(s.reaper.queue, corpse{seq: uint64(i), size: size})
		s.reaper.bytes += size
	}
}

// TakeOnly does the first half of Remove: e leaves the ledger, not the index. Finish does the other.
func (s *Store) TakeOnly(e *Entry) (finish func()) {
	s.ledger.remove(e, Damaged)
	return func() { s.bury([]*Entry{e}) }
}

// AddCorpse has a body unlinked in the background, and returns where it lies.
func (s *Store) AddCorpse(key string) string {
	c := corpse{digest: digestOf(key), seq: 1}
	s.reaper.add([]corpse{c}, nil)
	return s.bodyPath(c.digest, c.seq)
}

// Number returns the file number of e.
func (s *Store) Number(e *Entry) uint64 { return e.seq }

// EncodeJournal encodes a journal of numbers; DecodeJournal is its inverse.
func EncodeJournal(numbers []uint64, soft bool) []byte {
	var list []*Entry
	for _, n := range numbers {
		list = append(list, &Entry{seq: n})
	}
	sortBySeq(list)
	return appendJournal(nil, list, soft)
}

func DecodeJournal(b []byte) (numbers []uint64, soft bool, err error) { return parseJournal(b) }

// SealJournal makes a malformed journal pass its checksum.
func SealJournal(b []byte) {
	if len(b) >= journalFixed {
		copy(b, journalMagic)
		binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	}
}

// Reap unlinks one body, if there is one.
func (s *Store) Reap() bool { return s.work() }

// BacklogBytes is what waits to be unlinked.
func (s *Store) BacklogBytes() int64 {
	s.reaper.mu.Lock()
	defer s.reaper.mu.Unlock()
	return s.reaper.bytes
}

// BodyPath returns where e's body lies.
func (s *Store) BodyPath(e *Entry) string { return s.bodyPath(digestOf(e.res.key), e.seq) }

// ShardDir returns the shard directory of key.
func (s *Store) ShardDir(key string) string {
	d := digestOf(key)
	return filepath.Join(s.path, hex.EncodeToString(d[:1]))
}

// PathFor returns the body path that key would have under a file number.
func (s *Store) PathFor(key string, seq uint64) string { return s.bodyPath(digestOf(key), seq) }

// Cool drops what RAM holds beside the disk.
func (s *Store) Cool() {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	for s.ledger.cool() {
	}
}

// Recode returns the encoding of what b decodes to.
func Recode(b []byte) ([]byte, error) {
	rec, err := parseSidecar(b)
	if err != nil {
		return nil, err
	}
	out, err := appendSidecar(nil, sidecarOf{string(rec.key), string(rec.vkey), rec.vary.names(), rec.size, rec.crc}, rec.response())
	if err == nil && rec.stale {
		out[markOffset] = staleByte
	}
	return out, err
}

// EncodeSidecar encodes r; DecodeSidecar is its inverse.
func EncodeSidecar(key, vkey string, names []string, size int64, crc uint32, r *Response) ([]byte, error) {
	return appendSidecar(nil, sidecarOf{key, vkey, names, size, crc}, r)
}

func DecodeSidecar(b []byte) (key, vkey string, r *Response, err error) {
	rec, err := parseSidecar(b)
	if err != nil {
		return "", "", nil, err
	}
	return string(rec.key), string(rec.vkey), rec.response(), nil
}

// SealSidecar makes a malformed sidecar pass its length and checksum checks.
func SealSidecar(b []byte) {
	if len(b) >= sidecarFixed {
		copy(b, sidecarMagic)
		seal(b)
	}
}

// AddCold puts an entry without files into the index, to weigh it.
func (s *Store) AddCold(key string, deadline time.Time, tags []string) {
	hash := s.hashKey(key)
	sh := s.shardOf(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	res := &resource{store: s, key: key}
	e := &Entry{res: res, scheme: noScheme, size: 4096, seq: s.seq.Add(1), metaBlock: 1, deadline: deadlineOf(deadline)}
	if _, err := s.ledger.admit(e, 0, nil, nil); err != nil {
		panic(err)
	}
	sh.insert(hash, res)
	res.set.Store((*variants)(nil).without(nil, e))
	s.tags.enter(e, tags)
}

// Wheel drives a wheel alone: deadlines in, the order and time of what it hands out.
type Wheel struct {
	w     wheel
	index map[*Entry]int
}

func NewWheel(now int64) *Wheel {
	w := &Wheel{index: map[*Entry]int{}}
	w.w.init(now)
	return w
}

func (w *Wheel) Add(i int, deadline uint32) (remove func()) {
	e := &Entry{deadline: deadline}
	w.index[e] = i
	w.w.add(e)
	return func() { w.w.remove(e) }
}

func (w *Wheel) Next(now int64) (int, bool) {
	e := w.w.next(now)
	return w.index[e], e != nil
}

// CheckInvariants compares the index, the accounts, the queues, the wheel and the files of a store
// at which nothing is going on.
func (s *Store) CheckInvariants() error {
	s.Settle()
	l := &s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()

	files := map[string]int64{}
	tagged := 0
	var count, deadlines, warmCount int
	var bytes, warmBytes int64
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		resources := 0
		var err error
		for res := range sh.all {
			resources++
			hash := s.hashKey(res.key)
			if s.shardOf(hash) != sh || sh.find(hash, res.key) != res {
				err = fmt.Errorf("%q is in the wrong place", res.key)
			}
			set := res.set.Load()
			if set == nil || len(set.list) == 0 {
				err = fmt.Errorf("%q is empty but in the index", res.key)
				break
			}
			seen := map[string]bool{}
			for _, e := range set.list {
				id := strings.Join(e.scheme.names, ",") + "\x00" + e.vkey
				switch {
				case e.gone():
					err = fmt.Errorf("%q: a gone entry is in the index", res.key)
				case e.res != res:
					err = fmt.Errorf("%q: entry of another resource", res.key)
				case seen[id]:
					err = fmt.Errorf("%q: variant %q twice", res.key, id)
				case e.place.queue == inNone:
					err = fmt.Errorf("%q: entry without a seat", res.key)
				case (e.deadline != 0) != (e.due.next != nil):
					err = fmt.Errorf("%q: deadline %d, linked %t", res.key, e.deadline, e.due.next != nil)
				case !s.onDisk && e.warm.Load() == nil:
					err = fmt.Errorf("%q: cold in RAM-only mode", res.key)
				}
				seen[id] = true
				if e.mark.Load()&markTagged != 0 {
					tagged++
				}
				if w := e.warm.Load(); err == nil && w != nil && w.resp != nil {
					if names := s.tags.of(e); !slices.Equal(names, w.resp.Tags) {
						err = fmt.Errorf("%q: tag index has %q, response %q", res.key, names, w.resp.Tags)
					}
				}
				count++
				bytes += e.cost()
				if e.deadline != 0 {
					deadlines++
				}
				if w := e.warm.Load(); w != nil && s.onDisk {
					warmCount++
					warmBytes += w.bytes
					if w.e != e || w.place.queue == inNone {
						err = fmt.Errorf("%q: warm half out of order", res.key)
					}
				}
				if s.onDisk {
					p := s.bodyPath(digestOf(res.key), e.seq)
					files[p] = e.size
					files[p+metaSuffix] = -int64(e.metaBlock)
				}
			}
		}
		if resources != sh.count {
			err = fmt.Errorf("shard %d counts %d resources, has %d", i, sh.count, resources)
		}
		sh.mu.Unlock()
		if err != nil {
			return err
		}
	}
	q := &l.entries
	switch {
	case count != q.count() || count != listLen[Entry](&q.small)+listLen[Entry](&q.main):
		return fmt.Errorf("index has %d entries, ledger %d, queues %d", count, q.count(), listLen[Entry](&q.small)+listLen[Entry](&q.main))
	case bytes != q.bytes():
		return fmt.Errorf("index has %d bytes, ledger %d", bytes, q.bytes())
	case warmCount != l.warm.count() || warmBytes != l.warm.bytes():
		return fmt.Errorf("warm: index %d entries %d bytes, ledger %d and %d", warmCount, warmBytes, l.warm.count(), l.warm.bytes())
	case l.reserved != 0:
		return fmt.Errorf("%d bytes are reserved by nobody", l.reserved)
	case q.bytes() > l.capacity || s.onDisk && l.warm.bytes() > l.headroom:
		return fmt.Errorf("over budget: %d of %d, warm %d of %d", q.bytes(), l.capacity, l.warm.bytes(), l.headroom)
	case l.limits.Items > 0 && q.count() > l.limits.Items:
		return fmt.Errorf("%d entries of %d", q.count(), l.limits.Items)
	}
	if err := s.tags.check(tagged); err != nil {
		return err
	}
	linked := 0
	for i := range l.wheel.slots {
		for j := range l.wheel.slots[i] {
			slot := &l.wheel.slots[i][j]
			for e := slot.due.next; e != slot; e = e.due.next {
				linked++
			}
		}
	}
	for e := l.wheel.ready.due.next; e != &l.wheel.ready; e = e.due.next {
		linked++
	}
	if linked != deadlines {
		return fmt.Errorf("wheel holds %d of %d entries", linked, deadlines)
	}
	if !s.onDisk {
		return nil
	}
	var found int
	err := filepath.WalkDir(s.path, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, journal := parseJournalName(d.Name()); journal {
			return fmt.Errorf("journal %s is left", path)
		}
		if _, ours := parseName(d.Name()); !ours {
			return nil
		}
		want, ok := files[path]
		if !ok {
			return fmt.Errorf("orphan %s", path)
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if want < 0 && blocks(st.Size()) != -want*blockSize || want >= 0 && st.Size() != want {
			return fmt.Errorf("%s has %d bytes, accounts say %d", path, st.Size(), want)
		}
		found++
		return nil
	})
	if err == nil && found != len(files) {
		err = fmt.Errorf("%d files of %d", found, len(files))
	}
	return err
}

// check compares the lists of the tags with what the entries say, of which there are count with tags.
func (t *tagIndex) check(count int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.carried) != count {
		return fmt.Errorf("tag index has %d entries of %d", len(t.carried), count)
	}
	members := 0
	for e, list := range t.carried {
		members += len(list)
		if e.mark.Load()&markTagged == 0 || len(list) == 0 {
			return fmt.Errorf("%q is in the tag index without tags", e.res.key)
		}
	}
	listed := 0
	for name, tg := range t.byName {
		if tg.first == nil || tg.name != name {
			return fmt.Errorf("tag %q is carried by nobody", name)
		}
		var prev *tagMember
		for m := tg.first; m != nil; prev, m = m, m.next {
			if m.prev != prev || m.tag != tg || !slices.ContainsFunc(t.carried[m.e], func(o tagMember) bool { return o.tag == tg }) {
				return fmt.Errorf("tag %q: list out of order", name)
			}
			listed++
		}
	}
	if listed != members {
		return fmt.Errorf("tags list %d entries, entries %d tags", listed, members)
	}
	return nil
}

// TagCount is the number of tags that some entry carries.
func (s *Store) TagCount() int {
	s.tags.mu.Lock()
	defer s.tags.mu.Unlock()
	return len(s.tags.byName)
}

func listLen[T any, P member[T]](f *fifo[T, P]) (n int) {
	for t := P(&f.root).seatOf().next; t != &f.root; t = P(t).seatOf().next {
		n++
	}
	return n
}
