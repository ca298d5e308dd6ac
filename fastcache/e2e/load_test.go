package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// withoutKeepalive lets the proxy drop each connection to the origin after its
// response, so that idle ones are not counted among what the cache uses.
func withoutKeepalive(config string, o *origin) string {
	proxy := "reverse_proxy " + o.addr()
	return strings.Replace(config, proxy, proxy+" {\n\t\t\ttransport http {\n\t\t\t\tkeepalive off\n\t\t\t}\n\t\t}", 1)
}

// TestCoalescing: cold clients for one URL cost one fetch.
func TestCoalescing(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields func(i int) []string
		most   int
	}{
		{"alike", func(int) []string { return nil }, 1},
		{"with cookies", func(i int) []string { return []string{fmt.Sprintf("Cookie: a=%d", i)} }, 1},
		// The first answer tells of the variants; then there is one fetch for each.
		{"two variants", func(i int) []string { return []string{"X-V: " + strconv.Itoa(i%2)} }, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(300 * time.Millisecond)
				w.Header().Set("Cache-Control", "max-age=60")
				if v := r.Header.Get("X-V"); v != "" {
					w.Header().Set("Vary", "X-V")
					_, _ = io.WriteString(w, "variant "+v)
					return
				}
				_, _ = io.WriteString(w, "one for all")
			})
			c := start(t, site(o))
			var wg sync.WaitGroup
			var collapsed, led atomic.Int64
			for i := range 50 {
				wg.Go(func() {
					fields := tc.fields(i)
					want := "one for all"
					if len(fields) > 0 && strings.HasPrefix(fields[0], "X-V: ") {
						want = "variant " + fields[0][5:]
					}
					r := c.get("/p", fields...).want(t, 200, want)
					switch {
					case strings.Contains(r.cacheStatus(), "; collapsed"):
						collapsed.Add(1)
					case strings.Contains(r.cacheStatus(), "; stored"):
						led.Add(1)
					}
				})
			}
			wg.Wait()
			o.wantAsked(t, tc.most)
			if led.Load() != int64(tc.most) || collapsed.Load() != 50-int64(tc.most) {
				t.Errorf("Cache-Status tells of %d fetches and %d that waited", led.Load(), collapsed.Load())
			}
		})
	}
}

// H14: reloads cost nothing that stays.
func TestH14_ReloadsLeaveNothing(t *testing.T) {
	o := sizedOrigin(t)
	free := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
	config := func(ttl string) string {
		return strings.NewReplacer("TTL", ttl, "SIZED", o.addr(), "FREE", free.addr()).Replace(`http://:{port} {
	route /free* {
		fastcache {
			path {dir}/cache
			ttl TTL
		}
		reverse_proxy FREE
	}
	route {
		fastcache {
			path {dir}/cache
			ttl TTL
		}
		reverse_proxy SIZED
	}
}
`)
	}
	c := start(t, config("1h"))
	for i := range 100 {
		wantSized(t, c, i)
	}
	c.get("/free/1").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=3600")
	reload := func(i int) {
		t.Helper()
		if err := c.reload(config("1h") + fmt.Sprintf("# %d\n", i)); err != nil {
			t.Fatal(err)
		}
	}
	settled := func() (goroutines, files int) {
		client.CloseIdleConnections()
		low, lowFiles := 1<<30, 1<<30
		for range 40 { // the least of a second: what comes and goes is not what stays
			low, lowFiles = min(low, c.goroutines(t)), min(lowFiles, len(c.openFiles(t)))
			time.Sleep(25 * time.Millisecond)
		}
		return low, lowFiles
	}
	for i := range 3 {
		reload(i)
	}
	goroutines, files := settled()
	heap := c.heap(t)
	for i := range 30 {
		reload(100 + i)
		wantSized(t, c, i).wantStatus(t, "fastcache; hit")
	}
	after, filesAfter := settled()
	heapAfter := c.heap(t)
	t.Logf("after 3 reloads and after 33: %d and %d goroutines, %d and %d files, %d and %d KiB of heap", goroutines, after, files, filesAfter, heap>>10, heapAfter>>10)
	if after > goroutines+3 {
		t.Errorf("%d goroutines after 3 reloads, %d after 33:\n%.4000s", goroutines, after, c.profile(t, "goroutine?debug=1"))
	}
	if filesAfter > files+3 {
		t.Errorf("%d open files after 3 reloads, %d after 33: %v", files, filesAfter, c.openFiles(t))
	}
	if heapAfter > heap+8<<20 {
		t.Errorf("%d KiB of heap after 3 reloads, %d after 33", heap>>10, heapAfter>>10)
	}
	asked := o.asked()
	for i := range 100 {
		wantSized(t, c, i).wantStatus(t, "fastcache; hit")
	}
	if o.asked() != asked || asked != 100 {
		t.Errorf("%d fetches before and %d after the reloads, want 100 and none", asked, o.asked()-asked)
	}

	// A changed ttl is for what is stored from then on.
	if err := c.reload(config("10s")); err != nil {
		t.Fatal(err)
	}
	c.get("/free/1").wantStatus(t, "fastcache; hit; ttl=35")
	c.get("/free/2").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=10")

	// Routes that come one by one through the admin API, each with a cache.
	for i := range 20 {
		route := fmt.Sprintf(`{"match":[{"path":["/r%d/*"]}],"handle":[{"handler":"fastcache","path":"%s/cache"},{"handler":"reverse_proxy","upstreams":[{"dial":%q}]}]}`, i, c.dir, o.addr())
		res, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/config/apps/http/servers/srv0/routes/0/handle/0/routes/", c.admin), "application/json", strings.NewReader(route))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Fatalf("adding a route: %s: %s", res.Status, text)
		}
	}
	for i := range 100 {
		wantSized(t, c, i).wantStatus(t, "fastcache; hit")
	}
	if n, _ := settled(); n > after+20+5 { // each reverse_proxy has one of its own
		t.Errorf("%d goroutines after 20 routes more, %d before:\n%.6000s", n, after, c.profile(t, "goroutine?debug=1"))
	}
}

// H16: unique URLs do not make the process grow.
func TestH16_Growth(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if strings.HasPrefix(r.URL.Path, "/private") {
			w.Header().Set("Cache-Control", "private")
		}
		_, _ = io.WriteString(w, testBody(r.RequestURI, 2000))
	})
	c := start(t, site(o, "max_items 1000", "memory_size 8MB", "disk_size 32MB"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1)
				uri := fmt.Sprintf("/page/%d", i)
				if i%5 == 0 {
					uri = fmt.Sprintf("/private/%d", i)
				}
				r, err := c.try(ctx, http.MethodGet, uri, nil)
				if err != nil {
					continue
				}
				r.want(t, 200, testBody(uri, 2000))
			}
		})
	}
	type sample struct {
		goroutines, files, bodies int
		heap                      int64
	}
	measure := func() sample {
		bodies := 0
		for _, f := range c.cacheFiles() {
			if !strings.HasSuffix(f, ".meta") && !strings.HasSuffix(f, ".tmp") {
				bodies++
			}
		}
		return sample{c.goroutines(t), len(c.openFiles(t)), bodies, c.heap(t)}
	}
	// Warm: the queues are full, and the oldest marks of what is private have
	// run out.
	time.Sleep(6 * time.Second)
	warm, warmURLs := measure(), next.Load()
	var most sample
	for range 8 {
		time.Sleep(500 * time.Millisecond)
		m := measure()
		most = sample{max(most.goroutines, m.goroutines), max(most.files, m.files), max(most.bodies, m.bodies), max(most.heap, m.heap)}
	}
	urls := next.Load()
	cancel()
	wg.Wait()
	t.Logf("after %d URLs: %+v; at most until %d URLs: %+v", warmURLs, warm, urls, most)
	if urls < 2000 {
		t.Fatalf("only %d URLs: the test proves nothing", urls)
	}
	if most.goroutines > warm.goroutines+20 {
		t.Errorf("goroutines grew from %d to %d", warm.goroutines, most.goroutines)
	}
	if most.files > warm.files+20 {
		t.Errorf("open files grew from %d to %d", warm.files, most.files)
	}
	if most.bodies > 1000+100 { // evicted ones are unlinked a moment later
		t.Errorf("%d bodies on disk, with max_items 1000", most.bodies)
	}
	if grown := most.heap - warm.heap; grown > 4<<20 {
		t.Errorf("the heap grew by %d KiB in %d URLs", grown>>10, urls-warmURLs)
	}
	eventually(t, "no more than 1000 bodies are stored", func() bool { return measure().bodies <= 1000 })
}

// A client that leaves before the answer has come passes the fetch on to one of
// those who wait, not to all of them.
func TestCoalescing_LeaderLeaves(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "page")
	})
	c := start(t, site(o))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.try(ctx, http.MethodGet, "/", nil) })
	eventually(t, "the first request is under way", func() bool { return o.asked() == 1 })
	for range 30 {
		wg.Go(func() { c.get("/").want(t, 200, "page") })
	}
	time.Sleep(500 * time.Millisecond)
	cancel()
	wg.Wait()
	if n := o.asked(); n > 3 {
		t.Errorf("the origin was asked %d times", n)
	}
	c.get("/").want(t, 200, "page").wantStatus(t, "fastcache; hit")
}

// H17: one hung fetch holds nobody up for longer than the bound.
func TestH17_HungFetch(t *testing.T) {
	hang := make(chan struct{})
	var hangs atomic.Int64
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Path != "/other" && hangs.Add(-1) >= 0 {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	defer close(hang)
	c := start(t, withoutKeepalive(site(o), o))
	c.get("/other")
	client.CloseIdleConnections()
	base := c.goroutines(t)

	other, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	var slowest atomic.Int64
	wg.Go(func() {
		for other.Err() == nil {
			begin := time.Now()
			if r, err := c.try(other, http.MethodGet, "/other", nil); err == nil {
				r.want(t, 200, "/other").wantStatus(t, "fastcache; hit")
				slowest.Store(max(slowest.Load(), int64(time.Since(begin))))
			}
			time.Sleep(2 * time.Millisecond)
		}
	})

	t.Run("everybody leaves", func(t *testing.T) {
		hangs.Store(1)
		var clients sync.WaitGroup
		for range 100 {
			clients.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if r, err := c.try(ctx, http.MethodGet, "/k", nil); err == nil && r.err == nil {
					// Who was there when the one who asked left has asked again.
					r.want(t, 200, "/k")
				}
			})
		}
		clients.Wait()
		begin := time.Now()
		c.get("/k").want(t, 200, "/k")
		if d := time.Since(begin); d > time.Second {
			t.Errorf("the URL was dead for %v after its clients had left", d)
		}
		client.CloseIdleConnections()
		eventually(t, "the goroutines of those who left are gone", func() bool { return c.goroutines(t) <= base+10 })
	})

	t.Run("the first one stays", func(t *testing.T) {
		hangs.Store(1)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		first := make(chan struct{})
		go func() {
			defer close(first)
			_, _ = c.try(ctx, http.MethodGet, "/stay", nil)
		}()
		eventually(t, "the first fetch hangs", func() bool { return hangs.Load() == 0 })
		begin := time.Now()
		var waiters sync.WaitGroup
		for range 20 {
			waiters.Go(func() {
				c.get("/stay").want(t, 200, "/stay")
			})
		}
		waiters.Wait()
		if d := time.Since(begin); d > 8*time.Second {
			t.Errorf("those who came later waited %v", d)
		}
		// It works from now on, although the first fetch hangs on.
		begin = time.Now()
		c.get("/stay").want(t, 200, "/stay").wantStatus(t, "fastcache; hit")
		if d := time.Since(begin); d > time.Second {
			t.Errorf("a hit took %v", d)
		}
		leave()
		<-first
		client.CloseIdleConnections()
		eventually(t, "the goroutines are gone", func() bool { return c.goroutines(t) <= base+10 })
	})
	stop()
	wg.Wait()
	if d := time.Duration(slowest.Load()); d > time.Second || d == 0 {
		t.Errorf("another URL's slowest hit took %v meanwhile", d)
	}
}

// H18: answers that cannot be shared do not queue.
func TestH18_UncacheableDoesNotQueue(t *testing.T) {
	var cacheable atomic.Bool
	var n atomic.Int64
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(200 * time.Millisecond)
		switch {
		case cacheable.Load():
			w.Header().Set("Cache-Control", "max-age=60")
		case r.URL.Path == "/alternating" && n.Add(1)%2 == 0:
			w.Header().Set("Cache-Control", "max-age=1")
		case r.URL.Path == "/max-age":
			w.Header().Set("Cache-Control", "max-age=0")
		case r.URL.Path == "/set-cookie":
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Set-Cookie", "a=b")
		case r.URL.Path == "/error":
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/broken":
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "less")
			_ = http.NewResponseController(w).Flush() // or else the proxy tries again on each idle connection
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Cache-Control", "no-store")
		}
		_, _ = io.WriteString(w, r.Header.Get("X-User"))
	})
	c := start(t, site(o))
	// 50 queued fetches would take 10 s, two round trips 400 ms; the rest is
	// for a busy machine.
	const limit = 1500 * time.Millisecond
	rush := func(t *testing.T, uri string) time.Duration {
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				user := strconv.Itoa(i)
				r, err := c.try(t.Context(), http.MethodGet, uri, nil, "X-User: "+user)
				if uri == "/broken" && !cacheable.Load() {
					return
				}
				if err != nil {
					t.Errorf("%s: %v", uri, err)
				} else if r.body != user && !strings.Contains(r.cacheStatus(), "collapsed") && !r.hit() {
					t.Errorf("%s: user %s got the page of %q (%s)", uri, user, r.body, r.cacheStatus())
				}
			})
		}
		wg.Wait()
		return time.Since(begin)
	}
	uris := []string{"/no-store", "/max-age", "/alternating", "/set-cookie", "/error", "/broken"}
	for _, uri := range uris {
		if d := rush(t, uri); d > limit {
			t.Errorf("%s: 50 clients took %v", uri, d)
		}
	}
	// A moment later they still do not wait for each other.
	for _, uri := range []string{"/no-store", "/set-cookie"} {
		if d := rush(t, uri); d > limit*2/3 {
			t.Errorf("%s again: 50 clients took %v", uri, d)
		}
	}
	// The first answer that can be stored is.
	cacheable.Store(true)
	for _, uri := range uris {
		c.get(uri)
		if s := c.get(uri).cacheStatus(); !strings.HasPrefix(s, "fastcache; hit") {
			t.Errorf("%s: not stored: %s", uri, s)
		}
	}
}

// H18: once an answer is known not to be sharable, all who come reach the origin
// side by side, for a short time.
func TestH18_HitForMiss(t *testing.T) {
	const clients = 50
	var inside atomic.Int64
	all := make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if inside.Add(1) == clients+1 { // the first one was alone
			close(all)
		}
		if inside.Load() == 1 {
			return
		}
		select {
		case <-all:
		case <-time.After(5 * time.Second):
		}
	})
	c := start(t, site(o))
	c.get("/p")
	begin := time.Now()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() { c.get("/p").want(t, 200, "").wantStatus(t, "fastcache; fwd=uri-miss; detail=no-store") })
	}
	wg.Wait()
	if d := time.Since(begin); d > 4*time.Second {
		t.Errorf("%d clients were not at the origin at the same time: it took %v", clients, d)
	}
	o.wantAsked(t, clients+1)
	client.CloseIdleConnections()
}
