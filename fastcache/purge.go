package fastcache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

const (
	methodPurge = "PURGE"

	// purgeField is the field of a PURGE request that chooses between the two
	// kinds of purge: hard, the default, or soft.
	purgeField = "Fastcache-Purge"
)

// selection is what a purge takes of a store: one of the fields is set.
type selection struct {
	keys   []string              // under every scheme and port of their hosts
	labels []string              // of which a response has any; see tags.go
	match  func(key string) bool // called with locks held
}

// purge drops the selected responses from a store, or marks them stale if soft,
// and keeps fetches in flight from bringing them back. It returns the number of
// responses, variants counted, and with an error what was purged until then. A
// store that has been closed has nothing to purge.
func (sel selection) purge(ctx context.Context, s *sharedStore, soft bool, why store.Cause) (n int, err error) {
	switch {
	case sel.match != nil:
		s.equivalents.purgeAll()
		n, err = s.store.PurgeFunc(ctx, sel.match, soft, why)
	case sel.labels != nil:
		n, err = s.store.PurgeTags(ctx, sel.labels, soft, why)
	default:
		for _, key := range sel.keys {
			n += s.purge(key, soft, why)
		}
	}
	if errors.Is(err, store.ErrClosed) {
		err = nil
	}
	return n, err
}

// servePurge answers a PURGE request for one URL.
func (fc *FastCache) servePurge(w http.ResponseWriter, r *http.Request, seen *observation) error {
	status := rfc9111.CacheStatus{}
	if !fc.mayPurge(r.RemoteAddr) {
		status.Fwd, status.Detail = rfc9111.FwdRequest, rfc9111.ReasonPurgeDenied
		fc.answered(seen, resultPurged, w.Header(), nil, status)
		http.Error(w, "this address may not purge; see the option purge_allow", http.StatusForbidden)
		return nil
	}
	key, ok := fc.appendKey(nil, r)
	if !ok {
		status.Detail = rfc9111.ReasonBadTarget
		fc.answered(seen, resultPurged, w.Header(), nil, status)
		http.Error(w, "this request target names nothing that can be cached", http.StatusBadRequest)
		return nil
	}
	soft, ok := wantsSoft(r.Header)
	if !ok {
		fc.answered(seen, resultPurged, w.Header(), nil, status)
		http.Error(w, purgeField+" takes hard or soft", http.StatusBadRequest)
		return nil
	}
	n := 0
	if !fc.off {
		n = fc.lease.shared.purge(string(key), soft, store.Purged)
	}
	code := http.StatusOK
	status.Detail = rfc9111.ReasonPurged
	if n == 0 {
		code = http.StatusNotFound
		status.Detail = rfc9111.ReasonPurgeMiss
	}
	fc.answered(seen, resultPurged, w.Header(), nil, status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, err := fmt.Fprintf(w, "{\"purged\":%d}\n", n)
	return err
}

// wantsSoft reads the purgeField of a PURGE request. A word that is not known is
// refused: taking it for the default would drop what somebody wanted to keep.
func wantsSoft(h http.Header) (soft, ok bool) {
	lines := h[purgeField]
	switch {
	case len(lines) == 0:
		return false, true
	case len(lines) > 1:
		return false, false
	}
	soft = strings.EqualFold(lines[0], "soft")
	return soft, soft || strings.EqualFold(lines[0], "hard")
}

// mayPurge checks the peer of the connection against purge_allow. Header fields
// that name another client never count, and neither do peers without an IP
// address, such as those of a Unix socket.
func (fc *FastCache) mayPurge(remoteAddr string) bool {
	peer, err := netip.ParseAddrPort(remoteAddr)
	if err != nil {
		return false
	}
	addr := peer.Addr().Unmap().WithZone("")
	if len(fc.purgeAllow) == 0 {
		return addr.IsLoopback()
	}
	for _, prefix := range fc.purgeAllow {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// unsafeRequest is a request that may change what it is asked about, as it is before
// the handlers behind have rewritten it.
type unsafeRequest struct {
	fc     *FastCache
	r      *http.Request
	key    []byte
	keyed  bool
	header http.Header

	// The target, in the parts that rfc9111.InvalidationTargets takes.
	scheme, host, uri string
}

func (fc *FastCache) unsafeRequest(r *http.Request) *unsafeRequest {
	u := &unsafeRequest{fc: fc, r: r, header: r.Header.Clone(), uri: fc.requestURI(r)}
	u.key, u.keyed = fc.appendKey(nil, r)
	u.scheme, u.host, _ = effectiveOrigin(r)
	return u
}

// invalidate drops what a successful unsafe request has made out of date: its own
// target, what the response's Location and Content-Location name on the same
// host (RFC 9111 section 4.4), and the groups of the same origin that it says
// (RFC 9875 section 3). It does not cascade: what else is in the groups of a
// response that is dropped for its URL stays.
func (u *unsafeRequest) invalidate(response http.Header) {
	if u.keyed {
		u.fc.lease.shared.purge(string(u.key), false, store.Invalidated)
	}
	u.invalidateOthers(response)
}

// invalidateOthers is invalidate for all but the request's own target.
func (u *unsafeRequest) invalidateOthers(response http.Header) {
	fc, shared := u.fc, u.fc.lease.shared
	targets := rfc9111.InvalidationTargets(u.scheme, u.host, u.uri, response)
	if len(targets) == 0 {
		return
	}
	for _, target := range targets[1:] { // behind the request's own
		if key, ok := fc.keyOfURL(u.r.Context(), target, u.header); ok {
			shared.purge(key, false, store.Invalidated)
		}
	}
	if groups := rfc9111.InvalidatedGroups(response); len(groups) > 0 {
		fc.invalidateGroups(rfc9111.OriginOf(targets[0]), groups)
	}
}

// groupsWait bounds how long a response waits for the invalidation of groups. That
// takes microseconds, except after a start: the files of earlier runs are read
// first.
const groupsWait = 5 * time.Second

// invalidateGroups drops the responses of an origin that are in any of the groups.
// It goes on in the background after groupsWait, also when the client has left.
func (fc *FastCache) invalidateGroups(origin string, groups []string) {
	byGroup := selection{labels: groupLabels(origin, groups)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := byGroup.purge(context.Background(), fc.lease.shared, false, store.Invalidated); err != nil {
			fc.logger.Error("cache groups not invalidated", zap.Strings("groups", groups), zap.Error(err))
		}
	}()
	limit := time.NewTimer(groupsWait)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
}

// keyOfURL returns the key of a GET request for an absolute URL with the given
// header, on the connection of ctx if it is that of a request. It fails for what no
// request can ask for.
func (fc *FastCache) keyOfURL(ctx context.Context, absolute string, header http.Header) (string, bool) {
	u, err := url.Parse(absolute)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(absolute, "#") {
		return "", false
	}
	// The key has the bytes as they are, not as the parser would write them.
	_, uri, _ := strings.Cut(absolute, "://")
	if slash := strings.IndexAny(uri, "/?"); slash >= 0 {
		uri = uri[slash:]
	} else {
		uri = ""
	}
	if !strings.HasPrefix(uri, "/") {
		uri = "/" + uri
	}
	r := &http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host, RequestURI: uri, Header: header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	if u.Scheme == "https" {
		r.TLS = new(tls.ConnectionState)
	}
	if ctx.Value(http.LocalAddrContextKey) == nil { // a placeholder asks for it
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, new(net.TCPAddr))
	}
	r = r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, ctx.Value(http.LocalAddrContextKey)))
	u.Scheme, u.Host = "", "" // as in a request that a server gets
	if u.Path == "" {
		u.Path = "/"
	}
	key, ok := fc.appendKey(nil, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil))
	return string(key), ok
}

// matchPrefix returns what selects the keys that begin with a prefix. With a
// scheme it is the beginning of a URL: its host is taken whole, under every scheme
// and port. With a slash it is the beginning of a path, on any host. A key that is
// not a URL, of a cache_key template, is compared with the prefix as it is.
func matchPrefix(prefix string) func(key string) bool {
	host, path, isURL := cutURL(prefix)
	return func(key string) bool {
		keyHost, keyPath, ok := cutURL(key)
		switch {
		case ok && isURL:
			return strings.EqualFold(keyHost, host) && strings.HasPrefix(keyPath, path)
		case ok && strings.HasPrefix(prefix, "/"):
			return strings.HasPrefix(keyPath, prefix)
		}
		return strings.HasPrefix(key, prefix)
	}
}

// cutURL cuts an http or https URL into its host, without a port, and the rest
// from the path on, which is at least "/".
func cutURL(s string) (host, path string, ok bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", "", false
	}
	host, path = rest, "/"
	if slash := strings.IndexAny(rest, "/?"); slash >= 0 {
		host, path = rest[:slash], rest[slash:]
	}
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && strings.Trim(host[colon+1:], "0123456789") == "" {
		host = host[:colon]
	}
	return strings.TrimSuffix(host, "."), path, true
}
