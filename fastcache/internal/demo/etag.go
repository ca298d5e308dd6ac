package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// digest is a short name for content.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}

// strongTag is the entity tag of bytes that are sent as they are.
func strongTag(content []byte) string { return `"` + digest(content) + `"` }

// weakTag is the entity tag of content that is sent with a stamp: two renderings
// mean the same but are not equal byte by byte, which is what weak tags are for
// (RFC 9110 section 8.8.1).
func weakTag(content []byte) string { return "W/" + strongTag(content) }

// etagMatches reports whether If-None-Match names the tag, in the weak comparison
// of RFC 9110 section 13.1.2. Our tags hold no comma, so the list can be cut there.
func etagMatches(r *http.Request, etag string) bool {
	for _, line := range r.Header.Values("If-None-Match") {
		for candidate := range strings.SplitSeq(line, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(etag, "W/") {
				return true
			}
		}
	}
	return false
}
