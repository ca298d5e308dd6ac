package store_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		child(role) // does not return
	}
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); !long && f.Value.String() == f.DefValue {
		_ = f.Value.Set("25")
	}
	goleak.VerifyTestMain(m)
}

// long turns the heavier runs on.
var long = os.Getenv("FASTCACHE_LONG") != ""

// fakeClock is a clock that tests set.
type fakeClock struct{ nanos atomic.Int64 }

func newClock() *fakeClock {
	c := &fakeClock{}
	c.nanos.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *fakeClock) Now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *fakeClock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }

func open(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	<-s.Ready()
	return s
}

func both(t testing.TB) store.Options {
	return store.Options{Path: t.TempDir(), Limits: store.Limits{Memory: 1 << 20, Disk: 64 << 20, PromoteBelow: 16 << 10}}
}

func diskOnly(t testing.TB) store.Options {
	return store.Options{Path: t.TempDir(), Limits: store.Limits{Disk: 64 << 20}}
}

func ramOnly() store.Options {
	return store.Options{Limits: store.Limits{Memory: 64 << 20}}
}

func response(status int, vary ...string) *store.Response {
	return &store.Response{
		Status:   status,
		Header:   http.Header{"Content-Type": {"text/plain"}, "Etag": {`"1"`}},
		Born:     time.Now(),
		Lifetime: time.Hour,
		Vary:     vary,
	}
}

// body makes n bytes that only seed makes.
func body(seed string, n int) []byte {
	h := fnv.New64a()
	_, _ = io.WriteString(h, seed)
	var key [32]byte
	copy(key[:], fmt.Sprintf("%x", h.Sum64()))
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func store1(s *store.Store, key string, h http.Header, r *store.Response, p []byte) (*store.Entry, error) {
	f := s.Fetch(key)
	defer f.Done()
	w, err := f.Create(int64(len(p)))
	if err != nil {
		return nil, err
	}
	defer w.Discard()
	if _, err := w.Write(p); err != nil {
		return nil, err
	}
	return w.Commit(r, h)
}

func put(t testing.TB, s *store.Store, key string, h http.Header, r *store.Response, p []byte) *store.Entry {
	t.Helper()
	e, err := store1(s, key, h, r, p)
	if err != nil {
		t.Fatalf("storing %q: %v", key, err)
	}
	return e
}

func purgeFunc(t testing.TB, s *store.Store, match func(string) bool, soft bool) int {
	t.Helper()
	n, err := s.PurgeFunc(t.Context(), match, soft, store.Purged)
	if err != nil {
		t.Error(err)
	}
	return n
}

func purgeTags(t testing.TB, s *store.Store, soft bool, tags ...string) int {
	t.Helper()
	n, err := s.PurgeTags(t.Context(), tags, soft, store.Purged)
	if err != nil {
		t.Error(err)
	}
	return n
}

// tagged is response with tags.
func tagged(tags ...string) *store.Response {
	r := response(200)
	r.Tags = tags
	return r
}

func readBody(e *store.Entry) ([]byte, error) {
	b, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if (b.Bytes == nil) == (b.File == nil) {
		return nil, errors.New("not exactly one of Bytes and File is set")
	}
	if b.File != nil {
		return io.ReadAll(b.File)
	}
	return bytes.Clone(b.Bytes), nil
}

func mustHit(t testing.TB, s *store.Store, key string, h http.Header, want []byte) *store.Entry {
	t.Helper()
	e, _ := s.Lookup([]byte(key), h)
	if e == nil {
		t.Fatalf("%q is a miss", key)
	}
	if e.Response() == nil {
		t.Fatalf("%q has no response", key)
	}
	got, err := readBody(e)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%q has %d bytes that differ from the %d stored", key, len(got), len(want))
	}
	return e
}

func mustMiss(t testing.TB, s *store.Store, key string, h http.Header) {
	t.Helper()
	if e, _ := s.Lookup([]byte(key), h); e != nil {
		t.Fatalf("%q is a hit", key)
	}
}

func check(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
}

// A fetch that purges its own key may store what it brings, unless somebody else has
// purged the key since it began, before or after.
func TestFetch_Purge_SparesItself(t *testing.T) {
	for name, test := range map[string]struct {
		before, after bool
		want          bool
	}{
		"alone":  {want: true},
		"before": {before: true},
		"after":  {after: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, store.Options{Limits: store.Limits{Memory: 1 << 20}})
			put(t, s, "http://a/", nil, &store.Response{Status: 200, Born: time.Now(), Lifetime: time.Minute}, []byte("old"))
			other := s.Fetch("https://a/")
			defer other.Done()
			f := s.Fetch("http://a/")
			defer f.Done()
			if test.before {
				s.Purge("http://a/", false, store.Purged)
			}
			n, current := f.Purge(false, store.Invalidated)
			if current == test.before || n == 0 != test.before {
				t.Errorf("purged %d, current %v", n, current)
			}
			if !other.Purged() {
				t.Error("another fetch of the key goes on")
			}
			if test.after {
				s.Purge("http://a/", false, store.Purged)
			}
			w, err := f.Create(-1)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Discard()
			if _, err := w.Commit(&store.Response{Status: 200, Born: time.Now(), Lifetime: time.Minute}, nil); (err == nil) != test.want {
				t.Errorf("Commit: %v", err)
			}
		})
	}
}
