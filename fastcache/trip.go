package fastcache

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/hotset-go/hotset/fastcache/internal/capture"
	"github.com/hotset-go/hotset/fastcache/internal/flight"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

const (
	// smallFill and fillTime rule what happens to a fill whose client leaves:
	// one that is small or more than half done is worth finishing, within a
	// bound; any other is dropped, so that abandoned downloads do not pull
	// whole files from the origin.
	smallFill = 1 << 20
	fillTime  = 30 * time.Second

	// backgroundFill bounds the body of a refresh in the background, which no
	// client waits for.
	backgroundFill = 5 * time.Minute

	// keepValidator is how long after its end of freshness a response with a
	// validator is kept: the origin can still confirm it with a 304.
	keepValidator = time.Hour
)

// trip is one request to the origin and what becomes of its response: stored or
// not, sent to the client or replaced by what is stored.
type trip struct {
	x             *exchange
	requestHeader http.Header // as the origin gets it, before the cache's own validators
	status        rfc9111.CacheStatus

	// What is being validated; nil on a plain miss.
	entry  *store.Entry
	stored *store.Response

	call       *flight.Call // who waits for this trip; nil when nobody can
	background bool         // there is no client

	fence       *store.Fetch
	sink        *store.Writer
	capture     *capture.Writer
	requestTime time.Time

	// Decided when the origin's header has come.
	response   *store.Response // what to store
	outcome    outcome
	fresh      http.Header // the own fields of what updates the stored response: a 304, or a 200 to HEAD
	freshAll   http.Header // and with those of handlers in front
	update     bool        // the stored response is to be updated from a 200 to HEAD
	spent      bool        // the stored response is good for this request only
	fill       bool        // the origin's 304 is the client's answer: the store wants the whole
	failStatus int         // a swallowed failure's status

	cancel   func()      // ends the request to the origin
	header   *time.Timer // ends it when no header comes; nil without a bound
	timedOut atomic.Bool // header has fired

	left    sync.Once // the client left, and the fill goes on
	limited atomic.Pointer[time.Timer]
}

type outcome uint8

const (
	outcomePassed    outcome = iota // the origin's response is the answer
	outcomeConfirmed                // 304: what is stored is the answer
	outcomeOther                    // 304, but not for what is stored: fetch it whole
	outcomeStale                    // the origin failed: what is stored is the answer
	outcomeTimedOut                 // the origin sent no header in time, and there is no answer
)

// run makes the trip on behalf of the client.
func (t *trip) run() error {
	err := t.roundTrip()
	switch t.outcome {
	case outcomeConfirmed:
		return t.answerConfirmed()
	case outcomeOther:
		return t.again()
	case outcomeStale:
		return t.answerStale(err)
	}
	if err != nil && !t.capture.Sent() {
		status := t.status
		status.Detail = rfc9111.ReasonUpstreamError
		t.x.addStatus(t.x.w.Header(), status)
	}
	return err
}

// runInBackground makes the trip for the store alone.
func (t *trip) runInBackground() {
	defer func() {
		// A proxy that loses the origin in mid-body panics to end the
		// client's connection; here there is none to end.
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
			t.x.fc.logger.Error("panic in a background refresh", zap.Any("panic", p), zap.Stack("stack"))
		}
	}()
	err := t.roundTrip()
	switch {
	case t.outcome == outcomeOther:
		err = t.again()
	case t.spent:
		t.x.fc.store.Remove(t.entry, store.Replaced)
	}
	if err != nil {
		t.x.fc.logger.Debug("background refresh failed", zap.String("key", string(t.x.key)), zap.Error(err))
	}
}

// roundTrip asks the origin, streams its response to the client and into the
// store, and commits it if it came whole. On every path, panics included, it
// lands the call, ends the fence and leaves no half-written file.
func (t *trip) roundTrip() (err error) {
	fc, x := t.x.fc, t.x
	t.fence = fc.store.Fetch(string(x.key))
	defer t.fence.Done()
	defer func() {
		if p := recover(); p != nil {
			t.land()
			panic(p)
		}
		if t.outcome != outcomeOther { // else the second trip lands it
			t.land()
		}
	}()
	defer t.countValidation()

	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	defer cancel()
	t.cancel = cancel
	if (t.stored != nil || t.background) && fc.revalidateTimeout > 0 {
		t.header = time.AfterFunc(fc.revalidateTimeout, func() {
			t.timedOut.Store(true)
			cancel()
		})
		defer t.header.Stop()
	}

	t.capture = capture.New(x.w, x.r, t.decide)
	t.capture.KeepFilling = t.keepFilling
	if !t.background {
		stop := context.AfterFunc(x.r.Context(), func() {
			if !t.keepFilling() {
				cancel()
			}
		})
		defer stop()
	}
	defer func() {
		if limit := t.limited.Load(); limit != nil {
			limit.Stop()
		}
		if t.sink != nil {
			t.sink.Discard()
		}
	}()

	r := t.request(ctx)
	defer func() { *x.live = *x.r }()
	t.requestTime = fc.now()
	caddyhttp.SetVar(r.Context(), passVar, fc.store)
	if err := t.next(r); err != nil {
		if !t.failed(err) {
			t.notShared()
		}
		return err
	}
	t.capture.Finish()
	switch t.outcome {
	case outcomeConfirmed:
		t.confirm()
	case outcomeOther:
		fc.store.Remove(t.entry, store.Replaced)
	case outcomePassed:
		if t.update {
			t.updateFromHead()
		}
		t.commit()
		if t.fill {
			t.fillInBackground()
		}
	case outcomeTimedOut:
		t.notShared()
		return caddyhttp.Error(http.StatusGatewayTimeout, context.DeadlineExceeded)
	}
	return nil
}

// next calls the handlers behind the cache. The panic by which a proxy ends a
// broken response becomes an error when the client has seen nothing of it.
func (t *trip) next(r *http.Request) (err error) {
	defer func() {
		if t.capture.Sent() {
			if t.sink != nil && !t.capture.Whole() {
				t.notStored(t.whyIncomplete(), nil)
			}
			return
		}
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
				panic(p)
			}
			err = caddyhttp.Error(http.StatusBadGateway, http.ErrAbortHandler)
		}
		if err != nil && t.timedOut.Load() {
			err = caddyhttp.Error(http.StatusGatewayTimeout, context.DeadlineExceeded)
		}
	}()
	return t.x.next.ServeHTTP(t.capture, r)
}

// request is the request for the origin: with the cache's validators in the place
// of the client's conditions when there is something to validate.
func (t *trip) request(ctx context.Context) *http.Request {
	x := t.x
	x.isolate()
	if q := x.fc.query; q != nil {
		ctx = withQueryRules(ctx, q)
	}
	r := x.r.WithContext(ctx)
	r.URL = filterQuery(r.URL, x.fc.query) // a copy: a second trip begins where this one does
	if q := x.fc.query; q != nil {
		r.RequestURI = string(q.Append(nil, r.RequestURI))
	}
	if x.fc.CacheKey == "" && !fromTrustedProxy(r) {
		r.Host = keyHost(x.key) // spellings that share a key look alike to the origin
	}
	r.Header = x.origin.Clone()
	for _, name := range forwardingFields {
		delete(r.Header, name)
	}
	if t.stored != nil {
		rfc9111.RemoveConditionals(r.Header)
		rfc9111.SetValidators(r.Header, t.stored.Header)
	}
	*x.live = *r
	return x.live
}

// forwardingFields tell an origin of the client's view of the request. They are
// not in the key, so that what a client puts there must not reach an origin whose
// answer others will get; a proxy in front, trusted or not, may pass on those that it
// does not know. Caddy's reverse_proxy deals with X-Forwarded-For, -Proto and -Host:
// from a trusted proxy the last two are in the key.
var forwardingFields = []string{
	"Forwarded", "Front-End-Https", "X-Forwarded-Path", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Protocol", "X-Forwarded-Scheme",
	"X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-Uri", "X-Host", "X-Http-Host-Override", "X-Original-Host", "X-Rewrite-Uri", "X-Script-Name",
	"X-Url-Scheme",
}

// keyHost is the host in a default key.
func keyHost(key []byte) string {
	_, rest, _ := strings.Cut(string(key), "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// withQueryRules applies the query rules to the original request in ctx, from
// which some handlers (php_fastcgi) take what they tell the origin.
func withQueryRules(ctx context.Context, q *rfc9111.QueryRules) context.Context {
	original, ok := ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok {
		return ctx
	}
	original.URL = filterQuery(original.URL, q)
	original.RequestURI = string(q.Append(nil, original.RequestURI))
	return context.WithValue(ctx, caddyhttp.OriginalRequestCtxKey, original) //nolint:govet // Caddy keeps it by value
}

// filterQuery returns a copy of u with the query rules, if any, applied.
func filterQuery(u *url.URL, q *rfc9111.QueryRules) *url.URL {
	filtered := *u
	if q != nil {
		filtered.RawQuery = strings.TrimPrefix(string(q.Append(nil, "?"+u.RawQuery)), "?")
	}
	return &filtered
}

// decide judges the origin's final header.
func (t *trip) decide(status int, h http.Header) capture.Plan {
	if t.header != nil {
		t.header.Stop()
	}
	if t.timedOut.Load() {
		// What comes now is a handler's word for a request that ended early.
		t.outcome, t.failStatus = outcomeTimedOut, http.StatusGatewayTimeout
		if t.mayUseStale() {
			t.outcome = outcomeStale
		}
		return capture.Plan{Swallow: true}
	}
	if t.background {
		t.limited.Store(time.AfterFunc(backgroundFill, t.cancel))
	}
	if t.stored != nil {
		switch {
		case status == http.StatusNotModified:
			t.outcome = outcomeConfirmed
			t.keepFresh(h)
			if !rfc9111.Confirms(t.stored.Header, h) {
				t.outcome = outcomeOther
			}
			return capture.Plan{Swallow: true}
		case isFailure(status) && t.mayUseStale():
			t.outcome, t.failStatus = outcomeStale, status
			t.cancel() // nobody needs its body
			return capture.Plan{Swallow: true}
		case t.x.r.Method == http.MethodHead && status == http.StatusOK:
			t.update = true
			t.keepFresh(h)
		case t.x.r.Method == http.MethodHead && supersedes(status):
			t.x.fc.store.Remove(t.entry, store.Replaced)
		}
		t.status.FwdStatus = status
	}
	t.fill = status == http.StatusNotModified && t.call != nil && t.wouldStore(h)
	reason := t.prepare(status, h)
	if reason != rfc9111.ReasonNone && t.clientLeft() {
		reason = rfc9111.ReasonClientGone // the status is a handler's word for that
	}
	if reason != rfc9111.ReasonNone {
		t.status.Detail = reason
		t.notShared()
		if t.stored != nil && supersedes(status) {
			t.x.fc.store.Remove(t.entry, store.Replaced)
		}
	}
	plan := capture.Plan{}
	if t.sink != nil {
		plan.Sink = sharedSink{t}
		t.status.Stored, t.status.HasTTL = true, true
		t.status.TTL = t.x.fc.ttl(t.response)
	}
	trailer := h["Trailer"]
	rfc9111.RemoveHopByHop(h)
	if trailer != nil {
		h["Trailer"] = trailer // net/http sends the trailers that it announces
	}
	delete(h, rfc9111.TargetedField)
	t.x.addStatus(h, t.status)
	return plan
}

// wouldStore reports whether the response that a 304 to the client's own condition
// stands for would be stored, as far as its header tells: it has the fields that
// decide (RFC 9110 section 15.4.5).
func (t *trip) wouldStore(h http.Header) bool {
	_, reason := t.x.fc.storable(t.exchange(http.StatusOK, h), t.capture.Added(h))
	return reason == rfc9111.ReasonNone
}

// fillInBackground fetches the whole response for the store: if all clients have
// it already and ask with a condition, the cache would never get it. Who waits for
// this trip waits for that one.
func (t *trip) fillInBackground() {
	own := t.x.inBackground()
	fill := &trip{x: own, call: t.call, background: true, requestHeader: own.origin}
	t.call = nil
	go fill.runInBackground()
}

// keepFresh keeps the header that updates the stored response, before it is made
// ready for the client.
func (t *trip) keepFresh(h http.Header) {
	t.fresh, t.freshAll = t.capture.Added(h).Clone(), h.Clone()
	if !has(t.fresh, "Date") { // or the age would go on from the stored one
		t.fresh.Set("Date", t.x.fc.now().UTC().Format(http.TimeFormat)) // RFC 9110 section 6.6.1
	}
}

// prepare opens the sink if the response may be stored, or says why not.
func (t *trip) prepare(status int, h http.Header) rfc9111.Reason {
	if t.x.r.Method != http.MethodGet || status == http.StatusNotModified {
		return rfc9111.ReasonNone // nothing that could be stored
	}
	response, reason := t.x.fc.storable(t.exchange(status, h), t.capture.Added(h))
	if reason != rfc9111.ReasonNone {
		return reason
	}
	sink, err := t.fence.Create(t.capture.Declared())
	if err != nil {
		return whyNotStored(err)
	}
	t.response, t.sink = response, sink
	return rfc9111.ReasonNone
}

// exchange is what the rules look at.
func (t *trip) exchange(status int, h http.Header) *rfc9111.Exchange {
	return &rfc9111.Exchange{
		Method:        http.MethodGet, // only what GET gets is stored, or updated
		RequestHeader: t.requestHeader,
		Status:        status,
		Header:        h,
		RequestTime:   t.requestTime,
		ResponseTime:  t.x.fc.now(),
		KeyHasCookie:  t.x.fc.keyHasCookies(t.x.r),
		Target:        t.x.target(),
	}
}

// target is the target URI of the request. With a default key it is the key.
func (x *exchange) target() string {
	if x.fc.CacheKey == "" {
		return string(x.key)
	}
	scheme, host, _ := effectiveOrigin(x.r)
	target, _ := rfc9111.AppendTarget(nil, scheme, host, x.fc.requestURI(x.r))
	return string(target)
}

// storable turns a response that may be stored into what is stored of it. The
// rules see the whole header, own is the part of it that comes from behind the
// cache: what handlers in front have put there they will put there again.
func (fc *FastCache) storable(e *rfc9111.Exchange, own http.Header) (*store.Response, rfc9111.Reason) {
	d := fc.policy.Evaluate(e)
	if d.Reason != rfc9111.ReasonNone {
		return nil, d.Reason
	}
	header := rfc9111.StoredHeader(own, &d)
	delete(header, "Alt-Svc") // of the server that is asked, not of the response
	if !has(header, "Date") {
		header.Set("Date", e.ResponseTime.UTC().Format(http.TimeFormat)) // RFC 9110 section 6.6.1
	}
	born := e.ResponseTime.Add(-d.InitialAge)
	grace := max(d.StaleWhileRevalidate, d.StaleIfError)
	if rfc9111.HasValidator(header) {
		grace = max(grace, keepValidator)
	}
	return &store.Response{
		Status:               e.Status,
		Header:               header,
		Born:                 born,
		Lifetime:             d.Lifetime,
		StaleWhileRevalidate: d.StaleWhileRevalidate,
		StaleIfError:         d.StaleIfError,
		Discard:              born.Add(d.Lifetime).Add(grace),
		Flags:                flags(d),
		Vary:                 d.Vary,
		Tags:                 labelsOf(e),
	}, rfc9111.ReasonNone
}

func flags(d rfc9111.Decision) (f store.Flags) {
	for flag, set := range map[store.Flags]bool{
		store.Validate:   d.Validate,
		store.NoStale:    d.NoStale,
		store.SharedAuth: d.SharedAuth,
		store.Fallback:   d.Fallback || d.Heuristic,
		store.Immutable:  d.Immutable,
	} {
		if set {
			f |= flag
		}
	}
	return f
}

// commit puts a whole response into the store.
func (t *trip) commit() {
	if t.sink == nil {
		return
	}
	if !t.capture.Whole() {
		t.notStored(t.whyIncomplete(), t.capture.SinkErr())
		return
	}
	if _, err := t.sink.Commit(t.response, t.requestHeader); err != nil {
		t.notStored(whyNotStored(err), err)
		return
	}
	t.x.fc.flights.Unmark(t.x.flightKey())
	t.learn()
}

// learn notes for which other URLs what has been stored or confirmed may answer.
func (t *trip) learn() {
	if e := t.x.fc.equivalents; e != nil {
		e.learn(string(t.x.key), cmp.Or(t.response, t.stored), t.requestHeader)
	}
}

// whyIncomplete tells why a capture did not get the whole body.
func (t *trip) whyIncomplete() rfc9111.Reason {
	switch {
	case t.capture.SinkErr() != nil:
		return whyNotStored(t.capture.SinkErr())
	case t.capture.ClientErr() != nil:
		return rfc9111.ReasonClientGone
	}
	return rfc9111.ReasonTruncated
}

// notStored logs why a response whose header promised to be stored was not.
func (t *trip) notStored(reason rfc9111.Reason, err error) {
	t.x.seen.cut(reason)
	t.x.fc.logger.Debug("response not stored", zap.String("key", string(t.x.key)), zap.Stringer("reason", reason), zap.Error(err))
}

// land wakes those who wait for this trip.
func (t *trip) land() {
	if t.call != nil {
		if t.outcome == outcomeStale {
			t.call.Fail()
		}
		t.call.Land()
	}
}

// clientLeft reports whether the client has left: what comes of the trip tells
// nothing of the URL then.
func (t *trip) clientLeft() bool { return !t.background && t.x.r.Context().Err() != nil }

// notShared wakes those who wait for a response that they cannot have, and lets
// those who come next go to the origin side by side. If there is none because the
// client has left, one of those who wait is the next to ask for it.
func (t *trip) notShared() {
	if t.clientLeft() {
		t.land()
		return
	}
	if t.call != nil {
		t.x.fc.flights.Mark(t.x.flightKey(), hitForMissTime)
		t.call.Land()
	}
}

// sharedSink is the sink of a trip, for which nobody waits in vain: once it
// cannot take the body, the others need not see the rest of it arrive.
type sharedSink struct{ *trip }

func (s sharedSink) Write(p []byte) (int, error) {
	n, err := s.sink.Write(p)
	if err != nil {
		s.notShared()
	}
	return n, err
}

// supersedes reports whether a response to a validation tells that the stored
// one is not the resource's state any more, rather than of a passing trouble.
func supersedes(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnavailableForLegalReasons:
		return true
	}
	return status < 400 && status != http.StatusPartialContent
}

// keepFilling reports whether the capture is worth finishing without the client,
// and bounds the time for that.
func (t *trip) keepFilling() bool {
	declared, got := t.capture.Declared(), t.capture.Captured()
	if declared < 0 || declared > smallFill && got < declared/2 {
		return false
	}
	t.left.Do(func() { t.limited.Store(time.AfterFunc(fillTime, t.cancel)) })
	return true
}

// mayUseStale reports whether there is a stored response that may answer if the
// origin has failed now.
func (t *trip) mayUseStale() bool { return t.stored != nil && t.x.fc.mayStandIn(t.entry, t.stored) }

// failed reports whether a handler's error lets the stored response answer.
func (t *trip) failed(err error) bool {
	if t.outcome == outcomeStale {
		return !t.capture.Sent()
	}
	if t.capture.Sent() || !t.mayUseStale() {
		return false
	}
	t.failStatus = http.StatusInternalServerError
	var he caddyhttp.HandlerError
	if errors.As(err, &he) {
		t.failStatus = he.StatusCode
	}
	if !isFailure(t.failStatus) {
		return false
	}
	t.outcome = outcomeStale
	return true
}

// isFailure reports whether stale-if-error speaks of this status (RFC 5861
// section 4).
func isFailure(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// confirm merges a 304 into the stored response (RFC 9111 section 4.3.4), which
// is then the answer.
func (t *trip) confirm() {
	header := mergeAppended(rfc9111.MergeNotModified(t.stored.Header, t.fresh), t.stored.Header, t.fresh)
	if reason, ok := t.refresh(header); !ok {
		// The origin has changed its mind about storing, or about who may
		// have the response: good for this request, and for no other.
		once, now := *t.stored, t.x.fc.now()
		once.Header, once.Born, once.Lifetime = header, now.Add(-rfc9111.InitialAge(t.freshAll, t.requestTime, now)), 0
		t.stored, t.status.Detail = &once, reason
		t.spent = true
	}
}

// updateFromHead updates the stored response from a 200 to HEAD, or drops it if
// that is about another representation (RFC 9111 section 4.3.5).
func (t *trip) updateFromHead() {
	stored := t.stored.Header
	if !has(stored, "Content-Length") { // the origin sent the body in chunks
		stored = stored.Clone()
		stored.Set("Content-Length", strconv.FormatInt(t.entry.Size(), 10))
	}
	header, ok := rfc9111.UpdateFromHead(stored, t.fresh)
	if ok {
		_, ok = t.refresh(mergeAppended(header, stored, t.fresh))
	}
	if !ok {
		t.x.fc.store.Remove(t.entry, store.Replaced)
	}
}

// mergeAppended brings the list of capture.AppendedField in line with a header that
// has been merged from a stored and a fresh one.
func mergeAppended(merged, stored, fresh http.Header) http.Header {
	var names []string
	for _, name := range stored[capture.AppendedField] {
		if !has(fresh, name) {
			names = append(names, name)
		}
	}
	names = append(names, fresh[capture.AppendedField]...)
	if delete(merged, capture.AppendedField); len(names) > 0 {
		merged[capture.AppendedField] = names
	}
	return merged
}

// refresh gives the stored response a new header. It fails if the response may
// not be stored with that, or if it would not be chosen for the same requests.
func (t *trip) refresh(header http.Header) (rfc9111.Reason, bool) {
	all := t.freshAll
	maps.Copy(all, header)
	for _, name := range header[capture.AppendedField] {
		all[name] = slices.Concat(t.capture.Front(name), header[name])
	}
	updated, reason := t.x.fc.storable(t.exchange(t.stored.Status, all), header)
	if reason != rfc9111.ReasonNone || !slices.Equal(updated.Vary, t.stored.Vary) {
		return reason, false
	}
	t.stored = updated
	entry, err := t.fence.Refresh(t.entry, updated)
	if err != nil {
		t.x.fc.logger.Debug("validated response not updated", zap.String("key", string(t.x.key)), zap.Error(err))
		return rfc9111.ReasonNone, true
	}
	t.entry = entry
	t.learn()
	return rfc9111.ReasonNone, true
}

// countValidation counts what came of asking the origin about what is stored.
func (t *trip) countValidation() {
	if t.stored == nil {
		return
	}
	v := validationError
	switch {
	case t.outcome == outcomeConfirmed:
		v = validationNotModified
	case t.outcome == outcomePassed && t.status.FwdStatus != 0 && !isFailure(t.status.FwdStatus):
		v = validationOK
	}
	t.x.fc.tally.validations[v].Add(1)
}

// answerConfirmed answers with the stored response that the origin confirmed.
func (t *trip) answerConfirmed() error {
	status := t.status
	status.FwdStatus = http.StatusNotModified
	t.x.soft, t.x.last = false, t.spent
	if t.x.serveStored(t.entry, t.stored, status) {
		return nil
	}
	if t.x.last = false; t.spent {
		t.x.fc.store.Remove(t.entry, store.Replaced)
	}
	return t.again() // the body went away meanwhile
}

// again fetches the response whole, with nothing to validate.
func (t *trip) again() error {
	plain := &trip{x: t.x, requestHeader: t.requestHeader, status: t.status, background: t.background, call: t.call}
	return plain.run()
}

// answerStale answers with the stored response because the origin failed.
func (t *trip) answerStale(err error) error {
	status := t.status
	status.FwdStatus, status.Detail = t.failStatus, rfc9111.ReasonStaleError
	if t.x.serveStored(t.entry, t.stored, status) {
		return nil
	}
	if err != nil {
		return err
	}
	return caddyhttp.Error(t.failStatus, errors.New("the origin failed and what was stored is gone"))
}

// whyNotStored puts an error of the store into the words of Cache-Status.
func whyNotStored(err error) rfc9111.Reason {
	switch {
	case errors.Is(err, store.ErrTooBig), errors.Is(err, store.ErrFull):
		return rfc9111.ReasonTooBig
	case errors.Is(err, store.ErrPurged):
		return rfc9111.ReasonPurgedInFlight
	case errors.Is(err, store.ErrClosed):
		return rfc9111.ReasonStoreOff
	}
	return rfc9111.ReasonDiskError
}
