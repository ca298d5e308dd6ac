package main

import "testing"

func TestParseBenchmark(t *testing.T) {
	out := "goos: linux\nBenchmarkFastCache_ServeHTTP/tier=ram/size=4096-2   \t   20000\t      1234.5 ns/op\t3300.12 MB/s\t     640 B/op\t       8 allocs/op\nPASS\n"
	got, err := parseBenchmark(out)
	if want := (allocation{"BenchmarkFastCache_ServeHTTP/tier=ram/size=4096-2", 1234.5, 640, 8}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "PASS\n", "BenchmarkX-2 1 x ns/op 1 B/op 1 allocs/op\n"} {
		if got, err := parseBenchmark(bad); err == nil {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
}
