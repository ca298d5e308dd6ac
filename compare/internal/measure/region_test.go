package measure_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

func TestReplaceRegion(t *testing.T) {
	const head, tail = "# Title\n\n" + measure.RegionBegin, measure.RegionEnd + "\n\nlast line\n"
	path := filepath.Join(t.TempDir(), "README.md")
	write(t, path, head+"\nold\ntext\n"+tail)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := measure.CheckRegion(path); err != nil {
		t.Error(err)
	}
	for range 2 { // the second time changes nothing
		if err := measure.ReplaceRegion(path, "new\n"); err != nil {
			t.Fatal(err)
		}
		if got, want := read(t, path), head+"\n\nnew\n\n"+tail; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want it as it was", info.Mode(), err)
	}
}

func TestReplaceRegion_RefusesAndKeepsTheFile(t *testing.T) {
	for name, text := range map[string]string{
		"no marks":    "# Title\n",
		"no end":      measure.RegionBegin + "\n",
		"no begin":    measure.RegionEnd + "\n",
		"two regions": measure.RegionBegin + measure.RegionEnd + measure.RegionBegin + measure.RegionEnd,
		"wrong order": measure.RegionEnd + "\n" + measure.RegionBegin,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "README.md")
			write(t, path, text)
			if err := measure.ReplaceRegion(path, "new"); err == nil {
				t.Error("no error")
			}
			if err := measure.CheckRegion(path); err == nil {
				t.Error("the check finds nothing")
			}
			if got := read(t, path); got != text {
				t.Errorf("the file was changed to %q", got)
			}
		})
	}
	if err := measure.ReplaceRegion(filepath.Join(t.TempDir(), "none"), "new"); err == nil {
		t.Error("no error for a file that is not there")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
