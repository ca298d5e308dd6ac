package store_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// flood asks for a hot set in turn with ten times as many keys that are never asked again, and
// returns the hot set's hit ratio.
func flood(t *testing.T, s *store.Store, hot, rounds int) float64 {
	ask := func(key string) bool {
		if e, _ := s.Lookup([]byte(key), nil); e != nil {
			if e.Response() == nil {
				t.Fatal("no response")
			}
			return true
		}
		put(t, s, key, nil, response(200), body(key, 100))
		return false
	}
	for range 4 {
		for i := range hot {
			ask(fmt.Sprintf("hot%d", i))
		}
	}
	hits, once := 0, 0
	for range rounds {
		for i := range hot {
			if ask(fmt.Sprintf("hot%d", i)) {
				hits++
			}
			for range 10 {
				once++
				ask(fmt.Sprintf("once%d", once))
			}
		}
	}
	return float64(hits) / float64(hot*rounds)
}

func TestEviction_FloodLeavesTheHotSet(t *testing.T) {
	for _, o := range []store.Options{
		{Limits: store.Limits{Memory: 64 << 20, Items: 500}},
		{Limits: store.Limits{Memory: 500 * 900}},
	} {
		s := open(t, o)
		if ratio := flood(t, s, 200, 6); ratio < 0.9 {
			t.Errorf("%+v: hot set keeps %.1f %% hits", o.Limits, 100*ratio)
		}
		check(t, s)
	}
	t.Run("disk", func(t *testing.T) {
		s := open(t, store.Options{Path: t.TempDir(), Limits: store.Limits{Disk: 100 * 8192}})
		if ratio := flood(t, s, 40, 5); ratio < 0.9 {
			t.Errorf("hot set keeps %.1f %% hits", 100*ratio)
		}
		check(t, s)
	})
	t.Run("warm", func(t *testing.T) {
		// The RAM tier in front of a disk that holds everything: bodies of the hot set stay in RAM.
		s := open(t, store.Options{Path: t.TempDir(), Limits: store.Limits{Memory: 200 << 10, Disk: 1 << 30, PromoteBelow: 4096}})
		for i := range 300 {
			put(t, s, fmt.Sprintf("k%d", i), nil, response(200), body("", 1000))
		}
		get := func(i int) bool {
			e, _ := s.Lookup(fmt.Appendf(nil, "k%d", i), nil)
			was := e.Resident()
			b, err := e.Open()
			if err != nil {
				t.Fatal(err)
			}
			b.Close()
			return was
		}
		for range 4 {
			for i := range 40 {
				get(i)
			}
		}
		resident := 0
		for i := range 260 {
			get(40 + i)
			if get(i % 40) {
				resident++
			}
		}
		if resident < 234 {
			t.Errorf("the hot set was in RAM %d times of 260", resident)
		}
		check(t, s)
	})
	t.Run("NoTouch", func(t *testing.T) {
		// The check's check: without recorded hits the flood must win.
		s := open(t, store.Options{NoTouch: true, Limits: store.Limits{Memory: 64 << 20, Items: 500}})
		if ratio := flood(t, s, 200, 5); ratio > 0.5 {
			t.Errorf("hot set keeps %.1f %% hits unrecorded", 100*ratio)
		}
	})
}

// TestEviction_GhostsComeBack: a key that returns soon after its eviction goes to the main queue and
// survives a flood that it would not survive in the small one. Not in every store: a ghost's group has
// four places, and the hash that fills them is seeded at random.
func TestEviction_GhostsComeBack(t *testing.T) {
	const stores = 40
	back := 0
	for range stores {
		s := open(t, store.Options{Limits: store.Limits{Memory: 64 << 20, Items: 100}})
		fill := func(prefix string, n int) {
			for i := range n {
				put(t, s, fmt.Sprint(prefix, i), nil, response(200), nil)
			}
		}
		put(t, s, "ghost", nil, response(200), nil)
		fill("a", 120)
		mustMiss(t, s, "ghost", nil)
		put(t, s, "ghost", nil, response(200), nil)
		fill("b", 150)
		if e, _ := s.Lookup([]byte("ghost"), nil); e != nil {
			back++
		}
		s.Close()
	}
	if back < stores*3/4 {
		t.Errorf("the ghost was remembered in %d of %d stores", back, stores)
	}
}

func TestWheel_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := int64(1_772_000_000)
		w := store.NewWheel(now)
		type item struct {
			deadline uint32
			by       int64 // when it must be out: what is due when added goes at the next second
			remove   func()
		}
		high := now // a clock that goes back is waited for
		live := map[int]item{}
		next := 0
		delta := rapid.OneOf(rapid.Int64Range(-100, 200), rapid.Int64Range(0, 1<<13), rapid.Int64Range(0, 1<<19), rapid.Int64Range(0, 1<<26), rapid.Int64Range(0, 1<<31-1))
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				d := uint32(now + delta.Draw(t, "due"))
				live[next] = item{d, max(int64(d), high+1), w.Add(next, d)}
				next++
			},
			"remove": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip()
				}
				ids := make([]int, 0, len(live))
				for id := range live {
					ids = append(ids, id)
				}
				sort.Ints(ids)
				id := rapid.SampledFrom(ids).Draw(t, "id")
				live[id].remove()
				delete(live, id)
			},
			"advance": func(t *rapid.T) {
				now += delta.Draw(t, "by")
				high = max(high, now)
				for {
					id, ok := w.Next(now)
					if !ok {
						break
					}
					if it, there := live[id]; !there || int64(it.deadline) > now {
						t.Fatalf("%d handed out at %d, due %d, live %t", id, now, it.deadline, there)
					}
					delete(live, id)
				}
				for id, it := range live {
					if it.by <= now {
						t.Fatalf("%d was due at %d, it is %d", id, it.deadline, now)
					}
				}
			},
		})
	})
}

func TestExpiry_SweeperDropsWhatIsDue(t *testing.T) {
	for name, o := range map[string]store.Options{"both": both(t), "ram": ramOnly()} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			o.Now = clock.Now
			s := open(t, o)
			rng := rand.New(rand.NewPCG(1, 2))
			due := map[string]time.Time{}
			for i := range 200 {
				key := fmt.Sprint("k", i)
				r := response(200)
				if i%10 > 0 {
					r.Discard = clock.Now().Add(time.Duration(rng.IntN(100_000)) * time.Second)
				}
				due[key] = r.Discard
				put(t, s, key, nil, r, body(key, 10))
			}
			for clock.Now().Before(newClock().Now().Add(110_000 * time.Second)) {
				clock.Advance(time.Duration(rng.IntN(10_000)) * time.Second)
				s.Sweep()
				for key, at := range due {
					e, _ := s.Lookup([]byte(key), nil)
					if gone := !at.IsZero() && !at.After(clock.Now()); gone != (e == nil) {
						t.Fatalf("%s: due %v, now %v, entry %v", key, at, clock.Now(), e != nil)
					}
				}
			}
			if st := s.Stats(); st.Entries != 20 || st.Evictions[store.Expired] != 180 {
				t.Error(st)
			}
			check(t, s)
		})
	}
}
