package rfc9111

import (
	"math"
	"net/http"
	"time"
)

// Range is a part of a body. It lies within the body and is not empty.
type Range struct{ Start, Length int64 }

// RangeResult says what to do about a Range field.
type RangeResult uint8

// The results of [ParseRange].
const (
	// RangeNone: answer as if the field were not there.
	RangeNone RangeResult = iota
	// RangeSatisfiable: answer with the parts, 206.
	RangeSatisfiable
	// RangeNotSatisfiable: answer 416.
	RangeNotSatisfiable
)

// String names the result.
func (r RangeResult) String() string {
	switch r {
	case RangeNone:
		return "none"
	case RangeSatisfiable:
		return "satisfiable"
	case RangeNotSatisfiable:
		return "not-satisfiable"
	}
	return ""
}

// maxRanges is how many parts one answer may have. Each costs a part header, and
// many small ones are an attack rather than a need (RFC 9110 section 17.15).
// Viewers that ask for several parts of a document ask for a few.
const maxRanges = 16

// ParseRange parses the lines of a Range field for a body of the given size (RFC
// 9110 section 14.2).
//
// A field is ignored, which section 14.2 always allows, if it has several lines,
// another unit than bytes, a syntax error, a range that ends before it starts, a
// number above 2^63-1, more than 16 ranges, ranges that overlap so much that
// together they are longer than the body, or if the body is empty. Ranges come in
// the order of the field; those behind the end of the body are dropped, and if
// none is left the result is [RangeNotSatisfiable].
//
// Without lines it does not allocate.
func ParseRange(header []string, size int64) ([]Range, RangeResult) {
	if len(header) != 1 || size <= 0 {
		return nil, RangeNone
	}
	const unit = "bytes="
	list := trimOWS(header[0])
	if len(list) < len(unit) || !equalFold(list[:len(unit)], unit) {
		return nil, RangeNone
	}
	list = list[len(unit):]

	var ranges []Range
	var total int64
	count := 0
	for m := (members{rest: list}); m.next(); {
		if count++; count > maxRanges {
			return nil, RangeNone
		}
		r, valid := parseRangeSpec(m.member, size)
		if !valid {
			return nil, RangeNone
		}
		if r.Length == 0 {
			continue
		}
		if total += r.Length; total > size {
			return nil, RangeNone
		}
		ranges = append(ranges, r)
	}
	switch {
	case count == 0:
		return nil, RangeNone
	case len(ranges) == 0:
		return nil, RangeNotSatisfiable
	}
	return ranges, RangeSatisfiable
}

// parseRangeSpec parses "first-last", "first-" or "-suffix" (RFC 9110 section
// 14.1.1). The length is 0 if the body has nothing of the range.
func parseRangeSpec(spec string, size int64) (r Range, valid bool) {
	first, rest, hasFirst := cutNumber(spec)
	if rest == "" || rest[0] != '-' {
		return Range{}, false
	}
	last, rest, hasLast := cutNumber(rest[1:])
	switch {
	case rest != "" || !hasFirst && !hasLast || first < 0 || last < 0:
		return Range{}, false
	case !hasFirst:
		length := min(last, size)
		return Range{Start: size - length, Length: length}, true
	case !hasLast:
		last = math.MaxInt64
	case last < first:
		return Range{}, false
	}
	if first >= size {
		return Range{}, true
	}
	return Range{Start: first, Length: min(last, size-1) - first + 1}, true
}

// cutNumber cuts the digits off the front of s. n is -1 if they make a number
// above 2^63-1.
func cutNumber(s string) (n int64, rest string, ok bool) {
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		digit := int64(s[i] - '0')
		if n < 0 || n > (math.MaxInt64-digit)/10 {
			n = -1
			continue
		}
		n = n*10 + digit
	}
	return n, s[i:], i > 0
}

// IfRange reports whether a Range field in the request counts for the stored
// response (RFC 9110 section 13.1.5): if there is no If-Range, or if it matches.
//
// An entity tag must be the stored one and both must be strong. A date must be
// that of Last-Modified exactly, which in turn must be a strong validator (section
// 8.8.2.2): at least a second older than Date, if there is a Date. What is
// malformed does not match.
func IfRange(req, stored http.Header) bool {
	if !has(req, "If-Range") {
		return true
	}
	value, ok := single(req, "If-Range")
	if !ok || value == "" {
		return false
	}
	if opaque, weak, rest, ok := cutETag(value); ok {
		storedOpaque, storedWeak, ok := etagOf(stored)
		return ok && rest == "" && !weak && !storedWeak && opaque == storedOpaque
	}
	// As in NotModified the stored response is the clock.
	date, hasDate := fieldDate(stored, "Date", time.Unix(0, 0))
	modified, ok := fieldDate(stored, "Last-Modified", date)
	if !ok || hasDate && date.Sub(modified) < time.Second {
		return false
	}
	if !hasDate {
		date = modified
	}
	condition, ok := ParseDate(value, date)
	return ok && condition.Equal(modified)
}
