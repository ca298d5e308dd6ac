package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hugeBlock is what huge bodies consist of.
var hugeBlock = []byte(testBody("H12", 1<<20))

// wantBlocks reads a body of n hugeBlocks to its end.
func wantBlocks(t *testing.T, body io.Reader, n int) {
	t.Helper()
	buf := make([]byte, len(hugeBlock))
	for i := range n {
		if _, err := io.ReadFull(body, buf); err != nil {
			t.Fatalf("block %d of %d: %v", i, n, err)
		}
		if !bytes.Equal(buf, hugeBlock) {
			t.Fatalf("block %d of %d has wrong bytes", i, n)
		}
	}
	if m, err := body.Read(buf); m != 0 || err != io.EOF {
		t.Errorf("behind the body come %d bytes, %v", m, err)
	}
}

// H12: bodies that are larger than every budget stream through, and cost neither
// memory nor disk.
func TestH12_HugeBodies(t *testing.T) {
	const (
		blocks = 300
		memory = 8 << 20
		disk   = 64 << 20
	)
	resume := make(chan struct{})
	pause := new(atomic.Int64) // the block before which the origin waits
	pause.Store(-1)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", strconv.Itoa(n<<20))
		}
		for i := range n {
			if int64(i) == pause.Load() {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-resume:
				case <-time.After(20 * time.Second):
					return
				}
			}
			if _, err := w.Write(hugeBlock); err != nil {
				return
			}
		}
	})
	config := strings.Replace(site(o, fmt.Sprintf("memory_size %d", memory), fmt.Sprintf("disk_size %d", disk)),
		"http://:{port} {", "http://:{port}, https://localhost:{tls} {\n\ttls internal", 1)
	tlsPort := freePort(t)
	c := start(t, strings.ReplaceAll(config, "{tls}", strconv.Itoa(tlsPort)))
	h2 := newTLSClient(t, tlsPort)

	// watch samples memory and disk until it is stopped.
	watch := func(t *testing.T) (stop func()) {
		before := c.rss(t)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		var rss, use int64
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				rss = max(rss, c.rss(t))
				bytes, _ := c.diskUse()
				use = max(use, bytes)
				time.Sleep(20 * time.Millisecond)
			}
		}()
		return func() {
			cancel()
			<-done
			t.Logf("memory grew by %d MiB, the disk tier held %d MiB at most", (rss-before)>>20, use>>20)
			if grown := rss - before; grown > memory+40<<20 {
				t.Errorf("memory grew by %d MiB", grown>>20)
			}
			if use > disk+disk/8 {
				t.Errorf("the disk tier held %d MiB of %d", use>>20, disk>>20)
			}
		}
	}
	open := func(t *testing.T, h *http.Client, base, uri string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, base+uri, nil)
		res, err := h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	plain, secure := strings.TrimSuffix(c.url("/"), "/"), fmt.Sprintf("https://localhost:%d", tlsPort)

	t.Run("a_chunked", func(t *testing.T) {
		defer watch(t)()
		uri := fmt.Sprintf("/chunked?n=%d", blocks)
		pause.Store(100)
		res := open(t, client, plain, uri)
		buf := make([]byte, len(hugeBlock))
		for i := range 100 {
			if _, err := io.ReadFull(res.Body, buf); err != nil || !bytes.Equal(buf, hugeBlock) {
				t.Fatalf("block %d: %v", i, err)
			}
		}
		// The limit has been crossed: the file is gone although the response
		// is only a third through, and nobody waits for the rest.
		eventually(t, "the temporary file is gone", func() bool {
			bytes, temporary := c.diskUse()
			return bytes == 0 && temporary == 0
		})
		for _, f := range c.openFiles(t) {
			if strings.Contains(f, c.dir+"/cache/") && strings.Contains(f, "(deleted)") {
				t.Errorf("%s is still open: its space is not free", f)
			}
		}
		pause.Store(-1)
		second := open(t, client, plain, uri)
		wantBlocks(t, second.Body, blocks)
		close(resume)
		wantBlocks(t, res.Body, blocks-100)
		if s := c.do(http.MethodHead, uri).cacheStatus(); strings.Contains(s, "hit") {
			t.Errorf("it was stored: %s", s)
		}
	})
	pause.Store(-1)
	t.Run("b_declared", func(t *testing.T) {
		defer watch(t)()
		uri := fmt.Sprintf("/declared?n=%d", blocks)
		res := open(t, client, plain, uri)
		if s := res.Header.Get("Cache-Status"); s != "fastcache; fwd=uri-miss; detail=too-big" {
			t.Errorf("Cache-Status %q", s)
		}
		if res.ContentLength != blocks<<20 {
			t.Errorf("Content-Length %d", res.ContentLength)
		}
		wantBlocks(t, res.Body, blocks)
		if bytes, _ := c.diskUse(); bytes > 0 {
			t.Errorf("%d bytes on disk", bytes)
		}
	})
	t.Run("c_http2", func(t *testing.T) {
		defer watch(t)()
		for _, uri := range []string{fmt.Sprintf("/chunked?n=%d", 100), fmt.Sprintf("/declared?n=%d", blocks)} {
			res := open(t, h2, secure, uri)
			if res.ProtoMajor != 2 {
				t.Errorf("HTTP/%d", res.ProtoMajor)
			}
			n, _ := strconv.Atoi(uri[strings.Index(uri, "n=")+2:])
			wantBlocks(t, res.Body, n)
		}
	})
	t.Run("d_that_fit", func(t *testing.T) {
		// Larger than memory, not larger than the disk: each makes room for
		// the next.
		defer watch(t)()
		for i := range 4 {
			uri := fmt.Sprintf("/declared?n=40&i=%d", i)
			wantBlocks(t, open(t, client, plain, uri).Body, 40)
			res := open(t, client, plain, uri)
			if s := res.Header.Get("Cache-Status"); !strings.HasPrefix(s, "fastcache; hit") {
				t.Errorf("%s: Cache-Status %q", uri, s)
			}
			wantBlocks(t, res.Body, 40)
		}
	})
	_, temporary := c.diskUse()
	if temporary > 0 {
		t.Errorf("%d temporary files are left", temporary)
	}
}

// H12 without a disk tier: a body larger than the memory budget is not collected
// in memory.
func TestH12_HugeBodyInRAM(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for range 200 {
			if _, err := w.Write(hugeBlock); err != nil {
				return
			}
		}
	})
	c := start(t, site(o, "memory_size 8MB", "disk_size 0"))
	before := c.rss(t)
	for range 2 {
		res, err := client.Get(c.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		wantBlocks(t, res.Body, 200)
		res.Body.Close()
	}
	if grown := c.rss(t) - before; grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	o.wantAsked(t, 2)
}
