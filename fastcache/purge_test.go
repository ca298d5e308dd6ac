package fastcache

import (
	"bufio"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestKeyOfURL(t *testing.T) {
	rules := &rfc9111.QueryRules{Sort: true, Ignore: []string{"utm_*"}}
	tests := []struct {
		fc   FastCache
		url  string
		want string // empty: none
	}{
		{FastCache{}, "http://example.com/a?b", "http://example.com/a?b"},
		{FastCache{}, "https://EXAMPLE.com.:443/", "https://example.com/"},
		{FastCache{}, "HTTP://example.com:8080", "http://example.com:8080/"},
		{FastCache{}, "http://example.com?x", "http://example.com/?x"},
		{FastCache{}, "http://[::1]:81/a", "http://[::1]:81/a"},
		{FastCache{}, "http://example.com//a/../b%2Fc%zz", ""}, // net/http refuses it too
		{FastCache{}, "http://example.com//a/../b%2fc", "http://example.com//a/../b%2fc"},
		{FastCache{}, "http://example.com/?a=%zz;b&&c", "http://example.com/?a=%zz;b&&c"},
		{FastCache{query: rules}, "http://example.com/?b=1&utm_x=2&a=3", "http://example.com/?a=3&b=1"},
		{FastCache{}, "http://example.com/a#b", ""},
		{FastCache{}, "http://example.com/#", ""},
		{FastCache{}, "http://user:pw@example.com/", ""},
		{FastCache{}, "ftp://example.com/", ""},
		{FastCache{}, "//example.com/", ""},
		{FastCache{}, "/a", ""},
		{FastCache{}, "http:///a", ""},
		{FastCache{}, "http:a", ""},
		{FastCache{}, "http://exa mple.com/", ""},
		{FastCache{}, "http://example.com/a b", ""},
		{FastCache{}, "http://example.com/\r\nX: y", ""},
		{FastCache{}, "", ""},
		{FastCache{CacheKey: "x", keyTemplate: "{http.request.scheme}|{http.request.host}|{http.request.uri.path}|{http.request.uri.query.l}"}, "https://example.com/a%20b?l=de&m=1", "https|example.com|/a b|de"},
		{FastCache{CacheKey: "x", keyTemplate: "{http.request.header.X-A}|{http.request.orig_uri}"}, "http://example.com?q", "|/?q"},
	}
	for _, tt := range tests {
		key, ok := tt.fc.keyOfURL(t.Context(), tt.url, nil)
		if key != tt.want || ok != (tt.want != "") {
			t.Errorf("%q with template %q: %q, %v, want %q", tt.url, tt.fc.keyTemplate, key, ok, tt.want)
		}
	}
	withHeader := FastCache{CacheKey: "x", keyTemplate: "{http.request.header.X-A}{http.request.uri}"}
	if key, _ := withHeader.keyOfURL(t.Context(), "http://h/a", http.Header{"X-A": {"v"}}); key != "v/a" {
		t.Errorf("with a header: %q", key)
	}
}

// The key that a URL has by itself is the key of a request for it, whatever bytes
// it is made of.
func FuzzKeyOfURL(f *testing.F) {
	f.Add("http", "example.com", "/a?b=1&a=2")
	f.Add("https", "[::1]:443", "/%2F;x//?&=")
	f.Add("http", "h", "?")
	f.Fuzz(func(t *testing.T, scheme, host, uri string) {
		for _, fc := range []*FastCache{
			{},
			{query: &rfc9111.QueryRules{Sort: true, Ignore: []string{"a"}}},
			{CacheKey: "x", keyTemplate: "{http.request.scheme} {http.request.hostport} {http.request.orig_uri} {http.request.uri.query.a}"},
		} {
			got, ok := fc.keyOfURL(t.Context(), scheme+"://"+host+uri, nil)
			if !ok {
				continue
			}
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + uri + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")))
			if err != nil || r.Host != host || r.RequestURI != uri || uri[0] != '/' || strings.ContainsAny(host, "/?") {
				continue // a server would refuse the request, or the URL falls into other parts
			}
			if scheme == "https" {
				r.TLS = new(tls.ConnectionState)
			}
			key, ok := fc.appendKey(nil, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil))
			if ok && scheme == strings.ToLower(scheme) && string(key) != got {
				t.Errorf("%q: key %q, a request has %q", scheme+"://"+host+uri, got, key)
			}
		}
	})
}

func TestMatchPrefix(t *testing.T) {
	keys := []string{
		"http://example.com/",
		"http://example.com/img/a",
		"https://example.com/img/b?x",
		"https://example.com:8443/img/c",
		"http://example.com.evil/img/d",
		"http://other.example/img/e",
		"http://other.example/?u=http://example.com/img/",
		"http://[::1]:8080/img/f",
		"example.com/img/g", // of a template
		"/img/h",
		"http|example.com|/img/i",
	}
	tests := []struct {
		prefix string
		want   []int
	}{
		{"http://example.com/img/", []int{1, 2, 3}},
		{"https://EXAMPLE.com:444/img/", []int{1, 2, 3}},
		{"https://example.com./img/b", []int{2}},
		{"http://example.com", []int{0, 1, 2, 3}},
		{"http://example.co", nil},
		{"http://example.com?", nil},
		{"http://[::1]/", []int{7}},
		{"http://", nil},
		{"/img/", []int{1, 2, 3, 4, 5, 7, 9}},
		{"/", []int{0, 1, 2, 3, 4, 5, 6, 7, 9}},
		{"example.com/", []int{8}},
		{"http|", []int{10}},
		{"img", nil},
	}
	for _, tt := range tests {
		match := matchPrefix(tt.prefix)
		var got []int
		for i, key := range keys {
			if match(key) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q selects %v, want %v", tt.prefix, got, tt.want)
		}
	}
}

func TestWantsSoft(t *testing.T) {
	tests := []struct {
		lines    []string
		soft, ok bool
	}{
		{nil, false, true},
		{[]string{"hard"}, false, true},
		{[]string{"soft"}, true, true},
		{[]string{"Soft"}, true, true},
		{[]string{""}, false, false},
		{[]string{"sotf"}, false, false},
		{[]string{"soft, hard"}, false, false},
		{[]string{"soft", "soft"}, false, false},
	}
	for _, tt := range tests {
		h := http.Header{}
		if tt.lines != nil {
			h[purgeField] = tt.lines
		}
		if soft, ok := wantsSoft(h); soft != tt.soft || ok != tt.ok {
			t.Errorf("%q: %v, %v", tt.lines, soft, ok)
		}
	}
}

// Whatever a PURGE request says, it gets one of the answers that are documented.
func FuzzServePurge(f *testing.F) {
	f.Add("example.com", "/a?b", "soft", "127.0.0.1:1")
	f.Add("h:x", "*", "", "[::1]:1")
	f.Add("", "http://h/a#b", "hard", "@")
	f.Fuzz(func(t *testing.T, host, uri, field, remote string) {
		r := httptest.NewRequest(methodPurge, "/", nil)
		r.Host, r.RequestURI, r.RemoteAddr = host, uri, remote
		r.Header[purgeField] = []string{field}
		w := httptest.NewRecorder()
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil)
		fc := &FastCache{off: true, logger: zap.NewNop(), tally: newTally()}
		seen := fc.observe(r)
		if err := fc.servePurge(w, r, &seen); err != nil {
			t.Fatal(err)
		}
		switch w.Code {
		case http.StatusNotFound, http.StatusBadRequest, http.StatusForbidden:
		default:
			t.Errorf("status %d", w.Code)
		}
		if len(w.Header()["Cache-Status"]) != 1 || w.Body.Len() == 0 {
			t.Errorf("%d without Cache-Status or body", w.Code)
		}
	})
}
