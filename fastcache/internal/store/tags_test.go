package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// tiers are the stores that tag tests run against.
func tiers(t *testing.T) map[string]store.Options {
	return map[string]store.Options{"both": both(t), "disk": diskOnly(t), "ram": ramOnly()}
}

func TestPurgeTags_TouchesTheirCarriersOnly(t *testing.T) {
	for name, o := range tiers(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			put(t, s, "none", nil, response(200), body("none", 10))
			put(t, s, "a", nil, tagged("a"), body("a", 10))
			put(t, s, "ab", nil, tagged("a", "b"), body("ab", 10))
			put(t, s, "b", nil, tagged("b"), body("b", 10))
			r := tagged("a")
			r.Vary = []string{"Cookie"}
			put(t, s, "v", header("Cookie", "1"), r, body("v1", 10))
			r = tagged("c")
			r.Vary = []string{"Cookie"}
			put(t, s, "v", header("Cookie", "2"), r, body("v2", 10))

			if n := purgeTags(t, s, false); n != 0 {
				t.Errorf("no tag: %d", n)
			}
			if n := purgeTags(t, s, false, "", "x", "A", "aa"); n != 0 {
				t.Errorf("tags that nobody carries: %d", n)
			}
			if n := purgeTags(t, s, true, "b", "a", "b"); n != 4 {
				t.Errorf("soft: %d", n)
			}
			for _, key := range []string{"none", "a", "ab", "b"} {
				if e := mustHit(t, s, key, nil, body(key, 10)); e.Stale() != (key != "none") {
					t.Errorf("%s: stale %t", key, e.Stale())
				}
			}
			if n := purgeTags(t, s, false, "a"); n != 3 {
				t.Errorf("hard: %d", n)
			}
			mustMiss(t, s, "a", nil)
			mustMiss(t, s, "ab", nil)
			mustMiss(t, s, "v", header("Cookie", "1"))
			mustHit(t, s, "v", header("Cookie", "2"), body("v2", 10))
			mustHit(t, s, "b", nil, body("b", 10))
			mustHit(t, s, "none", nil, body("none", 10))
			if n := purgeTags(t, s, false, "a"); n != 0 {
				t.Errorf("again: %d", n)
			}
			if st := s.Stats(); st.Evictions[store.Purged] != 3 || s.TagCount() != 2 {
				t.Errorf("%+v, %d tags", st, s.TagCount())
			}
			check(t, s)
		})
	}
}

// TestTags_LeaveWithTheirEntry: however an entry goes, no tag holds on to it.
func TestTags_LeaveWithTheirEntry(t *testing.T) {
	for name, o := range tiers(t) {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			o.Now = clock.Now
			s := open(t, o)
			for how, do := range map[string]func(e *store.Entry){
				"removed":  func(e *store.Entry) { s.Remove(e, store.Damaged) },
				"purged":   func(*store.Entry) { s.Purge("k", false, store.Purged) },
				"matched":  func(*store.Entry) { purgeFunc(t, s, func(string) bool { return true }, false) },
				"replaced": func(*store.Entry) { put(t, s, "k", nil, response(200), nil) },
				"untagged": func(e *store.Entry) { _, _ = s.Refresh(e, response(200)) },
				"expired": func(*store.Entry) {
					clock.Advance(time.Hour)
					s.Sweep()
				},
				"evicted": func(*store.Entry) {
					s.SetLimits(store.Limits{})
					s.Settle()
					s.SetLimits(o.Limits)
				},
			} {
				r := tagged("t", "u")
				r.Discard = clock.Now().Add(time.Minute)
				e := put(t, s, "k", nil, r, body("k", 10))
				if n := s.TagCount(); n != 2 {
					t.Fatalf("%d tags", n)
				}
				do(e)
				if n := s.TagCount(); n != 0 {
					t.Errorf("%s: %d tags are left", how, n)
				}
				check(t, s)
			}
		})
	}
}

func TestRefresh_ChangesTags(t *testing.T) {
	for name, o := range tiers(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			put(t, s, "k", nil, tagged("a", "b"), body("k", 10))
			e, _ := s.Lookup([]byte("k"), nil)
			if _, err := s.Refresh(e, tagged("b", "c")); err != nil {
				t.Fatal(err)
			}
			check(t, s)
			if o.Limits.Disk > 0 {
				s.Cool()
				s.Close()
				s = open(t, o)
				check(t, s)
			}
			e = mustHit(t, s, "k", nil, body("k", 10))
			if got := e.Response().Tags; !slices.Equal(got, []string{"b", "c"}) {
				t.Errorf("%q", got)
			}
			if n := purgeTags(t, s, false, "a"); n != 0 {
				t.Error("found by the tag of before")
			}
			if n := purgeTags(t, s, false, "c"); n != 1 {
				t.Error("not found by the tag of now")
			}
			check(t, s)
		})
	}
}

func TestTags_MustBeSortedAndUnique(t *testing.T) {
	for name, o := range tiers(t) {
		s := open(t, o)
		e := put(t, s, "k", nil, response(200), nil)
		for _, tags := range [][]string{{"b", "a"}, {"a", "a"}} {
			if _, err := store1(s, "k", nil, tagged(tags...), nil); !errors.Is(err, store.ErrTags) {
				t.Errorf("%s: commit: %v", name, err)
			}
			if _, err := s.Refresh(e, tagged(tags...)); !errors.Is(err, store.ErrTags) {
				t.Errorf("%s: refresh: %v", name, err)
			}
		}
		check(t, s)
	}
}

// TestPurgeTags_WhileRebuilding: the tags of what has not been read yet count.
func TestPurgeTags_WhileRebuilding(t *testing.T) {
	const n = 1000
	for _, soft := range []bool{false, true} {
		o := diskOnly(t)
		s := open(t, o)
		for i := range n {
			put(t, s, fmt.Sprint(i), nil, tagged(fmt.Sprint("t", i%4)), nil)
		}
		s.Close()
		s, err := store.Open(o)
		must(t, err)
		rebuilding := s.Stats().Rebuilding
		if got := purgeTags(t, s, soft, "t1", "t3"); got != n/2 {
			t.Errorf("purged %d", got)
		}
		if !rebuilding {
			t.Error("the rebuild was over before anything could be tested")
		}
		s.Close()
		s = open(t, o)
		for i := range n {
			e, _ := s.Lookup(fmt.Append(nil, i), nil)
			switch {
			case i%2 == 0 && (e == nil || e.Stale()), soft && (e == nil || e.Stale() != (i%2 == 1)), !soft && i%2 == 1 && e != nil:
				t.Fatalf("soft %t, entry %d: %v", soft, i, e != nil)
			}
		}
		check(t, s)
		s.Close()
	}
}

// TestPurgeTags_Fence races commits with purges of a tag that only the commit knows of.
func TestPurgeTags_Fence(t *testing.T) {
	for name, o := range map[string]store.Options{"both": both(t), "ram": ramOnly()} {
		s := open(t, o)
		for i := range 300 {
			soft := i%2 == 0
			f := s.Fetch("k")
			w, err := f.Create(4)
			must(t, err)
			_, _ = w.Write([]byte("body"))
			var wg sync.WaitGroup
			var failed error
			wg.Go(func() { _, failed = w.Commit(tagged("t", "u"), nil) })
			purgeTags(t, s, soft, "t")
			if e, _ := s.Lookup([]byte("k"), nil); e != nil && !(soft && e.Stale()) {
				t.Fatalf("%s: stored across a purge, soft %t", name, soft)
			}
			wg.Wait()
			e, _ := s.Lookup([]byte("k"), nil)
			if e != nil && !(soft && e.Stale()) {
				t.Fatalf("%s: stored after a purge, soft %t", name, soft)
			}
			if failed != nil && (!errors.Is(failed, store.ErrPurged) || e != nil) || soft && failed == nil && e == nil {
				t.Fatalf("%s: %v, entry %v", name, failed, e != nil)
			}
			if f.Purged() || !f.TagsPurged([]string{"a", "t"}) || f.TagsPurged([]string{"u"}) || f.TagsPurged(nil) {
				t.Fatal("the fetch does not know which tags were purged")
			}
			if e != nil {
				// What e carries counts, and what the 304 says it will.
				if _, err := f.Refresh(e, response(200)); !errors.Is(err, store.ErrPurged) {
					t.Fatalf("refreshed across a purge: %v", err)
				}
				if _, err := s.Refresh(e, response(200)); err != nil || e.Stale() {
					t.Fatalf("refresh after it: %v", err)
				}
				if _, err := f.Refresh(e, tagged("t")); !errors.Is(err, store.ErrPurged) {
					t.Fatalf("refreshed to a tag that was purged: %v", err)
				}
			}
			f.Done()
			// A later fetch is free to bring the tag.
			put(t, s, "k", nil, tagged("t"), nil)
			purgeTags(t, s, false, "t")
		}
		check(t, s)
		s.Close()
	}
}

// TestFetch_ManyTagPurges: what a fetch in flight remembers is bounded; beyond that it stores nothing
// that has tags.
func TestFetch_ManyTagPurges(t *testing.T) {
	s := open(t, ramOnly())
	f := s.Fetch("k")
	defer f.Done()
	commit := func(tags ...string) error {
		w, err := f.Create(0)
		must(t, err)
		_, err = w.Commit(tagged(tags...), nil)
		w.Discard()
		return err
	}
	for i := range store.MaxTagBars {
		purgeTags(t, s, false, fmt.Sprint("t", i))
	}
	for i := range store.MaxTagBars {
		if err := commit(fmt.Sprint("t", i)); !errors.Is(err, store.ErrPurged) {
			t.Fatalf("tag %d: %v", i, err)
		}
	}
	if err := commit("another"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		purgeTags(t, s, false, fmt.Sprint("more", i))
	}
	for _, tag := range []string{"t0", "more0", "another"} {
		if err := commit(tag); !errors.Is(err, store.ErrPurged) {
			t.Errorf("%s: %v", tag, err)
		}
	}
	if err := commit(); err != nil {
		t.Error(err)
	}
	check(t, s)
}

// TestTags_TakeTheirShareOfRAM: a flood of tags is bounded by the budget of RAM-only mode.
func TestTags_TakeTheirShareOfRAM(t *testing.T) {
	s := open(t, store.Options{Limits: store.Limits{Memory: 1 << 20}})
	for i := range 1000 {
		var tags []string
		for j := range 64 {
			tags = append(tags, fmt.Sprintf("%0250d-%02d", i, j))
		}
		put(t, s, fmt.Sprint(i), nil, tagged(tags...), nil)
	}
	if st := s.Stats(); st.Entries == 0 || st.Entries > 1<<20/(64*250) {
		t.Errorf("%d entries with 16 KiB of tags each in 1 MiB", st.Entries)
	}
	if n := s.TagCount(); int64(n) != 64*s.Stats().Entries {
		t.Errorf("%d tags", n)
	}
	check(t, s)
}
