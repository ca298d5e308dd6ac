package store

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Options configure a store.
type Options struct {
	// Path is the directory of the disk tier, made when missing. The store owns its shard
	// directories (00 to ff) and leaves everything else in it alone. Unused in RAM-only mode.
	Path string

	// Limits are the budgets. Whether there is a disk tier is settled here, by Limits.Disk.
	Limits Limits

	// NoTouch turns the recording of hits off: eviction is then by age alone.
	NoTouch bool

	// Logger gets at most one line per kind of fault and ten seconds. nil: none.
	Logger *zap.Logger

	// Now is the clock, time.Now by default. It is read by the sweeper and the rebuild, not on hits.
	Now func() time.Time

	// VariantKey appends the key of a request's values for the fields in names, normalised: requests
	// with the same key get the same variant. It is called with locks held and must not call the
	// store. nil: the values as they are.
	VariantKey func(dst []byte, names []string, h http.Header) []byte

	// SecondChance is asked, for each variant of a key of which none matches, whether the response
	// with this header may answer the request all the same; the keys are VariantKey's for its Vary
	// list, names. It must neither write to its arguments nor keep them. nil: no.
	SecondChance func(names []string, stored, request []byte, header http.Header) bool
}

// Store is a two-tier store of HTTP responses. All methods are safe for concurrent use.
type Store struct {
	// Immutable after Open.
	path         string
	onDisk       bool
	touch        bool
	log          *zap.Logger
	now          func() time.Time
	variantKey   func(dst []byte, names []string, h http.Header) []byte
	secondChance func(names []string, stored, request []byte, header http.Header) bool
	seed         maphash.Seed
	opened       time.Time
	first        uint64   // the first file number of this process
	lock         *os.File // holds the flock on the path; nil without one

	closed       atomic.Bool
	clock        atomic.Uint32 // seconds since opened, coarse
	seq          atomic.Uint64 // the last file number given out
	promoteBelow atomic.Int64  // largest body to bring into RAM, -1 for none
	bufferBelow  atomic.Int64  // largest body that a Writer holds in RAM, with a disk tier

	maxBody atomic.Int64 // largest body to store, MaxInt64 for any

	shards    [numShards]shard
	schemes   schemes
	tags      tagIndex
	ledger    ledger
	reaper    reaper
	dirs      [256]directory
	dirsRead  atomic.Int32
	journals  journals
	verifying [64]sync.Mutex // striped by Entry.seq: one checksum run per entry
	faults    faults
	sweeping  sync.Mutex // held by a pass of the sweeper: who gets it finds the pass complete

	loaded     atomic.Int64
	damaged    atomic.Int64
	diskErrors atomic.Uint64

	ready   chan struct{} // closed when the rebuild is over
	done    chan struct{} // closed by Close
	trimNow chan struct{} // wakes the sweeper after SetLimits
	wg      sync.WaitGroup

	closing  sync.Once
	closeErr error // guarded by closing
}

// Open opens a store and starts its background goroutines; the rebuild of what earlier runs left on
// disk is one of them, so Open returns at once and Ready tells when it is over. It fails only when
// the path can never work: it is not a directory, cannot be made or written to, or another live
// process holds it. A disk that is merely full is no reason.
func Open(o Options) (*Store, error) {
	limits := o.Limits.normal()
	s := &Store{
		path:         o.Path,
		onDisk:       limits.Disk > 0,
		touch:        !o.NoTouch,
		log:          o.Logger,
		now:          o.Now,
		variantKey:   o.VariantKey,
		secondChance: o.SecondChance,
		seed:         maphash.MakeSeed(),
		ready:        make(chan struct{}),
		done:         make(chan struct{}),
		trimNow:      make(chan struct{}, 1),
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.variantKey == nil {
		s.variantKey = plainVariantKey
	}
	s.opened = s.now()
	// File numbers begin at the wall clock, so that those of a restart are higher.
	s.first = uint64(time.Now().UnixNano())
	s.seq.Store(s.first - 1)
	s.reaper.init()
	s.ledger.init(s.onDisk, limits, s.opened.Unix())
	s.setSizes(limits)

	if s.onDisk {
		if err := s.claim(); err != nil {
			return nil, err
		}
		s.wg.Add(2)
		go s.rebuild()
		go s.undertaker()
	} else {
		close(s.ready)
	}
	s.wg.Add(1)
	go s.sweeper()
	return s, nil
}

// claim makes the directory, locks it and tries whether it can be written to.
func (s *Store) claim() error {
	if s.path == "" {
		return errors.New("store: a disk tier needs a path")
	}
	if err := os.MkdirAll(s.path, dirMode); err != nil {
		return fmt.Errorf("store: cannot use %s: %w", s.path, err)
	}
	probe := filepath.Join(s.path, probeName)
	f, err := os.OpenFile(probe, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, fileMode)
	if err == nil {
		f.Close()
		err = os.Remove(probe)
	}
	if err != nil && !momentary(err) {
		return fmt.Errorf("store: cannot write to %s: %w", s.path, err)
	}
	// Read-only: an open file for writing would bar a remount.
	lock, err := os.OpenFile(filepath.Join(s.path, lockName), os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		if !momentary(err) {
			return fmt.Errorf("store: cannot lock %s: %w", s.path, err)
		}
		s.complain(faultWrite, "cannot lock the directory, going on without", s.path, err)
		return nil
	}
	_, err = retry(func() (int, error) { return 0, unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		lock.Close()
		return fmt.Errorf("store: %s is in use by another process, perhaps a Caddy that runs", s.path)
	case err != nil:
		// A file system without locks: the check is lost, the store works.
		s.complain(faultWrite, "cannot lock the directory, going on without", s.path, err)
		lock.Close()
		return nil
	}
	s.lock = lock
	return nil
}

// momentary reports whether a directory that gave err may work later.
func momentary(err error) bool {
	return passing(err) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// Close stops the background work, finishes pending removals and releases the path. What is still
// asked of the store afterwards is harmless: lookups miss, writes fail with ErrClosed, entries that
// were looked up before can be served. Later calls do nothing but wait.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		close(s.done)
		// Whoever holds a shard's lock now may still name a sidecar; nobody does after that.
		for i := range s.shards {
			s.shards[i].mu.Lock()
			s.shards[i].mu.Unlock() //nolint:staticcheck // a barrier
		}
		s.wg.Wait()
		if s.lock != nil {
			s.closeErr = s.lock.Close()
		}
	})
	return s.closeErr
}

// SetLimits changes the budgets. What is over them is evicted in the background. A disk tier cannot
// be added to a store or taken from it: with Disk 0 a store that has one holds nothing.
func (s *Store) SetLimits(l Limits) {
	l = l.normal()
	s.ledger.setLimits(l)
	s.setSizes(l)
	select {
	case s.trimNow <- struct{}{}:
	default:
	}
}

func (s *Store) setSizes(l Limits) {
	s.bufferBelow.Store(min(max(l.PromoteBelow, minBuffer), maxBuffer))
	below := min(l.PromoteBelow, l.Memory)
	if below == 0 {
		below = -1 // not even empty bodies
	}
	s.promoteBelow.Store(below)
	s.maxBody.Store(math.MaxInt64)
	if l.Body > 0 {
		s.maxBody.Store(l.Body)
	}
	s.reaper.setLimit(backlogFor(l.Disk))
}

// Ready returns a channel that is closed when everything that earlier runs left has been read.
func (s *Store) Ready() <-chan struct{} { return s.ready }

// Lookup returns the entry that answers a request for key with header h, nil when there is none;
// known then tells whether the key has other variants. It takes no lock and allocates nothing, unless
// SecondChance has to be asked about a cold entry. Freshness is the caller's to judge.
func (s *Store) Lookup(key []byte, h http.Header) (e *Entry, known bool) {
	if s.closed.Load() {
		return nil, false
	}
	// Safety: the string does not outlive this call, and the caller does not write to key meanwhile.
	k := unsafe.String(unsafe.SliceData(key), len(key))
	hash := s.hashKey(k)
	res := s.shardOf(hash).find(hash, k)
	if res == nil {
		return nil, false
	}
	set := res.set.Load()
	if set == nil {
		return nil, false
	}
	if e = res.choose(set, h); e == nil {
		return nil, true
	}
	if s.touch {
		e.place.use.touch(s.clock.Load())
	}
	return e, true
}

// Remove takes e out of the store. false: it was out already.
func (s *Store) Remove(e *Entry, why Cause) bool {
	won := s.ledger.remove(e, why)
	s.bury([]*Entry{e})
	return won
}

// Keys yields each key with its number of variants, in no order and without a lock: what comes or
// goes meanwhile may be yielded or not.
func (s *Store) Keys(yield func(key string, variants int) bool) {
	for i := range s.shards {
		for res := range s.shards[i].all {
			set := res.set.Load()
			if set != nil && !yield(res.key, len(set.list)) {
				return
			}
		}
	}
}

// bury takes entries that are gone from the ledger out of the index and unlinks their files.
func (s *Store) bury(dead []*Entry) {
	for _, e := range dead {
		hash := s.hashKey(e.res.key)
		sh := s.shardOf(hash)
		sh.mu.Lock()
		set := e.res.set.Load()
		found := set != nil && slices.Contains(set.list, e)
		if found {
			s.replaceSet(sh, hash, e.res, set.without([]*Entry{e}, nil))
			s.retire(e)
		}
		sh.mu.Unlock()
		if found {
			s.dropBodies([]*Entry{e})
		}
	}
}

// replaceSet stores a resource's new set; without one the resource leaves the index. The caller holds
// shard.mu.
func (s *Store) replaceSet(sh *shard, hash uint64, res *resource, set *variants) {
	had := res.set.Load() != nil
	res.set.Store(set)
	if set == nil && had {
		sh.remove(hash, res)
	}
}

// retire takes an entry that leaves the index out of the tag index, and unlinks its sidecar. The
// caller holds shard.mu.
func (s *Store) retire(e *Entry) {
	s.tags.leave(e)
	if s.onDisk && !s.closed.Load() {
		s.unlink(s.bodyPath(digestOf(e.res.key), e.seq) + metaSuffix)
	}
}

// dropBodies has the bodies of entries that have left the index unlinked.
func (s *Store) dropBodies(dead []*Entry) {
	if !s.onDisk || s.closed.Load() {
		return
	}
	corpses := make([]corpse, len(dead))
	for i, e := range dead {
		corpses[i] = corpse{digest: digestOf(e.res.key), seq: e.seq, size: blocks(e.size)}
	}
	s.reaper.add(corpses, nil)
}
