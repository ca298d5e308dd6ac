package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// damageURI is a URL of sizedOrigin's whose body lies on disk and is not held in
// RAM.
func damageURI(i int) string { return fmt.Sprintf("/d%d?n=200000", i) }

func wantDamage(t *testing.T, c *caddy, i int) *response {
	t.Helper()
	return c.get(damageURI(i)).want(t, 200, testBody(damageURI(i), 200_000))
}

// wantFewLines fails the test unless the process has logged the text, and not
// once for each request.
func (c *caddy) wantFewLines(t *testing.T, text string) {
	t.Helper()
	n := 0
	for line := range strings.Lines(c.output()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	if n == 0 || n > 5 {
		t.Errorf("%d log lines with %q, want 1 or a few", n, text)
	}
}

// TestH13_ReadOnly: what a read-only file system holds is still served, what it
// cannot hold is passed through, and storing goes on once it can be written.
func TestH13_ReadOnly(t *testing.T) {
	o := sizedOrigin(t)
	c := start(t, site(o))
	cache := filepath.Join(c.dir, "cache")
	for i := range 4 {
		wantDamage(t, c, i)
	}
	// What Caddy has open for writing forbids a remount, so a read-only view of
	// the directory is mounted on top of it.
	for _, args := range [][]string{{"--bind", cache, cache}, {"-o", "remount,bind,ro", cache}} {
		if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
			t.Skipf("a directory cannot be made read-only here: mount %v: %s", args, out)
		}
		t.Cleanup(func() { _ = exec.Command("umount", "-l", cache).Run() })
	}
	for i := range 4 {
		wantDamage(t, c, i).wantStatus(t, "fastcache; hit")
	}
	before := o.asked()
	for i := 10; i < 30; i++ {
		r := wantDamage(t, c, i)
		if i > 10 { // whether the first one can be stored shows after its header
			r.wantStatus(t, "fastcache; fwd=uri-miss")
		}
		wantDamage(t, c, i).wantStatus(t, "fastcache; fwd=uri-miss")
	}
	if n := o.asked() - before; n != 40 {
		t.Errorf("%d fetches for 40 requests that cannot be stored", n)
	}
	c.wantFewLines(t, "read-only file system")
	if !strings.Contains(c.output(), cache) {
		t.Error("the log does not tell the path")
	}
	// A purge counts although the files cannot be removed.
	c.do("PURGE", damageURI(0)).want(t, 200, "{\"purged\":1}\n")
	if r := wantDamage(t, c, 0); r.hit() {
		t.Error("a purged response is served")
	}

	if out, err := exec.Command("umount", "-l", cache).CombinedOutput(); err != nil {
		t.Fatalf("umount: %s", out)
	}
	eventually(t, "a response is stored again", func() bool { return wantDamage(t, c, 10).hit() })
	wantDamage(t, c, 1).wantStatus(t, "fastcache; hit")
	if _, temporary := c.diskUse(); temporary > 0 {
		t.Errorf("%d temporary files are left", temporary)
	}
}

// TestH13_FilesInTheWay: plain files where the shard directories should be cost
// the disk tier, not the responses, and stay.
func TestH13_FilesInTheWay(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	if err := os.Mkdir(cache, 0o750); err != nil {
		t.Fatal(err)
	}
	for i := range 256 {
		if err := os.WriteFile(filepath.Join(cache, fmt.Sprintf("%02x", i)), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := sizedOrigin(t)
	c := startIn(t, dir, site(o))
	for range 2 {
		for i := range 20 {
			wantSized(t, c, i)
		}
	}
	c.wantFewLines(t, "not a directory")
	for i := range 256 {
		name := filepath.Join(cache, fmt.Sprintf("%02x", i))
		if got, err := os.ReadFile(name); string(got) != "mine" {
			t.Fatalf("%s is %q, %v", name, got, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a response is stored", func() bool { return wantSized(t, c, 3).hit() })
}

// TestH13_PathThatCannotWork: the configuration is refused with the path.
func TestH13_PathThatCannotWork(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "a file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{blocked, filepath.Join(blocked, "cache"), "/proc/fastcache"} {
		file := filepath.Join(dir, "Caddyfile")
		text := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\nhttp://127.0.0.1:%d {\n\tfastcache {\n\t\tpath %q\n\t}\n}\n", freePort(t), path)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		out := new(strings.Builder)
		cmd := exec.CommandContext(ctx, caddyBinary, "run", "--config", file)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		cmd.Stdout, cmd.Stderr = out, out
		done := make(chan error, 1)
		go func() { done <- cmd.Run() }()
		eventuallyDone := false
		eventually(t, "caddy refuses "+path, func() bool {
			select {
			case err := <-done:
				eventuallyDone = err != nil
				return true
			default:
				return false
			}
		})
		cancel()
		if !eventuallyDone || !strings.Contains(out.String(), path) {
			t.Errorf("%s: caddy says %s", path, out)
		}
	}
}

// startLimited is start with a limit of open files.
func startLimited(t *testing.T, files int, caddyfile string) *caddy {
	t.Helper()
	c := &caddy{t: t, dir: t.TempDir(), port: freePort(t), admin: freePort(t)}
	file := filepath.Join(c.dir, "Caddyfile.limited")
	// run would start Caddy without the limit: this is what it does, by a shell.
	if err := os.WriteFile(file, []byte(c.fill(caddyfile)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), caddyBinary, "run", "--config", file, "--adapter", "caddyfile")
	c.cmd.Env = append(os.Environ(), "HOME="+c.dir, "XDG_CONFIG_HOME="+c.dir, "XDG_DATA_HOME="+c.dir, "GORACE=halt_on_error=0")
	c.cmd.Stdout, c.cmd.Stderr = c, c
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.ended = make(chan struct{})
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	if err := c.waitListening(); err != nil {
		t.Fatalf("%v\n%s", err, c.output())
	}
	t.Cleanup(func() {
		c.stop()
		c.check()
	})
	return c
}

// TestH13_NoFileDescriptors: without a file descriptor for the cache, responses
// come from the origin, and what is stored is not taken for damaged.
func TestH13_NoFileDescriptors(t *testing.T) {
	const limit = 64
	o := sizedOrigin(t)
	c := startLimited(t, limit, site(o))
	// One connection to Caddy, and one of Caddy's to the origin, stay open.
	one := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxConnsPerHost: 1}}
	defer one.CloseIdleConnections()
	get := func(i int) (cacheStatus string) {
		t.Helper()
		res, err := one.Get(c.url(damageURI(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 || string(body) != testBody(damageURI(i), 200_000) {
			t.Errorf("%s: %d, %d bytes, %v (%s)", damageURI(i), res.StatusCode, len(body), err, res.Header.Get("Cache-Status"))
		}
		return res.Header.Get("Cache-Status")
	}
	for i := range 4 {
		get(i)
		if s := get(i); !strings.HasPrefix(s, "fastcache; hit") {
			t.Fatalf("not stored: %s", s)
		}
	}
	var idle []net.Conn
	closeIdle := func() {
		for _, conn := range idle {
			conn.Close()
		}
		idle = nil
	}
	defer closeIdle()
	eventually(t, "no file descriptor is free", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
		return strings.Contains(c.output(), "too many open files")
	})

	before := o.asked()
	for i := range 4 {
		if s := get(i); strings.HasPrefix(s, "fastcache; hit") {
			t.Errorf("%s was opened without a file descriptor: the test proves nothing", damageURI(i))
		}
	}
	for i := 10; i < 20; i++ {
		get(i)
	}
	if n := o.asked() - before; n != 14 {
		t.Errorf("%d fetches for 14 requests", n)
	}
	closeIdle()
	eventually(t, "the file descriptors are free", func() bool { return len(c.openFiles(t)) < limit/2 })
	for i := range 4 {
		if s := get(i); !strings.HasPrefix(s, "fastcache; hit") {
			t.Errorf("%s is lost: %s", damageURI(i), s)
		}
	}
	get(10)
	if s := get(10); !strings.HasPrefix(s, "fastcache; hit") {
		t.Errorf("not stored again: %s", s)
	}
	if _, temporary := c.diskUse(); temporary > 0 {
		t.Errorf("%d temporary files are left", temporary)
	}
}

// newFiles waits for the files of a response that has been stored since the list
// was made.
func (c *caddy) newFiles(t *testing.T, before []string) (body, meta string) {
	t.Helper()
	eventually(t, "a new response is on disk", func() bool {
		body, meta = "", ""
		for _, f := range c.cacheFiles() {
			switch {
			case slices.Contains(before, f) || strings.HasSuffix(f, ".tmp"):
			case strings.HasSuffix(f, ".meta"):
				meta = f
			default:
				body = f
			}
		}
		return body != "" && meta == body+".meta"
	})
	return body, meta
}

// overwrite changes a file in place.
func overwrite(t *testing.T, file string, change func(data []byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
	// As a failing disk would, which does not tell the time of the change.
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// TestH13_DamagedFiles: files that change behind the cache's back, while it runs
// or while it does not, cost a fetch and never a wrong byte.
func TestH13_DamagedFiles(t *testing.T) {
	flip := func(at func(n int) int) func([]byte) []byte {
		return func(data []byte) []byte {
			data[at(len(data))] ^= 4
			return data
		}
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	damages := []struct {
		name   string
		do     func(t *testing.T, body, meta, other string)
		serves bool // a running cache may still serve it: it has what it needs
	}{
		{"body unlinked", func(t *testing.T, body, _, _ string) { must(t, os.Remove(body)) }, false},
		{"body truncated", func(t *testing.T, body, _, _ string) { must(t, os.Truncate(body, 100_000)) }, false},
		{"body empty", func(t *testing.T, body, _, _ string) { must(t, os.Truncate(body, 0)) }, false},
		{"body longer", func(t *testing.T, body, _, _ string) {
			overwrite(t, body, func(b []byte) []byte { return append(b, 'x') })
		}, false},
		{"first bit flipped", func(t *testing.T, body, _, _ string) { overwrite(t, body, flip(func(int) int { return 0 })) }, false},
		{"last bit flipped", func(t *testing.T, body, _, _ string) {
			overwrite(t, body, flip(func(n int) int { return n - 1 }))
		}, false},
		{"another's body", func(t *testing.T, body, _, other string) { must(t, os.Rename(other, body)) }, false},
		{"a link to another's", func(t *testing.T, body, _, other string) {
			must(t, os.Remove(body))
			must(t, os.Symlink(other, body))
		}, false},
		{"a directory", func(t *testing.T, body, _, _ string) {
			must(t, os.Remove(body))
			must(t, os.Mkdir(body, 0o700))
		}, false},
		{"sidecar unlinked", func(t *testing.T, _, meta, _ string) { must(t, os.Remove(meta)) }, true},
		{"sidecar truncated", func(t *testing.T, _, meta, _ string) { must(t, os.Truncate(meta, 20)) }, true},
		{"sidecar flipped", func(t *testing.T, _, meta, _ string) {
			overwrite(t, meta, flip(func(n int) int { return n / 2 }))
		}, true},
	}
	o := sizedOrigin(t)
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "running", true: "restarted"}[restart], func(t *testing.T) {
			c := start(t, site(o))
			type files struct{ body, meta, other string }
			var prepared []files
			// Two of a size for each: the second one stands in for the first.
			uris := func(i int) (string, string) {
				return fmt.Sprintf("/a%02d?n=200000", i), fmt.Sprintf("/b%02d?n=200000", i)
			}
			for i := range damages {
				a, b := uris(i)
				before := c.cacheFiles()
				c.get(a).want(t, 200, testBody(a, 200_000))
				body, meta := c.newFiles(t, before)
				before = c.cacheFiles()
				c.get(b).want(t, 200, testBody(b, 200_000))
				other, _ := c.newFiles(t, before)
				c.get(a).wantStatus(t, "fastcache; hit")
				prepared = append(prepared, files{body, meta, other})
			}
			if restart {
				c.stop()
			}
			for i, d := range damages {
				d.do(t, prepared[i].body, prepared[i].meta, prepared[i].other)
			}
			if restart {
				c.run(site(o))
			}
			for i, d := range damages {
				a, b := uris(i)
				before := o.asked()
				// In parts too: a checksum is of the whole.
				if r := c.get(a, "Range: bytes=1000-1999"); r.StatusCode != 200 { // all that this origin does
					r.want(t, 206, testBody(a, 200_000)[1000:2000])
				} else {
					r.want(t, 200, testBody(a, 200_000))
				}
				r := c.get(a).want(t, 200, testBody(a, 200_000))
				c.get(b).want(t, 200, testBody(b, 200_000))
				if n := o.asked() - before; n == 0 && (restart || !d.serves) {
					t.Errorf("%s: no fetch, but %s", d.name, r.cacheStatus())
				}
				if d.name == "a directory" {
					continue // whether it can be replaced is not promised
				}
				eventually(t, d.name+": it is stored again", func() bool { return c.get(a).want(t, 200, testBody(a, 200_000)).hit() })
			}
			if !restart {
				c.wantFewLines(t, "damaged")
			}
		})
	}
}

// TestH13_SpaceIsFreed: what is dropped frees its space although it has been
// served a moment ago: no file descriptor keeps it.
func TestH13_SpaceIsFreed(t *testing.T) {
	o := sizedOrigin(t)
	c := start(t, site(o))
	for i := range 10 {
		wantDamage(t, c, i)
		wantDamage(t, c, i).wantStatus(t, "fastcache; hit")
	}
	for i := range 10 {
		c.do("PURGE", damageURI(i))
	}
	eventually(t, "the files are gone, and nothing holds them open", func() bool {
		bytes, _ := c.diskUse()
		return bytes == 0 && !slices.ContainsFunc(c.openFiles(t), func(f string) bool {
			return strings.HasPrefix(f, c.dir+"/cache/") && strings.HasSuffix(f, " (deleted)")
		})
	})
}
