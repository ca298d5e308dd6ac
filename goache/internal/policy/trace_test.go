package policy_test

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPolicy_Traces replays recorded requests and holds the hit ratios against
// floors: what the policy reached when it was chosen, less a point for chance.
func TestPolicy_Traces(t *testing.T) {
	dir := os.Getenv("HOTSET_DATA")
	if dir == "" {
		t.Skip("set HOTSET_DATA to the folder with traces/")
	}
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	for _, tt := range []struct {
		file  string
		read  func(io.Reader) ([]uint64, error)
		floor map[int]float64 // by capacity, in percent
	}{
		{"arc_oltp.gz", readARC, map[int]float64{500: 30, 1000: 38, 2000: 44, 5000: 53}},
		{"corda_trace_vaultservice.gz", readUint64s, map[int]float64{512: 32, 2048: 32}},
		{"lirs_multi3.trace.gz", readLines, map[int]float64{400: 38, 1500: 53}},
		{"lirs_loop.gz", readLines, map[int]float64{256: 20, 768: 66}},
		{"lirs_gli.gz", readLines, map[int]float64{500: 27, 1500: 51}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			keys := readTrace(t, filepath.Join(dir, "traces", tt.file), tt.read)
			for capacity, floor := range tt.floor {
				got := hitRatio(newCache(capacity, window), keys)
				t.Logf("capacity %d: %.1f %%", capacity, got)
				if got < floor {
					t.Errorf("capacity %d: %.1f %%, want at least %.1f", capacity, got, floor)
				}
			}
		})
	}
}

func hitRatio(c *cache, keys []uint64) float64 {
	hits := 0
	for _, k := range keys {
		k ^= k >> 31
		if c.access(uint32(k * 0x9e37_79b9_7f4a_7c15 >> 32)) {
			hits++
		}
	}
	return 100 * float64(hits) / float64(len(keys))
}

func readTrace(t *testing.T, name string, read func(io.Reader) ([]uint64, error)) []uint64 {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := read(z)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// readARC reads lines "start count …": requests for count blocks from start.
func readARC(r io.Reader) (keys []uint64, err error) {
	for s := bufio.NewScanner(r); s.Scan(); {
		var start, n uint64
		if _, err := fmt.Sscan(s.Text(), &start, &n); err != nil {
			return nil, err
		}
		for i := range n {
			keys = append(keys, start+i)
		}
	}
	return keys, nil
}

// readLines reads a number a line; other lines are marks between programs.
func readLines(r io.Reader) (keys []uint64, err error) {
	for s := bufio.NewScanner(r); s.Scan(); {
		var k uint64
		if _, err := fmt.Sscan(strings.TrimSpace(s.Text()), &k); err == nil {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

func readUint64s(r io.Reader) (keys []uint64, err error) {
	b, err := io.ReadAll(r)
	for ; len(b) >= 8; b = b[8:] {
		keys = append(keys, binary.BigEndian.Uint64(b))
	}
	return keys, err
}
