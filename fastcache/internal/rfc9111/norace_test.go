//go:build !race

package rfc9111_test

const raceEnabled = false
