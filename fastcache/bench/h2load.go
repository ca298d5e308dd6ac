package main

import (
	"fmt"
	"strings"
)

// parseH2load reads the report of "h2load -D". It tells no percentiles.
func parseH2load(report string) (load, error) {
	var l load
	rate, requests := false, false
	for line := range strings.Lines(report) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "finished in ") && len(f) >= 5 && strings.HasPrefix(f[4], "req/s"):
			n, err := parseScaled(f[3], nil, 1)
			if err != nil {
				return load{}, fmt.Errorf("h2load: %q: %w", strings.TrimSpace(line), err)
			}
			l.perSecond, rate = n, true
		case strings.HasPrefix(line, "requests: "):
			// requests: 50 total, 50 started, 50 done, 50 succeeded, 0 failed, 0 errored, 0 timeout
			for i := 1; i+1 < len(f); i += 2 {
				n, err := parseCount(f[i])
				if err != nil {
					return load{}, fmt.Errorf("h2load: %q: %w", strings.TrimSpace(line), err)
				}
				switch strings.TrimSuffix(f[i+1], ",") {
				case "succeeded":
					l.requests, requests = n, true
				case "failed": // "errored" and "timeout" are among them
					l.failures += n
				}
			}
		}
	}
	if !rate || !requests {
		return load{}, fmt.Errorf("h2load: its report has no rate or no requests:\n%s", report)
	}
	return l, nil
}
