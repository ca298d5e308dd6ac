package fastcache

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

const methodPurge = "PURGE"

// servePurge answers a PURGE request: it drops every variant of the URL, under
// each scheme and port of the host, and keeps fetches in flight from bringing
// them back.
func (fc *FastCache) servePurge(w http.ResponseWriter, r *http.Request) error {
	status := rfc9111.CacheStatus{}
	if !fc.mayPurge(r.RemoteAddr) {
		status.Fwd, status.Detail = rfc9111.FwdRequest, rfc9111.ReasonPurgeDenied
		fc.addStatus(w.Header(), nil, status)
		http.Error(w, "this address may not purge; see the option purge_allow", http.StatusForbidden)
		return nil
	}
	key, ok := fc.appendKey(nil, r)
	if !ok {
		status.Detail = rfc9111.ReasonBadTarget
		fc.addStatus(w.Header(), nil, status)
		http.Error(w, "this request target names nothing that can be cached", http.StatusBadRequest)
		return nil
	}
	n := 0
	if !fc.off {
		n = fc.store.Purge(string(key), false, store.Purged)
	}
	code := http.StatusOK
	status.Detail = rfc9111.ReasonPurged
	if n == 0 {
		code = http.StatusNotFound
		status.Detail = rfc9111.ReasonPurgeMiss
	}
	fc.addStatus(w.Header(), nil, status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, err := fmt.Fprintf(w, "{\"purged\":%d}\n", n)
	return err
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

// invalidate drops what an unsafe request has made out of date: its own target
// and what the response's Location and Content-Location name on the same host
// (RFC 9111 section 4.4).
func (fc *FastCache) invalidate(r *http.Request, response http.Header) {
	if fc.CacheKey != "" {
		if key, ok := fc.appendKey(nil, r); ok {
			fc.store.Purge(string(key), false, store.Invalidated)
		}
		return
	}
	scheme, host := effectiveOrigin(r)
	for _, key := range rfc9111.InvalidationTargets(scheme, host, fc.requestURI(r), response) {
		fc.store.Purge(key, false, store.Invalidated)
	}
}
