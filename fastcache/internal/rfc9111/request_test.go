package rfc9111_test

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestBypass_Request(t *testing.T) {
	const none, bypass = rfc9111.FwdNone, rfc9111.FwdBypass
	tests := []struct {
		name   string
		method string
		lines  []string
		fwd    rfc9111.Fwd
		reason rfc9111.Reason
	}{
		{"GET", "GET", nil, none, rfc9111.ReasonNone},
		{"HEAD", "HEAD", nil, none, rfc9111.ReasonNone},
		{"lower case is another method", "get", nil, rfc9111.FwdMethod, rfc9111.ReasonMethod},
		{"POST", "POST", nil, rfc9111.FwdMethod, rfc9111.ReasonMethod},
		{"OPTIONS", "OPTIONS", nil, rfc9111.FwdMethod, rfc9111.ReasonMethod},
		{"unknown", "M-SEARCH", nil, rfc9111.FwdMethod, rfc9111.ReasonMethod},
		{"CONNECT", "CONNECT", nil, bypass, rfc9111.ReasonUpgrade},
		{"3.5 authorization", "GET", []string{"Authorization: a"}, none, rfc9111.ReasonNone},
		{"cookie", "GET", []string{"Cookie: a=b"}, none, rfc9111.ReasonNone},
		{"range", "GET", []string{"Range: bytes=0-", `If-Range: "a"`}, none, rfc9111.ReasonNone},
		{"conditions for caches", "GET", []string{`If-None-Match: "a"`, "If-Modified-Since: " + date(0)}, none, rfc9111.ReasonNone},
		{"4.3.2 If-Match", "GET", []string{`If-Match: "a"`}, bypass, rfc9111.ReasonConditional},
		{"4.3.2 If-Unmodified-Since", "GET", []string{"If-Unmodified-Since: " + date(0)}, bypass, rfc9111.ReasonConditional},
		{"proxy authorization", "GET", []string{"Proxy-Authorization: a"}, bypass, rfc9111.ReasonAuth},
		{"upgrade field", "GET", []string{"Upgrade: websocket"}, bypass, rfc9111.ReasonUpgrade},
		{"upgrade, as Firefox sends it", "GET", []string{"Connection: keep-alive, Upgrade"}, bypass, rfc9111.ReasonUpgrade},
		{"keep-alive", "GET", []string{"Connection: keep-alive"}, none, rfc9111.ReasonNone},
		{"upgrade with another method", "POST", []string{"Upgrade: x"}, rfc9111.FwdMethod, rfc9111.ReasonMethod},
		{"h2c is an offer, no upgrade", "GET", []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"}, none, rfc9111.ReasonNone},
		{"insecure requests are no upgrade", "GET", []string{"Upgrade-Insecure-Requests: 1"}, none, rfc9111.ReasonNone},
		{"method override", "GET", []string{"X-HTTP-Method-Override: DELETE"}, bypass, rfc9111.ReasonOverride},
		{"method override 2", "GET", []string{"X-HTTP-Method: DELETE"}, bypass, rfc9111.ReasonOverride},
		{"method override 3", "HEAD", []string{"X-Method-Override: DELETE"}, bypass, rfc9111.ReasonOverride},
		{"URL override", "GET", []string{"X-Original-URL: /admin"}, bypass, rfc9111.ReasonOverride},
		{"URL override 2", "GET", []string{"X-Rewrite-URL: /admin"}, bypass, rfc9111.ReasonOverride},
		{"empty override", "GET", []string{"X-Rewrite-URL:"}, bypass, rfc9111.ReasonOverride},
		{"events", "GET", []string{"Accept: text/event-stream"}, bypass, rfc9111.ReasonEventStream},
		{"events in a list", "GET", []string{"Accept: application/json, Text/Event-Stream;q=0.9"}, bypass, rfc9111.ReasonEventStream},
		{"events alike", "GET", []string{"Accept: text/event-streams, application/octet-stream"}, none, rfc9111.ReasonNone},
		{"events on the second line", "GET", []string{"Accept: a-", "Accept: application/signed-exchange;v=b3, TEXT/EVENT-STREAM"}, bypass, rfc9111.ReasonEventStream},
		{"anything", "GET", []string{"Accept: text/*, */*"}, none, rfc9111.ReasonNone},
		{"gRPC", "GET", []string{"Content-Type: application/grpc+proto"}, bypass, rfc9111.ReasonUpgrade},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fwd, reason := rfc9111.Bypass(&http.Request{Method: tt.method, Header: header(tt.lines...)})
			if fwd != tt.fwd || reason != tt.reason {
				t.Errorf("%q, %q, want %q, %q", fwd, reason, tt.fwd, tt.reason)
			}
		})
	}
}

func TestBypass_Body(t *testing.T) {
	body := io.NopCloser(strings.NewReader(""))
	tests := []struct {
		name string
		r    http.Request
		want rfc9111.Reason
	}{
		{"none", http.Request{}, rfc9111.ReasonNone},
		{"NoBody", http.Request{Body: http.NoBody}, rfc9111.ReasonNone},
		{"length", http.Request{ContentLength: 1, Body: body}, rfc9111.ReasonRequestBody},
		{"length of 0", http.Request{Body: body}, rfc9111.ReasonNone},
		{"chunked", http.Request{ContentLength: -1, TransferEncoding: []string{"chunked"}, Body: body}, rfc9111.ReasonRequestBody},
		{"unknown", http.Request{ContentLength: -1, Body: body}, rfc9111.ReasonRequestBody},
		{"unknown, but found to be none", http.Request{ContentLength: -1, Body: http.NoBody}, rfc9111.ReasonNone},
	}
	for _, tt := range tests {
		for _, method := range []string{"GET", "HEAD"} {
			tt.r.Method, tt.r.Header = method, header()
			if _, got := rfc9111.Bypass(&tt.r); got != tt.want {
				t.Errorf("%s %s: %q, want %q", method, tt.name, got, tt.want)
			}
		}
	}
}

func TestOriginHeader_RFC9110_7_6_1(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
		same  bool
	}{
		{"nothing", []string{"Accept: x"}, []string{"Accept: x"}, true},
		{"keep-alive", []string{"Connection: keep-alive", "Keep-Alive: 5", "Proxy-Connection: keep-alive"}, []string{"Connection: keep-alive", "Keep-Alive: 5", "Proxy-Connection: keep-alive"}, true},
		{"close", []string{"Connection: Close,, "}, []string{"Connection: Close,, "}, true},
		{"nominated", []string{"Connection: keep-alive, authorization", "Connection: X-Tenant", "Authorization: a", "X-Tenant: b", "Accept: c"}, []string{"Accept: c"}, false},
		{"nominated and absent", []string{"Connection: x-a"}, nil, false},
		{"of the connection", []string{"TE: trailers", "Trailer: a", "Transfer-Encoding: chunked", "Upgrade: x", "Proxy-Authorization: a", "Keep-Alive: 1", "A: b"}, []string{"A: b"}, false},
		{"nominated in quotes is not a name", []string{`Connection: "a"`, "A: b"}, []string{"A: b"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := header(tt.lines...)
			got := rfc9111.OriginHeader(h)
			if diff := cmp.Diff(header(tt.want...), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(header(tt.lines...), h); diff != "" {
				t.Errorf("the argument changed:\n%s", diff)
			}
			got["Mark"] = nil
			if _, same := h["Mark"]; same != tt.same {
				t.Errorf("returned its argument: %v, want %v", same, tt.same)
			}
		})
	}
}

func TestRequest_Allocs(t *testing.T) {
	r := &http.Request{Method: "GET", Header: header(
		"Connection: keep-alive", "Accept: text/html, */*;q=0.8", "Accept-Encoding: gzip", "User-Agent: x", "Cookie: a=b")}
	noAllocs(t, "Bypass", func() { _, _ = rfc9111.Bypass(r) })
	noAllocs(t, "OriginHeader", func() { _ = rfc9111.OriginHeader(r.Header) })
}

func FuzzOriginHeader(f *testing.F) {
	f.Add("keep-alive, a", "b")
	f.Add(`",a`, "\x00")
	f.Fuzz(func(t *testing.T, connection, accept string) {
		h := header("Connection:"+connection, "Accept:"+accept, "A: 1")
		before := maps.Clone(h)
		got := rfc9111.OriginHeader(h)
		if !cmp.Equal(before, h) {
			t.Error("the argument changed")
		}
		for name := range got {
			if _, ok := h[name]; !ok {
				t.Errorf("%q is new", name)
			}
		}
		_, _ = rfc9111.Bypass(&http.Request{Method: "GET", Header: h})
	})
}

func BenchmarkBypass(b *testing.B) {
	r := &http.Request{Method: "GET", Header: header(
		"Connection: keep-alive", "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Encoding: gzip, deflate, br, zstd", "User-Agent: x")}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = rfc9111.Bypass(r)
	}
}

func BenchmarkOriginHeader(b *testing.B) {
	h := header("Connection: keep-alive", "Accept: */*", "Accept-Encoding: gzip, deflate, br, zstd", "User-Agent: x")
	b.ReportAllocs()
	for b.Loop() {
		_ = rfc9111.OriginHeader(h)
	}
}
