package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRFC9111_Reuse: which responses answer a second request.
func TestRFC9111_Reuse(t *testing.T) {
	t.Parallel()
	const fresh = "Cache-Control: max-age=3600"
	checkReuse(t, []reuse{
		{name: "5.2.2.3 must-understand overrides no-store", first: []string{"Cache-Control: max-age=3600, no-store, must-understand"}, reused: true},
		{name: "5.2.2.3 must-understand, status not understood", status: 599, first: []string{"Cache-Control: max-age=3600, no-store, must-understand"}},
		{name: "3 any final status with explicit freshness", status: 599, first: []string{fresh}, reused: true},
		{name: "3 no heuristics for other statuses", status: 599, first: []string{"Last-Modified: NOW-100000", "Date: NOW"}},

		{name: "5.1 Age of 2^31-1", first: []string{fresh, "Age: 2147483647"}},
		{name: "5.1 Age of 2^31", first: []string{fresh, "Age: 2147483648"}},
		{name: "5.1 Age of 2^31+1", first: []string{fresh, "Age: 2147483649"}},
		{name: "5.1 Age beyond 64 bits", first: []string{fresh, "Age: 99999999999999999999999"}},
		{name: "5.1 first of a list, old", first: []string{fresh, "Age: 7200, 0"}},
		{name: "5.1 first of a list, young", first: []string{fresh, "Age: 0, 7200"}, reused: true},
		{name: "5.1 first of two lines, old", first: []string{fresh, "Age: 7200", "Age: 0"}},
		{name: "5.1 first of two lines, young", first: []string{fresh, "Age: 0", "Age: 7200"}, reused: true},
		{name: "5.1 the same twice", first: []string{"Cache-Control: max-age=10000", "Age: 3600, 3600"}, reused: true},
		{name: "5.1 not a number is ignored", first: []string{fresh, "Age: abc"}, reused: true},
		{name: "5.1 negative is ignored", first: []string{fresh, "Age: -7200"}, reused: true},
		{name: "5.1 a fraction is ignored", first: []string{fresh, "Age: 7200.0"}, reused: true},
		{name: "5.1 with a parameter is ignored", first: []string{fresh, "Age: 7200;foo=bar"}, reused: true},

		{name: "5.3 Expires at the end of 32 bits", first: []string{"Expires: Tue, 19 Jan 2038 14:14:08 GMT", "Date: NOW"}, reused: true},
		{name: "5.3 Expires far in the future", first: []string{"Expires: Thu, 21 Nov 2286 04:46:39 GMT", "Date: NOW"}, reused: true},
		{name: "5.3 Expires with a weekday that does not fit", first: []string{"Expires: Mon, 21 Nov 2286 04:46:39 GMT", "Date: NOW"}, reused: true},
		{name: "4.2 zone UTC", first: []string{"Expires: Thu, 18 Aug 2050 02:01:18 UTC", "Date: NOW"}},

		{name: "5.2.3 unknown directives are ignored", first: []string{`Cache-Control: max-age=3600, community="UCI", foo`}, reused: true},
		{name: "5.2.2.2 must-revalidate allows Authorization", first: []string{"Cache-Control: max-age=3600, must-revalidate"}, ask: []string{"Authorization: a"}, reused: true},
		{name: "3.5 nothing of that kind", first: []string{fresh}, ask: []string{"Authorization: a"}},

		{name: "RFC 5861 3 within stale-while-revalidate", first: []string{"Cache-Control: max-age=10, stale-while-revalidate=60", "Age: 12"}, reused: true},
		{name: "RFC 5861 3 beyond stale-while-revalidate", first: []string{"Cache-Control: max-age=10, stale-while-revalidate=5", "Age: 16"}},
		{name: "RFC 5861 3 stale-while-revalidate and must-revalidate", first: []string{"Cache-Control: max-age=10, stale-while-revalidate=60, must-revalidate", "Age: 12"}},

		{name: "RFC 8246 2 stale", first: []string{"Cache-Control: max-age=10, immutable", "Age: 12"}},
	})
}

// TestRFC5861_StaleIfError: which failures a stale response stands in for, for
// how long, and that it says its age (section 4).
func TestRFC5861_StaleIfError(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	c := start(t, strictSite(s.origin))
	for i, tc := range []struct {
		name    string
		cc, age string
		failure int
		stale   bool
	}{
		{"500", "max-age=10, stale-if-error=60", "30", 500, true},
		{"502", "max-age=10, stale-if-error=60", "30", 502, true},
		{"503", "max-age=10, stale-if-error=60", "30", 503, true},
		{"504", "max-age=10, stale-if-error=60", "30", 504, true},
		{"501 is no error of this kind", "max-age=10, stale-if-error=60", "30", 501, false},
		{"505 is no error of this kind", "max-age=10, stale-if-error=60", "30", 505, false},
		{"404 is an answer", "max-age=10, stale-if-error=60", "30", 404, false},
		{"too stale", "max-age=10, stale-if-error=60", "80", 503, false},
		{"no such directive", "max-age=10", "30", 503, false},
		{"must-revalidate", "max-age=10, stale-if-error=60, must-revalidate", "30", 503, false},
		{"proxy-revalidate", "max-age=10, stale-if-error=60, proxy-revalidate", "30", 503, false},
		{"s-maxage", "s-maxage=10, stale-if-error=60", "30", 503, false},
		{"no-cache", "no-cache, stale-if-error=60", "30", 503, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			uri := fmt.Sprintf("/%d", i)
			s.on(uri, reply{fields: []string{"Cache-Control: " + tc.cc, "Age: " + tc.age, `ETag: "1"`}}, reply{status: tc.failure})
			c.get(uri).want(t, 200, "1")
			r := c.get(uri)
			if !tc.stale {
				if r.StatusCode != tc.failure || r.body != "2" {
					t.Errorf("status %d, body %q, want the failure (%s)", r.StatusCode, r.body, r.cacheStatus())
				}
				return
			}
			r.want(t, 200, "1").wantStatus(t, fmt.Sprintf("fastcache; fwd=stale; fwd-status=%d; ttl=-", tc.failure))
			if age, _ := strconv.Atoi(r.Header.Get("Age")); age < 30 {
				t.Errorf("Age %q, want 30 or more", r.Header.Get("Age"))
			}
		})
	}
}

// TestRFC9111_4_2_3_ResponseDelay: the time that the origin takes counts as age,
// as from its Age on.
func TestRFC9111_4_2_3_ResponseDelay(t *testing.T) {
	t.Parallel()
	const delay = 1100 * time.Millisecond
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Age", "100")
		time.Sleep(delay)
		_, _ = io.WriteString(w, "slow")
	})
	c := start(t, strictSite(o))
	c.get("/").want(t, 200, "slow")
	r := c.get("/").want(t, 200, "slow").wantStatus(t, "fastcache; hit")
	if age, _ := strconv.Atoi(r.Header.Get("Age")); age < 101 || len(r.Header.Values("Age")) != 1 {
		t.Errorf("Age %q, want one of 101 or more", r.Header.Values("Age"))
	}
}

// TestRFC9111_StoredFields: a stored response has the fields that came, and no
// others (sections 3.1 and 4, RFC 9110 sections 6.5.1 and 6.6.1).
func TestRFC9111_StoredFields(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "max-age=3600")
		switch r.URL.Path {
		case "/fields":
			h.Set("Connection", "X-Hop")
			h.Set("X-Hop", "1")
			h.Set("X-Unknown", "1")
			h.Add("X-Unknown", "2")
			h.Set("Proxy-Authenticate", "Basic")
			h.Set("Proxy-Authentication-Info", "x")
			h.Set("Expires", "Fri, 01 Jan 2038 01:01:01 GMT")
			h.Set("Date", "Tue, 01 Jan 2030 00:00:00 GMT")
			h.Set("Cache-Status", "Inner; hit; ttl=100")
		case "/qualified":
			h.Set("Cache-Control", `max-age=3600, private="x-user, X-Cart", no-cache=x-once`)
			for _, name := range []string{"X-User", "X-Cart", "X-Once", "X-All"} {
				h.Set(name, "1")
			}
		case "/trailer":
			h.Set("Trailer", "X-Trailer")
			defer h.Set("X-Trailer", "late")
		case "/dateless":
			h["Date"] = nil
		}
		_, _ = io.WriteString(w, "body")
	})
	c := start(t, strictSite(o))

	t.Run("fields", func(t *testing.T) {
		for _, ours := range []string{"fastcache; fwd=uri-miss", "fastcache; hit"} {
			r := c.get("/fields").want(t, 200, "body")
			for name, want := range map[string][]string{
				"X-Unknown": {"1", "2"}, "Expires": {"Fri, 01 Jan 2038 01:01:01 GMT"}, "Date": {"Tue, 01 Jan 2030 00:00:00 GMT"}, "X-Hop": nil,
			} {
				if got := r.Header.Values(name); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			// RFC 9211 section 2: what other caches say stays, in front.
			if got := strings.Join(r.Header.Values("Cache-Status"), ", "); !strings.HasPrefix(got, "Inner; hit; ttl=100, "+ours) {
				t.Errorf("Cache-Status %q", got)
			}
		}
		for _, name := range []string{"Proxy-Authenticate", "Proxy-Authentication-Info"} {
			if got := c.get("/fields").Header.Get(name); got != "" {
				t.Errorf("a hit has %s: %s", name, got)
			}
		}
	})
	t.Run("qualified private and no-cache", func(t *testing.T) { // sections 5.2.2.4 and 5.2.2.7
		c.get("/qualified").want(t, 200, "body")
		r := c.get("/qualified").want(t, 200, "body").wantStatus(t, "fastcache; hit")
		for name, want := range map[string]string{"X-User": "", "X-Cart": "", "X-Once": "", "X-All": "1"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("a hit has %s: %q, want %q", name, got, want)
			}
		}
	})
	t.Run("trailer", func(t *testing.T) {
		first := c.get("/trailer").want(t, 200, "body")
		if got := first.Trailer.Get("X-Trailer"); got != "late" {
			t.Errorf("the trailer field did not reach the client: %q", got)
		}
		second := c.get("/trailer").want(t, 200, "body").wantStatus(t, "fastcache; hit")
		if got := second.Header.Get("X-Trailer"); got != "" {
			t.Errorf("the trailer field became a header field: %q", got)
		}
	})
	t.Run("dateless", func(t *testing.T) {
		c.get("/dateless").want(t, 200, "body")
		time.Sleep(1100 * time.Millisecond)
		r := c.get("/dateless").want(t, 200, "body").wantStatus(t, "fastcache; hit")
		date, err := http.ParseTime(r.Header.Get("Date"))
		if age := time.Since(date); err != nil || age < time.Second {
			t.Errorf("Date %q: want the time of arrival", r.Header.Get("Date"))
		}
	})
}

// TestRFC9111_5_2_DirectivesPassThrough: directives go on to the next on the way
// as they are, known or not, in both directions.
func TestRFC9111_5_2_DirectivesPassThrough(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	c := start(t, strictSite(s.origin, "honor_request_cache_control"))
	const directives = `Max-Age=5,community="UCI" , no-cache`
	s.on("/", reply{fields: []string{"Cache-Control: " + `max-age=3600,  Community="UCI"`, "Cache-Control: foo"}})
	for i := range 2 {
		c.get("/", "Cache-Control: "+directives, "Pragma: no-cache, x")
		got := s.received(t, "/", i)
		if got.Get("Cache-Control") != directives || got.Get("Pragma") != "no-cache, x" {
			t.Errorf("request %d: the origin got Cache-Control %q, Pragma %q", i+1, got.Values("Cache-Control"), got.Values("Pragma"))
		}
	}
	r := c.get("/").wantStatus(t, "fastcache; hit")
	if got := r.Header.Values("Cache-Control"); !slices.Equal(got, []string{`max-age=3600,  Community="UCI"`, "foo"}) {
		t.Errorf("a hit has Cache-Control %q", got)
	}
}

// TestRFC9111_UnknownMethods: responses to methods that the cache does not know
// are not stored and answer nothing, and the method counts as unsafe (sections 3
// and 4.4).
func TestRFC9111_UnknownMethods(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	c := start(t, strictSite(s.origin))
	s.on("/", reply{fields: []string{"Cache-Control: max-age=3600"}})
	for i, method := range []string{"FOO", "FOO", "GET"} {
		c.do(method, "/").want(t, 200, strconv.Itoa(i+1))
	}
	c.get("/").want(t, 200, "3").wantStatus(t, "fastcache; hit")
	c.do("FOO", "/").want(t, 200, "4").wantStatus(t, "fastcache; fwd=method")
	c.get("/").want(t, 200, "5").wantStatus(t, "fastcache; fwd=")
}

// TestRFC9111_4_4_OtherOrigins: what Location and Content-Location name is dropped
// if it is of the same origin, and left alone if it is of another.
func TestRFC9111_4_4_OtherOrigins(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		if r.Method == http.MethodPost {
			for name := range r.URL.Query() {
				w.Header().Set(name, r.URL.Query().Get(name))
			}
		}
		_, _ = io.WriteString(w, r.Host)
	})
	c := start(t, strictSite(o))
	for _, field := range []string{"Location", "Content-Location"} {
		for target, dropped := range map[string]bool{
			"/x": true, "http://a.example/x": true, "HTTP://A.example:80/x": true, "//a.example/x": true,
			"http://b.example/x": false, "//b.example/x": false, "http://a.example:8080/x": false, "https://a.example/x": false,
		} {
			for _, host := range []string{"a.example", "b.example"} {
				c.get("/x", "Host: "+host)
				c.get("/x", "Host: "+host).want(t, 200, host).wantStatus(t, "fastcache; hit")
			}
			c.do(http.MethodPost, "/change?"+field+"="+target, "Host: a.example").want(t, 200, "a.example")
			if r := c.get("/x", "Host: a.example").want(t, 200, "a.example"); r.hit() == dropped {
				t.Errorf("%s: %s: dropped %v, want %v", field, target, !r.hit(), dropped)
			}
			c.get("/x", "Host: b.example").want(t, 200, "b.example").wantStatus(t, "fastcache; hit")
		}
	}
}

// TestRFC9111_4_1_VaryLeftOut: a response without Vary does not push out those
// that say by what they vary (section 4.1, the last but one paragraph).
func TestRFC9111_4_1_VaryLeftOut(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		lang := r.Header.Get("X-Lang")
		if lang != "" {
			w.Header().Set("Vary", "X-Lang")
		}
		_, _ = io.WriteString(w, "in "+lang)
	})
	c := start(t, strictSite(o))
	c.get("/", "X-Lang: fr").want(t, 200, "in fr")
	c.get("/").want(t, 200, "in ") // the default, without Vary
	c.get("/", "X-Lang: fr").want(t, 200, "in fr")
	c.get("/").want(t, 200, "in ")
}

// TestRFC9111_4_MostRecent: of two responses that could answer, the newer one
// does (section 4).
func TestRFC9111_4_MostRecent(t *testing.T) {
	t.Parallel()
	var version atomic.Int64
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		// The field by which the response varies changes meanwhile, so that
		// the request {A, B} fits both responses.
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Vary", [...]string{"A", "B"}[version.Load()])
		fmt.Fprintf(w, "version %d", version.Load())
	})
	c := start(t, strictSite(o))
	c.get("/", "A: 1", "B: 1").want(t, 200, "version 0")
	version.Store(1)
	c.get("/", "A: 2", "B: 1").want(t, 200, "version 1")
	c.get("/", "A: 1", "B: 1").want(t, 200, "version 1")
}

// TestRFC9111_4_3_4_ForeignNotModified: a 304 that names another strong validator
// updates nothing, and is nobody's answer.
func TestRFC9111_4_3_4_ForeignNotModified(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	c := start(t, strictSite(s.origin))
	s.on("/",
		reply{fields: []string{"Cache-Control: max-age=1", "Age: 2", `ETag: "abcdef"`}},
		reply{status: 304, fields: []string{"Cache-Control: max-age=3600", `ETag: "ghijkl"`}},
		reply{fields: []string{"Cache-Control: max-age=3600", `ETag: "ghijkl"`}},
	)
	c.get("/").want(t, 200, "1")
	c.get("/").want(t, 200, "3").wantStatus(t, "fastcache; fwd=stale")
	if got := s.received(t, "/", 1).Get("If-None-Match"); got != `"abcdef"` {
		t.Errorf("the validation had If-None-Match %q", got)
	}
	if got := s.received(t, "/", 2); len(got.Values("If-None-Match")) > 0 {
		t.Errorf("the request for the whole had If-None-Match %q", got.Get("If-None-Match"))
	}
	c.get("/").want(t, 200, "3").wantStatus(t, "fastcache; hit")
}
