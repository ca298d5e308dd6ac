package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// modelKeys maps each key of the model to its alias group, written down rather than computed.
var modelKeys = map[string]string{
	"http://a/x":      "a/x",
	"https://a/x":     "a/x",
	"https://a:444/x": "a/x",
	"http://a/y":      "a/y",
	"http://b/x":      "b/x",
	"custom key":      "custom",
}

var modelNames = []string{"Accept", "Cookie", "X-A"}

var modelTags = []string{"t1", "t2", "t3", "t4"}

func drawTags(t *rapid.T, least int) []string {
	return sorted(rapid.SliceOfNDistinct(rapid.SampledFrom(modelTags), least, 3, rapid.ID).Draw(t, "tags"))
}

func (w *modelEntry) carries(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(w.resp.Tags, tag) })
}

// modelEntry is what the model knows of a stored response.
type modelEntry struct {
	names  []string
	values string
	body   []byte
	resp   *store.Response
	stale  bool
	entry  *store.Entry
}

func valuesOf(names []string, h http.Header) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s=%q;", n, strings.ToUpper(strings.Join(h[n], ",")))
	}
	return b.String()
}

// upperKey normalises by case, so that a store that compared raw values would be found out.
func upperKey(dst []byte, names []string, h http.Header) []byte {
	return append(dst, valuesOf(names, h)...)
}

// model is a store that is a map of lists, next to the real one.
type model struct {
	s     *store.Store
	o     store.Options
	clock *fakeClock
	lossy bool // budgets are tight: an entry may be missing, but never wrong
	keys  map[string][]*modelEntry
	n     int
}

func (m *model) open(t *rapid.T) {
	s, err := store.Open(m.o)
	if err != nil {
		t.Fatal(err)
	}
	m.s = s
	<-s.Ready()
}

func drawKey(t *rapid.T) string {
	keys := make([]string, 0, len(modelKeys))
	for k := range modelKeys {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return rapid.SampledFrom(keys).Draw(t, "key")
}

func drawHeader(t *rapid.T) http.Header {
	h := http.Header{}
	for _, n := range modelNames {
		if v := rapid.SampledFrom([]string{"", "a", "A", "b"}).Draw(t, n); v != "" {
			h[n] = []string{v}
		}
	}
	return h
}

// newResponse makes a response that no other is equal to.
func (m *model) newResponse(t *rapid.T) *store.Response {
	m.n++
	r := &store.Response{
		Status: 200,
		Header: http.Header{"X-N": {fmt.Sprint(m.n)}, "X-Pad": {strings.Repeat("p", rapid.SampledFrom([]int{0, 100, 5000}).Draw(t, "pad"))}},
		Born:   m.clock.Now().Add(time.Duration(m.n)),
		Flags:  store.Flags(m.n),
		Vary:   sorted(rapid.SliceOfNDistinct(rapid.SampledFrom(modelNames), 0, 2, rapid.ID).Draw(t, "vary")),
		Tags:   drawTags(t, 0),
	}
	if d := rapid.IntRange(0, 100).Draw(t, "seconds"); d > 0 {
		r.Discard = m.clock.Now().Add(time.Duration(d) * time.Second)
	}
	return r
}

// matching returns the entries of key that may answer h, the one to choose first.
func (m *model) matching(key string, h http.Header) (found []*modelEntry) {
	for _, e := range m.keys[key] {
		if e.values == valuesOf(e.names, h) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *modelEntry) int {
		if x, y := len(a.names) > 0, len(b.names) > 0; x != y {
			if x {
				return -1
			}
			return 1
		}
		return b.resp.Born.Compare(a.resp.Born)
	})
	return found
}

func (m *model) drop(key string, dead func(*modelEntry) bool) (n int) {
	before := len(m.keys[key])
	m.keys[key] = slices.DeleteFunc(m.keys[key], dead)
	if len(m.keys[key]) == 0 {
		delete(m.keys, key)
		return before
	}
	return before - len(m.keys[key])
}

func (m *model) expire() {
	for key := range m.keys {
		m.drop(key, func(e *modelEntry) bool {
			return !e.resp.Discard.IsZero() && !e.resp.Discard.After(m.clock.Now())
		})
	}
}

// verify compares what a lookup of key with h gives to the model.
func (m *model) verify(t *rapid.T, key string, h http.Header) {
	want := m.matching(key, h)
	e, known := m.s.Lookup([]byte(key), h)
	if e == nil {
		if !m.lossy && (len(want) > 0 || known != (len(m.keys[key]) > 0)) {
			t.Fatalf("lookup of %q %v: miss, known %t; model has %d, of them %d match", key, h, known, len(m.keys[key]), len(want))
		}
		if len(m.keys[key]) == 0 && known {
			t.Fatalf("lookup of %q: known, but the model has nothing", key)
		}
		return
	}
	if len(want) == 0 {
		t.Fatalf("lookup of %q %v: hit, model has none", key, h)
	}
	got := e.Response()
	if got == nil {
		t.Fatalf("%q: no response", key)
	}
	i := slices.IndexFunc(want, func(w *modelEntry) bool { return cmp.Equal(got, w.resp, sameResponse) })
	if i < 0 || !m.lossy && i > 0 {
		t.Fatalf("%q %v: candidate %d of %d: %s", key, h, i, len(want), cmp.Diff(want[0].resp, got, sameResponse))
	}
	w := want[i]
	body, err := readBody(e)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	if !bytes.Equal(body, w.body) {
		t.Fatalf("%q: body of %d bytes differs from the %d stored", key, len(body), len(w.body))
	}
	if e.Stale() != w.stale || e.Key() != key || e.Size() != int64(len(w.body)) {
		t.Fatalf("%q: stale %t, want %t; key %q, size %d", key, e.Stale(), w.stale, e.Key(), e.Size())
	}
	w.entry = e
}

func (m *model) invariants(t *rapid.T) {
	if err := m.s.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	if m.lossy {
		return
	}
	n := 0
	for key, list := range m.keys {
		n += len(list)
		_ = key
	}
	if got := m.s.Stats().Entries; got != int64(n) {
		t.Fatalf("%d entries, model has %d", got, n)
	}
	seen := map[string]int{}
	for key, variants := range m.s.Keys {
		seen[key] = variants
	}
	for key, list := range m.keys {
		if seen[key] != len(list) {
			t.Fatalf("%q has %d variants, model has %d", key, seen[key], len(list))
		}
	}
	if len(seen) != len(m.keys) {
		t.Fatalf("%d keys, model has %d", len(seen), len(m.keys))
	}
}

func TestStore_Model(t *testing.T) {
	const room = 1 << 30
	configs := []struct {
		name  string
		l     store.Limits
		lossy bool
	}{
		{"both", store.Limits{Memory: room, Disk: room, PromoteBelow: 16 << 10}, false},
		{"both, little RAM", store.Limits{Memory: 30_000, Disk: room, PromoteBelow: 16 << 10}, false},
		{"promote all", store.Limits{Memory: room, Disk: room, PromoteBelow: room}, false},
		{"disk", store.Limits{Disk: room}, false},
		{"RAM", store.Limits{Memory: room}, false},
		{"tight disk", store.Limits{Memory: 20_000, Disk: 200 << 10, PromoteBelow: 2000}, true},
		{"tight RAM", store.Limits{Memory: 20_000}, true},
		{"few items", store.Limits{Memory: room, Disk: room, Items: 3}, true},
		{"few variants", store.Limits{Memory: room, Disk: room, Variants: 2}, true},
	}
	for _, c := range configs {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				dir, err := os.MkdirTemp("", "store")
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				m := &model{clock: newClock(), lossy: c.lossy, keys: map[string][]*modelEntry{}}
				m.o = store.Options{Path: dir, Limits: c.l, Now: m.clock.Now, VariantKey: upperKey}
				m.open(t)
				defer func() { m.s.Close() }()
				t.Repeat(m.actions())
			})
		})
	}
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.invariants,
		"commit": func(t *rapid.T) {
			key, h, r := drawKey(t), drawHeader(t), m.newResponse(t)
			size := rapid.SampledFrom([]int{0, 1, 100, 4096, 4097, 65536, 65537, 200_000}).Draw(t, "size")
			p := body(fmt.Sprint(key, m.n), size)
			declared := int64(size)
			if rapid.Bool().Draw(t, "chunked") {
				declared = -1
			}
			fate := rapid.SampledFrom([]string{"commit", "commit", "commit", "commit", "discard", "short", "purged", "tags purged", "other tags purged", "done"}).Draw(t, "fate")

			f := m.s.Fetch(key)
			defer f.Done()
			w, err := f.Create(declared)
			if err == nil {
				defer w.Discard()
				for rest := p; len(rest) > 0 && err == nil; {
					n := rapid.IntRange(1, min(len(rest), 100_000)).Draw(t, "write")
					_, err = w.Write(rest[:n])
					rest = rest[n:]
				}
			}
			if err != nil {
				if !m.lossy || !errors.Is(err, store.ErrTooBig) {
					t.Fatal(err)
				}
				return
			}
			switch fate {
			case "discard":
				w.Discard()
				w.Discard()
				return
			case "short":
				if declared <= 0 {
					return
				}
				w2, err := m.s.Fetch(key).Create(declared)
				if err == nil {
					_, _ = w2.Write(p[:len(p)-1])
					if _, err := w2.Commit(r, h); err == nil {
						t.Fatalf("a truncated body of %d bytes was stored", declared)
					}
				}
				return
			case "purged":
				m.purge(t, key, rapid.Bool().Draw(t, "soft"))
				if _, err := w.Commit(r, h); !errors.Is(err, store.ErrPurged) {
					t.Fatalf("commit after a purge: %v", err)
				}
				return
			case "tags purged":
				if len(r.Tags) == 0 {
					return
				}
				m.purgeTags(t, append(drawTags(t, 0), r.Tags[0]), rapid.Bool().Draw(t, "soft"))
				if _, err := w.Commit(r, h); !errors.Is(err, store.ErrPurged) {
					t.Fatalf("commit after a purge of its tag: %v", err)
				}
				return
			case "other tags purged":
				var others []string
				for _, tag := range modelTags {
					if !slices.Contains(r.Tags, tag) {
						others = append(others, tag)
					}
				}
				m.purgeTags(t, others, rapid.Bool().Draw(t, "soft"))
			case "done":
				f.Done()
				if _, err := w.Commit(r, h); !errors.Is(err, store.ErrPurged) {
					t.Fatalf("commit after Done: %v", err)
				}
				return
			}
			e, err := w.Commit(r, h)
			if err != nil {
				if !m.lossy || !errors.Is(err, store.ErrTooBig) {
					t.Fatal(err)
				}
				return
			}
			m.drop(key, func(e *modelEntry) bool { return e.values == valuesOf(e.names, h) })
			m.keys[key] = append(m.keys[key], &modelEntry{names: r.Vary, values: valuesOf(r.Vary, h), body: p, resp: r, entry: e})
			w.Discard() // must do nothing
			m.verify(t, key, h)
		},
		"lookup": func(t *rapid.T) { m.verify(t, drawKey(t), drawHeader(t)) },
		"refresh": func(t *rapid.T) {
			key, h := drawKey(t), drawHeader(t)
			e, _ := m.s.Lookup([]byte(key), h)
			if e == nil {
				return
			}
			m.verify(t, key, h)
			r := m.newResponse(t)
			for _, w := range m.keys[key] {
				if w.entry == e {
					r.Vary = w.names
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "tags fenced") == 0 {
				f := m.s.Fetch(key)
				defer f.Done()
				tags := drawTags(t, 1)
				concerned := slices.ContainsFunc(m.keys[key], func(w *modelEntry) bool { return w.entry == e && w.carries(tags) }) ||
					(&modelEntry{resp: r}).carries(tags)
				m.purgeTags(t, tags, true)
				_, err := f.Refresh(e, r)
				if errors.Is(err, store.ErrPurged) != concerned || err != nil && !concerned && !m.lossy {
					t.Fatalf("refresh after a purge of tags, concerned %t: %v", concerned, err)
				}
				if err == nil {
					for _, w := range m.keys[key] {
						if w.entry == e {
							w.resp, w.stale = r, false
						}
					}
				}
				return
			}
			if rapid.IntRange(0, 4).Draw(t, "fenced") == 0 {
				f := m.s.Fetch(key)
				defer f.Done()
				m.purge(t, key, true)
				if _, err := f.Refresh(e, r); !errors.Is(err, store.ErrPurged) {
					t.Fatalf("refresh after a purge: %v", err)
				}
				return
			}
			if _, err := m.s.Refresh(e, r); err != nil {
				if !m.lossy || !errors.Is(err, store.ErrGone) {
					t.Fatal(err)
				}
				return
			}
			for _, w := range m.keys[key] {
				if w.entry == e {
					w.resp, w.stale = r, false
				}
			}
			m.verify(t, key, h)
		},
		"remove": func(t *rapid.T) {
			key, h := drawKey(t), drawHeader(t)
			e, _ := m.s.Lookup([]byte(key), h)
			if e == nil {
				return
			}
			m.verify(t, key, h)
			if !m.s.Remove(e, store.Invalidated) || m.s.Remove(e, store.Invalidated) {
				t.Fatal("Remove must report the first removal and no other")
			}
			m.drop(key, func(w *modelEntry) bool { return w.entry == e })
			if _, err := m.s.Refresh(e, m.newResponse(t)); !errors.Is(err, store.ErrGone) {
				t.Fatalf("refresh of a removed entry: %v", err)
			}
		},
		"purge": func(t *rapid.T) { m.purge(t, drawKey(t), rapid.Bool().Draw(t, "soft")) },
		"purge func": func(t *rapid.T) {
			prefix, soft := rapid.SampledFrom([]string{"http://", "https://a", "custom", "z", ""}).Draw(t, "prefix"), rapid.Bool().Draw(t, "soft")
			want := 0
			for key := range m.keys {
				if strings.HasPrefix(key, prefix) {
					want += m.purged(key, soft)
				}
			}
			got, err := m.s.PurgeFunc(t.Context(), func(key string) bool { return strings.HasPrefix(key, prefix) }, soft, store.Purged)
			if err != nil || got > want || !m.lossy && got != want {
				t.Fatalf("purged %d, model %d, %v", got, want, err)
			}
		},
		"purge tags": func(t *rapid.T) { m.purgeTags(t, drawTags(t, 0), rapid.Bool().Draw(t, "soft")) },
		"wait": func(t *rapid.T) {
			m.clock.Advance(time.Duration(rapid.IntRange(1, 50).Draw(t, "seconds")) * time.Second)
			m.s.Sweep()
			m.expire()
		},
		"cool": func(t *rapid.T) {
			if m.o.Limits.Disk > 0 {
				m.s.Cool()
			}
		},
		"set limits": func(t *rapid.T) {
			if !m.lossy {
				return
			}
			l := m.o.Limits
			l.Disk /= int64(rapid.IntRange(1, 4).Draw(t, "by"))
			l.Memory /= int64(rapid.IntRange(1, 4).Draw(t, "by"))
			l.Items = rapid.IntRange(0, 3).Draw(t, "items")
			m.s.SetLimits(l)
		},
		"reopen": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "do") > 0 {
				return
			}
			m.s.Close()
			if m.o.Limits.Disk == 0 {
				clear(m.keys)
			}
			m.open(t)
			m.expire()
		},
	}
}

// purged updates the model for the purge of one key and returns the number of its variants.
func (m *model) purged(key string, soft bool) int {
	if !soft {
		return m.drop(key, func(*modelEntry) bool { return true })
	}
	for _, w := range m.keys[key] {
		w.stale = true
	}
	return len(m.keys[key])
}

func (m *model) purgeTags(t *rapid.T, tags []string, soft bool) {
	want := 0
	for key := range m.keys {
		if !soft {
			want += m.drop(key, func(w *modelEntry) bool { return w.carries(tags) })
			continue
		}
		for _, w := range m.keys[key] {
			if w.carries(tags) {
				w.stale = true
				want++
			}
		}
	}
	got, err := m.s.PurgeTags(t.Context(), tags, soft, store.Purged)
	if err != nil || got > want || !m.lossy && got != want {
		t.Fatalf("purge of tags %q: %d, model %d, %v", tags, got, want, err)
	}
}

func (m *model) purge(t *rapid.T, key string, soft bool) {
	want := 0
	for k, group := range modelKeys {
		if group == modelKeys[key] {
			want += m.purged(k, soft)
		}
	}
	if got := m.s.Purge(key, soft, store.Purged); got > want || !m.lossy && got != want {
		t.Fatalf("purge of %q: %d, model %d", key, got, want)
	}
}
