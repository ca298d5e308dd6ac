package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sick is an origin that can be made to fail in many ways.
type sick struct {
	*origin
	mode atomic.Pointer[string]
	stop chan struct{}
}

func newSick(t *testing.T, healthy http.HandlerFunc) *sick {
	s := &sick{stop: make(chan struct{})}
	s.be("healthy")
	s.origin = newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch mode := *s.mode.Load(); mode {
		case "healthy":
			healthy(w, r)
		case "hang":
			select {
			case <-s.stop:
			case <-r.Context().Done():
			}
		case "reset", "half":
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			if mode == "half" { // of a header
				_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nCache-Con")
				_ = rw.Flush()
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		default:
			var code int
			_, _ = fmt.Sscan(mode, &code)
			http.Error(w, "the origin is sick", code)
		}
	})
	t.Cleanup(func() { close(s.stop) })
	return s
}

func (s *sick) be(mode string) { s.mode.Store(&mode) }

// H22: an origin that fails.
func TestH22_OriginFails(t *testing.T) {
	o := newSick(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Cache-Control", q.Get("cc"))
		if q.Has("etag") {
			w.Header().Set("ETag", `"v1"`)
			if r.Header.Get("If-None-Match") == `"v1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		_, _ = io.WriteString(w, "a good page")
	})
	// One that can be shut down and opened again at its address.
	closable, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shut := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		_, _ = io.WriteString(w, "from the one that is shut")
	})}
	go func() { _ = shut.Serve(closable) }()

	c := start(t, strings.NewReplacer("SICK", o.addr(), "SHUT", closable.Addr().String()).Replace(`http://:{port} {
	route {
		fastcache {
			path {dir}/cache
			stale_if_error 60s
			revalidate_timeout 1s
		}
		reverse_proxy /shut* SHUT
		reverse_proxy SICK {
			lb_try_duration 0
		}
	}
	handle_errors {
		respond "custom {err.status_code}"
	}
}
`))
	modes := []string{"500", "502", "503", "504", "reset", "half", "hang"}
	uri := func(mode string, etag bool) string {
		if etag {
			return "/" + mode + "?cc=max-age=1&etag"
		}
		return "/" + mode + "?cc=max-age=1"
	}
	for _, mode := range append(modes, "404", "410") {
		for _, etag := range []bool{false, true} {
			c.get(uri(mode, etag)).want(t, 200, "a good page")
		}
	}
	strict := map[string]string{
		"must-revalidate":  "/strict1?cc=max-age=1,must-revalidate",
		"proxy-revalidate": "/strict2?cc=max-age=1,proxy-revalidate",
		"s-maxage":         "/strict3?cc=s-maxage=1",
		"no-cache":         "/strict4?cc=no-cache&etag",
	}
	for _, uri := range strict {
		c.get(uri).want(t, 200, "a good page")
	}
	const own = "/own?cc=max-age=1,stale-if-error=1"
	c.get(own).want(t, 200, "a good page")
	c.get("/shut").want(t, 200, "from the one that is shut")
	time.Sleep(2100 * time.Millisecond)
	shut.Close()

	for _, mode := range modes {
		o.be(mode)
		for _, etag := range []bool{false, true} {
			t.Run(fmt.Sprintf("stale/%s/etag=%v", mode, etag), func(t *testing.T) {
				begin := time.Now()
				r := c.get(uri(mode, etag)).want(t, 200, "a good page").wantStatus(t, "fastcache; fwd=stale; fwd-status=")
				if !strings.Contains(r.cacheStatus(), "; detail=stale-error") || r.Header.Get("Age") == "0" || r.Header.Get("Age") == "" {
					t.Errorf("Cache-Status %q, Age %q", r.cacheStatus(), r.Header.Get("Age"))
				}
				if d := time.Since(begin); d > 3*time.Second {
					t.Errorf("it took %v", d)
				}
				c.do(http.MethodHead, uri(mode, etag)).want(t, 200, "")
			})
		}
	}
	t.Run("stale/closed port", func(t *testing.T) {
		for range 2 {
			c.get("/shut").want(t, 200, "from the one that is shut").wantStatus(t, "fastcache; fwd=stale; fwd-status=502; ttl=-")
		}
	})
	t.Run("no error", func(t *testing.T) {
		// What is gone is no failure: the page must not come back.
		for _, mode := range []string{"404", "410"} {
			o.be(mode)
			if r := c.get(uri(mode, true)); fmt.Sprint(r.StatusCode) != mode {
				t.Errorf("%s: %d (%s)", mode, r.StatusCode, r.cacheStatus())
			}
			o.be("503")
			if r := c.get(uri(mode, true)); r.StatusCode == 200 {
				t.Errorf("after a %s the old page came back: %s", mode, r.cacheStatus())
			}
		}
	})
	for name, uri := range strict {
		t.Run("strict/"+name, func(t *testing.T) {
			o.be("503")
			if r := c.get(uri); r.StatusCode != 503 {
				t.Errorf("503: %d %q (%s)", r.StatusCode, r.body, r.cacheStatus())
			}
			o.be("reset")
			c.get(uri).want(t, 502, "custom 502").wantStatus(t, "fastcache; fwd=")
			o.be("healthy")
			c.get(uri).want(t, 200, "a good page")
		})
	}
	t.Run("window of its own", func(t *testing.T) {
		// stale-if-error=1 is over, although the option says 60 s.
		o.be("503")
		if r := c.get(own); r.StatusCode != 503 {
			t.Errorf("%d (%s)", r.StatusCode, r.cacheStatus())
		}
	})
	t.Run("cold", func(t *testing.T) {
		before := o.asked()
		o.be("reset")
		for range 2 {
			c.get("/cold?cc=max-age=60").want(t, 502, "custom 502").wantStatus(t, "fastcache; fwd=uri-miss; detail=upstream-error")
			c.get("/shut/cold").want(t, 502, "custom 502")
		}
		if n := o.asked() - before; n < 2 {
			t.Errorf("%d fetches: the error page was stored", n)
		}
		o.be("healthy")
		c.get("/cold?cc=max-age=60").want(t, 200, "a good page")
		c.get("/cold?cc=max-age=60").want(t, 200, "a good page").wantStatus(t, "fastcache; hit")
	})
	t.Run("recovered", func(t *testing.T) {
		o.be("healthy")
		for _, mode := range modes {
			for _, etag := range []bool{false, true} {
				r := c.get(uri(mode, etag)).want(t, 200, "a good page").wantStatus(t, "fastcache; fwd=stale")
				if strings.Contains(r.cacheStatus(), "stale-error") {
					t.Errorf("%s: still %s", mode, r.cacheStatus())
				}
			}
		}
	})
}

// Many clients of a stale response whose origin hangs wait for one, not one after
// another.
func TestH22_ManyAtAHungOrigin(t *testing.T) {
	o := newSick(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		_, _ = io.WriteString(w, "a good page")
	})
	c := start(t, site(o.origin, "stale_if_error 60s", "revalidate_timeout 1s"))
	c.get("/").want(t, 200, "a good page")
	time.Sleep(2100 * time.Millisecond)
	o.be("hang")
	begin := time.Now()
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { c.get("/").want(t, 200, "a good page") })
	}
	wg.Wait()
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("40 clients took %v", d)
	}
	client.CloseIdleConnections() // Caddy would wait for those that were never used
}

// H23: a refresh in the background outlives the request that started it, and
// shares nothing with it.
func TestH23_BackgroundRefresh(t *testing.T) {
	var version atomic.Int64
	answer := make(chan struct{}) // closed when the clients have gone
	open := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(open)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if version.Load() > 0 {
			<-answer
		}
		w.Header().Set("Cache-Control", "max-age=2")
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Forwarded-To", r.Header.Get("X-Up"))
		fmt.Fprintf(w, "%s %d %s", r.URL.Path, version.Load(), strings.Repeat("z", 2000))
	})
	tlsPort := freePort(t)
	c := start(t, strings.NewReplacer("ORIGIN", o.addr(), "TLS", fmt.Sprint(tlsPort)).Replace(`http://:{port}, https://localhost:TLS {
	tls internal
	log
	vars kind page
	map {path} {name} {
		~^/(.*)$ "${1}"
	}
	@page path_regexp page ^/(p.*)$
	header X-Front {http.vars.kind}
	header +X-Host {host}
	route @page {
		encode gzip
		fastcache {
			path {dir}/cache
			stale_while_revalidate 30s
		}
		reverse_proxy ORIGIN {
			header_up X-Up "{http.vars.kind} {http.regexp.page.1} {name}"
		}
	}
}
`))
	h2 := newTLSClient(t, tlsPort)
	get := func(h *http.Client, base string, i int) (body, status string, header http.Header) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/p%d", base, i), nil)
		res, err := h.Do(req)
		if err != nil {
			t.Error(err)
			return "", "", nil
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return string(b), res.Header.Get("Cache-Status"), res.Header
	}
	bases := map[string]*http.Client{strings.TrimSuffix(c.url("/"), "/"): client, fmt.Sprintf("https://localhost:%d", tlsPort): h2}
	page := func(i, v int) string { return fmt.Sprintf("/p%d %d %s", i, v, strings.Repeat("z", 2000)) }
	for base, h := range bases {
		for i := range 10 {
			body, _, header := get(h, base, i)
			if want := fmt.Sprintf("page p%[1]d p%[1]d", i); body != page(i, 0) || header.Get("X-Forwarded-To") != want {
				t.Fatalf("%.80q, %q to the origin", body, header.Get("X-Forwarded-To"))
			}
		}
	}
	o.wantAsked(t, 20)
	time.Sleep(2100 * time.Millisecond)
	version.Store(1)
	var wg sync.WaitGroup
	begin := time.Now()
	for base, h := range bases {
		for i := range 50 {
			wg.Go(func() {
				body, status, header := get(h, base, i%10)
				if body != page(i%10, 0) || !strings.HasPrefix(status, "fastcache; hit; ttl=-") && !strings.HasPrefix(status, "fastcache; hit; ttl=0") {
					t.Errorf("%.80q, %s", body, status)
				}
				if header.Get("X-Front") != "page" {
					t.Errorf("X-Front %q", header["X-Front"])
				}
			})
		}
	}
	wg.Wait()
	// They did not wait for the origin, which answers only now.
	if d := time.Since(begin); d > 4*time.Second {
		t.Errorf("stale hits took %v", d)
	}
	open()
	client.CloseIdleConnections()
	// The clients have gone. One refresh for each URL comes to its end.
	for base, h := range bases {
		for i := range 10 {
			eventually(t, "the next hit is fresh", func() bool {
				body, status, header := get(h, base, i)
				if body != page(i, 1) {
					return false
				}
				if !strings.HasPrefix(status, "fastcache; hit; ttl=") {
					t.Errorf("refreshed, but %s", status)
				}
				if want := fmt.Sprintf("page p%[1]d p%[1]d", i); header.Get("X-Forwarded-To") != want {
					t.Errorf("the refresh carried %q to the origin, the request would have %q", header.Get("X-Forwarded-To"), want)
				}
				return true
			})
		}
	}
	o.wantAsked(t, 40)
}

// H23: Caddy stops in time although a refresh hangs, and what the refresh brought
// in part is not there after a restart.
func TestH23_StopDuringARefresh(t *testing.T) {
	o := newSick(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		_, _ = io.WriteString(w, "a good page")
	})
	c := start(t, site(o.origin, "stale_while_revalidate 60s"))
	c.get("/").want(t, 200, "a good page")
	time.Sleep(1100 * time.Millisecond)
	o.be("hang")
	c.get("/").want(t, 200, "a good page").wantStatus(t, "fastcache; hit")
	eventually(t, "the refresh is under way", func() bool { return o.asked() == 2 })
	c.get("/").want(t, 200, "a good page").wantStatus(t, "fastcache; hit") // no second one
	o.wantAsked(t, 2)
	begin := time.Now()
	client.CloseIdleConnections()
	c.stop()
	if d := time.Since(begin); d > 6*time.Second { // grace_period is 3 s
		t.Errorf("stopping took %v", d)
	}
	o.be("healthy")
	c.run(site(o.origin, "stale_while_revalidate 60s"))
	c.get("/").want(t, 200, "a good page")
}

// stale-while-revalidate, by directive and by option.
func TestStaleWhileRevalidate(t *testing.T) {
	var healthy atomic.Bool
	healthy.Store(true)
	var version atomic.Int64
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if !healthy.Load() {
			http.Error(w, "sick", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", r.URL.Query().Get("cc"))
		if r.URL.Query().Has("etag") {
			w.Header().Set("ETag", `"v"`)
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		fmt.Fprintf(w, "version %d", version.Load())
	})
	c := start(t, site(o, "stale_while_revalidate 60s"))
	const (
		byOption  = "/option?cc=max-age=1"
		byOwn     = "/own?cc=max-age=1,stale-while-revalidate=60"
		ownShort  = "/short?cc=max-age=1,stale-while-revalidate=0"
		strict    = "/strict?cc=max-age=1,must-revalidate"
		confirmed = "/confirmed?cc=max-age=1&etag"
		failing   = "/failing?cc=max-age=1"
		zero      = "/zero?cc=max-age=0&etag"
		purged    = "/purged?cc=max-age=1"
	)
	for _, uri := range []string{byOption, byOwn, ownShort, strict, confirmed, failing, zero, purged} {
		c.get(uri).want(t, 200, "version 0")
	}
	version.Store(1)
	time.Sleep(2100 * time.Millisecond)
	for _, uri := range []string{byOption, byOwn} {
		c.get(uri).want(t, 200, "version 0").wantStatus(t, "fastcache; hit; ttl=-")
		eventually(t, uri+" is refreshed", func() bool { return c.get(uri).body == "version 1" })
	}
	for _, uri := range []string{ownShort, strict} {
		c.get(uri).want(t, 200, "version 1").wantStatus(t, "fastcache; fwd=")
	}
	// A response that is never fresh is validated in the foreground: the
	// option is for those that have been fresh.
	c.get(zero).want(t, 200, "version 0").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")

	c.get(confirmed).want(t, 200, "version 0").wantStatus(t, "fastcache; hit; ttl=-")
	eventually(t, "a 304 in the background has made it fresh", func() bool {
		r := c.get(confirmed).want(t, 200, "version 0")
		return strings.HasPrefix(r.cacheStatus(), "fastcache; hit") && r.Header.Get("Age") == "0"
	})

	// A refresh that fails leaves what is there, and does not become the answer.
	healthy.Store(false)
	before := o.asked()
	for i := range 3 {
		c.get(failing).want(t, 200, "version 0").wantStatus(t, "fastcache; hit; ttl=-")
		eventually(t, "the origin has been asked", func() bool { return o.asked() > before+i || i > 0 })
	}
	healthy.Store(true)
	eventually(t, "it is refreshed once the origin is well", func() bool { return c.get(failing).body == "version 1" })

	// Purged while it is stale: not served any more.
	c.do("PURGE", purged).want(t, 200, "{\"purged\":1}\n")
	c.get(purged).want(t, 200, "version 1").wantStatus(t, "fastcache; fwd=uri-miss")
}

// H28: which lifetime counts. Cache-Status says it at once and Age bears it out
// later; the short ones are waited for.
func TestH28_TTLPrecedence(t *testing.T) {
	headers := map[string][]string{
		"none":      nil,
		"max-age":   {"Cache-Control: max-age=120"},
		"s-maxage":  {"Cache-Control: s-maxage=5, max-age=120"},
		"immutable": {"Cache-Control: max-age=31536000, immutable"},
		"age":       {"Cache-Control: max-age=120", "Age: 100"},
		"cdn":       {"CDN-Cache-Control: max-age=7", "Cache-Control: max-age=120"},
		"own":       {"Fastcache-Cache-Control: max-age=6", "CDN-Cache-Control: max-age=7", "Cache-Control: max-age=120"},
		"expires":   {"Date: DATE", "Expires: DATE+90"},
		"past":      {"Date: DATE", "Expires: DATE-90", `ETag: "v"`},
		"invalid":   {"Expires: 0", `ETag: "v"`},
		"both":      {"Date: DATE", "Expires: DATE+90", "Cache-Control: max-age=120"},
		"modified":  {"Date: DATE", "Last-Modified: DATE-1000"},
		"modified2": {"Date: DATE", "Last-Modified: DATE-100000000"},
		"public":    {"Cache-Control: public"},
		"404":       nil,
		"302":       nil,
		"302 fresh": {"Cache-Control: max-age=120"},
		"500":       nil,
	}
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		name := strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/"), "_", " ")
		now := time.Now().Truncate(time.Second)
		for _, f := range headers[name] {
			k, v, _ := strings.Cut(f, ": ")
			if offset, ok := strings.CutPrefix(v, "DATE"); ok {
				var s int
				_, _ = fmt.Sscan(offset, &s)
				v = now.Add(time.Duration(s) * time.Second).UTC().Format(http.TimeFormat)
			}
			w.Header().Set(k, v)
		}
		code := 200
		_, _ = fmt.Sscan(name, &code)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, name)
	})
	type want struct {
		ttl string // of the first response; "" when it is not stored
		age string // that the second response has at least
	}
	uncapped := map[string]want{
		"none": {"30", "0"}, "max-age": {"120", "0"}, "s-maxage": {"5", "0"}, "immutable": {"31536000", "0"},
		"age": {"20", "100"}, "cdn": {"7", "0"}, "own": {"6", "0"}, "expires": {"90", "0"}, "both": {"120", "0"},
		"modified": {"100", "0"}, "modified2": {"86400", "0"}, "public": {"30", "0"}, "404": {"30", "0"},
		"302": {}, "302 fresh": {"120", "0"}, "500": {},
	}
	capped := map[string]want{
		"none": {"10", "0"}, "max-age": {"10", "0"}, "s-maxage": {"5", "0"}, "immutable": {"10", "0"},
		"age": {"10", "100"}, "cdn": {"7", "0"}, "own": {"6", "0"}, "modified": {"10", "0"}, "404": {}, "302 fresh": {"2", "0"},
	}
	for _, tc := range []struct {
		name    string
		options []string
		want    map[string]want
	}{
		{"ttl", []string{"ttl 30s"}, uncapped},
		{"status_ttl", []string{"ttl 30s", "status_ttl 200 10s", "status_ttl 404 410 0", "status_ttl 302 2s"}, capped},
		{"ttl 0", []string{"ttl 0"}, map[string]want{"none": {}, "404": {}, "max-age": {"120", "0"}, "modified": {"100", "0"}}},
		{"heuristic_max", []string{"ttl 30s", "heuristic_max 50s"}, map[string]want{"modified": {"50", "0"}, "modified2": {"50", "0"}, "none": {"30", "0"}}},
		// Without the guess from Last-Modified there is still the default.
		{"heuristic_max 0", []string{"ttl 30s", "heuristic_max 0"}, map[string]want{"modified": {"30", "0"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, strings.Replace(site(o), "ttl 1h", strings.Join(tc.options, "\n\t\t\t"), 1))
			for name, want := range tc.want {
				uri := "/" + strings.ReplaceAll(name, " ", "_")
				first := c.get(uri)
				if got := first.Header.Values("Fastcache-Cache-Control"); len(got) > 0 {
					t.Errorf("%s: the field for this cache reaches the client: %q", name, got)
				}
				if want.ttl == "" {
					if strings.Contains(first.cacheStatus(), "stored") || c.get(uri).hit() {
						t.Errorf("%s was stored: %s", name, first.cacheStatus())
					}
					continue
				}
				// A second may pass between the origin's Date and the arrival.
				ttl, less := "; stored; ttl="+want.ttl, ""
				if n := 0; len(headers[name]) > 0 && strings.HasPrefix(headers[name][0], "Date") {
					_, _ = fmt.Sscan(want.ttl, &n)
					less = fmt.Sprintf("; stored; ttl=%d", n-1)
				}
				if s := first.cacheStatus(); !strings.HasSuffix(s, ttl) && (less == "" || !strings.HasSuffix(s, less)) {
					t.Errorf("%s: %s, want ttl=%s", name, s, want.ttl)
				}
				second := c.get(uri).wantStatus(t, "fastcache; hit; ttl=")
				var age, atLeast int
				_, _ = fmt.Sscan(second.Header.Get("Age"), &age)
				_, _ = fmt.Sscan(want.age, &atLeast)
				if age < atLeast || age > atLeast+2 {
					t.Errorf("%s: Age %d, want %d", name, age, atLeast)
				}
			}
		})
	}
	t.Run("stale from the start", func(t *testing.T) {
		c := start(t, site(o))
		for _, uri := range []string{"/past", "/invalid"} {
			c.get(uri)
			c.get(uri).want(t, 200, uri[1:]).wantStatus(t, "fastcache; fwd=stale")
		}
	})
}

// H28, status_ttl: what the limit says is what happens.
func TestH28_StatusTTLIsKept(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=120")
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		if r.URL.Path == "/old" {
			w.Header().Set("Age", "100")
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	c := start(t, site(o, "status_ttl 404 1s", "status_ttl 200 3s"))
	uris := []string{"/missing", "/page", "/old"}
	for _, uri := range uris {
		c.get(uri)
		c.get(uri).wantStatus(t, "fastcache; hit")
	}
	time.Sleep(1500 * time.Millisecond)
	c.get("/missing").want(t, 404, "/missing").wantStatus(t, "fastcache; fwd=")
	c.get("/page").wantStatus(t, "fastcache; hit")
	c.get("/old").wantStatus(t, "fastcache; hit")
	time.Sleep(1700 * time.Millisecond)
	for _, uri := range uris[1:] {
		c.get(uri).want(t, 200, uri).wantStatus(t, "fastcache; fwd=")
	}
	if n := len(slices.DeleteFunc(o.log(), func(s string) bool { return s != "GET /missing" })); n != 2 {
		t.Errorf("the missing page was fetched %d times, want 2", n)
	}
}

// A refresh brings the whole response, whatever part of it was asked for.
func TestStaleWhileRevalidate_RefreshIsWhole(t *testing.T) {
	for name, ask := range map[string]func(c *caddy) *response{
		"HEAD":  func(c *caddy) *response { return c.do(http.MethodHead, "/f") },
		"Range": func(c *caddy) *response { return c.get("/f", "Range: bytes=0-1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var version atomic.Int64
			o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=1, stale-while-revalidate=60")
				w.Header().Set("ETag", fmt.Sprintf(`"%d"`, version.Load()))
				http.ServeContent(w, r, "f.txt", time.Time{}, strings.NewReader(fmt.Sprintf("version %d", version.Load())))
			})
			c := start(t, site(o))
			c.get("/f").want(t, 200, "version 0")
			version.Store(1)
			eventually(t, "the response is stale", func() bool {
				return strings.Contains(ask(c).cacheStatus(), "ttl=0") && o.asked() > 1
			})
			eventually(t, "the refreshed response is served whole", func() bool { return c.get("/f").body == "version 1" })
			if log := o.log(); log[1] != "GET /f" {
				t.Errorf("the refresh was %q", log[1])
			}
		})
	}
}

// A confirmed response is as fresh as a new one also if the origin sends no Date,
// as FastCGI applications do (RFC 9110 section 6.6.1).
func TestNotModified_WithoutDate(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Date"] = nil // net/http adds none then
		h.Set("Cache-Control", "max-age=2")
		h.Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "page")
	})
	c := start(t, site(o))
	c.get("/").want(t, 200, "page")
	time.Sleep(2200 * time.Millisecond)
	c.get("/").want(t, 200, "page").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
	c.get("/").want(t, 200, "page").wantStatus(t, "fastcache; hit; ttl=")
	o.wantAsked(t, 2)
}
