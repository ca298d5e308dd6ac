// Package fastcache is an HTTP cache for Caddy: the handler module
// http.handlers.fastcache, in a Caddyfile the directive fastcache.
//
// It stores responses to GET requests in two tiers, small bodies in RAM and all
// bodies on disk, from where the kernel sends them (sendfile), and follows the
// rules of a shared cache (RFC 9111). The cache survives restarts. What happened
// to a request is told in the response's Cache-Status field (RFC 9211).
//
//	example.com {
//		fastcache {
//			path /var/cache/fastcache
//		}
//		reverse_proxy localhost:8080
//	}
//
// [FastCache] documents every option. The package is meant to be compiled into
// Caddy (import it for its side effect, or use xcaddy), not to be called.
package fastcache
