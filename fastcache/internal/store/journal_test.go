package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// many is enough entries for a purge to write a journal.
const many = store.JournalMin + 16

func key(i int) string { return fmt.Sprint("http://a/", i) }

func fill(t testing.TB, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		put(t, s, key(i), nil, tagged(fmt.Sprint("t", i%2)), body(key(i), 100))
	}
}

// holdUp opens a store whose background stands still until release is called: it is made to report an
// unlink that fails, and kept waiting by the logger.
func holdUp(t *testing.T, o store.Options) (s *store.Store, hold, release func()) {
	reached, resume := make(chan struct{}), make(chan struct{})
	core := zapcore.RegisterHooks(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "m"}), zapcore.AddSync(io.Discard), zapcore.WarnLevel),
		func(e zapcore.Entry) error {
			if e.Message == "removing a file" {
				close(reached)
				<-resume
			}
			return nil
		})
	o.Logger = zap.New(core)
	s = open(t, o)
	hold = func() {
		must(t, os.MkdirAll(s.PathFor("stuck", 1)+"/full", 0o700))
		if path := s.AddCorpse("stuck"); path != s.PathFor("stuck", 1) {
			t.Fatal(path)
		}
		<-reached
	}
	return s, hold, sync.OnceFunc(func() { close(resume) })
}

func journalsIn(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, ".purge-*"))
	must(t, err)
	return files
}

// pretend lays a journal of n of s's entries into its directory, as if the process had been killed
// right after a purge, and closes s.
func pretend(t testing.TB, s *store.Store, dir string, n int, soft bool) (path string) {
	t.Helper()
	var numbers []uint64
	for i := range n {
		e, _ := s.Lookup([]byte(key(i)), nil)
		numbers = append(numbers, s.Number(e))
	}
	s.Close()
	path = filepath.Join(dir, fmt.Sprintf(".purge-%x", slices.Max(numbers)+1))
	must(t, os.WriteFile(path, store.EncodeJournal(numbers, soft), 0o640))
	return path
}

func TestJournal_KilledAfterAPurge(t *testing.T) {
	for _, soft := range []bool{false, true} {
		t.Run(fmt.Sprint("soft=", soft), func(t *testing.T) {
			o := diskOnly(t)
			s := open(t, o)
			fill(t, s, many)
			pretend(t, s, o.Path, many/2, soft)
			for range 2 { // and what it did lasts
				s = open(t, o)
				for i := range many {
					if i >= many/2 || soft {
						if e := mustHit(t, s, key(i), nil, body(key(i), 100)); e.Stale() != (i < many/2) {
							t.Errorf("%d: stale %t", i, e.Stale())
						}
						continue
					}
					mustMiss(t, s, key(i), nil)
				}
				check(t, s) // among others: neither journal nor files are left
				if st := s.Stats(); st.Damaged > 0 {
					t.Errorf("%+v", st)
				}
				s.Close()
			}
		})
	}
}

// TestJournal_PurgedWhileItIsRead: a purge of the key that comes before the rebuild does not matter to
// the journal, nor the journal to what is stored anew.
func TestJournal_PurgedWhileItIsRead(t *testing.T) {
	o := diskOnly(t)
	s := open(t, o)
	fill(t, s, many)
	pretend(t, s, o.Path, many, false)
	s, err := store.Open(o)
	must(t, err)
	if n := s.Purge(key(0), false, store.Purged); n != 0 {
		t.Errorf("purged %d of what was purged before", n)
	}
	put(t, s, key(1), nil, response(200), body("new", 10))
	if n := purgeFunc(t, s, func(k string) bool { return k != key(1) }, false); n != 0 {
		t.Errorf("purged %d of what was purged before", n)
	}
	<-s.Ready()
	check(t, s)
	s.Close()
	s = open(t, o)
	mustHit(t, s, key(1), nil, body("new", 10))
	if st := s.Stats(); st.Entries != 1 {
		t.Errorf("%+v", st)
	}
}

// TestJournal_TwoOfOneEntry: hard outweighs soft, whichever is read first.
func TestJournal_TwoOfOneEntry(t *testing.T) {
	for _, soft := range []bool{false, true} {
		o := diskOnly(t)
		s := open(t, o)
		fill(t, s, 1)
		e, _ := s.Lookup([]byte(key(0)), nil)
		must(t, os.WriteFile(filepath.Join(o.Path, ".purge-1"), store.EncodeJournal([]uint64{s.Number(e)}, !soft), 0o640))
		pretend(t, s, o.Path, 1, soft)
		s = open(t, o)
		mustMiss(t, s, key(0), nil)
		check(t, s)
		s.Close()
	}
}

// TestJournal_Damaged: whatever it may have named is not served.
func TestJournal_Damaged(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, path string){
		"emptied":          func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"truncated":        func(t *testing.T, path string) { must(t, os.Truncate(path, 16+8*5)) },
		"odd length":       func(t *testing.T, path string) { must(t, os.Truncate(path, 16+8*5+3)) },
		"longer":           func(t *testing.T, path string) { must(t, os.Truncate(path, 16+8*500)) },
		"huge":             func(t *testing.T, path string) { must(t, os.Truncate(path, 1<<40)) },
		"bit flipped":      func(t *testing.T, path string) { flip(t, path, 30) },
		"kind flipped":     func(t *testing.T, path string) { flip(t, path, 8) },
		"the next version": func(t *testing.T, path string) { version(t, path, '2') },
		"symlinked": func(t *testing.T, path string) {
			must(t, os.Rename(path, path+"x"))
			must(t, os.Symlink(filepath.Base(path)+"x", path))
		},
		"a pipe": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, unix.Mkfifo(path, 0o640))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, logs := watched(diskOnly(t))
			s := open(t, o)
			fill(t, s, many)
			do(t, pretend(t, s, o.Path, 10, false))
			s = open(t, o)
			if st := s.Stats(); st.Entries != 0 || st.Damaged != 1 {
				t.Errorf("%+v", st)
			}
			if logs.FilterMessageSnippet("journal").Len() != 1 {
				t.Errorf("%v", logs.All())
			}
			check(t, s)
			put(t, s, "k", nil, response(200), body("k", 10))
			s.Close()
			s = open(t, o)
			mustHit(t, s, "k", nil, body("k", 10))
			check(t, s)
		})
	}
}

func TestJournal_Names(t *testing.T) {
	o := diskOnly(t)
	s := open(t, o)
	fill(t, s, 10)
	s.Close()
	foreign := []string{".purge", ".purge-", ".purge-xyz", ".purge-0a", ".purge-A", ".purge-1.old", ".purge-1.tmp.tmp", "purge-1", ".purge-+1", ".purge-11112222333344445"}
	for _, name := range foreign {
		must(t, os.WriteFile(filepath.Join(o.Path, name), []byte(name), 0o600))
	}
	must(t, os.WriteFile(filepath.Join(o.Path, ".purge-1.tmp"), []byte("half"), 0o600))
	s = open(t, o)
	if st := s.Stats(); st.Entries != 10 || st.Damaged != 0 {
		t.Errorf("%+v", st)
	}
	for _, name := range foreign {
		if string(read(t, filepath.Join(o.Path, name))) != name {
			t.Errorf("%s has changed", name)
		}
	}
	if _, err := os.Lstat(filepath.Join(o.Path, ".purge-1.tmp")); err == nil {
		t.Error("an unfinished journal is left")
	}
}

// TestJournal_OutlivesWhatItCannotRemove: the journal stays as long as a sidecar that it names.
func TestJournal_OutlivesWhatItCannotRemove(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		o := diskOnly(t)
		s := open(t, o)
		fill(t, s, many)
		e, _ := s.Lookup([]byte(key(3)), nil)
		if meta := s.BodyPath(e) + ".meta"; stuck {
			must(t, os.Remove(meta))
			must(t, os.MkdirAll(meta+"/full", 0o700)) // a directory with something in it cannot be unlinked
		}
		if n := purgeFunc(t, s, func(string) bool { return true }, false); n != many {
			t.Errorf("purged %d", n)
		}
		s.Settle()
		if n := len(journalsIn(t, o.Path)); (n == 1) != stuck {
			t.Errorf("stuck %t, %d journals", stuck, n)
		}
	}
}

// TestJournal_DiskFull: without room for a journal a purge unlinks by itself.
func TestJournal_DiskFull(t *testing.T) {
	o := store.Options{Path: mountTmpfs(t, 8<<20), Limits: store.Limits{Disk: 1 << 30}}
	s, hold, release := holdUp(t, o)
	defer release()
	fill(t, s, many)
	hold()
	for i := 0; ; i++ {
		if os.WriteFile(filepath.Join(o.Path, fmt.Sprint("filler", i)), make([]byte, 4096), 0o600) != nil {
			break
		}
	}
	if n := purgeFunc(t, s, func(k string) bool { return k != key(0) }, false); n != many-1 {
		t.Errorf("purged %d", n)
	}
	if metas, err := filepath.Glob(filepath.Join(o.Path, "*", "*.meta")); err != nil || len(metas) != 1 {
		t.Errorf("%d sidecars are left, %v", len(metas), err)
	}
	release()
	check(t, s)
}

// TestPurge_BeforeItsFilesAreGone: with all unlinking held up the purge is as final as it gets.
func TestPurge_BeforeItsFilesAreGone(t *testing.T) {
	for _, soft := range []bool{false, true} {
		for _, byTag := range []bool{false, true} {
			o := diskOnly(t)
			s, hold, release := holdUp(t, o)
			defer release()
			fill(t, s, many)
			hold()
			purge := func() int { return purgeFunc(t, s, func(string) bool { return true }, soft) }
			if byTag {
				purge = func() int { return purgeTags(t, s, soft, "t0", "t1") }
			}
			if n := purge(); n != many {
				t.Errorf("purged %d", n)
			}
			if n := len(journalsIn(t, o.Path)); n != 1 {
				t.Errorf("%d journals", n)
			}
			for i := range many {
				e, _ := s.Lookup([]byte(key(i)), nil)
				if (e != nil) != soft || e != nil && !e.Stale() {
					t.Fatalf("soft %t: %d is there, %t", soft, i, e != nil)
				}
			}
			// What comes after it is not its business: neither now nor after a restart.
			put(t, s, key(0), nil, response(200), body("new", 10))
			if soft {
				e, _ := s.Lookup([]byte(key(1)), nil)
				if _, err := s.Refresh(e, response(201)); err != nil || e.Stale() {
					t.Errorf("refresh: %v", err)
				}
				e, _ = s.Lookup([]byte(key(2)), nil)
				s.Remove(e, store.Damaged)
			}
			copyOf := store.Options{Path: t.TempDir(), Limits: o.Limits}
			must(t, os.CopyFS(copyOf.Path, os.DirFS(o.Path))) // what a process killed now would leave
			release()
			check(t, s)
			s.Close()
			s = open(t, o)
			killed := open(t, copyOf)
			check(t, s)
			check(t, killed)
			for i := range many {
				for name, s := range map[string]*store.Store{"closed": s, "killed": killed} {
					e, _ := s.Lookup([]byte(key(i)), nil)
					switch {
					case i == 0:
						mustHit(t, s, key(0), nil, body("new", 10))
					case i == 1 && soft && name == "closed":
						if e == nil || e.Stale() || e.Response().Status != 201 {
							t.Error("the refresh was lost")
						}
					case (e != nil) != (soft && i != 2) || e != nil && !e.Stale():
						t.Fatalf("soft %t, %s: %d is there, %t", soft, name, i, e != nil)
					}
				}
			}
			s.Close()
		}
	}
}

// TestPurge_SoftMeetsARemoval: an entry that is on its way out when a soft purge finds it is not kept by
// the purge's journal.
func TestPurge_SoftMeetsARemoval(t *testing.T) {
	o := diskOnly(t)
	s, hold, release := holdUp(t, o)
	defer release()
	fill(t, s, many)
	hold()
	e, _ := s.Lookup([]byte(key(0)), nil)
	finish := s.TakeOnly(e)
	if n := purgeFunc(t, s, func(string) bool { return true }, true); n != many-1 {
		t.Errorf("purged %d", n)
	}
	finish()
	if _, err := os.Lstat(s.BodyPath(e) + ".meta"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the removed entry's sidecar: %v", err)
	}
	release()
	check(t, s)
}

// TestPurge_Cancelled: a purge stops when its context is over, and tells how far it got.
func TestPurge_Cancelled(t *testing.T) {
	for name, o := range tiers(t) {
		s := open(t, o)
		n := many
		if name == "ram" {
			n = 5000 // many in each shard
		}
		fill(t, s, n)
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		got, err := s.PurgeFunc(ctx, func(string) bool {
			if calls++; calls == 20 {
				cancel()
			}
			return true
		}, false, store.Purged)
		if !errors.Is(err, context.Canceled) || calls != 20 {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
		if st := s.Stats(); st.Entries != int64(n-got) {
			t.Errorf("%s: purged %d, %+v", name, got, st)
		}
		for _, purge := range []func() (int, error){
			func() (int, error) { return s.PurgeTags(ctx, []string{"t0"}, false, store.Purged) },
			func() (int, error) {
				return s.PurgeFunc(ctx, func(string) bool { return true }, false, store.Purged)
			},
		} {
			if n, err := purge(); n != 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		}
		check(t, s)
	}
}

func TestJournal_RoundTrip(t *testing.T) {
	for _, numbers := range [][]uint64{nil, {0}, {7}, {1, 2, 1 << 40, 1<<64 - 1}} {
		for _, soft := range []bool{false, true} {
			got, gotSoft, err := store.DecodeJournal(store.EncodeJournal(numbers, soft))
			if err != nil || gotSoft != soft || !slices.Equal(got, numbers) {
				t.Errorf("%v %t: %v %t %v", numbers, soft, got, gotSoft, err)
			}
		}
	}
	if _, _, err := store.DecodeJournal(store.EncodeJournal([]uint64{5, 5}, true)); err == nil {
		t.Error("one number twice is not seen")
	}
	b := store.EncodeJournal([]uint64{5, 6, 1 << 50}, true)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, _, err := store.DecodeJournal(b); err == nil {
				t.Fatalf("bit %d of byte %d is not seen", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
	for n := range b {
		if _, _, err := store.DecodeJournal(b[:n]); err == nil {
			t.Fatalf("cut to %d bytes is not seen", n)
		}
	}
}

// FuzzJournal looks for input that is read but not written so, or that makes the reader panic or
// allocate out of proportion.
func FuzzJournal(f *testing.F) {
	f.Add(store.EncodeJournal([]uint64{1, 2, 3}, false), false)
	f.Add(store.EncodeJournal(nil, true), true)
	f.Add([]byte("FCJ2"), false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = bytes.Clone(b)
			store.SealJournal(b)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		numbers, soft, err := store.DecodeJournal(b)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+10*len(b)); got > limit {
			t.Fatalf("%d bytes make it allocate %d", len(b), got)
		}
		if err == nil && !bytes.Equal(store.EncodeJournal(numbers, soft), b) {
			t.Fatalf("% x is read, but written as % x", b, store.EncodeJournal(numbers, soft))
		}
	})
}

// childPurger fills groups of keys and purges each, over and over, until it is killed. It prints a group
// when its purge is over.
func childPurger(path string, seed int) error {
	s, err := store.Open(store.Options{Path: path, Limits: store.Limits{Disk: 64 << 20}})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	for round := 0; ; round++ {
		group := fmt.Sprintf("http://h/%d/%d/", seed, round)
		n := store.JournalMin + rng.IntN(100)
		for i := range n {
			if _, err := store1(s, group+fmt.Sprint(i), nil, tagged("all", group), body(group, 50)); err != nil {
				return err
			}
		}
		soft, got := rng.IntN(2) == 0, 0
		if rng.IntN(2) == 0 {
			got, err = s.PurgeTags(context.Background(), []string{group}, soft, store.Purged)
		} else {
			got, err = s.PurgeFunc(context.Background(), func(key string) bool { return strings.HasPrefix(key, group) }, soft, store.Purged)
		}
		if err != nil || got != n {
			return fmt.Errorf("purged %d of %d: %w", got, n, err)
		}
		fmt.Println(soft, group)
		if rng.IntN(5) == 0 {
			return unix.Kill(os.Getpid(), unix.SIGKILL) // at the worst moment
		}
	}
}

// TestCrash_KilledAfterPurges: whatever a killed process has purged stays purged, hard or soft.
func TestCrash_KilledAfterPurges(t *testing.T) {
	rounds := 15
	if long {
		rounds = 150
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	gone, stale := map[string]bool{}, map[string]bool{}
	interrupted := 0
	for round := range rounds {
		cmd := command("purger", dir, round)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		for line := range linesUntilKilled(cmd, out, time.Duration(rng.IntN(150))*time.Millisecond) {
			soft, group, ok := strings.Cut(line, " ")
			switch {
			case !ok || soft == "FAILED":
				t.Fatal(line)
			case soft == "true":
				stale[group] = true
			default:
				gone[group] = true
			}
		}
		interrupted += len(journalsIn(t, dir))
		s, err := store.Open(store.Options{Path: dir, Limits: store.Limits{Disk: 64 << 20}})
		must(t, err)
		<-s.Ready()
		check(t, s)
		for key := range s.Keys {
			group := key[:strings.LastIndexByte(key, '/')+1]
			e, _ := s.Lookup([]byte(key), nil)
			if gone[group] || stale[group] && !e.Stale() {
				t.Errorf("%s was purged and is back", key)
			}
		}
		if st := s.Stats(); st.Damaged > 0 {
			t.Errorf("round %d: %+v", round, st)
		}
		s.Close()
	}
	t.Logf("%d groups gone, %d stale, %d journals found by the next start", len(gone), len(stale), interrupted)
	if len(gone) == 0 || len(stale) == 0 || interrupted == 0 {
		t.Error("the child did not get far enough to test anything")
	}
}
