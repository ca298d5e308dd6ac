package rfc9111

import (
	"net/http"
	"time"
)

// InitialAge returns how old a response was when it came in: the
// corrected_initial_age of RFC 9111 section 4.2.3. requestTime is when the
// request that led to it went out, responseTime is when its header came in.
//
// An Age that cannot be read counts as 0, and so does the apparent age of a
// response whose Date is missing, malformed or given twice. The apparent age is
// cut to whole seconds: the fraction that it seems to have is only the precision
// that Date lacks. The result is never negative.
func InitialAge(h http.Header, requestTime, responseTime time.Time) time.Duration {
	apparent := max(0, responseTime.Sub(dateOf(h, responseTime))).Truncate(time.Second)
	age, _ := ParseAge(h["Age"])
	corrected := age + clamp(responseTime.Sub(requestTime))
	return min(max(apparent, corrected), maxDelta)
}

// dateOf returns when a response was made: its Date or else responseTime (RFC
// 9110 section 6.6.1).
func dateOf(h http.Header, responseTime time.Time) time.Time {
	if date, ok := fieldDate(h, "Date", responseTime); ok {
		return date
	}
	return responseTime
}

// explicitLifetime returns the freshness lifetime that a response states for a
// shared cache (RFC 9111 section 4.2.1): s-maxage, or else max-age, or else
// Expires minus Date. ok is false if it states none.
//
// Expires that is malformed or given twice states that the response is stale
// (section 5.3). Targeted directives leave Expires out.
func explicitLifetime(cc *Directives, h http.Header, responseTime time.Time) (lifetime time.Duration, ok bool) {
	switch {
	case cc.SMaxAge.Set:
		return cc.SMaxAge.D, true
	case cc.MaxAge.Set:
		return cc.MaxAge.D, true
	case cc.Targeted || !has(h, "Expires"):
		return 0, false
	}
	expires, ok := fieldDate(h, "Expires", responseTime)
	if !ok {
		return 0, true
	}
	return clamp(expires.Sub(dateOf(h, responseTime))), true
}

// heuristicFraction is the part of its age that a document is taken to stay
// unchanged for: the "typical setting" of RFC 9111 section 4.2.2.
const heuristicFraction = 10

// heuristicLifetime guesses a freshness lifetime from how long the document had
// not changed when it was sent (RFC 9111 section 4.2.2). ok is false if that is
// not known: no Last-Modified, a malformed one, or one later than Date.
func heuristicLifetime(h http.Header, responseTime time.Time, limit time.Duration) (lifetime time.Duration, ok bool) {
	modified, ok := fieldDate(h, "Last-Modified", responseTime)
	if !ok {
		return 0, false
	}
	unchanged := dateOf(h, responseTime).Sub(modified)
	if unchanged < 0 {
		return 0, false
	}
	return min(clamp(unchanged/heuristicFraction), limit), true
}

// clamp bounds a time span to what delta-seconds can say.
func clamp(d time.Duration) time.Duration { return min(max(d, 0), maxDelta) }
