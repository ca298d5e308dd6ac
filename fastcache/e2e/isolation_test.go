package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Handlers behind the cache rewrite the request as if there were no cache, and
// nothing that the key leaves out comes back to them.
func TestBehind_RewritesAndPlaceholders(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "%s %s|%s|%s", r.Method, r.RequestURI, r.Header.Get("X-Path"), r.Header.Get("X-B"))
	})
	behind := func(directives string) string {
		return strings.Replace(site(o, "query_ignore utm_*"), "reverse_proxy", directives+"\n\t\treverse_proxy", 1)
	}
	for name, test := range map[string]struct{ directives, uri, want string }{
		"query in a rewrite": {"rewrite * /i?{query}", "/p?a=1&utm_s=evil", "GET /i?a=1||"},
		"strip and rewrite":  {"uri strip_prefix /api\n\t\trewrite * /x{uri}", "/api/p", "GET /x/p||"},
		"method":             {"method POST\n\t\trequest_header X-B {method}", "/p", "POST /p||POST"},
		"path":               {"uri strip_prefix /api\n\t\trequest_header X-Path {path}", "/api/p", "GET /p|/p|"},
		"header":             {"request_header X-Key k1\n\t\trequest_header X-B {header.X-Key}", "/p", "GET /p||k1"},
		"dropped field":      {"request_header X-B {header.X-Host}", "/p", "GET /p||"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, behind(test.directives))
			c.get(test.uri, "X-Host: evil").want(t, 200, test.want)
			clean := strings.Replace(test.uri, "&utm_s=evil", "", 1)
			c.get(clean).want(t, 200, test.want).wantStatus(t, "fastcache; hit")
		})
	}
}

// A second trip of one request begins where the first one did.
func TestBehind_SecondTrip(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.Header().Set("ETag", `"2"`) // confirms what nobody has asked about
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, strings.Replace(site(o), "reverse_proxy", "uri path_regexp ^ /t\n\t\treverse_proxy", 1))
	c.get("/p").want(t, 200, "/t/p")
	time.Sleep(1200 * time.Millisecond)
	c.get("/p").want(t, 200, "/t/p").wantStatus(t, "fastcache; fwd=stale")
}

// An unsafe request drops its own target, whatever it is rewritten to.
func TestBehind_InvalidationOfTheOriginalTarget(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, r.Method, r.RequestURI)
	})
	c := start(t, strings.Replace(site(o, "cache_key {http.request.host}{http.request.uri}"), "reverse_proxy", "rewrite * /index.php?{query}\n\t\treverse_proxy", 1))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		c.get("/p").want(t, 200, "GET/index.php")
		c.get("/p").wantStatus(t, "fastcache; hit")
		c.do(method, "/p").want(t, 200, method+"/index.php")
		c.get("/p").wantStatus(t, "fastcache; fwd=uri-miss")
	}
}

// A POST whose answer may answer GETs must reach the origin as they would.
func TestPOST_UnkeyedIsNotStored(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Location", "/p")
		fmt.Fprint(w, r.Host, r.Header.Get("X-Host"), r.RequestURI)
	})
	c := start(t, site(o, "query_ignore utm_*"))
	for _, odd := range [][]string{
		{"/p", "Host: h.example", "X-Host: evil"},
		{"/p", "Host: h.example", "Forwarded: host=evil"},
		{"/p?utm_x=evil", "Host: h.example"},
		{"/p", "Host: H.example."},
		{"/p", "Host: h.example", "Connection: X-T", "X-T: evil"},
	} {
		c.do(http.MethodPost, odd[0], odd[1:]...).wantStatus(t, "fastcache; fwd=method; detail=method")
		c.get("/p", "Host: h.example").want(t, 200, "h.example/p")
	}
	c.do(http.MethodPost, "/p", "Host: h.example").wantStatus(t, "fastcache; fwd=method; stored")
}

// A key that goes by a field must not be made from one that the origin never gets.
func TestCacheKey_NominatedFields(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "for %s", r.Header.Get("X-Tenant"))
	})
	c := start(t, site(o, `cache_key "{http.request.uri} {http.request.header.X-Tenant}"`))
	c.get("/p", "X-Tenant: good", "Connection: close, X-Tenant").want(t, 200, "for ").wantStatus(t, "fastcache; fwd=bypass; detail=connection")
	c.get("/p", "X-Tenant: good").want(t, 200, "for good")
}

// An estimate is no licence to share a page made for a cookie.
func TestHeuristic_NotForCookies(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
		fmt.Fprintf(w, "for %s", r.Header.Get("Cookie"))
	})
	c := start(t, site(o))
	c.get("/p", "Cookie: sid=alice").want(t, 200, "for sid=alice").wantStatus(t, "fastcache; fwd=uri-miss; detail=cookie")
	c.get("/p").want(t, 200, "for ")
	c.get("/p", "Cookie: sid=bob").want(t, 200, "for sid=bob")
	c.get("/p").want(t, 200, "for ").wantStatus(t, "fastcache; hit")
}

// Behind a trusted proxy, too, what selects the key is what the origin gets.
func TestTrustedProxy_AmbiguousFields(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Host"), r.Header.Get("Forwarded"), r.Header.Get("X-Forwarded-Prefix"))
	})
	c := start(t, "{\n\tservers {\n\t\ttrusted_proxies static 127.0.0.1/32\n\t}\n}\n"+site(o))
	good := []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: good.example"}
	c.get("/", append(good, "X-Host: evil", "Forwarded: host=evil", "X-Forwarded-Prefix: /evil")...)
	c.get("/", good...).want(t, 200, "httpsgood.example").wantStatus(t, "fastcache; hit")
	for i, odd := range [][]string{
		append(good, "X-Forwarded-Host: evil"), append(good, "X-Forwarded-Proto: http"), append(good, "Connection: X-Forwarded-Host"),
		{"X-Forwarded-Proto: evil", good[1]},
		{good[0], "X-Forwarded-Host: good.example, evil"},
	} {
		uri := fmt.Sprintf("/%d", i)
		c.get(uri, odd...).wantStatus(t, "fastcache; fwd=bypass; detail=bad-target")
		c.get(uri, good...).want(t, 200, "httpsgood.example")
	}
}

// A request with a cookie, whose answer may be for it alone, holds nobody up.
func TestCoalescing_CookiesApart(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(700 * time.Millisecond)
		_, _ = io.WriteString(w, "page")
	})
	c := start(t, site(o))
	var wg sync.WaitGroup
	wg.Go(func() { c.get("/", "Cookie: analytics=1").want(t, 200, "page") })
	eventually(t, "the first request is under way", func() bool { return o.asked() == 1 })
	for range 20 {
		wg.Go(func() { c.get("/").want(t, 200, "page") })
	}
	wg.Wait()
	o.wantAsked(t, 2)
}
