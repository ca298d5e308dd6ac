package rfc9111_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// exchange makes a GET exchange that takes no time.
func exchange(status int, request []string, response ...string) *rfc9111.Exchange {
	return &rfc9111.Exchange{
		Method: http.MethodGet, RequestHeader: header(request...),
		Status: status, Header: header(response...),
		RequestTime: now, ResponseTime: now,
		Target: "http://example.com/a",
	}
}

// The profiles that most tests use.
var (
	strict     = &rfc9111.Policy{HeuristicMax: 24 * time.Hour}
	production = &rfc9111.Policy{TTL: time.Hour, HeuristicMax: 24 * time.Hour}
)

const hour = time.Hour

func TestPolicy_Evaluate_Lifetime_4_2_1(t *testing.T) {
	lastModified := "Last-Modified: " + date(-24*3600)
	tests := []struct {
		name     string
		policy   *rfc9111.Policy
		lines    []string
		want     time.Duration
		reason   rfc9111.Reason
		fallback bool
		guessed  bool
	}{
		{name: "max-age", lines: []string{"Cache-Control: max-age=60"}, want: time.Minute},
		{name: "s-maxage is preferred, shorter", lines: []string{"Cache-Control: max-age=3600, s-maxage=1"}, want: time.Second},
		{name: "s-maxage is preferred, longer", lines: []string{"Cache-Control: s-maxage=3600, max-age=1"}, want: hour},
		{name: "s-maxage over max-age=0 and past Expires", lines: []string{"Expires: " + date(-10), "Cache-Control: max-age=0, s-maxage=3600"}, want: hour},
		{name: "max-age over past Expires", lines: []string{"Cache-Control: max-age=3600", "Expires: " + date(-7200), "Date: " + date(0)}, want: hour},
		{name: "max-age over malformed Expires", lines: []string{"Cache-Control: max-age=3600", "Expires: 0"}, want: hour},
		{name: "max-age=0 over future Expires", lines: []string{"Cache-Control: max-age=0", "Expires: " + date(3600)}, reason: rfc9111.ReasonTTLZero},
		{name: "malformed max-age over future Expires", lines: []string{"Cache-Control: max-age=1h", "Expires: " + date(3600)}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 Expires", lines: []string{"Expires: " + date(60), "Date: " + date(0)}, want: time.Minute},
		{name: "5.3 Expires minus Date", lines: []string{"Expires: " + date(60), "Date: " + date(20)}, want: 40 * time.Second},
		{name: "5.3 Expires without Date", lines: []string{"Expires: " + date(60)}, want: time.Minute},
		{name: "5.3 Expires with malformed Date", lines: []string{"Expires: " + date(10), "Date: foo"}, want: 10 * time.Second},
		{name: "5.3 Expires before a fast Date", lines: []string{"Expires: " + date(300), "Date: " + date(400)}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 past Expires", lines: []string{"Expires: " + date(-60)}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 present Expires", lines: []string{"Expires: " + date(0), "Date: " + date(0)}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 Expires 0", lines: []string{"Expires: 0"}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 empty Expires", lines: []string{"Expires:"}, reason: rfc9111.ReasonTTLZero},
		{name: "4.2.1 two Expires", lines: []string{"Expires: " + date(60), "Expires: " + date(60)}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 Expires with double spaces", lines: []string{"Expires: Thu, 18  Aug  2050 02:01:18 GMT"}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 Expires with a one-digit hour", lines: []string{"Expires: Thu, 18 Aug 2050 2:01:18 GMT"}, reason: rfc9111.ReasonTTLZero},
		{name: "5.3 Expires, far future is clamped", lines: []string{"Expires: Sun, 21 Nov 9286 04:46:39 GMT"}, want: maxDelta},
		{name: "5.3 past Expires with ttl", policy: production, lines: []string{"Expires: 0"}, reason: rfc9111.ReasonTTLZero},
		{name: "stale on arrival by Age", lines: []string{"Cache-Control: max-age=3600", "Age: 7200"}, reason: rfc9111.ReasonTTLZero},
		{name: "stale on arrival by Date", lines: []string{"Cache-Control: max-age=3600", "Date: " + date(-7200)}, reason: rfc9111.ReasonTTLZero},
		{name: "stale on arrival, slow date", lines: []string{"Date: " + date(-10), "Expires: " + date(10), "Age: 25"}, reason: rfc9111.ReasonTTLZero},
		{name: "stale on arrival, fast date", lines: []string{"Date: " + date(10), "Expires: " + date(20), "Age: 15"}, reason: rfc9111.ReasonTTLZero},
		{name: "stale on arrival with a validator", lines: []string{"Cache-Control: max-age=3600", "Age: 7200", `ETag: "a"`}, want: hour},

		{name: "4.2.2 nothing", reason: rfc9111.ReasonTTLZero},
		{name: "4.2.2 heuristic", lines: []string{lastModified, "Date: " + date(0)}, want: 8640 * time.Second, guessed: true},
		{name: "4.2.2 heuristic without Date", lines: []string{lastModified}, want: 8640 * time.Second, guessed: true},
		{name: "4.2.2 heuristic by Date", lines: []string{lastModified, "Date: " + date(-4*3600)}, want: 2 * hour, guessed: true},
		{name: "4.2.2 heuristic is capped", policy: &rfc9111.Policy{HeuristicMax: time.Minute}, lines: []string{lastModified}, want: time.Minute, guessed: true},
		{name: "4.2.2 heuristic is not capped by ttl", policy: &rfc9111.Policy{TTL: time.Minute, HeuristicMax: hour}, lines: []string{lastModified}, want: hour, guessed: true},
		{name: "4.2.2 heuristic off", policy: &rfc9111.Policy{TTL: time.Minute}, lines: []string{lastModified}, want: time.Minute, fallback: true},
		{name: "4.2.2 heuristic goes before ttl", policy: production, lines: []string{lastModified}, want: 8640 * time.Second, guessed: true},
		{name: "4.2.2 Last-Modified in the future", policy: production, lines: []string{"Last-Modified: " + date(10)}, want: hour, fallback: true},
		{name: "4.2.2 Last-Modified malformed", policy: production, lines: []string{"Last-Modified: x"}, want: hour, fallback: true},
		{name: "4.2.2 two Last-Modified", policy: production, lines: []string{lastModified, lastModified}, want: hour, fallback: true},
		{name: "4.2.2 just modified is not fresh", policy: production, lines: []string{"Last-Modified: " + date(0)}, want: 0, guessed: true},

		{name: "ttl", policy: production, want: hour, fallback: true},
		{name: "ttl is not for explicit freshness, longer", policy: production, lines: []string{"Cache-Control: max-age=31536000, immutable"}, want: 31536000 * time.Second},
		{name: "ttl is not for explicit freshness, shorter", policy: production, lines: []string{"Cache-Control: max-age=5"}, want: 5 * time.Second},
		{name: "ttl is not for max-age=0", policy: production, lines: []string{"Cache-Control: max-age=0"}, reason: rfc9111.ReasonTTLZero},
		{name: "ttl with public", policy: production, lines: []string{"Cache-Control: public"}, want: hour, fallback: true},
		{name: "no ttl, but a validator", lines: []string{`ETag: "a"`}, want: 0, fallback: true},

		{name: "RFC 9213 2.2 targeted leaves Expires out", lines: []string{"CDN-Cache-Control: max-age=3600", "Expires: 0"}, want: hour},
		{name: "RFC 9213 2.2 targeted without freshness", lines: []string{"CDN-Cache-Control: foo", "Expires: " + date(60), "Cache-Control: max-age=60"}, reason: rfc9111.ReasonTTLZero},
		{name: "RFC 9213 2.2 targeted short", lines: []string{"CDN-Cache-Control: max-age=1", "Cache-Control: max-age=3600"}, want: time.Second},
		{name: "RFC 9213 2.2 targeted max-age=0 and Expires", lines: []string{"CDN-Cache-Control: max-age=0", "Expires: " + date(60)}, reason: rfc9111.ReasonTTLZero},
		{name: "RFC 9213 Age counts", lines: []string{"CDN-Cache-Control: max-age=3600", "Age: 7200", "Date: " + date(0)}, reason: rfc9111.ReasonTTLZero},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policy := tt.policy
			if policy == nil {
				policy = strict
			}
			d := policy.Evaluate(exchange(200, nil, tt.lines...))
			if d.Reason != tt.reason {
				t.Fatalf("reason %q, want %q", d.Reason, tt.reason)
			}
			if d.Reason == rfc9111.ReasonNone && (d.Lifetime != tt.want || d.Fallback != tt.fallback || d.Heuristic != tt.guessed) {
				t.Errorf("lifetime %v, fallback %v, heuristic %v", d.Lifetime, d.Fallback, d.Heuristic)
			}
		})
	}
}

func TestPolicy_Evaluate_Storable_3(t *testing.T) {
	fresh := "Cache-Control: max-age=60"
	tests := []struct {
		name     string
		policy   *rfc9111.Policy
		status   int
		request  []string
		response []string
		want     rfc9111.Reason
	}{
		{name: "plain", response: []string{fresh}},
		{name: "5.2.2.5 no-store", response: []string{"Cache-Control: max-age=60, no-store"}, want: rfc9111.ReasonNoStore},
		{name: "5.2.2.7 private", response: []string{"Cache-Control: private, max-age=60"}, want: rfc9111.ReasonPrivate},
		{name: "5.2.2.7 private beats all", policy: &rfc9111.Policy{StoreSetCookie: true}, response: []string{"Cache-Control: public, private, s-maxage=60, must-understand"}, want: rfc9111.ReasonPrivate},
		{name: "5.2.2.7 qualified private is fine", response: []string{`Cache-Control: private="x-user", max-age=60`}},
		{name: "5.2.2.3 must-understand overrides no-store", response: []string{"Cache-Control: max-age=60, no-store, must-understand"}},
		{name: "5.2.2.3 not understood", status: 599, response: []string{"Cache-Control: max-age=60, no-store, must-understand"}, want: rfc9111.ReasonMustUnderstand},
		{name: "5.2.2.3 not understood, without no-store", status: 599, response: []string{"Cache-Control: max-age=60, must-understand"}, want: rfc9111.ReasonMustUnderstand},
		{name: "5.2.2.3 417 is understood, and not stored", status: 417, response: []string{"Cache-Control: max-age=60, must-understand"}, want: rfc9111.ReasonStatus},
		{name: "RFC 9213 no-store", response: []string{fresh, "CDN-Cache-Control: no-store", "Expires: " + date(60)}, want: rfc9111.ReasonNoStore},
		{name: "RFC 9213 private", response: []string{fresh, "CDN-Cache-Control: private"}, want: rfc9111.ReasonPrivate},
		{name: "RFC 9213 fresh against no-store", response: []string{"Cache-Control: no-store", "CDN-Cache-Control: max-age=60"}},
		{name: "RFC 9213 ill-typed against no-store", response: []string{"Cache-Control: no-store", `CDN-Cache-Control: max-age="60"`}, want: rfc9111.ReasonNoStore},
		{name: "RFC 9213 malformed against no-store", response: []string{"Cache-Control: no-store", `CDN-Cache-Control: max-age=60, &&&&&`}, want: rfc9111.ReasonNoStore},

		{name: "error to an unusual byte", status: 400, request: []string{"X: \x80"}, response: []string{fresh}, want: rfc9111.ReasonRequestFault},
		{name: "error to a long header", status: 400, request: []string{"X: " + strings.Repeat("x", 4100)}, response: []string{fresh}, want: rfc9111.ReasonRequestFault},
		{name: "RFC 9110 15.5.17 about the Range", status: 416, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "RFC 9110 15.5.13 about the condition", status: 412, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "RFC 9110 15.5.20 about the connection", status: 421, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "RFC 6585 3", status: 428, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "RFC 6585 4", status: 429, response: []string{"Cache-Control: public, max-age=60"}, want: rfc9111.ReasonStatus},
		{name: "RFC 6585 5", status: 431, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "RFC 6585 6", status: 511, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "error to an unusual byte, by heuristics", policy: &rfc9111.Policy{TTL: time.Hour}, status: 501, request: []string{"X: \x7f"}, want: rfc9111.ReasonRequestFault},
		{name: "error to a usual request", status: 400, request: []string{"X: y\tz"}, response: []string{fresh}},
		{name: "another error to an unusual byte", status: 404, request: []string{"X: \x80"}, response: []string{fresh}},

		{name: "3.3 partial", status: 206, response: []string{fresh, "Content-Range: bytes 0-1/2"}, want: rfc9111.ReasonPartial},
		{name: "not modified", status: 304, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "interim", status: 103, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "not a status", status: 1000, response: []string{fresh}, want: rfc9111.ReasonStatus},

		{name: "3.5 authorization", request: []string{"Authorization: a"}, response: []string{fresh}, want: rfc9111.ReasonAuth},
		{name: "3.5 authorization, Expires", request: []string{"Authorization: a"}, response: []string{"Expires: " + date(60)}, want: rfc9111.ReasonAuth},
		{name: "3.5 authorization, proxy-revalidate", request: []string{"Authorization: a"}, response: []string{"Cache-Control: max-age=60, proxy-revalidate"}, want: rfc9111.ReasonAuth},
		{name: "3.5 authorization, public", request: []string{"Authorization: a"}, response: []string{"Cache-Control: max-age=60, public"}},
		{name: "3.5 authorization, must-revalidate", request: []string{"Authorization: a"}, response: []string{"Cache-Control: max-age=60, must-revalidate"}},
		{name: "3.5 authorization, s-maxage", request: []string{"Authorization: a"}, response: []string{"Cache-Control: s-maxage=60"}},
		{name: "3.5 authorization, public does not undo private", request: []string{"Authorization: a"}, response: []string{"Cache-Control: public, private"}, want: rfc9111.ReasonPrivate},

		{name: "5.2.1.5 request no-store", policy: &rfc9111.Policy{HonorRequest: true}, request: []string{"Cache-Control: no-store"}, response: []string{fresh}, want: rfc9111.ReasonRequestNoStore},
		{name: "5.2.1.5 request no-store, not honoured", request: []string{"Cache-Control: no-store"}, response: []string{fresh}},

		{name: "set-cookie", response: []string{"Cache-Control: public, max-age=60", "Set-Cookie: a=b"}, want: rfc9111.ReasonSetCookie},
		{name: "set-cookie2", response: []string{fresh, "Set-Cookie2: a=b"}, want: rfc9111.ReasonSetCookie},
		{name: "set-cookie allowed", policy: &rfc9111.Policy{StoreSetCookie: true}, response: []string{fresh, "Set-Cookie: a=b"}},
		{name: "set-cookie stripped by no-cache", response: []string{`Cache-Control: max-age=60, no-cache="set-cookie"`, "Set-Cookie: a=b"}},
		{name: "set-cookie stripped by private", response: []string{`Cache-Control: max-age=60, private=Set-Cookie`, "Set-Cookie: a=b"}},
		{name: "set-cookie nominated by Connection", response: []string{fresh, "Connection: set-cookie", "Set-Cookie: a=b"}},
		{name: "set-cookie, another field stripped", response: []string{`Cache-Control: max-age=60, no-cache="x"`, "Set-Cookie: a=b"}, want: rfc9111.ReasonSetCookie},

		{name: "4.1 vary star", response: []string{fresh, "Vary: *"}, want: rfc9111.ReasonVaryStar},
		{name: "4.1 vary star in a list", response: []string{fresh, "Vary: Foo", "Vary: , *"}, want: rfc9111.ReasonVaryStar},
		{name: "4.1 vary malformed", response: []string{fresh, "Vary: Foo Bar"}, want: rfc9111.ReasonVaryStar},
		{name: "4.1 vary", response: []string{fresh, "Vary: Foo, Bar"}},
		{name: "vary listed", policy: &rfc9111.Policy{Vary: []string{"Foo", "Bar"}}, response: []string{fresh, "Vary: bar"}},
		{name: "vary unlisted", policy: &rfc9111.Policy{Vary: []string{"Foo"}}, response: []string{fresh, "Vary: Foo, Bar"}, want: rfc9111.ReasonVaryUnlisted},
		{name: "vary with an empty list", policy: &rfc9111.Policy{Vary: []string{}}, response: []string{fresh, "Vary: Foo"}, want: rfc9111.ReasonVaryUnlisted},

		{name: "match-header", policy: &rfc9111.Policy{MatchHeader: map[string][]string{"X-Cacheable": {"yes", "true"}}}, response: []string{fresh, "X-Cacheable: true"}},
		{name: "match-header, another value", policy: &rfc9111.Policy{MatchHeader: map[string][]string{"X-Cacheable": {"yes"}}}, response: []string{fresh, "X-Cacheable: yes, true"}, want: rfc9111.ReasonMatchHeader},
		{name: "match-header, absent", policy: &rfc9111.Policy{MatchHeader: map[string][]string{"X-Cacheable": {"yes"}}}, response: []string{fresh}, want: rfc9111.ReasonMatchHeader},
		{name: "match-header, one of two rules", policy: &rfc9111.Policy{MatchHeader: map[string][]string{"A": {"1"}, "B": {"2"}}}, response: []string{fresh, "A: 1"}, want: rfc9111.ReasonMatchHeader},

		{name: "event stream", response: []string{fresh, "Content-Type: Text/Event-Stream; charset=utf-8"}, want: rfc9111.ReasonEventStream},
		{name: "mixed replace", response: []string{fresh, "Content-Type: multipart/x-mixed-replace;boundary=x"}, want: rfc9111.ReasonEventStream},
		{name: "not an event stream", response: []string{fresh, "Content-Type: text/event-streams"}},

		{name: "ttl never with a cookie", policy: production, request: []string{"Cookie: a=b"}, want: rfc9111.ReasonCookie},
		{name: "explicit freshness with a cookie", policy: production, request: []string{"Cookie: a=b"}, response: []string{fresh}},
		{name: "heuristic freshness with a cookie", policy: production, request: []string{"Cookie: a=b"}, response: []string{"Last-Modified: " + date(-86400)}, want: rfc9111.ReasonCookie},
		{name: "validator alone with a cookie", policy: strict, request: []string{"Cookie: a=b"}, response: []string{`ETag: "a"`}, want: rfc9111.ReasonCookie},
		{name: "no-cache with a cookie", policy: production, request: []string{"Cookie: a=b"}, response: []string{`ETag: "a"`, "Cache-Control: no-cache"}},
		{name: "nothing to go by with a cookie", policy: strict, request: []string{"Cookie: a=b"}, want: rfc9111.ReasonTTLZero},

		{name: "5.2.2.4 no-cache without a validator", response: []string{"Cache-Control: max-age=10000, no-cache"}, want: rfc9111.ReasonTTLZero},
		{name: "5.2.2.4 no-cache with an ETag", response: []string{"Cache-Control: no-cache", `ETag: "a"`}},
		{name: "5.2.2.4 no-cache with a Last-Modified", response: []string{"Cache-Control: no-cache", "Last-Modified: " + date(-5)}},
		{name: "5.2.2.4 no-cache with a malformed ETag", response: []string{"Cache-Control: no-cache", "ETag: abc"}, want: rfc9111.ReasonTTLZero},
		{name: "5.2.2.4 no-cache with a stripped ETag", response: []string{`Cache-Control: no-cache, private="etag"`, `ETag: "a"`}, want: rfc9111.ReasonTTLZero},
		{name: "no-cache does not make a status storable", status: 500, response: []string{"Cache-Control: no-cache", `ETag: "a"`}, want: rfc9111.ReasonStatus},
		{name: "5.2.2.2 must-revalidate without a validator", response: []string{"Cache-Control: max-age=60, must-revalidate"}},
		{name: "max-age=0 with a validator", response: []string{"Cache-Control: max-age=0", `ETag: "a"`}},
		{name: "max-age=0 must-revalidate without", response: []string{"Cache-Control: max-age=0, must-revalidate"}, want: rfc9111.ReasonTTLZero},
		{name: "RFC 5861 max-age=0 with its own window", response: []string{"Cache-Control: max-age=0, stale-while-revalidate=60"}},
		{name: "RFC 5861 max-age=0 with its own window, forbidden", response: []string{"Cache-Control: max-age=0, stale-while-revalidate=60, must-revalidate"}, want: rfc9111.ReasonTTLZero},
		{name: "max-age=0 with the operator's window", policy: &rfc9111.Policy{StaleIfError: hour, StaleWhileRevalidate: hour}, response: []string{"Cache-Control: max-age=0"}, want: rfc9111.ReasonTTLZero},

		{name: "status-ttl 0", policy: &rfc9111.Policy{StatusTTL: map[int]time.Duration{404: 0}}, status: 404, response: []string{fresh}, want: rfc9111.ReasonStatus},
		{name: "status-ttl 0 for another", policy: &rfc9111.Policy{StatusTTL: map[int]time.Duration{404: 0}}, status: 200, response: []string{fresh}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policy := tt.policy
			if policy == nil {
				policy = strict
			}
			status := tt.status
			if status == 0 {
				status = 200
			}
			if got := policy.Evaluate(exchange(status, tt.request, tt.response...)).Reason; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestPolicy_Evaluate_KeyHasCookie(t *testing.T) {
	x := exchange(200, []string{"Cookie: a=b"})
	x.KeyHasCookie = true
	if d := production.Evaluate(x); d.Reason != rfc9111.ReasonNone || !d.Fallback || d.Lifetime != hour {
		t.Errorf("%+v", d)
	}
}

// Any final status with explicit freshness, the listed ones without.
func TestPolicy_Evaluate_Status_3(t *testing.T) {
	heuristic := map[int]bool{200: true, 203: true, 204: true, 300: true, 301: true, 308: true, 404: true, 405: true, 410: true, 414: true, 501: true}
	// Those about the request are nobody else's.
	never := map[int]bool{407: true, 408: true, 412: true, 416: true, 417: true, 421: true, 425: true, 428: true, 429: true, 431: true, 511: true}
	lastModified := "Last-Modified: " + date(-24*3600)
	for status := 200; status < 600; status++ {
		if status == 206 || status == 304 {
			continue
		}
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			expect := func(what string, want rfc9111.Reason, response ...string) {
				t.Helper()
				if got := production.Evaluate(exchange(status, nil, response...)).Reason; got != want {
					t.Errorf("%s: %q, want %q", what, got, want)
				}
			}
			if never[status] {
				expect("max-age", rfc9111.ReasonStatus, "Cache-Control: public, max-age=60")
				return
			}
			expect("max-age", rfc9111.ReasonNone, "Cache-Control: max-age=60")
			expect("s-maxage", rfc9111.ReasonNone, "Cache-Control: s-maxage=60")
			expect("Expires", rfc9111.ReasonNone, "Expires: "+date(60))
			expect("public and Last-Modified", rfc9111.ReasonNone, "Cache-Control: public", lastModified)
			expect("stale", rfc9111.ReasonTTLZero, "Cache-Control: max-age=0")
			without := rfc9111.ReasonStatus
			if heuristic[status] {
				without = rfc9111.ReasonNone
			}
			expect("Last-Modified", without, lastModified)
			expect("nothing", without)
			// The default ttl is for the listed statuses only, public or not.
			public := rfc9111.ReasonTTLZero
			if heuristic[status] {
				public = rfc9111.ReasonNone
			}
			expect("public", public, "Cache-Control: public")
		})
	}
}

func TestPolicy_Evaluate_Post_RFC9110_9_3_3(t *testing.T) {
	tests := []struct {
		name     string
		method   string
		status   int
		response []string
		want     rfc9111.Reason
	}{
		{"relative", "POST", 200, []string{"Expires: " + date(60), "Content-Location: /a"}, rfc9111.ReasonNone},
		{"absolute", "POST", 200, []string{"Cache-Control: max-age=60", "Content-Location: HTTP://EXAMPLE.com:80/a"}, rfc9111.ReasonNone},
		{"empty reference", "POST", 200, []string{"Expires: " + date(60), "Content-Location:"}, rfc9111.ReasonNone},
		{"201", "POST", 201, []string{"Expires: " + date(60), "Content-Location: /a"}, rfc9111.ReasonNone},
		{"error", "POST", 404, []string{"Expires: " + date(60), "Content-Location: /a"}, rfc9111.ReasonMethod},
		{"without location", "POST", 200, []string{"Expires: " + date(60)}, rfc9111.ReasonMethod},
		{"another location", "POST", 200, []string{"Expires: " + date(60), "Content-Location: /b"}, rfc9111.ReasonMethod},
		{"another host", "POST", 200, []string{"Expires: " + date(60), "Content-Location: http://example.org/a"}, rfc9111.ReasonMethod},
		{"two locations", "POST", 200, []string{"Expires: " + date(60), "Content-Location: /a", "Content-Location: /a"}, rfc9111.ReasonMethod},
		{"heuristic freshness only", "POST", 200, []string{"Last-Modified: " + date(-86400), "Content-Location: /a"}, rfc9111.ReasonMethod},
		{"ttl only", "POST", 200, []string{"Content-Location: /a"}, rfc9111.ReasonMethod},
		{"private", "POST", 200, []string{"Cache-Control: private, max-age=60", "Content-Location: /a"}, rfc9111.ReasonPrivate},
		{"PUT", "PUT", 200, []string{"Expires: " + date(60), "Content-Location: /a"}, rfc9111.ReasonMethod},
		{"HEAD", "HEAD", 200, []string{"Expires: " + date(60)}, rfc9111.ReasonMethod},
		{"lower case", "post", 200, []string{"Expires: " + date(60), "Content-Location: /a"}, rfc9111.ReasonMethod},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := exchange(tt.status, nil, tt.response...)
			x.Method = tt.method
			if got := production.Evaluate(x).Reason; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestPolicy_Evaluate_Decision(t *testing.T) {
	windows := &rfc9111.Policy{TTL: hour, HeuristicMax: hour, StaleWhileRevalidate: time.Minute, StaleIfError: 2 * time.Minute}
	type D = rfc9111.Decision
	tests := []struct {
		name     string
		policy   *rfc9111.Policy
		response []string
		want     D
	}{
		{"5.2.2.4 no-cache", windows, []string{"Cache-Control: max-age=60, no-cache, stale-if-error=9", `ETag: "a"`}, D{Lifetime: time.Minute, Validate: true, NoStale: true}},
		{"5.2.2.2 must-revalidate", windows, []string{"Cache-Control: max-age=60, must-revalidate"}, D{Lifetime: time.Minute, NoStale: true, SharedAuth: true}},
		{"5.2.2.8 proxy-revalidate", windows, []string{"Cache-Control: max-age=60, proxy-revalidate"}, D{Lifetime: time.Minute, NoStale: true}},
		{"5.2.2.10 s-maxage", windows, []string{"Cache-Control: s-maxage=60, stale-while-revalidate=9"}, D{Lifetime: time.Minute, NoStale: true, SharedAuth: true}},
		{"5.2.2.9 public", strict, []string{"Cache-Control: max-age=60, public"}, D{Lifetime: time.Minute, SharedAuth: true}},
		{"RFC 8246 immutable", strict, []string{"Cache-Control: max-age=60, immutable"}, D{Lifetime: time.Minute, Immutable: true}},
		{"RFC 5861 defaults", windows, []string{"Cache-Control: max-age=60"}, D{Lifetime: time.Minute, StaleWhileRevalidate: time.Minute, StaleIfError: 2 * time.Minute}},
		{"RFC 5861 directives", windows, []string{"Cache-Control: max-age=60, stale-while-revalidate=5, stale-if-error=6"}, D{Lifetime: time.Minute, StaleWhileRevalidate: 5 * time.Second, StaleIfError: 6 * time.Second}},
		{"RFC 5861 directives of 0", windows, []string{"Cache-Control: max-age=60, stale-while-revalidate=0, stale-if-error=0"}, D{Lifetime: time.Minute}},
		{"RFC 5861 malformed directives", windows, []string{"Cache-Control: max-age=60, stale-while-revalidate=x, stale-if-error=-1"}, D{Lifetime: time.Minute}},
		{"max-age=0 is validated despite the default window", windows, []string{"Cache-Control: max-age=0", `ETag: "a"`}, D{Validate: true, StaleIfError: 2 * time.Minute}},
		{"max-age=0 with its own window is not", windows, []string{"Cache-Control: max-age=0, stale-while-revalidate=5"}, D{StaleWhileRevalidate: 5 * time.Second, StaleIfError: 2 * time.Minute}},
		{"fields to strip", strict, []string{`Cache-Control: max-age=60, no-cache="x-b, x-a", private="x-a, set-cookie"`}, D{Lifetime: time.Minute, Strip: []string{"Set-Cookie", "X-A", "X-B"}}},
		{"vary", strict, []string{"Cache-Control: max-age=60", "Vary: foo, accept-encoding", "Vary: FOO"}, D{Lifetime: time.Minute, Vary: []string{"Accept-Encoding", "Foo"}}},
		{"initial age", strict, []string{"Cache-Control: max-age=120", "Age: 100"}, D{Lifetime: 2 * time.Minute, InitialAge: 100 * time.Second}},
		{"fallback with windows", windows, nil, D{Lifetime: hour, Fallback: true, StaleWhileRevalidate: time.Minute, StaleIfError: 2 * time.Minute}},
		{"fallback of 0", strict, []string{`ETag: "a"`}, D{Validate: true, Fallback: true}},
		{"targeted", strict, []string{"CDN-Cache-Control: max-age=60, must-revalidate", "Cache-Control: public, immutable"}, D{Lifetime: time.Minute, NoStale: true, SharedAuth: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.policy.Evaluate(exchange(200, nil, tt.response...))
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// How long a response is fresh from now on, with and without a cap: the cases of
// an operator who wonders what ttl does.
func TestPolicy_Evaluate_Precedence(t *testing.T) {
	tests := []struct {
		name     string
		response []string
		want     int // seconds left
	}{
		{"nothing", nil, 30},
		{"max-age", []string{"Cache-Control: max-age=120"}, 120},
		{"s-maxage", []string{"Cache-Control: s-maxage=5, max-age=120"}, 5},
		{"immutable", []string{"Cache-Control: max-age=31536000, immutable"}, 31536000},
		{"age", []string{"Cache-Control: max-age=120", "Age: 100"}, 20},
		{"targeted", []string{"CDN-Cache-Control: max-age=7", "Cache-Control: max-age=120"}, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policy := rfc9111.Policy{TTL: 30 * time.Second}
			check := func(what string, want int) {
				t.Helper()
				d := policy.Evaluate(exchange(200, nil, tt.response...))
				if left := d.Lifetime - d.InitialAge; d.Reason != rfc9111.ReasonNone || left != time.Duration(want)*time.Second {
					t.Errorf("%s: %v left (%s), want %d s", what, left, d.Reason, want)
				}
			}
			check("without cap", tt.want)
			policy.StatusTTL = map[int]time.Duration{200: 30 * time.Second}
			check("with cap", min(30, tt.want))
		})
	}
}

func TestPolicy_Evaluate_Properties(t *testing.T) {
	directives := []string{
		"max-age=0", "max-age=60", "max-age=x", "s-maxage=60", "no-cache", `no-cache="a"`, "private", `private="set-cookie"`,
		"no-store", "public", "must-revalidate", "proxy-revalidate", "must-understand", "immutable", "stale-while-revalidate=5", "stale-if-error=5", "ext",
	}
	fields := []string{
		`ETag: "a"`, "ETag: a", "Last-Modified: " + date(-86400), "Expires: " + date(60), "Expires: 0", "Age: 10", "Age: 100",
		"Set-Cookie: a=b", "Vary: Foo", "Vary: *", "Connection: set-cookie, etag", "CDN-Cache-Control: max-age=60", `CDN-Cache-Control: no-store, max-age="1"`,
	}
	requests := []string{"Authorization: a", "Cookie: a", "Cache-Control: no-store"}
	rapid.Check(t, func(t *rapid.T) {
		var response []string
		for _, d := range rapid.SliceOfN(rapid.SampledFrom(directives), 0, 4).Draw(t, "directives") {
			response = append(response, "Cache-Control: "+d)
		}
		response = append(response, rapid.SliceOfN(rapid.SampledFrom(fields), 0, 4).Draw(t, "fields")...)
		x := exchange(rapid.SampledFrom([]int{200, 206, 304, 404, 500, 599}).Draw(t, "status"),
			rapid.SliceOfN(rapid.SampledFrom(requests), 0, 2).Draw(t, "request"), response...)
		policy := &rfc9111.Policy{
			TTL:                  rapid.SampledFrom([]time.Duration{0, hour}).Draw(t, "ttl"),
			HeuristicMax:         rapid.SampledFrom([]time.Duration{0, hour}).Draw(t, "heuristic"),
			StaleWhileRevalidate: rapid.SampledFrom([]time.Duration{0, hour}).Draw(t, "swr"),
			StaleIfError:         rapid.SampledFrom([]time.Duration{0, hour}).Draw(t, "sie"),
		}
		d := policy.Evaluate(x)
		if d.Reason != rfc9111.ReasonNone {
			return
		}
		cc := rfc9111.ResponseDirectives(x.Header)
		stored := rfc9111.StoredHeader(x.Header, &d)
		left := d.Lifetime - d.InitialAge
		window := d.StaleWhileRevalidate > 0 || d.StaleIfError > 0
		switch {
		case cc.Private, cc.NoStore && !cc.MustUnderstand, x.Status == 206, x.Status == 304:
			t.Fatalf("stored what must not be: %v", x.Header)
		case len(stored["Set-Cookie"]) > 0:
			t.Fatalf("stored a cookie: %v", stored)
		case d.NoStale && window:
			t.Fatalf("a window although it must never be stale: %+v", d)
		case (left <= 0 || d.Validate) && !window && !rfc9111.HasValidator(stored):
			t.Fatalf("stored what can never be used: %+v %v", d, stored)
		case d.Lifetime < 0 || d.Lifetime > maxDelta || d.InitialAge < 0 || d.InitialAge > maxDelta:
			t.Fatalf("out of bounds: %+v", d)
		case d.Fallback && (len(x.RequestHeader["Cookie"]) > 0 || cc.MaxAge.Set || cc.SMaxAge.Set):
			t.Fatalf("fallback where it has no place: %+v", d)
		case len(x.RequestHeader["Authorization"]) > 0 && !d.SharedAuth:
			t.Fatalf("stored for everybody what one was authorized to: %v", x.Header)
		}
	})
}

func BenchmarkPolicy_Evaluate(b *testing.B) {
	x := exchange(200, []string{"Accept-Encoding: gzip"},
		"Cache-Control: public, max-age=3600", "Date: "+date(0), "Last-Modified: "+date(-86400), `ETag: "abc"`, "Vary: Accept-Encoding")
	b.ReportAllocs()
	for b.Loop() {
		_ = production.Evaluate(x)
	}
}
