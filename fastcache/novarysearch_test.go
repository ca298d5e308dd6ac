package fastcache

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// clock is a time that stands still until it is moved.
type clock struct{ t time.Time }

func newClock() *clock { return &clock{time.Date(2026, time.August, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time      { return c.t }
func (c *clock) add(d time.Duration) { c.t = c.t.Add(d) }
func (c *clock) response(nvs string) *store.Response {
	return &store.Response{Header: http.Header{noVarySearch: {nvs}}, Born: c.t}
}

func newTestEquivalents() (*equivalents, *clock) {
	c := newClock()
	e := newEquivalents(c.now)
	e.start()
	c.add(time.Second)
	return e, c
}

const ignoreA = `params=("a")`

func TestEquivalents_Candidates(t *testing.T) {
	e, c := newTestEquivalents()
	r := c.response(ignoreA)
	e.learn("http://h/p?a=1&b=2", r, nil)
	for key, want := range map[string][]string{
		"http://h/p?b=2":      {"http://h/p?a=1&b=2"},
		"http://h/p?b=2&a":    {"http://h/p?a=1&b=2"},
		"http://h/p?a=1&b=2":  nil, // the key itself
		"http://h/p?a=1":      nil,
		"http://h/p2?b=2":     nil,
		"http://h:81/p?b=2":   nil,
		"https://h/p?b=2":     nil,
		"http://h/p?b=2&c&&&": nil,
	} {
		if got := e.candidates(key, nil); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if !e.allows(r, "http://h/p?a=1&b=2", "http://h/p?b=2") || e.allows(r, "http://h/p?a=1&b=2", "http://h/p?b=3") {
		t.Error("allows does not go by the response's own rule")
	}
	// What has no rule or a bad one is not learned.
	for i, nvs := range []string{"", "params=x", "key-order=?0"} {
		key := fmt.Sprintf("http://h/other%d?a=1", i)
		e.learn(key, c.response(nvs), nil)
		if got := e.candidates(key+"&a", nil); got != nil {
			t.Errorf("%q: %q", nvs, got)
		}
	}
}

// TestEquivalents_Vary: URLs that are asked for by clients of two kinds in turn
// find the variant of their kind.
func TestEquivalents_Vary(t *testing.T) {
	e, c := newTestEquivalents()
	r := c.response(ignoreA)
	r.Vary = []string{"X-Kind"}
	for i := range 4 {
		e.learn(fmt.Sprintf("http://h/p?a=%d", i), r, http.Header{"X-Kind": {fmt.Sprint(i % 2)}})
	}
	for kind, want := range []string{"http://h/p?a=2", "http://h/p?a=3", "http://h/p?a=3"} {
		got := e.candidates("http://h/p", http.Header{"X-Kind": {fmt.Sprint(kind)}})
		if len(got) == 0 || got[0] != want {
			t.Errorf("kind %d: %q, want %q first", kind, got, want)
		}
	}
}

// TestEquivalents_Purge: what was born before a purge of any URL of the path
// answers for nobody else, under every scheme and port.
func TestEquivalents_Purge(t *testing.T) {
	for _, purged := range []string{"http://h/p", "http://h/p?a=7", "https://h/p?x", "http://h:81/p?a"} {
		e, c := newTestEquivalents()
		old := c.response(ignoreA)
		e.learn("http://h/p?a=1", old, nil)
		c.add(time.Second)
		got := e.purge(purged)
		if want := purged == "http://h/p" || purged == "http://h/p?a=7"; slices.Equal(got, []string{"http://h/p?a=1"}) != want {
			t.Errorf("%s: purge names %q", purged, got)
		}
		if e.allows(old, "http://h/p?a=1", "http://h/p?a=2") || e.allows(c.response(ignoreA), "http://h/p?a=1", "http://h/p") {
			t.Errorf("%s: a response from before the purge is used", purged)
		}
		c.add(time.Second)
		if !e.allows(c.response(ignoreA), "http://h/p?a=1", "http://h/p?a=2") {
			t.Errorf("%s: a response from after the purge is not used", purged)
		}
	}
	e, c := newTestEquivalents()
	old := c.response(ignoreA)
	for _, purged := range []string{"http://g/p", "http://h/p/", "http://h/P", "http://h/"} {
		e.purge(purged)
	}
	if !e.allows(old, "http://h/p?a=1", "http://h/p?a=2") {
		t.Error("a purge elsewhere counts")
	}
	c.add(time.Second)
	e.purgeAll()
	if e.allows(old, "http://h/p?a=1", "http://h/p?a=2") {
		t.Error("a purge of everything does not count")
	}
}

// TestEquivalents_Start: what is older than the first instance with the option
// may have been purged unnoticed.
func TestEquivalents_Start(t *testing.T) {
	c := newClock()
	e := newEquivalents(c.now)
	old := c.response(ignoreA)
	if e.purge("http://h/p"); len(e.purges.young) != 0 {
		t.Error("a purge is noted although it is off")
	}
	c.add(time.Second)
	e.start()
	c.add(time.Second)
	newer := c.response(ignoreA)
	e.start()
	if e.allows(old, "http://h/p?a=1", "http://h/p") || !e.allows(newer, "http://h/p?a=1", "http://h/p") {
		t.Error("the horizon is not at the first start")
	}
}

// TestEquivalents_PurgesForgotten: a purge that has been forgotten still counts.
func TestEquivalents_PurgesForgotten(t *testing.T) {
	e, c := newTestEquivalents()
	old := c.response(ignoreA)
	c.add(time.Second)
	e.purge("http://h/p")
	for i := range 5 * maxSearchPurges {
		c.add(time.Millisecond)
		e.purge(fmt.Sprintf("http://h/%d", i))
		if e.allows(old, "http://h/p?a=1", "http://h/p?a=2") {
			t.Fatalf("after %d more purges a response from before the first one is used", i)
		}
	}
	c.add(time.Second)
	if !e.allows(c.response(ignoreA), "http://h/p?a=1", "http://h/p") {
		t.Error("nothing is used any more")
	}
	if n := len(e.purges.young) + len(e.purges.old); n > 2*maxSearchPurges {
		t.Errorf("%d purges are known", n)
	}
}

// TestEquivalents_Bounded: an origin that has a new rule each time, and clients
// with ever new URLs, cost no more than the bound, and the latest is known.
func TestEquivalents_Bounded(t *testing.T) {
	e, c := newTestEquivalents()
	for i := range 10_000 {
		e.learn(fmt.Sprintf("http://h/p?a=1&b%d", i), c.response(fmt.Sprintf(`params=("b%d")`, i)), nil)
	}
	if rules, _ := e.rules.get(e.base("http://h/p")); len(rules) != maxSearchRules {
		t.Errorf("%d rules are known of a path", len(rules))
	}
	if got := e.candidates("http://h/p?a=1", nil); !slices.Equal(got, []string{"http://h/p?a=1&b9999"}) {
		t.Errorf("after 10,000 rules: %q", got)
	}
	long := make([]byte, 4000)
	for i := range long {
		long[i] = 'x'
	}
	for i := range 20_000 {
		e.learn(fmt.Sprintf("http://h/%d%s?a=1", i, long), c.response(fmt.Sprintf(`params=("a" "%s")`, long)), nil)
	}
	for name, r := range map[string]int{"rules": e.rules.size, "keys": e.keys.size} {
		if r > searchMemory {
			t.Errorf("%s: %d bytes in a generation", name, r)
		}
	}
	if n := len(e.keys.young) + len(e.keys.old); n > 2*searchMemory/len(long) {
		t.Errorf("%d keys are known", n)
	}
	if got := e.candidates(fmt.Sprintf("http://h/%d%s?a=2", 19_999, long), nil); len(got) != 1 {
		t.Errorf("the latest is not known: %d", len(got))
	}
	tooLong := "http://h/q?a=" + string(long) + string(long) + string(long)
	e.learn(tooLong, c.response(ignoreA), nil)
	if got := e.candidates("http://h/q", nil); got != nil {
		t.Error("a URL beyond the bound is learned")
	}
}

func BenchmarkEquivalents_Candidates(b *testing.B) {
	e, c := newTestEquivalents()
	e.learn("http://www.example.com/p?utm_source=a&id=1", c.response(`params=("utm_source" "utm_medium")`), nil)
	for name, key := range map[string]string{
		"path=unknown": "http://www.example.com/q?utm_source=b&id=1",
		"path=known":   "http://www.example.com/p?utm_source=b&id=1",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = e.candidates(key, nil)
			}
		})
	}
}
