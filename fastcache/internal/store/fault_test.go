package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

func watched(o store.Options) (store.Options, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	o.Logger = zap.New(core)
	return o, logs
}

// damages are what can happen to an entry's files behind the store's back.
var damages = []struct {
	name string
	do   func(t *testing.T, body, meta string)
}{
	{"body truncated", func(t *testing.T, body, _ string) { must(t, os.Truncate(body, 50)) }},
	{"body emptied", func(t *testing.T, body, _ string) { must(t, os.Truncate(body, 0)) }},
	{"body longer", func(t *testing.T, body, _ string) { must(t, os.Truncate(body, 100_000)) }},
	{"body bit flipped", func(t *testing.T, body, _ string) { flip(t, body, 77) }},
	{"body half written", func(t *testing.T, body, _ string) {
		b := read(t, body)
		clear(b[len(b)/2:])
		must(t, os.WriteFile(body, b, 0o640))
	}},
	{"body unlinked", func(t *testing.T, body, _ string) { must(t, os.Remove(body)) }},
	{"body symlinked to itself moved", func(t *testing.T, body, _ string) {
		must(t, os.Rename(body, filepath.Dir(filepath.Dir(body))+"/moved"))
		must(t, os.Symlink("../moved", body))
	}},
	{"body symlinked to a secret", func(t *testing.T, body, _ string) {
		must(t, os.Remove(body))
		must(t, os.Symlink("/etc/passwd", body))
	}},
	{"body a pipe", func(t *testing.T, body, _ string) {
		must(t, os.Remove(body))
		must(t, unix.Mkfifo(body, 0o640))
	}},
	{"body a directory", func(t *testing.T, body, _ string) {
		must(t, os.Remove(body))
		must(t, os.Mkdir(body, 0o750))
	}},
	{"sidecar truncated", func(t *testing.T, _, meta string) { must(t, os.Truncate(meta, 70)) }},
	{"sidecar emptied", func(t *testing.T, _, meta string) { must(t, os.Truncate(meta, 0)) }},
	{"sidecar bit flipped", func(t *testing.T, _, meta string) { flip(t, meta, 90) }},
	{"sidecar mark flipped", func(t *testing.T, _, meta string) { flip(t, meta, store.MarkOffset) }},
	{"sidecar huge", func(t *testing.T, _, meta string) { must(t, os.Truncate(meta, 1<<30)) }},
	{"sidecar unlinked", func(t *testing.T, _, meta string) { must(t, os.Remove(meta)) }},
	{"sidecar of the last version", func(t *testing.T, _, meta string) { version(t, meta, '3') }},
	{"sidecar of the next version", func(t *testing.T, _, meta string) { version(t, meta, '5') }},
	{"sidecar symlinked", func(t *testing.T, _, meta string) {
		must(t, os.Rename(meta, filepath.Dir(filepath.Dir(meta))+"/moved"))
		must(t, os.Symlink("../moved", meta))
	}},
	{"sidecar a pipe", func(t *testing.T, _, meta string) {
		must(t, os.Remove(meta))
		must(t, unix.Mkfifo(meta, 0o640))
	}},
	{"sidecar with another length of body", func(t *testing.T, _, meta string) {
		b := read(t, meta)
		binary.LittleEndian.PutUint64(b[56:], 99)
		store.SealSidecar(b)
		must(t, os.WriteFile(meta, b, 0o640))
	}},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func flip(t testing.TB, path string, at int) {
	t.Helper()
	b := read(t, path)
	b[at] ^= 4
	must(t, os.WriteFile(path, b, 0o640))
}

func version(t testing.TB, path string, v byte) {
	t.Helper()
	b := read(t, path)
	b[3] = v
	must(t, os.WriteFile(path, b, 0o640))
}

// damagedOnly does damage to one of three entries and expects a miss for that one, the others as they
// were, and nothing of the damaged one on disk.
func damagedOnly(t *testing.T, o store.Options, s *store.Store, reopen bool, size int, do func(*testing.T, string, string)) *store.Store {
	keys := []string{"http://a/1", "http://a/2", "http://b/3"}
	for _, key := range keys {
		put(t, s, key, header("Cookie", "x"), response(200, "Cookie"), body(key, size))
	}
	e, _ := s.Lookup([]byte(keys[1]), header("Cookie", "x"))
	path := s.BodyPath(e)
	if reopen {
		s.Close()
		do(t, path, path+".meta")
		s = open(t, o)
	} else {
		s.Cool()
		do(t, path, path+".meta")
	}

	served := func() (b []byte, err error) {
		e, _ := s.Lookup([]byte(keys[1]), header("Cookie", "x"))
		if e == nil || e.Response() == nil {
			return nil, store.ErrDamaged
		}
		return readBody(e)
	}
	if b, err := served(); err == nil {
		t.Fatalf("served %d bytes", len(b))
	} else if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("error %v", err)
	}
	mustMiss(t, s, keys[1], header("Cookie", "x"))
	if st := s.Stats(); st.Entries != 2 {
		t.Errorf("%+v", st)
	}
	s.Settle()
	for _, p := range []string{path, path + ".meta"} {
		if st, err := os.Lstat(p); err == nil && !st.IsDir() {
			t.Errorf("%s is left", p)
		}
	}
	for _, key := range []string{keys[0], keys[2]} {
		mustHit(t, s, key, header("Cookie", "x"), body(key, size))
	}
	// The key is as good as new.
	put(t, s, keys[1], header("Cookie", "x"), response(200, "Cookie"), body("new", size))
	mustHit(t, s, keys[1], header("Cookie", "x"), body("new", size))
	return s
}

func TestDamage(t *testing.T) {
	for _, d := range damages {
		for _, size := range []int{200, 30_000} { // promoted, and served as a file
			for _, reopen := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/size=%d/reopen=%t", d.name, size, reopen), func(t *testing.T) {
					o, logs := watched(both(t))
					s := open(t, o)
					s = damagedOnly(t, o, s, reopen, size, d.do)
					if logs.Len() > 2 {
						t.Errorf("%d lines", logs.Len())
					}
					// A body without a sidecar is an orphan, not damage.
					orphan := reopen && d.name == "sidecar unlinked"
					if st := s.Stats(); (st.Damaged == 1) == orphan {
						t.Errorf("%+v", st)
					}
					check(t, s)
				})
			}
		}
	}
}

func TestDamage_Unreadable(t *testing.T) {
	for _, suffix := range []string{"", ".meta"} {
		o, logs := watched(diskOnly(t))
		s := open(t, o)
		e := put(t, s, "k", nil, response(200), body("k", 1000))
		path := s.BodyPath(e) + suffix
		must(t, os.Chmod(path, 0))
		s.Cool()
		asNobody(t, func() {
			if suffix == "" {
				if _, err := e.Open(); !errors.Is(err, store.ErrDamaged) || !errors.Is(err, fs.ErrPermission) {
					t.Errorf("body: %v", err)
				}
			} else if e.Response() != nil {
				t.Error("read an unreadable sidecar")
			}
		})
		mustMiss(t, s, "k", nil)
		if logs.FilterMessageSnippet("damaged").FilterField(zap.String("path", path)).Len() != 1 {
			t.Errorf("%v", logs.All())
		}
	}
}

// TestDamage_Swapped: two bodies of one length change places; each sum is right for the other.
func TestDamage_Swapped(t *testing.T) {
	for _, what := range []string{"", ".meta"} {
		for _, reopen := range []bool{false, true} {
			for _, size := range []int{500, 50_000} {
				o := both(t)
				s := open(t, o)
				var paths []string
				for i := range 2 {
					h := header("Cookie", fmt.Sprint(i))
					e := put(t, s, "http://a/", h, response(200, "Cookie"), body(fmt.Sprint(i), size))
					paths = append(paths, s.BodyPath(e)+what)
				}
				if reopen {
					s.Close()
				} else {
					s.Cool()
				}
				a, b := read(t, paths[0]), read(t, paths[1])
				if bytes.Equal(a, b) {
					t.Fatal("nothing to swap")
				}
				must(t, os.Rename(paths[0], paths[0]+"x"))
				must(t, os.Rename(paths[1], paths[0]))
				must(t, os.Rename(paths[0]+"x", paths[1]))
				if reopen {
					s = open(t, o)
				}
				for i := range 2 {
					h := header("Cookie", fmt.Sprint(i))
					if e, _ := s.Lookup([]byte("http://a/"), h); e != nil && e.Response() != nil {
						if got, err := readBody(e); err == nil {
							t.Errorf("swapped %q, reopen %t: served, right %t", what, reopen, bytes.Equal(got, body(fmt.Sprint(i), size)))
						}
					}
				}
				if st := s.Stats(); st.Entries != 0 || st.Damaged != 2 {
					t.Errorf("swapped %q, reopen %t: %+v", what, reopen, st)
				}
				check(t, s)
			}
		}
	}
}

// TestDamage_ForeignFiles: what is not the store's is not touched, whatever it looks like.
func TestDamage_ForeignFiles(t *testing.T) {
	o := both(t)
	s := open(t, o)
	e := put(t, s, "k", nil, response(200), body("k", 100))
	path := s.BodyPath(e)
	dir, name := filepath.Split(path)
	s.Close()

	hash, seq, _ := strings.Cut(name, "-")
	foreign := []string{
		"README", "00", "zz/file", "0/x", "000/x", "AA/" + strings.ToUpper(name),
		"ff/README", "ff/sub/" + name, "ff/" + name, // of another directory's hash
		filepath.Base(dir) + "/notes.txt",
		filepath.Base(dir) + "/" + hash + "-0" + seq,       // a leading zero
		filepath.Base(dir) + "/" + hash[:23] + "-" + seq,   // a digit short
		filepath.Base(dir) + "/" + strings.ToUpper(name),   // upper case
		filepath.Base(dir) + "/" + name + ".meta.old",      // an editor's copy
		filepath.Base(dir) + "/" + name + ".tmp.meta",      // the wrong order
		filepath.Base(dir) + "/" + hash + "-1/" + "inside", // a directory with a body's name
		filepath.Base(dir) + "/" + hash + "-+1",
	}
	if strings.ToUpper(name) == name {
		t.Fatal("a name without letters")
	}
	for _, f := range foreign {
		p := filepath.Join(o.Path, f)
		must(t, os.MkdirAll(filepath.Dir(p), 0o750))
		must(t, os.WriteFile(p, []byte(f), 0o600))
	}
	s = open(t, o)
	mustHit(t, s, "k", nil, body("k", 100))
	if n := purgeFunc(t, s, func(string) bool { return true }, false); n != 1 {
		t.Errorf("purged %d", n)
	}
	s.Close()
	open(t, o)
	for _, f := range foreign {
		if got := read(t, filepath.Join(o.Path, f)); string(got) != f {
			t.Errorf("%s has changed", f)
		}
	}
}

func TestRebuild_DeletesWhatIsLeftOver(t *testing.T) {
	o := both(t)
	s := open(t, o)
	e := put(t, s, "k", nil, response(200), body("k", 100))
	path := s.BodyPath(e)
	left := []string{
		s.PathFor("k", 5), s.PathFor("k", 6) + ".tmp", s.PathFor("k", 7) + ".meta.tmp",
		s.PathFor("k", 8) + ".meta", s.PathFor("other", 9), s.PathFor("k", 1<<63),
	}
	s.Close()
	for _, p := range left {
		must(t, os.MkdirAll(filepath.Dir(p), 0o750))
		must(t, os.WriteFile(p, []byte("FCH9 something"), 0o640))
	}
	empty := filepath.Join(o.Path, "07")
	_ = os.Mkdir(empty, 0o750)
	s = open(t, o)
	for _, p := range append(left, empty) {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
	mustHit(t, s, "k", nil, body("k", 100))
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
	check(t, s)
}

// TestFault_ShardDirIsAFile: one key's directory is taken; the others work, and so does it afterwards.
func TestFault_ShardDirIsAFile(t *testing.T) {
	o, logs := watched(diskOnly(t))
	s := open(t, o)
	must(t, os.WriteFile(s.ShardDir("k"), nil, 0o600))
	for range 20 {
		for _, size := range []int{100, 200_000} {
			_, err := store1(s, "k", nil, response(200), body("k", size))
			if !errors.Is(err, unix.ENOTDIR) {
				t.Fatal(err)
			}
		}
	}
	put(t, s, "l", nil, response(200), body("l", 100))
	if logs.Len() != 1 || !strings.Contains(fmt.Sprint(logs.All()[0].ContextMap()), s.ShardDir("k")) {
		t.Errorf("%d lines: %v", logs.Len(), logs.All())
	}
	if st := s.Stats(); st.DiskErrors != 40 {
		t.Errorf("%+v", st)
	}
	s.Close()
	s = open(t, o)
	if n := s.Purge("k", false, store.Purged); n != 0 {
		t.Error(n)
	}
	must(t, os.Remove(s.ShardDir("k")))
	put(t, s, "k", nil, response(200), body("k", 100))
	mustHit(t, s, "k", nil, body("k", 100))
	check(t, s)
}

func TestFault_DiskFull(t *testing.T) {
	o, logs := watched(store.Options{Path: mountTmpfs(t, 8<<20), Limits: store.Limits{Disk: 1 << 30, Memory: 1 << 20, PromoteBelow: 16 << 10}})
	s := open(t, o)
	stored, failed := 0, 0
	for i := range 40 {
		key := fmt.Sprint("k", i)
		_, err := store1(s, key, nil, response(200), body(key, 1<<20))
		switch {
		case err == nil:
			stored++
		case errors.Is(err, unix.ENOSPC):
			failed++
		default:
			t.Fatal(err)
		}
	}
	if stored < 5 || failed < 30 {
		t.Errorf("%d stored, %d failed", stored, failed)
	}
	if logs.Len() != 1 || !strings.Contains(fmt.Sprint(logs.All()[0].ContextMap()), "no space left") {
		t.Errorf("%d lines: %v", logs.Len(), logs.All())
	}
	check(t, s) // among others: no temporary file is left
	for i := range stored {
		mustHit(t, s, fmt.Sprint("k", i), nil, body(fmt.Sprint("k", i), 1<<20))
	}
	// With the last block gone small ones fail too, at whichever step.
	for i := range 3000 {
		if _, err := store1(s, fmt.Sprint("small", i), nil, response(200), body("x", 100)); err != nil {
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
			break
		}
	}
	check(t, s)
	if n := s.Purge("k0", false, store.Purged); n != 1 {
		t.Error(n)
	}
	s.Settle()
	put(t, s, "again", nil, response(200), body("again", 500_000))
	mustHit(t, s, "again", nil, body("again", 500_000))

	// Full at the start: no reason not to start.
	for i := 0; ; i++ {
		if os.WriteFile(filepath.Join(o.Path, fmt.Sprint("filler", i)), make([]byte, 4096), 0o600) != nil {
			break
		}
	}
	s.Close()
	must(t, os.Remove(filepath.Join(o.Path, ".lock")))
	for i := 0; ; i++ {
		if os.WriteFile(filepath.Join(o.Path, fmt.Sprint("more", i)), make([]byte, 4096), 0o600) != nil {
			break
		}
	}
	s = open(t, o)
	mustHit(t, s, "again", nil, body("again", 500_000))
}

func TestFault_ReadOnly(t *testing.T) {
	dir := mountTmpfs(t, 8<<20)
	o := store.Options{Path: dir, Limits: store.Limits{Disk: 1 << 30}}
	s := open(t, o)
	put(t, s, "k", nil, response(200), body("k", 1000))
	e, _ := s.Lookup([]byte("k"), nil)
	remount(t, dir, true)
	if _, err := store1(s, "l", nil, response(200), body("l", 1000)); !errors.Is(err, unix.EROFS) {
		t.Error(err)
	}
	if _, err := s.Refresh(e, response(200)); !errors.Is(err, unix.EROFS) {
		t.Error(err)
	}
	mustHit(t, s, "k", nil, body("k", 1000))
	// What cannot be marked on disk is dropped rather than forgotten by a restart.
	if n := s.Purge("k", true, store.Purged); n != 1 {
		t.Error(n)
	}
	mustMiss(t, s, "k", nil)
	s.Close()
	if _, err := store.Open(o); !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), dir) {
		t.Errorf("opening a read-only path: %v", err)
	}
	remount(t, dir, false)
	s = open(t, o)
	put(t, s, "l", nil, response(200), body("l", 1000))
	check(t, s)
}

func TestOpen_PathsThatCannotWork(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	locked := filepath.Join(dir, "locked")
	must(t, os.Mkdir(locked, 0o555))
	_ = os.Chmod(dir, 0o755)
	limits := store.Limits{Disk: 1 << 20}
	for _, path := range []string{file, filepath.Join(file, "sub"), ""} {
		if _, err := store.Open(store.Options{Path: path, Limits: limits}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", path, err)
		}
	}
	asNobody(t, func() {
		for _, path := range []string{locked, filepath.Join(locked, "sub")} {
			_, err := store.Open(store.Options{Path: path, Limits: limits})
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
				t.Errorf("%q: %v", path, err)
			}
		}
	})
	o := store.Options{Path: filepath.Join(dir, "new", "sub"), Limits: limits}
	s := open(t, o)
	if _, err := store.Open(o); err == nil || !strings.Contains(err.Error(), o.Path) {
		t.Errorf("a second store on one path: %v", err)
	}
	s.Close()
	open(t, o)
	if st, err := os.Stat(o.Path); err != nil || st.Mode().Perm()&0o007 != 0 {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

func TestFiles_Modes(t *testing.T) {
	s := open(t, diskOnly(t))
	for _, size := range []int{10, 200_000} {
		e := put(t, s, fmt.Sprint(size), nil, response(200), body("", size))
		for path, want := range map[string]fs.FileMode{s.BodyPath(e): 0o640, s.BodyPath(e) + ".meta": 0o640, filepath.Dir(s.BodyPath(e)): 0o750} {
			if st, err := os.Lstat(path); err != nil || st.Mode().Perm()&^want != 0 {
				t.Errorf("%s: %v, %v", path, st.Mode(), err)
			}
		}
	}
}

// TestVerify_ChangedFileIsReadAgain: a body that was verified is not trusted once its file is another.
func TestVerify_ChangedFileIsReadAgain(t *testing.T) {
	s := open(t, diskOnly(t))
	e := put(t, s, "k", nil, response(200), body("k", 1000))
	mustHit(t, s, "k", nil, body("k", 1000))
	path := s.BodyPath(e)
	b := read(t, path)
	must(t, os.WriteFile(path, b, 0o640)) // the same bytes, a new mtime
	mustHit(t, s, "k", nil, body("k", 1000))
	b[1] ^= 1
	must(t, os.WriteFile(path, b, 0o640))
	if _, err := e.Open(); !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
}
