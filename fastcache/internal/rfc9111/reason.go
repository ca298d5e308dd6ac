package rfc9111

// Reason is a word of the one closed list that says why a cache did what it did.
// The same words stand in the detail parameter of Cache-Status, in the log and
// in the labels of metrics. The zero value is [ReasonNone].
type Reason uint8

// The reasons. Each comment behind the colon is one sentence for users.
const (
	// ReasonNone says that there is nothing to explain.
	ReasonNone Reason = iota

	// ReasonSetCookie: the response sets a cookie, which would reach every later client.
	ReasonSetCookie
	// ReasonPrivate: the response is marked private, so it is for one user only.
	ReasonPrivate
	// ReasonNoStore: the response forbids storing with no-store.
	ReasonNoStore
	// ReasonRequestNoStore: the request forbids storing with no-store, and such wishes are honoured.
	ReasonRequestNoStore
	// ReasonVaryStar: the response has "Vary: *" or a Vary that cannot be read, so no later request can match it.
	ReasonVaryStar
	// ReasonVaryUnlisted: the response varies on a field that the option vary does not list.
	ReasonVaryUnlisted
	// ReasonAuth: the request carries Authorization and the response does not say that it may be shared.
	ReasonAuth
	// ReasonTooBig: the response is larger than the cache may store.
	ReasonTooBig
	// ReasonTTLZero: the response is not fresh for any time and has nothing by which it could be validated later.
	ReasonTTLZero
	// ReasonStatus: responses with this status are not stored, either by the rules of HTTP or by a status_ttl of 0.
	ReasonStatus
	// ReasonMatchHeader: the response does not have the header values that match_header asks for.
	ReasonMatchHeader
	// ReasonRequestFault: the response is an error that this request's own header may have caused, being very long or of unusual bytes.
	ReasonRequestFault
	// ReasonPartial: the response is a part (206), and parts are not stored.
	ReasonPartial
	// ReasonCookie: the request carries a cookie and the response says nothing about its freshness, so the default ttl does not apply.
	ReasonCookie
	// ReasonMustUnderstand: the response has must-understand and a status whose rules this cache does not know.
	ReasonMustUnderstand
	// ReasonMethod: the method is not one that the cache answers or stores.
	ReasonMethod
	// ReasonUpgrade: the request asks for another protocol on this connection.
	ReasonUpgrade
	// ReasonRequestBody: the GET or HEAD request has a body, which is not part of the key.
	ReasonRequestBody
	// ReasonOverride: the request carries a field by which some origins replace the method or the URL.
	ReasonOverride
	// ReasonConnection: the Connection field takes fields from the origin that the option cache_key may go by.
	ReasonConnection
	// ReasonConditional: the request has a condition that only the origin may evaluate (If-Match or If-Unmodified-Since).
	ReasonConditional
	// ReasonPurgedInFlight: the URL was purged while the response was on its way, so it was not stored.
	ReasonPurgedInFlight
	// ReasonDiskError: the cache could not write the response to its disk.
	ReasonDiskError
	// ReasonTruncated: the response ended before it was complete.
	ReasonTruncated
	// ReasonClientGone: the client left before the response was complete.
	ReasonClientGone
	// ReasonWaitTimeout: another request was fetching the same response for too long, so this one went to the origin itself.
	ReasonWaitTimeout
	// ReasonOnlyIfCached: the request accepts only a stored response and there is none that may be used.
	ReasonOnlyIfCached
	// ReasonRequestNoCache: the request asks for validation with no-cache.
	ReasonRequestNoCache
	// ReasonRequestMaxAge: the stored response is older than the request's max-age allows.
	ReasonRequestMaxAge
	// ReasonRequestMinFresh: the stored response does not stay fresh for as long as the request's min-fresh asks for.
	ReasonRequestMinFresh
	// ReasonStaleError: the origin failed and a stale response was served instead.
	ReasonStaleError
	// ReasonUpstreamError: the origin failed and nothing stored could be served instead.
	ReasonUpstreamError
	// ReasonPurged: the purge removed something.
	ReasonPurged
	// ReasonPurgeMiss: there was nothing to purge.
	ReasonPurgeMiss
	// ReasonPurgeDenied: the client's address may not purge.
	ReasonPurgeDenied
	// ReasonStoreOff: the cache has no budget in memory or on disk, or its configuration is gone.
	ReasonStoreOff
	// ReasonEventStream: the exchange is a stream of events without an end.
	ReasonEventStream
	// ReasonBadTarget: the request target names nothing that could be cached.
	ReasonBadTarget

	numReasons
)

// reasonWords must keep the order of the constants; a test compares them.
var reasonWords = [numReasons]string{
	ReasonNone:            "",
	ReasonSetCookie:       "set-cookie",
	ReasonPrivate:         "private",
	ReasonNoStore:         "no-store",
	ReasonRequestNoStore:  "request-no-store",
	ReasonVaryStar:        "vary-star",
	ReasonVaryUnlisted:    "vary-unlisted",
	ReasonAuth:            "auth",
	ReasonTooBig:          "too-big",
	ReasonTTLZero:         "ttl-zero",
	ReasonStatus:          "status",
	ReasonMatchHeader:     "match-header",
	ReasonRequestFault:    "request-fault",
	ReasonPartial:         "partial",
	ReasonCookie:          "cookie",
	ReasonMustUnderstand:  "must-understand",
	ReasonMethod:          "method",
	ReasonUpgrade:         "upgrade",
	ReasonRequestBody:     "request-body",
	ReasonOverride:        "override",
	ReasonConnection:      "connection",
	ReasonConditional:     "conditional",
	ReasonPurgedInFlight:  "purged-in-flight",
	ReasonDiskError:       "disk-error",
	ReasonTruncated:       "truncated",
	ReasonClientGone:      "client-gone",
	ReasonWaitTimeout:     "wait-timeout",
	ReasonOnlyIfCached:    "only-if-cached",
	ReasonRequestNoCache:  "request-no-cache",
	ReasonRequestMaxAge:   "request-max-age",
	ReasonRequestMinFresh: "request-min-fresh",
	ReasonStaleError:      "stale-error",
	ReasonUpstreamError:   "upstream-error",
	ReasonPurged:          "purged",
	ReasonPurgeMiss:       "purge-miss",
	ReasonPurgeDenied:     "purge-denied",
	ReasonStoreOff:        "store-off",
	ReasonEventStream:     "event-stream",
	ReasonBadTarget:       "bad-target",
}

// String returns the word, a Structured Fields token (RFC 9651 section 3.3.4).
// It is empty for [ReasonNone] and for a value that is not in the list.
func (r Reason) String() string {
	if r >= numReasons {
		return ""
	}
	return reasonWords[r]
}

// Reasons returns all reasons but [ReasonNone], in the order of the constants. A
// metric can prepare one label for each.
func Reasons() []Reason {
	all := make([]Reason, 0, numReasons-1)
	for r := ReasonNone + 1; r < numReasons; r++ {
		all = append(all, r)
	}
	return all
}
