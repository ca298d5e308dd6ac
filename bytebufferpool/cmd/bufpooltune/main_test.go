package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotset-go/hotset/bytebufferpool"
)

// The optimum, found by trying all choices.
func bruteForce(sizes []size, count int) float64 {
	best := -1.0
	n := len(sizes)
	for set := 1; set < 1<<n; set++ {
		if set>>(n-1) == 0 {
			continue // the largest size needs its class
		}
		var classes []int
		for i := range sizes {
			if set>>i&1 == 1 {
				classes = append(classes, sizes[i].max)
			}
		}
		if len(classes) > count {
			continue
		}
		if w := waste(sizes, classes); best < 0 || w < best {
			best = w
		}
	}
	return best
}

func TestTune_IsOptimal(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for i := 0; i < 200; i++ {
		var sizes []size
		at := 0
		for n := 1 + r.Intn(9); len(sizes) < n; {
			at += 1 + r.Intn(1000)
			sizes = append(sizes, size{at, uint64(1 + r.Intn(100))})
		}
		for count := 1; count <= 10; count++ {
			classes := tune(sizes, count)
			if len(classes) > count || classes[len(classes)-1] != at {
				t.Fatalf("%d classes for %v: %v", count, sizes, classes)
			}
			if got, want := waste(sizes, classes), bruteForce(sizes, count); got != want {
				t.Fatalf("%d classes for %v: %v wastes %v, the optimum is %v", count, sizes, classes, got, want)
			}
		}
	}
}

// From a pool's histogram to a pool with the classes.
func TestRun_FromPoolToConfig(t *testing.T) {
	config := bytebufferpool.DefaultConfig(bytebufferpool.Fast)
	config.SizeHistogram = true
	pool, err := bytebufferpool.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 100; i++ {
		for _, n := range []int{1500, 1500, 9000, 1<<20 + 1} {
			lease := pool.Acquire(n)
			lease.Release()
		}
	}
	histogram, err := json.Marshal(pool.SizeHistogram())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "histogram.json")
	if err := os.WriteFile(file, histogram, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, fromStdin bytes.Buffer
	if err := run([]string{"-classes", "4", file}, nil, &out, os.Stderr); err != nil {
		t.Fatal(err)
	}
	want := `// 300 requests; 100 above 1048576 bytes are not counted.
// Unused bytes in all: 0.0 % of the capacity with these classes, 40.0 % of the capacity with powers of two from 64.
config.Classes = []int{1536, 9216}
config.MaxPooledCapacity = 9216
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
	if err := run([]string{"-classes", "4"}, bytes.NewReader(histogram), &fromStdin, os.Stderr); err != nil || fromStdin.String() != want {
		t.Error("standard input gives another answer", err)
	}
	config.Classes, config.MaxPooledCapacity = []int{1536, 9216}, 9216
	if _, err := bytebufferpool.New(config); err != nil {
		t.Error(err)
	}
}

func TestRun_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		input string
		want  string
	}{
		"count":     {[]string{"-classes", "0"}, "[]", "-classes 0"},
		"two files": {[]string{"a", "b"}, "", "one histogram"},
		"no file":   {[]string{"does-not-exist"}, "", "does-not-exist"},
		"no JSON":   {nil, "nonsense", "reading the histogram"},
		"empty":     {nil, "[]", "no requests"},
		"bad row":   {nil, `[{"min":5,"max":2,"count":1}]`, "row 0"},
		"flag":      {[]string{"-nonsense"}, "", "nonsense"},
	} {
		var out, messages bytes.Buffer
		err := run(c.args, strings.NewReader(c.input), &out, &messages)
		if err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
