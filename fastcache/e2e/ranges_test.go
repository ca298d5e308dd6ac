package e2e

import (
	"cmp"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// H04: ranges of a stored response.
func TestH04_Ranges(t *testing.T) {
	const size = 1000
	body := testBody("H04", size)
	modified := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("ETag", `"s"`)
		w.Header().Set("Last-Modified", modified)
		w.Header().Set("Content-Length", strconv.Itoa(size))
		if r.URL.Path == "/weak" {
			w.Header().Set("ETag", `W/"s"`)
		}
		if r.URL.Path == "/gzip" {
			w.Header().Set("Content-Encoding", "gzip") // the cache does not look into it
			w.Header().Set("Vary", "Accept-Encoding")
		}
		_, _ = io.WriteString(w, body)
	})
	type want struct {
		status       int
		from, to     int // of the body, when it is one part
		contentRange string
	}
	part := func(from, to int) want { return want{206, from, to, fmt.Sprintf("bytes %d-%d/%d", from, to-1, size)} }
	whole := want{200, 0, size, ""}
	unsatisfiable := want{416, 0, 0, "bytes */1000"}
	cases := []struct {
		name   string
		fields []string
		want   want
	}{
		{"first byte", []string{"Range: bytes=0-0"}, part(0, 1)},
		{"last bytes", []string{"Range: bytes=-5"}, part(995, 1000)},
		{"from", []string{"Range: bytes=995-"}, part(995, 1000)},
		{"all", []string{"Range: bytes=0-"}, part(0, 1000)},
		{"to beyond the end", []string{"Range: bytes=990-5000"}, part(990, 1000)},
		{"suffix longer than the body", []string{"Range: bytes=-5000"}, part(0, 1000)},
		{"last byte", []string{"Range: bytes=999-999"}, part(999, 1000)},
		{"behind the end", []string{"Range: bytes=1000-"}, unsatisfiable},
		{"empty suffix", []string{"Range: bytes=-0"}, unsatisfiable},
		{"one of two satisfiable", []string{"Range: bytes=2000-3000,10-19"}, part(10, 20)},
		{"backwards", []string{"Range: bytes=5-2"}, whole},
		{"no range", []string{"Range: abc"}, whole},
		{"no numbers", []string{"Range: bytes=abc"}, whole},
		{"other unit", []string{"Range: lines=0-1"}, whole},
		{"number too large", []string{"Range: bytes=0-99999999999999999999999"}, whole},
		{"sixty-four ranges", []string{"Range: bytes=" + strings.TrimSuffix(strings.Repeat("0-0,", 64), ",")}, whole},
		{"overlapping beyond the body", []string{"Range: bytes=0-,0-,0-"}, whole},
		{"If-Range matches", []string{"Range: bytes=0-9", `If-Range: "s"`}, part(0, 10)},
		{"If-Range old", []string{"Range: bytes=0-9", `If-Range: "old"`}, whole},
		{"If-Range weak", []string{"Range: bytes=0-9", `If-Range: W/"s"`}, whole},
		{"If-Range date", []string{"Range: bytes=0-9", "If-Range: " + modified}, part(0, 10)},
		{"If-Range later date", []string{"Range: bytes=0-9", "If-Range: " + time.Now().UTC().Format(http.TimeFormat)}, whole},
		{"If-Range no date", []string{"Range: bytes=0-9", "If-Range: yesterday"}, whole},
		{"If-Range old, behind the end", []string{"Range: bytes=2000-", `If-Range: "old"`}, whole},
	}
	for _, tier := range []string{"", "memory_size 0", "disk_size 0", "promote_below 0"} {
		t.Run(cmp.Or(tier, "default"), func(t *testing.T) {
			c := start(t, site(o, tier))
			for _, uri := range []string{"/plain", "/gzip"} {
				fields := []string{"Accept-Encoding: gzip"}
				c.get(uri, fields...).want(t, 200, body)
				before := o.asked()
				for _, tc := range cases {
					r := c.get(uri, append(fields, tc.fields...)...)
					bad := func(format string, args ...any) {
						t.Errorf("%s %s: %s", uri, tc.name, fmt.Sprintf(format, args...))
					}
					if r.err != nil || r.StatusCode != tc.want.status || !r.hit() {
						bad("%d (%v), want %d; %s", r.StatusCode, r.err, tc.want.status, r.cacheStatus())
						continue
					}
					if r.body != body[tc.want.from:tc.want.to] && r.StatusCode != 416 {
						bad("%d bytes %.40q", len(r.body), r.body)
					}
					if got := r.Header.Get("Content-Range"); got != tc.want.contentRange {
						bad("Content-Range %q", got)
					}
					if r.ContentLength != int64(len(r.body)) || r.Header.Get("Transfer-Encoding") != "" {
						bad("Content-Length %d of %d bytes", r.ContentLength, len(r.body))
					}
					coding := ""
					if uri == "/gzip" && r.StatusCode != 416 {
						coding = "gzip"
					}
					if got := r.Header.Get("Content-Encoding"); got != coding {
						bad("Content-Encoding %q, want %q", got, coding)
					}
					if r.StatusCode != 416 && (r.Header.Get("ETag") != `"s"` || r.Header.Get("Content-Type") != "text/plain") {
						bad("ETag %q, Content-Type %q", r.Header.Get("ETag"), r.Header.Get("Content-Type"))
					}
				}
				wantParts(t, c.get(uri, append(fields, "Range: bytes=0-1,998-999")...), body, [2]int{0, 2}, [2]int{998, 1000})
				wantParts(t, c.get(uri, append(fields, "Range: bytes=-1, 5-9 ,2000-, 0-0")...), body, [2]int{999, 1000}, [2]int{5, 10}, [2]int{0, 1})
				// A range is of GET alone (RFC 9110 section 14.2), and a condition comes first.
				c.do(http.MethodHead, uri, append(fields, "Range: bytes=0-9")...).want(t, 200, "")
				c.get(uri, append(fields, "Range: bytes=0-9", `If-None-Match: "s"`)...).want(t, 304, "")
				if n := o.asked() - before; n != 0 {
					t.Errorf("%d fetches for parts of what is stored", n)
				}
			}
			// A weak tag of the stored response never matches either.
			c.get("/weak").want(t, 200, body)
			for _, tag := range []string{`"s"`, `W/"s"`} {
				c.get("/weak", "Range: bytes=0-9", "If-Range: "+tag).want(t, 200, body)
			}
			c.get("/weak", "Range: bytes=0-9").want(t, 206, body[:10])
		})
	}
}

// wantParts fails the test unless the response is a multipart one with these
// parts of the body.
func wantParts(t *testing.T, r *response, body string, parts ...[2]int) {
	t.Helper()
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.StatusCode != 206 || r.err != nil || err != nil || mediaType != "multipart/byteranges" || r.Header.Get("Content-Range") != "" {
		t.Errorf("%d, Content-Type %q, Content-Range %q, %v", r.StatusCode, r.Header.Get("Content-Type"), r.Header.Get("Content-Range"), r.err)
		return
	}
	if r.ContentLength != int64(len(r.body)) {
		t.Errorf("Content-Length %d of %d bytes", r.ContentLength, len(r.body))
	}
	reader := multipart.NewReader(strings.NewReader(r.body), params["boundary"])
	for _, p := range parts {
		part, err := reader.NextPart()
		if err != nil {
			t.Errorf("part %v: %v", p, err)
			return
		}
		got, err := io.ReadAll(part)
		if want := body[p[0]:p[1]]; err != nil || string(got) != want {
			t.Errorf("part %v is %q, want %q (%v)", p, got, want, err)
		}
		if want := fmt.Sprintf("bytes %d-%d/%d", p[0], p[1]-1, len(body)); part.Header.Get("Content-Range") != want || part.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("part %v has the fields %v", p, part.Header)
		}
	}
	if _, err := reader.NextPart(); err != io.EOF {
		t.Errorf("behind the last part comes %v", err)
	}
}

// H04 on a stale response: the parts that a client joins are of one state of the
// resource.
func TestH04_RangeOfAStaleResponse(t *testing.T) {
	var version atomic.Int64
	version.Store(1)
	bodies := map[int64]string{1: testBody("one", 1000), 2: testBody("two", 1000)}
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		v := version.Load()
		w.Header().Set("Cache-Control", "max-age=1")
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, v))
		http.ServeContent(w, r, "f.txt", time.Time{}, strings.NewReader(bodies[v]))
	})
	c := start(t, site(o))
	for _, uri := range []string{"/same", "/new", "/new-if-range"} {
		c.get(uri).want(t, 200, bodies[1])
	}
	time.Sleep(2100 * time.Millisecond)
	c.get("/same", "Range: bytes=10-19").want(t, 206, bodies[1][10:20]).wantStatus(t, "fastcache; fwd=stale; fwd-status=304")
	version.Store(2)
	r := c.get("/new", "Range: bytes=10-19").want(t, 206, bodies[2][10:20])
	if r.Header.Get("ETag") != `"2"` {
		t.Errorf("ETag %s with a part of version 2", r.Header.Get("ETag"))
	}
	c.get("/new").want(t, 200, bodies[2])
	c.get("/new-if-range", "Range: bytes=10-19", `If-Range: "1"`).want(t, 200, bodies[2])
	c.get("/new-if-range", "Range: bytes=10-19", `If-Range: "2"`).want(t, 206, bodies[2][10:20])
}
