package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// metrics is what a scrape brings, by series, without the prefix fastcache_.
type metrics map[string]float64

var sampleLine = regexp.MustCompile(`(?m)^fastcache_([a-z_]+(?:\{[^}]*\})?) ([-+0-9.eInfNa]+)$`)

var scraper = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// scrape reads the metrics from a URL and checks what must hold of any scrape:
// each series once, and as many durations as requests.
func (c *caddy) scrape(url string) metrics {
	c.t.Helper()
	// After a reload Caddy ends the old admin server beside the new one, and may
	// do so to a connection that has just been made.
	var res *http.Response
	eventually(c.t, "the metrics are there", func() (ok bool) {
		var err error
		res, err = scraper.Get(url)
		return err == nil
	})
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s, %v\n%s", url, res.Status, err, text)
	}
	m := make(metrics)
	for _, line := range sampleLine.FindAllStringSubmatch(string(text), -1) {
		value, err := strconv.ParseFloat(line[2], 64)
		if _, twice := m[line[1]]; err != nil || twice {
			c.t.Errorf("%s: %v, twice: %v", line[0], err, twice)
		}
		m[line[1]] = value
	}
	for series, value := range m {
		labels, ok := strings.CutPrefix(series, "requests_total{")
		if !ok {
			continue
		}
		labels = strings.TrimSuffix(labels, "}")
		if n := m["request_duration_seconds_count{"+labels+"}"]; n != value {
			c.t.Errorf("%v requests and %v durations of %s", value, n, labels)
		}
		if n := m["request_duration_seconds_bucket{"+labels+`,le="+Inf"}`]; n != value {
			c.t.Errorf("%v requests and %v in the last bucket of %s", value, n, labels)
		}
	}
	return m
}

// metrics reads them from the admin endpoint, which every Caddy has.
func (c *caddy) metrics() metrics {
	c.t.Helper()
	return c.scrape(fmt.Sprintf("http://127.0.0.1:%d/metrics", c.admin))
}

// sum adds up the series of a metric whose labels contain all the given pairs.
func (m metrics) sum(name string, pairs ...string) (sum float64) {
	for series, value := range m {
		labels, ok := strings.CutPrefix(series, name+"{")
		if ok && !slices.ContainsFunc(pairs, func(p string) bool { return !strings.Contains(labels, p) }) {
			sum += value
		}
	}
	return sum
}

// since returns which counters of events have risen since an earlier scrape, by
// how much. Durations are left out, they go with the requests; so is the name.
func (m metrics) since(before metrics) map[string]float64 {
	risen := make(map[string]float64)
	for series, value := range m {
		name, labels, _ := strings.Cut(series, "{")
		if !strings.HasSuffix(name, "_total") || value == before[series] {
			continue
		}
		_, label, _ := strings.Cut(labels, `",`)
		risen[strings.TrimSuffix(name, "_total")+" "+strings.NewReplacer(`"`, "", "}", "").Replace(label)] = value - before[series]
	}
	return risen
}

// wantRisen fails the test unless exactly the given counters rise while the
// function runs.
func (c *caddy) wantRisen(what string, run func(), want ...string) {
	c.t.Helper()
	before := c.metrics()
	run()
	risen := c.metrics().since(before)
	expected := make(map[string]float64)
	for _, w := range want {
		expected[w]++
	}
	if !maps.Equal(risen, expected) {
		c.t.Errorf("%s:\n\trisen: %v\n\twant:  %v", what, risen, expected)
	}
}

// H15: metrics of two sites with three blocks, over reloads.
func TestH15_MetricsOfSeveralBlocks(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		_, _ = io.WriteString(w, "hello")
	})
	other := freePort(t)
	const config = `http://:{port} {
	handle /a* {
		fastcache {
			path {dir}/cache-a
			name shop
			ttl TTL
		}
		reverse_proxy ORIGIN
	}
	handle /b* {
		fastcache {
			path {dir}/cache-b
			name shop
		}
		reverse_proxy ORIGIN
	}
	handle /metrics {
		metrics
	}
	handle {
		respond 404
	}
}
http://:OTHER {
	fastcache {
		path {dir}/cache-c
		memory_size 0
	}
	reverse_proxy ORIGIN
	EXTRA
}
`
	fill := func(ttl, extra string) string {
		return strings.NewReplacer("ORIGIN", o.addr(), "OTHER", strconv.Itoa(other), "TTL", ttl, "EXTRA", extra).Replace(config)
	}
	c := start(t, fill("1h", ""))
	second := fmt.Sprintf("http://127.0.0.1:%d", other)
	get := func(url string) {
		t.Helper()
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}

	// Every round asks for 3 URLs of its own, each twice, in each block.
	rounds := 0
	load := func() {
		t.Helper()
		for i := range 6 {
			get(c.url(fmt.Sprintf("/a/%d/%d", rounds, i/2)))
			get(c.url(fmt.Sprintf("/b/%d/%d", rounds, i/2)))
			get(fmt.Sprintf("%s/c/%d/%d", second, rounds, i/2))
		}
		rounds++
	}
	check := func(when string) {
		t.Helper()
		if onSite, onAdmin := c.scrape(c.url("/metrics")), c.metrics(); !maps.Equal(onSite, onAdmin) {
			t.Errorf("%s: the site's metrics differ from the admin endpoint's", when)
		}
		m := c.metrics()
		n := float64(3 * rounds)
		want := metrics{
			`requests_total{name="shop",result="miss"}`: 2 * n,
			`requests_total{name="shop",result="hit"}`:  2 * n,
			`requests_total{name="",result="miss"}`:     n,
			`requests_total{name="",result="hit"}`:      n,
			`entries{name="shop"}`:                      2 * n,
			`entries{name=""}`:                          n,
			`bytes{name="",tier="memory"}`:              0,            // memory_size 0
			`bytes{name="",tier="disk"}`:                n * 8192,     // a body and its sidecar
			`bytes{name="shop",tier="disk"}`:            2 * n * 8192, //
			`rebuild_progress_ratio{name="shop"}`:       1,            //
			`disk_errors_total{name="shop"}`:            0,            //
		}
		for series, value := range want {
			if got, ok := m[series]; !ok || got != value {
				t.Errorf("%s: %s is %v (there: %v), want %v", when, series, got, ok, value)
			}
		}
	}
	eventually(t, "the directories are read", func() bool { return c.metrics().sum("rebuild_progress_ratio") == 2 })
	load()
	check("at first")
	if m := c.metrics(); m[`bytes{name="shop",tier="memory"}`] <= 0 {
		t.Error("nothing is in memory")
	}
	for i := range 3 {
		if err := c.reload(fill(fmt.Sprintf("%dm", 61+i), "")); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("after reload %d", i+1))
		load()
		check(fmt.Sprintf("after reload %d and load", i+1))
	}

	// A reload that fails in the last block, when the others are provisioned.
	if err := c.reload(fill("2h", "fastcache {\n\t\tpath /dev/null/no\n\t}")); err == nil {
		t.Fatal("a cache below /dev/null was accepted")
	}
	check("after a failed reload")
	load()
	check("after a failed reload and load")

	// A block that goes away and comes back has not forgotten.
	if err := c.reload("http://:{port} {\n\trespond /metrics ok\n}\n"); err != nil {
		t.Fatal(err)
	}
	if m := c.metrics(); len(m) != 0 {
		t.Errorf("metrics without a cache: %v", m)
	}
	if err := c.reload(fill("1h", "")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the directories are read again", func() bool { return c.metrics().sum("rebuild_progress_ratio") == 2 })
	check("after an interval without a cache")
	if n := c.metrics().sum("rebuild_entries"); n != float64(9*rounds) {
		t.Errorf("%v responses found in the directories, want %d", n, 9*rounds)
	}
}

// H15: under load every request counts, and counts once, also those that old and
// new instances answer at the same time.
func TestH15_MetricsUnderLoadAndReloads(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("private") {
			w.Header().Set("Cache-Control", "private")
		} else {
			w.Header().Set("Cache-Control", "max-age=600")
		}
		_, _ = io.WriteString(w, "hello")
	})
	config := func(i int) string {
		return site(o, "max_items 20", fmt.Sprintf("heuristic_max %dh", i+1))
	}
	c := start(t, config(0))
	var sent, private atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			own := newClient()
			defer own.CloseIdleConnections()
			for i := 0; ctx.Err() == nil; i++ {
				uri := fmt.Sprintf("/%d", (i*7+g)%50)
				if i%5 == 0 {
					uri += "?private"
					private.Add(1)
				}
				res, err := own.Get(c.url(uri))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				sent.Add(1)
			}
		})
	}
	last := metrics{}
	for i := range 4 {
		until := sent.Load() + 50
		eventually(t, "requests are answered", func() bool { return sent.Load() > until })
		if i > 0 {
			if err := c.reload(config(i)); err != nil {
				t.Error(err)
			}
		}
		m := c.metrics()
		for series, value := range last {
			if value > m[series] && strings.Contains(series, "_total") {
				t.Errorf("%s went down from %v to %v", series, value, m[series])
			}
		}
		last = m
		if n := m.sum("entries"); n > 22 {
			t.Errorf("%v entries, max_items 20", n)
		}
	}
	stop()
	wg.Wait()
	m := c.metrics()
	if got := m.sum("requests_total"); got != float64(sent.Load()) {
		t.Errorf("%v requests counted, %d sent", got, sent.Load())
	}
	if got := m.sum("reasons_total", `"private"`); got != float64(private.Load()) {
		t.Errorf("reason private counted %v times, want %d", got, private.Load())
	}
	if m.sum("evictions_total", `"count"`) == 0 {
		t.Error("no eviction by max_items")
	}
	// Each fetch is a miss that did not share another one's.
	if got := m.sum("requests_total", `"miss"`) - m.sum("coalesced_requests_total"); got != float64(o.asked()) {
		t.Errorf("%v misses that were not coalesced, the origin was asked %d times", got, o.asked())
	}
}

// TestMetrics_ResultsAndReasons: every request counts as its Cache-Status says.
func TestMetrics_ResultsAndReasons(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		for _, f := range q["h"] {
			name, value, _ := strings.Cut(f, ":")
			w.Header().Add(name, value)
		}
		if status, err := strconv.Atoi(q.Get("status")); err == nil {
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, "hello")
	})
	c := start(t, site(o, "honor_request_cache_control", "vary Accept-Encoding", "match_header X-Store yes", "purge_allow 127.0.0.1", "disk_size 0", "memory_size 64KB"))
	good := func(name string) string {
		return "/" + name + "?h=X-Store:yes&h=Cache-Control:max-age=600&h=ETag:%22v%22"
	}
	with := func(extra string) string { return "/x?h=X-Store:yes&" + extra }
	for _, tc := range []struct {
		method, uri string
		fields      []string
		want        []string
	}{
		{"GET", good("a"), nil, []string{"requests result=miss"}},
		{"GET", good("a"), nil, []string{"requests result=hit"}},
		{"HEAD", good("a"), nil, []string{"requests result=hit"}},
		{"GET", good("a"), []string{`If-None-Match: "v"`}, []string{"requests result=hit"}}, // 304
		{"GET", good("a"), []string{"Range: bytes=1-2"}, []string{"requests result=hit"}},   // 206
		{"GET", good("a"), []string{"Range: bytes=99-"}, []string{"requests result=hit"}},   // 416
		{"HEAD", good("b"), nil, []string{"requests result=miss"}},                          //
		{"GET", good("c"), []string{"Range: bytes=1-2"}, []string{"requests result=miss"}},  //
		{"GET", good("a"), []string{"Cache-Control: no-store"}, []string{"requests result=bypass", "reasons reason=request-no-store"}},
		{"GET", good("a"), []string{"Cache-Control: min-fresh=900"}, []string{"requests result=miss", "reasons reason=request-min-fresh", "revalidations result=ok", "evictions reason=replaced"}},
		{"GET", good("a"), []string{"Cache-Control: no-cache"}, []string{"requests result=miss", "reasons reason=request-no-cache", "revalidations result=ok", "evictions reason=replaced"}},
		{"GET", good("d"), []string{"Cache-Control: only-if-cached"}, []string{"requests result=miss", "reasons reason=only-if-cached"}},
		{"GET", good("a"), []string{`If-Match: "v"`}, []string{"requests result=bypass", "reasons reason=conditional"}},
		{"GET", good("a"), []string{"X-HTTP-Method-Override: PUT"}, []string{"requests result=bypass", "reasons reason=override"}},
		{"GET", good("a"), []string{"Accept: text/event-stream"}, []string{"requests result=bypass", "reasons reason=event-stream"}},
		{"GET", good("a"), []string{"Connection: Upgrade", "Upgrade: websocket"}, []string{"requests result=bypass", "reasons reason=upgrade"}},
		{"GET", good("f"), []string{"Authorization: Basic YTpi"}, []string{"requests result=miss", "reasons reason=auth"}},
		{"OPTIONS", good("a"), nil, []string{"requests result=bypass", "reasons reason=method"}},
		{"POST", good("a"), nil, []string{"requests result=bypass", "reasons reason=method", "evictions reason=invalidate"}},
		{"GET", "/x?h=Cache-Control:max-age=600", nil, []string{"requests result=miss", "reasons reason=match-header"}},
		{"GET", with("h=Cache-Control:private"), nil, []string{"requests result=miss", "reasons reason=private"}},
		{"GET", with("h=Cache-Control:no-store"), nil, []string{"requests result=miss", "reasons reason=no-store"}},
		{"GET", with("h=Cache-Control:max-age=0"), nil, []string{"requests result=miss", "reasons reason=ttl-zero"}},
		{"GET", with("h=Set-Cookie:a=b&h=Cache-Control:max-age=600"), nil, []string{"requests result=miss", "reasons reason=set-cookie"}},
		{"GET", with("h=Vary:*&h=Cache-Control:max-age=600"), nil, []string{"requests result=miss", "reasons reason=vary-star"}},
		{"GET", with("h=Vary:X-A&h=Cache-Control:max-age=600"), nil, []string{"requests result=miss", "reasons reason=vary-unlisted"}},
		{"GET", with("status=206"), nil, []string{"requests result=miss", "reasons reason=partial"}},
		{"GET", with("status=299&h=Cache-Control:must-understand,no-store,max-age=600"), nil, []string{"requests result=miss", "reasons reason=must-understand"}},
		{"GET", with("h=Content-Length:100000&h=Cache-Control:max-age=600"), nil, []string{"requests result=miss", "reasons reason=too-big"}},
		{"GET", with("status=500"), nil, []string{"requests result=miss", "reasons reason=status"}},
		{"GET", with("cookie"), []string{"Cookie: a=b"}, []string{"requests result=miss", "reasons reason=cookie"}},
		{"PURGE", good("never"), nil, []string{"requests result=purged", "reasons reason=purge-miss"}},
	} {
		c.wantRisen(tc.method+" "+tc.uri+" "+strings.Join(tc.fields, ", "), func() {
			r := c.do(tc.method, tc.uri, tc.fields...)
			// The same word in the header, unless the connection changes hands.
			for _, w := range tc.want {
				if reason, ok := strings.CutPrefix(w, "reasons reason="); ok && reason != "upgrade" && !strings.Contains(r.cacheStatus(), "; detail="+reason) {
					t.Errorf("%s %s: %s, want detail=%s", tc.method, tc.uri, r.cacheStatus(), reason)
				}
			}
		}, tc.want...)
	}
	c.wantRisen("a GET with a body", func() {
		c.send(t.Context(), http.MethodGet, good("a"), strings.NewReader("body")).want(t, 200, "hello")
	}, "requests result=bypass", "reasons reason=request-body")
	c.get(good("p"))
	c.wantRisen("a purge", func() { c.do("PURGE", good("p")).want(t, 200, "{\"purged\":1}\n") },
		"requests result=purged", "reasons reason=purged", "evictions reason=purge")
}

// TestMetrics_Validation: what is stale, and what the origin says of it.
func TestMetrics_Validation(t *testing.T) {
	t.Parallel()
	var version atomic.Int64
	o := newSick(t, func(w http.ResponseWriter, r *http.Request) {
		etag := fmt.Sprintf(`"v%d"`, version.Load())
		w.Header().Set("ETag", etag)
		w.Header().Set("Cache-Control", r.URL.Query().Get("cc"))
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "hello "+etag)
	})
	c := start(t, site(o.origin, "revalidate_timeout 500ms"))
	const (
		always = "/always?cc=no-cache"
		swr    = "/swr?cc=max-age=1,stale-while-revalidate=600"
		sie    = "/sie?cc=max-age=1,stale-if-error=600"
		bare   = "/bare?cc=max-age=1"
	)
	for _, uri := range []string{always, swr, sie, bare} {
		c.wantRisen("the first "+uri, func() { c.get(uri) }, "requests result=miss")
	}
	c.wantRisen("304", func() { c.get(always) }, "requests result=revalidated", "revalidations result=not_modified")
	version.Add(1)
	c.wantRisen("200", func() { c.get(always) }, "requests result=miss", "revalidations result=ok", "evictions reason=replaced")

	time.Sleep(1100 * time.Millisecond)
	before := c.metrics()
	c.get(swr).wantStatus(t, "fastcache; hit; ttl=")
	eventually(t, "the refresh counts", func() bool {
		return c.metrics().sum("revalidations_total", `"ok"`) > before.sum("revalidations_total", `"ok"`)
	})
	if risen := c.metrics().since(before); risen["requests result=stale"] != 1 || risen["revalidations result=ok"] != 1 || risen["requests result=miss"] != 0 {
		t.Errorf("stale-while-revalidate: %v", risen)
	}
	for _, mode := range []string{"503", "reset", "hang"} {
		o.be(mode)
		c.wantRisen("stale-if-error, "+mode, func() { c.get(sie).want(t, 200, `hello "v0"`) },
			"requests result=stale", "reasons reason=stale-error", "revalidations result=error")
	}
	o.be("503")
	c.wantRisen("a failure that passes", func() { c.get(bare).want(t, 503, "the origin is sick\n") },
		"requests result=miss", "reasons reason=status", "revalidations result=error")
	o.be("reset")
	c.wantRisen("no answer to a validation", func() { c.get(bare) },
		"requests result=miss", "reasons reason=upstream-error", "revalidations result=error")
	c.wantRisen("no answer at all", func() { c.get("/new") }, "requests result=miss", "reasons reason=upstream-error")
	c.wantRisen("no answer past the cache", func() { c.do(http.MethodOptions, "/new") }, "requests result=bypass", "reasons reason=method")
}

// TestMetrics_Coalesced: those who wait for another one's fetch are misses that
// cost the origin nothing; those who give up say so, and so do answers that end
// too early.
func TestMetrics_Coalesced(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var once sync.Once
	open := func() { once.Do(func() { close(release) }) }
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		switch r.URL.Path {
		case "/slow":
			<-release
			_, _ = io.WriteString(w, "hello")
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "hello")
		}
	})
	c := start(t, site(o))
	t.Cleanup(open) // before the origin is closed, which waits for its handlers
	before := c.metrics()
	const followers = 8
	var wg sync.WaitGroup
	for range 1 + followers {
		wg.Go(func() { c.get("/slow").want(t, 200, "hello") })
	}
	gone, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer leave()
	eventually(t, "the origin is asked", func() bool { return o.asked() == 1 })
	time.Sleep(100 * time.Millisecond) // the leader is on its way, whoever it is
	if _, err := c.try(gone, http.MethodGet, "/slow", nil); err == nil {
		t.Error("a client that left has an answer")
	}
	eventually(t, "the client that left counts", func() bool { return c.metrics().sum("reasons_total", `"client-gone"`) == 1 })
	open()
	wg.Wait()
	risen := c.metrics().since(before)
	if want := map[string]float64{"requests result=miss": 1 + followers + 1, "coalesced_requests ": followers, "reasons reason=client-gone": 1}; !maps.Equal(risen, want) {
		t.Errorf("risen: %v, want %v", risen, want)
	}
	c.wantRisen("an answer that is cut short", func() {
		if r, err := c.try(t.Context(), http.MethodGet, "/cut", nil); err == nil && r.err == nil {
			t.Error("the body is whole")
		}
	}, "requests result=miss", "reasons reason=truncated")
}

// TestMetrics_Evictions: each cause counts where it can be brought about from
// outside.
func TestMetrics_Evictions(t *testing.T) {
	t.Parallel()
	o := sizedOrigin(t)
	causes := func(m metrics) map[string]float64 {
		found := make(map[string]float64)
		for series, value := range m {
			if label, ok := strings.CutPrefix(series, `evictions_total{name="",reason="`); ok && value > 0 {
				found[strings.TrimSuffix(label, `"}`)] = value
			}
		}
		return found
	}
	for _, tc := range []struct {
		cause   string
		options []string
		kept    float64 // entries of 40; 0: some
		exact   bool
	}{
		{"count", []string{"max_items 10"}, 10, true},
		{"disk", []string{"disk_size 500KB", "memory_size 0"}, 0, true},
		{"memory", []string{"disk_size 0", "memory_size 100KB"}, 0, true},
	} {
		c := start(t, site(o, tc.options...))
		for i := range 40 {
			c.get(fmt.Sprintf("/%d?n=20000", i))
		}
		eventually(t, tc.cause+": as many entries as were stored and not evicted", func() bool {
			m := c.metrics()
			return m.sum("entries") == 40-m.sum("evictions_total")
		})
		m := c.metrics()
		kept := m.sum("entries")
		if found := causes(m); len(found) != 1 || found[tc.cause] != 40-kept || kept == 0 || kept == 40 || tc.kept > 0 && kept != tc.kept {
			t.Errorf("%s: %v evicted, %v kept", tc.cause, found, kept)
		}
	}

	// A body that is changed on disk is damage: found once, counted twice, as
	// damaged and as what left.
	c := start(t, site(o, "memory_size 0"))
	c.get("/d?n=20000").want(t, 200, testBody("/d?n=20000", 20_000))
	eventually(t, "it is stored", func() bool { return c.do(http.MethodHead, "/d?n=20000").hit() })
	changed := 0
	for _, file := range c.cacheFiles() {
		if info, err := os.Stat(file); err == nil && !strings.HasSuffix(file, ".meta") && info.Size() >= 20_000 {
			if err := os.Truncate(file, 10_000); err != nil {
				t.Fatal(err)
			}
			changed++
		}
	}
	if changed != 1 {
		t.Fatalf("changed %d bodies of %v", changed, c.cacheFiles())
	}
	c.wantRisen("a damaged body", func() { c.get("/d?n=20000").want(t, 200, testBody("/d?n=20000", 20_000)) },
		"requests result=miss", "evictions reason=damaged", "damaged ")
}

// TestAccessLog_Fields: Caddy's access log tells what the cache did.
func TestAccessLog_Fields(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", r.URL.Query().Get("cc"))
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "1000")
		}
		_, _ = io.WriteString(w, "hello")
	})
	config := strings.Replace(site(o), "\troute {", "\tlog {\n\t\toutput file {dir}/access.log\n\t}\n\thandle /plain {\n\t\trespond ok\n\t}\n\troute {", 1)
	c := start(t, config)
	type line struct {
		Request   struct{ URI string }
		FastCache *struct {
			Result string
			Reason string
			TTL    *int
		}
	}
	uris := []string{"/a?cc=max-age=600", "/a?cc=max-age=600", "/b?cc=private", "/cut?cc=max-age=600", "/plain"}
	for _, uri := range uris {
		_, _ = c.try(t.Context(), http.MethodGet, uri, nil)
	}
	var lines []line
	eventually(t, "the lines are there", func() bool {
		text, _ := os.ReadFile(filepath.Join(c.dir, "access.log"))
		lines = nil
		for s := range strings.Lines(string(text)) {
			var l line
			if err := json.Unmarshal([]byte(s), &l); err != nil {
				return false // half a line
			}
			lines = append(lines, l)
		}
		return len(lines) == len(uris)
	})
	want := []string{"miss  ttl", "hit  ttl", "miss private", "miss truncated ttl", "none"}
	for i, l := range lines {
		got := "none"
		if f := l.FastCache; f != nil {
			got = f.Result + " " + f.Reason
			if f.TTL != nil {
				got += " ttl"
				if *f.TTL < 590 || *f.TTL > 600 {
					t.Errorf("%s: ttl %d", l.Request.URI, *f.TTL)
				}
			}
		}
		if got != want[i] {
			t.Errorf("%s: %q, want %q", l.Request.URI, got, want[i])
		}
	}
}
