package fastcache

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// storeOf opens a store in RAM that holds an empty response under each of the keys.
func storeOf(t testing.TB, keys ...string) *sharedStore {
	t.Helper()
	s, err := store.Open(store.Options{Limits: store.Limits{Memory: 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, key := range keys {
		put(t, s, key)
	}
	return &sharedStore{store: s, equivalents: newEquivalents(time.Now)}
}

func put(t testing.TB, s *store.Store, key string) {
	t.Helper()
	f := s.Fetch(key)
	defer f.Done()
	w, err := f.Create(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(&store.Response{Status: http.StatusOK}, nil); err != nil {
		t.Fatal(err)
	}
}

// The listing is what sorting everything gives, whatever the size of a page.
func TestSortedKeys_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.StringMatching(`[a-c\x00\xff]{0,4}`)
		a := rapid.SliceOfN(key, 0, 40).Draw(rt, "a")
		b := rapid.SliceOfN(key, 0, 40).Draw(rt, "b")
		from := key.Draw(rt, "from")
		contains := rapid.SampledFrom([]string{"", "a"}).Draw(rt, "contains")
		page := rapid.IntRange(1, 12).Draw(rt, "page")

		var want []string
		for _, key := range append(slices.Clone(a), b...) {
			if key >= from && strings.Contains(key, contains) {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		stores := []*sharedStore{storeOf(t, a...), storeOf(t, b...)}
		match := func(key string) bool { return strings.Contains(key, contains) }
		got := slices.Collect(sortedKeys(context.Background(), stores, from, match, page))
		if !slices.Equal(got, want) {
			rt.Fatalf("%q, want %q", got, want)
		}
		for _, s := range stores {
			s.store.Close()
		}
	})
}

// A listing needs the memory of two pages, whatever is stored.
func TestSortedKeys_Memory(t *testing.T) {
	const keys, page = 100_000, 1000
	s := storeOf(t)
	for i := range keys {
		put(t, s.store, fmt.Sprintf("http://example.com/%d", i))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for range sortedKeys(t.Context(), []*sharedStore{s}, "", nil, page) {
		n++
	}
	runtime.ReadMemStats(&after)
	if n != keys {
		t.Errorf("%d keys", n)
	}
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(10*page*16); got > limit {
		t.Errorf("%d keys in pages of %d: %d bytes allocated, want at most %d", keys, page, got, limit)
	}
}

type keysAnswer struct {
	Keys       []string
	Count      int
	Next       string
	Incomplete bool
}

func TestListing_Answer(t *testing.T) {
	s := storeOf(t, "http://h/<a>&\"b\"", "http://h/b", "http://h/c", "http://i/b", "\xff key\n")
	list := func(query string) (keysAnswer, string) {
		t.Helper()
		l, err := parseListing(query)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := l.write(t.Context(), &out, []*sharedStore{s}); err != nil {
			t.Fatal(err)
		}
		var a keysAnswer
		if err := json.Unmarshal(out.Bytes(), &a); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		return a, out.String()
	}
	a, text := list("")
	want := "{\"keys\":[\n\"http://h/<a>&\\\"b\\\"\",\n\"http://h/b\",\n\"http://h/c\",\n\"http://i/b\",\n\"\\ufffd key\\n\"\n],\"count\":5}\n"
	if text != want {
		t.Errorf("%q, want %q", text, want)
	}
	for query, want := range map[string][]string{
		"prefix=http://h/":   a.Keys[:3],
		"prefix=/b":          a.Keys[1:2:2],
		"pattern=[bc]$":      a.Keys[1:4],
		"after=http://h/b":   a.Keys[2:],
		"prefix=http://none": {},
	} {
		if query == "prefix=/b" {
			want = []string{"http://h/b", "http://i/b"}
		}
		if got, text := list(query); !slices.Equal(got.Keys, want) || got.Count != len(want) || got.Next != "" {
			t.Errorf("%s: %s, want %q", query, text, want)
		}
	}
	// In steps of every size, the same keys in the same order.
	for limit := 1; limit <= 6; limit++ {
		var got []string
		query := fmt.Sprintf("limit=%d", limit)
		for query != "" {
			a, _ := list(query)
			got = append(got, a.Keys...)
			if a.Count != len(a.Keys) || a.Next != "" && a.Count != limit {
				t.Errorf("limit %d: %+v", limit, a)
			}
			next, err := url.Parse(a.Next)
			if err != nil {
				t.Fatal(err)
			}
			query = next.RawQuery
		}
		if !slices.Equal(got, a.Keys) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
}

func TestListing_BadRequests(t *testing.T) {
	for query, want := range map[string]string{
		"perfix=a":           `there is no parameter "perfix"`,
		"limit=0":            `limit: "0" is not a number above 0`,
		"limit=x":            `limit: "x"`,
		"limit=1&limit=2":    `limit is given twice`,
		"pattern=(":          `pattern: error parsing regexp`,
		"prefix=a&pattern=b": `cannot be given together`,
		"a=%zz":              `the query cannot be read`,
		"name=who":           `no fastcache that stores anything has the name "who"`,
	} {
		status, text, _ := callAdmin(serveKeys, httptest.NewRequest(http.MethodGet, "/fastcache/keys?"+query, nil))
		if status/100 != 4 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %q, want %q", query, status, text, want)
		}
	}
}

func BenchmarkSortedKeys(b *testing.B) {
	for _, keys := range []int{40_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			s := storeOf(b)
			for i := range keys {
				put(b, s.store, fmt.Sprintf("https://www.example.com/some/path/of/a/page/%d?x=y", i))
			}
			b.ReportAllocs()
			for b.Loop() {
				for range sortedKeys(b.Context(), []*sharedStore{s}, "", nil, keysPage) {
				}
			}
		})
	}
}
