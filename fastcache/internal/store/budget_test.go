package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

func count(dir string) (files int, bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") {
			if st, err := d.Info(); err == nil {
				files++
				bytes += (st.Size() + store.BlockSize - 1) / store.BlockSize * store.BlockSize
			}
		}
		return nil
	})
	return files, bytes
}

// TestBudgets_HoldUnderLoad samples the accounts, and the disk itself, while more is stored, refreshed
// and given up than fits.
func TestBudgets_HoldUnderLoad(t *testing.T) {
	for name, l := range map[string]store.Limits{
		"disk":  {Memory: 64 << 10, Disk: 2 << 20, PromoteBelow: 8 << 10},
		"items": {Memory: 64 << 10, Disk: 64 << 20, Items: 20, PromoteBelow: 8 << 10},
		"ram":   {Memory: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if l.Disk > 0 && os.Getuid() == 0 {
				dir = mountTmpfs(t, 256<<20) // for its exact and instant account of blocks
			}
			s := open(t, store.Options{Path: dir, Limits: l})
			var stop atomic.Bool
			var sampler, wg sync.WaitGroup
			sampler.Go(func() {
				for !stop.Load() {
					st := s.Stats()
					if st.DiskBytes > l.Disk || st.MemoryBytes > l.Memory || l.Items > 0 && st.Entries > int64(l.Items) {
						t.Errorf("over budget: %+v", st)
						return
					}
					time.Sleep(20 * time.Microsecond)
				}
			})
			const workers, largest = 4, 3 << 20
			if l.Disk > 0 && os.Getuid() == 0 {
				empty := usedBlocks(t, dir)
				sampler.Go(func() {
					// Beyond the accounts: the backlog, what the workers are evicting at the moment, a
					// sidecar being rewritten by each, and the 256 directories.
					limit := l.Disk + store.BacklogFor(l.Disk) + workers*(300_000+3*store.BlockSize) + 256*store.BlockSize
					worst := int64(0)
					for !stop.Load() {
						if n := usedBlocks(t, dir) - empty; n > worst {
							worst = n
						}
						time.Sleep(20 * time.Microsecond)
					}
					t.Logf("%d bytes on disk at most, budget %d", worst, l.Disk)
					if worst > limit {
						t.Errorf("%d bytes on disk, documented are %d", worst, limit)
					}
				})
			}
			pool := body("", largest)
			var full, big atomic.Int64
			for g := range workers {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(g), 7))
					for i := range 150 {
						key := fmt.Sprint("k", rng.IntN(200))
						p := pool[:[]int{0, 100, 5000, 20_000, 300_000, largest}[rng.IntN(6)]]
						size := int64(len(p))
						if rng.IntN(2) == 0 {
							size = -1
						}
						f := s.Fetch(key)
						w, err := f.Create(size)
						for rest := p; err == nil && len(rest) > 0; {
							n := min(len(rest), 32<<10)
							_, err = w.Write(rest[:n])
							rest = rest[n:]
						}
						var e *store.Entry
						if err == nil && i%10 > 0 {
							e, err = w.Commit(response(200), nil)
						}
						if w != nil {
							w.Discard()
						}
						f.Done()
						switch {
						case errors.Is(err, store.ErrFull):
							full.Add(1)
						case errors.Is(err, store.ErrTooBig):
							big.Add(1)
						case err != nil:
							t.Error(err)
						}
						if e != nil && i%3 == 0 {
							r := response(200)
							r.Header.Set("X", strings.Repeat("x", rng.IntN(9000)))
							if _, err := s.Refresh(e, r); err != nil && !errors.Is(err, store.ErrGone) {
								t.Error(err)
							}
						}
						if e, _ := s.Lookup(fmt.Append(nil, "k", rng.IntN(200)), nil); e != nil {
							if got, err := readBody(e); err == nil {
								if !bytes.Equal(got, pool[:len(got)]) {
									t.Errorf("%s has a wrong body", e.Key())
								}
							} else if !errors.Is(err, store.ErrGone) {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			stop.Store(true)
			sampler.Wait()
			if name != "items" && big.Load() == 0 {
				t.Error("the 3 MiB body was never too big")
			}
			t.Logf("%d full, %d too big, %+v", full.Load(), big.Load(), s.Stats())
			check(t, s)
		})
	}
}

// TestBudgets_KeyFlood: keys that come once leave nothing behind, neither entries nor files.
func TestBudgets_KeyFlood(t *testing.T) {
	n := 1000
	if long {
		n = 100_000
	}
	dir := t.TempDir()
	s := open(t, store.Options{Path: dir, Limits: store.Limits{Memory: 1 << 20, Disk: 32 << 20, Items: 200, PromoteBelow: 16 << 10}})
	for i := range n {
		put(t, s, fmt.Sprint("http://a/", i), header("Cookie", fmt.Sprint(i)), response(200, "Cookie"), body("", 2000))
	}
	check(t, s)
	if st := s.Stats(); st.Entries != 200 || st.Evictions[store.Count] != uint64(n-200) {
		t.Error(st)
	}
	if files, _ := count(dir); files != 400 {
		t.Errorf("%d files", files)
	}
}

// TestBudgets_Refresh: a longer header has to find its room too.
func TestBudgets_Refresh(t *testing.T) {
	for name, o := range map[string]store.Options{
		"disk": {Path: t.TempDir(), Limits: store.Limits{Disk: 10 * 2 * store.BlockSize}},
		"ram":  {Limits: store.Limits{Memory: 20_000}},
	} {
		s := open(t, o)
		for i := range 40 {
			put(t, s, fmt.Sprint("k", i), nil, response(200), body("", 10))
		}
		n := s.Stats().Entries
		for key := range s.Keys {
			e, _ := s.Lookup([]byte(key), nil)
			r := response(200)
			r.Header.Set("X", strings.Repeat("x", 3*store.BlockSize))
			if _, err := s.Refresh(e, r); err != nil && !errors.Is(err, store.ErrGone) {
				t.Error(err)
			}
			if st := s.Stats(); st.DiskBytes > o.Limits.Disk || st.MemoryBytes > o.Limits.Memory {
				t.Errorf("%s: %+v", name, st) // before check, which evicts down
			}
			check(t, s)
		}
		if st := s.Stats(); st.Entries >= n || st.Entries == 0 {
			t.Errorf("%s: %d entries became %d", name, n, st.Entries)
		}
	}
}

// TestBudgets_Backlog: with too many bodies waiting to be unlinked, who wants room unlinks.
func TestBudgets_Backlog(t *testing.T) {
	s, hold, release := holdUp(t, store.Options{Path: t.TempDir(), Limits: store.Limits{Disk: 8 << 20}})
	defer release()
	hold()
	limit := store.BacklogFor(8 << 20)
	s.AddBacklog(200, limit/10)
	used := put(t, s, "k", nil, response(200), body("k", 1<<20)).Size() + store.BlockSize
	// What the budget has left is room as well as what is set aside.
	if n := s.BacklogBytes(); n > limit+8<<20-used || n < 8<<20-used {
		t.Errorf("%d bytes wait to be unlinked, limit %d, budget left %d", n, limit, 8<<20-used)
	}
	for s.Reap() {
	}
	release()
	check(t, s)
}

func TestWriter_TooBigFreesAtOnce(t *testing.T) {
	for name, o := range map[string]store.Options{
		"disk": {Path: t.TempDir(), Limits: store.Limits{Disk: 1 << 20}},
		"ram":  {Limits: store.Limits{Memory: 1 << 20}},
	} {
		s := open(t, o)
		f := s.Fetch("k")
		defer f.Done()
		if _, err := f.Create(1 << 20); !errors.Is(err, store.ErrTooBig) {
			t.Errorf("%s: declared 1 MiB: %v", name, err)
		}
		if _, err := f.Create(1<<63 - 1); !errors.Is(err, store.ErrTooBig) {
			t.Errorf("%s: declared 2^63-1: %v", name, err)
		}
		keep := put(t, s, "keep", nil, response(200), body("keep", 1000))
		w, err := f.Create(-1)
		if err != nil {
			t.Fatal(err)
		}
		p := body("p", 32<<10)
		var sent int
		for err == nil {
			_, err = w.Write(p)
			sent += len(p)
		}
		if !errors.Is(err, store.ErrTooBig) || sent > 1<<20+len(p) {
			t.Errorf("%s: %v after %d bytes", name, err, sent)
		}
		if files, _ := count(o.Path); o.Path != "" && files > 2 {
			t.Errorf("%s: %d files", name, files)
		}
		if _, again := w.Write(p); !errors.Is(again, store.ErrTooBig) {
			t.Errorf("%s: then %v", name, again)
		}
		if _, again := w.Commit(response(200), nil); !errors.Is(again, store.ErrTooBig) {
			t.Errorf("%s: then %v", name, again)
		}
		w.Discard()
		_ = keep
		check(t, s)
	}
}

func TestWriter_Full(t *testing.T) {
	for name, o := range map[string]store.Options{
		"disk": {Path: t.TempDir(), Limits: store.Limits{Disk: 1 << 20}},
		"ram":  {Limits: store.Limits{Memory: 1 << 20}},
	} {
		s := open(t, o)
		f := s.Fetch("k")
		defer f.Done()
		put(t, s, "old", nil, response(200), body("old", 1000))
		w, err := f.Create(700_000)
		must(t, err)
		_, err = w.Write(body("k", 700_000))
		must(t, err)
		w2, err := f.Create(700_000)
		must(t, err)
		if _, err := w2.Write(body("k", 500_000)); !errors.Is(err, store.ErrFull) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "disk" {
			mustHit(t, s, "old", nil, body("old", 1000)) // nobody was evicted in vain
		}
		w.Discard()
		w, err = f.Create(700_000)
		must(t, err)
		_, err = w.Write(body("k", 700_000))
		must(t, err)
		if _, err := w.Commit(response(200), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		check(t, s)
	}
}

func TestWriter_LengthMustBeTheDeclaredOne(t *testing.T) {
	s := open(t, both(t))
	f := s.Fetch("k")
	defer f.Done()
	w, _ := f.Create(10)
	if _, err := w.Write(make([]byte, 11)); !errors.Is(err, store.ErrSize) {
		t.Error(err)
	}
	w, _ = f.Create(200_000)
	_, _ = w.Write(make([]byte, 199_999))
	if _, err := w.Commit(response(200), nil); !errors.Is(err, store.ErrSize) {
		t.Error(err)
	}
	check(t, s)
	if files, _ := count(s.ShardDir("k")); files > 0 {
		t.Errorf("%d files left", files)
	}
}

func TestSetLimits_EvictsDown(t *testing.T) {
	for name, o := range map[string]store.Options{"both": both(t), "ram": ramOnly()} {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			for i := range 400 {
				put(t, s, fmt.Sprint(i), nil, response(200), body("", 1000))
			}
			smaller := store.Limits{Memory: 100_000, PromoteBelow: 16 << 10}
			if o.Limits.Disk > 0 {
				smaller.Disk = 1 << 20
			}
			s.SetLimits(smaller)
			deadline := time.Now().Add(10 * time.Second)
			for st := s.Stats(); st.MemoryBytes > smaller.Memory || st.DiskBytes > smaller.Disk; st = s.Stats() {
				if time.Now().After(deadline) {
					t.Fatal(st)
				}
				time.Sleep(time.Millisecond)
			}
			check(t, s)
			s.SetLimits(store.Limits{})
			check(t, s)
			if st := s.Stats(); st.Entries != 0 {
				t.Error(st)
			}
		})
	}
}

func TestSetLimits_UnderCaptures(t *testing.T) {
	s := open(t, diskOnly(t))
	f := s.Fetch("k")
	defer f.Done()
	w, err := f.Create(10 << 20)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(make([]byte, 10<<20))
	put(t, s, "k", nil, response(200), body("old", 10))
	s.SetLimits(store.Limits{Disk: 1 << 20})
	s.Settle()
	if _, err := w.Commit(response(200), nil); !errors.Is(err, store.ErrFull) && !errors.Is(err, store.ErrTooBig) {
		t.Errorf("a body of ten times the budget: %v", err)
	}
	check(t, s)
	put(t, s, "k", nil, response(200), body("k", 10))
	check(t, s)
}

// TestWriter_AbandonedPromises: what is announced and does not arrive evicts nothing.
func TestWriter_AbandonedPromises(t *testing.T) {
	const (
		mib      = 1 << 20
		budget   = 200 * mib
		hot      = 190
		captures = 100
	)
	for name, o := range map[string]store.Options{
		"disk": {Path: t.TempDir(), Limits: store.Limits{Disk: budget}},
		"ram":  {Limits: store.Limits{Memory: budget}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			p := body("hot", mib)
			for i := range hot {
				key := fmt.Sprint("hot", i)
				put(t, s, key, nil, response(200), p)
				for range 3 {
					mustHit(t, s, key, nil, p)
				}
			}
			start := func() *store.Writer {
				f := s.Fetch("huge")
				t.Cleanup(f.Done)
				w, err := f.Create(budget - 2*store.BlockSize)
				must(t, err)
				return w
			}
			arrive := func(w *store.Writer, n int) {
				for ; n > 0; n -= 32 << 10 {
					_, err := w.Write(p[:32<<10])
					must(t, err)
				}
			}
			// Nothing has arrived.
			var all []*store.Writer
			for range captures {
				all = append(all, start())
			}
			if st := s.Stats(); st.Entries != hot {
				t.Errorf("%d of %d after announcements alone", st.Entries, hot)
			}
			for _, w := range all {
				w.Discard()
			}
			// One after the other: what one has given back the next one uses.
			for range captures {
				w := start()
				arrive(w, mib)
				w.Discard()
			}
			if st := s.Stats(); st.Entries < hot-1 {
				t.Errorf("%d of %d after captures one by one", st.Entries, hot)
			}
			// All at once: 100 MiB have arrived, 10 of them in free room. In RAM a chunk of
			// 256 KiB may be ahead of what is in it.
			all = nil
			for range captures {
				all = append(all, start())
			}
			for _, w := range all {
				arrive(w, mib)
			}
			want := int64(hot - captures + 10 - 2)
			if name == "ram" {
				want -= captures / 4
			}
			if st := s.Stats(); st.Entries < want {
				t.Errorf("%d of %d after captures at once, want %d", st.Entries, hot, want)
			} else {
				t.Logf("%d of %d entries left", st.Entries, hot)
			}
			for _, w := range all {
				w.Discard()
			}
			check(t, s)

			// And they go on, but together they get no further than half the budget and one more.
			for i := range hot {
				put(t, s, fmt.Sprint("hot", i), nil, response(200), p)
			}
			all = nil
			for range captures {
				all = append(all, start())
			}
			full := 0
			for range 4 * mib / len(p) {
				for _, w := range all {
					switch _, err := w.Write(p); {
					case errors.Is(err, store.ErrFull):
						full++
					case err != nil:
						t.Fatal(err)
					}
				}
			}
			if st := s.Stats(); full == 0 || st.Entries < hot/2-10 {
				t.Errorf("%d of %d after captures without end, %d refusals", st.Entries, hot, full)
			}
			for _, w := range all {
				w.Discard()
			}
			check(t, s)
		})
	}
}

// TestWriter_WholeBodiesDoNotStandBack: what has arrived completely is stored, whoever else holds how much.
func TestWriter_WholeBodiesDoNotStandBack(t *testing.T) {
	for name, o := range map[string]store.Options{
		"disk": {Path: t.TempDir(), Limits: store.Limits{Disk: 16 << 20}},
		"ram":  {Limits: store.Limits{Memory: 16 << 20}},
	} {
		s := open(t, o)
		for i := range 4500 { // full, and with what is small, so that little is left over
			put(t, s, fmt.Sprint(i), nil, response(200), body("", 3000))
		}
		p := body("p", 3<<19)
		f := s.Fetch("k")
		w, err := f.Create(int64(len(p)))
		must(t, err)
		_, err = w.Write(p)
		must(t, err)
		huge, err := s.Fetch("huge").Create(13 << 20)
		must(t, err)
		for range 10 {
			_, err = huge.Write(body("", 1<<20))
			must(t, err)
		}
		r := response(200)
		r.Header.Set("X", strings.Repeat("x", 3*store.BlockSize))
		if _, err := w.Commit(r, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f.Done()
		put(t, s, "small", nil, response(200), body("small", 10_000))
		huge.Discard()
		mustHit(t, s, "k", nil, p)
		mustHit(t, s, "small", nil, body("small", 10_000))
		check(t, s)
	}
}

// TestWriter_AnnouncedLengthTakesNoRAM: with RAM alone memory is taken as the body comes.
func TestWriter_AnnouncedLengthTakesNoRAM(t *testing.T) {
	s := open(t, store.Options{Limits: store.Limits{Memory: 64 << 20}})
	f := s.Fetch("k")
	defer f.Done()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, err := f.Create(63 << 20)
	must(t, err)
	_, err = w.Write([]byte("x"))
	must(t, err)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes for one that came", n)
	}
	if st := s.Stats(); st.MemoryBytes > 1<<20 {
		t.Errorf("%+v", st)
	}
	w.Discard()
	check(t, s)
}

func TestLimits_Body(t *testing.T) {
	const most = 100_000
	for name, o := range map[string]store.Options{"both": both(t), "disk": diskOnly(t), "ram": ramOnly()} {
		o.Limits.Body = most
		s := open(t, o)
		put(t, s, "declared", nil, response(200), body("", most))
		f := s.Fetch("k")
		if _, err := f.Create(most + 1); !errors.Is(err, store.ErrTooBig) {
			t.Errorf("%s: declared: %v", name, err)
		}
		w, err := f.Create(-1)
		must(t, err)
		_, err = w.Write(body("", most))
		must(t, err)
		if _, err := w.Write([]byte{1}); !errors.Is(err, store.ErrTooBig) {
			t.Errorf("%s: arriving: %v", name, err)
		}
		if _, err := w.Commit(response(200), nil); !errors.Is(err, store.ErrTooBig) {
			t.Errorf("%s: then: %v", name, err)
		}
		f.Done()
		s.SetLimits(store.Limits{Memory: o.Limits.Memory, Disk: o.Limits.Disk, Body: 10})
		mustHit(t, s, "declared", nil, body("", most))
		if _, err := store1(s, "k", nil, response(200), body("", 11)); !errors.Is(err, store.ErrTooBig) {
			t.Errorf("%s: lowered: %v", name, err)
		}
		s.SetLimits(o.Limits)
		o.Limits.Body = 0
		s.SetLimits(o.Limits)
		put(t, s, "k", nil, response(200), body("", most+1))
		check(t, s)
	}
}

// A body that nobody knows the length of takes a quarter of the store at most.
func TestBudget_EndlessBody(t *testing.T) {
	for name, limits := range map[string]store.Limits{
		"disk": {Disk: 16 << 20, Memory: 1 << 20},
		"RAM":  {Memory: 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			o := store.Options{Limits: limits}
			if limits.Disk > 0 {
				o.Path = t.TempDir()
			}
			s := open(t, o)
			hot := func(i int) []byte { return []byte(fmt.Sprintf("http://a/%d", i)) }
			for i := range 140 {
				put(t, s, string(hot(i)), nil, &store.Response{Status: 200, Born: time.Now(), Lifetime: time.Hour}, make([]byte, 100<<10))
				for range 3 {
					s.Lookup(hot(i), nil)
				}
			}
			f := s.Fetch("http://a/endless")
			defer f.Done()
			w, err := f.Create(-1)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Discard()
			for range 1000 {
				if _, err = w.Write(make([]byte, 64<<10)); err != nil {
					break
				}
			}
			left := 0
			for i := range 140 {
				if e, _ := s.Lookup(hot(i), nil); e != nil {
					left++
				}
			}
			t.Logf("%v, %d of 140 left", err, left)
			if err == nil || left < 95 {
				t.Errorf("%v, and %d of 140 are left", err, left)
			}
		})
	}
}
