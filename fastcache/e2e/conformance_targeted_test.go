package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// TestRFC9213_TargetedFields asks what the newer tests for CDN-Cache-Control ask,
// and the rest of RFC 9213.
func TestRFC9213_TargetedFields(t *testing.T) {
	t.Parallel()
	// By itself Cache-Control says stale here, Expires fresh.
	const stale, aged = "Cache-Control: max-age=1", "Age: 2"
	checkReuse(t, []reuse{
		{name: "max-age", first: []string{"CDN-Cache-Control: max-age=3600"}, reused: true},
		{name: "max-age=2^31", first: []string{"CDN-Cache-Control: max-age=2147483648"}, reused: true},
		{name: "max-age beyond 2^31", first: []string{"CDN-Cache-Control: max-age=99999999999"}, reused: true},
		{name: "max-age=0", first: []string{"CDN-Cache-Control: max-age=0"}},
		{name: "Age beyond max-age", first: []string{"Date: NOW", "CDN-Cache-Control: max-age=3600", "Age: 7200"}},
		{name: "2.2 unknown directives are ignored", first: []string{"CDN-Cache-Control: foobar, max-age=3600"}, reused: true},
		{name: "2.2 s-maxage", first: []string{"CDN-Cache-Control: max-age=0, s-maxage=3600"}, reused: true},
		{name: "2.2 stale-while-revalidate", first: []string{"CDN-Cache-Control: max-age=1, stale-while-revalidate=60", aged}, reused: true},

		{name: "2.1 nothing to go by but a key in upper case", first: []string{"CDN-Cache-Control: MaX-aGe=3600"}},
		{name: "2.1 space before the equals sign", first: []string{stale, aged, "CDN-Cache-Control: max-age =100"}},
		{name: "2.1 space behind the equals sign", first: []string{stale, aged, "CDN-Cache-Control: max-age= 100"}},
		{name: "2.1 neither", first: []string{stale, aged, "CDN-Cache-Control: max-age=100"}, reused: true},
		{name: "2.1 not a dictionary", first: []string{"CDN-Cache-Control: max-age=10000, &&&&&", "Cache-Control: no-store"}},
		{name: "2.1 max-age is a string", first: []string{`CDN-Cache-Control: max-age="10000"`, "Cache-Control: no-store"}},
		{name: "2.1 max-age is a decimal", first: []string{"CDN-Cache-Control: max-age=10000.0", "Cache-Control: no-store"}},
		{name: "2.1 no-store is a number", first: []string{"CDN-Cache-Control: max-age=10000, no-store=0", "Cache-Control: max-age=0"}},
		{name: "2.1 empty", first: []string{"CDN-Cache-Control: ", "Cache-Control: max-age=3600"}, reused: true},
		{name: "2.1 a parameter is ignored", first: []string{"CDN-Cache-Control: max-age=3600;foo=bar"}, reused: true},
		{name: "2.1 two lines are one dictionary", first: []string{"CDN-Cache-Control: max-age=3600", "CDN-Cache-Control: private"}},

		{name: "2.2 past Expires is ignored", first: []string{"CDN-Cache-Control: max-age=3600", "Expires: NOW-10000", "Date: NOW"}, reused: true},
		{name: "2.2 invalid Expires is ignored", first: []string{"CDN-Cache-Control: max-age=3600", "Expires: 0"}, reused: true},
		{name: "2.2 future Expires is ignored", first: []string{"CDN-Cache-Control: max-age=0", "Expires: NOW+10000", "Date: NOW"}},
		{name: "2.2 shorter Cache-Control is ignored", first: []string{stale, "CDN-Cache-Control: max-age=3600", aged}, reused: true},
		{name: "2.2 longer Cache-Control is ignored", first: []string{"Cache-Control: max-age=3600", "CDN-Cache-Control: max-age=1", aged}},
		{name: "2.2 Cache-Control: no-store is ignored", first: []string{"Cache-Control: no-store", "CDN-Cache-Control: max-age=10000"}, reused: true},
		{name: "2.2 private", first: []string{"CDN-Cache-Control: private", "Cache-Control: max-age=10000", "Expires: NOW+10000"}},
		{name: "2.2 no-cache", first: []string{"CDN-Cache-Control: no-cache", "Cache-Control: max-age=10000", "Expires: NOW+10000"}},
		{name: "2.2 no-store", first: []string{"CDN-Cache-Control: no-store", "Cache-Control: max-age=10000", "Expires: NOW+10000"}},
		{name: "2.2 no-cache makes max-age inoperative", first: []string{"CDN-Cache-Control: max-age=10000, no-cache"}},

		{name: "2.2 the first of the target list", first: []string{"Fastcache-Cache-Control: max-age=3600", "CDN-Cache-Control: no-store"}, reused: true},
		{name: "2.2 the next when the first is invalid", first: []string{"Fastcache-Cache-Control: &", "CDN-Cache-Control: max-age=3600", "Cache-Control: no-store"}, reused: true},
		{name: "2.2 a field that is not on the list", first: []string{"Example-Cache-Control: no-store", "Cache-Control: max-age=3600"}, reused: true},
		{name: "2.4 the suffix alone makes no targeted field", first: []string{"Surrogate-Cache-Control: max-age=3600", "Cache-Control: no-store"}},
	})
}

// TestRFC9213_TargetedFieldsPassThrough: what the cache passes on of a response
// that it keeps longer than others may (sections 2.2, 2.3 and 3).
func TestRFC9213_TargetedFieldsPassThrough(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	c := start(t, strictSite(s.origin))
	date := time.Now().Add(-30 * time.Second).UTC().Format(http.TimeFormat)
	expires := time.Now().Add(-29 * time.Second).UTC().Format(http.TimeFormat)
	sent := map[string]string{
		"Cache-Control": "max-age=1", "Cdn-Cache-Control": "max-age=10000", "Example-Cache-Control": "no-store",
		"Date": date, "Expires": expires,
	}
	var fields []string
	for name, value := range sent {
		fields = append(fields, name+": "+value)
	}
	s.on("/", reply{fields: fields})
	for i, begin := range []string{"fastcache; fwd=uri-miss; stored; ttl=", "fastcache; hit; ttl="} {
		r := c.get("/").want(t, 200, "1").wantStatus(t, begin)
		for name, value := range sent {
			if got := r.Header.Get(name); got != value {
				t.Errorf("response %d: %s: %s, want %s", i+1, name, got, value)
			}
		}
		if age, err := strconv.Atoi(r.Header.Get("Age")); i == 1 && (err != nil || age < 30) {
			t.Errorf("Age %q, want 30 or more", r.Header.Get("Age"))
		}
	}
}

// TestRFC9213_MustRevalidate: the directive works in a targeted field also
// against the option to serve stale responses (section 2.2).
func TestRFC9213_MustRevalidate(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	c := start(t, strictSite(s.origin, "stale_if_error 60s", "stale_while_revalidate 60s"))
	for uri, tc := range map[string]struct {
		targeted string
		status   int
	}{
		"/may":  {"max-age=1", 200},
		"/must": {"max-age=1, must-revalidate", 503},
	} {
		s.on(uri, reply{fields: []string{"CDN-Cache-Control: " + tc.targeted, "Age: 2", `ETag: "1"`}}, reply{status: 503})
		c.get(uri).want(t, 200, "1")
		if r := c.get(uri); r.StatusCode != tc.status {
			t.Errorf("%s: status %d, want %d (%s)", uri, r.StatusCode, tc.status, r.cacheStatus())
		}
	}
}
