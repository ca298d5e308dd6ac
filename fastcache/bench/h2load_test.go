package main

import (
	"strings"
	"testing"
)

const h2loadReport = `starting benchmark...
spawning thread #0: 8 total client(s). Timing-based test with 0s of warm-up time and 2s of main duration for measurements.
Warm-up started for thread #0.
progress: 10% of clients started
finished in 2.00s, 22265.50 req/s, 88.31MB/s
requests: 44531 total, 44659 started, 44531 done, 44500 succeeded, 31 failed, 31 errored, 0 timeout
status codes: 44555 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 176.62MB (185201212) total, 1.11MB (1162213) headers (space savings 87.21%), 173.97MB (182421504) data
                     min         max         mean         sd        +/- sd
time for request:      201us     53.11ms      5.11ms      4.02ms    78.11%
`

func TestParseH2load(t *testing.T) {
	got, err := parseH2load(h2loadReport)
	if err != nil {
		t.Fatal(err)
	}
	if want := (load{requests: 44500, perSecond: 22265.50, failures: 31}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, damage := range []string{"finished in", "22265.50", "requests: ", "44500"} {
		if got, err := parseH2load(strings.Replace(h2loadReport, damage, "x", 1)); err == nil {
			t.Errorf("with a damaged %q: %+v", damage, got)
		}
	}
}
