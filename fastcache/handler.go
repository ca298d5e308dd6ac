package fastcache

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/hotset-go/hotset/fastcache/internal/capture"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

const (
	// maxRounds is how often a request waits for somebody else's fetch before
	// it fetches for itself: the fetch that it waited for may have brought
	// another variant or nothing that can be shared.
	maxRounds = 2

	// flightWait bounds one such wait. A body that takes longer to arrive is
	// fetched again by those who asked meanwhile; nginx waits as long
	// (proxy_cache_lock_timeout).
	flightWait = 5 * time.Second

	// hitForMissTime is how long requests for a URL do not queue behind each
	// other after its answer could not be shared. They are still captured, so
	// the first answer that can be stored ends it.
	hitForMissTime = 5 * time.Second

	// maxSkew is how far in the future a response may have been born: clocks are
	// corrected by as much without anybody noticing.
	maxSkew = time.Minute

	// statusClientClosed is Caddy's status for a client that left.
	statusClientClosed = 499

	// passVar marks a request that has passed a cache, with its store, so that
	// a second block behind the first one does not cache the same again.
	passVar = "fastcache.store"
)

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (fc *FastCache) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !fc.off {
		switch caddyhttp.GetVar(r.Context(), passVar) {
		case nil, (*store.Store)(nil):
		case fc.store:
			return next.ServeHTTP(w, r)
		default:
			fc.lease.nested.Do(func() {
				fc.logger.Warn("requests pass two fastcache blocks with stores of their own: PURGE reaches only the first one; the admin endpoint purges both")
			})
		}
	}
	x := &exchange{fc: fc, w: w, r: r, next: next, seen: fc.observe(r)}
	failed := true
	defer func() { x.seen.end(failed) }()
	err := x.handle()
	failed = err != nil
	return err
}

// handle finds out what part the cache has in the request.
func (x *exchange) handle() error {
	fc := x.fc
	if x.r.Method == methodPurge {
		return fc.servePurge(x.w, x.r, &x.seen)
	}
	if fc.off {
		return x.bypass(rfc9111.FwdBypass, rfc9111.ReasonStoreOff)
	}
	if x.r.ContentLength < 0 && x.r.ProtoMajor == 3 {
		x.r = probeBody(x.r)
	}
	if fwd, reason := rfc9111.Bypass(x.r); fwd != rfc9111.FwdNone {
		return x.bypass(fwd, reason)
	}
	x.origin = rfc9111.OriginHeader(x.r.Header)
	if fc.CacheKey != "" && rfc9111.Nominates(x.r.Header) {
		return x.bypass(rfc9111.FwdBypass, rfc9111.ReasonConnection)
	}
	var buf [256]byte
	key, ok := fc.appendKey(buf[:0], x.r)
	if !ok {
		return x.bypass(rfc9111.FwdBypass, rfc9111.ReasonBadTarget)
	}
	x.key = key
	if fc.HonorRequestCC {
		x.wants = rfc9111.RequestDirectives(x.origin)
		if x.wants.NoStore {
			return x.bypass(rfc9111.FwdRequest, rfc9111.ReasonRequestNoStore)
		}
	}
	return x.serve()
}

// probeBody finds out whether an HTTP/3 request without a declared length has a
// body: the server cannot tell before it has read from it.
func probeBody(r *http.Request) *http.Request {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return r
	}
	probed := *r
	first := make([]byte, 1)
	n, err := r.Body.Read(first)
	if n == 0 && err == io.EOF { //nolint:errorlint // as io.Reader promises
		probed.Body, probed.ContentLength = http.NoBody, 0
		return &probed
	}
	probed.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:n]), r.Body), r.Body}
	return &probed
}

// appendKey appends the cache key of a request to dst. It fails for a request
// target that no key can stand for.
func (fc *FastCache) appendKey(dst []byte, r *http.Request) ([]byte, bool) {
	if fc.CacheKey != "" {
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		return append(dst, repl.ReplaceAll(fc.keyTemplate, "")...), true
	}
	scheme, host, ok := effectiveOrigin(r)
	if !ok {
		return nil, false
	}
	return rfc9111.AppendTarget(dst, scheme, host, fc.requestURI(r))
}

// requestURI is the request target as the client sent it, before any rewrite,
// with the query rules applied.
func (fc *FastCache) requestURI(r *http.Request) string {
	uri := r.RequestURI
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		uri = original.RequestURI
	}
	if fc.query != nil {
		uri = string(fc.query.Append(nil, uri))
	}
	return uri
}

// effectiveOrigin is the scheme and host that the client asked for: what a
// trusted proxy says of them, as reverse_proxy passes it on, or else what the
// request itself says. It fails if the proxy's word can be read in two ways.
func effectiveOrigin(r *http.Request) (scheme, host string, ok bool) {
	scheme, host = "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if fromTrustedProxy(r) {
		protos, hosts := r.Header["X-Forwarded-Proto"], r.Header["X-Forwarded-Host"]
		if len(protos) > 1 || len(hosts) > 1 || rfc9111.Nominates(r.Header) {
			return "", "", false
		}
		if len(protos) == 1 {
			if scheme = protos[0]; scheme != "http" && scheme != "https" {
				return "", "", false
			}
		}
		if len(hosts) == 1 {
			if host = hosts[0]; host == "" || strings.ContainsAny(host, ", ") {
				return "", "", false
			}
		}
	}
	return scheme, host, true
}

func fromTrustedProxy(r *http.Request) bool {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return trusted
}

// bypass hands a request on that the cache has no part in, except that a
// successful unsafe method drops what is stored of its target (RFC 9111 section
// 4.4).
func (x *exchange) bypass(fwd rfc9111.Fwd, reason rfc9111.Reason) error {
	fc, w, r, next := x.fc, x.w, x.r, x.next
	x.seen.result, x.seen.reason = resultBypass, reason
	if reason == rfc9111.ReasonUpgrade {
		x.seen.end(false)
		return next.ServeHTTP(w, r) // the connection changes hands: leave the writer alone
	}
	caddyhttp.SetVar(r.Context(), passVar, fc.store)
	var made *unsafeRequest
	if fwd == rfc9111.FwdMethod && !fc.off && !slices.Contains(safeMethods, r.Method) {
		made = fc.unsafeRequest(r)
		if r.Method == http.MethodPost && made.keyed && fc.plain(r, made.key) {
			return fc.post(w, r, next, made, &x.seen)
		}
	}
	cw := capture.New(w, r, func(status int, h http.Header) capture.Plan {
		if made != nil && status < 400 {
			made.invalidate(h)
		}
		delete(h, rfc9111.TargetedField)
		fc.answered(&x.seen, resultBypass, h, nil, rfc9111.CacheStatus{Fwd: fwd, Detail: reason})
		return capture.Plan{}
	})
	err := next.ServeHTTP(cw, r)
	if err == nil {
		cw.Finish()
	}
	return err
}

// safeMethods do not change what they are asked about (the registry of RFC 9110
// section 16.1). A method that is not known counts as unsafe.
var safeMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace,
	"PROPFIND", "REPORT", "SEARCH", "QUERY",
}

// exchange is one request that the cache may answer.
type exchange struct {
	fc     *FastCache
	w      http.ResponseWriter
	r      *http.Request // as it came
	live   *http.Request // what the handlers behind work on, once there has been a trip; see isolate
	next   caddyhttp.Handler
	key    []byte
	origin http.Header        // the request's header as the origin gets it
	seen   observation        // for the metrics and the access log
	wants  rfc9111.Directives // what the request asks of caches; zero unless honoured
	soft   bool               // what was looked up has been purged softly: it is stale
	last   bool               // what answers is good for this request only
}

// isolate keeps the request as it came for the cache, and leaves the one that the
// placeholders of the handlers behind are bound to for those: they may rewrite it, and
// have to see in one what they do to the other.
func (x *exchange) isolate() {
	if x.live != nil {
		return
	}
	x.live = x.r
	own, u := *x.r, *x.r.URL
	own.URL = &u
	x.r = &own
}

// serve answers from the store if it may, or else makes a trip to the origin,
// alone or by waiting for somebody else's.
func (x *exchange) serve() error {
	waited := rfc9111.FwdNone // why this request waited for another one's trip
	trusted := true           // false once a stored body has turned out damaged
	for round := 0; ; round++ {
		entry, known := x.fc.store.Lookup(x.key, x.origin)
		if entry == nil && trusted && x.fc.equivalents != nil && x.serveEquivalent(statusAfter(waited)) {
			return nil
		}
		var stored *store.Response
		if entry != nil && trusted {
			stored = entry.Response()
		}
		v := x.judge(entry, stored, known)
		if v.use == useNow {
			if v.refresh {
				x.refreshInBackground(entry, stored)
			}
			if x.serveStored(entry, stored, statusAfter(waited)) {
				return nil
			}
			trusted = false
			continue
		}
		if x.wants.OnlyIfCached {
			return x.gatewayTimeout()
		}
		t := &trip{x: x, requestHeader: x.origin, status: rfc9111.CacheStatus{Fwd: v.fwd, Detail: v.reason}}
		if v.use == useIfValid {
			t.entry, t.stored = entry, stored
		}
		if !x.mayShare(v) || round >= maxRounds {
			return t.run()
		}
		flightKey := x.flightKey()
		if x.fc.flights.Marked(flightKey) {
			return t.run()
		}
		call, leader := x.fc.flights.Join(flightKey)
		if leader {
			t.call = call
			return t.run()
		}
		if t.stored != nil && v.reason == rfc9111.ReasonNone && x.fc.staleWhileUpdating(entry, stored) {
			x.seen.stale = true
			if x.serveStored(entry, stored, rfc9111.CacheStatus{Hit: true}) {
				return nil
			}
			trusted = false
			continue
		}
		landed := call.Wait(x.r.Context(), flightWait)
		if err := x.r.Context().Err(); !landed && err != nil {
			x.seen.reason = rfc9111.ReasonClientGone
			return caddyhttp.Error(statusClientClosed, err)
		}
		waited = v.fwd
		if (!landed || call.Failed()) && t.mayUseStale() {
			// The origin has failed another request just now, or takes so
			// long that it may as well have.
			status := statusAfter(waited)
			status.Detail = rfc9111.ReasonStaleError
			if x.serveStored(entry, stored, status) {
				return nil
			}
			trusted = false
			continue
		}
		if !landed {
			// Whoever comes next need not wait as long to find out.
			x.fc.flights.Mark(flightKey, hitForMissTime)
			t.status.Detail = rfc9111.ReasonWaitTimeout
			return t.run()
		}
	}
}

// statusAfter is the status of an answer from the store to a request that has, or
// has not, waited for another one's trip.
func statusAfter(waited rfc9111.Fwd) rfc9111.CacheStatus {
	return rfc9111.CacheStatus{Hit: waited == rfc9111.FwdNone, Fwd: waited, Collapsed: waited != rfc9111.FwdNone}
}

// use says what a stored response is good for.
type use uint8

const (
	useNow     use = iota // it answers the request
	useIfValid            // it may answer once the origin confirms it
	useNever              // it must not answer this request
)

// verdict is what the rules say of a stored response and a request.
type verdict struct {
	use     use
	refresh bool // useNow, but stale: refresh in the background
	fwd     rfc9111.Fwd
	reason  rfc9111.Reason
}

// judge applies RFC 9111 section 4 to what Lookup found.
func (x *exchange) judge(entry *store.Entry, stored *store.Response, known bool) verdict {
	switch {
	case stored == nil && known && entry == nil:
		return verdict{use: useNever, fwd: rfc9111.FwdVaryMiss}
	case stored == nil:
		return verdict{use: useNever, fwd: rfc9111.FwdURIMiss}
	case stored.Flags&store.SharedAuth == 0 && has(x.origin, "Authorization"):
		return verdict{use: useNever, fwd: rfc9111.FwdMiss, reason: rfc9111.ReasonAuth}
	case stored.Flags&store.Fallback != 0 && has(x.origin, "Cookie") && !x.fc.keyHasCookies(x.r):
		return verdict{use: useNever, fwd: rfc9111.FwdMiss, reason: rfc9111.ReasonCookie}
	}
	age, ttl := x.fc.freshness(entry, stored)
	x.soft = entry.Stale()
	var v verdict
	noStale := stored.Flags&store.NoStale != 0
	fresh := ttl > 0 && stored.Flags&store.Validate == 0

	want := x.wants
	switch {
	case want.NoCache:
		v.reason = rfc9111.ReasonRequestNoCache
	case want.MaxAge.Set && age > want.MaxAge.D && !(fresh && stored.Flags&store.Immutable != 0): // RFC 8246 section 2.1
		v.reason = rfc9111.ReasonRequestMaxAge
	case want.MinFresh.Set && ttl < want.MinFresh.D:
		v.reason = rfc9111.ReasonRequestMinFresh
	case fresh:
		return v
	case want.MaxStale.Set && !noStale && !entry.Stale() && -ttl <= want.MaxStale.D:
		return v
	case !noStale && ttl+stored.StaleWhileRevalidate > 0:
		v.refresh = true
		return v
	}
	v.use, v.fwd = useIfValid, rfc9111.FwdStale
	if v.reason != rfc9111.ReasonNone && fresh {
		v.fwd = rfc9111.FwdRequest
	}
	return v
}

// freshness is the age of what is stored (RFC 9111 section 4.2.3) and for how long it
// is still fresh, not positive if it is stale. A soft purge ends freshness; the windows
// behind it are as they were.
func (fc *FastCache) freshness(entry *store.Entry, stored *store.Response) (age, ttl time.Duration) {
	age = fc.now().Sub(stored.Born)
	ttl = stored.Lifetime - age
	if age < -maxSkew {
		ttl = 0 // stored under a clock that was ahead: who knows how old it is
	}
	if entry.Stale() {
		ttl = min(ttl, 0)
	}
	return age, ttl
}

// mayStandIn reports whether a stored response may answer because the origin has
// failed just now (RFC 5861 section 4).
func (fc *FastCache) mayStandIn(entry *store.Entry, stored *store.Response) bool {
	if stored.Flags&store.NoStale != 0 || stored.StaleIfError <= 0 {
		return false
	}
	_, ttl := fc.freshness(entry, stored)
	return ttl+stored.StaleIfError > 0
}

// staleWhileUpdating reports whether a stale response may answer all but the one
// request that asks the origin. The operator has allowed that for a time with
// stale_if_error, as nginx does with "updating"; the directive of a response allows
// it only when the origin has failed (RFC 5861 section 4). Nothing that wants to be
// validated before each use, or that has been purged, is used so.
func (fc *FastCache) staleWhileUpdating(entry *store.Entry, stored *store.Response) bool {
	if stored.Flags&(store.NoStale|store.Validate) != 0 || entry.Stale() {
		return false
	}
	window := min(stored.StaleIfError, fc.policy.StaleIfError)
	_, ttl := fc.freshness(entry, stored)
	return window > 0 && ttl+window > 0
}

// mayShare reports whether the answer to this request can be waited for by
// others: a part, or an answer for one user, cannot.
func (x *exchange) mayShare(v verdict) bool {
	return x.r.Method == http.MethodGet && !has(x.origin, "Range") && !has(x.origin, "Authorization") &&
		v.reason != rfc9111.ReasonCookie
}

// flightKey names the fetch that could answer this request: the URL, and the
// variant once it is known what the URL varies by.
func (x *exchange) flightKey() string {
	key := x.fc.store.AppendVariant(slices.Clone(x.key), string(x.key), x.origin)
	if has(x.origin, "Cookie") && !x.fc.keyHasCookies(x.r) {
		// What answers this request may be less than what answers one without.
		key = append(key, "\x00cookie"...)
	}
	return string(key)
}

func (x *exchange) gatewayTimeout() error {
	x.addStatus(x.w.Header(), rfc9111.CacheStatus{Detail: rfc9111.ReasonOnlyIfCached})
	x.w.WriteHeader(http.StatusGatewayTimeout)
	return nil
}

// refreshInBackground starts a validation that outlives the request, unless one
// is under way. The trip gets a request, a replacer, variables and a writer of
// its own: the client's are gone when it ends.
func (x *exchange) refreshInBackground(entry *store.Entry, stored *store.Response) {
	call, leader := x.fc.flights.Join(x.flightKey())
	if !leader {
		return
	}
	own := x.inBackground()
	t := &trip{x: own, entry: entry, stored: stored, call: call, background: true, requestHeader: own.origin}
	go t.runInBackground()
}

// inBackground returns an exchange for the same URL and variant that outlives the
// request.
func (x *exchange) inBackground() *exchange {
	own := *x
	own.key = slices.Clone(x.key)
	own.w = newDiscardWriter()
	own.seen = observation{} // nobody is answered
	own.r, own.live = detach(x.r, own.w), nil
	// The whole response is wanted, also when the request is for less.
	own.r.Method = http.MethodGet
	own.r.Header.Del("Range")
	own.r.Header.Del("If-Range")
	rfc9111.RemoveConditionals(own.r.Header)
	own.origin = rfc9111.OriginHeader(own.r.Header)
	return &own
}

// detach returns a copy of r that shares nothing with the request that is about
// to end.
func detach(r *http.Request, w http.ResponseWriter) *http.Request {
	ctx := context.WithoutCancel(r.Context())
	own := r.Clone(caddyhttp.ContextWithIdleTimeouts(ctx, nil, nil))
	own.Body = http.NoBody

	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	repl := caddy.NewReplacer()
	own = caddyhttp.PrepareRequest(own, repl, w, server)
	if old, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		// What handlers and matchers in front have set (map, path_regexp, file)
		// lives in the old replacer only. What it says of request and response
		// is not asked for: those are gone.
		repl.Map(func(key string) (any, bool) {
			if strings.HasPrefix(key, "http.request.") || strings.HasPrefix(key, "http.response.") {
				return nil, false
			}
			return old.Get(key)
		})
	}
	if vars, ok := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		mine := own.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
		for k, v := range vars {
			mine[k] = v
		}
	}
	original := ctx.Value(caddyhttp.OriginalRequestCtxKey)
	return own.WithContext(context.WithValue(own.Context(), caddyhttp.OriginalRequestCtxKey, original))
}

// keyHasCookies reports whether the key has every cookie of the request, so that
// nobody with other cookies gets the response.
func (fc *FastCache) keyHasCookies(r *http.Request) bool {
	if strings.Contains(fc.keyTemplate, "{http.request.header.Cookie}") {
		return true
	}
	if !strings.Contains(fc.keyTemplate, "{http.request.cookie.") {
		return false
	}
	cookies := r.Cookies()
	for i, c := range cookies {
		if slices.ContainsFunc(cookies[:i], func(o *http.Cookie) bool { return o.Name == c.Name }) {
			return false // the key has the first one; the origin may go by another
		}
		if !strings.Contains(fc.keyTemplate, "{http.request.cookie."+c.Name+"}") {
			return false
		}
	}
	return len(cookies) > 0 // a field that holds none is not understood
}

func has(h http.Header, name string) bool { return len(h[name]) > 0 }
