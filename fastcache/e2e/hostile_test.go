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

// The answer to a client's own condition does not wait for a body that it will
// not get, and a failed response's body holds no stale answer up.
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
		if failing.Load() || r.URL.Path == "/slow" {
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
	c.send(ctx, http.MethodGet, "/slow", nil, `If-None-Match: "1"`).want(t, 304, "")

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
