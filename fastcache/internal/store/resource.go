package store

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// resource is one key of the index with its variants. It is in the index exactly as long as it has
// a variant.
type resource struct {
	store *Store // immutable
	key   string // immutable

	// set is nil when the resource has left the index. Each set is immutable: writers, under
	// shard.mu, store another one.
	set atomic.Pointer[variants]
}

// variants is the stored responses of one key, those of one scheme side by side.
//
// Each response is keyed by its own Vary list and matches a request by it alone (RFC 9111, 4.1): a
// response that varies on fewer names than its neighbours serves all the requests that it may.
type variants struct {
	list []*Entry
	one  [1]*Entry // the array of list while there is but one variant, which is the common case
}

func newVariants(n int) *variants {
	v := &variants{}
	if n == 1 {
		v.list = v.one[:0]
	} else {
		v.list = make([]*Entry, 0, n)
	}
	return v
}

// without returns the set less those in drop, nil when nothing is left. add, when not nil, joins.
func (v *variants) without(drop []*Entry, add *Entry) *variants {
	n := 0
	if add != nil {
		n = 1
	}
	if v != nil {
		n += len(v.list) - len(drop)
	}
	if n == 0 {
		return nil
	}
	next := newVariants(n)
	if v != nil {
		for _, e := range v.list {
			if slices.Contains(drop, e) {
				continue
			}
			if add != nil && e.scheme == add.scheme {
				next.list = append(next.list, add)
				add = nil
			}
			next.list = append(next.list, e)
		}
	}
	if add != nil {
		next.list = append(next.list, add)
	}
	return next
}

// scheme is a Vary list: the names that key a variant. Immutable; interned as far as the table goes,
// so a million entries that vary alike share one.
type scheme struct {
	names []string // sorted, each once
}

func (a *scheme) same(b *scheme) bool { return a == b || slices.Equal(a.names, b.names) }

// maxSchemes bounds the table of schemes: origins choose the names, so their number is not ours.
const maxSchemes = 1024

// schemes interns Vary lists. The zero value is ready.
type schemes struct {
	mu     sync.Mutex
	byName map[string]*scheme // guarded by mu
}

var noScheme = &scheme{}

func (t *schemes) of(names []string) *scheme {
	if len(names) == 0 {
		return noScheme
	}
	if !strictlySorted(names) {
		names = slices.Compact(slices.Sorted(slices.Values(names)))
	}
	id := strings.Join(names, "\n")
	t.mu.Lock()
	defer t.mu.Unlock()
	if sc := t.byName[id]; sc != nil {
		return sc
	}
	sc := &scheme{names: slices.Clone(names)}
	if len(t.byName) < maxSchemes {
		if t.byName == nil {
			t.byName = make(map[string]*scheme)
		}
		t.byName[id] = sc
	}
	return sc
}

func strictlySorted(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}

// keyBuffers lends the space in which a request's variant key is built: it passes through a
// function value, so it could not stay on the stack.
var keyBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// matcher computes a request's variant key once per scheme in a row. The zero value with s and h
// set is ready; release gives the buffer back.
type matcher struct {
	s      *Store
	h      http.Header
	scheme *scheme
	buf    *[]byte
}

func (m *matcher) matches(e *Entry) bool {
	if len(e.scheme.names) == 0 {
		return true
	}
	if m.scheme != e.scheme {
		if m.buf == nil {
			m.buf = keyBuffers.Get().(*[]byte)
		}
		*m.buf = m.s.variantKey((*m.buf)[:0], e.scheme.names, m.h)
		m.scheme = e.scheme
	}
	return string(*m.buf) == e.vkey
}

func (m *matcher) release() {
	if m.buf != nil {
		keyBuffers.Put(m.buf)
		m.buf = nil
	}
}

// choose returns the variant that answers a request with header h, nil when none does. Of several
// it prefers those that carry a Vary list (RFC 9111, 4.1: a response that lacks one may be the
// origin's oversight), then the newest.
func (r *resource) choose(v *variants, h http.Header) *Entry {
	m := matcher{s: r.store, h: h}
	var best *Entry
	for _, e := range v.list {
		if !e.gone() && m.matches(e) && (best == nil || e.before(best)) {
			best = e
		}
	}
	if best == nil && r.store.secondChance != nil {
		for _, e := range v.list {
			if e.gone() || best != nil && !e.before(best) {
				continue
			}
			// An entry without a Vary list would have matched, so the key of
			// the request for e's list is in the buffer.
			m.matches(e)
			// Safety: SecondChance is told not to write to the keys.
			stored := unsafe.Slice(unsafe.StringData(e.vkey), len(e.vkey))
			if resp := e.Response(); resp != nil && r.store.secondChance(e.scheme.names, stored, *m.buf, resp.Header) {
				best = e
			}
		}
	}
	m.release()
	return best
}

// before reports whether e is to be preferred to o when both answer a request.
func (e *Entry) before(o *Entry) bool {
	if a, b := len(e.scheme.names) > 0, len(o.scheme.names) > 0; a != b {
		return a
	}
	return e.born.Load() > o.born.Load()
}

// plainVariantKey is the variant key when the options name no other: the raw values.
func plainVariantKey(dst []byte, names []string, h http.Header) []byte {
	for _, name := range names {
		for _, v := range h[name] {
			dst = append(dst, v...)
			dst = append(dst, '\n')
		}
		dst = append(dst, 0)
	}
	return dst
}
