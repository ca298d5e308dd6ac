package main

import (
	"strings"
	"testing"
	"time"
)

// wrkReport is what wrk 4.1.0 prints, with the column that has "50%" in it.
const wrkReport = `Running 2s test @ http://127.0.0.1:34567/b/4096
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.21ms    3.01ms  54.10ms   99.50%
    Req/Sec    61.20k     4.01k   70.02k    50.00%
  Latency Distribution
     50%  842.00us
     75%    1.10ms
     90%    2.33ms
     99%   11.02ms
  122400 requests in 2.01s, 504.25MB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:  60895.52
Transfer/sec:    250.87MB
`

func TestParseWrk(t *testing.T) {
	got, err := parseWrk(wrkReport)
	if err != nil {
		t.Fatal(err)
	}
	megabytes := 504.25 * (1 << 20)
	want := load{
		requests: 122400, perSecond: 60895.52,
		p50: 842 * time.Microsecond, p99: 11020 * time.Microsecond,
		read: int64(megabytes), failures: 15,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A report that lacks what counts is an error and never a zero.
func TestParseWrk_Incomplete(t *testing.T) {
	for _, without := range []string{"     50%  842.00us\n", "     99%   11.02ms\n", "  122400 requests in 2.01s, 504.25MB read\n", "Requests/sec:  60895.52\n"} {
		report := strings.Replace(wrkReport, without, "", 1)
		if report == wrkReport {
			t.Fatalf("the report has no %q", without)
		}
		if got, err := parseWrk(report); err == nil {
			t.Errorf("without %q: %+v", without, got)
		}
	}
	for _, damage := range []string{"842.00", "504.25MB", "60895.52", "write 3"} {
		if got, err := parseWrk(strings.Replace(wrkReport, damage, "write x", 1)); err == nil {
			t.Errorf("with a damaged %q: %+v", damage, got)
		}
	}
}

func TestParseWrkDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0.00us": 0, "417.00us": 417 * time.Microsecond, "1.23ms": 1230 * time.Microsecond,
		"2.00s": 2 * time.Second, "1.50m": 90 * time.Second, "1.00h": time.Hour,
	} {
		if got, err := parseWrkDuration(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"12.00", "-1.00ms", ""} {
		if got, err := parseWrkDuration(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestParseWrkNumber(t *testing.T) {
	for text, want := range map[string]float64{"0.00": 0, "812.33": 812.33, "61.20k": 61200, "1.02M": 1020000, "3.00G": 3e9} {
		if got, err := parseWrkNumber(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "k", "1.0kk", "-1.00", "x"} {
		if got, err := parseWrkNumber(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestParseWrkBytes(t *testing.T) {
	for text, want := range map[string]int64{"512.00B": 512, "16.50KB": 16896, "2.00MB": 2 << 20, "1.50GB": 3 << 29} {
		if got, err := parseWrkBytes(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	if got, err := parseWrkBytes("12.00K"); err == nil {
		t.Errorf("bytes without a B: %v", got)
	}
}

// Whatever wrk prints, there is an error or figures that can be figures.
func FuzzParseWrk(f *testing.F) {
	f.Add(wrkReport)
	f.Fuzz(func(t *testing.T, report string) {
		l, err := parseWrk(report)
		if err == nil && (l.requests < 0 || l.failures < 0 || l.read < 0 || l.p50 < 0 || l.p99 < 0 || !(l.perSecond >= 0)) {
			t.Errorf("%+v", l)
		}
	})
}
