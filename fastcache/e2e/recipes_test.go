package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRecipes runs every Caddyfile of docs/recipes.md and checks what the text
// around it claims.
func TestRecipes(t *testing.T) {
	t.Parallel()
	runPage(t, "recipes.md", map[string]func(*testing.T, *recipe){
		"WordPress":                       wordPress,
		"An API with Vary":                apiWithVary,
		"Compression":                     compression,
		"Pages behind a password":         behindPassword,
		"Video and other large files":     largeFiles,
		"Several sites":                   severalSites,
		"Purge on publish":                purgeOnPublish,
		"Behind a load balancer or a CDN": behindLoadBalancer,
		"Several machines":                severalMachines,
	})
}

// recipe is a section of a page.
type recipe struct {
	blocks map[string][]string // by the words behind the fence
	used   map[int]bool        // of the Caddyfiles
}

var (
	fence   = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	heading = regexp.MustCompile(`(?m)^## (.*)\n`)
)

// runPage runs the tests of a page's sections, by their headings. A section that
// has a Caddyfile must have a test, and the test must run all of them.
func runPage(t *testing.T, page string, tests map[string]func(*testing.T, *recipe)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]*recipe)
	starts := heading.FindAllStringSubmatchIndex(string(text), -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		r := &recipe{blocks: make(map[string][]string), used: make(map[int]bool)}
		for _, block := range fence.FindAllStringSubmatch(string(text[at[1]:end]), -1) {
			r.blocks[block[1]] = append(r.blocks[block[1]], block[2])
		}
		sections[string(text[at[2]:at[3]])] = r
	}
	for name, r := range sections {
		if tests[name] == nil && len(r.blocks["caddyfile"]) > 0 {
			t.Errorf("%s: the Caddyfile of %q is not run by any test", page, name)
		}
	}
	for name, test := range tests {
		r := sections[name]
		if r == nil {
			t.Errorf("%s has no section %q", page, name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, r)
			if len(r.used) != len(r.blocks["caddyfile"]) {
				t.Errorf("%d of %d Caddyfiles have been run", len(r.used), len(r.blocks["caddyfile"]))
			}
		})
	}
}

// address is a line of a Caddyfile that begins a site.
var address = regexp.MustCompile(`(?m)^[a-z][a-z0-9:/., -]*\{$`)

// prepare returns a Caddyfile of the section with other addresses, directories and
// secrets: old texts, each of which must be there, and the new ones. Sites get the
// test's port and no certificates.
func (r *recipe) prepare(t *testing.T, block int, c *caddy, oldNew ...string) string {
	t.Helper()
	if block >= len(r.blocks["caddyfile"]) {
		t.Fatalf("the section has no Caddyfile %d", block)
	}
	r.used[block] = true
	text := r.blocks["caddyfile"][block]
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			t.Fatalf("the Caddyfile has no %q:\n%s", oldNew[i], text)
		}
	}
	text = strings.NewReplacer(oldNew...).Replace(text)
	text = strings.NewReplacer("/var/lib/caddy/fastcache", c.dir+"/cache", "localhost:2019", fmt.Sprintf("127.0.0.1:%d", c.admin)).Replace(text)
	return address.ReplaceAllStringFunc(text, func(line string) string {
		hosts := strings.Split(strings.TrimSuffix(line, " {"), ", ")
		for i, host := range hosts {
			if host = strings.TrimPrefix(host, "http://"); !strings.Contains(host, ":") {
				hosts[i] = "http://" + host + ":{port}"
			}
		}
		return strings.Join(hosts, ", ") + " {"
	})
}

// start runs Caddy with a Caddyfile of the section.
func (r *recipe) start(t *testing.T, block int, oldNew ...string) *caddy {
	t.Helper()
	c := &caddy{t: t, dir: t.TempDir(), port: freePort(t), admin: freePort(t)}
	c.run(r.prepare(t, block, c, oldNew...))
	t.Cleanup(func() {
		c.stop()
		c.check()
	})
	return c
}

var purgeLine = regexp.MustCompile(`(?m)^\$ curl -X DELETE localhost:2019/fastcache/purge -d '(.*)'\n(.*\n)`)

// purges calls the purges in the section's console blocks, in their order, each
// with a function that makes it.
func (r *recipe) purges(t *testing.T, c *caddy, each func(body string, purge func())) {
	t.Helper()
	n := 0
	for _, block := range r.blocks["console"] {
		for _, m := range purgeLine.FindAllStringSubmatch(block, -1) {
			n++
			each(m[1], func() {
				t.Helper()
				if got := c.api(http.MethodDelete, "/fastcache/purge", m[1]); got.StatusCode != http.StatusOK || got.body != m[2] {
					t.Errorf("purge %s: %d %s, the page says %s", m[1], got.StatusCode, got.body, m[2])
				}
			})
		}
	}
	if n == 0 {
		t.Error("the section shows no purge")
	}
}

const exampleCom = "Host: example.com"

// wantOK fails the test unless the status is 200.
func (r *response) wantOK(t *testing.T) {
	t.Helper()
	if r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// wantTTL fails the test unless Cache-Status gives a ttl above 0 and up to most.
func (r *response) wantTTL(t *testing.T, most time.Duration) *response {
	t.Helper()
	_, rest, _ := strings.Cut(r.cacheStatus(), "; ttl=")
	rest, _, _ = strings.Cut(rest, ";")
	if seconds, err := strconv.Atoi(rest); err != nil || seconds <= 0 || seconds > int(most/time.Second) {
		t.Errorf("Cache-Status %q, want a ttl up to %v", r.cacheStatus(), most)
	}
	return r
}

// php is a FastCGI application that answers as WordPress does: without a word on
// freshness, except where a user is concerned.
type php struct {
	net.Listener
	t *testing.T

	mu   sync.Mutex
	seen []string // "METHOD URI" of each request
}

func newPHP(t *testing.T) *php {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &php{Listener: l, t: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := fcgi.Serve(l, p); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return p
}

func (p *php) log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

func (p *php) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.URL.RequestURI())
	p.mu.Unlock()
	script := path.Base(fcgi.ProcessEnv(r)["SCRIPT_FILENAME"])
	cookie := r.Header.Get("Cookie")
	user := strings.Contains(cookie, "wordpress_logged_in_")
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=UTF-8")
	if user || script != "index.php" {
		h.Set("Cache-Control", "no-cache, must-revalidate, max-age=0, no-store, private")
	}
	switch {
	case r.Method == http.MethodPost && script == "wp-login.php":
		h.Set("Set-Cookie", "wordpress_logged_in_1=admin")
		http.Redirect(w, r, "/wp-admin/", http.StatusFound)
	case r.URL.Path == "/missing/":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "no such page")
	default:
		fmt.Fprintf(w, "%s %s by %s", r.Method, r.URL.RequestURI(), script)
		if cookie != "" {
			fmt.Fprintf(w, " for %s", cookie)
		}
	}
}

func wordPress(t *testing.T, r *recipe) {
	p := newPHP(t)
	root := t.TempDir()
	for _, file := range []string{"index.php", "wp-login.php", "wp-admin/index.php", "wp-comments-post.php"} {
		writeFile(t, filepath.Join(root, path.Dir(file)), path.Base(file), "<?php")
	}
	writeFile(t, filepath.Join(root, "wp-content"), "style.css", "before")
	c := r.start(t, 0, "/srv/wordpress", root, "unix//run/php/php-fpm.sock", p.Addr().String())
	get := func(uri string, fields ...string) *response {
		t.Helper()
		return c.get(uri, append(fields, exampleCom)...)
	}
	post := func(uri string, fields ...string) *response {
		t.Helper()
		return c.send(t.Context(), http.MethodPost, uri, strings.NewReader("a=b"),
			append(fields, exampleCom, "Content-Type: application/x-www-form-urlencoded")...)
	}
	const page, user = "/2026/07/hello/", "Cookie: wordpress_logged_in_1=admin; _ga=1"

	t.Run("pages", func(t *testing.T) {
		pages := []string{page, "/2026/07/other/", "/", "/?s=q", "/?s=p"}
		for round := range 2 {
			for _, uri := range pages {
				got := get(uri).want(t, 200, "GET "+uri+" by index.php").wantTTL(t, 10*time.Minute)
				if got.hit() != (round == 1) {
					t.Errorf("round %d: %s", round, got.cacheStatus())
				}
			}
		}
		get("/missing/").want(t, 404, "no such page").wantTTL(t, time.Minute)
		get("/missing/").want(t, 404, "no such page").wantStatus(t, "fastcache; hit").wantTTL(t, time.Minute)
		if n := len(p.log()); n != len(pages)+1 {
			t.Errorf("PHP was asked %d times: %v", n, p.log())
		}
	})
	t.Run("other cookies", func(t *testing.T) {
		get(page, "Cookie: _ga=1; consent=all").want(t, 200, "GET "+page+" by index.php").wantStatus(t, "fastcache; hit")
		// They do not reach PHP, and what it says to the first is for all.
		get("/consent/", "Cookie: _ga=1").want(t, 200, "GET /consent/ by index.php").wantStatus(t, "fastcache; fwd=uri-miss; stored")
		get("/consent/").want(t, 200, "GET /consent/ by index.php").wantStatus(t, "fastcache; hit")
	})
	t.Run("users", func(t *testing.T) {
		for _, cookie := range []string{
			"wordpress_logged_in_1=admin", "a=b; wordpress_logged_in_1=admin", "wp-postpass_1=x", "comment_author_1=x",
			"wp_woocommerce_session_1=x", "woocommerce_items_in_cart=1", "PHPSESSID=x",
		} {
			for _, uri := range []string{page, "/for-users/" + cookie[:1] + "/"} {
				if got := get(uri, "Cookie: "+cookie).want(t, 200, "GET "+uri+" by index.php for "+cookie); got.cacheStatus() != "" {
					t.Errorf("%s went through the cache: %s", cookie, got.cacheStatus())
				}
				get(uri).want(t, 200, "GET "+uri+" by index.php")
			}
		}
		// The application's own word holds too, if the list forgets a path.
		for range 2 {
			get("/wp-comments-post.php").wantStatus(t, "fastcache; fwd=uri-miss; detail=")
		}
		for _, uri := range []string{"/wp-admin/", "/wp-login.php", "/wp-login.php?redirect_to=x", "/WP-Admin/"} {
			if got := get(uri); got.cacheStatus() != "" {
				t.Errorf("%s went through the cache: %s", uri, got.cacheStatus())
			}
		}
	})
	t.Run("post", func(t *testing.T) {
		for range 2 {
			before := len(p.log())
			post(page).want(t, 200, "POST "+page+" by index.php").wantStatus(t, "fastcache; fwd=method")
			if n := len(p.log()) - before; n != 1 {
				t.Errorf("%d requests for one POST", n)
			}
			get(page).want(t, 200, "GET "+page+" by index.php").wantStatus(t, "fastcache; fwd=uri-miss")
		}
		get("/2026/07/other/").wantStatus(t, "fastcache; hit")
		login := post("/wp-login.php", "Cookie: wordpress_test_cookie=1")
		if login.StatusCode != http.StatusFound || login.Header.Get("Set-Cookie") == "" || login.Header.Get("Location") != "/wp-admin/" {
			t.Errorf("login: %d %v", login.StatusCode, login.Header)
		}
	})
	t.Run("files", func(t *testing.T) {
		get("/wp-content/style.css").want(t, 200, "before")
		writeFile(t, filepath.Join(root, "wp-content"), "style.css", "after")
		if got := get("/wp-content/style.css").want(t, 200, "after"); got.cacheStatus() != "" {
			t.Errorf("a file went through the cache: %s", got.cacheStatus())
		}
	})
	t.Run("campaigns", func(t *testing.T) {
		get("/sale/?utm_source=mail&size=2").want(t, 200, "GET /sale/?size=2 by index.php")
		for _, query := range []string{"size=2", "fbclid=x&size=2", "size=2&gclid=y&utm_medium=z"} {
			get("/sale/?"+query).want(t, 200, "GET /sale/?size=2 by index.php").wantStatus(t, "fastcache; hit")
		}
	})
	t.Run("php is down", func(t *testing.T) { // the last one
		get(page, user).want(t, 200, "GET "+page+" by index.php for "+user[len("Cookie: "):])
		get(page).wantStatus(t, "fastcache; hit")
		c.do("PURGE", page, exampleCom, "Fastcache-Purge: soft").want(t, 200, "{\"purged\":1}\n")
		_ = p.Close()
		get(page).want(t, 200, "GET "+page+" by index.php").wantStatus(t, "fastcache; hit; ttl=")
		if got := get("/not/stored/"); got.StatusCode != http.StatusBadGateway {
			t.Errorf("%d, want 502", got.StatusCode)
		}
	})
}

func apiWithVary(t *testing.T, r *recipe) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "max-age=60")
		switch r.URL.Path {
		case "/silent":
			h.Del("Cache-Control")
		case "/checked":
			h.Set("Cache-Control", "no-cache")
			h.Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		case "/agents":
			h.Set("Vary", "Accept, User-Agent")
		case "/public":
			h.Set("Cache-Control", "public, max-age=60")
		}
		if r.Method != http.MethodGet {
			h.Set("Location", "/items/7")
		}
		if h.Get("Vary") == "" {
			h.Set("Vary", "Accept, Origin")
		}
		if from := r.Header.Get("Origin"); from != "" {
			h.Set("Access-Control-Allow-Origin", from)
		}
		fmt.Fprintf(w, "%s as %s", r.RequestURI, r.Header.Get("Accept"))
	})
	c := r.start(t, 0, "localhost:9000", o.addr())
	const host, json = "Host: api.example.com", "Accept: application/json"
	get := func(uri string, fields ...string) *response {
		t.Helper()
		return c.get(uri, append(fields, host)...)
	}
	hitAtLast := func(t *testing.T, uri string, fields ...string) *response {
		t.Helper()
		get(uri, fields...)
		return get(uri, fields...).wantStatus(t, "fastcache; hit")
	}
	for range 2 {
		get("/silent", json).want(t, 200, "/silent as application/json").wantStatus(t, "fastcache; fwd=uri-miss; detail=ttl-zero")
	}
	get("/checked", json).want(t, 200, "/checked as application/json")
	for range 2 {
		get("/checked", json).want(t, 200, "/checked as application/json").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
	}
	for range 2 {
		get("/items", json).want(t, 200, "/items as application/json")
		get("/items", "Accept: text/xml").want(t, 200, "/items as text/xml")
	}
	get("/items", json).wantStatus(t, "fastcache; hit")
	get("/items", "Accept: text/xml").wantStatus(t, "fastcache; hit")
	for _, from := range []string{"https://one.example", "https://two.example"} {
		if got := hitAtLast(t, "/items", json, "Origin: "+from); got.Header.Get("Access-Control-Allow-Origin") != from {
			t.Errorf("%s may use what says %v", from, got.Header)
		}
	}
	for range 2 {
		get("/agents", json).wantStatus(t, "fastcache; fwd=uri-miss; detail=vary-unlisted")
	}
	for range 2 {
		get("/tokens", json, "Authorization: Bearer a").wantStatus(t, "fastcache; fwd=uri-miss; detail=auth")
	}
	get("/public", json, "Authorization: Bearer a").wantStatus(t, "fastcache; fwd=uri-miss; stored")
	get("/public", json, "Authorization: Bearer b").want(t, 200, "/public as application/json").wantStatus(t, "fastcache; hit")

	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		hitAtLast(t, "/items", json)
		hitAtLast(t, "/items/7", json)
		hitAtLast(t, "/items/8", json)
		c.send(t.Context(), method, "/items", strings.NewReader("{}"), host)
		get("/items", json).wantStatus(t, "fastcache; fwd=uri-miss")
		get("/items/7", json).wantStatus(t, "fastcache; fwd=uri-miss")
		get("/items/8", json).wantStatus(t, "fastcache; hit")
	}
	get("/search?b=2&a=1", json).want(t, 200, "/search?a=1&b=2 as application/json")
	get("/search?a=1&b=2", json).want(t, 200, "/search?a=1&b=2 as application/json").wantStatus(t, "fastcache; hit")
}

func compression(t *testing.T, r *recipe) {
	const zstdMagic = "\x28\xb5\x2f\xfd"
	page := testBody("compression", 20_000)
	// What the origin is asked for: identity; or each of identity, gzip and zstd,
	// and perhaps again for br, which it might have had.
	for block, asked := range []struct{ least, most int }{{1, 1}, {3, 4}} {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("ETag", `"1"`)
			_, _ = io.WriteString(w, page)
		})
		c := r.start(t, block, "localhost:9000", o.addr())
		// In both orders: what one client stored must not reach the other.
		for _, uri := range []string{"/a", "/b"} {
			before := o.asked()
			clients := []struct{ accept, coding string }{
				{"gzip", "gzip"}, {"-", ""}, {"zstd", "zstd"}, {"gzip;q=1, br;q=0.5", "gzip"}, {"gzip;q=0", ""}, {"br", ""},
			}
			if uri == "/b" {
				slices.Reverse(clients)
			}
			for range 2 {
				for _, client := range clients {
					got := c.get(uri, append(acceptEncoding(client.accept), exampleCom)...)
					if coding := got.Header.Get("Content-Encoding"); coding != client.coding {
						t.Errorf("block %d: %q got the coding %q", block, client.accept, coding)
					}
					if vary := strings.Join(got.Header.Values("Vary"), ","); vary != "Accept-Encoding" {
						t.Errorf("block %d: %q got Vary %q", block, client.accept, vary)
					}
					if client.coding == "zstd" {
						if !strings.HasPrefix(got.body, zstdMagic) {
							t.Errorf("block %d: zstd begins with %q", block, got.body[:min(len(got.body), 4)])
						}
					} else if got.decoded(t) != page {
						t.Errorf("block %d: %q got %d other bytes", block, client.accept, len(got.body))
					}
					// Its own validator confirms what the client has.
					c.get(uri, append(acceptEncoding(client.accept), exampleCom, "If-None-Match: "+got.Header.Get("ETag"))...).want(t, 304, "")
				}
			}
			n := o.asked() - before
			if n < asked.least || n > asked.most {
				t.Errorf("block %d: the origin was asked %d times", block, n)
			}
			if stored := c.keys(""); !slices.Contains(stored, "http://example.com"+uri) {
				t.Errorf("block %d: stored is %q", block, stored)
			}
			c.do("PURGE", uri, exampleCom).want(t, 200, fmt.Sprintf("{\"purged\":%d}\n", n))
		}
	}
}

// behindPassword uses hashes that are quick to check.
func behindPassword(t *testing.T, r *recipe) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/members/news" {
			w.Header().Set("Cache-Control", "private")
			w.Header().Set("Fastcache-Cache-Control", "max-age=600")
		}
		fmt.Fprintf(w, "%s %q", r.URL.Path, r.Header.Get("Authorization"))
	})
	hash := func(password string) string {
		return strings.TrimSpace(string(runCaddy(t, "hash-password", "--algorithm", "bcrypt", "--bcrypt-cost", "4", "--plaintext", password)))
	}
	c := r.start(t, 0, "localhost:9000", o.addr(), "{$ALICE_HASH}", hash("a-secret"), "{$BOB_HASH}", hash("b-secret"))
	login := func(user, password string) string {
		req := &http.Request{Header: make(http.Header)}
		req.SetBasicAuth(user, password)
		return "Authorization: " + req.Header.Get("Authorization")
	}
	alice, bob := login("alice", "a-secret"), login("bob", "b-secret")

	c.get("/open", exampleCom).want(t, 200, `/open ""`)
	c.get("/open", exampleCom).wantStatus(t, "fastcache; hit")
	const page = "/members/page"
	c.get(page, exampleCom, alice).want(t, 200, page+` ""`).wantStatus(t, "fastcache; fwd=uri-miss; stored")
	c.get(page, exampleCom, bob).want(t, 200, page+` ""`).wantStatus(t, "fastcache; hit")
	for _, strange := range [][]string{
		{exampleCom},
		{exampleCom, login("alice", "b-secret")},
		{exampleCom, login("mallory", "a-secret")},
		{exampleCom, "Authorization: Bearer a-secret"},
	} {
		for _, uri := range []string{page, "/members/page?", "//members/page", "/Members/page", "/members/./page", "/x/../members/page", "/%6dembers/page"} {
			if got := c.get(uri, strange...); got.StatusCode != http.StatusUnauthorized || strings.Contains(got.body, "page") {
				t.Errorf("%s with %q: %d %q", uri, strange, got.StatusCode, got.body)
			}
		}
		if got := c.do("PURGE", page, strange...); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("PURGE: %d", got.StatusCode)
		}
	}
	c.get(page, exampleCom, alice).wantStatus(t, "fastcache; hit")

	news := c.get("/members/news", exampleCom, alice).want(t, 200, `/members/news ""`)
	if h := news.Header; h.Get("Cache-Control") != "private" || h.Get("Fastcache-Cache-Control") != "" {
		t.Errorf("the member gets %v", h)
	}
	c.get("/members/news", exampleCom, bob).wantStatus(t, "fastcache; hit").wantTTL(t, 10*time.Minute)
	c.do("PURGE", page, exampleCom, bob).want(t, 200, "{\"purged\":1}\n")
}

func largeFiles(t *testing.T, r *recipe) {
	const size = 32 << 20
	film := testBody("film", size)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"take-1"`)
		w.Header().Set("Content-Type", "video/mp4")
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(film))
	})
	c := r.start(t, 0, "localhost:9000", o.addr())
	get := func(fields ...string) *response {
		t.Helper()
		return c.get("/film.mp4", append(fields, "Host: video.example.com")...)
	}
	const seek = "Range: bytes=30000000-30000999"
	part := film[30_000_000:30_001_000]

	for range 2 {
		get("Range: bytes=0-").want(t, 206, film).wantStatus(t, "fastcache; fwd=uri-miss; detail=partial")
	}
	get(seek).want(t, 206, part).wantStatus(t, "fastcache; fwd=uri-miss; detail=partial")
	get().want(t, 200, film).wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=604800") // as curl does
	asked := o.asked()
	for _, want := range []struct {
		field, contentRange, body string
		status                    int
	}{
		{"Range: bytes=0-", "bytes 0-33554431/33554432", film, 206},
		{seek, "bytes 30000000-30000999/33554432", part, 206},
		{"Range: bytes=-1000", "bytes 33553432-33554431/33554432", film[size-1000:], 206},
		{"Range: bytes=0-1", "bytes 0-1/33554432", film[:2], 206},
		{"Range: bytes=33554432-", "bytes */33554432", "", 416},
	} {
		got := get(want.field)
		if want.status == 206 {
			got.want(t, 206, want.body).wantStatus(t, "fastcache; hit")
		}
		if got.StatusCode != want.status || got.Header.Get("Content-Range") != want.contentRange {
			t.Errorf("%s: %d %q", want.field, got.StatusCode, got.Header.Get("Content-Range"))
		}
	}
	get(seek, `If-Range: "take-1"`).want(t, 206, part).wantStatus(t, "fastcache; hit")
	get(seek, `If-Range: "take-0"`).want(t, 200, film).wantStatus(t, "fastcache; hit")
	several := get("Range: bytes=0-9,100-109")
	if several.StatusCode != 206 || !strings.HasPrefix(several.Header.Get("Content-Type"), "multipart/byteranges") ||
		!strings.Contains(several.body, film[:10]) || !strings.Contains(several.body, film[100:110]) {
		t.Errorf("two ranges: %d %v %.200q", several.StatusCode, several.Header, several.body)
	}
	if n := o.asked() - asked; n != 0 {
		t.Errorf("the origin was asked %d times for what is stored", n)
	}
	c.do("PURGE", "/film.mp4", "Host: video.example.com", "Fastcache-Purge: soft").want(t, 200, "{\"purged\":1}\n")
	get(seek).want(t, 206, part).wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
	get(seek).want(t, 206, part).wantStatus(t, "fastcache; hit")
}

func severalSites(t *testing.T, r *recipe) {
	reply := func(name string) *origin {
		return newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			fmt.Fprintf(w, "%s: %s%s", name, r.Host, r.RequestURI)
		})
	}
	blog, assets, shop := reply("blog"), reply("assets"), reply("shop")
	c := &caddy{t: t, dir: t.TempDir(), port: freePort(t), admin: freePort(t)}
	config := r.prepare(t, 0, c, "localhost:9001", blog.addr(), "localhost:9002", assets.addr(), "localhost:9003", shop.addr())
	c.run(config)
	t.Cleanup(func() {
		c.stop()
		c.check()
	})
	requests := []struct{ host, uri, from string }{
		{"blog.example.com", "/", "blog"},
		{"blog.example.org", "/", "blog"},
		{"shop.example.com", "/", "shop"},
		{"shop.example.com", "/assets/a.png", "assets"},
	}
	all := func(begin string) {
		t.Helper()
		for _, q := range requests {
			c.get(q.uri, "Host: "+q.host).want(t, 200, q.from+": "+q.host+q.uri).wantStatus(t, begin)
		}
	}
	all("fastcache; fwd=uri-miss; stored")
	all("fastcache; hit")
	for _, name := range []string{"blog", "assets", "shop"} {
		if entries, err := os.ReadDir(filepath.Join(c.dir, "cache", name)); (len(entries) > 0) != (name != "shop") {
			t.Errorf("the directory of %s holds %d files and directories: %v", name, len(entries), err)
		}
	}
	metrics := c.api(http.MethodGet, "/metrics", "").body
	for name, hits := range map[string]int{"blog": 2, "assets": 1, "shop": 1} {
		if line := fmt.Sprintf("fastcache_requests_total{name=%q,result=\"hit\"} %d\n", name, hits); !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no line %s", line)
		}
	}
	if err := c.reload(config + "\n# changed\n"); err != nil {
		t.Fatal(err)
	}
	all("fastcache; hit")
	r.purges(t, c, func(_ string, purge func()) { purge() })
	for _, q := range requests {
		if got := c.get(q.uri, "Host: "+q.host); got.hit() != (q.from != "blog") {
			t.Errorf("after the purge of blog %s%s: %s", q.host, q.uri, got.cacheStatus())
		}
	}
	c.stop()
	c.run(config)
	c.known()
	for _, q := range requests {
		if got := c.get(q.uri, "Host: "+q.host); got.hit() != (q.from != "shop") {
			t.Errorf("after a restart %s%s: %s", q.host, q.uri, got.cacheStatus())
		}
	}
}

func purgeOnPublish(t *testing.T, r *recipe) {
	var fields [][2]string // that the application sends, as the page has them
	for line := range strings.Lines(strings.Join(r.blocks["http"], "")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		fields = append(fields, [2]string{name, value})
	}
	if len(fields) != 4 {
		t.Fatalf("the page shows the fields %q", fields)
	}
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		for _, f := range fields {
			w.Header().Set(f[0], f[1])
		}
		if r.URL.Path == "/other" { // another post by the same author
			w.Header().Set("Cache-Tag", "post-8, author-3")
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	second := freePort(t)
	c := r.start(t, 0, "localhost:9000", o.addr(), "http://:2020", fmt.Sprintf("http://:%d", second))
	pages := []string{"/post", "/list", "/other"}
	for _, uri := range pages {
		c.get(uri, exampleCom)
		got := c.get(uri, exampleCom).want(t, 200, uri).wantStatus(t, "fastcache; hit").wantTTL(t, 24*time.Hour)
		if tags := got.Header.Values("Cache-Tag"); len(tags) > 0 || got.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("the visitor gets Cache-Tag %q and Cache-Control %q", tags, got.Header.Get("Cache-Control"))
		}
		c.get(uri, exampleCom, "If-None-Match: "+got.Header.Get("ETag")).want(t, 304, "").wantStatus(t, "fastcache; hit")
	}
	o.wantAsked(t, 3)

	r.purges(t, c, func(body string, purge func()) {
		switch body {
		case `{"tag": "post-7"}`:
			purge()
			c.get("/other", exampleCom).wantStatus(t, "fastcache; hit")
			c.get("/list", exampleCom).wantStatus(t, "fastcache; fwd=uri-miss")
			c.do("PURGE", "/list", exampleCom) // one of the author's is left
		case `{"tag": "author-3", "soft": true}`:
			before := o.asked()
			purge()
			// Nobody waits: the old page is served, and made anew meanwhile.
			c.get("/other", exampleCom).want(t, 200, "/other").wantStatus(t, "fastcache; hit; ttl=0")
			eventually(t, "the page is fresh again", func() bool {
				return o.asked() == before+1 && !strings.HasPrefix(c.get("/other", exampleCom).cacheStatus(), "fastcache; hit; ttl=0")
			})
		default:
			t.Errorf("the page shows the purge %s, which nothing checks", body)
		}
	})
	for uri := range slices.Values(pages) {
		c.get(uri, exampleCom)
	}
	c.purge(`{"url": "https://example.com/post"}`, 1)
	c.purge(`{"prefix": "https://example.com/l"}`, 1)

	// The second site: purges from another machine, and nothing else.
	forwarded := &caddy{t: t, port: second}
	call := func(method, uri, body string) *response {
		return forwarded.send(t.Context(), method, uri, strings.NewReader(body), "Host: cache.internal:2020")
	}
	call(http.MethodDelete, "/fastcache/purge", `{"tag": "author-3"}`).want(t, 200, "{\"purged\":1}\n")
	for _, uri := range []string{"/", "/config/", "/load", "/stop", "/fastcache/keys", "/fastcache/purge/../../config/"} {
		if got := call(http.MethodGet, uri, ""); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %.80q", uri, got.StatusCode, got.body)
		}
	}
}

func behindLoadBalancer(t *testing.T, r *recipe) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("CDN-Cache-Control", "max-age=600")
		w.Header().Set("Fastcache-Cache-Control", "max-age=60")
		proto, host := r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host")
		if proto != "https" {
			http.Redirect(w, r, "https://"+host+r.RequestURI, http.StatusMovedPermanently)
			return
		}
		_, _ = io.WriteString(w, host+r.RequestURI)
	})
	const secure = "X-Forwarded-Proto: https"
	t.Run("trusted", func(t *testing.T) {
		c := r.start(t, 0, "10.0.0.0/8", "127.0.0.0/8", "10.0.0.7", "127.0.0.2", "localhost:9000", o.addr())
		for round := range 2 {
			plain := c.get("/a", exampleCom)
			if plain.StatusCode != http.StatusMovedPermanently || plain.Header.Get("Location") != "https://example.com/a" {
				t.Errorf("http: %d to %q", plain.StatusCode, plain.Header.Get("Location"))
			}
			page := c.get("/a", exampleCom, secure).want(t, 200, "example.com/a").wantTTL(t, time.Minute)
			other := c.get("/a", exampleCom, secure, "X-Forwarded-Host: other.example").want(t, 200, "other.example/a")
			for _, got := range []*response{plain, page, other} {
				if got.hit() != (round == 1) {
					t.Errorf("round %d: %s", round, got.cacheStatus())
				}
				if h := got.Header; h.Get("CDN-Cache-Control") != "max-age=600" || h.Get("Fastcache-Cache-Control") != "" {
					t.Errorf("the CDN gets %v", h)
				}
			}
		}
		// The proxy is the peer here, whatever it says of its client.
		if got := c.do("PURGE", "/a", exampleCom, secure, "X-Forwarded-For: 127.0.0.2"); got.StatusCode != http.StatusForbidden {
			t.Errorf("PURGE by way of the proxy: %d", got.StatusCode)
		}
	})
	t.Run("strangers", func(t *testing.T) {
		c := r.start(t, 0, "10.0.0.7", "127.0.0.1", "localhost:9000", o.addr())
		for range 2 {
			got := c.get("/b", exampleCom, secure, "X-Forwarded-Host: other.example")
			if got.StatusCode != http.StatusMovedPermanently || got.Header.Get("Location") != "https://example.com/b" {
				t.Errorf("%d to %q", got.StatusCode, got.Header.Get("Location"))
			}
		}
		c.get("/b", exampleCom).wantStatus(t, "fastcache; hit")
		c.do("PURGE", "/b", exampleCom).want(t, 200, "{\"purged\":1}\n")
	})
}

func severalMachines(t *testing.T, r *recipe) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Age", "20") // it has been under way for a while
		_, _ = io.WriteString(w, r.Host+r.RequestURI)
	})
	backs := [2]int{freePort(t), freePort(t)}
	var machines [2]*caddy
	for i := range machines {
		machines[i] = r.start(t, 0,
			"cache-1.internal:8081", fmt.Sprintf("127.0.0.1:%d", backs[0]), "cache-2.internal:8081", fmt.Sprintf("127.0.0.1:%d", backs[1]),
			"http://:8081", fmt.Sprintf("http://:%d", backs[i]), "localhost:9000", o.addr())
	}
	page := func(i int) string { return fmt.Sprintf("/news/%d", i) }
	const pages = 20
	ask := func(machine *caddy, uri string) *response {
		t.Helper()
		return machine.get(uri, exampleCom).want(t, 200, "example.com"+uri).wantTTL(t, 40*time.Second)
	}
	for range 2 {
		for i := range pages {
			for _, m := range machines {
				ask(m, page(i))
			}
		}
	}
	o.wantAsked(t, pages)
	held := [2]int{}
	for i, m := range machines {
		held[i] = len(m.keys("?name=back"))
		if n := len(m.keys("?name=front")); n != pages {
			t.Errorf("machine %d has %d pages in memory", i, n)
		}
		for p := range pages {
			// The last member is of the cache next to the client (RFC 9211 section 2).
			all := strings.Split(strings.Join(ask(m, page(p)).Header.Values("Cache-Status"), ", "), ", ")
			if !strings.HasPrefix(all[len(all)-1], "fastcache; hit; ttl=") || len(all) != 2 {
				t.Errorf("%s: %q", page(p), all)
			}
		}
	}
	if held[0]+held[1] != pages || held[0] == 0 || held[1] == 0 {
		t.Errorf("the machines hold %d of %d pages on disk", held, pages)
	}

	t.Run("purge", func(t *testing.T) {
		// One page is left, on the disk of one machine and in the memory of both:
		// then the numbers are those of the page.
		holder := machines[0]
		if len(holder.keys("?name=back&pattern=/news/0$")) == 0 {
			holder = machines[1]
		}
		for _, m := range machines {
			m.api(http.MethodDelete, "/fastcache/purge", `{"pattern": "/news/([^0]|..)"}`).wantOK(t)
		}
		o.wantAsked(t, pages)
		r.purges(t, holder, func(body string, purge func()) {
			purge()
			for _, m := range machines {
				if m != holder {
					m.api(http.MethodDelete, "/fastcache/purge", body).wantOK(t)
				}
			}
		})
		for i, m := range machines {
			if left := m.keys(""); len(left) > 0 {
				t.Errorf("machine %d still has %q", i, left)
			}
		}
	})
	t.Run("a machine is gone", func(t *testing.T) { // the last one
		machines[1].stop()
		for i := range pages {
			ask(machines[0], page(i))
		}
		o.wantAsked(t, 2*pages)
	})
}
