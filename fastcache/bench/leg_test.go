package main

import "testing"

func TestCheck(t *testing.T) {
	hit, miss := cell{hits, 4096, 64}, cell{misses, 4096, 64}
	good := load{requests: 1000, read: 1000 * 4300}
	for _, test := range []struct {
		name  string
		cell  cell
		load  load
		asked int64
		ok    bool
	}{
		{"hits", hit, good, 0, true},
		{"hits that asked the origin", hit, good, 1, false},
		{"misses", miss, good, 1010, true},
		{"misses that were hits", miss, good, 999, false},
		{"nothing answered", hit, load{}, 0, false},
		{"failures", hit, load{requests: 1000, read: 1000 * 4300, failures: 1}, 0, false},
		{"short bodies", hit, load{requests: 1000, read: 1000 * 3900}, 0, false},
		{"HTTP/2, whose generator tells no bytes", cell{h2, 4096, 8}, load{requests: 1000}, 0, true},
	} {
		if err := check(test.cell, test.load, test.asked); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestSizeName(t *testing.T) {
	for size, want := range map[int]string{512: "512 B", 1 << 10: "1 KiB", 1500: "1500 B", 64 << 10: "64 KiB", 3 << 20: "3 MiB"} {
		if got := sizeName(size); got != want {
			t.Errorf("%d: got %q, want %q", size, got, want)
		}
	}
}
