package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file hold inputs that broke other caches, by their numbers.

// H01: every client gets the first stored variant although the response varies.
func TestH01_Vary(t *testing.T) {
	for _, tc := range []struct {
		option string
		most   int // fetches
	}{
		{"", 3},
		{"vary Service", 3},
		{"vary Accept-Encoding", 5}, // not in the list: not stored at all
	} {
		t.Run(cmp.Or(tc.option, "default"), func(t *testing.T) {
			o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Vary", "Service")
				_, _ = io.WriteString(w, r.Header.Get("Service"))
			})
			c := start(t, site(o, tc.option))
			c.get("/p", "Service: a").want(t, 200, "a")
			c.get("/p", "Service: b").want(t, 200, "b")
			c.get("/p", "Service: a").want(t, 200, "a")
			c.get("/p").want(t, 200, "")
			last := c.get("/p").want(t, 200, "")
			o.wantAsked(t, tc.most)
			if tc.most == 3 {
				last.wantStatus(t, "fastcache; hit")
			} else {
				last.wantStatus(t, "fastcache; fwd=uri-miss; detail=vary-unlisted")
			}
		})
	}
	t.Run("star", func(t *testing.T) {
		o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Vary", "*")
		})
		c := start(t, site(o))
		c.get("/p")
		c.get("/p").wantStatus(t, "fastcache; fwd=uri-miss; detail=vary-star")
		o.wantAsked(t, 2)
	})
}

// H03: a partial body stored as the whole.
func TestH03_PartialIsNeverTheWhole(t *testing.T) {
	body := testBody("H03", 12345)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"s"`)
		http.ServeContent(w, r, "f.txt", time.Time{}, strings.NewReader(body))
	})
	c := start(t, site(o))
	c.get("/f", "Range: bytes=0-499").want(t, 206, body[:500])
	c.get("/f").want(t, 200, body)
	third := c.get("/f", "Range: bytes=500-999").want(t, 206, body[500:1000])
	third.wantStatus(t, "fastcache; hit")
	if got := third.Header.Get("Content-Range"); got != "bytes 500-999/12345" {
		t.Errorf("Content-Range %q", got)
	}
	o.wantAsked(t, 2)
}

// H05: a stored HEAD that answers GET, or a HEAD that the origin sees as GET.
func TestH05_Head(t *testing.T) {
	body := testBody("H05", 2000)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"v"`)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, body)
		}
	})
	c := start(t, site(o))
	c.do(http.MethodHead, "/f").want(t, 200, "")
	c.do(http.MethodHead, "/f").want(t, 200, "")
	c.get("/f").want(t, 200, body)
	last := c.do(http.MethodHead, "/f").want(t, 200, "").wantStatus(t, "fastcache; hit")
	if last.ContentLength != int64(len(body)) || last.Header.Get("ETag") != `"v"` {
		t.Errorf("Content-Length %d, ETag %s", last.ContentLength, last.Header.Get("ETag"))
	}
	if want := []string{"HEAD /f", "HEAD /f", "GET /f"}; !slices.Equal(o.log(), want) {
		t.Errorf("the origin saw %v, want %v", o.log(), want)
	}
	// No body byte follows the header on the wire.
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HEAD /f HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", c.port)
	raw, _ := io.ReadAll(conn)
	if _, after, _ := bytes.Cut(raw, []byte("\r\n\r\n")); len(after) != 0 {
		t.Errorf("%d bytes follow the header of a HEAD", len(after))
	}
}

// H05 over HTTP/2, where a body byte after HEAD would be a protocol error.
func TestH05_HeadOverHTTP2(t *testing.T) {
	body := testBody("H05", 70_000)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, body)
	})
	c := start(t, tlsSite(o))
	h2 := newTLSClient(t, c.port)
	for i, method := range []string{"GET", "HEAD", "GET"} {
		req, _ := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("https://localhost:%d/f", c.port), nil)
		res, err := h2.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		want := body
		if method == "HEAD" {
			want = ""
		}
		if res.ProtoMajor != 2 || err != nil || string(got) != want || i > 0 && !strings.HasPrefix(res.Header.Get("Cache-Status"), "fastcache; hit") {
			t.Errorf("%s over HTTP/%d: %d bytes, err %v, Cache-Status %q", method, res.ProtoMajor, len(got), err, res.Header.Get("Cache-Status"))
		}
		if i > 0 && res.Header.Get("Content-Length") != strconv.Itoa(len(body)) {
			t.Errorf("%s: Content-Length %q", method, res.Header.Get("Content-Length"))
		}
	}
	o.wantAsked(t, 1)
}

// H07: 304s reach only clients that asked for them.
func TestH07_NotModified(t *testing.T) {
	var short atomic.Bool
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if short.Load() {
			w.Header().Set("Cache-Control", "max-age=1")
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("X-Asked", strconv.FormatInt(time.Now().UnixNano(), 10))
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "the body")
	})
	c := start(t, site(o))

	t.Run("a_cold", func(t *testing.T) {
		c.get("/a", `If-None-Match: "v1"`).want(t, 304, "")
		c.get("/a").want(t, 200, "the body")
		c.get("/a").want(t, 200, "the body").wantStatus(t, "fastcache; hit")
	})
	short.Store(true)
	t.Run("b_validated", func(t *testing.T) {
		first := c.get("/b").want(t, 200, "the body")
		time.Sleep(2100 * time.Millisecond)
		r := c.get("/b").want(t, 200, "the body").wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
		if r.Header.Get("X-Asked") == first.Header.Get("X-Asked") {
			t.Error("the 304's fields did not replace the stored ones")
		}
		if r.Header.Get("Age") != "0" {
			t.Errorf("Age %q, want it to start again", r.Header.Get("Age"))
		}
		c.get("/b").want(t, 200, "the body").wantStatus(t, "fastcache; hit")
	})
	t.Run("c_validated_for_a_conditional_client", func(t *testing.T) {
		c.get("/c").want(t, 200, "the body")
		time.Sleep(2100 * time.Millisecond)
		c.get("/c", `If-None-Match: "v1"`).want(t, 304, "")
		c.get("/c", `If-None-Match: "old"`).want(t, 200, "the body")
	})
}

// H09b: a slow chunked body streams to the first client, and those who come
// meanwhile or later get all of it.
func TestH09b_StreamingFollowers(t *testing.T) {
	part := testBody("H09", 1000)
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for range 10 {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(200 * time.Millisecond)
		}
	})
	c := start(t, site(o))
	whole := strings.Repeat(part, 10)
	var wg sync.WaitGroup
	begin := time.Now()
	wg.Go(func() {
		res, err := client.Get(c.url("/slow"))
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 1500*time.Millisecond {
			t.Errorf("the first byte came after %v: the body was held back", d)
		}
		rest, err := io.ReadAll(res.Body)
		if err != nil || string(rest) != whole[1:] {
			t.Errorf("the first client got %d bytes, %v", len(rest)+1, err)
		}
	})
	time.Sleep(500 * time.Millisecond)
	wg.Go(func() {
		c.get("/slow").want(t, 200, whole).wantStatus(t, "fastcache; fwd=uri-miss")
	})
	time.Sleep(2500 * time.Millisecond)
	c.get("/slow").want(t, 200, whole).wantStatus(t, "fastcache; hit")
	wg.Wait()
	o.wantAsked(t, 1)
}

// H09c: bodies of sizes at which buffers, tiers and promotion change.
func TestH09c_EveryByte(t *testing.T) {
	sizes := []int{0, 1, 511, 512, 513, 4095, 4096, 4097, 15999, 16000, 16001, 16383, 16384, 16385, 65535, 65536, 65537, 262143, 262144, 262145, 1<<20 + 1, 5<<20 + 7}
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		}
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, testBody(r.RequestURI, n))
	})
	for _, tiers := range [][]string{nil, {"memory_size 0"}, {"disk_size 0"}, {"promote_below 1GB"}} {
		t.Run(cmp.Or(strings.Join(tiers, " "), "default"), func(t *testing.T) {
			c := start(t, site(o, tiers...))
			for _, n := range sizes {
				for _, path := range []string{"/declared", "/chunked"} {
					uri := fmt.Sprintf("%s?n=%d", path, n)
					want := testBody(uri, n)
					for i := range 5 {
						r := c.get(uri).want(t, 200, want)
						if i == 0 {
							continue
						}
						r.wantStatus(t, "fastcache; hit")
						if r.ContentLength != int64(n) {
							t.Errorf("%s: Content-Length %d", uri, r.ContentLength)
						}
					}
					if n > 10 {
						mid := n / 3
						c.get(uri, fmt.Sprintf("Range: bytes=%d-%d", mid, n-3)).want(t, 206, want[mid:n-2])
						c.get(uri, "Range: bytes=-7").want(t, 206, want[n-7:])
					}
				}
			}
		})
	}
}

// H11: a client that leaves in the middle must not leave a fragment as the whole.
func TestH11_ClientLeaves(t *testing.T) {
	const size = 10 << 20
	for _, declared := range []bool{true, false} {
		for _, proto := range []string{"h1", "h2"} {
			t.Run(fmt.Sprintf("declared=%v/%s", declared, proto), func(t *testing.T) {
				body := testBody("H11", size)
				var gone sync.WaitGroup
				o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
					gone.Add(1)
					defer gone.Done()
					w.Header().Set("Cache-Control", "max-age=60")
					if declared {
						w.Header().Set("Content-Length", strconv.Itoa(size))
					}
					for rest := body; rest != ""; rest = rest[min(len(rest), 64<<10):] {
						if _, err := io.WriteString(w, rest[:min(len(rest), 64<<10)]); err != nil {
							return
						}
						time.Sleep(time.Millisecond)
					}
				})
				c := start(t, tlsSite(o))
				h := newTLSClient(t, c.port)
				target := fmt.Sprintf("https://localhost:%d/big", c.port)
				if proto == "h1" {
					h.Transport.(*http.Transport).ForceAttemptHTTP2 = false
					h.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
				}
				ctx, leave := context.WithCancel(t.Context())
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
				res, err := h.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				if want := map[string]int{"h1": 1, "h2": 2}[proto]; res.ProtoMajor != want {
					t.Fatalf("HTTP/%d, want %d", res.ProtoMajor, want)
				}
				_, _ = io.CopyN(io.Discard, res.Body, 1<<20)
				leave()
				res.Body.Close()

				time.Sleep(500 * time.Millisecond)
				again, err := h.Get(target)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(again.Body)
				again.Body.Close()
				if err != nil || string(got) != body {
					t.Errorf("the second client got %d bytes of %d, %v", len(got), size, err)
				}
				eventually(t, "no fetch and no temporary file is left", func() bool {
					return !slices.ContainsFunc(c.cacheFiles(), func(f string) bool { return strings.HasSuffix(f, ".tmp") })
				})
				gone.Wait()
			})
		}
	}
}

// H11, other side: a fill that is nearly done is finished and kept.
func TestH11_NearlyDoneIsFinished(t *testing.T) {
	body := testBody("H11", 3<<20)
	proceed := make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body[:2<<20])
		_ = http.NewResponseController(w).Flush()
		<-proceed
		_, _ = io.WriteString(w, body[2<<20:])
	})
	t.Cleanup(sync.OnceFunc(func() {
		select {
		case <-proceed:
		default:
			close(proceed) // lets the origin end when the test has failed
		}
	}))
	c := start(t, site(o))
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, c.url("/f"), nil)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 2<<20-64<<10)); err != nil {
		t.Fatal(err)
	}
	leave()
	res.Body.Close()
	time.Sleep(200 * time.Millisecond)
	close(proceed)
	eventually(t, "the fill is finished", func() bool { return c.get("/f").hit() })
	c.get("/f").want(t, 200, body)
}

// H19: what is in the key.
func TestH19_Key(t *testing.T) {
	echo := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			fmt.Fprintf(w, "%s %s%s", name, r.Host, r.RequestURI)
		}
	}
	t.Run("a_scheme", func(t *testing.T) {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			if r.Header.Get("X-Forwarded-Proto") == "http" {
				http.Redirect(w, r, "https://"+r.Host+r.RequestURI, http.StatusMovedPermanently)
				return
			}
			_, _ = io.WriteString(w, "secure")
		})
		tlsPort := freePort(t)
		c := start(t, strings.NewReplacer("ORIGIN", o.addr(), "TLS", strconv.Itoa(tlsPort)).Replace(`(cached) {
	route {
		fastcache {
			path {dir}/cache
			cache_status_key
		}
		reverse_proxy ORIGIN
	}
}
http://localhost:{port} {
	import cached
}
https://localhost:TLS {
	tls internal
	import cached
}
`))
		h := newTLSClient(t, tlsPort)
		for range 2 {
			r := c.get("/", "Host: localhost")
			if r.StatusCode != http.StatusMovedPermanently {
				t.Fatalf("http: status %d", r.StatusCode)
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://localhost:%d/", tlsPort), nil)
			req.Host = "localhost"
			res, err := h.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != 200 || string(body) != "secure" {
				t.Fatalf("https: %d %q: the redirect was served on https", res.StatusCode, body)
			}
		}
		o.wantAsked(t, 2)
	})
	for _, paths := range []string{"same", "distinct"} {
		t.Run("b_handle_path_"+paths, func(t *testing.T) {
			o1, o2 := newOrigin(t, echo("o1")), newOrigin(t, echo("o2"))
			second := "P"
			if paths == "distinct" {
				second = "Q"
			}
			c := start(t, fmt.Sprintf(`http://:{port} {
	handle_path /c1/* {
		fastcache {
			path {dir}/P
		}
		reverse_proxy %s
	}
	handle_path /c2/* {
		fastcache {
			path {dir}/%s
		}
		reverse_proxy %s
	}
}
`, o1.addr(), second, o2.addr()))
			for range 2 {
				if r := c.get("/c1/f"); !strings.HasPrefix(r.body, "o1 ") {
					t.Errorf("/c1/f: %q", r.body)
				}
				if r := c.get("/c2/f"); !strings.HasPrefix(r.body, "o2 ") {
					t.Errorf("/c2/f: %q", r.body)
				}
			}
			o1.wantAsked(t, 1)
			o2.wantAsked(t, 1)
		})
	}
	t.Run("c_hosts", func(t *testing.T) {
		o := newOrigin(t, echo("o"))
		c := start(t, site(o))
		for range 2 {
			c.get("/x", "Host: a.example").want(t, 200, "o a.example/x")
			c.get("/x", "Host: b.example").want(t, 200, "o b.example/x")
		}
		o.wantAsked(t, 2)
		for _, alias := range []string{"A.Example", "a.example.", "a.example:80"} {
			c.get("/x", "Host: "+alias).wantStatus(t, "fastcache; hit")
		}
		c.get("/x", "Host: a.example:8080").want(t, 200, "o a.example:8080/x")
	})
	t.Run("d_uris", func(t *testing.T) {
		o := newOrigin(t, echo("o"))
		c := start(t, site(o))
		uris := []string{"/a", "/a?", "/a?x=1", "/a?x=1&y=2", "/a?y=2&x=1", "/a%2Fb", "/a/b", "/a%2fb", "//a", "/a/", "/A", "/a;x", "/a?x=1;y=2", "/a?%zz"}
		for range 2 {
			for _, uri := range uris {
				r := c.get(uri)
				if r.StatusCode == 200 && r.body != "o 127.0.0.1:"+strconv.Itoa(c.port)+uri {
					t.Errorf("%s was answered with %q", uri, r.body)
				}
			}
		}
	})
	t.Run("rewrite", func(t *testing.T) {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = io.WriteString(w, r.Header.Get("X-Original"))
		})
		c := start(t, `http://:{port} {
	rewrite * /index.php
	fastcache {
		path {dir}/cache
	}
	reverse_proxy `+o.addr()+` {
		header_up X-Original {http.request.orig_uri}
	}
}
`)
		for range 2 {
			c.get("/2018/a/").want(t, 200, "/2018/a/")
			c.get("/2018/b/").want(t, 200, "/2018/b/")
		}
		o.wantAsked(t, 2)
	})
}

// H19: behind a proxy that is trusted, its word on scheme and host counts, for the
// key and for the origin; nobody else's does.
func TestH19_TrustedProxy(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "%s://%s", r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-Host"))
	})
	https := []string{"Host: inner", "X-Forwarded-Proto: https", "X-Forwarded-Host: outer.example"}
	t.Run("trusted", func(t *testing.T) {
		c := start(t, "{\n\tservers {\n\t\ttrusted_proxies static 127.0.0.1/32\n\t}\n}\n"+site(o, "cache_status_key"))
		for range 2 {
			r := c.get("/f", https...).want(t, 200, "https://outer.example")
			if !strings.Contains(r.cacheStatus(), `key="https://outer.example/f"`) {
				t.Errorf("Cache-Status %s", r.cacheStatus())
			}
			c.get("/f", "Host: inner", "X-Forwarded-Proto: http", "X-Forwarded-Host: outer.example").want(t, 200, "http://outer.example")
			c.get("/f", "Host: inner").want(t, 200, "http://inner")
		}
		o.wantAsked(t, 3)
		// A purge by its own name of the host is for what came by the other.
		c.do("PURGE", "/f", https...).want(t, 200, "{\"purged\":2}\n")
	})
	t.Run("not trusted", func(t *testing.T) {
		c := start(t, site(o))
		c.get("/g", https...).want(t, 200, "http://inner")
		c.get("/g", "Host: inner").want(t, 200, "http://inner").wantStatus(t, "fastcache; hit")
	})
}

// H21: private data stays private.
func TestH21_Private(t *testing.T) {
	t.Run("set-cookie", func(t *testing.T) {
		var n atomic.Int64
		o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
			i := n.Add(1)
			w.Header().Set("Cache-Control", "public, max-age=60")
			w.Header().Set("Set-Cookie", fmt.Sprintf("sid=%d", i))
			fmt.Fprint(w, i)
		})
		c := start(t, site(o))
		for i := 1; i <= 3; i++ {
			r := c.get("/").want(t, 200, strconv.Itoa(i)).wantStatus(t, "fastcache; fwd=uri-miss; detail=set-cookie")
			if got := r.Header.Get("Set-Cookie"); got != fmt.Sprintf("sid=%d", i) {
				t.Errorf("client %d got the cookie %q", i, got)
			}
		}
	})
	t.Run("private", func(t *testing.T) {
		// Coalesced or not, nobody sees another's.
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(100 * time.Millisecond)
			w.Header().Set("Cache-Control", "private, max-age=60")
			_, _ = io.WriteString(w, r.Header.Get("X-User"))
		})
		c := start(t, site(o))
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				user := strconv.Itoa(i)
				c.get("/", "X-User: "+user).want(t, 200, user)
			})
		}
		wg.Wait()
		c.get("/", "X-User: x").wantStatus(t, "fastcache; fwd=uri-miss; detail=private")
	})
	t.Run("authorization", func(t *testing.T) {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			cc := "max-age=60"
			if r.URL.Path == "/public" {
				cc = "public, max-age=60"
			}
			w.Header().Set("Cache-Control", cc)
			_, _ = io.WriteString(w, cmp.Or(r.Header.Get("Authorization"), "anonymous"))
		})
		c := start(t, site(o))
		for range 2 {
			c.get("/", "Authorization: Bearer a").want(t, 200, "Bearer a").wantStatus(t, "fastcache; fwd=uri-miss; detail=auth")
		}
		c.get("/").want(t, 200, "anonymous")
		c.get("/").want(t, 200, "anonymous").wantStatus(t, "fastcache; hit")
		c.get("/", "Authorization: Bearer b").want(t, 200, "Bearer b")
		c.get("/").want(t, 200, "anonymous").wantStatus(t, "fastcache; hit")
		c.get("/public", "Authorization: Bearer a").want(t, 200, "Bearer a")
		c.get("/public", "Authorization: Bearer b").want(t, 200, "Bearer a").wantStatus(t, "fastcache; hit") // the origin said so
	})
	t.Run("cookie-without-freshness", func(t *testing.T) {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, cmp.Or(r.Header.Get("Cookie"), "anonymous"))
		})
		c := start(t, site(o))
		c.get("/", "Cookie: u=1").want(t, 200, "u=1").wantStatus(t, "fastcache; fwd=uri-miss; detail=cookie")
		c.get("/").want(t, 200, "anonymous")
		c.get("/").wantStatus(t, "fastcache; hit")
		c.get("/", "Cookie: u=2").want(t, 200, "u=2")
	})
	t.Run("cookie-recipe", func(t *testing.T) {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60") // by Cookie, and does not say so
			_, _ = io.WriteString(w, cmp.Or(r.Header.Get("Cookie"), "anonymous"))
		})
		c := start(t, `http://:{port} {
	@anonymous not header Cookie *
	fastcache @anonymous {
		path {dir}/cache
	}
	reverse_proxy `+o.addr()+`
}
`)
		c.get("/").want(t, 200, "anonymous")
		c.get("/", "Cookie: u=1").want(t, 200, "u=1")
		c.get("/").want(t, 200, "anonymous").wantStatus(t, "fastcache; hit")
	})
}

// H24: purge really purges.
func TestH24_Purge(t *testing.T) {
	release := make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=2, stale-while-revalidate=60, stale-if-error=60")
		w.Header().Set("Vary", "X-V")
		if r.URL.Path == "/slow" {
			_, _ = io.WriteString(w, "half ")
			_ = http.NewResponseController(w).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "v"+r.Header.Get("X-V"))
	})
	c := start(t, site(o))
	variants := []string{"1", "2", "3"}
	prime := func() {
		for _, v := range variants {
			c.get("/p", "X-V: "+v).want(t, 200, "v"+v)
		}
	}
	prime()
	for _, v := range variants {
		c.get("/p", "X-V: "+v).wantStatus(t, "fastcache; hit")
	}
	o.wantAsked(t, 3)
	c.do("PURGE", "/p").want(t, 200, "{\"purged\":3}\n").wantStatus(t, "fastcache; detail=purged")
	prime()
	o.wantAsked(t, 6)

	// Inside the stale windows there is nothing left either.
	time.Sleep(2500 * time.Millisecond)
	c.do("PURGE", "/p").want(t, 200, "{\"purged\":3}\n")
	for _, v := range variants {
		c.get("/p", "X-V: "+v).wantStatus(t, "fastcache; fwd=")
	}
	c.do("PURGE", "/p")
	c.do("PURGE", "/p").want(t, 404, "{\"purged\":0}\n").wantStatus(t, "fastcache; detail=purge-miss")

	// Nor after a restart.
	prime()
	c.do("PURGE", "/p").want(t, 200, "{\"purged\":3}\n")
	c.stop()
	c.run(site(o))
	before := o.asked()
	c.get("/p", "X-V: 1").wantStatus(t, "fastcache; fwd=uri-miss")
	o.wantAsked(t, before+1)

	// And right after a restart, before the index is rebuilt, a purge counts.
	c.stop()
	c.run(site(o))
	c.do("PURGE", "/p").want(t, 200, "{\"purged\":1}\n")

	// What is in flight is delivered, not stored.
	done := make(chan *response)
	go func() { done <- c.get("/slow") }()
	eventually(t, "the slow fetch is under way", func() bool { return slices.Contains(o.log(), "GET /slow") })
	c.do("PURGE", "/slow").want(t, 404, "{\"purged\":0}\n")
	close(release)
	(<-done).want(t, 200, "half v")
	c.get("/slow").wantStatus(t, "fastcache; fwd=uri-miss")
	c.get("/slow").wantStatus(t, "fastcache; hit")

	// A purge by one name of the host drops it under every scheme and port.
	c.get("/p", "Host: site.example", "X-V: 1")
	c.get("/p", "Host: site.example:8443", "X-V: 1")
	c.do("PURGE", "/p", "Host: SITE.example").want(t, 200, "{\"purged\":2}\n")
}

// H24: who may purge.
func TestH24_WhoMayPurge(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
	})
	t.Run("foreign peer", func(t *testing.T) {
		// 127.0.0.1 is not in the list, whatever it claims to forward for.
		c := start(t, site(o, "purge_allow 10.0.0.0/8"))
		c.get("/p")
		r := c.do("PURGE", "/p", "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "X-Real-IP: 10.0.0.1")
		if r.StatusCode != http.StatusForbidden {
			t.Errorf("status %d", r.StatusCode)
		}
		r.wantStatus(t, "fastcache; fwd=request; detail=purge-denied")
		c.get("/p").wantStatus(t, "fastcache; hit")
	})
	t.Run("not loopback", func(t *testing.T) {
		addr := otherLocalAddress(t)
		c := start(t, site(o))
		c.get("/p", "Host: x")
		dial := func(local string) int {
			tr := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}).DialContext}
			defer tr.CloseIdleConnections()
			req, _ := http.NewRequestWithContext(t.Context(), "PURGE", fmt.Sprintf("http://%s:%d/p", local, c.port), nil)
			req.Host = "x"
			req.Header.Set("X-Forwarded-For", "127.0.0.1")
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		if code := dial(addr); code != http.StatusForbidden {
			t.Errorf("PURGE from %s: %d", addr, code)
		}
		if code := dial("127.0.0.1"); code != http.StatusOK {
			t.Errorf("PURGE from loopback: %d", code)
		}
	})
}

// otherLocalAddress is an address of this machine that is not loopback. The
// connection to it never leaves the machine.
func otherLocalAddress(t *testing.T) string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Skip("no list of addresses:", err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// H26: configuration.
func TestH26_Config(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "%s %s", r.RequestURI, r.Header.Get("X-A"))
	})
	t.Run("caddyfile and json", func(t *testing.T) {
		config := site(o, "cache_key {http.request.host}{http.request.uri.path}?l={query.lang}&a={http.request.header.X-A}")
		for _, form := range []string{"caddyfile", "json"} {
			c := start(t, config)
			if form == "json" {
				out := runCaddy(t, "adapt", "--config", filepath.Join(c.dir, "Caddyfile"))
				res, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/load", c.admin), "application/json", bytes.NewReader(out))
				if err != nil || res.StatusCode != 200 {
					t.Fatal(err, res)
				}
				res.Body.Close()
			}
			before := o.asked()
			c.get("/x?lang=en&utm=1", "X-A: 1").want(t, 200, "/x?lang=en&utm=1 1")
			c.get("/x?lang=en&utm=2", "X-A: 1").want(t, 200, "/x?lang=en&utm=1 1").wantStatus(t, "fastcache; hit")
			c.get("/x?lang=de", "X-A: 1").want(t, 200, "/x?lang=de 1")
			c.get("/x?lang=en", "X-A: 2").want(t, 200, "/x?lang=en 2")
			if n := o.asked() - before; n != 3 {
				t.Errorf("%s: %d fetches, want 3", form, n)
			}
		}
	})
	t.Run("errors", func(t *testing.T) {
		for option, want := range map[string]string{
			"colour red":         `Caddyfile:6`,
			"memory_size 10XB":   `memory_size: "10XB" is not a size`,
			"ttl 1h\n\t\tttl 2h": "ttl is given twice",
		} {
			dir := t.TempDir()
			file := filepath.Join(dir, "Caddyfile")
			text := "{\n\tauto_https off\n}\nhttp://:1 {\n\tfastcache {\n\t\t" + option + "\n\t}\n}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out := strings.ReplaceAll(string(runCaddyFails(t, "validate", "--config", file)), `\"`, `"`)
			if !strings.Contains(out, want) || !strings.Contains(out, "Caddyfile:") {
				t.Errorf("%q: caddy says %s\nwant %q", option, out, want)
			}
		}
	})
	t.Run("order", func(t *testing.T) {
		// No order line; a responder in front of the cache stays in front.
		c := start(t, `http://:{port} {
	@bot header User-Agent *bot*
	respond @bot 403
	fastcache {
		path {dir}/cache
	}
	reverse_proxy `+o.addr()+`
}
`)
		c.get("/order").want(t, 200, "/order ")
		c.get("/order").wantStatus(t, "fastcache; hit")
		c.get("/order", "User-Agent: a bot here").want(t, 403, "")
	})
	t.Run("both budgets 0", func(t *testing.T) {
		c := start(t, site(o, "memory_size 0", "disk_size 0"))
		before := o.asked()
		for range 3 {
			c.get("/off").want(t, 200, "/off ")
		}
		o.wantAsked(t, before+3)
		if _, err := os.Stat(filepath.Join(c.dir, "cache")); err == nil {
			t.Error("a cache that stores nothing made a directory")
		}
	})
	t.Run("two instances", func(t *testing.T) {
		c := start(t, fmt.Sprintf(`http://:{port} {
	route /live/* {
		fastcache {
			path {dir}/a
			disk_size 0
		}
		reverse_proxy %[1]s
	}
	route {
		fastcache {
			path {dir}/b
			memory_size 0
		}
		reverse_proxy %[1]s
	}
}
`, o.addr()))
		for _, uri := range []string{"/live/x", "/file"} {
			c.get(uri)
			c.get(uri).wantStatus(t, "fastcache; hit")
		}
		if _, err := os.Stat(filepath.Join(c.dir, "a")); err == nil {
			t.Error("the RAM-only instance made a directory")
		}
	})
}

// A nested second block must not wait for the first one's fetch.
func TestNestedBlocks(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "x")
	})
	c := start(t, `http://:{port} {
	route {
		fastcache {
			path {dir}/cache
		}
		fastcache {
			path {dir}/cache
		}
		reverse_proxy `+o.addr()+`
	}
}
`)
	begin := time.Now()
	c.get("/").want(t, 200, "x")
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("the request took %v", d)
	}
	c.get("/").want(t, 200, "x").wantStatus(t, "fastcache; hit")
}

// A request with bytes that no client library sends.
func TestRawRequests(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "%s %s", r.Host, r.RequestURI)
	})
	c := start(t, site(o))
	send := func(head string) string {
		r := c.raw(t, head)
		if r == nil {
			return "error"
		}
		return fmt.Sprintf("%d %s", r.StatusCode, r.body)
	}
	// Absolute form: one effective host, for the key and for the origin.
	for range 2 {
		if got := send("GET http://evil.example/x HTTP/1.1\r\nHost: good.example\r\n\r\n"); got != "200 evil.example /x" {
			t.Errorf("absolute form: %q", got)
		}
		if got := send("GET /x HTTP/1.1\r\nHost: good.example\r\n\r\n"); got != "200 good.example /x" {
			t.Errorf("after an absolute form: %q", got)
		}
	}
	o.wantAsked(t, 2)
	// A fragment, a body and a method override keep away from the store.
	for _, head := range []string{
		"GET /x#y HTTP/1.1\r\nHost: good.example\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: good.example\r\nContent-Length: 1\r\n\r\nz",
		"GET /x HTTP/1.1\r\nHost: good.example\r\nX-HTTP-Method-Override: DELETE\r\n\r\n",
	} {
		before := o.asked()
		got := send(head)
		if strings.HasPrefix(got, "200") && o.asked() == before {
			t.Errorf("%q was answered from the store", head)
		}
	}
}

// tlsSite is site over TLS, for HTTP/2.
func tlsSite(o *origin) string {
	return strings.Replace(strings.Replace(site(o), "http://:{port}", "https://localhost:{port}", 1), "route {", "tls internal\n\troute {", 1)
}

// newTLSClient speaks HTTP/2 and trusts any certificate. Caddy makes the one for
// the port after it has begun to listen: newTLSClient waits until it is there.
func newTLSClient(t *testing.T, port int) *http.Client {
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a test's own server
	eventually(t, "Caddy has a certificate", func() bool {
		conn, err := tls.Dial("tcp", fmt.Sprintf("localhost:%d", port), config)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}
