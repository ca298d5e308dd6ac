package rfc9111

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Groups returns the groups that a response belongs to: the members of its
// Cache-Groups field (RFC 9875 section 2), sorted and each once. A group holds
// within one origin, which the caller has to see to, and its name is compared
// byte by byte.
//
// There is no bound on number or length but that of the header. Without the field
// nothing is allocated.
func Groups(h http.Header) []string { return stringList(h["Cache-Groups"]) }

// InvalidatedGroups returns the groups that a response makes out of date: the
// members of its Cache-Group-Invalidation field (RFC 9875 section 3), sorted and
// each once. It counts only on a response, other than an error, to an unsafe
// method, and only for groups of the same origin: both are the caller's to check.
func InvalidatedGroups(h http.Header) []string { return stringList(h["Cache-Group-Invalidation"]) }

// OriginOf returns the origin (RFC 9110 section 4.3.1) of a target URI in the form
// of [AppendTarget]: the part in front of its path. It is empty for anything else.
func OriginOf(target string) string {
	scheme, rest, ok := strings.Cut(target, "://")
	slash := strings.IndexByte(rest, '/')
	if !ok || slash < 0 {
		return ""
	}
	return target[:len(scheme)+len("://")+slash]
}

// stringList reads a Structured Fields list of strings (RFC 9651 section 3.1).
// Parameters are ignored. A field that is no such list has no members; one that
// is a list loses the members of other types only, since each group that is not
// heard of leaves something out of date in the store.
func stringList(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil
	}
	var values []string
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok {
			if value, ok := item.Value.(string); ok {
				values = append(values, value)
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}
