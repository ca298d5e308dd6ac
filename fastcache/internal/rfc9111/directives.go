package rfc9111

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// maxDelta is the largest number of seconds that the package works with (RFC
// 9111 section 1.2.2). It keeps a time.Duration far from overflow.
const maxDelta = 1 << 31 * time.Second

// TargetedField is the field that speaks to this cache alone (RFC 9213): it is
// stored, and taken off what clients get.
const TargetedField = "Fastcache-Cache-Control"

// Field names of targeted Cache-Control (RFC 9213), the most specific first.
const (
	ownTargeted = TargetedField
	cdnTargeted = "Cdn-Cache-Control" // as http.Header spells CDN-Cache-Control
)

// Seconds is the value of a directive that carries delta-seconds. The zero value
// means that the directive is absent.
type Seconds struct {
	D   time.Duration // 0 to 2^31 seconds
	Set bool
}

// Directives are the cache directives of one message (RFC 9111 section 5.2, RFC
// 5861, RFC 8246). The zero value is a message without any. Extensions that this
// package does not know are left out (section 5.2.3).
type Directives struct {
	NoStore         bool
	NoCache         bool // the unqualified form
	Private         bool // the unqualified form
	Public          bool
	MustRevalidate  bool
	ProxyRevalidate bool
	MustUnderstand  bool
	Immutable       bool
	NoTransform     bool
	OnlyIfCached    bool

	MaxAge               Seconds
	SMaxAge              Seconds
	StaleWhileRevalidate Seconds
	StaleIfError         Seconds
	MinFresh             Seconds
	MaxStale             Seconds // without a value: as much as there is

	// NoCacheFields and PrivateFields are the canonical names of the fields
	// that the qualified forms of no-cache and private list.
	NoCacheFields []string
	PrivateFields []string

	// Targeted says that the directives come from a field that is targeted at
	// this cache, so that Cache-Control, Expires and Pragma do not count (RFC
	// 9213 section 2.2).
	Targeted bool
}

// ParseCacheControl parses the lines of a Cache-Control field (RFC 9111 section
// 5.2).
//
// Names are case-insensitive. Arguments may be tokens or quoted strings. Of
// several directives with one name that carry seconds the first counts (section
// 4.2.1). Seconds that are not a number count as 0, so that the response is
// stale (same section); larger ones than 2^31 count as 2^31. The qualified forms
// of no-cache and private need at least one field name, and nothing else; what
// is malformed counts as the unqualified form, which forbids more.
//
// From a quoted string that does not end on, only directives that forbid something
// are read, and seconds count as 0.
func ParseCacheControl(lines []string) Directives {
	var d Directives
	for _, line := range lines {
		for m := (members{rest: line}); m.next(); {
			d.add(m.member, m.broken)
		}
	}
	return d
}

// add adds one directive as it is written. With restrictive only what forbids
// something counts.
func (d *Directives) add(member string, restrictive bool) {
	end := 0
	for end < len(member) && isTokenByte(member[end]) {
		end++
	}
	name, arg := member[:end], member[end:]
	hasArg := arg != ""
	malformed := hasArg && arg[0] != '=' // such as white space in front of the equals sign
	if hasArg && !malformed {
		arg = arg[1:]
		if value, ok := unquote(arg); ok {
			arg = value
		} else if !isToken(arg) {
			malformed = true
		}
	}
	switch {
	case equalFold(name, "no-store"):
		d.NoStore = true
	case equalFold(name, "no-cache"):
		qualify(&d.NoCache, &d.NoCacheFields, arg, hasArg, malformed || restrictive)
	case equalFold(name, "private"):
		qualify(&d.Private, &d.PrivateFields, arg, hasArg, malformed || restrictive)
	case equalFold(name, "must-revalidate"):
		d.MustRevalidate = true
	case equalFold(name, "proxy-revalidate"):
		d.ProxyRevalidate = true
	case equalFold(name, "no-transform"):
		d.NoTransform = true
	case equalFold(name, "only-if-cached"):
		d.OnlyIfCached = true
	case equalFold(name, "max-age"):
		d.MaxAge.first(arg, malformed || restrictive)
	case equalFold(name, "s-maxage"):
		d.SMaxAge.first(arg, malformed || restrictive)
	case equalFold(name, "stale-while-revalidate"):
		d.StaleWhileRevalidate.first(arg, malformed || restrictive)
	case equalFold(name, "stale-if-error"):
		d.StaleIfError.first(arg, malformed || restrictive)
	case equalFold(name, "min-fresh"):
		d.MinFresh.first(arg, malformed || restrictive)
	case equalFold(name, "max-stale"):
		if !hasArg && !restrictive && !d.MaxStale.Set {
			d.MaxStale = Seconds{D: maxDelta, Set: true}
		}
		d.MaxStale.first(arg, malformed || restrictive)
	case equalFold(name, "immutable"):
		d.Immutable = d.Immutable || !restrictive // whatever its argument (RFC 8246 section 2)
	case hasArg || restrictive:
		// The rest allows something and has no argument: what has one is
		// another directive.
	case equalFold(name, "public"):
		d.Public = true
	case equalFold(name, "must-understand"):
		d.MustUnderstand = true
	}
}

// qualify adds no-cache or private in its qualified form if it names fields, and
// in the unqualified one otherwise.
func qualify(all *bool, fields *[]string, arg string, hasArg, malformed bool) {
	names, ok := fieldNames(arg)
	if !hasArg || malformed || !ok {
		*all = true
		return
	}
	*fields = append(*fields, names...)
}

// first sets the value unless an earlier directive has.
func (s *Seconds) first(arg string, malformed bool) {
	if s.Set {
		return
	}
	s.Set = true
	if d, ok := parseDelta(arg); ok && !malformed {
		s.D = d
	}
}

// parseDelta parses delta-seconds (RFC 9111 section 1.2.2): digits only, any
// number of them, cut at 2^31.
func parseDelta(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	n := int64(0)
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), int64(maxDelta/time.Second))
	}
	return time.Duration(n) * time.Second, true
}

// RequestDirectives returns what a request asks of caches. "Pragma: no-cache"
// counts as no-cache when there is no Cache-Control (RFC 9111 section 5.4).
// Without either field nothing is allocated.
func RequestDirectives(h http.Header) Directives {
	if lines, ok := h["Cache-Control"]; ok {
		return ParseCacheControl(lines)
	}
	return Directives{NoCache: hasMember(h["Pragma"], "no-cache")}
}

// ResponseDirectives returns what a response allows this cache. The target list
// (RFC 9213 section 2.2) is Fastcache-Cache-Control, CDN-Cache-Control: the first
// of them that is not empty and is a valid Structured Fields dictionary replaces
// Cache-Control, and with it Expires and Pragma; Targeted is set then.
//
// A dictionary in which a directive has a value of another type than its
// definition gives it (a quoted or decimal max-age) is passed over as invalid
// (section 2.1), but no-store, no-cache and private in it stand all the same: the
// next field must not allow what this one forbids. A negative number of seconds
// is of the right type and counts as 0.
func ResponseDirectives(h http.Header) Directives {
	var forbidden Directives
	for _, name := range [...]string{ownTargeted, cdnTargeted} {
		lines := h[name]
		if len(lines) == 0 {
			continue
		}
		dict, err := httpsfv.UnmarshalDictionary(lines)
		if err != nil || len(dict.Names()) == 0 {
			continue
		}
		d, ok := fromDictionary(dict)
		if ok {
			d.Targeted = true
			return d.with(forbidden)
		}
		forbidden = d.with(forbidden)
	}
	return ParseCacheControl(h["Cache-Control"]).with(forbidden)
}

// with adds the unqualified prohibitions of other.
func (d Directives) with(other Directives) Directives {
	d.NoStore = d.NoStore || other.NoStore
	d.NoCache = d.NoCache || other.NoCache
	d.Private = d.Private || other.Private
	return d
}

// fromDictionary reads a targeted field. Keys of dictionaries are lower case by
// their grammar, and of two with one name the last counts (RFC 9651 section
// 4.2.2). Parameters are ignored. ok is false if a value has the wrong type.
func fromDictionary(dict *httpsfv.Dictionary) (d Directives, ok bool) {
	ok = true
	for _, name := range dict.Names() {
		member, _ := dict.Get(name)
		valid := true
		switch name {
		case "no-store":
			valid = isTrue(member, &d.NoStore)
		case "no-cache":
			valid = qualifyMember(&d.NoCache, &d.NoCacheFields, member)
		case "private":
			valid = qualifyMember(&d.Private, &d.PrivateFields, member)
		case "public":
			valid = isTrue(member, &d.Public)
		case "must-revalidate":
			valid = isTrue(member, &d.MustRevalidate)
		case "proxy-revalidate":
			valid = isTrue(member, &d.ProxyRevalidate)
		case "must-understand":
			valid = isTrue(member, &d.MustUnderstand)
		case "immutable":
			valid = isTrue(member, &d.Immutable)
		case "no-transform":
			valid = isTrue(member, &d.NoTransform)
		case "max-age":
			valid = isSeconds(member, &d.MaxAge)
		case "s-maxage":
			valid = isSeconds(member, &d.SMaxAge)
		case "stale-while-revalidate":
			valid = isSeconds(member, &d.StaleWhileRevalidate)
		case "stale-if-error":
			valid = isSeconds(member, &d.StaleIfError)
		}
		ok = ok && valid
	}
	return d, ok
}

func isTrue(member httpsfv.Member, set *bool) bool {
	item, ok := member.(httpsfv.Item)
	if !ok {
		return false
	}
	*set, ok = item.Value.(bool)
	return ok && *set
}

func isSeconds(member httpsfv.Member, set *Seconds) bool {
	item, ok := member.(httpsfv.Item)
	if !ok {
		return false
	}
	n, ok := item.Value.(int64)
	if !ok {
		return false
	}
	n = min(max(n, 0), int64(maxDelta/time.Second))
	*set = Seconds{D: time.Duration(n) * time.Second, Set: true}
	return true
}

// qualifyMember reads no-cache or private: true, a string with a list of field
// names, a token, or an inner list of strings or tokens. A value that names no
// field counts as true.
func qualifyMember(all *bool, fields *[]string, member httpsfv.Member) bool {
	var values []httpsfv.Item
	switch m := member.(type) {
	case httpsfv.InnerList:
		values = m.Items
	case httpsfv.Item:
		if set, ok := m.Value.(bool); ok {
			*all = set
			return set
		}
		values = []httpsfv.Item{m}
	}
	for _, item := range values {
		var list string
		switch v := item.Value.(type) {
		case string:
			list = v
		case httpsfv.Token:
			list = string(v)
		default:
			*all = true
			return false
		}
		names, ok := fieldNames(list)
		if !ok {
			*all = true
			return true
		}
		*fields = append(*fields, names...)
	}
	*all = *all || len(values) == 0
	return true
}
