package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// A soft purge makes a response stale and nothing else: the windows of RFC 5861
// apply, a 304 makes it good again.
func TestSoftPurge(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Cache-Control", r.URL.Query().Get("cc"))
		if tag := r.URL.Query().Get("etag"); tag != "" {
			w.Header().Set("Etag", `"`+tag+`"`)
			if r.Header.Get("If-None-Match") == `"`+tag+`"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		_, _ = io.WriteString(w, "body")
	})
	c := start(t, site(o))
	const hit = "fastcache; hit; ttl=6"
	soft := func(t *testing.T, uri string, n int) {
		t.Helper()
		status := 200
		if n == 0 {
			status = 404
		}
		c.do("PURGE", uri, "Fastcache-Purge: soft").want(t, status, fmt.Sprintf("{\"purged\":%d}\n", n))
	}
	t.Run("without windows and validator: fetched anew", func(t *testing.T) {
		const uri = "/plain?cc=max-age=60"
		soft(t, uri, 0)
		c.get(uri).want(t, 200, "body")
		soft(t, uri, 1)
		soft(t, uri, 1)
		c.get(uri).want(t, 200, "body").wantStatus(t, "fastcache; fwd=stale; fwd-status=200; stored; ttl=60")
		c.get(uri).wantStatus(t, hit)
	})
	t.Run("with a validator: a 304 revives it", func(t *testing.T) {
		const uri = "/valid?cc=max-age=60&etag=1"
		c.get(uri)
		soft(t, uri, 1)
		c.get(uri).want(t, 200, "body").wantStatus(t, "fastcache; fwd=stale; fwd-status=304; ttl=60")
		c.get(uri).wantStatus(t, hit)
	})
	t.Run("stale-while-revalidate: served at once, refreshed once", func(t *testing.T) {
		for _, etag := range []string{"", "&etag=1"} {
			uri := "/swr?cc=max-age=60,stale-while-revalidate=30" + etag
			c.get(uri)
			soft(t, uri, 1)
			before := o.asked()
			c.get(uri).want(t, 200, "body").wantStatus(t, "fastcache; hit; ttl=0")
			eventually(t, "it is fresh again", func() bool { return strings.HasPrefix(c.get(uri).cacheStatus(), hit) })
			o.wantAsked(t, before+1)
		}
	})
	t.Run("stale-if-error: when the origin is down", func(t *testing.T) {
		const uri = "/sie?cc=max-age=60,stale-if-error=30"
		const strict = "/strict?cc=max-age=60,stale-if-error=30,must-revalidate"
		const bare = "/bare?cc=max-age=60"
		for _, u := range []string{uri, strict, bare} {
			c.get(u)
			soft(t, u, 1)
		}
		down.Store(true)
		c.get(uri).want(t, 200, "body").wantStatus(t, "fastcache; fwd=stale; fwd-status=503; ttl=0; detail=stale-error")
		c.get(strict).want(t, 503, "")
		c.get(bare).want(t, 503, "")
		down.Store(false)
		c.get(uri).want(t, 200, "body").wantStatus(t, "fastcache; fwd=stale; fwd-status=200; stored")
		c.get(uri).wantStatus(t, hit)
		c.get(bare).want(t, 200, "body").wantStatus(t, "fastcache; fwd=stale; fwd-status=200; stored")
	})
	t.Run("must-revalidate: never stale", func(t *testing.T) {
		const uri = "/must?cc=max-age=60,stale-while-revalidate=30,must-revalidate&etag=1"
		c.get(uri)
		soft(t, uri, 1)
		c.get(uri).wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
	})
	t.Run("hard after soft", func(t *testing.T) {
		const uri = "/both?cc=max-age=60,stale-while-revalidate=30&etag=1"
		c.get(uri)
		soft(t, uri, 1)
		c.do("PURGE", uri, "Fastcache-Purge: HARD").want(t, 200, "{\"purged\":1}\n")
		c.get(uri).wantStatus(t, "fastcache; fwd=uri-miss; stored")
		soft(t, uri, 1)
		c.do("PURGE", uri).want(t, 200, "{\"purged\":1}\n")
		soft(t, uri, 0)
	})
	t.Run("unknown words are refused", func(t *testing.T) {
		const uri = "/words?cc=max-age=60"
		c.get(uri)
		for _, word := range []string{"sotf", "soft, hard", "1", ""} {
			r := c.do("PURGE", uri, "Fastcache-Purge: "+word)
			if r.StatusCode != http.StatusBadRequest || !strings.Contains(r.body, "hard or soft") {
				t.Errorf("%q: %d %q", word, r.StatusCode, r.body)
			}
		}
		c.get(uri).wantStatus(t, hit)
	})
	t.Run("in RAM only", func(t *testing.T) {
		c := start(t, site(o, "disk_size 0"))
		const uri = "/ram?cc=max-age=60&etag=1"
		c.get(uri)
		c.do("PURGE", uri, "Fastcache-Purge: soft").want(t, 200, "{\"purged\":1}\n")
		c.get(uri).wantStatus(t, "fastcache; fwd=stale; fwd-status=304; ttl=60")
		c.get(uri).wantStatus(t, hit)
	})
}

// Whatever purges, hard or soft: what is in flight is delivered, not stored. That
// holds before the origin has sent a header, when nobody knows the tags yet, and
// after.
func TestPurge_InFlight(t *testing.T) {
	t.Parallel()
	var release atomic.Pointer[chan struct{}]
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Cache-Group-Invalidation", r.URL.Query().Get("group"))
			return
		}
		if strings.Contains(r.URL.Path, "early") {
			<-*release.Load()
		}
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Cache-Tag", "tag")
		w.Header().Set("Cache-Groups", `"group"`)
		if strings.Contains(r.URL.Path, "late") {
			_, _ = io.WriteString(w, "begun ")
			_ = http.NewResponseController(w).Flush()
			<-*release.Load()
		}
		_, _ = io.WriteString(w, "done")
	})
	c := start(t, site(o))
	api := func(body string) func(string) {
		return func(path string) {
			for _, soft := range []bool{false, true} {
				if soft != strings.Contains(path, "soft") {
					continue
				}
				c.purge(fmt.Sprintf(`{%s, "soft": %v}`, strings.ReplaceAll(body, "PATH", path), soft), 0)
			}
		}
	}
	purges := map[string]func(path string){
		"url":     api(`"url": "https://host:99PATH"`),
		"prefix":  api(`"prefix": "http://hostPATH"`),
		"pattern": api(`"pattern": "^http://hostPATH$"`),
		"tag":     api(`"tag": "tag"`),
		"tags":    api(`"tags": ["other", "tag"]`),
		"groups":  api(`"groups": ["group"], "origin": "http://host"`),
		"all":     api(`"all": true`),
		"PURGE": func(path string) {
			c.do("PURGE", path, "Host: host", "Fastcache-Purge: "+map[bool]string{true: "soft", false: "hard"}[strings.Contains(path, "soft")]).want(t, 404, "{\"purged\":0}\n")
		},
		"POST": func(path string) { c.do("POST", path, "Host: host") },
		"group invalidation": func(string) {
			c.do("POST", "/elsewhere?group=%22group%22", "Host: host")
		},
	}
	n := 0
	for name, purge := range purges {
		for _, when := range []string{"early", "late"} {
			for _, how := range []string{"hard", "soft"} {
				if how == "soft" && (name == "POST" || name == "group invalidation") {
					continue
				}
				n++
				path := fmt.Sprintf("/%s/%s/%d", when, how, n)
				gate := make(chan struct{})
				release.Store(&gate)
				header, done := c.begin(path)
				if when == "late" {
					<-header
				}
				eventually(t, "the fetch is under way", func() bool { return slices.Contains(o.log(), "GET "+path) })
				purge(path)
				close(gate)
				want := map[string]string{"early": "done", "late": "begun done"}[when]
				if body := <-done; body != want {
					t.Errorf("in flight: body %q, want %q", body, want)
				}
				c.get(path, "Host: host").want(t, 200, want).wantStatus(t, "fastcache; fwd=uri-miss; stored")
				c.get(path, "Host: host").wantStatus(t, "fastcache; hit")
				if t.Failed() {
					t.Fatalf("%s, %s, %s", name, when, how)
				}
				c.do("PURGE", path, "Host: host")
			}
		}
	}
	// A purge of something else does not keep a response from being stored.
	for name, body := range map[string]string{
		"url": `"url": "http://host/other"`, "prefix": `"prefix": "/other"`, "pattern": `"pattern": "/other"`,
		"tag": `"tag": "other"`, "groups": `"groups": ["group"], "origin": "http://other"`,
	} {
		path := "/late/" + name
		gate := make(chan struct{})
		release.Store(&gate)
		header, done := c.begin(path)
		<-header
		c.purge("{"+body+"}", 0)
		close(gate)
		if body := <-done; body != "begun done" {
			t.Errorf("in flight: body %q", body)
		}
		c.get(path, "Host: host").wantStatus(t, "fastcache; hit")
	}
}

// begin asks for a page of the site host: header is closed when the answer's header
// is there, done gets the body.
func (c *caddy) begin(uri string) (header <-chan struct{}, done <-chan string) {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodGet, c.url(uri), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Host = "host"
	arrived, body := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(body)
		res, err := client.Do(req)
		close(arrived)
		if err != nil {
			c.t.Errorf("GET %s: %v", uri, err)
			return
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil {
			c.t.Errorf("GET %s: %v", uri, err)
		}
		body <- string(data)
	}()
	return arrived, body
}

// RFC 9875: groups hold within an origin, and only the answer to an unsafe request
// invalidates.
func TestCacheGroups_RFC9875(t *testing.T) {
	t.Parallel()
	var groups atomic.Pointer[string] // of what a 304 brings, if anything
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		for _, line := range q["invalidate"] {
			w.Header().Add("Cache-Group-Invalidation", line)
		}
		if r.Method != http.MethodGet {
			if q.Get("status") == "500" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			if q.Get("status") == "303" {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(http.StatusSeeOther)
			}
			return
		}
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Etag", `"1"`)
		for _, line := range q["groups"] {
			w.Header().Add("Cache-Groups", line)
		}
		if r.Header.Get("If-None-Match") != "" {
			if g := groups.Load(); g != nil {
				w.Header()["Cache-Groups"] = strings.Fields(*g)
			}
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	c := start(t, site(o, "honor_request_cache_control"))
	const (
		ab    = "/ab?groups=%22a%22%2C%22b%22" // "a","b"
		lines = "/lines?groups=%22b%22&groups=%22a%22%3Bx=1"
		onlyB = "/b?groups=%22b%22"
		none  = "/none"
	)
	all := []string{ab, lines, onlyB, none}
	prime := func(host string) {
		for _, uri := range all {
			c.get(uri, "Host: "+host)
			c.get(uri, "Host: "+host).wantStatus(t, "fastcache; hit")
		}
	}
	stored := func(t *testing.T, host string, want ...string) {
		t.Helper()
		for _, uri := range all {
			if hit := c.get(uri, "Host: "+host, "Cache-Control: only-if-cached").hit(); hit != slices.Contains(want, uri) {
				t.Errorf("%s on %s is stored: %v", uri, host, hit)
			}
		}
	}
	prime("host")
	if got := c.get(lines, "Host: host").Header.Values("Cache-Groups"); !slices.Equal(got, []string{`"b"`, `"a";x=1`}) {
		t.Errorf("Cache-Groups %q of a hit", got)
	}
	t.Run("the answer to an unsafe request", func(t *testing.T) {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "X-UNKNOWN"} {
			prime("host")
			r := c.do(method, "/form?invalidate=%22a%22%3Bp", "Host: host")
			if r.StatusCode != 200 || r.Header.Get("Cache-Group-Invalidation") != `"a";p` {
				t.Errorf("%s: %d, Cache-Group-Invalidation %q", method, r.StatusCode, r.Header.Get("Cache-Group-Invalidation"))
			}
			stored(t, "host", onlyB, none) // and nothing that shares another group with what went
		}
		prime("host")
		c.do("POST", "/form?status=303&invalidate=%22x%22&invalidate=%22b%22", "Host: host")
		stored(t, "host", none)
	})
	t.Run("not an error, nor a safe method", func(t *testing.T) {
		prime("host")
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			c.do(method, "/form?status=500&invalidate=%22a%22", "Host: host")
		}
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PROPFIND"} {
			c.do(method, "/form?invalidate=%22a%22", "Host: host")
		}
		stored(t, "host", all...)
	})
	t.Run("what is not a list invalidates nothing", func(t *testing.T) {
		prime("host")
		for _, value := range []string{"%22a", "%22a%22,", "a", "%22A%22", "1"} {
			c.do("POST", "/form?invalidate="+value, "Host: host")
		}
		stored(t, "host", all...)
	})
	t.Run("no other origin", func(t *testing.T) {
		others := []string{"other", "host:8443", "sub.host", "hos"}
		prime("host")
		for _, host := range others {
			prime(host)
		}
		c.do("POST", "/form?invalidate=%22a%22,%22b%22", "Host: HOST.")
		stored(t, "host", none)
		for _, host := range others {
			stored(t, host, all...)
		}
	})
	t.Run("no cascade", func(t *testing.T) {
		prime("host")
		c.do("POST", ab, "Host: host") // is dropped for its URL, its groups are not
		stored(t, "host", lines, onlyB, none)
	})
	t.Run("a 304 may change the groups", func(t *testing.T) {
		prime("host")
		g := `"new"`
		groups.Store(&g)
		c.do("PURGE", ab, "Host: host", "Fastcache-Purge: soft")
		if r := c.get(ab, "Host: host").wantStatus(t, "fastcache; fwd=stale; fwd-status=304"); r.Header.Get("Cache-Groups") != g {
			t.Errorf("Cache-Groups %q after a 304", r.Header.Get("Cache-Groups"))
		}
		groups.Store(nil)
		c.do("POST", "/form?invalidate=%22b%22", "Host: host")
		stored(t, "host", ab, none)
		c.do("POST", "/form?invalidate=%22new%22", "Host: host")
		stored(t, "host", none)
	})
	t.Run("a 304 without the field keeps them", func(t *testing.T) {
		prime("host")
		none := ""
		groups.Store(&none)
		c.do("PURGE", ab, "Host: host", "Fastcache-Purge: soft")
		c.get(ab, "Host: host").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
		groups.Store(nil)
		c.do("POST", "/form?invalidate=%22a%22", "Host: host")
		stored(t, "host", onlyB, "/none")
	})
	t.Run("32 groups of 32 characters", func(t *testing.T) {
		var list []string
		for i := range 32 {
			list = append(list, fmt.Sprintf("%%22%032d%%22", i))
		}
		uri := "/many?groups=" + strings.Join(list, ",")
		for i := range 33 {
			c.get(uri, "Host: host")
			c.do("POST", fmt.Sprintf("/form?invalidate=%%22%032d%%22", i), "Host: host")
			if hit := c.get(uri, "Host: host").hit(); hit != (i == 32) {
				t.Errorf("after invalidating group %d of 32: hit %v", i, hit)
			}
		}
	})
}

// What an unsafe request's response names, in Location or otherwise, is dropped
// under the key that the options make of it.
func TestInvalidation_KeyOptions(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Location", "/page?b=1&utm_x=9&a=2")
			w.Header().Set("Content-Location", "http://"+r.Host+"/other?a=1")
			w.Header().Set("Cache-Group-Invalidation", `"g"`)
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		w.Header().Set("Cache-Control", "max-age=600")
		if r.URL.Path == "/grouped" {
			w.Header().Set("Cache-Groups", `"g"`)
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	for name, options := range map[string][]string{
		"query rules": {"query_sort", "query_ignore utm_*"},
		"cache_key":   {"cache_key {http.request.header.X-Tenant}|{http.request.host}{http.request.uri.path}"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, site(o, options...))
			uris := []string{"/form", "/page?a=2&b=1", "/other?a=1", "/grouped", "/stays"}
			for _, uri := range uris {
				c.get(uri, "Host: host", "X-Tenant: t")
				c.get(uri, "Host: host", "X-Tenant: t").wantStatus(t, "fastcache; hit")
			}
			c.do("POST", "/form", "Host: host", "X-Tenant: t")
			for _, uri := range uris {
				if hit := c.get(uri, "Host: host", "X-Tenant: t").hit(); hit != (uri == "/stays") {
					t.Errorf("%s is stored: %v", uri, hit)
				}
			}
		})
	}
}

// Tags come from three fields, from the origin or from handlers in front, and go
// on to the client.
func TestPurge_Tags(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		for name, values := range r.URL.Query() {
			for _, v := range values {
				w.Header().Add(name, v)
			}
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	c := start(t, `http://:{port} {
	header /site/* Surrogate-Key site
	fastcache {
		path {dir}/cache
	}
	reverse_proxy `+o.addr()+`
}
`)
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("many-%d", i))
	}
	long := strings.Repeat("x", 3000)
	for _, tt := range []struct{ uri, tag string }{
		{"/1?Cache-Tag=a+b,c", "a b"},
		{"/2?Cache-Tag=a,b&Cache-Tag=c", "c"},
		{"/3?Surrogate-Key=d+e,f", "e,f"},
		{"/4?xkey=g&xkey=h+i", "i"},
		{"/5?Cache-Tag=" + strings.Join(many, ","), "many-299"},
		{"/6?Surrogate-Key=" + long, long},
		{"/site/7", "site"},
		{"/8?Cache-Tag=%22quoted%22,%5B1%5D", "\"quoted\""},
	} {
		first := c.get(tt.uri)
		hit := c.get(tt.uri).wantStatus(t, "fastcache; hit")
		for _, name := range []string{"Cache-Tag", "Surrogate-Key", "Xkey"} {
			if a, b := first.Header.Values(name), hit.Header.Values(name); !slices.Equal(a, b) {
				t.Errorf("%s: %s %q on a miss, %q on a hit", tt.uri, name, a, b)
			}
		}
		body := fmt.Sprintf(`{"tag": %q}`, tt.tag)
		c.purge(strings.Replace(body, `"}`, `x"}`, 1), map[bool]int{true: 1}[strings.HasPrefix(tt.uri, "/5")])
		if !strings.HasPrefix(tt.uri, "/5") {
			c.get(tt.uri).wantStatus(t, "fastcache; hit")
		}
		c.get(tt.uri)
		c.purge(body, 1)
		c.get(tt.uri).wantStatus(t, "fastcache; fwd=uri-miss")
		c.do("PURGE", tt.uri)
	}
}

// Request targets as nobody writes them get a clear answer, and purge what a GET
// with the same bytes would get.
func TestPurge_RawTargets(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		_, _ = io.WriteString(w, "x")
	})
	c := start(t, site(o))
	send := func(method, target, fields string) int {
		t.Helper()
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", method, target, fields)
		res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s %.60q: %v", method, target, err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	const host = "Host: h\r\n"
	for _, target := range []string{
		"/", "//x", "/%2f", "/%2F", "/a?", "/a??b=%zz&&;", "/.", "/a/../b", "/;x", "/?#", "/\xc3\xa4", "http://h/abs", "/" + strings.Repeat("l", 20_000),
	} {
		if code := send("GET", target, host); code != 200 {
			if code := send("PURGE", target, host); code/100 != 4 {
				t.Errorf("PURGE %.60q: %d", target, code)
			}
			continue
		}
		want := []int{200, 404}
		if strings.Contains(target, "#") {
			want = []int{400, 400}
		}
		for i := range want {
			if code := send("PURGE", target, host); code != want[i] {
				t.Errorf("PURGE %.60q: %d, want %d", target, code, want[i])
			}
		}
	}
	for _, tt := range []struct{ target, fields string }{
		{"*", host},
		{"h:80", host},
		{"http://", host},
		{"/%zz", host},
		{"/%", host},
		{"/", "Host: h:x\r\n"},
		{"/", "Host: a b\r\n"},
		{"/", "Host: \r\n"},
		{"/", ""},
		{"/", host + host},
		{"/\x00", host},
		{"/", host + "Content-Length: -1\r\n"},
	} {
		if code := send("PURGE", tt.target, tt.fields); code/100 != 4 {
			t.Errorf("PURGE %q with %q: %d", tt.target, tt.fields, code)
		}
	}
}

// A key that names the local address is one that a made-up request has to have, too.
func TestPurge_KeyOfTheLocalAddress(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.Method == http.MethodPost {
			w.Header().Set("Location", "/other")
			w.WriteHeader(http.StatusCreated)
			return
		}
		fmt.Fprint(w, r.URL.Path)
	})
	c := start(t, site(o, "cache_key {http.request.local.host}{http.request.uri}"))
	c.get("/other").want(t, 200, "/other")
	c.do(http.MethodPost, "/k").want(t, 201, "")
	c.get("/other").want(t, 200, "/other").wantStatus(t, "fastcache; fwd=uri-miss")
}
