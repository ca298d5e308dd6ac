package rfc9111

import (
	"net/http"
	"net/textproto"
	"slices"
)

// StoredHeader returns what is stored of a response header (RFC 9111 section
// 3.1): a deep copy without the fields of the connection, those that Connection
// nominates, those in d.Strip, and Age, which is computed for each use. h stays
// as it is. The targeted fields are kept, because a 304 that confirms the
// response need not repeat them; see [TargetedField].
func StoredHeader(h http.Header, d *Decision) http.Header {
	stored := h.Clone()
	RemoveHopByHop(stored)
	delete(stored, "Age")
	for _, name := range d.Strip {
		delete(stored, name)
	}
	return stored
}

// connectionFields are about one connection only, or for one proxy only, and so
// neither stored nor passed on (RFC 9110 section 7.6.1, RFC 9111 section 3.1).
var connectionFields = [...]string{
	"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
}

// RemoveHopByHop deletes the fields of the connection from h, and those that its
// Connection field nominates (RFC 9110 section 7.6.1).
func RemoveHopByHop(h http.Header) {
	nominated(h, func(name string) { delete(h, name) })
	for _, name := range connectionFields {
		delete(h, name)
	}
}

// nominated calls f with the canonical names that Connection lists.
func nominated(h http.Header, f func(name string)) {
	for _, line := range h["Connection"] {
		for m := (members{rest: line}); m.next(); {
			f(textproto.CanonicalMIMEHeaderKey(m.member))
		}
	}
}

// MergeNotModified returns the header of a stored response after a 304 with the
// header fresh has confirmed it (RFC 9111 sections 3.2 and 4.3.4): a new header
// in which the fields of the 304 replace the stored ones of their names.
//
// Content-Encoding, Content-Length and Content-Range stay as they are stored: a
// 304 has no body that they could describe, the stored one they do. Fields of the
// connection and Age are left out.
//
// That the 304 answers this response's validators is for the caller to see.
func MergeNotModified(stored, fresh http.Header) http.Header {
	update := fresh.Clone()
	RemoveHopByHop(update)
	for _, name := range [...]string{"Age", "Content-Encoding", "Content-Length", "Content-Range"} {
		delete(update, name)
	}
	merged := make(http.Header, len(stored)+len(update))
	for name, lines := range stored {
		if _, replaced := update[name]; !replaced {
			merged[name] = slices.Clone(lines)
		}
	}
	for name, lines := range update {
		merged[name] = lines
	}
	return merged
}

// UpdateFromHead returns the header of a stored response after a HEAD request
// got a 200 with the header fresh (RFC 9111 section 4.3.5), by the rules of
// [MergeNotModified].
//
// ok is false if the two are not about the same representation: an ETag, a
// Last-Modified or a Content-Length in fresh differs from the stored one or is
// not there. Then the stored response is to be considered stale.
func UpdateFromHead(stored, fresh http.Header) (merged http.Header, ok bool) {
	for _, name := range [...]string{"Etag", "Last-Modified", "Content-Length"} {
		if has(fresh, name) && !slices.Equal(stored[name], fresh[name]) {
			return nil, false
		}
	}
	return MergeNotModified(stored, fresh), true
}
