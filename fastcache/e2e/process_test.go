package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What the Caddy process uses, seen from outside.

// rss is the memory of the process that is in RAM.
func (c *caddy) rss(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Skipf("the memory of a process cannot be read here: %v", err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmRSS in %s", status)
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb << 10
}

// openFiles lists what the process's file descriptors stand for.
func (c *caddy) openFiles(t *testing.T) []string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Skipf("the files of a process cannot be read here: %v", err)
	}
	var open []string
	for _, fd := range list {
		if target, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil {
			open = append(open, target)
		}
	}
	return open
}

// profile reads a text profile from the admin endpoint.
func (c *caddy) profile(t *testing.T, uri string) string {
	t.Helper()
	res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/%s", c.admin, uri))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("profile %s: %s, %v", uri, res.Status, err)
	}
	return string(text)
}

// goroutines is how many goroutines the process has.
func (c *caddy) goroutines(t *testing.T) int {
	t.Helper()
	text := c.profile(t, "goroutine?debug=1")
	var n int
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &n); err != nil {
		t.Fatalf("%v in %.100q", err, text)
	}
	return n
}

// heap is the live heap of the process after a collection.
func (c *caddy) heap(t *testing.T) int64 {
	t.Helper()
	m := regexp.MustCompile(`# HeapAlloc = (\d+)`).FindStringSubmatch(c.profile(t, "heap?debug=1&gc=1"))
	if m == nil {
		t.Fatal("no HeapAlloc in the heap profile")
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}

// diskUse is what the files below the cache directory take, and how many of them
// are temporary.
func (c *caddy) diskUse() (bytes int64, temporary int) {
	for _, f := range c.cacheFiles() {
		if info, err := os.Stat(f); err == nil {
			bytes += info.Size()
		}
		if strings.HasSuffix(f, ".tmp") {
			temporary++
		}
	}
	return bytes, temporary
}
