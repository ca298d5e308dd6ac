package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A purge of many entries would spend its time on unlinking. It writes their file numbers to a journal
// instead, one for each batch, then takes them out of the index, and leaves the files to the background.
// The journal goes when they are gone; whoever starts meanwhile reads it first. So such a purge is final
// when it returns, as one that unlinks itself is, also for a process that is killed right then.
//
// The journal, version 1. Integers are little-endian.
//
//	offset  size
//	0       4     magic "FCJ1", the version in its last byte
//	4       4     CRC-32C of what follows
//	8       1     0x00: remove the entries; 0xff: mark them stale
//	9       7     zero
//	16            file numbers, u64 each, strictly ascending
//
// It gets its name when it is complete. One that cannot be read all the same may have named any entry:
// everything that earlier runs left is dropped then.
const (
	journalMagic  = "FCJ1"
	journalFixed  = 16
	journalPrefix = ".purge-"

	// purgeBatch is the most entries of one journal, and what a purge does between two looks at its
	// context: about 50 ms.
	purgeBatch = 1 << 15

	// journalMin is the fewest entries for which a journal pays: it costs as much as removing five
	// (BenchmarkPurge).
	journalMin = 64
)

var errJournal = errors.New("journal is malformed")

// batch is a journal of this run and the files that it stands for.
type batch struct {
	path string
	why  Cause
	left int  // entries that the background has not come to; guarded by reaper.mu
	kept bool // a file would not go: the journal is left to the next start; guarded by reaper.mu
}

func appendJournal(b []byte, list []*Entry, soft bool) []byte {
	at := len(b)
	b = append(b, journalMagic...)
	b = append(b, 0, 0, 0, 0, freshByte, 0, 0, 0, 0, 0, 0, 0)
	if soft {
		b[at+8] = staleByte
	}
	for _, e := range list {
		b = binary.LittleEndian.AppendUint64(b, e.seq)
	}
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(b[at+8:], castagnoli))
	return b
}

func parseJournal(b []byte) (numbers []uint64, soft bool, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) < journalFixed || len(b)%8 != 0 || string(b[:4]) != journalMagic:
		return nil, false, errJournal
	case le.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli):
		return nil, false, errSum
	}
	kind := le.Uint64(b[8:])
	if kind != freshByte && kind != staleByte {
		return nil, false, errJournal
	}
	numbers = make([]uint64, 0, len(b)/8-journalFixed/8)
	for rest := b[journalFixed:]; len(rest) > 0; rest = rest[8:] {
		seq := le.Uint64(rest)
		if n := len(numbers); n > 0 && seq <= numbers[n-1] {
			return nil, false, errJournal
		}
		numbers = append(numbers, seq)
	}
	return numbers, kind == staleByte, nil
}

func sortBySeq(list []*Entry) {
	slices.SortFunc(list, func(a, b *Entry) int { return cmp.Compare(a.seq, b.seq) })
}

// writeJournal journals a purge of list, which it sorts. nil when the disk would not have it.
func (s *Store) writeJournal(list []*Entry, soft bool, why Cause) *batch {
	sortBySeq(list)
	path := filepath.Join(s.path, journalPrefix+strconv.FormatUint(s.seq.Add(1), 16))
	b := appendJournal(make([]byte, 0, journalFixed+8*len(list)), list, soft)
	err := writeFile(path+tempSuffix, b)
	if err == nil {
		if err = os.Rename(path+tempSuffix, path); err != nil {
			s.unlink(path + tempSuffix)
		}
	}
	if err != nil {
		s.diskError(faultWrite, "writing a purge's journal", path, err)
		return nil
	}
	return &batch{path: path, why: why}
}

// journals is what the journals of earlier runs say.
type journals struct {
	mu     sync.Mutex
	known  bool            // guarded by mu
	files  []string        // guarded by mu
	doomed map[uint64]bool // by file number, whether soft; guarded by mu, not written once known
	all    bool            // a journal could not be understood; guarded by mu
	keep   bool            // leave the files to the next start; guarded by mu
}

// fate is what a purge of an earlier run has decided about an entry.
type fate uint8

const (
	fateNone fate = iota
	fateStale
	fateGone
)

// fates returns the fates of earlier runs' entries. false: for a passing reason they are not known.
func (s *Store) fates() (fateOf func(seq uint64) fate, ok bool) {
	j := &s.journals
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.known && !s.readJournals() {
		return nil, false
	}
	doomed, all := j.doomed, j.all
	return func(seq uint64) fate {
		soft, found := doomed[seq]
		switch {
		case all || found && !soft:
			return fateGone
		case found:
			return fateStale
		}
		return fateNone
	}, true
}

// readJournals fills in journals. The caller holds its lock.
func (s *Store) readJournals() bool {
	j := &s.journals
	list, err := os.ReadDir(s.path)
	if err != nil {
		s.diskError(faultRead, "looking for journals of purges", s.path, err)
		if passing(err) {
			return false
		}
		j.all, j.keep = true, true
	}
	j.files, j.doomed = nil, make(map[uint64]bool)
	for _, entry := range list {
		temp, ok := parseJournalName(entry.Name())
		if !ok {
			continue
		}
		path := filepath.Join(s.path, entry.Name())
		if temp {
			s.unlink(path)
			continue
		}
		err := s.readJournal(path)
		if passing(err) {
			s.diskError(faultRead, "reading a purge's journal", path, err)
			return false
		}
		if err != nil {
			j.all = true
			s.damaged.Add(1)
			s.complain(faultDamage, "dropping all that earlier runs left, for a purge's journal is damaged", path, err)
		}
		j.files = append(j.files, path)
	}
	j.known = true
	return true
}

// parseJournalName tells journals, and unfinished ones, from other files.
func parseJournalName(name string) (temp, ok bool) {
	digits, ok := strings.CutPrefix(name, journalPrefix)
	if !ok {
		return false, false
	}
	digits, temp = strings.CutSuffix(digits, tempSuffix)
	seq, err := strconv.ParseUint(digits, 16, 64)
	return temp, err == nil && strconv.FormatUint(seq, 16) == digits
}

func (s *Store) readJournal(path string) error {
	f, st, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Size > journalFixed+8*purgeBatch {
		return errJournal
	}
	b := make([]byte, st.Size)
	if _, err := io.ReadFull(f, b); err != nil {
		return err
	}
	numbers, soft, err := parseJournal(b)
	if err != nil {
		return err
	}
	for _, seq := range numbers {
		before, found := s.journals.doomed[seq]
		s.journals.doomed[seq] = soft && (before || !found) // hard outweighs soft
	}
	return nil
}

// keepJournals leaves the journals to the next start, because something that they name could not be
// dealt with.
func (s *Store) keepJournals() {
	s.journals.mu.Lock()
	s.journals.keep = true
	s.journals.mu.Unlock()
}

// dropJournals is called when everything that earlier runs left has been read.
func (s *Store) dropJournals() {
	j := &s.journals
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.keep {
		for _, path := range j.files {
			s.unlink(path)
		}
	}
	j.files, j.doomed = nil, nil
}
