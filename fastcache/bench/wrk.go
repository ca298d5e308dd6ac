package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// load is what a load generator says of a leg.
type load struct {
	requests  int64
	perSecond float64
	p50, p99  time.Duration // 0: not told
	read      int64         // bytes, with headers; rounded by wrk to three digits
	failures  int64         // socket errors, and answers other than 2xx and 3xx
}

// parseWrk reads the report of "wrk --latency".
//
// The column "+/- Stdev" of the statistics has percentages too, so percentiles count
// only below the heading of the distribution, and only as a field of their own:
// "90.50%" holds "50%".
func parseWrk(report string) (load, error) {
	var l load
	var err error
	distribution := false
	seen := make(map[string]bool)
	for line := range strings.Lines(report) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == "Latency" && len(f) == 2 && f[1] == "Distribution":
			distribution = true
		case distribution && len(f) == 2 && f[0] == "50%":
			l.p50, err = parseWrkDuration(f[1])
			seen["p50"] = true
		case distribution && len(f) == 2 && f[0] == "99%":
			l.p99, err = parseWrkDuration(f[1])
			seen["p99"] = true
		case len(f) == 6 && f[1] == "requests" && f[2] == "in":
			distribution = false
			if l.requests, err = parseCount(f[0]); err == nil {
				l.read, err = parseWrkBytes(f[4])
			}
			seen["requests"] = true
		case f[0] == "Requests/sec:" && len(f) == 2:
			l.perSecond, err = parseWrkNumber(f[1])
			seen["rate"] = true
		case f[0] == "Socket" && len(f) == 10: // connect 0, read 0, write 0, timeout 0
			for _, field := range []string{f[3], f[5], f[7], f[9]} {
				n, bad := parseCount(strings.TrimSuffix(field, ","))
				if bad != nil {
					return load{}, fmt.Errorf("wrk: %q: %w", strings.TrimSpace(line), bad)
				}
				l.failures += n
			}
		case strings.HasPrefix(strings.TrimSpace(line), "Non-2xx or 3xx responses:"):
			var n int64
			n, err = parseCount(f[len(f)-1])
			l.failures += n
		}
		if err != nil {
			return load{}, fmt.Errorf("wrk: %q: %w", strings.TrimSpace(line), err)
		}
	}
	for _, what := range []string{"p50", "p99", "requests", "rate"} {
		if !seen[what] {
			return load{}, fmt.Errorf("wrk: its report has no %s:\n%s", what, report)
		}
	}
	return l, nil
}

// parseWrkDuration reads a time as wrk writes it: 417.00us, 1.23ms, 2.00s, 1.50m, 1.00h.
func parseWrkDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s) // Go has the same units
	if d < 0 {
		return 0, fmt.Errorf("%q is less than nothing", s)
	}
	return d, err
}

// parseCount reads a number of requests. They are small enough to be added up.
func parseCount(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 48)
	return int64(n), err
}

// parseWrkNumber reads a number as wrk writes it: 812.33, 61.20k, 1.02M.
func parseWrkNumber(s string) (float64, error) {
	return parseScaled(s, []string{"k", "M", "G", "T", "P"}, 1000)
}

// parseWrkBytes reads a size as wrk writes it: 512.00B, 16.20KB, 1.20GB, in steps of 1024.
func parseWrkBytes(s string) (int64, error) {
	digits, ok := strings.CutSuffix(s, "B")
	if !ok {
		return 0, fmt.Errorf("%q is not a number of bytes", s)
	}
	n, err := parseScaled(digits, []string{"K", "M", "G", "T", "P"}, 1024)
	return int64(n), err
}

// parseScaled reads a number that may end in one of the units, each step times the one before.
func parseScaled(s string, units []string, step float64) (float64, error) {
	scale := 1.0
	digits := s
	for i, unit := range units {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			digits = rest
			for range i + 1 {
				scale *= step
			}
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n >= 0 && n*scale < 1<<62) { // nor NaN
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n * scale, nil
}
