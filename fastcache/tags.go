package fastcache

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// A stored response can be purged by its tags, which any purge may name, and by
// its cache groups (RFC 9875), which hold within the origin of the response. To
// the store both are labels: the first byte is their kind, so that no tag can be
// spelled to pass for a group, nor a group for one of another origin.
const (
	kindTag       = "t" // and the tag
	kindGroup     = "g" // and the origin, a space, the group
	kindMoreTags  = "T" // has tags that are not among its labels
	kindMoreGroup = "G" // and the origin: has groups that are not among its labels
	kindHash      = "#" // and the SHA-256 of a label that would be too long
)

const (
	// maxLabels is how many labels of a response are kept; what is more counts
	// as one that every purge of its kind takes. A label costs some 100 bytes of
	// index, so 256 are as much as a large header. The field's own limits are as
	// wide (Cloudflare and Fastly: 16 KiB, RFC 9875: at least 32 groups).
	maxLabels = 256

	// maxLabel is the longest label that is kept as it is, in bytes. Of a longer
	// one the SHA-256 is kept: it is as good for finding the response.
	maxLabel = 256
)

// labelsOf returns the labels of a response, sorted and each once.
func labelsOf(e *rfc9111.Exchange) []string {
	origin := rfc9111.OriginOf(e.Target)
	labels, more := appendLabels(nil, groupPrefix(origin), rfc9111.Groups(e.Header))
	if more {
		labels = append(labels, kindMoreGroup+origin)
	}
	if labels, more = appendLabels(labels, kindTag, responseTags(e.Header)); more {
		labels = append(labels, kindMoreTags)
	}
	slices.Sort(labels)
	return labels
}

// tagLabels returns the labels by which a purge finds the responses with any of
// the tags, sorted and each once.
func tagLabels(tags []string) []string {
	labels := []string{kindMoreTags}
	for _, tag := range tags {
		labels = append(labels, label(kindTag, tag))
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// groupLabels is tagLabels for groups of an origin.
func groupLabels(origin string, groups []string) []string {
	labels := []string{kindMoreGroup + origin}
	for _, group := range groups {
		labels = append(labels, label(groupPrefix(origin), group))
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// groupPrefix is what the label of a group begins with. An origin has no space.
func groupPrefix(origin string) string { return kindGroup + origin + " " }

// appendLabels appends a label for each of the names, which are sorted and unique,
// as far as there is room. more tells that there was not enough.
func appendLabels(labels []string, prefix string, names []string) (_ []string, more bool) {
	for _, name := range names {
		if len(labels) >= maxLabels {
			return labels, true
		}
		labels = append(labels, label(prefix, name))
	}
	return labels, false
}

func label(prefix, name string) string {
	if len(prefix)+len(name) <= maxLabel {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(prefix + name))
	return kindHash + hex.EncodeToString(sum[:])
}

// responseTags returns the tags that a response names in Cache-Tag (separated by
// commas), Surrogate-Key or xkey (separated by white space), sorted and each once.
// Upper and lower case are different, as in Fastly's and Varnish's.
func responseTags(h http.Header) []string {
	var tags []string
	for _, line := range h["Cache-Tag"] {
		for tag := range strings.SplitSeq(line, ",") {
			if tag = strings.Trim(tag, " \t"); tag != "" {
				tags = append(tags, tag)
			}
		}
	}
	for _, name := range [...]string{"Surrogate-Key", "Xkey"} {
		for _, line := range h[name] {
			tags = append(tags, strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })...)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}
