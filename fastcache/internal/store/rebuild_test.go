package store_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// TestRebuild_Restores: everything about an entry is as it was, ages counted over the downtime.
func TestRebuild_Restores(t *testing.T) {
	clock := newClock()
	o := both(t)
	o.Now = clock.Now
	s := open(t, o)
	r := response(203, "Accept-Encoding", "Cookie")
	r.Born = clock.Now().Add(-time.Minute)
	r.Lifetime, r.StaleWhileRevalidate, r.StaleIfError = time.Hour, time.Minute, 2*time.Minute
	r.Discard = clock.Now().Add(time.Hour)
	r.Flags = store.Validate | store.Immutable
	h := header("Accept-Encoding", "gzip", "Cookie", "a=b")
	put(t, s, "https://a:8443/x?y", h, r, body("x", 3000))
	put(t, s, "late", nil, &store.Response{Status: 200, Discard: clock.Now().Add(time.Second)}, nil)
	put(t, s, "soft", nil, response(200), body("soft", 10))
	if n := s.Purge("soft", true, store.Purged); n != 1 {
		t.Error(n)
	}
	s.Close()

	clock.Advance(10 * time.Minute)
	s = open(t, o)
	e := mustHit(t, s, "https://a:8443/x?y", h, body("x", 3000))
	if got := e.Response(); !got.Born.Equal(r.Born) || got.Status != 203 || got.Flags != r.Flags || got.Lifetime != r.Lifetime ||
		got.StaleWhileRevalidate != r.StaleWhileRevalidate || got.StaleIfError != r.StaleIfError || !got.Discard.Equal(r.Discard) ||
		!slices.Equal(got.Vary, r.Vary) || !maps.EqualFunc(got.Header, r.Header, slices.Equal[[]string]) {
		t.Errorf("%+v", got)
	}
	mustMiss(t, s, "https://a:8443/x?y", header("Accept-Encoding", "br", "Cookie", "a=b"))
	mustMiss(t, s, "late", nil)
	if e, _ := s.Lookup([]byte("soft"), nil); e == nil || !e.Stale() {
		t.Error("the soft purge was forgotten")
	}
	if st := s.Stats(); st.Loaded != 2 || st.Entries != 2 || st.Evictions[store.Expired] != 1 || st.RebuildDone != 256 || st.RebuildTotal != 256 {
		t.Errorf("%+v", st)
	}
	// The refreshed response survives too, and the mark is gone.
	e, _ = s.Lookup([]byte("soft"), nil)
	if _, err := s.Refresh(e, response(404)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, o)
	if e := mustHit(t, s, "soft", nil, body("soft", 10)); e.Stale() || e.Response().Status != 404 {
		t.Error("the refresh was forgotten")
	}
	clock.Advance(time.Hour)
	s.Sweep()
	mustMiss(t, s, "https://a:8443/x?y", h)
	check(t, s)
}

// TestRebuild_Meanwhile: while the files of an earlier run are read, the store serves, stores, and
// purges: what it purged does not come back, what it stored is not displaced.
func TestRebuild_Meanwhile(t *testing.T) {
	const n = 1200
	o := diskOnly(t)
	s := open(t, o)
	for i := range n {
		key := fmt.Sprint("http://a/", i)
		put(t, s, key, nil, response(200), body(key, 100))
		if i%10 == 0 {
			put(t, s, fmt.Sprint("https://a:8443/", i), nil, response(200), body(key, 100))
		}
	}
	s.Close()

	s, err := store.Open(o)
	must(t, err)
	defer s.Close()
	if st := s.Stats(); st.RebuildDone == st.RebuildTotal || st.RebuildTotal != 256 {
		t.Errorf("at the start: %+v", st)
	}
	early := 0
	for i := 0; i < n; i += 3 {
		key := fmt.Sprint("http://a/", i)
		select {
		case <-s.Ready():
		default:
			early++
		}
		switch i % 2 {
		case 0:
			want := 1
			if i%10 == 0 {
				want = 2
			}
			if got := s.Purge(key, false, store.Purged); got != want {
				t.Fatalf("purge of %s: %d, want %d", key, got, want)
			}
		default:
			put(t, s, key, nil, response(200), body("new", 200))
		}
	}
	<-s.Ready()
	t.Logf("%d operations before the rebuild was over", early)
	if early == 0 {
		t.Error("the rebuild was over before anything could be tested")
	}
	for i := range n {
		key := fmt.Sprint("http://a/", i)
		switch {
		case i%3 != 0:
			mustHit(t, s, key, nil, body(key, 100))
		case i%2 == 0:
			mustMiss(t, s, key, nil)
			mustMiss(t, s, fmt.Sprint("https://a:8443/", i), nil)
		default:
			mustHit(t, s, key, nil, body("new", 200))
		}
	}
	check(t, s)
}

// TestRebuild_NothingPurgedComesBack: PurgeFunc right after the start, with the process's last breath.
func TestRebuild_NothingPurgedComesBack(t *testing.T) {
	o := diskOnly(t)
	s := open(t, o)
	for i := range 500 {
		put(t, s, fmt.Sprint("http://a/", i), nil, response(200), nil)
	}
	s.Close()
	s, err := store.Open(o)
	must(t, err)
	if n := purgeFunc(t, s, func(string) bool { return true }, false); n != 500 {
		t.Errorf("purged %d", n)
	}
	s.Close()
	s = open(t, o)
	if st := s.Stats(); st.Entries != 0 {
		t.Error(st)
	}
	check(t, s)
}

// TestRebuild_Budgets: an earlier run's entries do not break a smaller budget.
func TestRebuild_Budgets(t *testing.T) {
	o := diskOnly(t)
	s := open(t, o)
	for i := range 300 {
		put(t, s, fmt.Sprint(i), nil, response(200), body("", 1000))
	}
	s.Close()
	for _, l := range []store.Limits{{Disk: 100 * 8192}, {Disk: 1 << 30, Items: 40}} {
		o.Limits = l
		s, err := store.Open(o)
		must(t, err)
		for rebuilding := true; rebuilding; {
			st := s.Stats()
			if st.DiskBytes > l.Disk || l.Items > 0 && st.Entries > int64(l.Items) {
				t.Fatalf("%+v", st)
			}
			rebuilding = st.Rebuilding
		}
		check(t, s)
		want := int64(100)
		if l.Items > 0 {
			want = int64(l.Items)
		}
		if st := s.Stats(); st.Entries != want {
			t.Error(st)
		}
		s.Close()
	}
}

// TestRebuild_OtherKeysFiles: an entry's files under the name of another key are damage.
func TestRebuild_OtherKeysFiles(t *testing.T) {
	o := diskOnly(t)
	s := open(t, o)
	from := s.BodyPath(put(t, s, "k", nil, response(200), body("k", 10)))
	to := s.PathFor("other", 10)
	s.Close()
	must(t, os.MkdirAll(filepath.Dir(to), 0o750))
	must(t, os.Rename(from, to))
	must(t, os.Rename(from+".meta", to+".meta"))
	s = open(t, o)
	if st := s.Stats(); st.Entries != 0 || st.Damaged != 1 {
		t.Errorf("%+v", st)
	}
	check(t, s)
}

func TestRebuild_CloseStopsIt(t *testing.T) {
	o := diskOnly(t)
	s := open(t, o)
	for i := range 1000 {
		put(t, s, fmt.Sprint(i), nil, response(200), nil)
	}
	s.Close()
	for range 5 {
		s, err := store.Open(o)
		must(t, err)
		s.Close()
		<-s.Ready()
	}
	s = open(t, o)
	if st := s.Stats(); st.Entries != 1000 {
		t.Error(st)
	}
}

// TestPurge_Fence races commits and refreshes with purges: what was asked for before a purge is not
// there after it.
func TestPurge_Fence(t *testing.T) {
	for name, o := range map[string]store.Options{"both": both(t), "ram": ramOnly()} {
		for _, pattern := range []bool{false, true} {
			s := open(t, o)
			purge := func(soft bool) {
				if pattern {
					purgeFunc(t, s, func(key string) bool { return key == "https://a:8443/x" }, soft)
				} else {
					s.Purge("http://a/x", soft, store.Purged)
				}
			}
			const key = "https://a:8443/x"
			for i := range 300 {
				soft := i%2 == 0
				f := s.Fetch(key)
				w, err := f.Create(4)
				must(t, err)
				_, _ = w.Write([]byte("body"))
				var wg sync.WaitGroup
				var failed error
				wg.Go(func() { _, failed = w.Commit(response(200), nil) })
				purge(soft)
				// The commit was before the purge, or never.
				e, _ := s.Lookup([]byte(key), nil)
				if e != nil && !(soft && e.Stale()) {
					t.Fatalf("%s: stored across a purge, soft %t", name, soft)
				}
				wg.Wait()
				if e, _ = s.Lookup([]byte(key), nil); e != nil && !(soft && e.Stale()) {
					t.Fatalf("%s: stored after a purge, soft %t", name, soft)
				}
				if failed != nil && (!errors.Is(failed, store.ErrPurged) || e != nil) || soft && failed == nil && e == nil {
					t.Fatalf("%s: %v, entry %v", name, failed, e != nil)
				}
				if e != nil {
					if !f.Purged() {
						t.Fatal("the fetch does not know")
					}
					if _, err := f.Refresh(e, response(200)); !errors.Is(err, store.ErrPurged) {
						t.Fatalf("refreshed across a purge: %v", err)
					}
					if _, err := s.Refresh(e, response(200)); err != nil || e.Stale() {
						t.Fatalf("refresh after it: %v", err)
					}
				}
				f.Done()
				f.Done()
				purge(false)
			}
			// Another key's fetch is none of its business.
			f := s.Fetch("https://b/x")
			purge(false)
			if f.Purged() {
				t.Error("purged another host")
			}
			f.Done()
			check(t, s)
			s.Close()
		}
	}
}

// TestPurge_Big: a purge of everything lets hits go on; its count is right.
func TestPurge_Big(t *testing.T) {
	n := 1000
	if long {
		n = 40_000
	}
	o := both(t)
	o.Limits.Disk = 1 << 30
	s := open(t, o)
	for i := range n {
		put(t, s, fmt.Sprint("http://a/", i), nil, response(200), body("", 100))
	}
	put(t, s, "hot", nil, response(200), body("hot", 100))
	var stop atomic.Bool
	var wg sync.WaitGroup
	var worst time.Duration
	wg.Go(func() {
		for !stop.Load() {
			start := time.Now()
			mustHit(t, s, "hot", nil, body("hot", 100))
			worst = max(worst, time.Since(start))
		}
	})
	for _, soft := range []bool{true, false} {
		start := time.Now()
		if got := purgeFunc(t, s, func(key string) bool { return key != "hot" }, soft); got != n {
			t.Errorf("purged %d of %d", got, n)
		}
		t.Logf("soft=%t: %d entries in %v", soft, n, time.Since(start))
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("worst hit %v", worst)
	check(t, s)
}

// TestChurn has everything happen at once to few keys. Bodies and headers carry their key.
func TestChurn(t *testing.T) {
	d := 1500 * time.Millisecond
	if long {
		d = 30 * time.Second
	}
	for name, o := range map[string]store.Options{
		"both": {Path: t.TempDir(), Limits: store.Limits{Memory: 100 << 10, Disk: 2 << 20, PromoteBelow: 8 << 10, Items: 60, Variants: 3}},
		"disk": {Path: t.TempDir(), Limits: store.Limits{Disk: 1 << 20}},
		"ram":  {Limits: store.Limits{Memory: 300 << 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, o)
			var stop atomic.Bool
			var wg sync.WaitGroup
			var hits atomic.Int64
			for g := range 4 {
				wg.Go(func() {
					for i := g * 1_000_003; !stop.Load(); i++ {
						churnStep(t, s, uint64(i)*0x9e3779b97f4a7c15>>20, &hits)
					}
				})
			}
			time.Sleep(d)
			stop.Store(true)
			wg.Wait()
			if hits.Load() == 0 {
				t.Error("no hits")
			}
			st := s.Stats()
			if st.Damaged > 0 || st.DiskErrors > 0 {
				t.Errorf("%+v", st)
			}
			check(t, s)
			t.Logf("%d hits, %+v", hits.Load(), st)
		})
	}
}

func churnStep(t *testing.T, s *store.Store, dice uint64, hits *atomic.Int64) {
	key := fmt.Sprintf("http%s://h:%d/%d", []string{"", "s"}[dice%2], dice>>1%3, dice>>3%8)
	h := header("Cookie", fmt.Sprint(dice>>8%3))
	vary := [][]string{nil, {"Cookie"}, {"Accept", "Cookie"}}[dice>>11%3]
	switch op := dice >> 16 % 32; {
	case op < 8:
		r := response(200, vary...)
		r.Header.Set("X-Key", key)
		r.Discard = time.Now().Add(time.Duration(dice>>40%4) * time.Second)
		if dice>>42%3 == 0 {
			r.Tags = []string{fmt.Sprint("t", dice>>44%5)}
		}
		p := crashBody(key, []int{0, 50, 3000, 9000, 20_000}[dice>>32%5])
		if _, err := store1(s, key, h, r, p); err != nil && !errors.Is(err, store.ErrPurged) && !errors.Is(err, store.ErrFull) {
			t.Error(err)
		}
	case op < 9:
		s.Purge(key, dice>>32%2 == 0, store.Purged)
	case op < 10 && dice>>32%4 == 1:
		purgeTags(t, s, dice>>34%2 == 0, fmt.Sprint("t", dice>>44%5), fmt.Sprint("t", dice>>47%5))
	case op < 10 && dice>>32%4 == 0:
		purgeFunc(t, s, func(k string) bool { return len(k) > 0 && k[len(k)-1] == key[len(key)-1] }, dice>>34%2 == 0)
	case op < 11:
		for key, variants := range s.Keys {
			if key == "" || variants == 0 {
				t.Errorf("key %q with %d variants", key, variants)
			}
		}
	default:
		e, _ := s.Lookup([]byte(key), h)
		if e == nil {
			return
		}
		r := e.Response()
		if r == nil {
			return
		}
		if r.Header.Get("X-Key") != key || e.Key() != key {
			t.Errorf("%s has the header of %s", key, r.Header.Get("X-Key"))
		}
		switch {
		case op < 13:
			r := response(200, vary...)
			r.Header.Set("X-Key", key)
			if dice>>42%2 == 0 {
				r.Tags = []string{fmt.Sprint("t", dice>>44%5)}
			}
			if _, err := s.Refresh(e, r); err != nil && !errors.Is(err, store.ErrGone) {
				t.Error(err)
			}
			return
		case op < 14:
			s.Remove(e, store.Invalidated)
			return
		}
		got, err := readBody(e)
		if err != nil {
			if !errors.Is(err, store.ErrGone) {
				t.Error(err)
			}
			return
		}
		hits.Add(1)
		if string(got) != string(crashBody(key, len(got))) || int64(len(got)) != e.Size() {
			t.Errorf("%s has a wrong body of %d bytes", key, len(got))
		}
	}
}
