package rfc9111_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestCacheStatus_Append_RFC9211(t *testing.T) {
	tests := []struct {
		name   string
		status rfc9111.CacheStatus
		want   string
	}{
		{"zero", rfc9111.CacheStatus{}, `fastcache`},
		{"hit", rfc9111.CacheStatus{Hit: true, TTL: 37 * time.Second, HasTTL: true}, `fastcache; hit; ttl=37`},
		{"2.1 hit and fwd exclude each other", rfc9111.CacheStatus{Hit: true, Fwd: rfc9111.FwdStale, FwdStatus: 503, Stored: true, Collapsed: true}, `fastcache; hit`},
		{"miss stored", rfc9111.CacheStatus{Fwd: rfc9111.FwdURIMiss, Stored: true, TTL: time.Minute, HasTTL: true}, `fastcache; fwd=uri-miss; stored; ttl=60`},
		{"2.3 fwd-status", rfc9111.CacheStatus{Fwd: rfc9111.FwdStale, FwdStatus: 503, Detail: rfc9111.ReasonStaleError}, `fastcache; fwd=stale; fwd-status=503; detail=stale-error`},
		{"2.6 collapsed", rfc9111.CacheStatus{Fwd: rfc9111.FwdURIMiss, Collapsed: true}, `fastcache; fwd=uri-miss; collapsed`},
		{"fwd-status, stored, collapsed belong to fwd", rfc9111.CacheStatus{FwdStatus: 200, Stored: true, Collapsed: true}, `fastcache`},
		{"2.4 negative ttl", rfc9111.CacheStatus{Hit: true, TTL: -5*time.Second - 1, HasTTL: true}, `fastcache; hit; ttl=-5`},
		{"2.4 ttl is cut", rfc9111.CacheStatus{Hit: true, TTL: 1999 * time.Millisecond, HasTTL: true}, `fastcache; hit; ttl=1`},
		{"2.4 ttl 0", rfc9111.CacheStatus{Hit: true, HasTTL: true}, `fastcache; hit; ttl=0`},
		{"ttl without HasTTL", rfc9111.CacheStatus{Hit: true, TTL: time.Hour}, `fastcache; hit`},
		{"2.7 key", rfc9111.CacheStatus{Hit: true, Key: "https://a/b?c=d e"}, `fastcache; hit; key="https://a/b?c=d e"`},
		{"2.7 key escaped", rfc9111.CacheStatus{Hit: true, Key: `a"b\c`}, `fastcache; hit; key="a\"b\\c"`},
		{"2.7 key with a line break", rfc9111.CacheStatus{Hit: true, Key: "a\r\nSet-Cookie: x"}, `fastcache; hit`},
		{"2.7 key with UTF-8", rfc9111.CacheStatus{Hit: true, Key: "/ü"}, `fastcache; hit`},
		{"2.7 key with DEL", rfc9111.CacheStatus{Hit: true, Key: "/\x7f"}, `fastcache; hit`},
		{"2.8 detail alone", rfc9111.CacheStatus{Detail: rfc9111.ReasonPurged}, `fastcache; detail=purged`},
		{"bypass", rfc9111.CacheStatus{Fwd: rfc9111.FwdBypass, Detail: rfc9111.ReasonUpgrade}, `fastcache; fwd=bypass; detail=upgrade`},
		{"unknown values", rfc9111.CacheStatus{Fwd: 99, Detail: 250}, `fastcache`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(tt.status.Append([]byte("x, "))); got != "x, "+tt.want {
				t.Errorf("got %q, want %q", got, "x, "+tt.want)
			}
		})
	}
}

func TestFwd_String_RFC9211_2_2(t *testing.T) {
	want := []string{"", "bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial", ""}
	for i, w := range want {
		if got := rfc9111.Fwd(i).String(); got != w {
			t.Errorf("Fwd(%d) is %q, want %q", i, got, w)
		}
	}
}

func TestCacheStatus_Append_Allocs(t *testing.T) {
	buf := make([]byte, 0, 256)
	status := rfc9111.CacheStatus{Hit: true, TTL: time.Hour, HasTTL: true, Key: "https://example.com/a\"b", Detail: rfc9111.ReasonStaleError}
	noAllocs(t, "Append", func() { buf = status.Append(buf[:0]) })
}

// What a Structured Fields parser reads is what was put in.
func FuzzCacheStatus_Append(f *testing.F) {
	f.Add(true, uint8(0), 0, int64(37e9), true, false, false, "https://example.com/", uint8(0))
	f.Add(false, uint8(3), 200, int64(-1), true, true, true, `"\`, uint8(9))
	f.Add(false, uint8(200), -1, int64(0), false, true, false, "\x00\xff", uint8(255))
	f.Fuzz(func(t *testing.T, hit bool, fwd uint8, fwdStatus int, ttl int64, hasTTL, stored, collapsed bool, key string, detail uint8) {
		if fwdStatus < -999 || fwdStatus > 999 {
			fwdStatus = 0 // not a status
		}
		status := rfc9111.CacheStatus{
			Hit: hit, Fwd: rfc9111.Fwd(fwd), FwdStatus: fwdStatus, TTL: time.Duration(ttl), HasTTL: hasTTL,
			Stored: stored, Collapsed: collapsed, Key: key, Detail: rfc9111.Reason(detail),
		}
		line := string(status.Append(nil))
		list, err := httpsfv.UnmarshalList([]string{line})
		if err != nil || len(list) != 1 {
			t.Fatalf("%q is not a list of one: %v", line, err)
		}
		item := list[0].(httpsfv.Item)
		if item.Value != httpsfv.Token("fastcache") {
			t.Fatalf("%q does not start with the name", line)
		}
		param := func(name string) any { v, _ := item.Params.Get(name); return v }
		want := map[string]any{}
		forward := !hit && status.Fwd.String() != ""
		if hit {
			want["hit"] = true
		}
		if forward {
			want["fwd"] = httpsfv.Token(status.Fwd.String())
			if fwdStatus != 0 {
				want["fwd-status"] = int64(fwdStatus)
			}
			if stored {
				want["stored"] = true
			}
			if collapsed {
				want["collapsed"] = true
			}
		}
		if hasTTL {
			want["ttl"] = ttl / int64(time.Second)
		}
		if word := status.Detail.String(); word != "" {
			want["detail"] = httpsfv.Token(word)
		}
		printable := strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) < 0
		if key != "" && printable {
			want["key"] = key
		}
		if got := len(item.Params.Names()); got != len(want) {
			t.Fatalf("%q has %d parameters, want %d", line, got, len(want))
		}
		for name, value := range want {
			if param(name) != value {
				t.Errorf("%q: %s is %v, want %v", line, name, param(name), value)
			}
		}
	})
}

func BenchmarkCacheStatus_Append(b *testing.B) {
	buf := make([]byte, 0, 256)
	status := rfc9111.CacheStatus{Hit: true, TTL: time.Hour, HasTTL: true}
	b.ReportAllocs()
	for b.Loop() {
		buf = status.Append(buf[:0])
	}
}
