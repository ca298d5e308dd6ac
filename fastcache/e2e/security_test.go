package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// The attacks here are those that caches have fallen to; docs/threats.md lists
// them all, with the tests elsewhere that hold the rest.

// raw sends bytes as they are and returns the first response, nil for none.
func (c *caddy) raw(t *testing.T, request string) *response {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, request)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return &response{Response: res, body: string(body), err: err}
}

// Answers for one user each, asked for at the same moment, are not mixed up
// (darkweak/souin#704, caddyserver/cache-handler#82).
func TestSecurity_CollapsedRequestsDoNotSharePrivateAnswers(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		w.Header().Set("Cache-Control", "private")
		_, _ = io.WriteString(w, r.Header.Get("X-Token"))
	})
	c := start(t, site(o))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			token := fmt.Sprint("token ", i)
			c.get("/me", "X-Token: "+token).want(t, 200, token)
		})
	}
	wg.Wait()
	o.wantAsked(t, 50)
}

// A request with Authorization leads nobody, and follows nobody who has none.
func TestSecurity_CollapsedRequestsDoNotShareAuthorization(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(200 * time.Millisecond)
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "for %q", r.Header.Get("Authorization"))
	})
	c := start(t, site(o))
	for i, first := range []string{"Authorization: Bearer a", "X: y"} {
		uri := fmt.Sprintf("/%d", i)
		var wg sync.WaitGroup
		ask := func(field string) {
			want := `for ""`
			if user, ok := strings.CutPrefix(field, "Authorization: "); ok {
				want = fmt.Sprintf("for %q", user)
			}
			wg.Go(func() { c.get(uri, field).want(t, 200, want) })
		}
		ask(first)
		time.Sleep(50 * time.Millisecond)
		for _, field := range []string{"Authorization: Bearer a", "Authorization: Bearer b", "X: y", "X: y"} {
			ask(field)
		}
		wg.Wait()
	}
}

// The stale body stands in for a failed response, and is not put behind it
// (darkweak/souin#846).
func TestSecurity_StaleBodyIsSentOnce(t *testing.T) {
	t.Parallel()
	var down sync.Once
	failing := make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-failing:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "the origin's own error page")
		default:
			w.Header().Set("Cache-Control", "max-age=1, stale-if-error=60")
			_, _ = io.WriteString(w, "page")
		}
	})
	c := start(t, site(o))
	c.get("/").want(t, 200, "page")
	down.Do(func() { close(failing) })
	time.Sleep(1100 * time.Millisecond)
	for range 2 {
		r := c.get("/").want(t, 200, "page").wantStatus(t, "fastcache; fwd=stale; fwd-status=503")
		if r.ContentLength != 4 {
			t.Errorf("Content-Length %d", r.ContentLength)
		}
	}
}

// Ranges that overflow or ask for the same bytes again and again get no more
// than the body (CVE-2017-7529, CVE-2018-8005).
func TestSecurity_Ranges(t *testing.T) {
	t.Parallel()
	body := testBody("range", 1<<20)
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, body)
	})
	c := start(t, site(o))
	c.get("/").want(t, 200, body)
	many := func(part string, n int) string { return "Range: bytes=" + strings.Repeat(part+",", n-1) + part }
	for _, field := range []string{
		"Range: bytes=-9223372036854775808,-9223372036854774591",
		"Range: bytes=-9223372036854774591,0-0",
		"Range: bytes=0-9223372036854775807,9223372036854775806-",
		"Range: bytes=0-18446744073709551616",
		many("0-", 1000),
		many("0-1048575", 1000),
		many("5-6", 1000),
	} {
		r := c.get("/", field)
		switch {
		case r.err != nil, r.StatusCode >= 500:
			t.Errorf("%.60s: status %d, %v", field, r.StatusCode, r.err)
		case len(r.body) > len(body)+4096:
			t.Errorf("%.60s: status %d with %d bytes, of a body of %d", field, r.StatusCode, len(r.body), len(body))
		case r.StatusCode == 200 && r.body != body:
			t.Errorf("%.60s: 200 with another body", field)
		}
	}
	o.wantAsked(t, 1)
}

// Fields with values without end do not get past the cache, nor fill it
// (CVE-2024-35296).
func TestSecurity_RandomAcceptEncoding(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Accept-Encoding")
		_, _ = io.WriteString(w, "page")
	})
	c := start(t, site(o))
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		value := make([]byte, 1+rnd.IntN(12))
		for i := range value {
			value[i] = " ,;=qxbrgzip*.0123456789"[rnd.IntN(24)]
		}
		c.get("/", "Accept-Encoding: "+strings.TrimSpace(string(value))+",x").want(t, 200, "page")
	}
	if n := o.asked(); n > 20 {
		t.Errorf("the origin was asked %d times for one page", n)
	}
	if n := len(c.cacheFiles()); n > 2*64 {
		t.Errorf("%d files for one page", n)
	}
}

// What the key says and what the origin gets is the same target, byte for byte
// (CVE-2021-27577, CVE-2024-38479).
func TestSecurity_TargetsAreNotTakenForEachOther(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, site(o))
	for _, target := range []string{
		"/a", "//a", "/a/", "/a;x", "/a%23b", "/a%3Fb", "/a?b", "/a?", "/a%00", "/a%0a", "/A", "/./a", "/b/../a", "/b/%2e%2e/a", "/a?x=1;y=2", "/a?x=1&y=2", "/a?x=%zz", "/a?x=%7A",
		"/a?" + strings.Repeat("p=1&", 20000)[:20000],
	} {
		for range 2 {
			r := c.raw(t, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if r == nil || r.StatusCode == 400 || r.StatusCode == 414 {
				continue // not taken at all
			}
			r.want(t, 200, target)
		}
	}
	if r := c.raw(t, "GET /a#b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); r != nil && r.hit() {
		t.Errorf("a target with a fragment: %s %q", r.cacheStatus(), r.body)
	}
}

// What a proxy in front may have read in another way is refused, and leaves
// nothing in the store (CVE-2018-8004, CVE-2022-23959, CVE-2024-53868).
func TestSecurity_Smuggling(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, site(o))
	const inner = "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, head := range map[string]string{
		"CL and TE":       fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", len(inner)+5, inner),
		"two CL":          fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(inner), inner),
		"hexadecimal CL":  "Content-Length: 0x10\r\n\r\n" + inner,
		"signed CL":       "Content-Length: +10\r\n\r\n" + inner,
		"bad chunk":       "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + inner,
		"unknown TE":      "Transfer-Encoding: xchunked\r\n\r\n" + inner,
		"space in a name": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
	} {
		uri := "/" + strings.ReplaceAll(name, " ", "-")
		if r := c.raw(t, "GET "+uri+" HTTP/1.1\r\nHost: x\r\n"+head); r != nil && r.hit() {
			t.Errorf("%s: %s", name, r.cacheStatus())
		}
		c.get(uri, "Host: x").want(t, 200, uri)
		c.get(uri, "Host: x").want(t, 200, uri).wantStatus(t, "fastcache; hit")
	}
}

// A client cannot take away from the origin what the cache goes by (CVE-2022-45059).
func TestSecurity_ConnectionNominatesFields(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "X-Tenant")
		fmt.Fprintf(w, "%s|%s|%s", r.Host, r.Header.Get("Authorization"), r.Header.Get("X-Tenant"))
	})
	c := start(t, site(o))
	c.get("/", "Host: x", "Connection: Authorization, X-Tenant, Host", "Authorization: a", "X-Tenant: t").want(t, 200, "x||")
	c.get("/", "Host: x", "X-Tenant: t").want(t, 200, "x||t").wantStatus(t, "fastcache; fwd=vary-miss")
	c.get("/", "Host: x").want(t, 200, "x||").wantStatus(t, "fastcache; hit")
	c.get("/", "Host: x", "Authorization: a").want(t, 200, "x|a|").wantStatus(t, "fastcache; fwd=miss; detail=auth")
}

// A header too large to be worth it is passed on, not stored (CVE-2023-5824).
func TestSecurity_HugeResponseHeader(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for i := range 1100 {
			w.Header().Set(fmt.Sprintf("X-Huge-%d", i), strings.Repeat("x", 1000))
		}
		_, _ = io.WriteString(w, "page")
	})
	c := start(t, site(o))
	for range 2 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url("/"), nil)
		tr := &http.Transport{MaxResponseHeaderBytes: 16 << 20}
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		tr.CloseIdleConnections()
		if res.StatusCode != 200 || string(body) != "page" || err != nil || len(res.Header) < 1100 {
			t.Errorf("status %d, %d fields, body %.50q, %v", res.StatusCode, len(res.Header), body, err)
		}
	}
	if files := c.cacheFiles(); len(files) > 0 {
		t.Errorf("%d files", len(files))
	}
	o.wantAsked(t, 2)
}

// A field name with an underscore, which CGI cannot tell from one with a hyphen,
// does not poison what others get (CVE-2026-52845).
func TestSecurity_UnderscoreAliases(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for name, values := range r.Header {
			if name = strings.ReplaceAll(name, "_", "-"); strings.EqualFold(name, "X-Forwarded-Host") || strings.EqualFold(name, "X-Tenant") {
				for _, v := range values {
					if strings.Contains(v, "evil") {
						_, _ = io.WriteString(w, v)
					}
				}
			}
		}
	})
	c := start(t, site(o))
	c.raw(t, "GET / HTTP/1.1\r\nHost: x\r\nX_Forwarded_Host: evil\r\nX_Tenant: evil\r\nConnection: close\r\n\r\n").want(t, 200, "")
	c.get("/", "Host: x").want(t, 200, "")
}

// Cancelled requests in great number leave nothing behind (CVE-2023-44487,
// CVE-2025-8671).
func TestSecurity_ResetFlood(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, tlsSite(o))
	h2 := newTLSClient(t, c.port)
	get := func(ctx context.Context, uri string) (string, error) {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://localhost:%d%s", c.port, uri), nil)
		res, err := h2.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
	if body, err := get(t.Context(), "/warm"); body != "/warm" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	before := c.goroutines(t)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() { _, _ = get(ctx, fmt.Sprintf("/%d", i%20)) })
		}
		time.Sleep(20 * time.Millisecond)
		cancel()
		wg.Wait()
	}
	// reverse_proxy keeps 32 idle connections to the origin, of two goroutines each.
	eventually(t, "the goroutines are gone", func() bool { return c.goroutines(t) <= before+80 })
	for i := range 3 {
		uri := fmt.Sprintf("/%d", i)
		if body, err := get(t.Context(), uri); body != uri || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
}

// Parameters that are left out of the key do not reach the origin either, however
// they are spelled together.
func TestSecurity_ParameterCloaking(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, site(o, "query_ignore utm_*"))
	c.get("/?utm_content=x;callback=evil").want(t, 200, "/")
	c.get("/").want(t, 200, "/").wantStatus(t, "fastcache; hit")
	c.get("/?callback=good&utm_content=x%26callback=evil").want(t, 200, "/?callback=good")
	c.get("/?callback=good").want(t, 200, "/?callback=good").wantStatus(t, "fastcache; hit")
}

// An error that a request brings upon itself is not what others get (CPDoS: HTTP
// header oversize, meta character, method override).
func TestSecurity_ErrorsOfOddRequestsAreNotStored(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		switch v := r.Header.Get("X-Odd"); {
		case len(v) > 5000:
			w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
		case v != "":
			w.WriteHeader(http.StatusBadRequest)
		case r.Header.Get("X-Http-Method-Override") != "":
			w.WriteHeader(http.StatusNotImplemented)
		default:
			_, _ = io.WriteString(w, "page")
		}
	})
	c := start(t, site(o))
	for i, field := range []string{"X-Odd: " + strings.Repeat("x", 6000), "X-Odd: \xff", "X-Odd: \x01", "X-HTTP-Method-Override: FOO"} {
		uri := fmt.Sprintf("/%d", i)
		r := c.raw(t, "GET "+uri+" HTTP/1.1\r\nHost: x\r\n"+field+"\r\nConnection: close\r\n\r\n")
		if r == nil || r.StatusCode < 400 {
			t.Errorf("%.20q: %+v", field, r)
		}
		c.get(uri, "Host: x").want(t, 200, "page")
	}
}

// A page for one user that is asked for by the name of a static file is not
// stored on the strength of a default.
func TestSecurity_Deception(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "account of %q", r.Header.Get("Cookie"))
	})
	c := start(t, site(o))
	for _, uri := range []string{"/account/x.css", "/account%2f..%2fstatic/x.css", "/account;x.css", "/account%0ax.css", "/account%23x.css"} {
		c.get(uri, "Cookie: sid=1").want(t, 200, `account of "sid=1"`).wantStatus(t, "fastcache; fwd=uri-miss; detail=cookie")
		c.get(uri).want(t, 200, `account of ""`)
		c.get(uri, "Cookie: sid=2").want(t, 200, `account of "sid=2"`)
	}
}

// A flood of URLs that nobody asks for twice leaves what is asked for often in
// its place.
func TestSecurity_KeyFlooding(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		_, _ = io.WriteString(w, testBody(r.RequestURI, 2000))
	})
	c := start(t, site(o, "disk_size 0", "memory_size 1MB"))
	hot := func(i int) string { return fmt.Sprintf("/hot/%d", i%50) }
	for i := range 100 {
		c.get(hot(i))
	}
	hits := 0
	for i := range 300 {
		for j := range 10 {
			c.get(fmt.Sprintf("/flood?%d-%d", i, j))
		}
		if c.get(hot(i)).hit() {
			hits++
		}
	}
	if hits < 270 {
		t.Errorf("%d hits of 300 under a flood of ten times as many other URLs", hits)
	}
}

// PURGE is a method, not a wish.
func TestSecurity_PurgeByOverride(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, r.Method)
	})
	c := start(t, site(o))
	c.get("/").want(t, 200, "GET")
	c.get("/", "X-HTTP-Method-Override: PURGE").want(t, 200, "GET").wantStatus(t, "fastcache; fwd=bypass; detail=override")
	c.send(t.Context(), http.MethodPost, "/other", strings.NewReader("_method=PURGE"), "X-HTTP-Method-Override: PURGE")
	c.get("/").want(t, 200, "GET").wantStatus(t, "fastcache; hit")
}
