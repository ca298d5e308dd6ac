package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// api calls Caddy's admin endpoint.
func (c *caddy) api(method, path, body string, fields ...string) *response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, fmt.Sprintf("http://127.0.0.1:%d%s", c.admin, path), strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return &response{Response: res, body: string(data), err: err}
}

// purge purges by the admin API and fails the test unless n responses went.
func (c *caddy) purge(body string, n int) {
	c.t.Helper()
	if r := c.api(http.MethodDelete, "/fastcache/purge", body); r.StatusCode != http.StatusOK || r.body != fmt.Sprintf("{\"purged\":%d}\n", n) {
		c.t.Errorf("purge %s: %d %s, want %d purged", body, r.StatusCode, r.body, n)
	}
}

// keys is what GET /fastcache/keys lists.
func (c *caddy) keys(query string) []string {
	c.t.Helper()
	r := c.api(http.MethodGet, "/fastcache/keys"+query, "")
	var list struct {
		Keys  []string
		Count int
	}
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.StatusCode != http.StatusOK || list.Count != len(list.Keys) {
		c.t.Fatalf("keys%s: %d %v: %s", query, r.StatusCode, err, r.body)
	}
	return list.Keys
}

// known waits until the cache has read what an earlier run left.
func (c *caddy) known() {
	c.t.Helper()
	eventually(c.t, "the files of the earlier run are read", func() bool {
		return !strings.Contains(c.api(http.MethodGet, "/fastcache/keys", "").body, `"incomplete":true`)
	})
}

// labelledOrigin answers every path with its last segment as a tag in each of the
// fields, and as a group; ?no=... leaves one out. Each response has an ETag that it
// confirms.
func labelledOrigin(t *testing.T) *origin {
	return newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		h := w.Header()
		h.Set("Cache-Control", "max-age=600")
		if cc := r.URL.Query().Get("cc"); cc != "" {
			h.Set("Cache-Control", cc)
		}
		h.Set("Etag", `"1"`)
		h.Set("Vary", "X-V")
		h.Set("Cache-Tag", "ct-"+name+", ct-all")
		h.Set("Surrogate-Key", "sk-"+name+" sk-all")
		h.Set("Xkey", "xk-"+name)
		h.Set("Cache-Groups", `"g-`+name+`", "g-all"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, r.RequestURI)
	})
}

// Every kind of selection, hard and soft, takes what it says and nothing else.
func TestAdmin_PurgeOfEveryKind(t *testing.T) {
	t.Parallel()
	o := labelledOrigin(t)
	c := start(t, site(o))
	type view struct{ page, variant string }
	views := []view{{"a", "1"}, {"a", "2"}, {"b", "1"}, {"c?x=1", "1"}, {"d", "1"}}
	tests := []struct {
		selector string
		takes    string // the first letters of the pages
	}{
		{`"url": "http://HOST/N/a"`, "a"},
		{`"url": "https://host:8443/N/c?x=1"`, "c"},
		{`"url": "http://host/N/c"`, ""},
		{`"prefix": "http://host/N/"`, "abcd"},
		{`"prefix": "/N/c"`, "c"},
		{`"prefix": "http://hos"`, ""},
		{`"pattern": "/N/[ad]$"`, "ad"},
		{`"pattern": "^http://host(:[0-9]+)?/N/.\\?x"`, "c"},
		{`"pattern": "/N/(a+)+$"`, "a"},
		{`"tag": "ct-b"`, "b"},
		{`"tags": ["sk-a", "xk-d", "other"]`, "ad"},
		{`"tag": "CT-b"`, ""},
		{`"tag": "g-a"`, ""},
		{`"groups": ["g-d", "g-b"], "origin": "http://host"`, "bd"},
		{`"groups": ["g-d"], "origin": "https://host"`, ""},
		{`"groups": ["ct-d"], "origin": "http://host"`, ""},
		{`"all": true`, "abcd"},
	}
	for _, soft := range []bool{false, true} {
		for i, tt := range tests {
			n := strconv.Itoa(i)
			get := func(v view) *response {
				return c.get("/"+n+"/"+v.page, "Host: host", "X-V: "+v.variant).want(t, 200, "/"+n+"/"+v.page)
			}
			c.api(http.MethodDelete, "/fastcache/purge", `{"all": true}`)
			want := 0
			for _, v := range views {
				get(v)
				if strings.Contains(tt.takes, v.page[:1]) {
					want++
				}
			}
			c.purge(fmt.Sprintf(`{%s, "soft": %v}`, strings.ReplaceAll(tt.selector, "N", n), soft), want)
			for _, v := range views {
				begin := "fastcache; hit; ttl="
				switch taken := strings.Contains(tt.takes, v.page[:1]); {
				case taken && soft:
					begin = "fastcache; fwd=stale; fwd-status=304"
				case taken && v.variant == "2":
					begin = "fastcache; fwd=vary-miss; stored"
				case taken:
					begin = "fastcache; fwd=uri-miss; stored"
				}
				get(v).wantStatus(t, begin)
				get(v).wantStatus(t, "fastcache; hit; ttl=")
			}
			if t.Failed() {
				t.Fatalf("%s, soft %v", tt.selector, soft)
			}
		}
	}
}

// What a request to the admin endpoint must not do, and what it is told.
func TestAdmin_Refusals(t *testing.T) {
	t.Parallel()
	o := labelledOrigin(t)
	c := start(t, site(o, "name here"))
	c.get("/a")
	tests := []struct {
		method, path, body string
		fields             []string
		status             int
		text               string
	}{
		{"DELETE", "/fastcache/purge", `{"pattern": "a("}`, nil, 400, "missing closing )"},
		{"DELETE", "/fastcache/purge", `{"pattern": "/a`, nil, 400, "unexpected EOF"},
		{"DELETE", "/fastcache/purge", `{"pattern": ""}`, nil, 400, "empty"},
		{"DELETE", "/fastcache/purge", `{"patern": "/a"}`, nil, 400, "unknown field"},
		{"DELETE", "/fastcache/purge", ``, nil, 400, "has to be an object"},
		{"DELETE", "/fastcache/purge", `{"all": true, "name": "there"}`, nil, 404, "there"},
		{"DELETE", "/fastcache/purge", strings.Repeat(" ", 2<<20), nil, 413, "1048576"},
		{"GET", "/fastcache/purge", ``, nil, 405, "DELETE, POST"},
		{"DELETE", "/fastcache/keys", ``, nil, 405, "GET, HEAD"},
		{"GET", "/fastcache/keys?limit=x", ``, nil, 400, "limit"},
		{"GET", "/fastcache/keys?name=there", ``, nil, 404, "there"},
		{"GET", "/fastcache/other", ``, nil, 404, ""},
		// Caddy's own protection of its admin endpoint holds for these, too.
		{"DELETE", "/fastcache/purge", `{"all": true}`, []string{"Origin: https://evil.example"}, 403, "not allowed"},
		{"POST", "/fastcache/purge", `{"all": true}`, []string{"Sec-Fetch-Mode: no-cors"}, 400, "not allowed"},
	}
	for _, tt := range tests {
		r := c.api(tt.method, tt.path, tt.body, tt.fields...)
		if r.StatusCode != tt.status || !strings.Contains(r.body, tt.text) {
			t.Errorf("%s %s %.60s: %d %s, want %d %q", tt.method, tt.path, tt.body, r.StatusCode, r.body, tt.status, tt.text)
		}
		if tt.status == 405 && r.Header.Get("Allow") != tt.text {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, r.Header.Get("Allow"))
		}
		if tt.path == "/fastcache/purge" && !json.Valid([]byte(r.body)) {
			t.Errorf("%s %s: no JSON: %s", tt.method, tt.path, r.body)
		}
	}
	c.get("/a").wantStatus(t, "fastcache; hit")
	// POST is for clients that cannot send a body with DELETE.
	c.api("POST", "/fastcache/purge", `{"all": true, "name": "here"}`).want(t, 200, "{\"purged\":1}\n")
}

// Blocks that share a path share a store, which is purged and listed once; name
// chooses stores.
func TestAdmin_SeveralInstances(t *testing.T) {
	t.Parallel()
	o := labelledOrigin(t)
	c := start(t, `
http://one.example:{port}, http://other.example:{port} {
	fastcache {
		path {dir}/shared
		name one
		query_sort
	}
	reverse_proxy `+o.addr()+`
}
http://two.example:{port} {
	fastcache {
		path {dir}/shared
		name two
		cache_key {http.request.host}{http.request.uri.path}
	}
	reverse_proxy `+o.addr()+`
}
http://three.example:{port} {
	fastcache {
		disk_size 0
		name three
	}
	reverse_proxy `+o.addr()+`
}
http://four.example:{port} {
	fastcache {
		disk_size 0
		memory_size 0
		name four
	}
	reverse_proxy `+o.addr()+`
}
`)
	hosts := []string{"one.example", "other.example", "two.example", "three.example"}
	prime := func() {
		for _, host := range hosts {
			c.get("/p?b=1&a=2", "Host: "+host).want(t, 200, map[bool]string{true: "/p?a=2&b=1", false: "/p?b=1&a=2"}[strings.HasPrefix(host, "o")])
		}
	}
	stored := func(want ...string) {
		t.Helper()
		for _, host := range hosts {
			if hit := c.get("/p?b=1&a=2", "Host: "+host).hit(); hit != slices.Contains(want, host) {
				t.Errorf("%s is stored: %v", host, hit)
			}
		}
	}
	keys := []string{
		"http://one.example/p?a=2&b=1",
		"http://other.example/p?a=2&b=1",
		"http://three.example/p?b=1&a=2",
		"two.example/p",
	}
	prime()
	if got := c.keys(""); !slices.Equal(got, keys) {
		t.Errorf("keys %q", got)
	}
	if got := c.keys("?name=two"); !slices.Equal(got, []string{keys[0], keys[1], keys[3]}) {
		t.Errorf("keys of two's store %q", got)
	}
	if got := c.keys("?name=three"); !slices.Equal(got, keys[2:3]) {
		t.Errorf("keys of three %q", got)
	}
	if r := c.api("GET", "/fastcache/keys?name=four", ""); r.StatusCode != 404 {
		t.Errorf("keys of one that stores nothing: %d", r.StatusCode)
	}
	c.purge(`{"all": true}`, 4)
	stored()

	prime()
	c.purge(`{"all": true, "name": "two"}`, 3)
	stored("three.example")

	// Each block's own rules make the key of a URL.
	prime()
	c.purge(`{"url": "http://one.example/p?b=1&a=2"}`, 1)
	c.purge(`{"url": "http://two.example/p?whatever"}`, 1)
	c.purge(`{"url": "http://three.example/p?a=2&b=1"}`, 0)
	stored("other.example", "three.example")

	// Also after a reload that leaves a path out, and one that fails.
	prime()
	if err := c.reload(`http://one.example:{port} {
	fastcache {
		path {dir}/shared
		name again
	}
	reverse_proxy ` + o.addr() + `
}
`); err != nil {
		t.Fatal(err)
	}
	if err := c.reload("http://one.example:{port} {\n\tfastcache {\n\t\tpath /dev/null/x\n\t}\n}\n"); err == nil {
		t.Error("a path that cannot work was accepted")
	}
	if got := c.keys(""); !slices.Equal(got, []string{keys[0], keys[1], keys[3]}) {
		t.Errorf("keys after reloads: %q", got)
	}
	c.purge(`{"all": true, "name": "again"}`, 3)
}

func TestAdmin_KeysInSteps(t *testing.T) {
	t.Parallel()
	o := labelledOrigin(t)
	c := start(t, site(o))
	var want []string
	for i := range 23 {
		uri := fmt.Sprintf("/a%%2Fb/%02d?q=%%22&x=<>", i)
		c.get(uri, "Host: host", "X-V: 1")
		c.get(uri, "Host: host", "X-V: 2")
		want = append(want, "http://host"+uri)
	}
	c.get("/other", "Host: host")
	if got := c.keys("?prefix=" + url.QueryEscape("http://host/a%2F")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var got []string
	for next := "/fastcache/keys?limit=5&pattern=%2F%5Cd"; next != ""; {
		r := c.api("GET", next, "")
		var page struct {
			Keys []string
			Next string
		}
		if err := json.Unmarshal([]byte(r.body), &page); err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		got, next = append(got, page.Keys...), page.Next
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if r := c.api("HEAD", "/fastcache/keys", ""); r.StatusCode != 200 || r.body != "" {
		t.Errorf("HEAD: %d %q", r.StatusCode, r.body)
	}
}

// A purge lasts, whatever happens next: also when the process is killed.
func TestAdmin_PurgeSurvivesKill(t *testing.T) {
	t.Parallel()
	o := labelledOrigin(t)
	c := start(t, site(o))
	const n = 300
	for i := range n {
		c.get(fmt.Sprintf("/%d", i), "Host: host")
	}
	purges := []struct {
		body  string
		count int
	}{
		{`{"tag": "ct-7"}`, 1},
		{`{"pattern": "/1[0-9]$"}`, 10},
		{`{"groups": ["g-33", "g-34"], "origin": "http://host"}`, 2},
		{`{"tag": "ct-100", "soft": true}`, 1},
		{`{"url": "http://host/101", "soft": true}`, 1},
		{`{"tag": "sk-all"}`, n - 13},
	}
	gone := func(i int) bool { return i == 7 || 10 <= i && i < 20 || i == 33 || i == 34 }
	for i, p := range purges {
		c.purge(p.body, p.count)
		c.kill()
		c.run(site(o))
		if i == len(purges)-1 {
			break
		}
		// Before anything is known of the files, and after.
		if got := c.keys("?pattern=%2F(7%7C1%5B0-9%5D%7C33%7C34)%24"); i >= 2 && len(got) != 0 {
			t.Errorf("after %s: %q", p.body, got)
		}
	}
	c.known()
	for i := range n {
		if r := c.get(fmt.Sprintf("/%d", i), "Host: host"); r.hit() {
			t.Errorf("/%d is back (purged first: %v): %s", i, gone(i), r.cacheStatus())
			break
		}
	}
	// Tags are found again after a restart, also right after it.
	c.kill()
	c.run(site(o))
	c.purge(`{"tags": ["ct-5", "xk-6"]}`, 2)
	c.purge(`{"groups": ["g-all"], "origin": "http://host"}`, n-2)
	// And softness lasts.
	c.get("/100", "Host: host")
	c.purge(`{"tag": "ct-100", "soft": true}`, 1)
	c.kill()
	c.run(site(o))
	c.known()
	c.get("/100", "Host: host").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
	c.get("/100", "Host: host").wantStatus(t, "fastcache; hit")
}

// H25: big purges and listings do not stop the site.
func TestH25_BigPurge(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a cache with 40,000 responses")
	}
	entries := 40_000
	if raceBuild {
		entries = 4_000
	}
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Cache-Tag", "all")
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, site(o, "memory_size 64MB"))
	began := time.Now()
	c.fillCache(entries)
	t.Logf("%d responses stored in %v", entries, time.Since(began))

	quiet := c.hammer(func() { time.Sleep(2 * time.Second) })
	t.Logf("hits alone: %v", quiet)

	var keys []string
	listing := c.hammer(func() { keys = c.keys("") })
	t.Logf("listing %d keys: %v", len(keys), listing)
	if len(keys) != entries+1 || !slices.IsSorted(keys) {
		t.Errorf("%d keys, want %d, sorted", len(keys), entries+1)
	}
	evil := c.hammer(func() { c.purge(`{"pattern": "(a+)+$"}`, 0) })
	t.Logf("pattern (a+)+$: %v", evil)
	for _, p := range []struct {
		body string
		n    int
	}{
		{`{"pattern": ".*", "soft": true}`, entries + 1},
		{`{"pattern": ".*"}`, entries + 1},
	} {
		var answer *response
		during := c.hammer(func() { answer = c.api(http.MethodDelete, "/fastcache/purge", p.body) })
		t.Logf("purge %s: %v", p.body, during)
		// The response that is asked for all the time may be stored anew meanwhile.
		if answer.body != fmt.Sprintf("{\"purged\":%d}\n", p.n) && answer.body != fmt.Sprintf("{\"purged\":%d}\n", p.n+1) {
			t.Errorf("purge %s: %d %s", p.body, answer.StatusCode, answer.body)
		}
		// Under 2 s and 50 ms on a quiet machine; bounds that a busy one meets, too.
		if during.took > 20*time.Second || during.p99 > time.Second {
			t.Errorf("purge %s: %v", p.body, during)
		}
	}
	if got := c.keys(""); len(got) > 1 {
		t.Errorf("%d keys after the purge", len(got))
	}
	for body, status := range map[string]int{`{"pattern": "` + strings.Repeat("a", 2<<20) + `"}`: 413, `{"pattern": "(a+)+("}`: 400} {
		if r := c.api(http.MethodDelete, "/fastcache/purge", body); r.StatusCode != status {
			t.Errorf("%.30s: %d %s, want %d", body, r.StatusCode, r.body, status)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(250 * time.Millisecond) {
		files := c.cacheFiles()
		if len(files) <= 2 { // of the response that is asked for all the time
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d files are left: %q", len(files), files[:3])
		}
	}
}

// fillCache asks for n responses on a few connections, each as a pipeline.
func (c *caddy) fillCache(n int) {
	c.t.Helper()
	const conns = 8
	var wg sync.WaitGroup
	for k := range conns {
		wg.Go(func() {
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
			if err != nil {
				c.t.Error(err)
				return
			}
			defer conn.Close()
			go func() {
				out := bufio.NewWriter(conn)
				for i := k; i < n; i += conns {
					fmt.Fprintf(out, "GET /fill/%d HTTP/1.1\r\nHost: host\r\n\r\n", i)
				}
				_ = out.Flush()
			}()
			in := bufio.NewReader(conn)
			for i := k; i < n; i += conns {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					c.t.Errorf("response %d: %v", i, err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	wg.Wait()
}

// hammering is what two clients saw while something else was going on.
type hammering struct {
	took     time.Duration
	requests int
	p50, p99 time.Duration
	max      time.Duration
}

func (h hammering) String() string {
	return fmt.Sprintf("took %v; %d hits meanwhile, p50 %v, p99 %v, max %v", h.took, h.requests, h.p50, h.p99, h.max)
}

// hammer has two clients ask for one response while f runs.
func (c *caddy) hammer(f func()) hammering {
	c.t.Helper()
	c.get("/hot", "Host: host")
	var stop atomic.Bool
	var mu sync.Mutex
	var times []time.Duration
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			var mine []time.Duration
			for !stop.Load() {
				began := time.Now()
				r, err := c.try(context.Background(), http.MethodGet, "/hot", nil, "Host: host")
				if err != nil || r.err != nil || r.body != "/hot" {
					c.t.Errorf("a hit failed: %v", errors.Join(err, r.err))
					return
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, mine...)
		})
	}
	for range 50 { // both have begun
		runtime.Gosched()
	}
	began := time.Now()
	f()
	took := time.Since(began)
	stop.Store(true)
	wg.Wait()
	if len(times) == 0 {
		c.t.Fatal("no hit meanwhile")
	}
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[min(len(times)-1, int(q*float64(len(times))))] }
	return hammering{took.Round(time.Millisecond), len(times), at(0.5), at(0.99), times[len(times)-1]}
}

// The commands in the README's section on purging print what stands behind them.
func TestREADME_Purging(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(readme), "\n## Purging\n")
	if !ok {
		t.Skip("README.md has no section Purging")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Surrogate-Key", "blog author-7")
		_, _ = io.WriteString(w, "post")
	})
	c := start(t, site(o))
	prime := func(uris ...string) {
		for _, uri := range uris {
			c.get(uri, "Host: localhost:8080")
		}
	}
	prepare := map[string]func(){ // what has to be stored when the command runs first
		`curl -X PURGE localhost:8080/blog/1`:                                                  func() { prime("/blog/1") },
		`curl -X DELETE localhost:2019/fastcache/purge -d '{"pattern": "/blog/"}'`:             func() { prime("/blog/1", "/blog/2", "/") },
		`curl -X DELETE localhost:2019/fastcache/purge -d '{"tag": "author-7", "soft": true}'`: func() {},
		`curl 'localhost:2019/fastcache/keys?prefix=/blog/'`:                                   func() { prime("/blog/1", "/blog/2") },
		`curl 'localhost:2019/fastcache/keys?limit=1'`:                                         func() { c.do("PURGE", "/", "Host: localhost:8080") },
	}
	seen := make(map[string]bool)
	for _, block := range strings.Split(section, "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			if prepare[command] == nil {
				t.Errorf("this test does not know the command %s", command)
				continue
			}
			if !seen[command] {
				prepare[command]()
			}
			seen[command] = true
			line := strings.NewReplacer(
				"curl ", curl+" -s ",
				"localhost:8080/", fmt.Sprintf("-H 'Host: localhost:8080' 127.0.0.1:%d/", c.port),
				"localhost:2019/", fmt.Sprintf("127.0.0.1:%d/", c.admin),
			).Replace(command)
			out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
				t.Errorf("%s\nprints (%v):\n%s\nnot:\n%s", line, err, out, want)
			}
		}
	}
	if len(seen) != len(prepare) {
		t.Errorf("README.md has %d of the %d commands", len(seen), len(prepare))
	}
}
