package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The bound on a validation is for the origin's answer to begin: a new body may
// take as long as it takes.
func TestValidation_NewBodyIsNotCutShort(t *testing.T) {
	var changed atomic.Bool
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		version, maxAge := "1", "max-age=1"
		if changed.Load() {
			version, maxAge = "2", "max-age=60"
		}
		w.Header().Set("Cache-Control", maxAge)
		w.Header().Set("ETag", strconv.Quote(version))
		w.Header().Set("Content-Length", "40")
		for range 4 {
			_, _ = io.WriteString(w, strings.Repeat(version, 10))
			_ = http.NewResponseController(w).Flush()
			if version != "1" {
				time.Sleep(400 * time.Millisecond)
			}
		}
	})
	c := start(t, site(o, "revalidate_timeout 1s"))
	c.get("/f").want(t, 200, strings.Repeat("1", 40))
	changed.Store(true)
	time.Sleep(1200 * time.Millisecond)
	c.get("/f").want(t, 200, strings.Repeat("2", 40))
	c.get("/f").want(t, 200, strings.Repeat("2", 40)).wantStatus(t, "fastcache; hit")
}

// What handlers in front of the cache say of a response counts, although it is
// not stored with it.
func TestFieldsInFrontOfTheCacheCount(t *testing.T) {
	var n atomic.Int64
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d %s", n.Add(1), r.Header.Get("X-Lang"))
	})
	front := func(field string) string {
		return strings.Replace(site(o), "fastcache {", "header "+field+"\n\t\tfastcache {", 1)
	}
	t.Run("no-store", func(t *testing.T) {
		c := start(t, front(`Cache-Control "private, no-store"`))
		a, b := c.get("/a"), c.get("/a")
		if a.body == b.body || b.hit() {
			t.Errorf("a response marked private, no-store was stored: %q, %q", a.body, b.cacheStatus())
		}
	})
	t.Run("vary", func(t *testing.T) {
		c := start(t, front("Vary X-Lang"))
		de, en := c.get("/b", "X-Lang: de"), c.get("/b", "X-Lang: en")
		if de.body == en.body {
			t.Errorf("both languages got %q", en.body)
		}
		c.get("/b", "X-Lang: de").want(t, 200, de.body).wantStatus(t, "fastcache; hit")
	})
}

// A 304 that says something else of who may have the response, or is about
// another one, does not revive the stored one for everybody.
func TestNotModified_ChangedItsMind(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("ETag", `"1"`)
		h.Set("Cache-Control", "max-age=1")
		if r.Header.Get("If-None-Match") != "" {
			h.Set("Cache-Control", "max-age=60")
			switch r.URL.Path {
			case "/vary":
				h.Set("Vary", "X-Lang")
			case "/private":
				h.Set("Cache-Control", "private")
			case "/etag":
				h.Set("ETag", `"2"`)
			}
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "body for "+r.Header.Get("X-Lang"))
	})
	c := start(t, site(o))
	for _, uri := range []string{"/vary", "/private", "/etag"} {
		c.get(uri, "X-Lang: en").want(t, 200, "body for en")
	}
	time.Sleep(1200 * time.Millisecond)
	for _, uri := range []string{"/vary", "/private"} {
		c.get(uri, "X-Lang: en").want(t, 200, "body for en").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
		c.get(uri, "X-Lang: de").want(t, 200, "body for de").wantStatus(t, "fastcache; fwd=uri-miss")
	}
	c.get("/etag", "X-Lang: de").want(t, 200, "body for de")
}

// Spellings of a host that share a key look alike to the origin, whose answer to
// one of them all will get.
func TestHostSpellings_ReachTheOriginAlike(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.Host != "good.example" {
			http.Redirect(w, r, "http://good.example"+r.RequestURI, http.StatusMovedPermanently)
			return
		}
		_, _ = io.WriteString(w, "page")
	})
	c := start(t, site(o))
	for i, host := range []string{"GOOD.example", "good.example:80", "good.example."} {
		uri := fmt.Sprintf("/%d", i)
		c.get(uri, "Host: "+host).want(t, 200, "page")
		c.get(uri, "Host: good.example").want(t, 200, "page").wantStatus(t, "fastcache; hit")
	}
}

// Fields that tell of the client's view, and fields that the client's Connection
// takes away, do not reach the origin from an untrusted client.
func TestUnkeyedFields_DoNotReachTheOrigin(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "%s%s%s", r.Header.Get("X-Forwarded-Prefix"), r.Header.Get("Forwarded"), r.Header.Get("X-Lang"))
	})
	c := start(t, site(o))
	c.get("/f", "X-Forwarded-Prefix: /evil", "Forwarded: host=evil", "Connection: X-Lang", "X-Lang: evil").want(t, 200, "")
	c.get("/f").want(t, 200, "").wantStatus(t, "fastcache; hit")
}

// A key that names one cookie is no licence to share what others change.
func TestCookieInKey_OthersStillCount(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Cookie")) })
	c := start(t, site(o, "cache_key {host}{uri}{cookie.lang}"))
	c.get("/f", "Cookie: lang=de; session=1").want(t, 200, "lang=de; session=1")
	c.get("/f", "Cookie: lang=de; session=2").want(t, 200, "lang=de; session=2")
	c.get("/f", "Cookie: lang=de").want(t, 200, "lang=de")
	c.get("/f", "Cookie: lang=de").want(t, 200, "lang=de").wantStatus(t, "fastcache; hit")
	c.get("/f", "Cookie: lang=en").want(t, 200, "lang=en")
}

// A failed response's body holds no stale answer up.
func TestAnswers_DoNotWaitForBodiesThatNobodyGets(t *testing.T) {
	hang := make(chan struct{})
	var failing atomic.Bool
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Cache-Control", "max-age=1, stale-if-error=60")
		if failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "begun ")
		if failing.Load() {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
	})
	t.Cleanup(func() { close(hang) })
	c := start(t, site(o))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c.get("/f").want(t, 200, "begun ")
	time.Sleep(1200 * time.Millisecond)
	failing.Store(true)
	c.send(ctx, http.MethodGet, "/f", nil).want(t, 200, "begun ").wantStatus(t, "fastcache; fwd=stale; fwd-status=503")
}

// A FastCGI application is asked for the URL that is in the key, too.
func TestQueryIgnore_ReachesFastCGI(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		_ = fcgi.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			fmt.Fprint(w, r.URL.RequestURI())
		}))
	}()
	c := start(t, `http://:{port} {
	fastcache {
		path {dir}/cache
		query_ignore utm_*
	}
	reverse_proxy `+listener.Addr().String()+` {
		transport fastcgi
	}
}
`)
	c.get("/a.php?utm_x=evil&id=1").want(t, 200, "/a.php?id=1")
	c.get("/a.php?id=1").want(t, 200, "/a.php?id=1").wantStatus(t, "fastcache; hit")
}

// An answer about one request's Range, or about one client, is nobody else's.
func TestStatus_AboutOneRequest(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		switch {
		case r.Header.Get("Range") != "":
			w.Header().Set("Content-Range", "bytes */5")
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		case r.Header.Get("X-Often") != "":
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			_, _ = io.WriteString(w, "page!")
		}
	})
	c := start(t, site(o))
	c.get("/range", "Range: bytes=999999-").want(t, 416, "").wantStatus(t, "fastcache; fwd=uri-miss; detail=status")
	c.get("/range").want(t, 200, "page!")
	c.get("/often", "X-Often: yes").want(t, 429, "").wantStatus(t, "fastcache; fwd=uri-miss; detail=status")
	c.get("/often").want(t, 200, "page!")
}

// What handlers in front say of one request is not stored with what the origin
// adds to it, in RAM or on disk, before or after a 304.
func TestFieldsInFront_AreNotStored(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1")
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("X-User", "origin")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "page")
	})
	for _, options := range []string{"disk_size 0", "memory_size 0"} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			c := start(t, strings.Replace(site(o, options), "route {", "route {\n\t\theader X-User {http.request.header.X-User}", 1))
			ask := func(user, begin string) {
				t.Helper()
				r := c.get("/", "X-User: "+user).want(t, 200, "page").wantStatus(t, begin)
				if got := strings.Join(r.Header.Values("X-User"), ","); got != user+",origin" {
					t.Errorf("X-User for %s: %s (%s)", user, got, r.cacheStatus())
				}
			}
			ask("alice", "fastcache; fwd=uri-miss; stored")
			ask("bob", "fastcache; hit")
			time.Sleep(1200 * time.Millisecond)
			ask("carol", "fastcache; fwd=stale; fwd-status=304")
			ask("dave", "fastcache; hit")
		})
	}
}

// stale-if-error of a response is for when the origin has failed, not for while it
// is being asked.
func TestStaleIfError_NotWhileTheOriginIsAsked(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	var version atomic.Int64
	version.Store(1)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=1, stale-if-error=3600")
		v := version.Load()
		if slow.Load() {
			time.Sleep(700 * time.Millisecond)
		}
		if v == 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "v", v)
	})
	c := start(t, site(o))
	c.get("/").want(t, 200, "v1")
	time.Sleep(1200 * time.Millisecond)
	slow.Store(true)
	version.Store(2)
	together := func(want, begin string) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				c.get("/").want(t, 200, want).wantStatus(t, begin)
			})
		}
		wg.Wait()
	}
	before := o.asked()
	together("v2", "fastcache; fwd=stale")
	o.wantAsked(t, before+1)

	// When it has failed for one, all get the stale response, and it is not asked
	// for each.
	version.Store(3)
	time.Sleep(1200 * time.Millisecond)
	before = o.asked()
	together("v2", "fastcache; fwd=stale")
	o.wantAsked(t, before+1)
}

// A 304 that ends sharing ends it also if its client leaves in the middle.
func TestNotModified_EndsSharingAtOnce(t *testing.T) {
	t.Parallel()
	body := testBody("big", 8<<20)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.Header().Set("Cache-Control", "private")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, body)
	})
	c := start(t, site(o, "honor_request_cache_control"))
	c.get("/").want(t, 200, body)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nCache-Control: no-cache\r\n\r\n", c.port)
	_, _ = io.ReadFull(conn, make([]byte, 400))
	c.get("/").want(t, 200, body).wantStatus(t, "fastcache; fwd=uri-miss")
	conn.Close()
}

// The field that is for this cache alone reaches no client.
func TestTargetedField_StaysHere(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Fastcache-Cache-Control", "max-age=60")
	})
	c := start(t, site(o))
	for _, r := range []*response{
		c.get("/"), c.get("/"), c.do(http.MethodPost, "/"), c.do(http.MethodPut, "/"), c.get("/", `If-Match: "1"`),
	} {
		if v := r.Header.Get("Fastcache-Cache-Control"); v != "" {
			t.Errorf("%s: Fastcache-Cache-Control: %s", r.cacheStatus(), v)
		}
	}
}
