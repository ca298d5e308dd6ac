package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFindRoot(t *testing.T) {
	root := tree(t, goodTree)
	got, err := findRoot(filepath.Join(root, "lib", "e2e"))
	if err != nil || got != root {
		t.Errorf("findRoot = %q, %v, want %q", got, err, root)
	}
}

func TestModule_Released(t *testing.T) {
	for dir, want := range map[string]bool{
		"lib": true, "lib/e2e": false, "lib/bench": false, "compare": false, "tools": false, "libtools": true,
	} {
		if got := (module{dir: dir}).released(); got != want {
			t.Errorf("%s: released = %v, want %v", dir, got, want)
		}
	}
}

func TestSelectModules(t *testing.T) {
	mods, err := workModules(tree(t, goodTree))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args string
		want []string
		tree bool
	}{
		{"", []string{"lib", "lib/e2e", "tools"}, true},
		{"lib", []string{"lib"}, false},
		{"./lib/", []string{"lib"}, false},
		{"lib/...", []string{"lib", "lib/e2e"}, false},
		{"tools lib tools", []string{"lib", "tools"}, false},
		{".", nil, true},
		{"tools .", []string{"tools"}, true},
	}
	for _, tt := range tests {
		sel, err := selectModules(mods, strings.Fields(tt.args))
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if got := dirsOf(sel.modules); !slices.Equal(got, tt.want) || sel.tree != tt.tree {
			t.Errorf("%q: got %v and %v, want %v and %v", tt.args, got, sel.tree, tt.want, tt.tree)
		}
	}
	if _, err := selectModules(mods, []string{"li"}); !errors.Is(err, errUsage) {
		t.Errorf("unknown module: error %v, want errUsage", err)
	}
}

func TestGoFiles(t *testing.T) {
	root := tree(t, `
-- m/go.mod --
-- m/a.go --
-- m/b.txt --
-- m/sub/c.go --
-- m/testdata/d.go --
-- m/_x/e.go --
-- m/nested/go.mod --
-- m/nested/f.go --
`)
	got, err := goFiles(filepath.Join(root, "m"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.go", filepath.Join("sub", "c.go")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
