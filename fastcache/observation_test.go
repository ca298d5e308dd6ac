package fastcache

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// TestResultOf: the result is what Cache-Status says, so that who reads a
// response and who reads the metrics see the same.
func TestResultOf(t *testing.T) {
	for _, tc := range []struct {
		status rfc9111.CacheStatus
		want   result
	}{
		{rfc9111.CacheStatus{Hit: true, HasTTL: true, TTL: 59 * time.Second}, resultHit},
		{rfc9111.CacheStatus{Hit: true, HasTTL: true, TTL: time.Second}, resultHit},
		{rfc9111.CacheStatus{Hit: true, HasTTL: true, TTL: 999 * time.Millisecond}, resultStale}, // ttl=0
		{rfc9111.CacheStatus{Hit: true, HasTTL: true, TTL: 0}, resultStale},
		{rfc9111.CacheStatus{Hit: true, HasTTL: true, TTL: -time.Hour}, resultStale},
		{rfc9111.CacheStatus{Fwd: rfc9111.FwdStale, FwdStatus: 503, HasTTL: true, TTL: -time.Second, Detail: rfc9111.ReasonStaleError}, resultStale},
		{rfc9111.CacheStatus{Fwd: rfc9111.FwdStale, FwdStatus: 304, HasTTL: true, TTL: time.Minute}, resultRevalidated},
		{rfc9111.CacheStatus{Fwd: rfc9111.FwdRequest, FwdStatus: 304, Detail: rfc9111.ReasonRequestNoCache}, resultRevalidated},
		{rfc9111.CacheStatus{Fwd: rfc9111.FwdStale, FwdStatus: 200, Stored: true}, resultMiss},
		{rfc9111.CacheStatus{Fwd: rfc9111.FwdURIMiss, Stored: true, HasTTL: true, TTL: time.Hour}, resultMiss},
		{rfc9111.CacheStatus{Fwd: rfc9111.FwdURIMiss, Collapsed: true, HasTTL: true, TTL: time.Hour}, resultMiss},
		{rfc9111.CacheStatus{Fwd: rfc9111.FwdVaryMiss, Detail: rfc9111.ReasonPrivate}, resultMiss},
		{rfc9111.CacheStatus{Detail: rfc9111.ReasonOnlyIfCached}, resultMiss},
	} {
		if got := resultOf(tc.status); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.status.Append(nil), got, tc.want)
		}
	}
}

// TestObservation_Once: a request counts once, as what it counted as first.
func TestObservation_Once(t *testing.T) {
	fc := &FastCache{tally: newTally()}
	r, _ := http.NewRequest(http.MethodGet, "/", nil)

	o := fc.observe(r)
	o.answered(resultHit, rfc9111.CacheStatus{Hit: true})
	o.answered(resultMiss, rfc9111.CacheStatus{Detail: rfc9111.ReasonPrivate})
	o.end(true)

	o = fc.observe(r)
	o.end(true) // nothing has gone out, and the handler failed
	o.end(false)

	o = fc.observe(r)
	o.result, o.reason = resultBypass, rfc9111.ReasonMethod
	o.end(true)

	var background observation
	background.answered(resultMiss, rfc9111.CacheStatus{})
	background.cut(rfc9111.ReasonTruncated)
	background.end(true)

	want := map[string]uint64{"hit": 1, "miss": 1, "bypass": 1, "upstream-error": 1, "method": 1}
	got := make(map[string]uint64)
	for i := range fc.tally.requests {
		if n, _, _ := fc.tally.requests[i].read(); n > 0 {
			got[result(i).String()] = n
		}
	}
	for _, reason := range rfc9111.Reasons() {
		if n := fc.tally.reasons[reason].Load(); n > 0 {
			got[reason.String()] = n
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// TestObservation_Stale: what a purge has marked stale is a stale answer, however
// long it would have been fresh.
func TestObservation_Stale(t *testing.T) {
	fc := &FastCache{tally: newTally()}
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	o := fc.observe(r)
	o.stale = true
	o.answered(resultHit, rfc9111.CacheStatus{Hit: true})
	if n, _, _ := fc.tally.requests[resultStale].read(); n != 1 {
		t.Errorf("%d stale answers, want 1", n)
	}
}

// TestDurations_Buckets: each duration is in the first bucket that it is not
// above, and in all those behind it.
func TestDurations_Buckets(t *testing.T) {
	if !slices.IsSorted(durationBounds[:]) {
		t.Fatal("the bounds are not in order")
	}
	for _, took := range []time.Duration{
		-time.Second, 0, 1, durationBounds[0], durationBounds[0] + 1, 20 * time.Microsecond, 99 * time.Microsecond,
		time.Second, time.Second + 1, durationBounds[len(durationBounds)-1], durationBounds[len(durationBounds)-1] + 1, time.Hour,
	} {
		var d durations
		d.add(took)
		count, sum, buckets := d.read()
		if want := max(took, 0).Seconds(); count != 1 || sum != want {
			t.Errorf("%v: count %d, sum %v; want 1, %v", took, count, sum, want)
		}
		for _, bound := range durationBounds {
			want := uint64(0)
			if took <= bound {
				want = 1
			}
			if got := buckets[bound.Seconds()]; got != want {
				t.Errorf("%v: bucket %v has %d, want %d", took, bound, got, want)
			}
		}
	}
}

// TestObservation_HitDoesNotAllocate: with no access log, what the metrics cost a
// hit is a few nanoseconds and no garbage.
func TestObservation_HitDoesNotAllocate(t *testing.T) {
	fc := &FastCache{tally: newTally()}
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	status := rfc9111.CacheStatus{Hit: true, HasTTL: true, TTL: time.Minute}
	if n := testing.AllocsPerRun(1000, func() {
		o := fc.observe(r)
		o.answered(resultOf(status), status)
		o.end(false)
	}); n != 0 {
		t.Errorf("%v allocations a hit, want 0", n)
	}
}

// TestLogged_Fields: the object in the access log has the words of the metrics,
// and tells of a promise that was not kept.
func TestLogged_Fields(t *testing.T) {
	fc := &FastCache{tally: newTally()}
	o := observation{fc: fc, log: &logged{extra: new(caddyhttp.ExtraLogFields)}}
	o.answered(resultMiss, rfc9111.CacheStatus{Stored: true, HasTTL: true, TTL: 59900 * time.Millisecond})
	encode := func() string {
		enc := zapcore.NewMapObjectEncoder()
		zap.Object("fastcache", o.log).AddTo(enc)
		return fmt.Sprint(enc.Fields)
	}
	if got, want := encode(), "map[fastcache:map[result:miss ttl:59]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	o.cut(rfc9111.ReasonTruncated)
	if got, want := encode(), "map[fastcache:map[reason:truncated result:miss ttl:59]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// BenchmarkObservation is what a hit pays for being counted, beside what it would
// pay for the client library's counter and histogram.
func BenchmarkObservation(b *testing.B) {
	fc := &FastCache{tally: newTally()}
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	status := rfc9111.CacheStatus{Hit: true, HasTTL: true, TTL: time.Minute}
	b.Run("impl=fastcache", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				o := fc.observe(r)
				o.answered(resultOf(status), status)
				o.end(false)
			}
		})
	})
	bounds := make([]float64, len(durationBounds))
	for i, bound := range durationBounds {
		bounds[i] = bound.Seconds()
	}
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c"}, []string{"name", "result"}).WithLabelValues("", "hit")
	histogram := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h", Buckets: bounds}, []string{"name", "result"}).WithLabelValues("", "hit")
	b.Run("impl=client_golang", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				start := time.Since(epoch)
				counter.Inc()
				histogram.Observe((time.Since(epoch) - start).Seconds())
			}
		})
	})
	b.Run("impl=clock_only", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			var sum time.Duration
			for pb.Next() {
				start := time.Since(epoch)
				sum += time.Since(epoch) - start
			}
			_ = sum
		})
	})
}
