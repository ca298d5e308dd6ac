package fastcache

import (
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

const (
	noVarySearch = "No-Vary-Search"

	// maxSearchRules is how many rules of one path are known at a time. Servers
	// should have one (section 7 of the draft); a deployment has two for a while.
	maxSearchRules = 4

	// maxSearchURL bounds the URLs that the option looks at, and with it what a
	// miss costs: that of the longest is a few milliseconds, with all rules. It
	// is what common servers take for a request line.
	maxSearchURL = 8 << 10

	// searchMemory bounds, in bytes and roughly, a generation of the rules and
	// of the keys: at 100 bytes a URL some 20,000 of them. There are two of each.
	searchMemory = 4 << 20

	// maxSearchPurges is how many purged paths are known, at least.
	maxSearchPurges = 16 << 10

	// recentOverhead is about what a slot of a recent costs beside its value.
	recentOverhead = 64
)

// equivalents knows which stored responses may answer for other URLs than their
// own, because of their No-Vary-Search (draft-ietf-httpbis-no-vary-search-04).
//
// Each response is stored under its own key, and what is here is only a hint to
// find it by: bounded, lost in a restart, and indexed by hashes that may collide.
// Every use is checked against the header of the stored response itself. A path's
// latest rules are kept, as the draft allows (section 7).
//
// What must not be lost is that a URL was purged: a response that is older and
// equivalent, but not known to be, must not answer for it later. So after a purge
// of a URL, or an invalidation, older responses of that path answer for their own
// URLs only; and where it is not known which paths were purged, because that was
// too long ago or before the start, all older responses do.
//
// All methods are safe for concurrent use.
type equivalents struct {
	now  func() time.Time
	seed maphash.Seed

	mu      sync.Mutex
	on      bool                  // an instance of the store has the option on; guarded by mu
	horizon time.Time             // responses born by then answer for themselves only; guarded by mu
	turned  time.Time             // when the old generation of purges ended; guarded by mu
	purges  recent[time.Time]     // by scope of a URL; guarded by mu
	rules   recent[[]*searchRule] // by URL without query, the latest first; guarded by mu
	keys    recent[string]        // by canonical form, of the latest response; guarded by mu
}

// searchRule is how responses of a path may answer for other queries. Immutable.
type searchRule struct {
	variance rfc9111.SearchVariance
	vary     []string
}

func newEquivalents(now func() time.Time) *equivalents {
	return &equivalents{
		now:    now,
		seed:   maphash.MakeSeed(),
		purges: recent[time.Time]{limit: maxSearchPurges},
		rules:  recent[[]*searchRule]{limit: searchMemory},
		keys:   recent[string]{limit: searchMemory},
	}
}

// start turns it on: before, no purge was noted.
func (e *equivalents) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.on {
		e.on, e.horizon = true, e.now()
	}
}

// learn notes a response that has been stored, or confirmed, for a request with
// this header.
func (e *equivalents) learn(key string, r *store.Response, request http.Header) {
	lines := r.Header[noVarySearch]
	if len(lines) == 0 || len(key) > maxSearchURL {
		return
	}
	rule := &searchRule{variance: rfc9111.ParseNoVarySearch(lines), vary: r.Vary}
	if rule.variance.IsDefault() {
		return
	}
	size := recentOverhead
	for _, line := range lines {
		size += len(line)
	}
	var buf [512]byte
	form := rule.variance.AppendCanonical(buf[:0], key)
	base := e.base(key)

	e.mu.Lock()
	defer e.mu.Unlock()
	rules, _ := e.rules.get(base)
	if len(rules) == 0 || !rules[0].same(rule) {
		others := slices.DeleteFunc(slices.Clone(rules), rule.same)
		rules = append([]*searchRule{rule}, others[:min(len(others), maxSearchRules-1)]...)
	}
	e.rules.put(base, rules, size*len(rules))
	e.keys.put(maphash.Bytes(e.seed, form), key, len(key)+recentOverhead)
	if len(rule.vary) > 0 {
		form = rfc9111.AppendVariant(form, rule.vary, request)
		e.keys.put(maphash.Bytes(e.seed, form), key, len(key)+recentOverhead)
	}
}

func (r *searchRule) same(o *searchRule) bool {
	return r.variance.Equal(o.variance) && slices.Equal(r.vary, o.vary)
}

// candidates returns the keys of responses that may answer a request for key with
// this header, the likeliest first.
func (e *equivalents) candidates(key string, request http.Header) []string {
	if len(key) > maxSearchURL {
		return nil
	}
	base := e.base(key)
	e.mu.Lock()
	rules, _ := e.rules.get(base)
	e.mu.Unlock()

	var found []string
	var buf [512]byte
	for _, rule := range rules {
		form := rule.variance.AppendCanonical(buf[:0], key)
		variant := form
		if len(rule.vary) > 0 {
			variant = rfc9111.AppendVariant(form, rule.vary, request)
		}
		e.mu.Lock()
		for _, f := range [...][]byte{variant, form} {
			if k, ok := e.keys.get(maphash.Bytes(e.seed, f)); ok && k != key && !slices.Contains(found, k) {
				found = append(found, k)
			}
		}
		e.mu.Unlock()
	}
	return found
}

// allows reports whether a response stored under one key may answer a request for
// another.
func (e *equivalents) allows(stored *store.Response, under, asked string) bool {
	scope := e.scope(asked)
	e.mu.Lock()
	horizon := e.horizon
	if purged, ok := e.purges.get(scope); ok && purged.After(horizon) {
		horizon = purged
	}
	e.mu.Unlock()
	// A response is born before the request for it goes out, so what is born
	// after a purge was asked for after it.
	return stored.Born.After(horizon) &&
		rfc9111.ParseNoVarySearch(stored.Header[noVarySearch]).Equivalent(under, asked)
}

// purge notes that a URL is purged and returns the keys that are known to answer
// for it.
func (e *equivalents) purge(key string) []string {
	e.mu.Lock()
	if !e.on {
		e.mu.Unlock()
		return nil
	}
	now := e.now()
	if e.purges.put(e.scope(key), now, 1) {
		// What has been dropped was noted before the last turn.
		e.horizon, e.turned = later(e.horizon, e.turned), now
	}
	e.mu.Unlock()
	return e.candidates(key, nil)
}

// purgeAll notes a purge of which it is not known which URLs it was meant for.
func (e *equivalents) purgeAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.horizon = later(e.horizon, e.now())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// base is the hash of a key without its query.
func (e *equivalents) base(key string) uint64 {
	base, _, _ := strings.Cut(key, "?")
	return maphash.String(e.seed, base)
}

// scope is the hash of what a purge of a key reaches: its path on that host, under
// every scheme and port.
func (e *equivalents) scope(key string) uint64 {
	base, _, _ := strings.Cut(key, "?")
	_, rest, _ := strings.Cut(base, "://")
	host, path, _ := strings.Cut(rest, "/")
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	var h maphash.Hash
	h.SetSeed(e.seed)
	_, _ = h.WriteString(host)
	_ = h.WriteByte('/')
	_, _ = h.WriteString(path)
	return h.Sum64()
}

// recent is a map that forgets what was put long ago: it has two generations, and
// drops the old one when the young one is full. The zero value with a limit is
// ready.
type recent[V any] struct {
	young, old map[uint64]sized[V]
	size       int // of the young generation
	limit      int
}

type sized[V any] struct {
	value V
	size  int
}

func (r *recent[V]) get(hash uint64) (V, bool) {
	v, ok := r.young[hash]
	if !ok {
		v, ok = r.old[hash]
	}
	return v.value, ok
}

// put reports whether it has dropped a generation.
func (r *recent[V]) put(hash uint64, value V, size int) (turned bool) {
	if turned = r.size+size > r.limit; turned {
		r.old, r.young, r.size = r.young, nil, 0
	}
	if r.young == nil {
		r.young = make(map[uint64]sized[V])
	}
	r.size += size - r.young[hash].size
	r.young[hash] = sized[V]{value, size}
	return turned
}

// serveEquivalent answers with a fresh response that is stored under another URL.
// It reports false, with nothing sent, when there is none.
//
// A stale one is no use: the origin's answer to this URL could neither confirm it
// for sure nor take its place.
func (x *exchange) serveEquivalent(status rfc9111.CacheStatus) bool {
	asked := string(x.key)
	for _, key := range x.fc.equivalents.candidates(asked, x.origin) {
		entry, known := x.fc.store.Lookup([]byte(key), x.origin)
		if entry == nil {
			continue
		}
		stored := entry.Response()
		if stored == nil || !x.fc.equivalents.allows(stored, key, asked) {
			continue
		}
		if v := x.judge(entry, stored, known); v.use != useNow || v.refresh {
			continue
		}
		x.key = []byte(key) // for Cache-Status
		if x.serveStored(entry, stored, status) {
			return true
		}
		x.key = []byte(asked)
	}
	return false
}

// purge drops what is stored of a URL under every scheme and port of its host, and
// what is known to answer for it as an equivalent. It returns the number of
// variants.
func (s *sharedStore) purge(key string, soft bool, why store.Cause) int {
	equivalent := s.equivalents.purge(key) // first: nothing old is used from here on
	n := s.store.Purge(key, soft, why)
	for _, key := range equivalent {
		n += s.store.Purge(key, soft, why)
	}
	return n
}

// supersede is purge for the key of a fetch that may store what it brings all the
// same. It reports false if somebody else has purged the key meanwhile.
func (s *sharedStore) supersede(f *store.Fetch, key string) bool {
	equivalent := s.equivalents.purge(key)
	_, current := f.Purge(false, store.Invalidated)
	for _, key := range equivalent {
		s.store.Purge(key, false, store.Invalidated)
	}
	return current
}
