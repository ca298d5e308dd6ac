package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestPOST_AnswersLaterGETs holds RFC 9110 section 9.3.3: a response to POST that
// says it shows its target is what a GET gets.
func TestPOST_AnswersLaterGETs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Location", "/self")
		w.Header().Set("Vary", "X-V")
		if r.Header.Get("X-V") != "plain" {
			w.Header().Set("Cache-Control", "max-age=60")
		}
		fmt.Fprintf(w, "%s %s", r.Method, body)
	})
	c := start(t, site(o))
	post := func(uri string, fields ...string) *response {
		t.Helper()
		return c.send(t.Context(), http.MethodPost, uri, strings.NewReader("x=1"), fields...).want(t, 200, "POST x=1")
	}

	post("/self", "X-V: 1").wantStatus(t, "fastcache; fwd=method; stored; ttl=60")
	c.get("/self", "X-V: 1").want(t, 200, "POST x=1").wantStatus(t, "fastcache; hit; ttl=")
	c.get("/self", "X-V: 2").want(t, 200, "GET ").wantStatus(t, "fastcache; fwd=vary-miss; stored")

	// It takes the place of all variants, as the answer to any unsafe request does.
	post("/self", "X-V: 1").wantStatus(t, "fastcache; fwd=method; stored")
	c.get("/self", "X-V: 2").want(t, 200, "GET ").wantStatus(t, "fastcache; fwd=vary-miss; stored")

	for name, fields := range map[string][]string{
		"/other":          {"X-V: 1"}, // not what Content-Location names
		"/self?override":  {"X-V: 1", "X-HTTP-Method-Override: DELETE"},
		"/self?freshness": {"X-V: plain"},
	} {
		uri, _, _ := strings.Cut(name, "?")
		post(uri, fields...).wantStatus(t, "fastcache; fwd=method; detail=method")
		c.get(uri, fields[0]).want(t, 200, "GET ").wantStatus(t, "fastcache; fwd=uri-miss")
	}
}

// TestHEAD_UpdatesStored holds RFC 9111 section 4.3.5.
func TestHEAD_UpdatesStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		head    func(h http.Header) int
		chunked bool
		get     string // Cache-Status of a GET afterwards
		test    string // X-Test of it
		body    string
	}{
		"same representation": {
			head: func(h http.Header) int { h.Set("Cache-Control", "max-age=60"); return 200 },
			get:  "fastcache; hit; ttl=", test: "HEAD", body: "GET",
		},
		"same, the body came in chunks": {
			head:    func(h http.Header) int { h.Set("Cache-Control", "max-age=60"); return 200 },
			chunked: true,
			get:     "fastcache; hit; ttl=", test: "HEAD", body: "GET",
		},
		"another ETag": {
			head: func(h http.Header) int { h.Set("ETag", `"2"`); return 200 },
			get:  "fastcache; fwd=uri-miss", test: "GET", body: "GET",
		},
		"another length": {
			head: func(h http.Header) int { h.Set("Content-Length", "4"); return 200 },
			get:  "fastcache; fwd=uri-miss", test: "GET", body: "GET",
		},
		"not to be stored any more": {
			head: func(h http.Header) int { h.Set("Cache-Control", "no-store"); return 200 },
			get:  "fastcache; fwd=uri-miss", test: "GET", body: "GET",
		},
		"gone":            {head: func(http.Header) int { return 410 }, get: "fastcache; fwd=uri-miss", test: "GET", body: "GET"},
		"passing trouble": {head: func(http.Header) int { return 500 }, get: "fastcache; fwd=stale", test: "GET", body: "GET"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var moved atomic.Bool
			o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("Cache-Control", "max-age=0")
				h.Set("ETag", `"1"`)
				h.Set("Content-Length", "3")
				h.Set("X-Test", r.Method)
				if r.Method == http.MethodHead {
					w.WriteHeader(test.head(h))
					return
				}
				if test.chunked && !moved.Load() {
					h.Del("Content-Length")
					w.(http.Flusher).Flush()
				}
				_, _ = io.WriteString(w, "GET")
			})
			c := start(t, site(o, "stale_while_revalidate 0"))
			c.get("/").want(t, 200, "GET").wantStatus(t, "fastcache; fwd=uri-miss; stored")
			moved.Store(true)
			c.do(http.MethodHead, "/").wantStatus(t, "fastcache; fwd=stale; fwd-status=")
			r := c.get("/").want(t, 200, test.body).wantStatus(t, test.get)
			if got := r.Header.Get("X-Test"); got != test.test {
				t.Errorf("X-Test %q, want %q", got, test.test)
			}
		})
	}
}
