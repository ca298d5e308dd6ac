package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// tree writes a txtar archive to a new folder and returns it.
func tree(t *testing.T, archive string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// goodTree breaks no rule. The cases below add files to it; a later file of the same name wins.
const goodTree = `
-- go.work --
go 1.26.0

use (
	./lib
	./lib/e2e
	./tools
)
-- lib/go.mod --
module example.com/r/lib

go 1.25.0
-- lib/testdata/broken/go.mod --
module elsewhere
-- lib/e2e/go.mod --
module example.com/r/lib/e2e

go 1.26.0

require example.com/r/lib v0.0.0

replace example.com/r/lib => ../
-- tools/go.mod --
module example.com/r/tools

go 1.26.0
-- tools/lint/go.mod --
module example.com/r/tools/lint

go 1.26.0

tool example.com/linter
-- .cache/x/go.mod --
module ignored
-- .github/dependabot.yml --
updates:
  - package-ecosystem: gomod
    directories:
      - /lib
      - /lib/e2e
      - "/tools"
      - /tools/lint
  - package-ecosystem: github-actions
    directory: /
-- docs/adr/README.md --
| 0001 | [Why](0001-why.md) |
-- docs/adr/0001-why.md --
# Why
`

func TestWorkspaceProblems(t *testing.T) {
	tests := []struct {
		name  string
		files string
		want  []string // a part of each problem, in order
	}{
		{"Good", "", nil},
		{"MissingUse", `
-- new/go.mod --
module example.com/r/new

go 1.25.0
`, []string{"add 'use ./new'", "dependabot.yml: add '- /new'"}},
		{"UseWithoutModule", `
-- go.work --
go 1.26.0
use (
	./gone
	./lib
	./lib/e2e
	./tools
)
`, []string{"uses ./gone, but gone/go.mod is not in the tree"}},
		{"UseTwiceAndLint", `
-- go.work --
go 1.26.0
use (
	./lib
	./lib
	./lib/e2e
	./tools
	./tools/lint
)
`, []string{"./lib is listed twice", "remove ./tools/lint"}},
		{"Toolchain", `
-- go.work --
go 1.26.0
toolchain go1.26.8
use (
	./lib
	./lib/e2e
	./tools
)
-- tools/lint/go.mod --
module example.com/r/tools/lint

go 1.26.0

toolchain go1.26.8
`, []string{"go.work: remove the toolchain line", "tools/lint/go.mod: remove the toolchain line"}},
		{"ReleasedWithDirectives", `
-- lib/go.mod --
module example.com/r/lib

go 1.25.0

require example.com/other v1.0.0

replace example.com/other => ../other

exclude example.com/other v1.1.0

tool example.com/other/cmd
`, []string{"lib/go.mod: a released module holds no replace", "no exclude", "no tool"}},
		{"ReplaceOfStranger", `
-- lib/e2e/go.mod --
module example.com/r/lib/e2e

go 1.26.0

replace example.com/other => ../other
`, []string{"replaces example.com/other, which is not a module of this repository"}},
		{"ReplaceByWrongFolder", `
-- lib/e2e/go.mod --
module example.com/r/lib/e2e

go 1.26.0

replace example.com/r/lib => ../../lib2
`, []string{"replaces example.com/r/lib by ../../lib2, but it is in lib"}},
		{"Sibling", `
-- go.work --
go 1.26.0
use (
	./lib
	./lib/e2e
	./lib2
	./tools
)
-- lib2/go.mod --
module example.com/r/lib2

go 1.25.0

require example.com/r/lib v0.1.0
-- .github/dependabot.yml --
- /lib
- /lib/e2e
- /lib2
- /tools
- /tools/lint
`, []string{"lib2/go.mod: requires lib: released modules do not require each other"}},
		{"Path", `
-- lib/go.mod --
module example.com/r/library

go 1.25.0
-- tools/go.mod --
module example.com/other/tools
`, []string{
			"lib/go.mod: module path example.com/r/library does not end in /lib",
			"tools/go.mod: module path starts with example.com/other, that of lib/e2e with example.com/r",
			"lib/e2e/go.mod: replaces example.com/r/lib, which is not",
			"tools/go.mod: no go directive",
		}},
		{"Dependabot", `
-- .github/dependabot.yml --
- /lib
- /lib/e2e
- /tools/lint
- /gone
`, []string{"add '- /tools'", "/gone is not a module"}},
		{"Records", `
-- docs/adr/0001-other.md --
-- docs/adr/0002-new.md --
-- docs/adr/3-short.md --
-- docs/adr/README.md --
[Why](0001-why.md) again [Why](0001-why.md) [Gone](0009-gone.md)
`, []string{
			"0001-other.md is not in the index",
			"0002-new.md is not in the index",
			"0001-why.md is in the index more than once",
			"links to 0009-gone.md, which does not exist",
			"3-short.md: a record is named",
			"0001-other.md and 0001-why.md have the same number",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := workspaceProblems(tree(t, goodTree+tt.files))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%s", len(got), len(tt.want), strings.Join(got, "\n"))
			}
			for _, want := range tt.want {
				if !strings.Contains(strings.Join(got, "\n"), want) {
					t.Errorf("no problem says %q:\n%s", want, strings.Join(got, "\n"))
				}
			}
		})
	}
}

func TestWorkspaceProblems_Unreadable(t *testing.T) {
	if _, err := workspaceProblems(tree(t, "-- go.work --\nnonsense\n")); err == nil {
		t.Error("no error on a go.work that does not parse")
	}
	if _, err := workspaceProblems(t.TempDir()); err == nil {
		t.Error("no error without a go.work")
	}
}
