package rfc9111

import (
	"net/http"
	"strings"
	"time"
)

// HasValidator reports whether a response can be validated later: whether it has
// an ETag or a Last-Modified (RFC 9110 section 8.8), exactly one line of it, and
// well-formed.
func HasValidator(h http.Header) bool { return hasETag(h) || hasLastModified(h) }

func hasETag(h http.Header) bool {
	_, _, ok := etagOf(h)
	return ok
}

func hasLastModified(h http.Header) bool {
	// Whether it is a date does not depend on the reference for its year.
	_, ok := fieldDate(h, "Last-Modified", time.Unix(0, 0))
	return ok
}

// RemoveConditionals deletes If-None-Match and If-Modified-Since from a request
// header, so that the origin sends a whole response. If-Match,
// If-Unmodified-Since, If-Range and Range stay.
func RemoveConditionals(h http.Header) {
	delete(h, "If-None-Match")
	delete(h, "If-Modified-Since")
}

// SetValidators puts the validators of a stored response into the header of the
// request that shall validate it (RFC 9111 section 4.3.1), in place of the
// conditions that it has of the same kind. Malformed validators are left out: a
// repaired one would not be the origin's. Without any validator h stays as it is.
func SetValidators(h, stored http.Header) {
	if hasETag(stored) {
		h["If-None-Match"] = []string{stored["Etag"][0]}
	}
	if hasLastModified(stored) {
		h["If-Modified-Since"] = []string{stored["Last-Modified"][0]}
	}
}

// NotModified reports whether the answer to a conditional request is 304 rather
// than the stored response, or a fresh one, with this status and header (RFC 9111
// section 4.3.2).
//
// If-None-Match is compared weakly, counts for successful responses only, and
// shadows If-Modified-Since even if it is malformed. If-Modified-Since is
// compared with Last-Modified, or else with Date, and counts for status 200 only.
// What is malformed or given twice does not match: the client gets the whole
// response.
//
// Without conditions it does not allocate.
func NotModified(req http.Header, status int, stored http.Header) bool {
	if lines, ok := req["If-None-Match"]; ok {
		return status >= 200 && status <= 299 && matchesAny(lines, stored)
	}
	if !has(req, "If-Modified-Since") || status != http.StatusOK {
		return false
	}
	// Two-digit years are read as at the time of the stored response: the
	// package has no clock.
	date, hasDate := fieldDate(stored, "Date", time.Unix(0, 0))
	modified, ok := fieldDate(stored, "Last-Modified", date)
	if !ok {
		modified = date
	} else if !hasDate {
		date = modified
	}
	if !ok && !hasDate {
		return false
	}
	since, ok := fieldDate(req, "If-Modified-Since", date)
	return ok && !modified.After(since)
}

// matchesAny evaluates If-None-Match against the stored ETag, weakly (RFC 9110
// section 13.1.2).
func matchesAny(lines []string, stored http.Header) bool {
	if len(lines) == 1 && trimOWS(lines[0]) == "*" {
		return true
	}
	opaque, _, ok := etagOf(stored)
	if !ok {
		return false
	}
	matched := false
	for _, line := range lines {
		for line = trimOWS(line); line != ""; {
			if line[0] == ',' {
				line = trimOWS(line[1:])
				continue
			}
			o, _, rest, ok := cutETag(line)
			if !ok {
				return false
			}
			matched = matched || o == opaque
			if rest = trimOWS(rest); rest != "" && rest[0] != ',' {
				return false
			}
			line = rest
		}
	}
	return matched
}

// etagOf returns the parts of the one well-formed ETag of a response.
func etagOf(h http.Header) (opaque string, weak, ok bool) {
	value, ok := single(h, "Etag")
	if !ok {
		return "", false, false
	}
	opaque, weak, rest, ok := cutETag(value)
	return opaque, weak, ok && rest == ""
}

// cutETag cuts an entity tag off the front of s (RFC 9110 section 8.8.3). opaque
// comes with its quotes. Backslash is a character like others in it.
func cutETag(s string) (opaque string, weak bool, rest string, ok bool) {
	if len(s) > 2 && s[:2] == "W/" {
		weak, s = true, s[2:]
	}
	if s == "" || s[0] != '"' {
		return "", false, "", false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[:i+1], weak, s[i+1:], true
		case c <= ' ' || c == 0x7f:
			return "", false, "", false
		}
	}
	return "", false, "", false
}

// Confirms reports whether a 304 answers the validators of the stored response
// (RFC 9111 section 4.3.4): one that names another entity tag, or no tag and
// another Last-Modified, speaks of another representation.
func Confirms(stored, fresh http.Header) bool {
	if len(fresh["Etag"]) > 0 && len(stored["Etag"]) > 0 {
		return strings.TrimPrefix(fresh["Etag"][0], "W/") == strings.TrimPrefix(stored["Etag"][0], "W/")
	}
	if len(fresh["Last-Modified"]) > 0 && len(stored["Last-Modified"]) > 0 {
		return fresh["Last-Modified"][0] == stored["Last-Modified"][0]
	}
	return true
}
