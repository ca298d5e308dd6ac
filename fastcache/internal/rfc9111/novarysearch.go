package rfc9111

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dunglas/httpsfv"
)

// maxSearchField bounds the No-Vary-Search field that is read: it is parsed again
// for each use of a response under another URL. A longer one counts as invalid.
const maxSearchField = 4 << 10

// SearchVariance says which differences between the queries of two URLs do not
// tell the responses apart: the "URL search variance" of the No-Vary-Search field
// (draft-ietf-httpbis-no-vary-search-04 section 4). The zero value is the default
// one, under which every URL stands for itself. It is immutable.
type SearchVariance struct {
	anyOrder bool     // the order of parameters with different names does not matter
	only     bool     // names are the only parameters that matter, not those that do not
	names    []string // decoded; sorted, unique
}

// ParseNoVarySearch parses the lines of a No-Vary-Search field, a Structured
// Fields dictionary (section 5 of the draft). A field that is not valid, with a
// value of the wrong type or "except" without "params", gives the default: fewer
// responses are shared. Keys that are not known are ignored.
func ParseNoVarySearch(lines []string) SearchVariance {
	length := 0
	for _, line := range lines {
		length += len(line)
	}
	if length > maxSearchField {
		return SearchVariance{}
	}
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return SearchVariance{}
	}
	var v SearchVariance
	ok := true
	if member, found := dict.Get("key-order"); found {
		v.anyOrder, ok = boolean(member)
	}
	if member, found := dict.Get("params"); found && ok {
		if v.only, ok = boolean(member); !ok {
			v.names, ok = paramNames(member)
		}
	}
	if member, found := dict.Get("except"); found && ok {
		if v.names, ok = paramNames(member); !v.only {
			ok = false
		}
	}
	if !ok {
		return SearchVariance{}
	}
	return v
}

func boolean(member httpsfv.Member) (value, ok bool) {
	item, ok := member.(httpsfv.Item)
	if !ok {
		return false, false
	}
	value, ok = item.Value.(bool)
	return value, ok
}

// paramNames reads an inner list of strings, each the name of a parameter in the
// encoding of a query (section 5.3). A name that is not UTF-8 is not valid, see
// [SearchVariance.AppendCanonical].
func paramNames(member httpsfv.Member) (names []string, ok bool) {
	list, ok := member.(httpsfv.InnerList)
	if !ok {
		return nil, false
	}
	for _, item := range list.Items {
		s, ok := item.Value.(string)
		if !ok {
			return nil, false
		}
		name := decodeForm(s)
		if !utf8.ValidString(name) {
			return nil, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// IsDefault reports whether every URL stands for itself.
func (v SearchVariance) IsDefault() bool { return !v.anyOrder && !v.only && len(v.names) == 0 }

// Equal reports whether v and w are the same.
func (v SearchVariance) Equal(w SearchVariance) bool {
	return v.anyOrder == w.anyOrder && v.only == w.only && slices.Equal(v.names, w.names)
}

// Equivalent reports whether two keys of [AppendTarget] are equivalent modulo v
// (section 6 of the draft): a response to the one, with this variance, may answer
// a request for the other. It is an equivalence relation.
func (v SearchVariance) Equivalent(a, b string) bool {
	if a == b {
		return true
	}
	var bufA, bufB [256]byte
	return string(v.AppendCanonical(bufA[:0], a)) == string(v.AppendCanonical(bufB[:0], b))
}

// AppendCanonical appends the canonical form of a key of [AppendTarget] to dst:
// keys are equivalent modulo v if and only if their forms are equal. It is binary.
//
// The query is read as application/x-www-form-urlencoded, as the URL standard has
// it, so that "%61+" and "a%20" are one, and so are "", "?" and "?&". A query in
// which a name, or a value that matters, is not UTF-8 is equivalent to itself
// only. The draft reads all such bytes as U+FFFD, under which a site in another
// charset would get its pages mixed up; a cache may always share less.
func (v SearchVariance) AppendCanonical(dst []byte, key string) []byte {
	start := len(dst)
	asItIs := func() []byte { return append(dst[:start], key...) }
	if v.IsDefault() {
		return asItIs()
	}
	base, query, _ := strings.Cut(key, "?")
	var params []param
	for query != "" {
		var p param
		p.name, query, _ = strings.Cut(query, "&")
		if p.name == "" {
			continue
		}
		p.name, p.value, _ = strings.Cut(p.name, "=")
		if p.name = decodeForm(p.name); !utf8.ValidString(p.name) {
			return asItIs()
		}
		if _, named := slices.BinarySearch(v.names, p.name); named != v.only {
			continue
		}
		if p.value = decodeForm(p.value); !utf8.ValidString(p.value) {
			return asItIs()
		}
		params = append(params, p)
	}
	if v.anyOrder {
		slices.SortStableFunc(params, func(a, b param) int { return strings.Compare(a.name, b.name) })
	}
	// The separators stand in no text that they separate: no key has a control
	// byte, and UTF-8 has neither 0xfe nor 0xff.
	dst = append(dst, base...)
	dst = append(dst, '\n')
	for _, p := range params {
		dst = append(dst, p.name...)
		dst = append(dst, 0xfe)
		dst = append(dst, p.value...)
		dst = append(dst, 0xff)
	}
	return dst
}

type param struct{ name, value string }

// decodeForm decodes a name or value of application/x-www-form-urlencoded: "+" is
// a space, "%" and two hexadecimal digits are a byte, and any other "%" is itself.
func decodeForm(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		}
		b = append(b, c)
	}
	return string(b)
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= lower(c) && lower(c) <= 'f' }

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return lower(c) - 'a' + 10
}
