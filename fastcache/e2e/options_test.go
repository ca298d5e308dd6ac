package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Each option does what its line of documentation says, and no more.

func TestOption_MatchHeader(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for _, f := range strings.Split(r.URL.Query().Get("h"), ",") {
			if k, v, ok := strings.Cut(f, ":"); ok {
				w.Header().Add(k, v)
			}
		}
		_, _ = io.WriteString(w, "x")
	})
	for option, uris := range map[string]map[string]bool{
		"match_header Content-Type image/png image/jpeg": {
			"/?h=Content-Type:image/png": true, "/?h=Content-Type:image/jpeg": true,
			"/?h=Content-Type:image/gif": false, "/?h=Content-Type:text/html": false, "/?h=X:image/png": false,
		},
		"match_header content-type image/png\n\t\t\tmatch_header X-Cache yes": {
			"/?h=Content-Type:image/png,X-Cache:yes": true, "/?h=Content-Type:image/png,X-Cache:no,X-Cache:yes": true,
			"/?h=Content-Type:image/png": false, "/?h=X-Cache:yes": false,
		},
	} {
		c := start(t, site(o, option))
		for uri, stored := range uris {
			c.get(uri).want(t, 200, "x")
			r := c.get(uri).want(t, 200, "x")
			if r.hit() != stored {
				t.Errorf("%q: %s: %s", option, uri, r.cacheStatus())
			}
			if !stored {
				r.wantStatus(t, "fastcache; fwd=uri-miss; detail=match-header")
			}
		}
	}
}

func TestOption_Query(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })
	for _, tc := range []struct {
		options []string
		same    [][]string // each list shares one response, the lists do not
		asks    []string   // what the origin gets for each list's first
	}{
		{[]string{"query_sort"}, [][]string{
			{"/a?x=1&y=2", "/a?y=2&x=1"},
			{"/a?x=2&x=1"}, // values of one name keep their order: it may matter
			{"/a?x=1&x=2"},
			{"/a?b&a", "/a?a&b"},
			{"/a"},
			{"/a?x=1"},
		}, []string{"/a?x=1&y=2", "/a?x=2&x=1", "/a?x=1&x=2", "/a?a&b", "/a", "/a?x=1"}},
		{[]string{"query_ignore utm_* gclid", "query_ignore fbclid"}, [][]string{
			{"/a?x=1", "/a?x=1&gclid=1", "/a?fbclid=1&x=1&utm_source=a%26b"},
			{"/a?y=2&x=1"},
			{"/a", "/a?utm_source=1"},
			{"/a?gclid_=1"},
		}, []string{"/a?x=1", "/a?y=2&x=1", "/a", "/a?gclid_=1"}},
		{[]string{"query_sort", "query_ignore v"}, [][]string{
			{"/a?x=1&y=2", "/a?y=2&v=3&x=1"},
		}, []string{"/a?x=1&y=2"}},
	} {
		t.Run(strings.Join(tc.options, ","), func(t *testing.T) {
			c := start(t, site(o, tc.options...))
			for i, uris := range tc.same {
				before := len(o.log())
				for j, uri := range uris {
					r := c.get(uri)
					if r.hit() != (j > 0) {
						t.Errorf("%s: %s", uri, r.cacheStatus())
					}
				}
				if got := o.log()[before:]; !slices.Equal(got, []string{"GET " + tc.asks[i]}) {
					t.Errorf("for %q the origin got %q, want %s", uris, got, tc.asks[i])
				}
			}
		})
	}
}

func TestOption_Vary(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if v := r.URL.Query().Get("vary"); v != "" {
			w.Header().Set("Vary", v)
		}
		_, _ = io.WriteString(w, r.Header.Get("X-A"))
	})
	c := start(t, site(o, "vary x-a", "vary Accept-Encoding", "max_variants 3"))
	for uri, stored := range map[string]bool{
		"/?vary=": true, "/?vary=X-A": true, "/?vary=x-a,%20accept-encoding": true,
		"/?vary=X-B": false, "/?vary=X-A,X-B": false, "/?vary=*": false, "/?vary=X-A,*": false,
	} {
		c.get(uri, "X-A: 1").want(t, 200, "1")
		r := c.get(uri, "X-A: 1").want(t, 200, "1")
		if r.hit() != stored {
			t.Errorf("%s: %s", uri, r.cacheStatus())
		}
		if uri != "/?vary=" {
			c.get(uri, "X-A: 2").want(t, 200, "2")
		}
	}
	// No more variants of one URL than max_variants.
	const uri = "/many?vary=X-A"
	for i := range 10 {
		c.get(uri, fmt.Sprintf("X-A: %d", i)).want(t, 200, strconv.Itoa(i))
	}
	c.do("PURGE", uri).want(t, 200, "{\"purged\":3}\n")
}

// honor_request_cache_control, and that its absence is obeyed too.
func TestOption_HonorRequestCacheControl(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Cache-Control", q.Get("cc"))
		if q.Has("etag") {
			w.Header().Set("ETag", `"v"`)
			if r.Header.Get("If-None-Match") == `"v"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		_, _ = io.WriteString(w, "x")
	})
	type step struct {
		field  string
		status string // of the answer
	}
	const (
		long      = "?cc=max-age=60"
		validated = "?cc=max-age=60&etag"
		immutable = "?cc=max-age=60,immutable"
		short     = "?cc=max-age=1&etag"
		strict    = "?cc=max-age=1,must-revalidate&etag"
		hit       = "fastcache; hit"
		stale     = "fastcache; hit; ttl=-"
	)
	c := start(t, site(o, "honor_request_cache_control"))
	plain := start(t, site(o))
	cases := []struct {
		query string
		step  step
	}{
		{long, step{"Cache-Control: max-age=60", hit}},
		{long, step{"Cache-Control: max-age=1", "fastcache; fwd=request; fwd-status=200; stored; ttl=60; detail=request-max-age"}},
		{validated, step{"Cache-Control: max-age=1", "fastcache; fwd=request; fwd-status=304"}},
		{immutable, step{"Cache-Control: max-age=1", hit}},
		{long, step{"Cache-Control: min-fresh=30", hit}},
		{long, step{"Cache-Control: min-fresh=90", "fastcache; fwd=request; fwd-status=200; stored; ttl=60; detail=request-min-fresh"}},
		{long, step{"Cache-Control: no-cache", "fastcache; fwd=request; fwd-status=200; stored; ttl=60; detail=request-no-cache"}},
		{long, step{"Cache-Control: NO-CACHE", "fastcache; fwd=request"}},
		{long, step{"Cache-Control: max-age=100, no-cache", "fastcache; fwd=request"}},
		{validated, step{"Cache-Control: no-cache", "fastcache; fwd=request; fwd-status=304"}},
		{immutable, step{"Cache-Control: no-cache", "fastcache; fwd=request"}},
		{long, step{"Pragma: no-cache", "fastcache; fwd=request"}},
		{long, step{"Pragma: no-cache+Cache-Control: max-age=100", hit}},
		{long, step{"Cache-Control: no-store", "fastcache; fwd=request; detail=request-no-store"}},
		{long, step{"Cache-Control: only-if-cached", hit}},
		{long, step{"Cache-Control: max-stale", hit}},
		{long, step{`Cache-Control: unknown, other="max-age=0"`, hit}},
		{short, step{"Cache-Control: max-stale", stale}},
		{short, step{"Cache-Control: max-stale=100", stale}},
		{short, step{"Cache-Control: max-stale=0", "fastcache; fwd=stale; fwd-status=304"}},
		{short, step{"Cache-Control: max-stale=100, min-fresh=1", "fastcache; fwd=stale; fwd-status=304"}},
		{short, step{"Cache-Control: only-if-cached, max-stale", stale}},
		{strict, step{"Cache-Control: max-stale", "fastcache; fwd=stale; fwd-status=304"}},
	}
	uri := func(i int) string { return fmt.Sprintf("/%d%s", i, cases[i].query) }
	for i := range cases {
		c.get(uri(i)).want(t, 200, "x")
		plain.get(uri(i)).want(t, 200, "x")
	}
	c.get("/gone?cc=max-age=1").want(t, 200, "x")
	time.Sleep(2200 * time.Millisecond)
	for i, tc := range cases {
		fields := strings.Split(tc.step.field, "+")
		c.get(uri(i), fields...).want(t, 200, "x").wantStatus(t, tc.step.status)
		if t.Failed() {
			t.Fatalf("%s with %q", uri(i), fields)
		}
		if tc.query != short && tc.query != strict {
			plain.get(uri(i), fields...).want(t, 200, "x").wantStatus(t, hit)
		}
	}
	t.Run("only-if-cached", func(t *testing.T) {
		before := o.asked()
		for _, uri := range []string{"/cold" + long, "/gone?cc=max-age=1"} {
			c.get(uri, "Cache-Control: only-if-cached").want(t, 504, "").wantStatus(t, "fastcache; detail=only-if-cached")
		}
		o.wantAsked(t, before)
		// Without the option the origin is asked.
		plain.get("/cold"+long, "Cache-Control: only-if-cached").want(t, 200, "x")
	})
	t.Run("no-store", func(t *testing.T) {
		c.get("/secret"+long, "Cache-Control: no-store").want(t, 200, "x")
		c.get("/secret"+long).wantStatus(t, "fastcache; fwd=uri-miss; stored")
		plain.get("/secret"+long, "Cache-Control: no-store").want(t, 200, "x")
		plain.get("/secret"+long).wantStatus(t, hit)
	})
	t.Run("max-age=0 makes the stored one new", func(t *testing.T) {
		c.get("/reload"+long).want(t, 200, "x")
		time.Sleep(1100 * time.Millisecond)
		c.get("/reload"+long, "Cache-Control: max-age=0").wantStatus(t, "fastcache; fwd=request; fwd-status=200; stored; ttl=60; detail=request-max-age")
		if r := c.get("/reload"+long).wantStatus(t, hit); r.Header.Get("Age") != "0" {
			t.Errorf("Age %s after a reload", r.Header.Get("Age"))
		}
	})
}

func TestOption_StoreSetCookie(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Path == "/private" {
			w.Header().Set("Cache-Control", "private, max-age=60")
		}
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2; Path=/")
	})
	c := start(t, site(o, "store_set_cookie"))
	c.get("/")
	r := c.get("/").wantStatus(t, "fastcache; hit")
	if got := r.Header.Values("Set-Cookie"); !slices.Equal(got, []string{"a=1", "b=2; Path=/"}) {
		t.Errorf("Set-Cookie %q", got)
	}
	c.get("/private")
	c.get("/private").wantStatus(t, "fastcache; fwd=uri-miss; detail=private")
}

func TestOption_CacheStatusKey(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Cache-Status", "inner; hit; ttl=5")
	})
	c := start(t, site(o, "cache_status_key"))
	for _, uri := range []string{"/p?a=1", `/p"q\r`, "/p%22q"} {
		want, _ := strings.CutPrefix(strconv.Quote("http://site.example"+uri), "")
		for _, begin := range []string{"fastcache; fwd=uri-miss; stored; ttl=60; key=", "fastcache; hit; ttl="} {
			lines := c.get(uri, "Host: Site.Example").Header.Values("Cache-Status")
			if len(lines) != 2 || lines[0] != "inner; hit; ttl=5" {
				t.Errorf("Cache-Status %q, want the inner cache's line first", lines)
				continue
			}
			if !strings.HasPrefix(lines[1], begin) || !strings.HasSuffix(lines[1], "; key="+want) {
				t.Errorf("%s: Cache-Status %s, want %s...; key=%s", uri, lines[1], begin, want)
			}
		}
	}
	c = start(t, site(o))
	if lines := c.get("/p").Header.Values("Cache-Status"); strings.Contains(strings.Join(lines, ""), "key=") {
		t.Errorf("Cache-Status %q without the option", lines)
	}
}

// disable_touch_on_hit: eviction is in order of storing.
func TestOption_DisableTouchOnHit(t *testing.T) {
	o := sizedOrigin(t)
	survives := func(options ...string) bool {
		c := start(t, site(o, append(options, "max_items 100", "memory_size 1MB")...))
		const hot = "/hot?n=1000"
		c.get(hot)
		for i := range 400 {
			c.get(fmt.Sprintf("/%d?n=1000", i))
			if i < 50 {
				c.get(hot) // stays in use while it is surely still there
			}
		}
		return c.get(hot).hit()
	}
	if !survives() {
		t.Error("a response in use was evicted for 400 that are asked for once")
	}
	if survives("disable_touch_on_hit") {
		t.Error("the oldest response survived 4 times max_items newer ones")
	}
}

// max_body_size: larger bodies pass, whether their length is known or not.
func TestOption_MaxBodySize(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Query().Has("chunked") {
			_ = http.NewResponseController(w).Flush()
		}
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		_, _ = io.WriteString(w, testBody("x", n))
	})
	c := start(t, site(o, "max_body_size 1000"))
	for uri, fits := range map[string]bool{"/?n=1000": true, "/?n=1001": false, "/?n=1000&chunked": true, "/?n=1001&chunked": false} {
		n := 1000
		if !fits {
			n++
		}
		c.get(uri).want(t, 200, testBody("x", n))
		r := c.get(uri).want(t, 200, testBody("x", n))
		if r.hit() != fits {
			t.Errorf("%s: %s", uri, r.cacheStatus())
		}
	}
	c.get("/?n=1002").wantStatus(t, "fastcache; fwd=uri-miss; detail=too-big")
}

// promote_below: which bodies are answered from RAM shows when their files are
// gone.
func TestOption_PromoteBelow(t *testing.T) {
	o := sizedOrigin(t)
	for option, inRAM := range map[string]map[int]bool{
		"promote_below 16KB":                     {1000: true, 16_000: true, 16_001: false, 100_000: false},
		"promote_below 200KB":                    {1000: true, 100_000: true, 300_000: false},
		"promote_below 0":                        {1000: false, 16_000: false},
		"memory_size 0":                          {1000: false, 16_000: false},
		"promote_below 1MB\n\t\t\tmemory_size 0": {1000: false},
	} {
		c := start(t, site(o, option))
		uri := func(n int) string { return fmt.Sprintf("/p?n=%d", n) }
		for n := range inRAM {
			for range 3 {
				c.get(uri(n)).want(t, 200, testBody(uri(n), n))
			}
		}
		eventually(t, "all are on disk", func() bool { return len(c.cacheFiles()) == 2*len(inRAM) })
		for _, f := range c.cacheFiles() {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		for n, want := range inRAM {
			if r := c.get(uri(n)).want(t, 200, testBody(uri(n), n)); r.hit() != want {
				t.Errorf("%s: %d bytes from RAM: %v (%s)", option, n, r.hit(), r.cacheStatus())
			}
		}
	}
}

// Every option in its JSON form, as adapted from the Caddyfile, is loaded again.
func TestOption_JSONRoundTrip(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })
	config := site(o, "name a", "memory_size 1MB", "disk_size 2MB", "max_body_size 1KB", "max_items 7", "max_variants 3", "heuristic_max 1h",
		"stale_while_revalidate 1s", "stale_if_error 2s", "status_ttl 404 410 1m", "revalidate_timeout 3s", "query_sort", "no_vary_search",
		"query_ignore utm_*", "match_header Content-Type text/plain", "vary X-A", "purge_allow 10.0.0.0/8 127.0.0.1",
		"promote_below 1KB", "honor_request_cache_control", "store_set_cookie", "disable_touch_on_hit", "cache_status_key")
	c := start(t, config)
	res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/config/apps/http", c.admin))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	var app any
	if err := json.Unmarshal(text, &app); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	handler := findHandler(app, "fastcache")
	for _, option := range []string{
		"path", "name", "memory_size", "disk_size", "max_body_size", "max_items", "max_variants", "ttl", "heuristic_max",
		"stale_while_revalidate", "stale_if_error", "status_ttl", "revalidate_timeout", "query_sort", "query_ignore",
		"no_vary_search", "match_headers", "vary", "purge_allow", "promote_below", "honor_request_cache_control", "store_set_cookie",
		"disable_touch_on_hit", "cache_status_key",
	} {
		if handler[option] == nil {
			t.Errorf("%s is not in the JSON: %s", option, text)
		}
	}
}

// findHandler looks for a handler in a Caddy configuration.
func findHandler(config any, name string) map[string]any {
	switch v := config.(type) {
	case map[string]any:
		if v["handler"] == name {
			return v
		}
		for _, sub := range v {
			if h := findHandler(sub, name); h != nil {
				return h
			}
		}
	case []any:
		for _, sub := range v {
			if h := findHandler(sub, name); h != nil {
				return h
			}
		}
	}
	return nil
}
