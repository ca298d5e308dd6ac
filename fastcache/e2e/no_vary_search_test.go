package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// searchOrigin answers with the URI that it was asked for and how many times it
// had been asked, under a No-Vary-Search that the test may change. It sends no
// Date: a purge counts for what was made before it, and Date has seconds only.
func searchOrigin(t *testing.T, rule string) (o *origin, setRule func(string)) {
	t.Helper()
	var current atomic.Pointer[string]
	current.Store(&rule)
	o = newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Date"] = nil
		h.Set("Cache-Control", "max-age=60")
		if rule := *current.Load(); rule != "" {
			h.Set("No-Vary-Search", rule)
		}
		for _, f := range strings.Split(r.URL.Query().Get("h"), "|") {
			if name, value, ok := strings.Cut(f, ":"); ok {
				h.Set(name, value)
			}
		}
		if r.Header.Get("If-None-Match") == `"v"` {
			delete(h, "Date")
			h.Set("Cache-Control", "max-age=60")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = fmt.Fprintf(w, "%s #%d %s", r.RequestURI, o.asked(), r.Header.Get("X-A"))
	})
	return o, func(rule string) { current.Store(&rule) }
}

func TestNoVarySearch_Hit(t *testing.T) {
	t.Parallel()
	o, _ := searchOrigin(t, `params=("utm_source" "c d"), key-order`)
	c := start(t, site(o, "no_vary_search", "cache_status_key"))
	first := c.get("/p?x=1&y=2&utm_source=a").wantStatus(t, "fastcache; fwd=uri-miss; stored").body
	for _, uri := range []string{
		"/p?x=1&y=2&utm_source=a", "/p?x=1&y=2", "/p?y=2&x=1", "/p?utm_source=b&x=1&c+d=3&y=2", "/p?y=%32&&%78=1&c%20d",
	} {
		c.get(uri).want(t, 200, first).wantStatus(t, "fastcache; hit")
	}
	r := c.get("/p?y=2&x=1").want(t, 200, first)
	if !strings.HasSuffix(r.cacheStatus(), `/p?x=1&y=2&utm_source=a"`) {
		t.Errorf("Cache-Status %s does not have the key of what was used", r.cacheStatus())
	}
	o.wantAsked(t, 1)

	// All that a hit can be.
	c.do(http.MethodHead, "/p?y=2&x=1").want(t, 200, "").wantStatus(t, "fastcache; hit")
	c.get("/p?y=2&x=1", "Range: bytes=0-1").want(t, 206, "/p").wantStatus(t, "fastcache; hit")
	o.wantAsked(t, 1)

	for i, uri := range []string{"/p?x=1", "/p?x=1&y=2&z", "/P?x=1&y=2", "/p/?x=1&y=2", "/p?x=2&y=1", "/p?x=1&y=2&UTM_source=a"} {
		c.get(uri).wantStatus(t, "fastcache; fwd=uri-miss; stored")
		o.wantAsked(t, i+2)
	}
	c.get("/p?x=1&y=2", "Host: other.example").wantStatus(t, "fastcache; fwd=uri-miss")
}

func TestNoVarySearch_OffByDefault(t *testing.T) {
	t.Parallel()
	o, _ := searchOrigin(t, "params")
	c := start(t, site(o))
	c.get("/p?a=1")
	c.get("/p?a=2").want(t, 200, "/p?a=2 #2 ").wantStatus(t, "fastcache; fwd=uri-miss")
}

// TestNoVarySearch_JudgedAsUsual: nothing that a response may not do for its own
// URL may it do for another.
func TestNoVarySearch_JudgedAsUsual(t *testing.T) {
	t.Parallel()
	o, _ := searchOrigin(t, `params, except=("h" "n")`)
	c := start(t, site(o, "no_vary_search", "stale_while_revalidate 60s", "stale_if_error 60s"))
	ask := func(uri string, status string, fields ...string) *response {
		t.Helper()
		return c.get(uri, fields...).wantStatus(t, "fastcache; "+status)
	}
	// Vary: each kind of client has its own, however they take turns.
	for i := range 3 {
		status := "hit"
		if i == 0 {
			status = "fwd="
		}
		a := ask(fmt.Sprintf("/p?h=Vary:X-A&a=%d", i), status, "X-A: 1")
		b := ask(fmt.Sprintf("/p?h=Vary:X-A&b=%d", i), status, "X-A: 2")
		if !strings.HasSuffix(a.body, " 1") || !strings.HasSuffix(b.body, " 2") {
			t.Errorf("bodies %q and %q", a.body, b.body)
		}
	}
	// Authorization.
	ask("/p?n=1&a", "fwd=uri-miss; stored")
	ask("/p?n=1&b", "hit")
	ask("/p?n=1&c", "fwd=uri-miss; detail=auth", "Authorization: Bearer x")
	// Neither stale ones nor those that have to be validated.
	for _, h := range []string{"Cache-Control:max-age=1", "Cache-Control:no-cache|ETag:%22v%22", "Cache-Control:no-store", "Cache-Control:private"} {
		if ask("/p?h="+h+"&a", "fwd=uri-miss"); strings.Contains(h, "max-age") {
			time.Sleep(1100 * time.Millisecond)
		}
		r := ask("/p?h="+h+"&b", "fwd=uri-miss")
		if want := "/p?h=" + h + "&b"; !strings.HasPrefix(r.body, want) {
			t.Errorf("body %q", r.body)
		}
	}
	// The client's conditions.
	first := ask("/p?n=2&h=ETag:%22v%22&a", "fwd=uri-miss; stored").body
	c.get("/p?n=2&h=ETag:%22v%22&b", `If-None-Match: "v"`).want(t, 304, "").wantStatus(t, "fastcache; hit")
	c.get("/p?n=2&h=ETag:%22v%22&b", `If-None-Match: "w"`).want(t, 200, first).wantStatus(t, "fastcache; hit")
}

// TestNoVarySearch_Purge: after a purge of a URL, or a change of it, nothing older
// answers for it, whatever it is stored under.
func TestNoVarySearch_Purge(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*caddy, string){
		"PURGE": func(c *caddy, uri string) { c.do("PURGE", uri).want(t, 200, "{\"purged\":1}\n") },
		"POST":  func(c *caddy, uri string) { c.do(http.MethodPost, uri) },
		"Location": func(c *caddy, uri string) {
			c.do(http.MethodPost, "/form?h=Location:"+strings.NewReplacer("?", "%3f", "=", "%3d").Replace(uri))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := searchOrigin(t, `params=("a" "h")`)
			c := start(t, site(o, "no_vary_search"))
			old := c.get("/p?a=1").body
			c.get("/p?a=2").want(t, 200, old).wantStatus(t, "fastcache; hit")
			drop(c, "/p?a=3")
			fresh := c.get("/p?a=3").wantStatus(t, "fastcache; fwd=uri-miss; stored").body
			for _, uri := range []string{"/p?a=1", "/p?a=2", "/p?a=3", "/p"} {
				c.get(uri).want(t, 200, fresh).wantStatus(t, "fastcache; hit")
			}
		})
	}
}

// TestNoVarySearch_PurgeOfWhatIsNotKnown: a response that only its own URL leads
// to, because a later one has taken its place as the equivalent, does not answer
// for a URL that was purged after it was made.
func TestNoVarySearch_PurgeOfWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	o, _ := searchOrigin(t, `params=("a" "h")`)
	c := start(t, site(o, "no_vary_search"))
	c.get("/p?a=1&h=Vary:X-A", "X-A: 1")
	c.get("/p?a=2&h=Vary:X-A", "X-A: 2")
	c.do("PURGE", "/p?a=3")
	own := c.get("/p?a=1&h=Vary:X-A", "X-A: 1") // may be the old one: this URL was not purged
	r := c.get("/p?a=3", "X-A: 1")
	if r.body == own.body && own.hit() {
		t.Errorf("the purged URL has what was made before: %q, %s", r.body, r.cacheStatus())
	}
	if want := "/p?a=3 #"; !strings.HasPrefix(r.body, want) {
		t.Errorf("body %q, want %s", r.body, want)
	}
}

// TestNoVarySearch_PurgeInFlight: a response that was asked for before the purge
// of an equivalent URL, and comes after it, answers for its own URL only.
func TestNoVarySearch_PurgeInFlight(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("No-Vary-Search", "params")
		once.Do(func() {
			close(asked)
			<-release
		})
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, site(o, "no_vary_search"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.try(t.Context(), http.MethodGet, "/p?a=1", nil)
	}()
	<-asked
	c.do("PURGE", "/p?a=2")
	close(release)
	<-done
	c.get("/p?a=1").want(t, 200, "/p?a=1").wantStatus(t, "fastcache; hit")
	c.get("/p?a=2").want(t, 200, "/p?a=2").wantStatus(t, "fastcache; fwd=uri-miss")
}

// TestNoVarySearch_Restart: what it knows is lost, what is stored is not. It never
// answers for a URL that may have been purged before.
func TestNoVarySearch_Restart(t *testing.T) {
	t.Parallel()
	o, _ := searchOrigin(t, "params")
	config := site(o, "no_vary_search")
	c := start(t, config)
	first := c.get("/p?a=1").body
	c.get("/p?a=2").want(t, 200, first).wantStatus(t, "fastcache; hit")

	if err := c.reload(config + "# changed\n"); err != nil {
		t.Fatal(err)
	}
	c.get("/p?a=3").want(t, 200, first).wantStatus(t, "fastcache; hit")

	c.stop()
	c.run(config)
	eventually(t, "the stored response is found", func() bool { return c.get("/p?a=1").hit() })
	o.wantAsked(t, 1)
	second := c.get("/p?a=2").wantStatus(t, "fastcache; fwd=uri-miss; stored").body
	c.get("/p?a=3").want(t, 200, second).wantStatus(t, "fastcache; hit")
	c.get("/p?a=1").want(t, 200, first).wantStatus(t, "fastcache; hit")
	o.wantAsked(t, 2)
}

// TestNoVarySearch_RuleChanges: each response answers by its own rule.
func TestNoVarySearch_RuleChanges(t *testing.T) {
	t.Parallel()
	o, setRule := searchOrigin(t, `params=("a")`)
	c := start(t, site(o, "no_vary_search"))
	byA := c.get("/p?a=1&b=1").body
	setRule(`params=("b")`)
	byB := c.get("/p?a=2&b=2").wantStatus(t, "fastcache; fwd=uri-miss").body
	c.get("/p?a=9&b=1").want(t, 200, byA).wantStatus(t, "fastcache; hit")
	c.get("/p?a=2&b=9").want(t, 200, byB).wantStatus(t, "fastcache; hit")
	c.get("/p?a=1&b=9").wantStatus(t, "fastcache; fwd=uri-miss")

	// Fetched anew, the first one has another rule, then none.
	c.do("PURGE", "/p?a=1&b=1")
	byB = c.get("/p?a=1&b=1").wantStatus(t, "fastcache; fwd=uri-miss").body
	c.get("/p?a=8&b=1").wantStatus(t, "fastcache; fwd=uri-miss")
	c.get("/p?a=1&b=8").want(t, 200, byB).wantStatus(t, "fastcache; hit")
	setRule("")
	c.do("PURGE", "/p?a=1&b=1")
	c.get("/p?a=1&b=1").wantStatus(t, "fastcache; fwd=uri-miss")
	c.get("/p?a=1&b=7").want(t, 200, fmt.Sprintf("/p?a=1&b=7 #%d ", o.asked())).wantStatus(t, "fastcache; fwd=uri-miss")
	c.get("/p?a=7&b=1").wantStatus(t, "fastcache; fwd=uri-miss")

	// A 304 may bring a rule, and change it.
	setRule("params")
	const validated = "h=Cache-Control:max-age=1|ETag:%22v%22"
	first := c.get("/q?" + validated).body
	setRule(`params, except=("h")`)
	time.Sleep(1100 * time.Millisecond)
	c.get("/q?"+validated).want(t, 200, first).wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
	c.get("/q?b&"+validated).want(t, 200, first).wantStatus(t, "fastcache; hit")
	c.get("/q?b").wantStatus(t, "fastcache; fwd=uri-miss")
}

// TestNoVarySearch_WithQueryRules: equivalence is about the URLs as the cache sees
// them.
func TestNoVarySearch_WithQueryRules(t *testing.T) {
	t.Parallel()
	o, _ := searchOrigin(t, `params=("a")`)
	c := start(t, site(o, "no_vary_search", "query_ignore utm_*", "query_sort"))
	first := c.get("/p?b=1&a=1&utm_source=x").body
	for _, uri := range []string{"/p?b=1&a=2", "/p?utm_medium=y&a=3&b=1", "/p?b=1"} {
		c.get(uri).want(t, 200, first).wantStatus(t, "fastcache; hit")
	}
	o.wantAsked(t, 1)
}

// TestNoVarySearch_Hostile: 10,000 rules for one path and 10,000 parameters: right
// answers, and the latest rule is known.
func TestNoVarySearch_Hostile(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("No-Vary-Search", fmt.Sprintf(`params=("utm" "%s")`, r.URL.Query().Get("i")))
		_, _ = io.WriteString(w, r.RequestURI)
	})
	c := start(t, site(o, "no_vary_search"))
	rules := 10_000
	if testing.Short() || raceBuild {
		rules = 1000
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < rules; i += 4 {
				uri := fmt.Sprintf("/p?i=%d", i)
				if r, err := c.try(t.Context(), http.MethodGet, uri, nil); err != nil || r.body != uri {
					t.Errorf("%s: %v, %+v", uri, err, r)
					return
				}
			}
		})
	}
	wg.Wait()
	c.get("/p?i=last").want(t, 200, "/p?i=last")
	c.get("/p?utm=1&i=last").want(t, 200, "/p?i=last").wantStatus(t, "fastcache; hit")
	c.get("/p?i=1&i=last").want(t, 200, "/p?i=1&i=last").wantStatus(t, "fastcache; fwd=uri-miss")

	long := strings.Repeat("&a", 10_000)
	for _, uri := range []string{"/p?i=many" + long, "/p?utm=1&i=many" + long} {
		c.get(uri).want(t, 200, uri).wantStatus(t, "fastcache; fwd=uri-miss; stored")
		c.get(uri).want(t, 200, uri).wantStatus(t, "fastcache; hit")
	}
}
