package rfc9111

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Policy is what the operator of a shared cache decides beyond the rules of
// HTTP. The zero value stores what RFC 9111 allows on the origin's word alone: no
// default lifetime, no heuristics. A Policy must not change while it is in use.
type Policy struct {
	// TTL is the freshness lifetime of responses that say nothing about it
	// and have no Last-Modified to guess from. 0 turns it off. Never for a
	// request with a Cookie (unless the key has it), never for a status that
	// is not heuristically cacheable.
	TTL time.Duration

	// HeuristicMax bounds the lifetime that is guessed from Last-Modified
	// (section 4.2.2). 0 turns guessing off.
	HeuristicMax time.Duration

	// StatusTTL bounds, by status, for how long a response is fresh from now
	// on, whatever it says itself. 0 keeps a status out of the store.
	StatusTTL map[int]time.Duration

	// StaleWhileRevalidate and StaleIfError are the windows of RFC 5861 for
	// responses that do not have the directives. The first one does not apply
	// to responses that are stale from the start: they ask for validation
	// before each use.
	StaleWhileRevalidate time.Duration
	StaleIfError         time.Duration

	// StoreSetCookie lets responses with Set-Cookie be stored, cookie and
	// all.
	StoreSetCookie bool

	// HonorRequest lets no-store in a request keep its response out of the
	// store (section 5.2.1.5).
	HonorRequest bool

	// Vary are the canonical names of the request fields that may select
	// variants. A response that varies on another one is not stored. nil
	// allows every field.
	Vary []string

	// MatchHeader keeps responses out of the store that lack a wanted field
	// line: for each canonical name one line must equal one of the values.
	MatchHeader map[string][]string
}

// Exchange is a request and the header of the final response to it.
type Exchange struct {
	Method        string
	RequestHeader http.Header // as the origin got it, see [OriginHeader]
	Status        int
	Header        http.Header // of the response, as it came
	RequestTime   time.Time   // when the request went out
	ResponseTime  time.Time   // when the response header came in

	// KeyHasCookie says that the cache key tells apart what Cookie may
	// select.
	KeyHasCookie bool

	// Target is the target URI in the form of [AppendTarget]. Only responses
	// to POST need it.
	Target string
}

// Decision is what may be done with a response. If Reason is not [ReasonNone]
// nothing may be stored and the other fields mean nothing.
type Decision struct {
	Reason Reason

	// Lifetime is the freshness lifetime and InitialAge the age on arrival:
	// the response is fresh for Lifetime - InitialAge from ResponseTime on,
	// which is not positive if it was stale on arrival. Both are at most 2^31
	// seconds.
	Lifetime, InitialAge time.Duration

	// Fallback says that the response had nothing to tell its lifetime from,
	// so that Lifetime is Policy.TTL. It must not answer a request with a
	// Cookie, unless the key has it.
	Fallback bool

	// Heuristic says that Lifetime was guessed from Last-Modified. Like a
	// Fallback it must not answer a request with a Cookie.
	Heuristic bool

	// Validate says that each use needs the origin's word first (no-cache, or
	// a lifetime of 0 without a stale-while-revalidate window).
	Validate bool

	// NoStale says that the response must never be served stale, not even
	// when the origin cannot be reached (must-revalidate, proxy-revalidate,
	// s-maxage, no-cache). Both windows are 0 then.
	NoStale bool

	// SharedAuth says that the response may answer requests with
	// Authorization (section 3.5). One that lacks it may not.
	SharedAuth bool

	// StaleWhileRevalidate and StaleIfError are for how long after it has
	// become stale the response may still be served while it is refreshed,
	// and if the origin fails (RFC 5861).
	StaleWhileRevalidate, StaleIfError time.Duration

	// Strip are the canonical names of the fields that must not be stored,
	// because no-cache or private names them; sorted, unique.
	Strip []string

	// Vary are the canonical names of the fields that select the response;
	// sorted, unique.
	Vary []string

	// Immutable says that the response does not change while it is fresh, so
	// that a reload need not validate it (RFC 8246).
	Immutable bool
}

// Evaluate decides whether a shared cache may store a response (RFC 9111 section
// 3) and how it may use it (section 4.2).
//
// Any final status may be stored with explicit freshness or with public, but for
// 206 and 304. Without them only the statuses that RFC 9110 section 15.1 calls
// heuristically cacheable may. A response that is not fresh is stored only if it
// can be validated later, or if a directive of its own opens a window for stale
// use.
//
// Errors that blame the request are not stored if the request's header is such
// that it may be the cause: it is not part of the key, so that everybody would get
// the error. The target is part of it, hence 414 is not among them.
func (p *Policy) Evaluate(x *Exchange) Decision {
	cc := ResponseDirectives(x.Header)
	d := Decision{
		InitialAge: InitialAge(x.Header, x.RequestTime, x.ResponseTime),
		NoStale:    cc.MustRevalidate || cc.ProxyRevalidate || cc.SMaxAge.Set || cc.NoCache,
		SharedAuth: cc.Public || cc.MustRevalidate || cc.SMaxAge.Set,
		Immutable:  cc.Immutable,
		Strip:      slices.Concat(cc.NoCacheFields, cc.PrivateFields),
	}
	slices.Sort(d.Strip)
	d.Strip = slices.Compact(d.Strip)

	if d.Reason = p.forbidden(x, &cc, &d); d.Reason != ReasonNone {
		return d
	}
	d.Reason = p.lifetime(x, &cc, &d)
	return d
}

// forbidden returns why the response must not be stored however fresh it is. It
// fills in d.Vary.
func (p *Policy) forbidden(x *Exchange, cc *Directives, d *Decision) Reason {
	// RFC 9111 section 3, in the order that explains most to who reads it.
	switch {
	case x.Status == http.StatusPartialContent:
		return ReasonPartial
	case x.Status < 200 || x.Status > 999 || x.Status == http.StatusNotModified || aboutRequest(x.Status):
		return ReasonStatus
	case cc.Private:
		return ReasonPrivate
	case cc.MustUnderstand && !understood(x.Status):
		return ReasonMustUnderstand
	case cc.NoStore && !cc.MustUnderstand: // section 5.2.2.3
		return ReasonNoStore
	case p.HonorRequest && RequestDirectives(x.RequestHeader).NoStore:
		return ReasonRequestNoStore
	case x.Method != http.MethodGet && !storablePost(x):
		return ReasonMethod
	case has(x.RequestHeader, "Authorization") && !d.SharedAuth: // section 3.5
		return ReasonAuth
	case isEventStream(x.Header):
		return ReasonEventStream
	case blamesRequest(x.Status) && unusual(x.RequestHeader):
		return ReasonRequestFault
	case !p.StoreSetCookie && (kept(x, d, "Set-Cookie") || kept(x, d, "Set-Cookie2")):
		return ReasonSetCookie
	}
	names, star := ParseVary(x.Header["Vary"])
	if star {
		return ReasonVaryStar
	}
	d.Vary = names
	if p.Vary != nil {
		for _, name := range names {
			if !slices.Contains(p.Vary, name) {
				return ReasonVaryUnlisted
			}
		}
	}
	for name, values := range p.MatchHeader {
		if !slices.ContainsFunc(x.Header[name], func(line string) bool { return slices.Contains(values, line) }) {
			return ReasonMatchHeader
		}
	}
	return ReasonNone
}

// lifetime fills in for how long the response is fresh and may be used stale, or
// returns why it is of no use.
func (p *Policy) lifetime(x *Exchange, cc *Directives, d *Decision) Reason {
	lifetime, explicit := explicitLifetime(cc, x.Header, x.ResponseTime)
	guessable := heuristicallyCacheable(x.Status)
	switch {
	case !explicit && !cc.Public && !guessable:
		return ReasonStatus
	case !explicit && x.Method != http.MethodGet:
		return ReasonMethod // RFC 9110 section 9.3.3
	case explicit:
		d.Lifetime = lifetime
	case cc.NoCache:
		// To validate each time is all that it asks for; a default lifetime
		// would only invite the rules that go with it.
	default:
		if p.HeuristicMax > 0 {
			d.Lifetime, d.Heuristic = heuristicLifetime(x.Header, x.ResponseTime, p.HeuristicMax)
		}
		if !d.Heuristic && guessable {
			d.Lifetime, d.Fallback = clamp(p.TTL), true
		}
	}
	if limit, ok := p.StatusTTL[x.Status]; ok {
		if limit <= 0 {
			return ReasonStatus
		}
		// The limit counts from now: what the response has spent on its way
		// here has used up its own lifetime, not the operator's.
		d.Lifetime = min(d.Lifetime, d.InitialAge+limit, maxDelta)
	}

	ownWindow := false
	if !d.NoStale {
		d.StaleWhileRevalidate, d.StaleIfError = cc.StaleWhileRevalidate.D, cc.StaleIfError.D
		ownWindow = d.StaleWhileRevalidate > 0 || d.StaleIfError > 0
		if !cc.StaleWhileRevalidate.Set && d.Lifetime > 0 {
			d.StaleWhileRevalidate = clamp(p.StaleWhileRevalidate)
		}
		if !cc.StaleIfError.Set {
			d.StaleIfError = clamp(p.StaleIfError)
		}
	}
	d.Validate = cc.NoCache || d.Lifetime <= 0 && d.StaleWhileRevalidate == 0

	fresh := d.Lifetime > d.InitialAge && !cc.NoCache
	if !fresh && !ownWindow && !storedValidator(x, d) {
		return ReasonTTLZero
	}
	if (d.Fallback || d.Heuristic) && has(x.RequestHeader, "Cookie") && !x.KeyHasCookie {
		return ReasonCookie
	}
	return ReasonNone
}

// heuristicallyCacheable are the statuses that may be stored although the
// response says nothing about it (RFC 9110 section 15.1), but for 206.
func heuristicallyCacheable(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}

// understood reports whether this package knows what a status means for a cache
// (RFC 9111 section 5.2.2.3): the final ones of RFC 9110 section 15 and 451, for
// which there is nothing special to know. Those with rules of their own that are
// not kept here, 206 and 304, are not among them.
func understood(status int) bool {
	switch {
	case 200 <= status && status <= 205,
		300 <= status && status <= 303, 305 <= status && status <= 308,
		400 <= status && status <= 417,
		500 <= status && status <= 505:
		return true
	}
	return status == 421 || status == 422 || status == 426 || status == 451
}

// storablePost reports whether a response to POST may answer later GET requests:
// a successful one that says, with Content-Location, that it shows what is at
// the target (RFC 9110 section 9.3.3). That it needs explicit freshness is
// checked with the lifetime.
func storablePost(x *Exchange) bool {
	if x.Method != http.MethodPost || x.Status < 200 || x.Status > 299 || overridden(x.RequestHeader) {
		return false
	}
	location, ok := single(x.Header, "Content-Location")
	if !ok {
		return false
	}
	key, ok := resolveTarget(x.Target, location)
	return ok && key == x.Target
}

// aboutRequest reports whether a status speaks of one request, client or
// connection, by what is not part of a cache key, and never of the target: its
// conditions, its Range, its rate. RFC 6585 says so of 428, 429, 431 and 511.
func aboutRequest(status int) bool {
	switch status {
	case 407, 408, 412, 416, 417, 421, 425, 428, 429, 431, 511:
		return true
	}
	return false
}

// blamesRequest reports whether a status says that the request's header may be at
// fault.
func blamesRequest(status int) bool {
	switch status {
	case 400, 413, 501:
		return true
	}
	return false
}

// usualHeader is for how large a header no origin is expected to refuse a
// request, in bytes of names and values. The limits of common servers begin at 8
// KiB; in front of them stand proxies that add fields.
const usualHeader = 4 << 10

// unusual reports whether a request header is one that an origin may stumble
// over: larger than most clients', with bytes other than visible ASCII, or with a
// name of other bytes than letters, digits and hyphens.
func unusual(h http.Header) bool {
	size := 0
	for name, lines := range h {
		for i := 0; i < len(name); i++ {
			if c := name[i] | 0x20; (c < 'a' || c > 'z') && (c < '0' || c > '9') && name[i] != '-' {
				return true
			}
		}
		for _, line := range lines {
			size += len(name) + len(line)
			for i := 0; i < len(line); i++ {
				if c := line[i]; c < ' ' && c != '\t' || c > '~' {
					return true
				}
			}
		}
	}
	return size > usualHeader
}

// isEventStream reports whether the body has no end by its nature.
func isEventStream(h http.Header) bool {
	lines := h["Content-Type"]
	if len(lines) == 0 {
		return false
	}
	mediaType, _, _ := strings.Cut(lines[0], ";")
	mediaType = trimOWS(mediaType)
	return equalFold(mediaType, "text/event-stream") || equalFold(mediaType, "multipart/x-mixed-replace")
}

// kept reports whether a field is there and will be stored.
func kept(x *Exchange, d *Decision, name string) bool {
	if !has(x.Header, name) || slices.Contains(d.Strip, name) {
		return false
	}
	hop := false
	nominated(x.Header, func(n string) { hop = hop || n == name })
	return !hop
}

// storedValidator reports whether what is stored can be validated later.
func storedValidator(x *Exchange, d *Decision) bool {
	return hasETag(x.Header) && kept(x, d, "Etag") || hasLastModified(x.Header) && kept(x, d, "Last-Modified")
}
