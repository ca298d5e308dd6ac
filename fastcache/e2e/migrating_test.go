package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMigrating runs every Caddyfile of docs/migrating-to-fastcache.md and checks
// what the text around it claims of fastcache. Those of other modules have another
// word behind their fence.
func TestMigrating(t *testing.T) {
	t.Parallel()
	runPage(t, "migrating-to-fastcache.md", map[string]func(*testing.T, *recipe){
		"From nginx":                 fromNginx,
		"From cache-handler (Souin)": fromSouin,
	})
}

// migrated is an origin that answers as the query says: cc is Cache-Control, and
// version a change of the page, which has its ETag.
func migrated(t *testing.T) *origin {
	return newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		h, q := w.Header(), r.URL.Query()
		if cc := q.Get("cc"); cc != "" {
			h.Set("Cache-Control", cc)
		}
		if vary := q.Get("vary"); vary != "" {
			h.Set("Vary", vary)
		}
		if modified, err := time.ParseDuration(q.Get("modified")); err == nil {
			h.Set("Last-Modified", time.Now().Add(-modified).UTC().Format(http.TimeFormat))
		}
		if etag := q.Get("etag"); etag != "" {
			h.Set("ETag", `"`+etag+`"`)
			if r.Header.Get("If-None-Match") == `"`+etag+`"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		for _, field := range []string{"Set-Cookie", "Surrogate-Key", "Cache-Tag", "Fastcache-Cache-Control"} {
			if v := q.Get(field); v != "" {
				h.Set(field, v)
			}
		}
		status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/status/"))
		if err != nil {
			status = http.StatusOK
		}
		if r.Header.Get("Range") == "bytes=0-1" && r.Method == http.MethodGet {
			h.Set("Content-Range", "bytes 0-1/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "ab")
			return
		}
		if n, err := strconv.Atoi(q.Get("size")); err == nil {
			h.Set("Content-Length", strconv.Itoa(n))
			_, _ = io.WriteString(w, testBody("size", n))
			return
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s %s", r.Method, r.RequestURI)
	})
}

func fromNginx(t *testing.T, r *recipe) {
	t.Run("nginx takes its configuration", func(t *testing.T) { nginxTakes(t, r.blocks["nginx"]) })

	o := migrated(t)
	c := r.start(t, 0, "localhost:9000", o.addr())
	get := func(uri string, fields ...string) *response {
		t.Helper()
		return c.get(uri, append(fields, exampleCom)...)
	}
	soft := func(uri string) {
		t.Helper()
		c.do("PURGE", uri, exampleCom, "Fastcache-Purge: soft").want(t, 200, "{\"purged\":1}\n")
	}

	t.Run("words", func(t *testing.T) {
		const checked, standIn = "/?etag=1&cc=max-age=60,must-revalidate", "/status/200?cc=max-age=60,stale-while-revalidate=0"
		seen := map[string][]string{
			"MISS":   {get("/").cacheStatus(), get("/?cc=max-age=60&Set-Cookie=a").cacheStatus()},
			"HIT":    {get("/").cacheStatus()},
			"BYPASS": {get("/", "Cookie: a=b; session=x").cacheStatus()},
		}
		get("/?vary=X")
		seen["`MISS`, of another variant"] = []string{get("/?vary=X", "X: 1").cacheStatus()}
		get(checked)
		soft(checked)
		seen["REVALIDATED"] = []string{get(checked).cacheStatus()}
		const changed = "/?cc=max-age=60,must-revalidate"
		get(changed)
		soft(changed)
		seen["EXPIRED"] = []string{get(changed).cacheStatus()}
		soft("/")
		seen["UPDATING"] = []string{get("/").cacheStatus()}
		get(standIn)
		soft(standIn)

		// Nobody listens any more at the address of an origin that has gone.
		gone := migrated(t)
		c2 := r.start(t, 0, "localhost:9000", gone.addr())
		c2.get(standIn, exampleCom).want(t, 200, "GET "+standIn)
		c2.do("PURGE", standIn, exampleCom, "Fastcache-Purge: soft").want(t, 200, "{\"purged\":1}\n")
		gone.CloseClientConnections()
		gone.Close()
		seen["STALE"] = []string{c2.get(standIn, exampleCom).want(t, 200, "GET "+standIn).cacheStatus()}

		wantWords(t, seen)
		for name, above := range map[string]bool{"HIT": true, "UPDATING": false} {
			_, ttl, _ := strings.Cut(seen[name][0], "; ttl=")
			if n, err := strconv.Atoi(ttl); err != nil || n > 0 != above {
				t.Errorf("%s: %s", name, seen[name][0])
			}
		}
	})
	t.Run("times", func(t *testing.T) {
		get("/status/301").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=600")
		get("/status/302").wantStatus(t, "fastcache; fwd=uri-miss; detail=status")
		get("/status/404").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=60")
		get("/status/404?cc=max-age=600").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=60")
		get("/status/410").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=600")
		get("/?cc=max-age=7").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=7")
		get("/?modified=10000s").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=1000")
	})
	t.Run("differences", func(t *testing.T) {
		get("/cookies", "Cookie: _ga=1").wantStatus(t, "fastcache; fwd=uri-miss; detail=cookie")
		get("/cookies?cc=s-maxage=60", "Cookie: _ga=1").wantStatus(t, "fastcache; fwd=uri-miss; stored")
		get("/cookies?cc=s-maxage=60", "Cookie: _ga=2").wantStatus(t, "fastcache; hit")
		get("/auth?cc=max-age=60", "Authorization: Basic eA==").wantStatus(t, "fastcache; fwd=uri-miss; detail=auth")
		get("/auth?cc=s-maxage=60", "Authorization: Basic eA==").wantStatus(t, "fastcache; fwd=uri-miss; stored")

		get("/post")
		get("/post").wantStatus(t, "fastcache; hit")
		c.send(t.Context(), http.MethodPost, "/post", strings.NewReader("x"), exampleCom)
		get("/post").wantStatus(t, "fastcache; fwd=uri-miss")

		get("/part", "Range: bytes=0-1").want(t, 206, "ab").wantStatus(t, "fastcache; fwd=uri-miss; detail=partial")
		get("/part").want(t, 200, "GET /part").wantStatus(t, "fastcache; fwd=uri-miss; stored")

		get("/checked?etag=1&cc=no-cache").wantStatus(t, "fastcache; fwd=uri-miss; stored")
		get("/checked?etag=1&cc=no-cache").want(t, 200, "GET /checked?etag=1&cc=no-cache").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")

		c.do(http.MethodHead, "/head", exampleCom).wantStatus(t, "fastcache; fwd=uri-miss")
		if log := o.log(); log[len(log)-1] != "HEAD /head" {
			t.Errorf("the origin was asked %s", log[len(log)-1])
		}
		get("/head").wantStatus(t, "fastcache; fwd=uri-miss; stored")
		c.do(http.MethodHead, "/head", exampleCom).want(t, 200, "").wantStatus(t, "fastcache; hit")

		get("/coding?vary=Accept-Encoding", "Accept-Encoding: gzip, br")
		get("/coding?vary=Accept-Encoding", "Accept-Encoding: br;q=1.0,GZIP").wantStatus(t, "fastcache; hit")
	})
	t.Run("corrected", func(t *testing.T) {
		o := migrated(t)
		c := r.start(t, 1, "localhost:9000", o.addr())
		const uri = "/?cc=no-store&Set-Cookie=a&vary=User-Agent"
		c.get(uri, exampleCom, "User-Agent: one").wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=600")
		got := c.get(uri, exampleCom, "User-Agent: two").want(t, 200, "GET "+uri).wantStatus(t, "fastcache; hit")
		if h := got.Header; h.Get("Cache-Control") != "no-store" || h.Get("Set-Cookie") != "" || h.Get("Vary") != "" {
			t.Errorf("browsers get %v", h)
		}
		own := c.get("/?Fastcache-Cache-Control=max-age=5", exampleCom).wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=5")
		if v := own.Header.Get("Fastcache-Cache-Control"); v != "" {
			t.Errorf("browsers get Fastcache-Cache-Control %q", v)
		}
	})
}

var (
	wordRow = regexp.MustCompile("(?m)^\\| (`[A-Z]+`.*?) \\| (.*) \\|$")
	quoted  = regexp.MustCompile("`([^`]*)`")
)

// wantWords compares what Cache-Status has said, by nginx's word for the case, with
// the page's table: each begins with the first word of its row, and has the others
// somewhere.
func wantWords(t *testing.T, seen map[string][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "migrating-to-fastcache.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- words")
	rest, _, _ = strings.Cut(rest, "\n\n")
	rows := wordRow.FindAllStringSubmatch(rest, -1)
	if len(rows) != len(seen) {
		t.Errorf("the table has %d rows, %d cases have been tried", len(rows), len(seen))
	}
	for _, row := range rows {
		name := row[1]
		if m := quoted.FindStringSubmatch(name); m[0] == name {
			name = m[1]
		}
		statuses := seen[name]
		if statuses == nil {
			t.Errorf("%s has not been tried", name)
			continue
		}
		words := quoted.FindAllStringSubmatch(row[2], -1)
		for i, word := range words {
			for _, status := range statuses {
				if i == 0 && !strings.HasPrefix(status, "fastcache; "+word[1]) {
					t.Errorf("%s: Cache-Status is %q, the page says %s", name, status, word[1])
				}
			}
			if !strings.Contains(strings.Join(statuses, " "), word[1]) {
				t.Errorf("%s: Cache-Status is %q, the page says %s", name, statuses, word[1])
			}
		}
		if len(words) == 0 && strings.Join(statuses, "") != "" {
			t.Errorf("%s: Cache-Status is %q, the page says that there is none", name, statuses)
		}
	}
}

// nginxTakes lets nginx check the page's configuration, if there is an nginx.
func nginxTakes(t *testing.T, blocks []string) {
	if len(blocks) != 1 {
		t.Fatalf("the section has %d configurations of nginx", len(blocks))
	}
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed: its configuration in the page is not checked")
	}
	dir := t.TempDir()
	var temp strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	text := strings.NewReplacer("/var/cache/nginx", dir, "listen 80;", fmt.Sprintf("listen 127.0.0.1:%d;", freePort(t))).Replace(blocks[0])
	writeFile(t, dir, "nginx.conf", fmt.Sprintf("pid %s/pid;\nerror_log %s/log;\nevents {}\nhttp {\naccess_log off;\n%s%s}\n", dir, dir, temp.String(), text))
	out, err := exec.CommandContext(t.Context(), nginx, "-t", "-p", dir, "-c", filepath.Join(dir, "nginx.conf")).CombinedOutput()
	if err != nil {
		t.Errorf("nginx -t: %v\n%s", err, out)
	}
}

func fromSouin(t *testing.T, r *recipe) {
	if len(r.blocks["caddyfile souin"]) != 1 {
		t.Error("the section does not show what is migrated from")
	}
	o := migrated(t)
	c := r.start(t, 0, "localhost:9000", o.addr())
	get := func(uri string, fields ...string) *response {
		t.Helper()
		return c.get(uri, append(fields, exampleCom)...)
	}
	for range 2 {
		get("/silent").wantStatus(t, "fastcache; fwd=uri-miss; detail=ttl-zero")
		get("/cookie?cc=max-age=60&Set-Cookie=a").wantStatus(t, "fastcache; fwd=uri-miss; detail=set-cookie")
		get("/big?cc=max-age=60&size=10000001").wantStatus(t, "fastcache; fwd=uri-miss; detail=too-big")
		if got := get("/admin/users?cc=max-age=60"); got.cacheStatus() != "" {
			t.Errorf("/admin goes through the cache: %s", got.cacheStatus())
		}
	}
	get("/big?cc=max-age=60&size=10000000").wantStatus(t, "fastcache; fwd=uri-miss; stored")
	const page = "/page?cc=max-age=60&etag=1"
	get(page).wantStatus(t, "fastcache; fwd=uri-miss; stored")
	get(page).wantStatus(t, "fastcache; hit; ttl=")
	get(page, "Cache-Control: no-cache").wantStatus(t, "fastcache; fwd=request; fwd-status=304")
	get("/status/418?cc=max-age=60").wantStatus(t, "fastcache; fwd=uri-miss; stored")

	t.Run("purges", func(t *testing.T) {
		c.purge(`{"all": true}`, 3)
		tagged := func() {
			t.Helper()
			for _, q := range []string{"Surrogate-Key=a%20b", "Cache-Tag=a,%20b", "Surrogate-Key=c"} {
				get("/tagged?cc=max-age=60&" + q)
			}
		}
		tagged()
		c.purge(`{"tags": ["a", "b"]}`, 2)
		tagged()
		c.purge(`{"tag": "b"}`, 2)
		tagged()
		c.purge(`{"pattern": "^http://example\\.com/tagged\\?"}`, 3)
		get("/a?cc=max-age=60")
		if keys := c.keys(""); len(keys) != 1 || keys[0] != "http://example.com/a?cc=max-age=60" {
			t.Errorf("keys %q", keys)
		}
	})
	t.Run("default_cache_control", func(t *testing.T) {
		o := migrated(t)
		c := r.start(t, 0, "fastcache @cached {", "route {\n\tfastcache @cached {",
			"reverse_proxy localhost:9000", "header ?Cache-Control \"max-age=60\"\n\treverse_proxy "+o.addr()+"\n\t}")
		c.get("/silent", exampleCom).wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=60")
		c.get("/?cc=max-age=5", exampleCom).wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=5")
		c.get("/status/500", exampleCom).wantStatus(t, "fastcache; fwd=uri-miss; stored; ttl=60")
	})
}
