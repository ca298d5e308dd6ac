package rfc9111

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// ParseVary parses the lines of a Vary field (RFC 9110 section 12.5.5). names
// are canonical, sorted and unique. star says that no request can match: the
// list has "*", or a member that is not a field name, by which the origin must
// have meant something that cannot be told.
func ParseVary(lines []string) (names []string, star bool) {
	for _, line := range lines {
		for m := (members{rest: line}); m.next(); {
			if m.member == "*" || !isToken(m.member) {
				return nil, true
			}
			names = append(names, textproto.CanonicalMIMEHeaderKey(m.member))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), false
}

// keyLength is the size of the length in front of each value in a variant key.
const keyLength = 4

// AppendVariant appends the secondary key of a request (RFC 9111 section 4.1) to
// dst and returns it: the values that the header has for these fields, in normal
// form. Two requests have equal keys, for the same names, exactly if a stored
// response that varies on them and matches one also matches the other. A field
// that is absent differs from one that is empty.
//
// The normal form of Accept-Encoding is the sorted list of the codings that it
// accepts, without weights, and of those that it refuses, see
// [NormalizeAcceptEncoding]. That of Accept-Language is in lower case, by
// descending weight and then by name, with weights in their shortest form. That
// of any other field are its lines combined into one, without the white space
// around commas outside of quoted strings.
//
// The key is binary. It allocates only when dst has to grow.
func AppendVariant(dst []byte, names []string, h http.Header) []byte {
	for _, name := range names {
		start := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		lines := h[name]
		if len(lines) == 0 {
			continue
		}
		switch name {
		case "Accept-Encoding":
			dst = appendEncodings(dst, lines)
		case "Accept-Language":
			dst = appendLanguages(dst, lines)
		default:
			dst = appendCombined(dst, lines)
		}
		// One more than the length: 0 stands for absent.
		length := len(dst) - start - keyLength + 1
		binary.BigEndian.PutUint32(dst[start:], uint32(length)) //nolint:gosec // a header is far smaller than 4 GiB
	}
	return dst
}

// cutKeyValue cuts the first value off a variant key.
func cutKeyValue(key []byte) (value []byte, present bool, rest []byte, ok bool) {
	if len(key) < keyLength {
		return nil, false, nil, false
	}
	length := int(binary.BigEndian.Uint32(key))
	key = key[keyLength:]
	if length == 0 {
		return nil, false, key, true
	}
	if length--; length > len(key) {
		return nil, false, nil, false
	}
	return key[:length], true, key[length:], true
}

// VariantUsable reports whether a stored response may answer a request although
// their variant keys differ: the second chance that keeps one copy a content
// coding, not one a browser. Both keys are of [AppendVariant] for the same names;
// stored is the header of the stored response.
//
// The keys may differ in Accept-Encoding and Accept-Language only.
//
//   - By Accept-Encoding the response is usable if [EncodingAcceptable] says so.
//     It also is if it has no coding and the request accepts no coding that the
//     stored one's request did not: the origin, offered more, chose none.
//   - By Accept-Language it is usable if [LanguageAcceptable] says so.
//
// That is within RFC 9111 section 4.1, which lets a cache select by what fields
// mean. It prefers what is stored: a client that likes br better gets the stored
// gzip.
func VariantUsable(names []string, storedKey, requestKey []byte, stored http.Header) bool {
	for _, name := range names {
		var was, is []byte
		var wasPresent, isPresent, ok1, ok2 bool
		was, wasPresent, storedKey, ok1 = cutKeyValue(storedKey)
		is, isPresent, requestKey, ok2 = cutKeyValue(requestKey)
		switch {
		case !ok1 || !ok2:
			return false
		case wasPresent == isPresent && bytes.Equal(was, is):
		case name == "Accept-Encoding":
			coding := strings.Join(stored["Content-Encoding"], ",")
			if isIdentity(coding) && wasPresent && isPresent && acceptsNoMore(string(is), string(was)) {
				continue
			}
			if !EncodingAcceptable(coding, []string{string(is)}, isPresent) {
				return false
			}
		case name == "Accept-Language":
			language, one := single(stored, "Content-Language")
			if !one || !isPresent || !LanguageAcceptable(language, []string{string(is)}) {
				return false
			}
		default:
			return false
		}
	}
	return len(storedKey) == 0 && len(requestKey) == 0
}

// maxCodings and maxLanguages are how many members are brought into normal form.
// Browsers send up to 5 codings and 10 languages; a longer list is compared as it
// was sent, so that no request can make sorting it dear.
const (
	maxCodings   = 16
	maxLanguages = 32
)

// coding is a member of Accept-Encoding.
type coding struct {
	name    string // without weight, or the whole member if it is malformed
	refused bool   // q=0
}

// implied reports whether a member of the list goes without saying: identity, if
// neither it nor all the rest is refused.
func (c coding) implied(codings []coding) bool {
	return c.name == "identity" && !c.refused &&
		!slices.ContainsFunc(codings, func(c coding) bool { return c.name == "*" && c.refused })
}

// append appends a member in normal form.
func (c coding) append(dst []byte) []byte {
	dst = appendLower(dst, c.name)
	if c.refused {
		dst = append(dst, ";q=0"...)
	}
	return dst
}

// NormalizeAcceptEncoding returns the members of an Accept-Encoding field (RFC
// 9110 section 12.5.3) in normal form: the codings with a weight above 0 by name
// in lower case, and the refused ones as "name;q=0", sorted and unique.
// "identity" is left out unless it or "*" is refused, since it is acceptable
// without being named. x-gzip and x-compress have their modern names (section 8.4.1). A
// list of more than 16 members, or with a quoted string, comes back as it is.
func NormalizeAcceptEncoding(lines []string) []string {
	var buf [maxCodings]coding
	codings, ok := parseCodings(buf[:0], lines)
	if !ok {
		return slices.Clone(lines)
	}
	var normal []string
	for _, c := range codings {
		if !c.implied(codings) {
			normal = append(normal, string(c.append(nil)))
		}
	}
	return normal
}

// appendEncodings appends the normal form of Accept-Encoding. Codings with q=0
// stay in it although they change nothing for an origin that minds the weights:
// one that does not must not have its answer to "gzip;q=0" taken for one to
// "identity".
func appendEncodings(dst []byte, lines []string) []byte {
	if len(lines) == 1 {
		if normal := usualEncodings(lines[0]); normal != "" {
			return append(dst, normal...)
		}
	}
	var buf [maxCodings]coding
	codings, ok := parseCodings(buf[:0], lines)
	if !ok {
		return appendCombined(dst, lines)
	}
	start := len(dst)
	for _, c := range codings {
		if c.implied(codings) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = c.append(dst)
	}
	return dst
}

// usualEncodings knows the normal form of what nearly all clients send, by heart:
// it is a tenth of the work of finding it out, and on the path of every hit.
func usualEncodings(line string) string {
	switch line {
	case "gzip, deflate, br, zstd": // browsers over TLS
		return "br,deflate,gzip,zstd"
	case "gzip, deflate, br":
		return "br,deflate,gzip"
	case "gzip, deflate": // browsers without TLS
		return "deflate,gzip"
	case "gzip": // Go
		return "gzip"
	}
	return ""
}

// parseCodings appends the members of Accept-Encoding to dst, sorted and unique.
// It fails if they are too many, or if one has a quote, which none can have.
func parseCodings(dst []coding, lines []string) ([]coding, bool) {
	for _, line := range lines {
		for m := (members{rest: line}); m.next(); {
			if len(dst) == maxCodings || strings.IndexByte(m.member, '"') >= 0 {
				return nil, false
			}
			dst = insertCoding(dst, parseCoding(m.member))
		}
	}
	return dst, true
}

// insertCoding inserts c in order. Of one coding twice the refusal counts. The
// slice has room for one more.
func insertCoding(codings []coding, c coding) []coding {
	at := 0
	for ; at < len(codings); at++ {
		order := compareFold(codings[at].name, c.name)
		if order == 0 {
			codings[at].refused = codings[at].refused || c.refused
			return codings
		}
		if order > 0 {
			break
		}
	}
	codings = append(codings, c)
	copy(codings[at+1:], codings[at:])
	codings[at] = c
	return codings
}

func parseCoding(member string) coding {
	name, weight, ok := cutWeight(member)
	switch {
	case !ok:
		return coding{name: member}
	case equalFold(name, "x-gzip"):
		name = "gzip"
	case equalFold(name, "x-compress"):
		name = "compress"
	case equalFold(name, "identity"):
		name = "identity"
	}
	return coding{name: name, refused: weight == 0}
}

// cutWeight splits "name;q=0.5" (RFC 9110 section 12.4.2). The weight is in
// thousandths, 1000 if there is none.
func cutWeight(member string) (name string, weight int, ok bool) {
	name, param, found := strings.Cut(member, ";")
	name = trimOWS(name)
	if !isToken(name) {
		return "", 0, false
	}
	if !found {
		return name, 1000, true
	}
	param = trimOWS(param)
	if len(param) < 3 || lower(param[0]) != 'q' || param[1] != '=' || param[2] != '0' && param[2] != '1' {
		return "", 0, false
	}
	weight = int(param[2]-'0') * 1000
	digits := param[3:]
	if digits == "" {
		return name, weight, true
	}
	if digits[0] != '.' || len(digits) > 4 {
		return "", 0, false
	}
	scale := 100
	for _, c := range []byte(digits[1:]) {
		if !isDigit(c) {
			return "", 0, false
		}
		weight += int(c-'0') * scale
		scale /= 10
	}
	return name, weight, weight <= 1000
}

// EncodingAcceptable reports whether a stored response with this
// Content-Encoding may answer a request with these lines of Accept-Encoding,
// although it was not stored for such a request (RFC 9110 section 12.5.3).
// present is false if the request has no such field.
//
// A response with codings is acceptable if the request accepts each of them with
// a weight above 0, by name or by "*". One without is acceptable if the request
// accepts no coding that there is (the IANA registry's, or "*") and does not
// refuse identity; a request that accepts one should be given its chance to get
// the smaller response. A request without the field counts as accepting identity
// only: it may well accept anything, but those who send none are those who cannot
// decode. No response is acceptable by a list of more than 16 members or with a
// quoted string.
func EncodingAcceptable(contentEncoding string, acceptEncoding []string, present bool) bool {
	if !present {
		return isIdentity(contentEncoding)
	}
	var buf [maxCodings]coding
	codings, ok := parseCodings(buf[:0], acceptEncoding)
	if !ok {
		return false
	}
	if isIdentity(contentEncoding) {
		for _, c := range codings {
			if !c.refused && (registered(c.name) || c.name == "*") {
				return false
			}
		}
		return !refusesIdentity(codings)
	}
	for m := (members{rest: contentEncoding}); m.next(); {
		if c := parseCoding(m.member); c.name != "identity" && !accepts(codings, c.name) {
			return false
		}
	}
	return true
}

func isIdentity(contentEncoding string) bool {
	return contentEncoding == "" || equalFold(contentEncoding, "identity")
}

// accepts reports whether a list accepts a coding other than identity, by its
// name or else by "*".
func accepts(codings []coding, name string) bool {
	wildcard := false
	for _, c := range codings {
		if equalFold(c.name, name) {
			return !c.refused
		}
		wildcard = wildcard || c.name == "*" && !c.refused
	}
	return wildcard
}

// refusesIdentity reports whether a list wants anything but an unencoded
// response.
func refusesIdentity(codings []coding) bool {
	refused := false
	for _, c := range codings {
		switch c.name {
		case "identity":
			return c.refused
		case "*":
			refused = c.refused
		}
	}
	return refused
}

// registered reports whether a name is a content coding of the IANA registry
// other than identity.
func registered(name string) bool {
	for _, known := range [...]string{
		"gzip", "br", "zstd", "deflate", "compress", "dcb", "dcz", "aes128gcm", "exi", "pack200-gzip",
	} {
		if equalFold(name, known) {
			return true
		}
	}
	return false
}

// acceptsNoMore reports whether every coding that there is and that one list
// accepts is also accepted by another one, identity included.
func acceptsNoMore(list, than string) bool {
	var buf1, buf2 [maxCodings]coding
	one, ok1 := parseCodings(buf1[:0], []string{list})
	other, ok2 := parseCodings(buf2[:0], []string{than})
	if !ok1 || !ok2 || refusesIdentity(one) {
		return false
	}
	for _, c := range one {
		switch {
		case c.refused:
		case c.name == "*":
			return false
		case registered(c.name) && !accepts(other, c.name):
			return false
		}
	}
	return true
}

// language is a member of Accept-Language.
type language struct {
	tag    string
	weight int
}

// appendLanguages appends the normal form of Accept-Language (RFC 9110 section
// 12.5.4). The order of languages with one weight has no meaning there.
func appendLanguages(dst []byte, lines []string) []byte {
	var buf [maxLanguages]language
	languages := buf[:0]
	for _, line := range lines {
		for m := (members{rest: line}); m.next(); {
			tag, weight, ok := cutWeight(m.member)
			if !ok || len(languages) == maxLanguages {
				return appendCombined(dst, lines)
			}
			languages = insertLanguage(languages, language{tag, weight})
		}
	}
	for i, l := range languages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLower(dst, l.tag)
		if l.weight < 1000 {
			dst = append(dst, ";q=0"...)
			for scale, rest, point := 100, l.weight, byte('.'); rest > 0; scale /= 10 {
				if point != 0 {
					dst, point = append(dst, point), 0
				}
				dst = append(dst, byte('0'+rest/scale))
				rest %= scale
			}
		}
	}
	return dst
}

// insertLanguage inserts l by descending weight and then by tag, unless it is
// there. The slice has room for one more.
func insertLanguage(languages []language, l language) []language {
	at := 0
	for ; at < len(languages); at++ {
		order := languages[at].weight - l.weight
		if order == 0 {
			order = -compareFold(languages[at].tag, l.tag)
		}
		if order == 0 {
			return languages
		}
		if order < 0 {
			break
		}
	}
	languages = append(languages, l)
	copy(languages[at+1:], languages[at:])
	languages[at] = l
	return languages
}

// LanguageAcceptable reports whether a stored response with this
// Content-Language may answer a request with these lines of Accept-Language,
// although it was not stored for such a request: if it is in exactly the one
// language that the request likes best. When several share the highest weight
// the origin has to be asked, since many take the first of them.
func LanguageAcceptable(contentLanguage string, acceptLanguage []string) bool {
	if !isToken(contentLanguage) {
		return false // none, or several
	}
	best, weight, alone := "", 0, false
	for _, line := range acceptLanguage {
		for m := (members{rest: line}); m.next(); {
			tag, w, ok := cutWeight(m.member)
			switch {
			case !ok:
				return false
			case w > weight:
				best, weight, alone = tag, w, true
			case w == weight && !equalFold(tag, best):
				alone = false
			}
		}
	}
	return alone && equalFold(best, contentLanguage)
}

// appendCombined appends the lines of a field as one (RFC 9110 section 5.3)
// without the white space around commas that are not in a quoted string. A
// quoted string that does not end goes to the end of its line.
func appendCombined(dst []byte, lines []string) []byte {
	for i, line := range lines {
		if i > 0 {
			dst = append(dst, ',')
		}
		line = trimOWS(line)
		quoted := false
		for j := 0; j < len(line); j++ {
			c := line[j]
			switch {
			case quoted:
				if c == '\\' && j+1 < len(line) {
					dst = append(dst, c)
					j++
					c = line[j]
				} else if c == '"' {
					quoted = false
				}
			case c == '"':
				quoted = true
			case isOWS(c):
				end := j
				for isOWS(line[end]) { // ends: the line does not end in white space
					end++
				}
				if line[end] == ',' || line[j-1] == ',' { // nor starts with it
					j = end - 1
					continue
				}
			}
			dst = append(dst, c)
		}
	}
	return dst
}
