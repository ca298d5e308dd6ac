package store

import (
	"errors"
	"hash/maphash"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Flags are the handler's notes on a response. The store keeps them and gives them no meaning.
type Flags uint8

// The flags.
const (
	Validate   Flags = 1 << iota // not to be used without successful validation
	NoStale                      // never to be served stale
	SharedAuth                   // may answer requests with Authorization (RFC 9111, 3.5)
	Fallback                     // its freshness is the configured one, not the origin's
	Immutable                    // RFC 8246
)

// Response is what the store keeps of a response beside its body. It is immutable once it has been
// handed to the store or received from it: header values are shared between all readers.
type Response struct {
	Status int // 100 to 999
	Header http.Header

	// Born is when the response was generated, as far as known: the response time less the initial
	// age, so that the current age is now minus Born.
	Born time.Time

	// Lifetime is the freshness lifetime; the other two are the windows that follow it.
	Lifetime, StaleWhileRevalidate, StaleIfError time.Duration

	// Discard is when the sweeper drops the entry, to the second. The zero time means never.
	Discard time.Time

	Flags Flags

	// Vary lists the request header fields that the response varies on, canonical and sorted.
	Vary []string

	// Tags are the labels that PurgeTags finds the response by, opaque, sorted and each once. Their
	// number and length are the caller's to bound.
	Tags []string
}

// Entry is one stored response. It stays usable after it has left the store: what was loaded of it
// is served, what was not is ErrGone. All methods are safe for concurrent use.
type Entry struct {
	res    *resource // immutable
	scheme *scheme   // immutable
	vkey   string    // the request's values for scheme; immutable
	size   int64     // of the body; immutable
	seq    uint64    // names the files, orders the entries of one key; immutable
	crc    uint32    // CRC-32C of the body; immutable

	mark atomic.Uint32 // markGone, markStale, markPromoting, markTagged

	// warm is what RAM holds of the entry; nil when cold. Written under ledger.mu. In RAM-only mode
	// it is never nil and holds everything.
	warm atomic.Pointer[warm]

	born  atomic.Int64  // Response.Born in Unix nanoseconds, to choose between variants unloaded
	stamp atomic.Uint64 // identity of the body file when its checksum was last right; 0: not yet

	place     seat[Entry] // in ledger.entries
	due       dueLinks    // in the wheel; guarded by ledger.mu
	deadline  uint32      // Unix seconds, 0 for never; guarded by ledger.mu
	metaBlock uint16      // blocks of the sidecar; guarded by ledger.mu
}

const (
	markGone      = 1 << iota // has left the ledger; set once, under ledger.mu
	markStale                 // soft-purged; changed under shard.mu
	markPromoting             // one reader is bringing the body into RAM
	markTagged                // is in the tag index; changed under shard.mu
)

// warm is the RAM side of an entry: its response, its body, or both. Immutable but for its seat.
type warm struct {
	e     *Entry
	resp  *Response
	body  []byte
	bytes int64
	place seat[warm] // in ledger.warm; not used in RAM-only mode
}

// Body is an opened body. Exactly one of its fields is set.
type Body struct {
	Bytes []byte   // in RAM; shared, must not be written to
	File  *os.File // the caller's own, at offset 0
}

// Close releases the body. Closing one in RAM does nothing.
func (b Body) Close() error {
	if b.File != nil {
		return b.File.Close()
	}
	return nil
}

// Size returns the length of the body in bytes.
func (e *Entry) Size() int64 { return e.size }

// Key returns the key that the entry is stored under.
func (e *Entry) Key() string { return e.res.key }

// Stale reports whether a soft purge has marked the entry since it was last stored or refreshed.
func (e *Entry) Stale() bool { return e.mark.Load()&markStale != 0 }

// Resident reports whether the body is in RAM, so that Open costs no file.
func (e *Entry) Resident() bool {
	w := e.warm.Load()
	return w != nil && w.body != nil
}

func (e *Entry) gone() bool { return e.mark.Load()&markGone != 0 }

// Response returns the stored response. For a warm entry that is one atomic load; otherwise it reads
// the sidecar, one reader at a time, and keeps the result as the memory budget allows. nil means that
// the entry cannot be used: it is gone, or damaged and thereby removed, or no file can be opened just
// now. The caller treats it as a miss.
func (e *Entry) Response() *Response {
	if w := e.warm.Load(); w != nil && w.resp != nil {
		return w.resp
	}
	return e.res.store.loadResponse(e)
}

// Open opens the body. A body in RAM costs nothing; one on disk is opened without following links,
// checked to be the file that was stored, and brought into RAM when it is small enough and no one
// else is at it. A body that was not read since the start, or whose file has changed, is read once to
// check its sum. ErrDamaged: a check failed, the entry has been dropped. ErrGone: it left the store
// before it could be opened. Any other error is passing (no file descriptors): the entry stays.
func (e *Entry) Open() (Body, error) {
	if w := e.warm.Load(); w != nil && w.body != nil {
		if s := e.res.store; s.touch {
			w.place.use.touch(0)
		}
		return Body{Bytes: w.body}, nil
	}
	return e.res.store.openBody(e)
}

// cost is what the entry takes of the budget that may evict it: disk, or memory in RAM-only mode.
func (e *Entry) cost() int64 {
	if e.res.store.onDisk {
		return blocks(e.size) + int64(e.metaBlock)*blockSize
	}
	return e.warm.Load().bytes
}

func (e *Entry) seatOf() *seat[Entry] { return &e.place }

// id is the ghost's name for the entry: the same for the next response to the same request.
func (e *Entry) id() uint64 {
	h := maphash.String(e.res.store.seed, e.res.key)
	if e.vkey != "" {
		h ^= maphash.String(e.res.store.seed, e.vkey) * 0x9e3779b97f4a7c15
	}
	return h
}

func (w *warm) cost() int64 { return w.bytes }

func (w *warm) seatOf() *seat[warm] { return &w.place }

func (w *warm) id() uint64 { return w.e.id() }

const (
	// entryOverhead is what an entry costs in RAM beside its key, body and response: node, resource,
	// variant set, Entry, warm half (BenchmarkIndex: 230 bytes, and 80), rounded up for the ghosts and
	// the allocator. RAM-only mode charges it, so that a flood of empty responses is bounded too.
	entryOverhead = 400

	// responseOverhead and lineOverhead estimate a Response: the struct with its map, and per header
	// line the map slot, the slice header and the string header.
	responseOverhead = 256
	lineOverhead     = 72

	// tagOverhead is a tag in Response.Tags and in the tag index.
	tagOverhead = 64
)

// newWarm makes the RAM side of e and prices it.
func newWarm(e *Entry, r *Response, body []byte) *warm {
	w := &warm{e: e, resp: r, body: body, bytes: int64(cap(body))}
	if r != nil {
		w.bytes += responseOverhead
		for name, values := range r.Header {
			w.bytes += int64(len(name)) + lineOverhead
			for _, v := range values {
				w.bytes += int64(len(v)) + 16
			}
		}
		for _, name := range r.Tags {
			w.bytes += int64(len(name)) + tagOverhead
		}
	}
	if !e.res.store.onDisk {
		w.bytes += entryOverhead + int64(len(e.res.key)+len(e.vkey))
	}
	return w
}

// loadResponse reads e's sidecar. It holds the shard's lock while it does: a refresh, a purge and
// another load of the same entry then have to wait, so an old response cannot displace a newer one.
func (s *Store) loadResponse(e *Entry) *Response {
	if !s.onDisk {
		return nil
	}
	hash := s.hashKey(e.res.key)
	sh := s.shardOf(hash)
	sh.mu.Lock()
	if w := e.warm.Load(); w != nil && w.resp != nil {
		sh.mu.Unlock()
		return w.resp
	}
	if e.gone() {
		sh.mu.Unlock()
		return nil
	}
	path := s.bodyPath(digestOf(e.res.key), e.seq) + metaSuffix
	resp, err := s.readResponse(e, path)
	if err == nil {
		s.ledger.keep(e, resp, nil)
		sh.mu.Unlock()
		return resp
	}
	sh.mu.Unlock()
	if e.gone() {
		return nil
	}
	if passing(err) {
		s.diskError(faultRead, "reading a sidecar", path, err)
		return nil
	}
	s.condemn(e, path, err)
	return nil
}

func (s *Store) readResponse(e *Entry, path string) (*Response, error) {
	buf := metaBuffers.Get().(*[]byte)
	defer metaBuffers.Put(buf)
	raw, err := readSidecar(path, buf)
	if err != nil {
		return nil, err
	}
	rec, err := parseSidecar(raw)
	if err != nil {
		return nil, err
	}
	if string(rec.key) != e.res.key || string(rec.vkey) != e.vkey || rec.size != e.size || rec.crc != e.crc {
		return nil, errors.New("sidecar describes another response")
	}
	return rec.response(), nil
}
