package fastcache

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/hotset-go/hotset/fastcache/internal/capture"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// posting is a POST on its way: its response drops what is stored of the target
// like that of any unsafe method, and may then take its place, if it says that
// it shows what a GET would get (RFC 9110 section 9.3.3).
type posting struct {
	*unsafeRequest
	sent time.Time
	seen *observation

	capture  *capture.Writer
	fence    *store.Fetch
	sink     *store.Writer
	response *store.Response
}

// plain reports whether a POST reaches the origin as a GET for its key would, so that
// its answer may answer that: nothing is in it that a trip would have taken out.
func (fc *FastCache) plain(r *http.Request, key []byte) bool {
	if rfc9111.Nominates(r.Header) {
		return false
	}
	for _, name := range forwardingFields {
		if has(r.Header, name) {
			return false
		}
	}
	if fc.query != nil && string(fc.query.Append(nil, r.RequestURI)) != r.RequestURI {
		return false
	}
	return fc.CacheKey != "" || fromTrustedProxy(r) || r.Host == keyHost(key)
}

// post hands a POST on.
func (fc *FastCache) post(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, made *unsafeRequest, seen *observation) error {
	p := &posting{unsafeRequest: made, sent: fc.now(), seen: seen}
	p.fence = fc.store.Fetch(string(made.key))
	defer p.end()
	p.capture = capture.New(w, r, p.decide)
	if err := next.ServeHTTP(p.capture, r); err != nil {
		return err
	}
	p.capture.Finish()
	p.commit()
	return nil
}

func (p *posting) decide(status int, h http.Header) capture.Plan {
	cs := rfc9111.CacheStatus{Fwd: rfc9111.FwdMethod, Detail: rfc9111.ReasonMethod}
	plan := capture.Plan{}
	// Another unsafe request that ended meanwhile may know a newer state.
	current := status < 400 && p.fc.lease.shared.supersede(p.fence, string(p.key))
	if status < 400 {
		p.invalidateOthers(h)
	}
	if current && p.prepare(status, h) {
		plan.Sink = p.sink
		cs = rfc9111.CacheStatus{Fwd: rfc9111.FwdMethod, Stored: true, HasTTL: true, TTL: p.fc.ttl(p.response)}
	}
	delete(h, rfc9111.TargetedField)
	p.fc.answered(p.seen, resultBypass, h, p.key, cs)
	return plan
}

// prepare opens the sink if the response may answer later GET requests.
func (p *posting) prepare(status int, h http.Header) bool {
	target, ok := rfc9111.AppendTarget(nil, p.scheme, p.host, p.uri)
	if !ok {
		return false
	}
	response, reason := p.fc.storable(&rfc9111.Exchange{
		Method:        http.MethodPost,
		RequestHeader: p.header,
		Status:        status,
		Header:        h,
		RequestTime:   p.sent,
		ResponseTime:  p.fc.now(),
		Target:        string(target),
	}, p.capture.Added(h))
	if reason != rfc9111.ReasonNone {
		return false
	}
	sink, err := p.fence.Create(p.capture.Declared())
	if err != nil {
		return false
	}
	p.response, p.sink = response, sink
	return true
}

func (p *posting) commit() {
	if p.sink == nil || !p.capture.Whole() {
		return
	}
	if _, err := p.sink.Commit(p.response, p.header); err != nil {
		p.seen.cut(whyNotStored(err))
		p.fc.logger.Debug("response to POST not stored", zap.ByteString("key", p.key), zap.Error(err))
	}
}

// end leaves no half-written file and no fence, panics included.
func (p *posting) end() {
	p.fence.Done()
	if p.sink != nil {
		p.sink.Discard()
	}
}
