package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// phpOrigin does what a site behind php_fastcgi does: each pretty URL reaches
// /index.php, and the page is told by the original URI.
func phpOrigin(t *testing.T) *origin {
	return newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/index.php":
			http.NotFound(w, r)
		case r.Method == http.MethodPost && r.Header.Get("X-Original") == "/wp-login.php":
			http.Redirect(w, r, "/wp-admin/", http.StatusFound)
		case r.Method == http.MethodPost && r.Header.Get("X-Original") == "/refused":
			http.Error(w, "no", http.StatusForbidden)
		default:
			w.Header().Set("Content-Type", "text/html")
			user := ""
			if strings.Contains(r.Header.Get("Cookie"), "wordpress_logged_in") {
				user = " for a user"
			}
			fmt.Fprintf(w, "%s %s%s", r.Method, r.Header.Get("X-Original"), user)
		}
	})
}

func phpSite(o *origin, options string) string {
	return `http://:{port} {
	route {
		rewrite * /index.php
		@cacheable not header_regexp Cookie wordpress_logged_in
		fastcache @cacheable {
			path {dir}/cache
			` + options + `
		}
		reverse_proxy ` + o.addr() + ` {
			header_up X-Original {http.request.orig_uri}
		}
	}
}
`
}

// H20: a site that rewrites every URL to one script.
func TestH20_FrontController(t *testing.T) {
	o := phpOrigin(t)
	c := start(t, phpSite(o, "ttl 10m"))
	pages := []string{"/2018/07/a/", "/2018/07/b/", "/?s=q", "/", "/refused"}

	t.Run("a_pages", func(t *testing.T) {
		for range 2 {
			for _, uri := range pages {
				c.get(uri).want(t, 200, "GET "+uri)
			}
		}
		o.wantAsked(t, len(pages))
	})
	t.Run("b_post", func(t *testing.T) {
		before := o.asked()
		post := func(uri string) *response {
			return c.send(t.Context(), http.MethodPost, uri, strings.NewReader("a=b"), "Content-Type: application/x-www-form-urlencoded")
		}
		post("/2018/07/a/").want(t, 200, "POST /2018/07/a/").wantStatus(t, "fastcache; fwd=method")
		if n := o.asked() - before; n != 1 {
			t.Errorf("%d requests for one POST", n)
		}
		c.get("/2018/07/a/").want(t, 200, "GET /2018/07/a/").wantStatus(t, "fastcache; fwd=uri-miss")
		c.get("/2018/07/b/").wantStatus(t, "fastcache; hit")
		c.get("/").wantStatus(t, "fastcache; hit")
		if r := post("/wp-login.php"); r.StatusCode != http.StatusFound || r.Header.Get("Location") != "/wp-admin/" {
			t.Errorf("login: %d, Location %q", r.StatusCode, r.Header.Get("Location"))
		}
		post("/").want(t, 200, "POST /")
		c.get("/").want(t, 200, "GET /").wantStatus(t, "fastcache; fwd=uri-miss")
		c.get("/?s=q").wantStatus(t, "fastcache; hit")
		// What was refused has changed nothing.
		if r := post("/refused"); r.StatusCode != http.StatusForbidden {
			t.Errorf("%d", r.StatusCode)
		}
		c.get("/refused").wantStatus(t, "fastcache; hit")
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, "MKCOL"} {
			c.get("/2018/07/b/")
			c.get("/2018/07/b/").wantStatus(t, "fastcache; hit")
			c.do(method, "/2018/07/b/").want(t, 200, method+" /2018/07/b/")
			c.get("/2018/07/b/").want(t, 200, "GET /2018/07/b/").wantStatus(t, "fastcache; fwd=uri-miss")
		}
		c.do(http.MethodOptions, "/2018/07/b/").want(t, 200, "OPTIONS /2018/07/b/")
		c.get("/2018/07/b/").wantStatus(t, "fastcache; hit")
	})
	t.Run("c_users", func(t *testing.T) {
		const uri = "/2018/07/c/"
		user := "Cookie: wordpress_logged_in_x=1"
		r := c.get(uri, user).want(t, 200, "GET "+uri+" for a user")
		if r.cacheStatus() != "" {
			t.Errorf("a request that the matcher keeps away has Cache-Status %q", r.cacheStatus())
		}
		c.get(uri).want(t, 200, "GET "+uri)
		c.get(uri).want(t, 200, "GET "+uri).wantStatus(t, "fastcache; hit")
		c.get(uri, user).want(t, 200, "GET "+uri+" for a user")
		c.get(uri).want(t, 200, "GET "+uri).wantStatus(t, "fastcache; hit")
		// An anonymous client's cookie: the page says nothing about freshness,
		// so the default does not apply.
		c.get("/2018/07/d/", "Cookie: tracker=1").want(t, 200, "GET /2018/07/d/").wantStatus(t, "fastcache; fwd=uri-miss; detail=cookie")
	})
}

// H20: two ways to keep campaign parameters out of the key.
func TestH20_CampaignParameters(t *testing.T) {
	t.Run("cache_key", func(t *testing.T) {
		o := phpOrigin(t)
		c := start(t, phpSite(o, "cache_key {http.request.scheme}://{http.request.host}{http.request.orig_uri.path}?s={query.s}"))
		c.get("/p?s=1&utm_source=1").want(t, 200, "GET /p?s=1&utm_source=1")
		for _, uri := range []string{"/p?s=1", "/p?utm_source=2&s=1", "/p?s=1&utm_medium=x"} {
			c.get(uri).want(t, 200, "GET /p?s=1&utm_source=1").wantStatus(t, "fastcache; hit")
		}
		c.get("/p?s=2").want(t, 200, "GET /p?s=2")
		c.get("/q?s=1").want(t, 200, "GET /q?s=1")
		c.send(t.Context(), http.MethodPost, "/p?s=1&utm_source=3", strings.NewReader("x"))
		c.get("/p?s=1").want(t, 200, "GET /p?s=1").wantStatus(t, "fastcache; fwd=uri-miss")
		c.get("/p?s=2").wantStatus(t, "fastcache; hit")
	})
	t.Run("cache_key with a placeholder that Caddy does not have", func(t *testing.T) {
		// Replaced by nothing, it would make all pages of a path one.
		file := filepath.Join(t.TempDir(), "Caddyfile")
		config := "http://:1 {\n\tfastcache {\n\t\tcache_key {http.request.orig_uri.path}?s={http.request.orig_uri.query.s}\n\t}\n}\n"
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := string(runCaddyFails(t, "adapt", "--config", file)); !strings.Contains(out, "cache_key") {
			t.Errorf("caddy says %s", out)
		}
	})
	t.Run("query_ignore", func(t *testing.T) {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })
		c := start(t, site(o, "query_ignore utm_* gclid"))
		c.get("/p?s=1&utm_source=1&gclid=z").want(t, 200, "/p?s=1")
		for _, uri := range []string{"/p?s=1", "/p?utm_source=2&s=1", "/p?gclid=&s=1&utm_=&utm_x"} {
			c.get(uri).want(t, 200, "/p?s=1").wantStatus(t, "fastcache; hit")
		}
		for _, uri := range []string{"/p?s=1&gclid2=1", "/p?s=1&xutm_a=1", "/p?s=1&UTM_a=1"} {
			c.get(uri).want(t, 200, uri)
		}
		c.do("PURGE", "/p?utm_campaign=x&s=1").want(t, 200, "{\"purged\":1}\n")
	})
}

// wantOnce fails the test unless the response has one line of each field.
func (r *response) wantOnce(t *testing.T, names ...string) *response {
	t.Helper()
	for _, name := range names {
		if v := r.Header.Values(name); len(v) != 1 {
			t.Errorf("%d lines of %s: %q (%s)", len(v), name, v, r.cacheStatus())
		}
	}
	return r
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// H27: handlers of Caddy's own behind the cache.
func TestH27_Files(t *testing.T) {
	dir := t.TempDir()
	www := filepath.Join(dir, "www")
	page := testBody("H27", 5000)
	writeFile(t, www, "page.txt", page)
	writeFile(t, www, "page.txt.gz", gzipped(page))
	writeFile(t, www, "page.txt.br", "not really brotli")
	writeFile(t, www, "index.html", "the front page")
	writeFile(t, www, "now.html", "{{now.UnixNano}} {{.Req.URL.Path}} {{.OriginalReq.URL.Path}}")
	// In a route: handle comes before fastcache in Caddy's order of directives.
	c := startIn(t, dir, `http://:{port} {
	root * {dir}/www
	route {
		fastcache {
			path {dir}/cache
			ttl 10m
			heuristic_max 0
		}
		templates /now.html
		handle /spa/* {
			uri strip_prefix /spa
			try_files {path} /index.html
			file_server
		}
		handle {
			file_server {
				precompressed br gzip
			}
		}
	}
}
`)
	t.Run("a_precompressed", func(t *testing.T) {
		for round := range 3 {
			for _, client := range []struct{ accept, coding, body string }{
				{"br", "br", "not really brotli"},
				{"gzip", "gzip", gzipped(page)},
				{"-", "", page},
				{"gzip;q=0", "", page},
				{"identity", "", page},
			} {
				r := c.get("/page.txt", acceptEncoding(client.accept)...).want(t, 200, client.body)
				if got := r.Header.Get("Content-Encoding"); got != client.coding {
					t.Errorf("%q: Content-Encoding %q", client.accept, got)
				}
				if round > 0 {
					r.wantStatus(t, "fastcache; hit")
				}
				r.wantOnce(t, "Server", "Date", "Etag", "Vary")
				// Parts are of the form that the client gets (file_server
				// leaves Vary out of them).
				c.get("/page.txt", append(acceptEncoding(client.accept), "Range: bytes=3-8")...).want(t, 206, client.body[3:9])
			}
		}
	})
	t.Run("b_edited", func(t *testing.T) {
		writeFile(t, www, "edited.txt", "before")
		c.get("/edited.txt").want(t, 200, "before")
		writeFile(t, www, "edited.txt", "after it")
		c.get("/edited.txt").want(t, 200, "before").wantStatus(t, "fastcache; hit")
		c.do("PURGE", "/edited.txt").want(t, 200, "{\"purged\":1}\n")
		c.get("/edited.txt").want(t, 200, "after it").wantStatus(t, "fastcache; fwd=uri-miss")
		c.get("/edited.txt").want(t, 200, "after it").wantStatus(t, "fastcache; hit")
		if err := os.Remove(filepath.Join(www, "edited.txt")); err != nil {
			t.Fatal(err)
		}
		c.get("/edited.txt").want(t, 200, "after it").wantStatus(t, "fastcache; hit")
	})
	t.Run("c_templates", func(t *testing.T) {
		first := c.get("/now.html")
		if first.StatusCode != 200 || !strings.HasSuffix(first.body, " /now.html /now.html") {
			t.Fatalf("%d %q", first.StatusCode, first.body)
		}
		for range 2 {
			c.get("/now.html").want(t, 200, first.body).wantStatus(t, "fastcache; hit").wantOnce(t, "Server", "Date")
		}
		c.do("PURGE", "/now.html")
		if again := c.get("/now.html"); again.body == first.body {
			t.Error("the page was not rendered again")
		}
	})
	t.Run("d_try_files", func(t *testing.T) {
		for range 2 {
			c.get("/spa/some/route").want(t, 200, "the front page")
			c.get("/spa/page.txt").want(t, 200, page)
		}
		c.get("/spa/some/route").wantStatus(t, "fastcache; hit")
		// Each has the client's own URL as its key.
		c.do("PURGE", "/index.html").want(t, 404, "{\"purged\":0}\n")
		c.do("PURGE", "/spa/some/route").want(t, 200, "{\"purged\":1}\n")
	})
	t.Run("e_missing", func(t *testing.T) {
		// file_server's error is no response: handle_errors makes that, in
		// front of the cache.
		for range 2 {
			if r := c.get("/missing"); r.StatusCode != 404 {
				t.Errorf("%d", r.StatusCode)
			}
		}
		writeFile(t, www, "missing", "here now")
		c.get("/missing").want(t, 200, "here now")
	})
	t.Run("f_conditions", func(t *testing.T) {
		etag := c.get("/page.txt").Header.Get("Etag")
		c.get("/page.txt", "If-None-Match: "+etag).want(t, 304, "").wantStatus(t, "fastcache; hit")
	})
}

// H27: X-Accel-Redirect, intercept, and fields of the server that is asked.
func TestH27_ProxiedNeighbours(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "private"), "report.txt", "the report")
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Server", "the origin's")
		w.Header().Set("Alt-Svc", `h3=":8443"; ma=60`)
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "for this connection")
		w.Header().Set("Keep-Alive", "timeout=5")
		switch r.URL.Path {
		case "/download/1":
			w.Header().Set("X-Accel-Redirect", "/report.txt")
			_, _ = io.WriteString(w, "not for the client")
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "the origin's page")
		default:
			w.Header().Set("Date", time.Now().Add(-time.Second).UTC().Format(http.TimeFormat))
			_, _ = io.WriteString(w, "a page")
		}
	})
	c := startIn(t, dir, strings.ReplaceAll(`http://:{port} {
	header X-Front "front"
	fastcache {
		path {dir}/cache
	}
	intercept {
		@teapot status 418
		handle_response @teapot {
			respond "intercepted" 410
		}
	}
	reverse_proxy ORIGIN {
		@accel header X-Accel-Redirect *
		handle_response @accel {
			root * {dir}/private
			rewrite * {rp.header.X-Accel-Redirect}
			method * GET
			file_server
		}
	}
}
`, "ORIGIN", o.addr()))
	t.Run("a_accel", func(t *testing.T) {
		for i := range 3 {
			r := c.get("/download/1").want(t, 200, "the report").wantOnce(t, "Date")
			if i > 0 {
				r.wantStatus(t, "fastcache; hit")
			}
			if v := r.Header.Values("X-Accel-Redirect"); len(v) > 0 {
				t.Errorf("X-Accel-Redirect %q reaches the client", v)
			}
		}
		c.do("PURGE", "/report.txt").want(t, 404, "{\"purged\":0}\n")
		c.do("PURGE", "/download/1").want(t, 200, "{\"purged\":1}\n")
		o.wantAsked(t, 1)
	})
	t.Run("b_fields", func(t *testing.T) {
		for i := range 3 {
			r := c.get("/page").want(t, 200, "a page").wantOnce(t, "Server", "Date", "X-Front", "Cache-Control", "Cache-Status")
			if i == 0 {
				continue
			}
			r.wantStatus(t, "fastcache; hit")
			for _, name := range []string{"Alt-Svc", "X-Hop", "Keep-Alive", "Connection"} {
				if v := r.Header.Values(name); len(v) > 0 {
					t.Errorf("a hit has %s %q", name, v)
				}
			}
		}
	})
	t.Run("c_intercept", func(t *testing.T) {
		// In front of the proxy: what it made of the response is cached, or
		// made again for each client; never the page that it replaced.
		for range 3 {
			if r := c.get("/teapot"); r.StatusCode != http.StatusGone || r.body != "intercepted" {
				t.Errorf("%d %q (%s)", r.StatusCode, r.body, r.cacheStatus())
			}
		}
	})
	t.Run("d_front_header_is_not_stored", func(t *testing.T) {
		c.get("/front")
		for _, f := range c.cacheFiles() {
			data, err := os.ReadFile(f)
			if err == nil && strings.Contains(string(data), "X-Front") {
				t.Errorf("%s has a field of a handler in front of the cache", f)
			}
		}
	})
}
