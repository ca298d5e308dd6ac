package rfc9111

import (
	"net/http"
	"net/textproto"
	"strings"
)

// members walks through a comma-separated list (RFC 9110 section 5.6.1):
//
//	for m := (members{rest: line}); m.next(); {
//		use(m.member)
//	}
//
// Members come without the white space around them, and empty ones not at all.
// Commas inside quoted strings do not separate. Where a quoted string never ends,
// nothing can hide behind the quote: from there on broken is set, and quotes mean
// nothing any more. The walk is linear in the length of the list.
type members struct {
	member string
	rest   string
	broken bool
}

func (m *members) next() bool {
	for m.rest != "" {
		end := m.end()
		m.member = trimOWS(m.rest[:end])
		m.rest = m.rest[min(end+1, len(m.rest)):]
		if m.member != "" {
			return true
		}
	}
	return false
}

// end returns where the first member of the rest ends.
func (m *members) end() int {
	quoted := false
	comma := -1 // the first comma inside the quoted string
	for i := 0; i < len(m.rest); i++ {
		switch c := m.rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && !m.broken:
			quoted = !quoted
			comma = -1
		case c == ',' && quoted:
			if comma < 0 {
				comma = i
			}
		case c == ',':
			return i
		}
	}
	if quoted {
		m.broken = true
		if comma >= 0 {
			return comma
		}
	}
	return len(m.rest)
}

// trimOWS removes optional white space (RFC 9110 section 5.6.3) from both ends.
func trimOWS(s string) string {
	for len(s) > 0 && isOWS(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isOWS(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isOWS(c byte) bool { return c == ' ' || c == '\t' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// appendLower appends s with its ASCII letters in lower case.
func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		dst = append(dst, lower(s[i]))
	}
	return dst
}

// compareFold orders strings by their bytes, ASCII letters taken as lower case.
func compareFold(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// equalFold compares ASCII case-insensitively. strings.EqualFold would also fold
// the Kelvin sign into a k.
func equalFold(a, b string) bool { return len(a) == len(b) && compareFold(a, b) == 0 }

// isToken reports whether s is a token (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	return isDigit(c) || 'a' <= lower(c) && lower(c) <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// unquote returns the value of a quoted string (RFC 9110 section 5.6.4).
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s, strings.IndexByte(s, '"') < 0
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// fieldNames returns the canonical names of a comma-separated list of field
// names, or false if a member is not a name or if there is none.
func fieldNames(list string) (names []string, ok bool) {
	for m := (members{rest: list}); m.next(); {
		if !isToken(m.member) {
			return nil, false
		}
		names = append(names, textproto.CanonicalMIMEHeaderKey(m.member))
	}
	return names, len(names) > 0
}

// hasMember reports whether a list field has the given member, compared without
// regard to case and to parameters.
func hasMember(lines []string, want string) bool {
	for _, line := range lines {
		for m := (members{rest: line}); m.next(); {
			value, _, _ := strings.Cut(m.member, ";")
			if equalFold(trimOWS(value), want) {
				return true
			}
		}
	}
	return false
}

func has(h http.Header, name string) bool { return len(h[name]) > 0 }

// single returns the value of a field that has exactly one line.
func single(h http.Header, name string) (string, bool) {
	lines := h[name]
	if len(lines) != 1 {
		return "", false
	}
	return trimOWS(lines[0]), true
}
