package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// The test binary runs itself as a child for what a process cannot do to itself: be killed, or run out
// of file descriptors.
const (
	roleEnv = "STORE_TEST_ROLE"
	pathEnv = "STORE_TEST_PATH"
	seedEnv = "STORE_TEST_SEED"
)

func child(role string) {
	var err error
	switch role {
	case "writer":
		err = childWriter(os.Getenv(pathEnv), os.Getenv(seedEnv))
	case "purger":
		seed, _ := strconv.Atoi(os.Getenv(seedEnv))
		err = childPurger(os.Getenv(pathEnv), seed)
	case "starve":
		err = childStarve(os.Getenv(pathEnv))
	default:
		err = errors.New("unknown role")
	}
	if err != nil {
		fmt.Println("FAILED", err)
		os.Exit(1)
	}
	fmt.Println("OK")
	os.Exit(0)
}

func command(role, path string, seed int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, pathEnv+"="+path, seedEnv+"="+strconv.Itoa(seed))
	return cmd
}

// linesUntilKilled yields what a started child prints, and kills it after d from its first line on, when
// it is up and running.
func linesUntilKilled(cmd *exec.Cmd, out io.Reader, d time.Duration) iter.Seq[string] {
	return func(yield func(string) bool) {
		kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer func() {
			kill.Stop()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		for first, lines := true, bufio.NewScanner(out); lines.Scan(); first = false {
			if first {
				kill.Reset(d)
			}
			if !yield(lines.Text()) {
				return
			}
		}
	}
}

var crashLimits = store.Limits{Memory: 256 << 10, Disk: 8 << 20, PromoteBelow: 4 << 10}

// crashBody is the body that a key has, at whichever length.
func crashBody(key string, size int) []byte {
	return bytes.Repeat([]byte(key+"\n"), size/(len(key)+1)+1)[:size]
}

// childWriter stores, refreshes, removes and purges for all it is worth until it is killed. It prints
// a key when it has been purged, after which it does not use the key again.
func childWriter(path, seedText string) error {
	seed, _ := strconv.Atoi(seedText)
	s, err := store.Open(store.Options{Path: path, Limits: crashLimits})
	if err != nil {
		return err
	}
	fmt.Println("up")
	failed := make(chan error)
	for g := range 3 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(g)))
			for i := 0; ; i++ {
				key := fmt.Sprintf("http://h/%d/%d/%d", seed, g, i)
				if rng.IntN(3) > 0 {
					key = fmt.Sprintf("http://few/%d/%d", g, rng.IntN(30))
				}
				p := crashBody(key, []int{0, 10, 3000, 5000, 70_000, 150_000}[rng.IntN(6)])
				r := response(200, "Cookie")
				r.Header.Set("X-Key", key)
				r.Tags = []string{key}
				e, err := store1(s, key, header("Cookie", fmt.Sprint(rng.IntN(2))), r, p)
				if err != nil && !errors.Is(err, store.ErrFull) {
					failed <- err
				}
				switch {
				case e == nil:
				case rng.IntN(4) == 0:
					r := response(200, "Cookie")
					r.Header.Set("X-Key", key)
					r.Header.Set("X-Pad", strings.Repeat("p", rng.IntN(6000)))
					if _, err := s.Refresh(e, r); err != nil && !errors.Is(err, store.ErrGone) {
						failed <- err
					}
				case strings.HasPrefix(key, "http://h/") && rng.IntN(2) == 0:
					if rng.IntN(2) == 0 {
						s.Purge(key, false, store.Purged)
					} else if _, err := s.PurgeTags(context.Background(), r.Tags, false, store.Purged); err != nil {
						failed <- err
					}
					fmt.Println(key)
				}
			}
		}()
	}
	return <-failed
}

// TestCrash_KilledAtAnyMoment kills a writing process over and over. Whatever the next one serves is
// what was stored, nothing is left over, and what was purged stays away.
func TestCrash_KilledAtAnyMoment(t *testing.T) {
	rounds := 20
	if long {
		rounds = 200
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	purged := map[string]bool{}
	served := 0
	for round := range rounds {
		cmd := command("writer", dir, round)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		for line := range linesUntilKilled(cmd, out, time.Duration(20+rng.IntN(120))*time.Millisecond) {
			if strings.HasPrefix(line, "FAILED") {
				t.Fatal(line)
			}
			if line != "up" {
				purged[line] = true
			}
		}

		s, err := store.Open(store.Options{Path: dir, Limits: crashLimits})
		must(t, err)
		<-s.Ready()
		if err := s.CheckInvariants(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for key := range s.Keys {
			if purged[key] {
				t.Errorf("%s was purged and is back", key)
			}
			for v := range 2 {
				e, _ := s.Lookup([]byte(key), header("Cookie", fmt.Sprint(v)))
				if e == nil {
					continue
				}
				r := e.Response()
				if r == nil {
					continue // damaged, and thereby a miss
				}
				if r.Header.Get("X-Key") != key {
					t.Errorf("%s has the header of %s", key, r.Header.Get("X-Key"))
				}
				got, err := readBody(e)
				if err != nil {
					continue
				}
				served++
				if !bytes.Equal(got, crashBody(key, len(got))) {
					t.Errorf("%s has a wrong body of %d bytes", key, len(got))
				}
			}
		}
		// A killed process, unlike a cut of power, loses nothing that was written.
		if st := s.Stats(); st.Damaged > 0 {
			t.Errorf("round %d: %+v", round, st)
		}
		s.Close()
	}
	t.Logf("%d bodies served, %d keys purged", served, len(purged))
	if served < rounds || len(purged) == 0 {
		t.Error("the child did not get far enough to test anything")
	}
}

// childStarve runs out of file descriptors.
func childStarve(path string) error {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		return err
	}
	o := store.Options{Path: path, Limits: store.Limits{Disk: 64 << 20, Memory: 1 << 20}}
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	<-s.Ready()
	for _, key := range []string{"a", "b"} {
		if _, err := store1(s, key, nil, response(200), body(key, 100_000)); err != nil {
			return err
		}
	}
	s.Cool()
	var held []*os.File
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		held = append(held, f)
	}
	for _, size := range []int{100, 100_000} {
		if _, err := store1(s, "c", nil, response(200), body("c", size)); !errors.Is(err, unix.EMFILE) {
			return fmt.Errorf("storing without descriptors: %w", err)
		}
	}
	e, _ := s.Lookup([]byte("a"), nil)
	if e == nil || e.Response() != nil {
		return errors.New("read a sidecar without descriptors")
	}
	if _, err := e.Open(); !errors.Is(err, unix.EMFILE) {
		return fmt.Errorf("opening without descriptors: %w", err)
	}
	if st := s.Stats(); st.Entries != 2 || st.Damaged != 0 {
		return fmt.Errorf("entries were dropped for want of descriptors: %+v", st)
	}
	for _, f := range held {
		f.Close()
	}
	for _, key := range []string{"a", "b"} {
		e, _ := s.Lookup([]byte(key), nil)
		if got, err := readBody(e); err != nil || !slices.Equal(got, body(key, 100_000)) {
			return fmt.Errorf("afterwards: %w", err)
		}
	}
	if _, err := store1(s, "c", nil, response(200), body("c", 100)); err != nil {
		return err
	}
	s.Close()

	// A rebuild that runs short does not take for damage what it cannot read, and tries again. One
	// descriptor is left, for the lock.
	held = held[:0]
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		held = append(held, f)
	}
	held[0].Close()
	if s, err = store.Open(o); err != nil {
		return err
	}
	if n, err := s.PurgeFunc(context.Background(), func(string) bool { return false }, false, store.Purged); n != 0 || !errors.Is(err, store.ErrUnread) {
		return fmt.Errorf("purging what cannot be read: %d, %w", n, err)
	}
	time.Sleep(200 * time.Millisecond)
	for _, f := range held {
		f.Close()
	}
	<-s.Ready()
	if st := s.Stats(); st.Entries != 3 || st.Damaged != 0 || st.Loaded != 3 {
		return fmt.Errorf("after a rebuild without descriptors: %+v", st)
	}
	if err := s.CheckInvariants(); err != nil {
		return err
	}
	return s.Close()
}

func TestFault_NoFileDescriptors(t *testing.T) {
	out, err := command("starve", t.TempDir(), 0).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "OK") {
		t.Fatalf("%v: %s", err, out)
	}
}
