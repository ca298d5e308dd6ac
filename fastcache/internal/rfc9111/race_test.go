//go:build race

package rfc9111_test

const raceEnabled = true
