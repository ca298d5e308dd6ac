package rfc9111_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestNotModified_4_3_2(t *testing.T) {
	etag := []string{`ETag: "abcdef"`, "Last-Modified: " + date(-5000), "Date: " + date(0)}
	modified := []string{"Last-Modified: " + date(-3000), "Date: " + date(0)}
	rfc850 := now.Add(-3000 * 1e9).Format("Monday, 02-Jan-06 15:04:05 GMT")
	tests := []struct {
		name   string
		status int
		req    []string
		stored []string
		want   bool
	}{
		{"no condition", 200, nil, etag, false},
		{"strong", 200, []string{`If-None-Match: "abcdef"`}, etag, true},
		{"another", 200, []string{`If-None-Match: "abcde"`}, etag, false},
		{"weak in the request", 200, []string{`If-None-Match: W/"abcdef"`}, etag, true},
		{"weak in the store", 200, []string{`If-None-Match: "abcdef"`}, []string{`ETag: W/"abcdef"`}, true},
		{"weak in both", 200, []string{`If-None-Match: W/"abcdef"`}, []string{`ETag: W/"abcdef"`}, true},
		{"first of a list", 200, []string{`If-None-Match: "abcdef", "1234", "5678"`}, etag, true},
		{"middle of a list", 200, []string{`If-None-Match: "1234","abcdef" ,"5678"`}, etag, true},
		{"last of a list", 200, []string{`If-None-Match: "1234", "5678", "abcdef"`}, etag, true},
		{"second line", 200, []string{`If-None-Match: "1234"`, `If-None-Match: "abcdef"`}, etag, true},
		{"empty members", 200, []string{`If-None-Match: ,, "abcdef",`}, etag, true},
		{"comma in a tag", 200, []string{`If-None-Match: "a,b"`}, []string{`ETag: "a,b"`}, true},
		{"comma in a tag does not split", 200, []string{`If-None-Match: "x, "abcdef""`}, etag, false},
		{"backslash is no escape", 200, []string{`If-None-Match: "a\"`}, []string{`ETag: "a\"`}, true},
		{"obs-text", 200, []string{"If-None-Match: \"\xfc\""}, []string{"ETag: \"\xfc\""}, true},
		{"empty tag", 200, []string{`If-None-Match: ""`}, []string{`ETag: ""`}, true},
		{"star", 200, []string{"If-None-Match: *"}, etag, true},
		{"star without an ETag", 200, []string{"If-None-Match: *"}, nil, true},
		{"star in a list", 200, []string{`If-None-Match: *, "abcdef"`}, etag, false},
		{"quoted star", 200, []string{`If-None-Match: "*"`}, etag, false},
		{"no repair: unquoted", 200, []string{"If-None-Match: abcdef"}, etag, false},
		{"no repair: unquoted in both", 200, []string{"If-None-Match: abcdef"}, []string{"ETag: abcdef"}, false},
		{"no repair: unquoted in the store", 200, []string{`If-None-Match: "abcdef"`}, []string{"ETag: abcdef"}, false},
		{"no repair: lower case w", 200, []string{`If-None-Match: w/"abcdef"`}, []string{`ETag: w/"abcdef"`}, false},
		{"no repair: backslash", 200, []string{`If-None-Match: W\"abcdef"`}, []string{`ETag: W\"abcdef"`}, false},
		{"no repair: no slash", 200, []string{`If-None-Match: W"abcdef"`}, []string{`ETag: W"abcdef"`}, false},
		{"no repair: open quote", 200, []string{`If-None-Match: "abcdef`}, etag, false},
		{"no repair: single quotes", 200, []string{`If-None-Match: 'abcdef'`}, etag, false},
		{"no repair: space inside", 200, []string{`If-None-Match: "a b"`}, []string{`ETag: "a b"`}, false},
		{"no repair: no comma", 200, []string{`If-None-Match: "abcdef" "1"`}, etag, false},
		{"no repair: garbage behind a match", 200, []string{`If-None-Match: "abcdef", x`}, etag, false},
		{"empty field", 200, []string{"If-None-Match:"}, etag, false},
		{"two stored tags", 200, []string{`If-None-Match: "abcdef"`}, []string{`ETag: "abcdef"`, `ETag: "abcdef"`}, false},
		{"a list of stored tags", 200, []string{`If-None-Match: "abcdef"`}, []string{`ETag: "abcdef", "x"`}, false},
		{"precedence, match", 200, []string{`If-None-Match: "abcdef"`, "If-Modified-Since: " + date(-9000)}, etag, true},
		{"precedence, no match", 200, []string{`If-None-Match: "x"`, "If-Modified-Since: " + date(-1)}, etag, false},
		{"precedence, malformed", 200, []string{`If-None-Match: x`, "If-Modified-Since: " + date(-1)}, etag, false},
		{"other success", 203, []string{`If-None-Match: "abcdef"`}, etag, true},
		{"redirection", 301, []string{`If-None-Match: "abcdef"`}, etag, false},
		{"error", 404, []string{`If-None-Match: *`}, etag, false},

		{"modified since: equal", 200, []string{"If-Modified-Since: " + date(-3000)}, modified, true},
		{"modified since: later", 200, []string{"If-Modified-Since: " + date(-2000)}, modified, true},
		{"modified since: earlier", 200, []string{"If-Modified-Since: " + date(-3001)}, modified, false},
		{"modified since: RFC 850", 200, []string{"If-Modified-Since: " + rfc850}, modified, true},
		{"modified since: RFC 850, no Date", 200, []string{"If-Modified-Since: " + rfc850}, modified[:1], true},
		{"modified since: Date instead", 200, []string{"If-Modified-Since: " + date(0)}, []string{"Date: " + date(0)}, true},
		{"modified since: Date instead, earlier", 200, []string{"If-Modified-Since: " + date(-3000)}, []string{"Date: " + date(0)}, false},
		{"modified since: malformed Last-Modified", 200, []string{"If-Modified-Since: " + date(0)}, []string{"Last-Modified: x", "Date: " + date(0)}, true},
		{"modified since: nothing to compare with", 200, []string{"If-Modified-Since: " + date(0)}, nil, false},
		{"modified since: not a date", 200, []string{"If-Modified-Since: x"}, modified, false},
		{"modified since: double spaces", 200, []string{"If-Modified-Since: Thu, 18  Aug  2050 02:01:18 GMT"}, modified, false},
		{"modified since: twice", 200, []string{"If-Modified-Since: " + date(0), "If-Modified-Since: " + date(0)}, modified, false},
		{"modified since: not 200", 203, []string{"If-Modified-Since: " + date(0)}, modified, false},

		{"origin's conditions are not for caches", 200, []string{`If-Match: "x"`, "If-Unmodified-Since: " + date(-9999)}, etag, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := rfc9111.NotModified(header(tt.req...), tt.status, header(tt.stored...)); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestNotModified_Allocs(t *testing.T) {
	stored := header(`ETag: "abcdef"`, "Last-Modified: "+date(-3000), "Date: "+date(0))
	for _, req := range []string{"Accept: */*", `If-None-Match: "x", W/"abcdef"`, "If-Modified-Since: " + date(-3000)} {
		h := header(req)
		noAllocs(t, req, func() { _ = rfc9111.NotModified(h, 200, stored) })
	}
}

func TestHasValidator_RFC9110_8_8(t *testing.T) {
	tests := []struct {
		lines []string
		want  bool
	}{
		{nil, false},
		{[]string{`ETag: "a"`}, true},
		{[]string{`ETag: W/"a"`}, true},
		{[]string{"ETag: a"}, false},
		{[]string{`ETag: "a" `}, true},
		{[]string{`ETag: "a"x`}, false},
		{[]string{`ETag: "a"`, `ETag: "a"`}, false},
		{[]string{"Last-Modified: " + date(0)}, true},
		{[]string{"Last-Modified: yesterday"}, false},
		{[]string{"ETag: a", "Last-Modified: " + date(0)}, true},
	}
	for _, tt := range tests {
		if got := rfc9111.HasValidator(header(tt.lines...)); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.lines, got, tt.want)
		}
	}
}

func TestSetValidators_4_3_1(t *testing.T) {
	lm := "Last-Modified: " + date(-5)
	tests := []struct {
		name           string
		req, stored    []string
		wantTag, wantS []string
	}{
		{"both", nil, []string{`ETag: W/"a"`, lm}, []string{`W/"a"`}, []string{date(-5)}},
		{"tag", nil, []string{`ETag: "a"`}, []string{`"a"`}, nil},
		{"date", nil, []string{lm}, nil, []string{date(-5)}},
		{"replaces the client's", []string{`If-None-Match: "x"`, "If-Modified-Since: " + date(0)}, []string{`ETag: "a"`, lm}, []string{`"a"`}, []string{date(-5)}},
		{"malformed", nil, []string{"ETag: a", "Last-Modified: x"}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, stored := header(tt.req...), header(tt.stored...)
			rfc9111.SetValidators(h, stored)
			if diff := cmp.Diff([][]string{tt.wantTag, tt.wantS}, [][]string{h["If-None-Match"], h["If-Modified-Since"]}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(tt.wantTag) > 0 {
				h["If-None-Match"][0] = "changed"
				if stored["Etag"][0] == "changed" {
					t.Error("the request shares memory with the store")
				}
			}
		})
	}
}

func TestRemoveConditionals_4_3_2(t *testing.T) {
	h := header(`If-None-Match: "a"`, "If-Modified-Since: x", `If-Match: "a"`, "If-Unmodified-Since: x", "If-Range: x", "Range: bytes=0-", "Accept: x")
	rfc9111.RemoveConditionals(h)
	want := header(`If-Match: "a"`, "If-Unmodified-Since: x", "If-Range: x", "Range: bytes=0-", "Accept: x")
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzNotModified(f *testing.F) {
	f.Add(`"a", W/"b"`, "Thu, 18 Aug 2050 02:01:18 GMT", `"b"`, "x")
	f.Add("*", "", `W/""`, "Thursday, 18-Aug-50 02:01:18 GMT")
	f.Fuzz(func(t *testing.T, match, since, etag, modified string) {
		stored := header("ETag:"+etag, "Last-Modified:"+modified)
		_ = rfc9111.NotModified(header("If-Modified-Since:"+since), 200, stored)
		if rfc9111.NotModified(header("If-None-Match:"+match), 200, stored) && !rfc9111.HasValidator(header("ETag:"+etag)) && rfc9111.NotModified(header("If-None-Match:"+match), 200, nil) == false {
			t.Errorf("%q matched %q, which is no tag", match, etag)
		}
		if rfc9111.HasValidator(header("ETag:" + etag)) {
			// What is sent for validation matches what it stands for.
			h := header()
			rfc9111.SetValidators(h, stored)
			if !rfc9111.NotModified(h, 200, stored) {
				t.Errorf("%q does not match itself", etag)
			}
		}
	})
}

func BenchmarkNotModified(b *testing.B) {
	stored := header(`ETag: "abcdef"`, "Last-Modified: "+date(-3000), "Date: "+date(0))
	for name, h := range map[string]string{"condition=none": "A: b", "condition=tag": `If-None-Match: "abcdef"`, "condition=date": "If-Modified-Since: " + date(-3000)} {
		h := header(h)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = rfc9111.NotModified(h, 200, stored)
			}
		})
	}
}

func TestConfirms_4_3_4(t *testing.T) {
	for _, tc := range []struct {
		stored, fresh []string
		want          bool
	}{
		{[]string{`ETag: "1"`}, []string{`ETag: "1"`}, true},
		{[]string{`ETag: "1"`}, []string{`ETag: W/"1"`}, true},
		{[]string{`ETag: "1"`}, []string{`ETag: "2"`}, false},
		{[]string{`ETag: "1"`}, nil, true},
		{[]string{`ETag: "1"`, "Last-Modified: a"}, []string{`ETag: "1"`, "Last-Modified: b"}, true},
		{[]string{"Last-Modified: a"}, []string{"Last-Modified: b"}, false},
		{[]string{"Last-Modified: a"}, []string{"Last-Modified: a"}, true},
		{nil, nil, true},
	} {
		if got := rfc9111.Confirms(header(tc.stored...), header(tc.fresh...)); got != tc.want {
			t.Errorf("stored %q, 304 with %q: %v", tc.stored, tc.fresh, got)
		}
	}
}
