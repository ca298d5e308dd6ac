package fastcache

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// model says which answers a shared cache may give, by RFC 9111 and RFC 9110, and
// where it has no choice. It is written from the RFCs on the values of a script,
// without any of the cache's own rules. It knows every response that the origin
// has made; which of them an answer is made of is told by a field of its header,
// X-Body.
//
// Where the rules leave a choice, both is right. Ages are compared with a second
// of tolerance, because dates have whole seconds.
type model struct {
	options scriptOptions
	records []*record

	responses int // of the origin, to number them
}

// record is a response of the origin to GET or HEAD, with what later 304s have
// made of its header.
type record struct {
	id, last int // of the response with the body, and of the one with the latest header
	ask      ask // as the client sent it
	reply    reply
	cc       [numTargets]*replyCC // the fields of cache directives that the header has
	body     []byte
	sent     time.Time // when the latest header was asked for
	got      time.Time // and when it came
	whole    bool
	unsure   bool            // what its header is by now is not known
	shaken   bool            // the origin was asked again: it need not be stored any more
	dead     map[target]bool // URLs for which it may only be used after validation
	gone     bool            // a 304 has forbidden to keep it
}

// call is what the origin was asked and has answered.
type call struct {
	method      string
	header      http.Header
	notModified bool
	id          int
	sent, got   time.Time
	reply       *reply
	record      *record // nil for a 304, a HEAD, a failure without header
}

func (c *call) failed() bool {
	switch c.reply.fail {
	case failError, failPanic:
		return true
	}
	return slices.Contains([]int{500, 502, 503, 504}, c.reply.status)
}

const tolerance = time.Second

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// age is a record's current age (RFC 9111 section 4.2.3).
func (r *record) age(now time.Time) time.Duration {
	date := r.got
	if r.reply.date != absent && r.reply.date != invalid {
		date = r.got.Add(seconds(r.reply.date)).Truncate(time.Second)
	}
	corrected := r.got.Sub(r.sent)
	if r.reply.age != absent && r.reply.age != invalid {
		corrected += seconds(r.reply.age)
	}
	return max(0, r.got.Sub(date), corrected) + now.Sub(r.got)
}

// directives are those that count: of the field that is meant for this cache the
// most (RFC 9213 section 2.2). targeted says that Cache-Control and Expires do not.
func (r *record) directives() (cc *replyCC, targeted bool) {
	for _, kind := range []targetKind{targetOwn, targetCDN} {
		if r.cc[kind] != nil {
			return r.cc[kind], true
		}
	}
	if r.cc[targetNone] != nil {
		return r.cc[targetNone], false
	}
	return &noCC, false
}

var noCC = replyCC{maxAge: -1, sMaxAge: -1, swr: -1, sie: -1}

// explicit is the freshness lifetime that a record states (section 4.2.1).
func (r *record) explicit() (time.Duration, bool) {
	cc, targeted := r.directives()
	p := &r.reply
	switch {
	case cc.sMaxAge >= 0:
		return seconds(cc.sMaxAge), true
	case cc.maxAge >= 0:
		return seconds(cc.maxAge), true
	case targeted || p.expires == absent:
		return 0, false
	case p.expires == invalid:
		return 0, true
	case p.date == absent || p.date == invalid:
		return max(0, seconds(p.expires)), true
	}
	return max(0, seconds(p.expires-p.date)), true
}

// lifetime is for how long a record may be fresh at most.
func (r *record) lifetime(o scriptOptions) time.Duration {
	if d, ok := r.explicit(); ok {
		return d
	}
	if cc, _ := r.directives(); cc.noCache {
		return 0
	}
	// A tenth of the time since the modification, at most a day (section
	// 4.2.2); or the operator's word.
	if r.reply.mod > 0 {
		return 24 * time.Hour
	}
	if slices.Contains(byDefault, r.reply.status) {
		return seconds(o.ttl)
	}
	return 0
}

// byDefault are the statuses that may be stored without explicit freshness (RFC
// 9110 section 15.1).
var byDefault = []int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}

// forbidden says why a record may not be used for any request but its own,
// whatever its age (RFC 9111 sections 3, 3.5 and 5.2.2).
func (r *record) forbidden() string {
	p := &r.reply
	cc, _ := r.directives()
	_, explicit := r.explicit()
	switch {
	case r.ask.method != http.MethodGet && !(r.ask.method == http.MethodPost && p.self && explicit && p.status < 300): // RFC 9110 section 9.3.3
		return "answers a " + r.ask.method
	case !r.whole:
		return "is not whole"
	case p.status == 206 || p.status == 304:
		return "is a part"
	case cc.noStore:
		return "is no-store"
	case cc.private:
		return "is private"
	case strings.Contains(p.vary, "*"):
		return "varies on *"
	case p.cookie:
		return "sets a cookie"
	case r.ask.auth && !cc.public && !cc.mustRevalidate && cc.sMaxAge < 0:
		return "answers a request with Authorization"
	case !explicit && !cc.public && !slices.Contains(byDefault, p.status):
		return "has a status that needs explicit freshness"
	}
	return ""
}

// selects reports whether the fields that a record varies on are those of the
// request (section 4.1).
func (r *record) selects(a *ask) bool {
	vary := strings.ToLower(r.reply.vary)
	return (!strings.Contains(vary, "x-a") || a.received() == r.ask.received()) &&
		(!strings.Contains(vary, "x-b") || a.xb == r.ask.xb)
}

// names reports whether a record may answer for a URL.
func (r *record) names(u target, o scriptOptions) bool {
	if r.ask.url == u {
		return true
	}
	return o.noVarySearch && (r.reply.nvs || r.unsure) && r.ask.url.path == u.path && r.ask.url.b == u.b
}

// mayBeStale says whether a record may be used for so long after its freshness
// (section 4.2.4, RFC 5861).
func (r *record) mayBeStale(by time.Duration, a *ask, failed bool, o scriptOptions) bool {
	cc, _ := r.directives()
	if cc.mustRevalidate || cc.proxyRevalidate || cc.sMaxAge >= 0 || cc.noCache {
		return false
	}
	window := func(own, fallback int) time.Duration {
		if own >= 0 {
			return seconds(own)
		}
		return seconds(fallback)
	}
	switch {
	case by < window(cc.swr, o.swr)+tolerance:
		return true
	case failed && by < window(cc.sie, o.sie)+tolerance:
		return true
	}
	return o.honorRequest && a.cc.maxStale >= 0 && by <= seconds(a.cc.maxStale)+tolerance
}

// answer is what the client got.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	err     error // of the handler, before a header was sent
	aborted bool  // the connection ended in the body
}

// check returns what is wrong with an answer, or nothing. calls are what the
// origin was asked meanwhile.
func (m *model) check(a *ask, got *answer, calls []*call, now time.Time) string {
	hit := strings.HasPrefix(got.header.Get("Cache-Status"), "fastcache; hit")
	if got.status == 0 && got.aborted && slices.ContainsFunc(calls, (*call).failed) {
		return ""
	}
	if got.err == nil && len(got.header["Cache-Status"]) != 1 {
		return fmt.Sprintf("%d Cache-Status fields", len(got.header["Cache-Status"]))
	}
	if a.method != http.MethodGet && a.method != http.MethodHead {
		return m.checkUnsafe(a, got, calls, now)
	}
	if len(got.header["Fastcache-Cache-Control"]) > 0 && !strings.Contains(got.header.Get("Cache-Status"), "fwd=request") {
		return "has Fastcache-Cache-Control"
	}
	if got.err != nil {
		for _, c := range calls {
			if c.reply.fail != failNone {
				return ""
			}
		}
		return fmt.Sprintf("failed although the origin did not: %v", got.err)
	}
	if !hit && len(calls) == 0 {
		if m.options.honorRequest && a.cc.onlyIfCached && got.status == http.StatusGatewayTimeout {
			return m.mustHit(a, nil, now)
		}
		return "is no hit, but the origin was not asked"
	}
	defer m.learn(a, got, calls, hit)
	id, err := strconv.Atoi(got.header.Get("X-Body"))
	if err != nil {
		return m.checkWithoutBody(a, got, calls)
	}
	for _, c := range calls {
		if c.record != nil && c.record.id == id && !hit {
			if wrong := checkContent(a, got, c.record); wrong != "" {
				return "passes on response " + strconv.Itoa(id) + ": " + wrong
			}
			return m.mustHit(a, calls, c.sent)
		}
	}
	r := m.record(id)
	if r == nil {
		return fmt.Sprintf("has the body of response %d, which nobody made", id)
	}
	if hit && len(calls) > 0 {
		now = calls[0].sent // the refresh in the background may have moved the clock
	}
	selected := r.selects(a) // by the Vary from before
	valid := !hit && m.confirm(r, calls)
	if !selected {
		return fmt.Sprintf("uses response %d, which is another variant", r.id)
	}
	if wrong := m.checkReuse(a, got, r, calls, valid, hit, now); wrong != "" {
		return fmt.Sprintf("uses response %d (header %d), which %s", r.id, r.last, wrong)
	}
	return ""
}

func (m *model) record(id int) *record {
	for _, r := range m.records {
		if r.id == id {
			return r
		}
	}
	return nil
}

// learn notes what an exchange leaves behind.
func (m *model) learn(a *ask, got *answer, calls []*call, hit bool) {
	if hit {
		if id, err := strconv.Atoi(got.header.Get("X-Body")); err == nil {
			m.confirm(m.record(id), calls)
		}
	}
	if len(calls) == 0 {
		return
	}
	for _, r := range m.records {
		if !r.names(a.url, m.options) || slices.ContainsFunc(calls, func(c *call) bool { return c.record == r }) {
			continue
		}
		r.shaken = true
		// The header of a HEAD response may update what is stored, or make it
		// stale (section 4.3.5).
		r.unsure = r.unsure || a.method == http.MethodHead
	}
	for _, c := range calls {
		if c.record != nil {
			m.supersede(c.record)
		}
	}
}

// confirm updates a record that a 304 has confirmed (section 4.3.4) and reports
// whether one has.
func (m *model) confirm(r *record, calls []*call) bool {
	confirmed := false
	for _, c := range calls {
		if !c.notModified || !r.confirmedBy(c) {
			continue
		}
		confirmed = true
		before := r.reply
		r.reply = *c.reply
		r.reply.status, r.reply.fail = before.status, before.fail
		// What a 304 leaves out stays as it was.
		for kind, cc := range c.reply.fields() {
			if cc != nil {
				r.cc[kind] = cc
			}
		}
		if c.reply.expires == absent && before.expires != absent {
			r.reply.expires, r.unsure = before.expires, true // relative to another time
		}
		if r.reply.etag == "" {
			r.reply.etag = before.etag
		}
		if r.reply.vary == "" {
			r.reply.vary = before.vary
		}
		if r.reply.mod == 0 {
			r.reply.mod = before.mod
		}
		r.reply.nvs = r.reply.nvs || before.nvs
		r.last, r.sent, r.got = c.id, c.sent, c.got
		// The origin has said that this is the answer to that request, too.
		r.ask.auth, r.ask.method = len(c.header["Authorization"]) > 0, http.MethodGet
		r.gone = r.gone || r.forbidden() != "" || r.reply.cookie
		r.unsure = r.unsure || r.reply.vary != before.vary
		clear(r.dead)
	}
	return confirmed
}

// confirmedBy reports whether a 304 can be about a record: their validators are
// the same.
func (r *record) confirmedBy(c *call) bool {
	if r.reply.etag != "" && c.reply.etag != "" {
		return opaque(r.reply.etag) == opaque(c.reply.etag)
	}
	if r.reply.mod > 0 && c.reply.mod > 0 {
		return r.reply.mod == c.reply.mod
	}
	// One of them has no validator of the other's kind: the request must have
	// named one of the record's own.
	return r.reply.etag != "" && slices.Contains(c.header["If-None-Match"], r.reply.etag) ||
		r.reply.mod > 0 && slices.Contains(c.header["If-Modified-Since"], modified(r.reply.mod))
}

func opaque(etag string) string { return strings.TrimPrefix(etag, "W/") }

// checkUnsafe: a method that is not safe goes to the origin, and what it succeeds
// with leaves nothing that is older to be used without validation (section 4.4).
func (m *model) checkUnsafe(a *ask, got *answer, calls []*call, now time.Time) string {
	if a.method == methodPurge {
		m.invalidate(a.url, nil, now)
		if len(calls) != 0 || got.status != 200 && got.status != 404 {
			return "a purge is answered with " + strconv.Itoa(got.status)
		}
		return ""
	}
	if len(calls) != 1 || calls[0].method != a.method {
		return fmt.Sprintf("the origin got %d requests", len(calls))
	}
	c := calls[0]
	if got.err == nil && got.status < 400 {
		m.invalidate(a.url, c.record, c.got)
	}
	switch {
	case c.reply.fail != failNone:
		return ""
	case got.err != nil || got.status != c.reply.status || !bytes.Equal(got.body, c.record.body):
		return "differs from the origin's answer"
	}
	return ""
}

// invalidate: what is older than an unsafe request does not answer for its URL any
// more. With equivalences, more may go than has to.
func (m *model) invalidate(u target, own *record, now time.Time) {
	for _, r := range m.records {
		if r != own && !r.sent.After(now) {
			r.dead[u] = true
			r.shaken = true
		}
	}
}

// supersede: what a newer response of the same variant has replaced is not used
// again (section 4).
func (m *model) supersede(newer *record) {
	if !m.plain(newer, newer.got) {
		return
	}
	for _, r := range m.records {
		if r != newer && r.ask.url == newer.ask.url && r.reply.vary == newer.reply.vary && newer.selects(&r.ask) {
			r.gone = true
		}
	}
}

// plain reports whether a response is one that a cache has every reason to keep
// and to use for a while from then on.
func (m *model) plain(r *record, now time.Time) bool {
	cc, targeted := r.directives()
	life, explicit := r.explicit()
	return r.forbidden() == "" && !r.gone && !r.unsure && !r.shaken && !r.dead[r.ask.url] && !r.ask.auth && !r.ask.cookie && r.ask.ranges == "" && !r.ask.cc.noStore &&
		r.ask.method == http.MethodGet && r.reply.status == 200 && explicit && !cc.noCache && life-r.age(now) > 2*tolerance && !targeted
}

// mustHit: a request without wishes whose answer is stored and fresh is not for the
// origin. It is what a cache is for, not a rule of HTTP.
func (m *model) mustHit(a *ask, calls []*call, now time.Time) string {
	if a.method != http.MethodGet || a.auth || a.cookie || a.ranges != "" || a.etags != nil || a.since > 0 ||
		a.cc != (askCC{onlyIfCached: a.cc.onlyIfCached, maxAge: -1, minFresh: -1, maxStale: -1}) {
		return ""
	}
	for _, r := range m.records {
		made := slices.ContainsFunc(calls, func(c *call) bool { return c.record == r })
		if made || r.ask.url != a.url || !r.selects(a) || !m.plain(r, now) {
			continue
		}
		// Where the origin varies now and then only, the responses that say so
		// come first, stale or not (section 4.1).
		if slices.ContainsFunc(m.records, func(o *record) bool { return o.ask.url == a.url && o.reply.vary != r.reply.vary && o.selects(a) }) {
			continue
		}
		return fmt.Sprintf("is not from the store, where response %d is fresh for %v", r.id, r.lifetime(m.options)-r.age(now))
	}
	return ""
}

// checkReuse: a stored response answers.
func (m *model) checkReuse(a *ask, got *answer, r *record, calls []*call, valid, hit bool, now time.Time) string {
	failed := slices.ContainsFunc(calls, (*call).failed)
	for i, c := range calls {
		if c.method != http.MethodGet && c.method != a.method {
			return fmt.Sprintf("comes after a %s to the origin", c.method)
		}
		if i > 1 {
			return "comes after three requests to the origin"
		}
	}
	switch {
	case !r.names(a.url, m.options):
		return "is of another URL"
	case !valid && r.forbidden() != "":
		return r.forbidden()
	case !valid && r.gone:
		return "has been replaced, or forbidden"
	case !valid && r.dead[a.url]:
		return "was invalidated"
	case !r.whole:
		return "is not whole"
	case !valid && !hit && !failed && len(calls) > 0:
		return "the origin has answered otherwise"
	}
	age, life := r.age(now), r.lifetime(m.options)
	cc, _ := r.directives()
	if !valid && !r.unsure {
		by := age - life
		_, explicit := r.explicit()
		switch {
		case cc.noCache:
			return "asks for validation"
		case by > tolerance && !r.mayBeStale(by, a, failed, m.options):
			return fmt.Sprintf("is stale by %v", by)
		case hit && explicit && by < -tolerance && len(calls) > 0:
			return "is fresh, but the origin was asked"
		case !explicit && r.reply.mod == 0 && slices.Contains(byDefault, r.reply.status) && (a.cookie || r.ask.cookie):
			return "has the default lifetime, for a request with a Cookie"
		}
		fresh := by < tolerance
		if m.options.honorRequest && !failed {
			switch {
			case a.cc.noCache:
				return "the request wants to be validated"
			case !(fresh && cc.immutable) && a.cc.maxAge >= 0 && age > seconds(a.cc.maxAge)+2*tolerance:
				return fmt.Sprintf("is %v old", age)
			case a.cc.minFresh >= 0 && -by < seconds(a.cc.minFresh)-2*tolerance:
				return fmt.Sprintf("is fresh for %v only", -by)
			}
		}
	}
	if !r.unsure {
		said, err := strconv.Atoi(got.header.Get("Age"))
		if off := age - seconds(said); err != nil || off < -tolerance/2 || off >= 2*tolerance {
			return fmt.Sprintf("is %v old, not %s", age, got.header.Get("Age"))
		}
		if last, _ := strconv.Atoi(got.header.Get("X-Resp")); last != r.last {
			return fmt.Sprintf("has the header of response %d", last)
		}
	}
	switch {
	case len(got.header["X-Hop"]) > 0:
		return "has X-Hop, which was for one connection"
	case len(got.header["Set-Cookie"]) > 0 && !valid:
		return "has Set-Cookie"
	case !valid && len(got.header["X-Q"]) > 0 && (cc.noCacheField && !cc.noCache || cc.privateField && !cc.private) && !r.unsure:
		return "has the field that it keeps for one user"
	}
	return checkContent(a, got, r)
}

// checkWithoutBody: answers that are of no stored response.
func (m *model) checkWithoutBody(a *ask, got *answer, calls []*call) string {
	if len(calls) == 0 {
		return "is of no response"
	}
	c := calls[len(calls)-1]
	for _, o := range calls { // the cache may fetch the whole behind a 304
		if got.status == http.StatusNotModified && o.notModified {
			c = o
		}
	}
	switch {
	case got.status == http.StatusNotModified && c.notModified:
		if a.etags == nil && a.since == 0 {
			return "is 304, which the client has not asked for"
		}
		if !c.reply.confused && !matches(a, c.reply.etag, c.reply.mod) {
			return fmt.Sprintf("is 304 for other validators than %q, %d", c.reply.etag, c.reply.mod)
		}
		return ""
	case c.method != http.MethodHead || a.method != http.MethodHead || len(got.body) > 0:
	case got.status == c.reply.status, got.status == http.StatusNotModified && c.reply.status < 300 && matches(a, c.reply.etag, c.reply.mod):
		return ""
	}
	return fmt.Sprintf("is %d without a body of the origin", got.status)
}

// matches evaluates the conditions of a request (RFC 9110 section 13.2.2): true if
// the client has the response already.
func matches(a *ask, etag string, mod int) bool {
	if a.etags == nil {
		return a.since > 0 && mod > 0 && mod <= a.since
	}
	return slices.ContainsFunc(a.etags, func(e string) bool {
		return e == "*" || etag != "" && opaque(e) == opaque(etag)
	})
}

// checkContent: status and bytes are those of the response, or a part of them, or
// 304 for a client that has it.
func checkContent(a *ask, got *answer, r *record) string {
	p := &r.reply
	full := r.body
	switch {
	case got.status == http.StatusNotModified:
		if len(got.body) > 0 {
			return "has a body with 304"
		}
		if !matches(a, p.etag, p.mod) || p.status != 200 && a.etags == nil || p.status >= 300 {
			return fmt.Sprintf("does not match the client's condition: %q, %d", p.etag, p.mod)
		}
		return ""
	case a.method == http.MethodHead:
		if len(got.body) > 0 {
			return "has a body"
		}
		if n := got.header.Get("Content-Length"); n != "" && r.whole && n != strconv.Itoa(len(full)) {
			return "has a Content-Length of " + n
		}
		return wantStatus(got, p.status)
	case got.status == http.StatusPartialContent && p.status == http.StatusOK:
		if a.ranges == "" || a.ifRange != "" && (a.ifRange != p.etag || strings.HasPrefix(p.etag, "W/")) {
			return "is sent in part"
		}
		return checkParts(got, full)
	case got.status == http.StatusRequestedRangeNotSatisfiable && p.status == http.StatusOK:
		if a.ranges != "bytes=500-" || got.header.Get("Content-Range") != fmt.Sprintf("bytes */%d", len(full)) || len(got.body) > 0 {
			return fmt.Sprintf("is 416 with %q and %d bytes", got.header.Get("Content-Range"), len(got.body))
		}
		return ""
	case got.aborted && !r.whole:
		if !bytes.HasPrefix(full, got.body) {
			return "has other bytes"
		}
		return ""
	case !bytes.Equal(got.body, full):
		return fmt.Sprintf("has %d other bytes", len(got.body))
	case got.aborted:
		return "is cut off at its end"
	case !r.whole && p.fail != failShort && p.fail != failMidError:
		return "looks whole, which it is not"
	}
	return wantStatus(got, p.status)
}

func wantStatus(got *answer, status int) string {
	if got.status != status {
		return fmt.Sprintf("has status %d instead of %d", got.status, status)
	}
	return ""
}

// checkParts: every part of a 206 is what its Content-Range says.
func checkParts(got *answer, full []byte) string {
	check := func(contentRange string, part []byte) string {
		var first, last, size int
		if n, err := fmt.Sscanf(contentRange, "bytes %d-%d/%d", &first, &last, &size); n != 3 || err != nil {
			return "has the Content-Range " + contentRange
		}
		if size != len(full) || first < 0 || last < first || last >= size || !bytes.Equal(part, full[first:last+1]) {
			return fmt.Sprintf("has %q as %s of %d bytes", part, contentRange, len(full))
		}
		return ""
	}
	mediaType, params, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	if mediaType != "multipart/byteranges" {
		return check(got.header.Get("Content-Range"), got.body)
	}
	parts := multipart.NewReader(bytes.NewReader(got.body), params["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return ""
		}
		if err != nil {
			return "has broken parts: " + err.Error()
		}
		content, _ := io.ReadAll(part)
		if wrong := check(part.Header.Get("Content-Range"), content); wrong != "" {
			return wrong
		}
	}
}
