package rfc9111

import (
	"bytes"
	"slices"
	"strings"
)

// AppendTarget appends the primary cache key of a request (RFC 9111 section 2)
// to dst: its target URI, as scheme, "://", host and request target.
//
// host is the effective host, as in [net/http.Request.Host]. It is written in
// lower case, without the default port of the scheme (80 for http, 443 for https)
// and without one trailing dot. requestURI is the request target as it was sent,
// and its bytes are taken as they are: the origin may tell apart whatever is not
// equal. Of a target in absolute form only path and query count. An empty path is
// "/".
//
// It reports false, and returns dst as it was, for what cannot be a key: a target
// in another form ("*", an authority), a fragment, a control byte or a space
// anywhere, an empty or malformed host. Clients cannot send such requests by the
// rules, and a key that differs from what the origin sees can be poisoned.
//
// It allocates only when dst has to grow.
func AppendTarget(dst []byte, scheme, host, requestURI string) ([]byte, bool) {
	name, port, ok := splitHost(host)
	if !ok || scheme == "" {
		return dst, false
	}
	path, ok := pathAndQuery(requestURI)
	if !ok {
		return dst, false
	}
	if equalFold(scheme, "http") && port == "80" || equalFold(scheme, "https") && port == "443" {
		port = ""
	}
	dst = appendLower(dst, scheme)
	dst = append(dst, "://"...)
	dst = appendLower(dst, name)
	if port != "" {
		dst = append(dst, ':')
		dst = append(dst, port...)
	}
	if path == "" || path[0] != '/' {
		dst = append(dst, '/')
	}
	return append(dst, path...), true
}

// splitHost splits a host and port (RFC 3986 section 3.2) and drops a trailing
// dot of the name. port is empty if there is none.
func splitHost(host string) (name, port string, ok bool) {
	name = host
	literal := strings.HasPrefix(host, "[")
	if literal {
		end := strings.IndexByte(host, ']')
		if end < 0 {
			return "", "", false
		}
		name, port = host[:end+1], host[end+1:]
		if port != "" && port[0] != ':' {
			return "", "", false
		}
	} else if colon := strings.IndexByte(host, ':'); colon >= 0 {
		name, port = host[:colon], host[colon:]
	}
	if port != "" {
		port = port[1:]
	}
	for i := 0; i < len(port); i++ {
		if !isDigit(port[i]) {
			return "", "", false
		}
	}
	name = strings.TrimSuffix(name, ".")
	for i := 0; i < len(name); i++ {
		if !isHostByte(name[i], literal) {
			return "", "", false
		}
	}
	return name, port, name != "" && name != "[]"
}

// isHostByte reports whether c may stand in a host (RFC 3986 section 3.2.2):
// above all nothing that ends a host in a URI.
func isHostByte(c byte, literal bool) bool {
	switch {
	case isDigit(c), 'a' <= lower(c) && lower(c) <= 'z':
		return true
	case literal && (c == '[' || c == ']' || c == ':'):
		return true
	}
	return strings.IndexByte("-._~%!$&'()*+,;=", c) >= 0
}

// pathAndQuery returns the part of a request target that the key has. It may
// lack its leading slash.
func pathAndQuery(requestURI string) (string, bool) {
	for i := 0; i < len(requestURI); i++ {
		if c := requestURI[i]; c <= ' ' || c == 0x7f || c == '#' {
			return "", false
		}
	}
	if requestURI == "" || requestURI[0] == '/' || requestURI[0] == '?' {
		return requestURI, true
	}
	scheme, rest, ok := strings.Cut(requestURI, "://")
	if !ok || !equalFold(scheme, "http") && !equalFold(scheme, "https") {
		return "", false
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[i:], true
	}
	return "", true
}

// QueryRules say which parts of a query tell resources apart. The zero value
// changes nothing. They must not change while in use.
type QueryRules struct {
	// Sort puts the parameters in the order of their names. Those with one
	// name stay in the order they had.
	Sort bool

	// Ignore are the names of parameters to leave out. A trailing "*" stands
	// for any end of the name.
	Ignore []string
}

// Append appends requestURI with the rules applied to its query to dst and
// returns it.
//
// It works on the raw bytes: "&" alone separates, a name ends at the first "=",
// and nothing is decoded, so that what is left out here can be left out by the
// same rule of what the origin gets. Names are case-sensitive. The "?" of an
// empty query stays, unless it became empty by leaving out. A target with a
// fragment comes back as it is, for [AppendTarget] to refuse.
//
// Without Sort it allocates only when dst has to grow.
func (q *QueryRules) Append(dst []byte, requestURI string) []byte {
	path, query, found := strings.Cut(requestURI, "?")
	if !found || query == "" || strings.IndexByte(requestURI, '#') >= 0 {
		return append(dst, requestURI...)
	}
	dst = append(dst, path...)
	if q.Sort {
		return q.appendSorted(dst, query)
	}
	mark := byte('?')
	for more := true; more; {
		var param string
		param, query, more = strings.Cut(query, "&")
		if !q.ignores(param) {
			dst = append(dst, mark)
			dst = append(dst, param...)
			mark = '&'
		}
	}
	return dst
}

func (q *QueryRules) appendSorted(dst []byte, query string) []byte {
	params := slices.DeleteFunc(strings.Split(query, "&"), q.ignores)
	slices.SortStableFunc(params, func(a, b string) int { return strings.Compare(paramName(a), paramName(b)) })
	for i, param := range params {
		if i == 0 {
			dst = append(dst, '?')
		} else {
			dst = append(dst, '&')
		}
		dst = append(dst, param...)
	}
	return dst
}

func (q *QueryRules) ignores(param string) bool {
	name := paramName(param)
	for _, pattern := range q.Ignore {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, prefix) || name == pattern {
			return true
		}
	}
	return false
}

func paramName(param string) string {
	name, _, _ := strings.Cut(param, "=")
	return name
}

// sameOrigin reports whether two keys of AppendTarget have scheme, host and port
// in common (RFC 9110 section 4.3.1).
func sameOrigin(a, b []byte) bool { return bytes.Equal(originOf(a), originOf(b)) }

// originOf returns a key up to its path.
func originOf(key []byte) []byte {
	authority := bytes.Index(key, []byte("://")) + len("://")
	return key[:authority+bytes.IndexByte(key[authority:], '/')]
}
