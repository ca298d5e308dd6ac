package rfc9111_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// header makes a header of lines "Name: value".
func header(lines ...string) http.Header {
	h := make(http.Header)
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			panic("no colon in " + line)
		}
		h.Add(name, strings.TrimPrefix(value, " "))
	}
	return h
}

// now is the moment at which responses come in.
var now = time.Date(2026, time.August, 1, 12, 0, 0, 0, time.UTC)

// date is an HTTP date relative to now.
func date(seconds int) string {
	return now.Add(time.Duration(seconds) * time.Second).Format(http.TimeFormat)
}

// noAllocs fails the test if f allocates.
func noAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	if raceEnabled {
		return // the detector allocates on its own account
	}
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want none", what, n)
	}
}
