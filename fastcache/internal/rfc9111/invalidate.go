package rfc9111

import (
	"net/http"
	"net/url"
	"slices"
)

// InvalidationTargets returns the keys, in the form of [AppendTarget], of what a
// successful response to an unsafe request makes out of date (RFC 9111 section
// 4.4): the target of the request, and what Location and Content-Location in the
// response name, if it is of the same origin. Others could be made to forget
// each other's pages. The keys are unique; there are none if the target cannot be
// a key.
func InvalidationTargets(scheme, host, requestURI string, resp http.Header) []string {
	key, ok := AppendTarget(nil, scheme, host, requestURI)
	if !ok {
		return nil
	}
	target := string(key)
	targets := []string{target}
	for _, name := range [...]string{"Location", "Content-Location"} {
		location, ok := single(resp, name)
		if !ok {
			continue
		}
		other, ok := resolveTarget(target, location)
		if ok && sameOrigin([]byte(other), key) && !slices.Contains(targets, other) {
			targets = append(targets, other)
		}
	}
	return targets
}

// resolveTarget returns the key of a URI reference relative to a key (RFC 3986
// section 5).
func resolveTarget(base, reference string) (key string, ok bool) {
	from, err := url.Parse(base)
	if err != nil {
		return "", false
	}
	to, err := from.Parse(reference)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Opaque != "" {
		return "", false
	}
	b, ok := AppendTarget(nil, to.Scheme, to.Host, to.RequestURI())
	return string(b), ok
}
