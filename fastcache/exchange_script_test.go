package fastcache

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// A script is a sequence of requests and of what the origin answers if it is
// asked. It is made of values with a meaning, from which header fields are
// written: so the model (exchange_model_test.go) need not parse what the cache
// parses, and shares no reading of the rules with it.
type script struct {
	options scriptOptions
	steps   []step
}

// scriptOptions are the options of the cache that change what it may do.
type scriptOptions struct {
	ttl          int // seconds
	swr, sie     int // default windows, seconds
	honorRequest bool
	noVarySearch bool
}

type step struct {
	wait  time.Duration // before the request
	ask   ask
	reply reply
}

// ask is a request.
type ask struct {
	method       string
	url          target
	xa, xb       string // values of X-A and X-B; empty: no field
	nominated    bool   // Connection names X-A, so that the origin does not get it
	auth, cookie bool
	cc           askCC
	etags        []string // If-None-Match; "*" alone
	since        int      // If-Modified-Since: the number of a modification, 0 none
	ranges       string   // Range
	ifRange      string   // an entity tag
}

// target is a URL of the script.
type target struct{ path, a, b string }

func (u target) String() string {
	var params []string
	if u.a != "" {
		params = append(params, "a="+u.a)
	}
	if u.b != "" {
		params = append(params, "b="+u.b)
	}
	if params == nil {
		return u.path
	}
	return u.path + "?" + strings.Join(params, "&")
}

// askCC is Cache-Control of a request; absent seconds are -1.
type askCC struct {
	noCache, noStore, onlyIfCached bool
	maxAge, minFresh, maxStale     int
}

// reply is what the origin answers.
type reply struct {
	status   int
	cc       replyCC
	target   targetKind // the field that cc stands in
	other    replyCC    // Cache-Control beside a targeted field
	expires  int        // seconds from now; absent, or invalid
	date     int        // seconds from now; absent, or invalid
	age      int        // Age; absent, or invalid
	etag     string
	mod      int // Last-Modified: the number of a modification, 0 none
	vary     string
	cookie   bool
	hop      bool // Connection nominates X-Hop
	self     bool // Content-Location is the URL itself
	nvs      bool // No-Vary-Search: params=("a")
	length   bool // Content-Length is declared
	ranges   bool // answers Range
	honours  bool // answers conditions
	confused bool // answers any condition with 304
	fail     failure
	delay    time.Duration // before the header
}

const (
	absent  = -1 << 30
	invalid = absent + 1
)

type targetKind uint8

const (
	targetNone targetKind = iota
	targetOwn             // Fastcache-Cache-Control
	targetCDN             // CDN-Cache-Control
	numTargets
)

// replyCC is Cache-Control of a response; absent seconds are -1.
type replyCC struct {
	maxAge, sMaxAge, swr, sie                  int
	noStore, private, noCache, public          bool
	mustRevalidate, proxyRevalidate, immutable bool
	noCacheField, privateField                 bool // the qualified forms, of X-Q
	style                                      int  // of writing
}

type failure uint8

const (
	failNone     failure = iota
	failError            // no header, an error
	failPanic            // no header, the panic by which a proxy ends a connection
	failShort            // less than the declared length
	failMidError         // an error in the middle of the body
	failMidPanic         // a panic in the middle of the body
	numFailures
)

var failureWords = [numFailures]string{"", "error", "panic", "short", "error in mid-body", "panic in mid-body"}

// generation of scripts. Each generator prefers the plain: rapid shrinks towards
// the first choice.

func drawScript(t *rapid.T) script {
	return script{
		options: rapid.Custom(func(t *rapid.T) scriptOptions {
			return scriptOptions{
				ttl:          rapid.SampledFrom([]int{0, 60}).Draw(t, "ttl"),
				swr:          rapid.SampledFrom([]int{0, 20}).Draw(t, "swr"),
				sie:          rapid.SampledFrom([]int{0, 20}).Draw(t, "sie"),
				honorRequest: rapid.Bool().Draw(t, "honor"),
				noVarySearch: rapid.Bool().Draw(t, "nvs"),
			}
		}).Draw(t, "options"),
		steps: rapid.SliceOfN(rapid.Custom(drawStep), 1, 12).Draw(t, "steps"),
	}
}

func drawStep(t *rapid.T) step {
	waits := []time.Duration{0, 0, time.Second, 3 * time.Second, 300 * time.Millisecond, 7500 * time.Millisecond, 15 * time.Second, 61 * time.Second, time.Hour}
	return step{
		wait:  rapid.SampledFrom(waits).Draw(t, "wait"),
		ask:   drawAsk(t),
		reply: drawReply(t),
	}
}

// rarely is true once in n times.
func rarely(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(0, n-1).Draw(t, label) == n-1
}

func drawAsk(t *rapid.T) ask {
	a := ask{
		method: rapid.SampledFrom([]string{"GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "PURGE"}).Draw(t, "method"),
		url:    target{path: "/p"},
		cc:     askCC{maxAge: -1, minFresh: -1, maxStale: -1},
	}
	if rarely(t, 3, "other URL") {
		a.url.a = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "a")
		a.url.b = rapid.SampledFrom([]string{"", "1"}).Draw(t, "b")
	}
	if a.method != "GET" && a.method != "HEAD" {
		return a
	}
	if rarely(t, 3, "fields") {
		a.xa = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "X-A")
		a.xb = rapid.SampledFrom([]string{"", "1"}).Draw(t, "X-B")
		a.nominated = rarely(t, 4, "nominated")
	}
	a.auth, a.cookie = rarely(t, 8, "auth"), rarely(t, 8, "cookie")
	if rarely(t, 4, "request CC") {
		seconds := rapid.SampledFrom([]int{-1, 0, 2, 10, 1000})
		a.cc = askCC{
			noCache:      rarely(t, 3, "no-cache"),
			noStore:      rarely(t, 8, "no-store"),
			onlyIfCached: rarely(t, 6, "only-if-cached"),
			maxAge:       seconds.Draw(t, "max-age"), minFresh: seconds.Draw(t, "min-fresh"), maxStale: seconds.Draw(t, "max-stale"),
		}
	}
	if rarely(t, 4, "conditions") {
		lists := [][]string{nil, {`"v1"`}, {`W/"v1"`}, {`"v0"`, `"v2"`}, {`*`}, {`"v0"`}}
		a.etags = rapid.SampledFrom(lists).Draw(t, "If-None-Match")
		a.since = rapid.IntRange(0, 3).Draw(t, "If-Modified-Since")
	}
	if rarely(t, 5, "range") {
		a.ranges = rapid.SampledFrom([]string{"bytes=0-3", "bytes=2-", "bytes=-2", "bytes=500-", "bytes=5-2", "bytes=0-0,3-4", "lines=1-2"}).Draw(t, "Range")
		a.ifRange = rapid.SampledFrom([]string{"", `"v1"`, `W/"v1"`, `"v2"`}).Draw(t, "If-Range")
	}
	return a
}

func drawReply(t *rapid.T) reply {
	r := reply{
		status:  rapid.SampledFrom([]int{200, 200, 200, 200, 200, 200, 404, 503, 500, 204, 301, 302, 599, 403}).Draw(t, "status"),
		cc:      replyCC{maxAge: 60, sMaxAge: -1, swr: -1, sie: -1},
		expires: absent, date: 0, age: absent,
		etag:     rapid.SampledFrom([]string{"", `"v1"`, `"v2"`, `W/"v1"`}).Draw(t, "ETag"),
		mod:      rapid.IntRange(0, 2).Draw(t, "Last-Modified"),
		length:   rapid.Bool().Draw(t, "length"),
		honours:  !rarely(t, 5, "ignores conditions"),
		ranges:   rarely(t, 3, "ranges"),
		confused: rarely(t, 15, "confused"),
	}
	if rarely(t, 2, "reply CC") {
		seconds := rapid.SampledFrom([]int{-1, 0, 1, 5, 30, 4000})
		r.cc = replyCC{
			maxAge: seconds.Draw(t, "max-age"), sMaxAge: -1, swr: -1, sie: -1,
			noStore: rarely(t, 8, "no-store"), private: rarely(t, 8, "private"), noCache: rarely(t, 6, "no-cache"),
			public: rarely(t, 4, "public"), mustRevalidate: rarely(t, 6, "must-revalidate"),
			proxyRevalidate: rarely(t, 8, "proxy-revalidate"), immutable: rarely(t, 8, "immutable"),
			noCacheField: rarely(t, 8, "no-cache=X-Q"), privateField: rarely(t, 8, "private=X-Q"),
			style: rapid.IntRange(0, 4).Draw(t, "style"),
		}
		if rarely(t, 4, "s-maxage too") {
			r.cc.sMaxAge = seconds.Draw(t, "s-maxage")
		}
		if rarely(t, 3, "windows") {
			r.cc.swr, r.cc.sie = seconds.Draw(t, "swr"), seconds.Draw(t, "sie")
		}
		if rarely(t, 5, "targeted") {
			r.target = rapid.SampledFrom([]targetKind{targetOwn, targetCDN}).Draw(t, "target")
			r.other = noCC
			r.other.noStore, r.other.private = rarely(t, 3, "other no-store"), rarely(t, 3, "other private")
			r.other.maxAge = seconds.Draw(t, "other max-age")
		}
	}
	if rarely(t, 3, "dates") {
		r.expires = rapid.SampledFrom([]int{absent, 30, 5, 0, -10, invalid}).Draw(t, "Expires")
		r.date = rapid.SampledFrom([]int{0, absent, invalid, -5, -40, 10}).Draw(t, "Date")
		r.age = rapid.SampledFrom([]int{absent, 0, 3, 50, invalid}).Draw(t, "Age")
	}
	if rarely(t, 3, "Vary") {
		r.vary = rapid.SampledFrom([]string{"X-A", "x-a, X-B", "*", "X-B, *", "Accept-Encoding"}).Draw(t, "Vary")
	}
	r.cookie, r.hop = rarely(t, 10, "Set-Cookie"), rarely(t, 10, "hop")
	r.nvs, r.self = rarely(t, 2, "No-Vary-Search"), rarely(t, 3, "Content-Location")
	if rarely(t, 10, "fails") {
		r.fail = failure(rapid.IntRange(1, int(numFailures)-1).Draw(t, "failure"))
	}
	r.delay = rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 1200 * time.Millisecond, 4 * time.Second}).Draw(t, "delay")
	return r
}

// writing of header fields

// modified is the time of a modification, as it stands in Last-Modified.
func modified(n int) string {
	return time.Date(2026, time.July, n, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
}

func (a *ask) header() http.Header {
	h := make(http.Header)
	set := func(name, value string) {
		if value != "" {
			h[name] = append(h[name], value)
		}
	}
	set("X-A", a.xa)
	set("X-B", a.xb)
	if a.nominated {
		set("Connection", "keep-alive, X-a")
	}
	if a.auth {
		set("Authorization", "Bearer x")
	}
	if a.cookie {
		set("Cookie", "s=1")
	}
	set("Cache-Control", a.cc.text())
	set("If-None-Match", strings.Join(a.etags, ", "))
	if a.since > 0 {
		set("If-Modified-Since", modified(a.since))
	}
	set("Range", a.ranges)
	if a.ranges != "" {
		set("If-Range", a.ifRange)
	}
	return h
}

// received is the value of X-A as the origin gets it.
func (a *ask) received() string {
	if a.nominated {
		return ""
	}
	return a.xa
}

func (c *askCC) text() string {
	var w words
	w.flag("no-cache", c.noCache)
	w.flag("no-store", c.noStore)
	w.flag("only-if-cached", c.onlyIfCached)
	w.seconds("max-age", c.maxAge)
	w.seconds("min-fresh", c.minFresh)
	w.seconds("max-stale", c.maxStale)
	return strings.Join(w, ", ")
}

type words []string

func (w *words) flag(name string, set bool) {
	if set {
		*w = append(*w, name)
	}
}

func (w *words) seconds(name string, n int) {
	if n >= 0 {
		*w = append(*w, name+"="+strconv.Itoa(n))
	}
}

func (c *replyCC) words() words {
	var w words
	w.seconds("max-age", c.maxAge)
	w.seconds("s-maxage", c.sMaxAge)
	w.seconds("stale-while-revalidate", c.swr)
	w.seconds("stale-if-error", c.sie)
	w.flag("no-store", c.noStore)
	w.flag("private", c.private)
	w.flag("no-cache", c.noCache)
	w.flag("public", c.public)
	w.flag("must-revalidate", c.mustRevalidate)
	w.flag("proxy-revalidate", c.proxyRevalidate)
	w.flag("immutable", c.immutable)
	w.flag(`no-cache="X-Q"`, c.noCacheField && !c.noCache)
	w.flag(`private="x-q"`, c.privateField && !c.private)
	return w
}

func (c *replyCC) text() string { return strings.Join(c.words(), ", ") }

// lines writes the directives for Cache-Control in one of the ways that mean the
// same.
func (c *replyCC) lines() []string {
	w := c.words()
	if len(w) == 0 {
		return nil
	}
	switch c.style {
	case 1:
		return []string{strings.ToUpper(strings.ReplaceAll(strings.Join(w, "\t,,"), "X-Q", "x-Q"))}
	case 2:
		return w // a line each
	case 3:
		for i, word := range w {
			if name, n, ok := strings.Cut(word, "="); ok && !strings.HasPrefix(n, `"`) {
				w[i] = name + `="` + n + `"`
			}
		}
		return []string{`ext="a, no-store", ` + strings.Join(w, ",")}
	case 4:
		if c.maxAge >= 0 {
			w = append(w, "max-age=7777") // the first one counts
		}
		return []string{strings.Join(append(w, "unknown=1"), " , ")}
	}
	return []string{strings.Join(w, ", ")}
}

var targetNames = [numTargets]string{"Cache-Control", "Fastcache-Cache-Control", "Cdn-Cache-Control"}

// fields are the fields of cache directives that a reply has. An empty one is none.
func (r *reply) fields() (f [numTargets]*replyCC) {
	if r.target != targetNone && r.other.text() != "" {
		f[targetNone] = &r.other
	}
	if r.cc.text() != "" {
		f[r.target] = &r.cc
	}
	return f
}

// header writes the fields of a reply that goes out at the given time, from the
// given URI.
func (r *reply) header(now time.Time, at string) http.Header {
	h := make(http.Header)
	date := func(name string, offset int) {
		switch offset {
		case absent:
		case invalid:
			h[name] = []string{"yesterday"}
		default:
			h[name] = []string{now.Add(time.Duration(offset) * time.Second).UTC().Format(http.TimeFormat)}
		}
	}
	date("Date", r.date)
	date("Expires", r.expires)
	switch r.age {
	case absent:
	case invalid:
		h["Age"] = []string{"-1"}
	default:
		h["Age"] = []string{strconv.Itoa(r.age)}
	}
	for kind, cc := range r.fields() {
		switch {
		case cc == nil:
		case targetKind(kind) == targetNone:
			h["Cache-Control"] = cc.lines()
		default:
			h[targetNames[kind]] = []string{cc.text()}
		}
	}
	for name, value := range map[string]string{"Etag": r.etag, "Vary": r.vary} {
		if value != "" {
			h[name] = []string{value}
		}
	}
	if r.self {
		h["Content-Location"] = []string{at}
	}
	if r.mod > 0 {
		h["Last-Modified"] = []string{modified(r.mod)}
	}
	if r.cookie {
		h["Set-Cookie"] = []string{"id=secret"}
	}
	if r.hop {
		h["Connection"], h["X-Hop"] = []string{"x-hop"}, []string{"1"}
	}
	if r.nvs {
		h["No-Vary-Search"] = []string{`params=("a")`}
	}
	h["X-Q"] = []string{"for one user"}
	return h
}

// The texts of a failure's report.

func (o scriptOptions) String() string {
	return fmt.Sprintf("ttl %ds, stale_while_revalidate %ds, stale_if_error %ds, honor_request_cache_control %v, no_vary_search %v",
		o.ttl, o.swr, o.sie, o.honorRequest, o.noVarySearch)
}

// GoString keeps the report of rapid short: the other one has it all.
func (s script) GoString() string { return fmt.Sprintf("%d steps", len(s.steps)) }

func (s step) GoString() string { return s.String() }

func (s *step) String() string {
	return fmt.Sprintf("+%v %s %s %v", s.wait, s.ask.method, s.ask.url, compact(s.ask.header()))
}

func (r *reply) describe(now time.Time, at string) string {
	text := fmt.Sprintf("%d %v", r.status, compact(r.header(now, at)))
	if r.delay > 0 {
		text = fmt.Sprintf("after %v %s", r.delay, text)
	}
	if r.fail != failNone {
		text += " (" + failureWords[r.fail] + ")"
	}
	return text
}

func compact(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name != "X-Q" {
			fmt.Fprintf(&b, " %s: %s;", name, strings.Join(h[name], " | "))
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), " "), ";")
}
