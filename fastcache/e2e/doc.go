// Package e2e holds the end-to-end tests of fastcache: each starts a real Caddy
// process built from this tree in front of an origin of its own, and judges by
// what came over the wire and how often the origin was asked.
//
// It is a module of its own so that what the tests need, a browser driver above
// all, does not stand in the go.mod of those who use fastcache.
package e2e
