//go:build race

package e2e

// raceBuild makes the Caddy under test one with the race detector in.
const raceBuild = true
