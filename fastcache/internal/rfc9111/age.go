package rfc9111

import "time"

// ParseAge parses the lines of an Age field (RFC 9111 section 5.1). Of a list,
// on one line or on several, the first member counts, as the section says for
// that mistake. It fails if there is none or if the first is not a number of
// seconds without sign, fraction or parameters: then the field is to be ignored.
// More than 2^31 seconds count as 2^31 (section 1.2.2).
func ParseAge(lines []string) (time.Duration, bool) {
	for _, line := range lines {
		if m := (members{rest: line}); m.next() {
			return parseDelta(m.member)
		}
	}
	return 0, false
}
