package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A server is warm once it answers without the origin, and only with the right bytes.
func TestWarm(t *testing.T) {
	b := newBodies([]int{512})
	for _, test := range []struct {
		name    string
		stored  []byte // what the cache answers once it has stored
		after   int64  // fetches until it has
		fetches int64
		err     string
	}{
		{"stored at once", b[512], 1, 2, ""},
		{"stored a moment later", b[512], 3, 4, ""},
		{"wrong bytes", append([]byte("x"), b[512][1:]...), 1, 2, "wrong body"},
		{"cut short", b[512][:511], 1, 2, "wrong body"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var o origin
			var fetches atomic.Int64
			cache := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/b/512" {
					t.Errorf("asked for %s", r.URL)
				}
				body := test.stored
				if fetches.Add(1) <= test.after {
					o.asked.Add(1)
					body = b[512]
				}
				_, _ = w.Write(body)
			}))
			defer cache.Close()
			err := warm(t.Context(), &server{contender: contender{name: "cache"}, url: cache.URL}, &o, b, 512)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if got := fetches.Load(); got != test.fetches {
				t.Errorf("%d fetches, want %d", got, test.fetches)
			}
		})
	}
}

// The origin counts, and has what newBodies makes.
func TestOrigin(t *testing.T) {
	b := newBodies([]int{512, 4096})
	o, err := startOrigin(b)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for _, size := range []int{512, 4096} {
		got, err := fetch(t.Context(), http.DefaultClient, "http://"+o.addr+urlPath(size)+"?unique")
		if err != nil || string(got) != string(b[size]) {
			t.Errorf("%d: %d bytes, %v", size, len(got), err)
		}
	}
	if _, err := fetch(t.Context(), http.DefaultClient, "http://"+o.addr+"/b/513"); err == nil {
		t.Error("a size that it does not have is answered")
	}
	if got := o.asked.Load(); got != 3 {
		t.Errorf("it counted %d requests, want 3", got)
	}
}

func TestServeBare_LoopbackOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // one that would listen ends at once, without an error
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:80"} {
		if err := serveBare(ctx, addr, []int{512}); err == nil {
			t.Errorf("%s: no error", addr)
		}
	}
}
