package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotset-go/hotset/compare/internal/measure"
	"github.com/hotset-go/hotset/compare/pool"
)

// The test binary stands in for the program when the program starts itself to measure memory.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-child" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestRun_WritesEveryFile(t *testing.T) {
	out, readme := filepath.Join(t.TempDir(), "new"), filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(readme, []byte("head\n"+measure.RegionBegin+measure.RegionEnd+"\ntail\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"-quick", "-run", "^Growth", "-out", out, "-readme", readme}
	if code := run(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("code %d: %s", code, &stderr)
	}
	report := stdout.String()
	for _, part := range []string{"valyala", "### Goals", "### Buffers", "make bench-pool"} {
		if !strings.Contains(report, part) {
			t.Errorf("%q is not in the report:\n%s", part, report)
		}
	}
	if strings.Contains(report, "### Slices") {
		t.Error("-run did not leave out the slices")
	}
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	if got := read(readme); !strings.HasPrefix(got, "head\n") || !strings.HasSuffix(got, "\ntail\n") || !strings.Contains(got, report) {
		t.Errorf("the README is\n%s", got)
	}
	if !strings.HasSuffix(read(filepath.Join(out, "report.md")), report) {
		t.Error("report.md differs from what was printed")
	}
	if n := strings.Count(read(filepath.Join(out, "bench.txt")), "BenchmarkGrowth16KiB/pool=valyala\t"); n != pool.Quick.Rounds {
		t.Errorf("%d samples of a case in bench.txt, want %d", n, pool.Quick.Rounds)
	}
	if !json.Valid([]byte(read(filepath.Join(out, "report.json")))) {
		t.Error("report.json is not JSON")
	}
	if !strings.Contains(stderr.String(), "Growth16KiB") {
		t.Errorf("no progress on standard error: %q", &stderr)
	}
}

func TestRun_JSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-quick", "-json", "-run", "^Growth"}, &stdout, &stderr); code != exitOK {
		t.Fatalf("code %d: %s", code, &stderr)
	}
	var summary struct {
		Goals []struct{ Verdict string }
		Cases []struct {
			Case string
			Ns   measure.Spread
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	if len(summary.Goals) != 11 || len(summary.Cases) != len(pool.Quick.BufferPools()) {
		t.Errorf("%d goals, %d cases", len(summary.Goals), len(summary.Cases))
	}
	for _, c := range summary.Cases {
		if c.Ns.Median <= 0 || c.Ns.Min > c.Ns.Median || c.Ns.Median > c.Ns.Max {
			t.Errorf("%s took %v", c.Case, c.Ns)
		}
	}
}

func TestRun_Usage(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"argument"}, {"-run", "("}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != exitUsage || stderr.Len() == 0 {
			t.Errorf("%q: code %d, %q", args, code, &stderr)
		}
	}
	for _, child := range []string{"sync.Pool", "sync.Pool:x:1", "sync.Pool:1:x", "nobody:1:1"} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"-child", child}, &stdout, &stderr); code != exitFailed {
			t.Errorf("-child %s: code %d", child, code)
		}
	}
}

func TestRun_RefusesARegionThatIsNotThere(t *testing.T) {
	readme := filepath.Join(t.TempDir(), "README.md")
	if err := os.WriteFile(readme, []byte("nothing to replace\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-run", "^none$", "-readme", readme}, &stdout, &stderr); code != exitFailed {
		t.Errorf("code %d", code)
	}
	if strings.Contains(stderr.String(), "done") {
		t.Error("it was noticed only after the measurement")
	}
}

func TestPeakProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	load := pool.PeakLoad{Size: 1 << 20, Count: 8}
	sample, err := peakProcess(t.Context(), self, "sync.Pool", load)
	if err != nil {
		t.Fatal(err)
	}
	if sample.Held < 8<<20 || sample.GC3 > 4<<20 || sample.Retained != -1 {
		t.Errorf("%+v: want 8 MiB held, next to nothing after three collections", sample)
	}
	if _, err := peakProcess(t.Context(), self, "nobody", load); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown pool gives %v", err)
	}
}
