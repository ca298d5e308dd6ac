package e2e

import (
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

// conditionalOrigin honours conditions; paths choose what it allows of its
// responses.
func conditionalOrigin(t *testing.T, modified time.Time) (o *origin, conditional *atomic.Int64) {
	conditional = new(atomic.Int64)
	o = newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "" {
			conditional.Add(1)
		}
		if r.URL.Query().Has("slow") {
			time.Sleep(200 * time.Millisecond)
		}
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Query().Has("no-store") {
			w.Header().Set("Cache-Control", "no-store")
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Location", "/canonical")
		http.ServeContent(w, r, "page.html", modified, strings.NewReader("the body"))
	})
	return o, conditional
}

// H08: clients that always send conditions fill the cache all the same.
func TestH08_ConditionsFillTheCache(t *testing.T) {
	modified := time.Now().Add(-time.Hour).Truncate(time.Second)
	o, _ := conditionalOrigin(t, modified)
	c := start(t, site(o))
	for uri, condition := range map[string]string{
		"/etag": `If-None-Match: "v1"`,
		"/date": "If-Modified-Since: " + modified.UTC().Format(http.TimeFormat),
	} {
		before := o.asked()
		for range 20 {
			c.get(uri, condition).want(t, 304, "")
		}
		c.get(uri).want(t, 200, "the body")
		if n := o.asked() - before; n > 2 {
			t.Errorf("%s: %d fetches, want 2 at most", uri, n)
		}
		c.get(uri, condition).want(t, 304, "").wantStatus(t, "fastcache; hit")
	}
}

// H08 at once: the twenty wait for one fetch.
func TestH08_ConditionsAtOnce(t *testing.T) {
	o, _ := conditionalOrigin(t, time.Now().Add(-time.Hour))
	c := start(t, site(o))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%2 == 0 {
				c.get("/?slow", `If-None-Match: "v1"`).want(t, 304, "")
				return
			}
			c.get("/?slow", `If-None-Match: "old"`).want(t, 200, "the body")
		})
	}
	wg.Wait()
	if n := o.asked(); n > 2 { // with a condition that matches, and for the whole
		t.Errorf("the origin was asked %d times: %v", n, o.log())
	}
}

// H08 for what cannot be stored: conditions reach the origin, which saves the
// body on every request but the first.
func TestH08_ConditionsOfTheUncacheable(t *testing.T) {
	o, conditional := conditionalOrigin(t, time.Now().Add(-time.Hour))
	c := start(t, site(o))
	for range 5 {
		c.get("/?no-store", `If-None-Match: "v1"`).want(t, 304, "")
	}
	c.get("/?no-store").want(t, 200, "the body")
	o.wantAsked(t, 6)
	if n := conditional.Load(); n < 4 {
		t.Errorf("the origin got %d conditions of 5", n)
	}
}

// H08: what a 304 out of the store says, and when it is one.
func TestH08_ConditionsOnAHit(t *testing.T) {
	modified := time.Now().Add(-time.Hour).Truncate(time.Second)
	date := func(d time.Duration) string { return modified.Add(d).UTC().Format(http.TimeFormat) }
	o, _ := conditionalOrigin(t, modified)
	c := start(t, site(o))
	full := c.get("/p").want(t, 200, "the body")
	for _, tc := range []struct {
		status int
		fields []string
	}{
		{304, []string{`If-None-Match: "v1"`}},
		{304, []string{`If-None-Match: W/"v1"`}},
		{304, []string{`If-None-Match: "a", "b,c" , "v1"`}},
		{304, []string{`If-None-Match: "a"`, `If-None-Match: "v1"`}},
		{304, []string{"If-None-Match: *"}},
		{200, []string{`If-None-Match: "v2"`}},
		{200, []string{`If-None-Match: v1`}},
		{200, []string{`If-None-Match: "V1"`}},
		{304, []string{"If-Modified-Since: " + date(0)}},
		{304, []string{"If-Modified-Since: " + date(time.Minute)}},
		{200, []string{"If-Modified-Since: " + date(-time.Second)}},
		{200, []string{"If-Modified-Since: long ago"}},
		{200, []string{`If-None-Match: "v2"`, "If-Modified-Since: " + date(0)}},                 // the tag outweighs the date
		{304, []string{`If-None-Match: "v1"`, "If-Modified-Since: " + date(-365*24*time.Hour)}}, // both ways
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			body := ""
			if tc.status == 200 && method == http.MethodGet {
				body = "the body"
			}
			r := c.do(method, "/p", tc.fields...)
			if r.StatusCode != tc.status || r.body != body || !r.hit() {
				t.Errorf("%s with %q: %d %q, want %d (%s)", method, tc.fields, r.StatusCode, r.body, tc.status, r.cacheStatus())
			}
			if r.StatusCode != 304 {
				continue
			}
			// RFC 9110 section 15.4.5.
			for _, name := range []string{"Cache-Control", "Content-Location", "Date", "ETag"} {
				if r.Header.Get(name) == "" || r.Header.Get(name) != full.Header.Get(name) {
					t.Errorf("a 304 has %s %q, the 200 has %q", name, r.Header.Get(name), full.Header.Get(name))
				}
			}
			if r.Header.Get("Content-Type") != "" || r.ContentLength > 0 {
				t.Errorf("a 304 has Content-Type %q, Content-Length %d", r.Header.Get("Content-Type"), r.ContentLength)
			}
		}
	}
	o.wantAsked(t, 1)
}

// H08: If-Match and If-Unmodified-Since are for the origin (RFC 9111 section
// 4.3.2), and its 412 is for the one who asked.
func TestH08_PreconditionsAreTheOrigins(t *testing.T) {
	o, _ := conditionalOrigin(t, time.Now().Add(-time.Hour))
	c := start(t, site(o))
	c.get("/p").want(t, 200, "the body")
	for i, field := range []string{`If-Match: "v1"`, `If-Match: "v2"`, "If-Unmodified-Since: " + time.Unix(0, 0).UTC().Format(http.TimeFormat)} {
		r := c.get("/p", field).wantStatus(t, "fastcache; fwd=bypass; detail=conditional")
		if want := map[int]int{0: 200, 1: 412, 2: 412}[i]; r.StatusCode != want {
			t.Errorf("%s: %d, want %d", field, r.StatusCode, want)
		}
		o.wantAsked(t, i+2)
		c.get("/p").want(t, 200, "the body").wantStatus(t, "fastcache; hit")
	}
}

// H08: a status other than 2xx has no 304 (RFC 9110 section 13.2.1).
func TestH08_NoNotModifiedOfAnError(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"v1"`)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "not here")
	})
	c := start(t, site(o))
	for i := range 3 {
		r := c.get("/p", `If-None-Match: "v1"`).want(t, 404, "not here")
		if i > 0 {
			r.wantStatus(t, "fastcache; hit")
		}
	}
	o.wantAsked(t, 1)
}

// H07, H08: a validator of the client's own that is newer than what is stored.
func TestH08_ClientKnowsTheNewerState(t *testing.T) {
	var version atomic.Int64
	version.Store(1)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		etag := fmt.Sprintf(`"%d"`, version.Load())
		w.Header().Set("Cache-Control", "max-age=1")
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprintf(w, "body %d", version.Load())
	})
	c := start(t, site(o))
	c.get("/p").want(t, 200, "body 1")
	version.Store(2)
	time.Sleep(2100 * time.Millisecond)
	// The cache asks with its own validator, which fails at the origin.
	c.get("/p", `If-None-Match: "2"`).want(t, 200, "body 2").wantStatus(t, "fastcache; fwd=stale; fwd-status=200; stored")
	c.get("/p", `If-None-Match: "2"`).want(t, 304, "").wantStatus(t, "fastcache; hit")
	c.get("/p", `If-None-Match: "1"`).want(t, 200, "body 2")
}

// H08: bodies of unknown length and large ones too. The client has its 304 at once,
// over HTTP/1 and on a connection that stays; the whole comes behind it.
func TestH08_LargeBodiesFillTheCache(t *testing.T) {
	t.Parallel()
	large := testBody("large", 3<<20)
	var whole atomic.Int64
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		whole.Add(1)
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
		}
		_, _ = io.WriteString(w, large[:1000])
		_ = http.NewResponseController(w).Flush()
		time.Sleep(300 * time.Millisecond)
		_, _ = io.WriteString(w, large[1000:])
	})
	c := start(t, site(o))
	for i, uri := range []string{"/chunked", "/declared"} {
		r := c.get(uri, `If-None-Match: "1"`).want(t, 304, "").wantStatus(t, "fastcache; fwd=uri-miss")
		if r.Close {
			t.Errorf("%s: the connection ends with the 304", uri)
		}
		c.get(uri, `If-None-Match: "1"`).want(t, 304, "")
		c.get(uri).want(t, 200, large)
		c.get(uri, `If-None-Match: "1"`).want(t, 304, "").wantStatus(t, "fastcache; hit")
		if n := whole.Load(); n != int64(i+1) {
			t.Errorf("%s: the whole was fetched %d times", uri, n-int64(i))
		}
	}
}
