package rfc9111_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestParseRange_RFC9110_14(t *testing.T) {
	const (
		none = rfc9111.RangeNone
		ok   = rfc9111.RangeSatisfiable
		bad  = rfc9111.RangeNotSatisfiable
	)
	type R = []rfc9111.Range
	sixteen := strings.TrimSuffix(strings.Repeat("0-0,", 16), ",")
	tests := []struct {
		name   string
		header []string
		size   int64
		want   R
		result rfc9111.RangeResult
	}{
		{"absent", nil, 1000, nil, none},
		{"first byte", []string{"bytes=0-0"}, 1000, R{{0, 1}}, ok},
		{"suffix", []string{"bytes=-5"}, 1000, R{{995, 5}}, ok},
		{"open", []string{"bytes=995-"}, 1000, R{{995, 5}}, ok},
		{"all", []string{"bytes=0-"}, 1000, R{{0, 1000}}, ok},
		{"several", []string{"bytes=0-1,998-999"}, 1000, R{{0, 2}, {998, 2}}, ok},
		{"order is kept", []string{"bytes=998-999, 0-1"}, 1000, R{{998, 2}, {0, 2}}, ok},
		{"last beyond the end", []string{"bytes=990-5000"}, 1000, R{{990, 10}}, ok},
		{"suffix longer than the body", []string{"bytes=-5000"}, 1000, R{{0, 1000}}, ok},
		{"behind the end", []string{"bytes=1000-"}, 1000, nil, bad},
		{"behind the end, closed", []string{"bytes=1000-1001"}, 1000, nil, bad},
		{"suffix of 0", []string{"bytes=-0"}, 1000, nil, bad},
		{"one of two behind the end", []string{"bytes=1000-, 0-0"}, 1000, R{{0, 1}}, ok},
		{"two behind the end", []string{"bytes=1000-, 2000-3000"}, 1000, nil, bad},
		{"unit case", []string{"BYTES=0-0"}, 1000, R{{0, 1}}, ok},
		{"white space in the list", []string{"bytes= 0-0 ,\t1-1"}, 1000, R{{0, 1}, {1, 1}}, ok},
		{"empty members", []string{"bytes=,0-0,,1-1,"}, 1000, R{{0, 1}, {1, 1}}, ok},
		{"largest number", []string{"bytes=0-9223372036854775807"}, 1000, R{{0, 1000}}, ok},

		{"ends before it starts", []string{"bytes=5-2"}, 1000, nil, none},
		{"ends before it starts, with another", []string{"bytes=0-0,5-2"}, 1000, nil, none},
		{"garbage", []string{"abc"}, 1000, nil, none},
		{"no ranges", []string{"bytes="}, 1000, nil, none},
		{"only commas", []string{"bytes=,,"}, 1000, nil, none},
		{"dash", []string{"bytes=-"}, 1000, nil, none},
		{"two dashes", []string{"bytes=--5"}, 1000, nil, none},
		{"negative", []string{"bytes=-9223372036854775608,-9223372036854775608"}, 1000, nil, none},
		{"overflow of first", []string{"bytes=9223372036854775808-"}, 1000, nil, none},
		{"overflow of last", []string{"bytes=0-9223372036854775808"}, 1000, nil, none},
		{"overflow of suffix", []string{"bytes=-99999999999999999999999"}, 1000, nil, none},
		{"plus", []string{"bytes=+0-1"}, 1000, nil, none},
		{"decimal", []string{"bytes=0.0-1"}, 1000, nil, none},
		{"space inside", []string{"bytes=0 - 1"}, 1000, nil, none},
		{"space before equals", []string{"bytes =0-1"}, 1000, nil, none},
		{"other unit", []string{"items=0-1"}, 1000, nil, none},
		{"two lines", []string{"bytes=0-0", "bytes=1-1"}, 1000, nil, none},
		{"empty body", []string{"bytes=0-"}, 0, nil, none},
		{"empty body, suffix", []string{"bytes=-5"}, 0, nil, none},
		{"17.15 16 ranges", []string{"bytes=" + sixteen}, 1000, repeated(16), ok},
		{"17.15 17 ranges", []string{"bytes=" + sixteen + ",0-0"}, 1000, nil, none},
		{"17.15 overlap beyond the size", []string{"bytes=0-,0-"}, 1000, nil, none},
		{"17.15 overlap within the size", []string{"bytes=0-4,0-4"}, 10, R{{0, 5}, {0, 5}}, ok},
		{"17.15 a thousand", []string{"bytes=" + strings.Repeat("0-,", 1000)}, 1 << 40, nil, none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, result := rfc9111.ParseRange(tt.header, tt.size)
			if diff := cmp.Diff(tt.want, got); diff != "" || result != tt.result {
				t.Errorf("%v, want %v\n%s", result, tt.result, diff)
			}
		})
	}
}

func repeated(n int) (ranges []rfc9111.Range) {
	for range n {
		ranges = append(ranges, rfc9111.Range{Start: 0, Length: 1})
	}
	return ranges
}

func TestIfRange_RFC9110_13_1_5(t *testing.T) {
	strong := []string{`ETag: "s"`, "Last-Modified: " + date(-60), "Date: " + date(0)}
	tests := []struct {
		name    string
		ifRange []string
		stored  []string
		want    bool
	}{
		{"absent", nil, strong, true},
		{"tag", []string{`If-Range: "s"`}, strong, true},
		{"old tag", []string{`If-Range: "old"`}, strong, false},
		{"weak", []string{`If-Range: W/"s"`}, strong, false},
		{"weak in the store", []string{`If-Range: "s"`}, []string{`ETag: W/"s"`}, false},
		{"weak in both", []string{`If-Range: W/"s"`}, []string{`ETag: W/"s"`}, false},
		{"no stored tag", []string{`If-Range: "s"`}, nil, false},
		{"list", []string{`If-Range: "s", "t"`}, strong, false},
		{"unquoted", []string{"If-Range: s"}, strong, false},
		{"empty", []string{"If-Range:"}, strong, false},
		{"twice", []string{`If-Range: "s"`, `If-Range: "s"`}, strong, false},
		{"star", []string{"If-Range: *"}, strong, false},
		{"date", []string{"If-Range: " + date(-60)}, strong, true},
		{"later date", []string{"If-Range: " + date(-59)}, strong, false},
		{"earlier date", []string{"If-Range: " + date(-61)}, strong, false},
		{"date, another form", []string{"If-Range: " + now.Add(-60*1e9).Format("Monday, 02-Jan-06 15:04:05 GMT")}, strong, true},
		{"8.8.2.2 date is weak", []string{"If-Range: " + date(0)}, []string{"Last-Modified: " + date(0), "Date: " + date(0)}, false},
		{"8.8.2.2 date is just strong", []string{"If-Range: " + date(-1)}, []string{"Last-Modified: " + date(-1), "Date: " + date(0)}, true},
		{"date without Date", []string{"If-Range: " + date(0)}, []string{"Last-Modified: " + date(0)}, true},
		{"date without Last-Modified", []string{"If-Range: " + date(0)}, []string{"Date: " + date(0)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := rfc9111.IfRange(header(tt.ifRange...), header(tt.stored...)); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestRangeResult_String(t *testing.T) {
	for r, want := range []string{"none", "satisfiable", "not-satisfiable", ""} {
		if got := rfc9111.RangeResult(r).String(); got != want {
			t.Errorf("%d: %q, want %q", r, got, want)
		}
	}
}

func TestParseRange_Allocs(t *testing.T) {
	h := header()
	noAllocs(t, "ParseRange", func() { _, _ = rfc9111.ParseRange(h["Range"], 1000) })
	noAllocs(t, "IfRange", func() { _ = rfc9111.IfRange(h, h) })
}

// Whatever the field says, what is served lies in the body and is at most as long
// as it.
func checkRanges(t interface {
	Helper()
	Fatalf(string, ...any)
}, line string, size int64,
) {
	t.Helper()
	ranges, result := rfc9111.ParseRange([]string{line}, size)
	if (result == rfc9111.RangeSatisfiable) != (len(ranges) > 0) || len(ranges) > 16 {
		t.Fatalf("%q: %v with %d ranges", line, result, len(ranges))
	}
	total := int64(0)
	for _, r := range ranges {
		total += r.Length
		if r.Start < 0 || r.Length <= 0 || r.Start > size-r.Length || total > size {
			t.Fatalf("%q of %d: %+v", line, size, r)
		}
	}
}

func TestParseRange_Bounds(t *testing.T) {
	number := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[0-9]{1,3}`), rapid.StringMatching(`[0-9]{18,20}`))
	rapid.Check(t, func(t *rapid.T) {
		var specs []string
		for range rapid.IntRange(1, 18).Draw(t, "n") {
			specs = append(specs, number.Draw(t, "first")+"-"+number.Draw(t, "last"))
		}
		checkRanges(t, "bytes="+strings.Join(specs, ","), rapid.Int64Range(-1, 2000).Draw(t, "size"))
	})
}

func FuzzParseRange(f *testing.F) {
	f.Add("bytes=0-1,-5,7-", int64(10))
	f.Add("bytes=-9223372036854775608", int64(1<<62))
	f.Fuzz(func(t *testing.T, line string, size int64) { checkRanges(t, line, size) })
}

func BenchmarkParseRange(b *testing.B) {
	for name, lines := range map[string][]string{"range=none": nil, "range=one": {"bytes=0-499"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = rfc9111.ParseRange(lines, 1000)
			}
		})
	}
}
