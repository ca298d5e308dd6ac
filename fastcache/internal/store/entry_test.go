package store_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

func header(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Add(kv[i], kv[i+1])
	}
	return h
}

func TestLookup_Allocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop at random")
	}
	s := open(t, both(t))
	key := []byte("https://example.com:8443/a")
	h := header("Accept-Encoding", "gzip")
	put(t, s, string(key), h, response(200, "Accept-Encoding"), body("x", 100))
	allocs := testing.AllocsPerRun(1000, func() {
		e, _ := s.Lookup(key, h)
		if e == nil || e.Response() == nil {
			t.Fatal("miss")
		}
		b, err := e.Open()
		if err != nil || b.Bytes == nil {
			t.Fatal("not in RAM")
		}
		b.Close()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestLookup_Variants(t *testing.T) {
	s := open(t, both(t))
	const key = "http://a/"
	lookup := func(kv ...string) (string, bool) {
		e, known := s.Lookup([]byte(key), header(kv...))
		if e == nil {
			return "", known
		}
		return e.Response().Header.Get("Is"), known
	}
	commit := func(is string, vary string, kv ...string) {
		r := response(200, strings.Fields(vary)...)
		r.Header.Set("Is", is)
		put(t, s, key, header(kv...), r, body(is, 10))
	}
	want := func(is string, known bool, kv ...string) {
		t.Helper()
		if got, k := lookup(kv...); got != is || k != known {
			t.Errorf("%v: %q %t, want %q %t", kv, got, k, is, known)
		}
	}
	want("", false)
	commit("en", "Accept-Language", "Accept-Language", "en")
	want("en", true, "Accept-Language", "en", "Cookie", "x")
	want("", true, "Accept-Language", "de")
	want("", true)

	// A response that varies on more: requests that only the older one names keep it (RFC 9111, 4.1).
	commit("de,x", "Accept-Language Cookie", "Accept-Language", "de", "Cookie", "x")
	want("en", true, "Accept-Language", "en", "Cookie", "x")
	want("de,x", true, "Accept-Language", "de", "Cookie", "x")
	want("", true, "Accept-Language", "de", "Cookie", "y")

	// It takes the place of what would have answered its own request.
	commit("en,x", "Accept-Language Cookie", "Accept-Language", "en", "Cookie", "x")
	want("en,x", true, "Accept-Language", "en", "Cookie", "x")
	want("", true, "Accept-Language", "en", "Cookie", "y")

	// One without Vary answers everybody, after those that carry one.
	commit("all", "", "Accept-Language", "fr")
	want("all", true)
	want("en,x", true, "Accept-Language", "en", "Cookie", "x")

	// Of two that match, the newest.
	commit("cookie", "Cookie", "Accept-Language", "it", "Cookie", "x")
	want("cookie", true, "Accept-Language", "en", "Cookie", "x")

	// And one without Vary for their request replaces both.
	commit("all2", "", "Accept-Language", "en", "Cookie", "x")
	want("all2", true, "Accept-Language", "en", "Cookie", "x")
	check(t, s)
}

func TestLookup_SecondChance(t *testing.T) {
	o := both(t)
	o.SecondChance = func(names []string, stored, request []byte, header http.Header) bool {
		return len(names) == 1 && names[0] == "Accept-Language" && len(stored) > 0 &&
			string(request) == "like-"+header.Get("Content-Language")+"\n\x00"
	}
	s := open(t, o)
	for i, lang := range []string{"en", "de", "en-GB"} {
		r := response(200, "Accept-Language")
		r.Born = r.Born.Add(time.Duration(i) * time.Second)
		r.Header.Set("Content-Language", lang[:2])
		put(t, s, "http://a/", header("Accept-Language", lang), r, body(lang, 10))
	}
	mustHit(t, s, "http://a/", header("Accept-Language", "like-de"), body("de", 10))
	mustHit(t, s, "http://a/", header("Accept-Language", "like-en"), body("en-GB", 10))
	mustHit(t, s, "http://a/", header("Accept-Language", "en"), body("en", 10))
	mustMiss(t, s, "http://a/", header("Accept-Language", "like-fr"))
}

// TestVariants_LeastRecentlyUsedGoes: the variant that a full key gives up is the one that was not
// asked for longest.
func TestVariants_LeastRecentlyUsedGoes(t *testing.T) {
	clock := newClock()
	o := ramOnly()
	o.Now, o.Limits.Variants = clock.Now, 4
	s := open(t, o)
	variant := func(i int) http.Header { return header("Cookie", fmt.Sprint(i)) }
	for i := range 4 {
		put(t, s, "k", variant(i), response(200, "Cookie"), body(fmt.Sprint(i), 5))
	}
	for _, i := range []int{0, 1, 3} {
		clock.Advance(10 * time.Second)
		s.Sweep()
		mustHit(t, s, "k", variant(i), body(fmt.Sprint(i), 5))
	}
	put(t, s, "k", variant(4), response(200, "Cookie"), body("4", 5))
	mustMiss(t, s, "k", variant(2))
	put(t, s, "k", variant(5), response(200, "Cookie"), body("5", 5))
	mustMiss(t, s, "k", variant(0))
	for _, i := range []int{1, 3, 4, 5} {
		mustHit(t, s, "k", variant(i), body(fmt.Sprint(i), 5))
	}
	if st := s.Stats(); st.Evictions[store.Count] != 2 {
		t.Error(st)
	}
	check(t, s)
}

func TestOpen_Tiers(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 16383, 16384, 16385, 65536, 65537, 1<<20 + 1} {
		p := body("x", size)
		for name, o := range map[string]store.Options{
			"both": {Limits: store.Limits{Memory: 4 << 20, Disk: 64 << 20, PromoteBelow: 16 << 10}},
			"all":  {Limits: store.Limits{Memory: 4 << 20, Disk: 64 << 20, PromoteBelow: 8 << 20}},
			"disk": {Limits: store.Limits{Disk: 64 << 20, PromoteBelow: 16 << 10}},
			"ram":  {Limits: store.Limits{Memory: 4 << 20}},
		} {
			if o.Limits.Disk > 0 {
				o.Path = t.TempDir()
			}
			s := open(t, o)
			e := put(t, s, "k", nil, response(200), p)
			inRAM := name == "ram" || name == "all" || name == "both" && size <= 16<<10
			if e.Resident() != inRAM {
				t.Errorf("%s, %d bytes: resident %t after Commit", name, size, e.Resident())
			}
			for range 2 {
				for range 3 {
					mustHit(t, s, "k", nil, p)
				}
				if e.Resident() != inRAM {
					t.Errorf("%s, %d bytes: resident %t", name, size, e.Resident())
				}
				if o.Limits.Disk > 0 {
					s.Cool() // and bring it back
				}
			}
			check(t, s)
			s.Close()
		}
	}
}

// TestEntry_OutlivesItsPlace: who holds an entry while it is replaced or removed is served what RAM
// has, else ErrGone; and a file that is open stays readable.
func TestEntry_OutlivesItsPlace(t *testing.T) {
	s := open(t, both(t))
	small := put(t, s, "small", nil, response(200), body("small", 100))
	large := put(t, s, "large", nil, response(200), body("large", 100_000))
	b, err := large.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, key := range []string{"small", "large"} {
		if n := s.Purge(key, false, store.Purged); n != 1 {
			t.Errorf("purged %d", n)
		}
	}
	s.Settle()
	if got, err := readBody(small); err != nil || string(got) != string(body("small", 100)) {
		t.Errorf("small: %v", err)
	}
	if large.Response() == nil {
		t.Error("the response was in RAM")
	}
	if _, err := large.Open(); !errors.Is(err, store.ErrGone) {
		t.Errorf("large: %v", err)
	}
	got := make([]byte, 100_000)
	if n, err := b.File.Read(got); n != len(got) || string(got) != string(body("large", 100_000)) {
		t.Errorf("open file: %d bytes, %v", n, err)
	}
	if st := s.Stats(); st.Damaged != 0 || st.DiskErrors != 0 || st.DiskBytes != 0 || st.Entries != 0 {
		t.Error(st)
	}
	check(t, s)
}

func TestStore_KeepsNothing(t *testing.T) {
	s := open(t, store.Options{Path: filepath.Join(t.TempDir(), "never")})
	f := s.Fetch("k")
	defer f.Done()
	for _, size := range []int64{-1, 0, 1} {
		if _, err := f.Create(size); !errors.Is(err, store.ErrTooBig) {
			t.Errorf("size %d: %v", size, err)
		}
	}
	mustMiss(t, s, "k", nil)
}

func TestStore_RAMOnlyTouchesNoFile(t *testing.T) {
	dir := t.TempDir()
	o := ramOnly()
	o.Path = filepath.Join(dir, "never")
	s := open(t, o)
	put(t, s, "k", nil, response(200), body("k", 1<<20))
	mustHit(t, s, "k", nil, body("k", 1<<20))
	if st := s.Stats(); st.Rebuilding || st.RebuildTotal != 0 || st.RebuildDone != 0 {
		t.Errorf("%+v", st)
	}
	s.Close()
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Error(list)
	}
}

func TestStore_Closed(t *testing.T) {
	for name, o := range map[string]store.Options{"both": both(t), "ram": ramOnly()} {
		s := open(t, o)
		f := s.Fetch("k")
		w, err := f.Create(-1)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(body("k", 300_000))
		e := put(t, s, "small", nil, response(200), body("small", 10))
		s.Close()
		s.Close()
		if _, err := w.Write([]byte("x")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: Write: %v", name, err)
		}
		if _, err := w.Commit(response(200), nil); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: Commit: %v", name, err)
		}
		if _, err := f.Create(1); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: Create: %v", name, err)
		}
		if _, err := s.Refresh(e, response(200)); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: Refresh: %v", name, err)
		}
		mustMiss(t, s, "small", nil)
		if n := s.Purge("small", false, store.Purged); n != 0 {
			t.Errorf("%s: purged %d", name, n)
		}
		if n, err := s.PurgeFunc(t.Context(), func(string) bool { return true }, false, store.Purged); n != 0 || !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: purged %d, %v", name, n, err)
		}
		if n, err := s.PurgeTags(t.Context(), []string{"t"}, false, store.Purged); n != 0 || !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: purged %d, %v", name, n, err)
		}
		if got, err := readBody(e); err != nil || len(got) != 10 {
			t.Errorf("%s: an entry in hand: %v", name, err)
		}
		s.SetLimits(store.Limits{})
		s.Remove(e, store.Purged)
		f.Done()
		s.Stats()
	}
	// What was stored is there again, what was not has left nothing.
	o := both(t)
	s := open(t, o)
	w, _ := s.Fetch("k").Create(-1)
	_, _ = w.Write(body("k", 300_000))
	put(t, s, "small", nil, response(200), body("small", 10))
	s.Close()
	w.Discard()
	s = open(t, o)
	mustHit(t, s, "small", nil, body("small", 10))
	check(t, s)
}

func TestStore_CloseWhileBusy(t *testing.T) {
	o := both(t)
	for round := range 10 {
		s, err := store.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		for g := range 4 {
			go func() {
				for i := 0; ; i++ {
					key := fmt.Sprint("k", g, i%20)
					_, err := store1(s, key, nil, response(200), body(key, 500))
					if err != nil {
						done <- err
						return
					}
				}
			}()
		}
		time.Sleep(time.Duration(round) * 5 * time.Millisecond)
		s.Close()
		for range 4 {
			if err := <-done; !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		}
	}
	s := open(t, o)
	for key := range s.Keys {
		mustHit(t, s, key, nil, body(key, 500))
	}
	check(t, s)
}

func TestRefresh_Warm(t *testing.T) {
	s := open(t, both(t))
	e := put(t, s, "k", nil, response(200), body("k", 100))
	f := s.Fetch("k")
	defer f.Done()
	r := response(200)
	r.Header = http.Header{"X": {strings.Repeat("y", 10_000)}}
	if got, err := f.Refresh(e, r); got != e || err != nil {
		t.Fatal(got, err)
	}
	if !e.Resident() || e.Response() != r {
		t.Error("the refreshed entry is not what RAM holds")
	}
	check(t, s)
}

func TestAppendVariant(t *testing.T) {
	s := open(t, ramOnly())
	key := func(kv ...string) string { return string(s.AppendVariant(nil, "k", header(kv...))) }
	if key("Cookie", "a") != "" {
		t.Error("an unknown key has variants")
	}
	put(t, s, "k", header("Cookie", "a", "Accept", "x"), response(200, "Cookie"), nil)
	put(t, s, "k", header("Cookie", "b", "Accept", "x"), response(200, "Accept", "Cookie"), nil)
	put(t, s, "k", header("Cookie", "c", "Accept", "x"), response(200, "Cookie"), nil)
	a := key("Cookie", "a", "Accept", "x")
	if a == key("Cookie", "b", "Accept", "x") || a == key("Cookie", "a", "Accept", "y") || a != key("Cookie", "a", "Accept", "x", "Other", "z") {
		t.Error("variants are not told apart by what the stored responses name")
	}
}

func TestCommit_VaryInAnyOrder(t *testing.T) {
	o := diskOnly(t)
	s := open(t, o)
	h := header("Cookie", "a", "Accept", "x")
	put(t, s, "k", h, response(200, "Cookie", "Accept", "Cookie"), body("1", 10))
	put(t, s, "k", h, response(200, "Accept", "Cookie"), body("2", 10))
	if st := s.Stats(); st.Entries != 1 {
		t.Error(st)
	}
	s.Close()
	s = open(t, o)
	mustHit(t, s, "k", h, body("2", 10))
	check(t, s)
}

func TestCause_String(t *testing.T) {
	var got []string
	for c := range store.Causes + 1 {
		got = append(got, store.Cause(c).String())
	}
	if s := strings.Join(got, " "); s != "expired disk count memory purge invalidate replaced damaged unknown" {
		t.Error(s)
	}
}
