package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// allocsTimeout bounds the Go benchmark with its build.
const allocsTimeout = 15 * time.Minute

// allocation is what one hit costs in the handler alone: no Caddy in front, no
// connection behind.
type allocation struct {
	Name    string  `json:"name"`
	Nanos   float64 `json:"ns"`
	Bytes   int64   `json:"bytes"`
	Objects int64   `json:"allocs"`
}

// measureAllocs runs the module's benchmark of a hit.
func measureAllocs(ctx context.Context, module string) ([]allocation, error) {
	out, _, err := runCommand(ctx, allocsTimeout, []string{"GOWORK=off"}, "go", "test", "-C", module, "-run", "^$", "-bench", "^BenchmarkFastCache_ServeHTTP$", "-benchmem", "-benchtime", "20000x", ".")
	if err != nil {
		return nil, err
	}
	return parseBenchmark(out)
}

// parseBenchmark reads the lines of "go test -bench -benchmem".
func parseBenchmark(out string) ([]allocation, error) {
	var all []allocation
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		a := allocation{Name: f[0]}
		for i := 2; i+1 < len(f); i += 2 {
			n, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("go test: %q: %w", strings.TrimSpace(line), err)
			}
			switch f[i+1] {
			case "ns/op":
				a.Nanos = n
			case "B/op":
				a.Bytes = int64(n)
			case "allocs/op":
				a.Objects = int64(n)
			}
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("go test: no benchmark ran:\n%s", out)
	}
	return all, nil
}
