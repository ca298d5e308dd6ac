package rfc9111

import (
	"strconv"
	"time"
)

// cacheName is the item that stands for this cache in Cache-Status.
const cacheName = "fastcache"

// Fwd says why a request went forward to the origin (RFC 9211 section 2.2).
type Fwd uint8

// The values of fwd. FwdNone leaves the parameter out.
const (
	// FwdNone says that the request did not go forward.
	FwdNone Fwd = iota
	// FwdBypass: the cache was configured not to handle the request.
	FwdBypass
	// FwdMethod: the semantics of the method require it.
	FwdMethod
	// FwdURIMiss: nothing is stored for the URL.
	FwdURIMiss
	// FwdVaryMiss: something is stored for the URL, but not for these request header fields.
	FwdVaryMiss
	// FwdMiss: nothing stored can be used, for a reason that is none of the other misses.
	FwdMiss
	// FwdRequest: a fresh response is stored, but the request does not allow its use.
	FwdRequest
	// FwdStale: what is stored is stale.
	FwdStale
	// FwdPartial: what is stored covers only a part of what the request asks for.
	FwdPartial

	numFwds
)

var fwdWords = [numFwds]string{
	FwdNone:     "",
	FwdBypass:   "bypass",
	FwdMethod:   "method",
	FwdURIMiss:  "uri-miss",
	FwdVaryMiss: "vary-miss",
	FwdMiss:     "miss",
	FwdRequest:  "request",
	FwdStale:    "stale",
	FwdPartial:  "partial",
}

// String returns the value of the fwd parameter, or "" for [FwdNone].
func (f Fwd) String() string {
	if f >= numFwds {
		return ""
	}
	return fwdWords[f]
}

// CacheStatus is what this cache says about one response in the Cache-Status
// field (RFC 9211). The zero value says nothing but the cache's name.
type CacheStatus struct {
	// Hit says that the response came from the store and the request did not
	// go forward. With it Fwd and what belongs to Fwd are left out.
	Hit bool

	// Fwd says why the request went forward.
	Fwd Fwd

	// FwdStatus is the status that the origin answered with, 0 to leave it
	// out. Only with Fwd.
	FwdStatus int

	// TTL is the remaining freshness lifetime, negative when stale. It counts
	// only with HasTTL.
	TTL    time.Duration
	HasTTL bool

	// Stored says that the response was put into the store. Only with Fwd.
	Stored bool

	// Collapsed says that the request shared another one's trip to the
	// origin. Only with Fwd.
	Collapsed bool

	// Key is the cache key of the response; empty to leave it out. It tells
	// clients what the key is made of.
	Key string

	// Detail adds why.
	Detail Reason
}

// Append appends the field value to dst and returns it. The value is one member
// of the list that Cache-Status is. The TTL is cut to whole seconds towards
// zero. A Key with a byte that a Structured Fields string cannot hold, anything
// but visible ASCII and space, is left out. Append allocates only when dst has to
// grow.
func (c CacheStatus) Append(dst []byte) []byte {
	dst = append(dst, cacheName...)
	switch {
	case c.Hit:
		dst = append(dst, "; hit"...)
	case c.Fwd.String() != "":
		dst = append(dst, "; fwd="...)
		dst = append(dst, c.Fwd.String()...)
		if c.FwdStatus != 0 {
			dst = append(dst, "; fwd-status="...)
			dst = strconv.AppendInt(dst, int64(c.FwdStatus), 10)
		}
		if c.Stored {
			dst = append(dst, "; stored"...)
		}
		if c.Collapsed {
			dst = append(dst, "; collapsed"...)
		}
	}
	if c.HasTTL {
		dst = append(dst, "; ttl="...)
		dst = strconv.AppendInt(dst, int64(c.TTL/time.Second), 10)
	}
	if c.Key != "" && isStringValue(c.Key) {
		dst = append(dst, `; key="`...)
		for i := 0; i < len(c.Key); i++ {
			if c.Key[i] == '"' || c.Key[i] == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c.Key[i])
		}
		dst = append(dst, '"')
	}
	if word := c.Detail.String(); word != "" {
		dst = append(dst, "; detail="...)
		dst = append(dst, word...)
	}
	return dst
}

// isStringValue reports whether s can be a Structured Fields string (RFC 9651
// section 3.3.3).
func isStringValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
