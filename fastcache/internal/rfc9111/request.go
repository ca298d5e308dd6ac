package rfc9111

import (
	"net/http"
	"strings"
)

// overrideFields replace the method or the target of a request at some origins,
// while the cache would go by what the request line says.
var overrideFields = [...]string{
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
	"X-Original-Url", "X-Rewrite-Url",
}

// Bypass reports whether a request has to go past the cache, neither answered
// from the store nor stored, and why. It returns [FwdNone] if the cache may look
// at it.
//
// A body of unknown length counts as a body: ContentLength is -1 unless Body is
// [http.NoBody] or nil. Requests over HTTP/3 come so from their server even if
// they have none. Who wants them answered has to find out, by reading, and to set
// ContentLength to 0 first.
//
// Authorization is no reason (RFC 9111 section 3.5, see Decision.SharedAuth). It
// does not allocate.
func Bypass(r *http.Request) (Fwd, Reason) {
	h := r.Header
	switch {
	case r.Method == http.MethodConnect, upgrades(h) && r.Method == http.MethodGet:
		return FwdBypass, ReasonUpgrade
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return FwdMethod, ReasonMethod
	case isGRPC(h):
		return FwdBypass, ReasonUpgrade
	case hasBody(r):
		return FwdBypass, ReasonRequestBody
	case has(h, "Proxy-Authorization"):
		return FwdBypass, ReasonAuth
	case has(h, "If-Match"), has(h, "If-Unmodified-Since"): // RFC 9111 section 4.3.2
		return FwdBypass, ReasonConditional
	case acceptsEvents(h["Accept"]):
		return FwdBypass, ReasonEventStream
	case overridden(h):
		return FwdBypass, ReasonOverride
	}
	return FwdNone, ReasonNone
}

func overridden(h http.Header) bool {
	for _, name := range overrideFields {
		if has(h, name) {
			return true
		}
	}
	return false
}

// upgrades reports whether the request asks for another protocol. Offers of h2c
// do not count: clients send them with requests of any kind, and Caddy does not
// take them up behind a handler.
func upgrades(h http.Header) bool {
	if !has(h, "Upgrade") {
		return hasMember(h["Connection"], "upgrade")
	}
	return len(h["Upgrade"]) > 1 || !equalFold(h["Upgrade"][0], "h2c")
}

func hasBody(r *http.Request) bool {
	if len(r.TransferEncoding) > 0 || r.ContentLength > 0 {
		return true
	}
	return r.ContentLength < 0 && r.Body != nil && r.Body != http.NoBody
}

// acceptsEvents reports whether Accept has text/event-stream. The members are
// looked at only if a line has the end of the word: browsers send long ones, and
// this is on the path of every hit.
func acceptsEvents(lines []string) bool {
	const end = "-stream"
	for _, line := range lines {
		for rest := line; len(rest) >= len(end); rest = rest[1:] {
			i := strings.IndexByte(rest, end[0])
			if i < 0 {
				break
			}
			if rest = rest[i:]; len(rest) >= len(end) && equalFold(rest[:len(end)], end) {
				return hasMember(lines, "text/event-stream")
			}
		}
	}
	return false
}

func isGRPC(h http.Header) bool {
	const mediaType = "application/grpc" // and application/grpc+proto, ...
	for _, line := range h["Content-Type"] {
		if line = trimOWS(line); len(line) >= len(mediaType) && equalFold(line[:len(mediaType)], mediaType) {
			return true
		}
	}
	return false
}

// OriginHeader returns a request header as the origin gets it through a proxy:
// without the fields of the connection and those that the client's Connection
// nominates (RFC 9110 section 7.6.1). A client must not be able to take a field
// away from the origin that the cache goes by.
//
// It returns h itself, not a copy, if nothing goes but Connection, Keep-Alive and
// Proxy-Connection, by which no rule goes. Do not write to the result. It does
// not allocate then.
func OriginHeader(h http.Header) http.Header {
	changed := nominatesFields(h["Connection"])
	for _, name := range connectionFields {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection":
		default:
			changed = changed || has(h, name)
		}
	}
	if !changed {
		return h
	}
	h = h.Clone()
	RemoveHopByHop(h)
	return h
}

// Nominates reports whether Connection takes fields of the request away from the
// origin, other than those of the connection itself.
func Nominates(h http.Header) bool { return nominatesFields(h["Connection"]) }

// nominatesFields reports whether Connection has more than what every client
// sends, without making field names of it.
func nominatesFields(lines []string) bool {
	for _, line := range lines {
		for m := (members{rest: line}); m.next(); {
			if !equalFold(m.member, "keep-alive") && !equalFold(m.member, "close") {
				return true
			}
		}
	}
	return false
}
