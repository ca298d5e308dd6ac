package fastcache

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// epoch is what durations are measured from: reading the monotonic clock alone
// takes half the time of [time.Now].
var epoch = time.Now()

// observation follows one request until its answer is known, and tells the
// metrics and the access log. Each request counts once. The zero value is for a
// refresh in the background, which answers nobody: it tells nothing.
//
// It belongs to the goroutine of the request. On a hit, with no access log, it
// costs two readings of the monotonic clock and two atomic adds, and allocates nothing.
type observation struct {
	fc    *FastCache    // nil: tell nothing
	start time.Duration // since epoch
	log   *logged       // nil without an access log
	stale bool          // the stored response that answers was marked stale by a purge
	done  bool

	// What the request counts as if no header ever goes out.
	result result
	reason rfc9111.Reason
}

// observe begins to follow a request.
func (fc *FastCache) observe(r *http.Request) observation {
	o := observation{fc: fc, start: time.Since(epoch), result: resultMiss}
	if fc.accessLog {
		if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
			o.log = &logged{extra: extra}
		}
	}
	return o
}

// answered notes how the request is answered. It is called when the answer's
// header is about to go out; later calls change nothing.
func (o *observation) answered(res result, status rfc9111.CacheStatus) {
	if o.fc == nil || o.done {
		return
	}
	o.done = true
	if o.stale && res == resultHit {
		res = resultStale
	}
	t := o.fc.tally
	t.requests[res].add(time.Since(epoch) - o.start)
	t.reason(status.Detail)
	if status.Collapsed {
		t.coalesced.Add(1)
	}
	if o.log != nil {
		o.log.set(res, status)
	}
}

// end counts a request that no header has gone out for: the handlers behind have
// failed, or panicked, or taken the connection over.
func (o *observation) end(failed bool) {
	if failed && o.reason == rfc9111.ReasonNone {
		o.reason = rfc9111.ReasonUpstreamError
	}
	o.answered(o.result, rfc9111.CacheStatus{Detail: o.reason})
}

// cut notes why an answer whose header has gone out is not what it promised:
// not whole, or not stored.
func (o *observation) cut(reason rfc9111.Reason) {
	if o.fc == nil {
		return
	}
	o.fc.tally.reason(reason)
	if o.log != nil {
		o.log.reason = reason
	}
}

// resultOf tells the result from what Cache-Status says of an answer that the
// cache had a part in.
func resultOf(s rfc9111.CacheStatus) result {
	switch {
	case s.Hit && s.HasTTL && s.TTL < time.Second, // 0 or less as Cache-Status has it
		s.Detail == rfc9111.ReasonStaleError:
		return resultStale
	case s.Hit:
		return resultHit
	case s.FwdStatus == http.StatusNotModified:
		return resultRevalidated
	}
	return resultMiss
}

// logged is what the access log says of a request: the object fastcache. It is
// read when the line is written, after the request.
type logged struct {
	extra  *caddyhttp.ExtraLogFields
	result result
	reason rfc9111.Reason
	ttl    time.Duration
	hasTTL bool
}

func (l *logged) set(res result, s rfc9111.CacheStatus) {
	l.result, l.reason, l.ttl, l.hasTTL = res, s.Detail, s.TTL, s.HasTTL
	// Set, not Add: of two caches in a row, the one nearer to the client has
	// the last word.
	l.extra.Set(zap.Object("fastcache", l))
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l *logged) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("result", l.result.String())
	if l.reason != rfc9111.ReasonNone {
		enc.AddString("reason", l.reason.String())
	}
	if l.hasTTL {
		enc.AddInt64("ttl", int64(l.ttl/time.Second))
	}
	return nil
}
