package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// lintDir pins the linters. It is a module of its own and stays out of go.work, since
// a workspace raises everybody's dependencies to the newest version that any member names.
const lintDir = "tools/lint"

// unreleasedNames are the folder names of modules that never get a tag:
// only these may hold replace directives.
var unreleasedNames = []string{"bench", "compare", "conformance", "e2e", "linear", "tools"}

// module is one Go module of the repository.
type module struct {
	dir string // slash-separated, relative to the root: "fastcache/e2e"
	mod *modfile.File
}

// path is the module path.
func (m module) path() string {
	if m.mod.Module == nil {
		return ""
	}
	return m.mod.Module.Mod.Path
}

// goVersion is the floor, the argument of the go directive.
func (m module) goVersion() string {
	if m.mod.Go == nil {
		return ""
	}
	return m.mod.Go.Version
}

// released tells whether users can require this module at a tag.
func (m module) released() bool {
	for elem := range strings.SplitSeq(m.dir, "/") {
		if slices.Contains(unreleasedNames, elem) {
			return false
		}
	}
	return true
}

// findRoot returns the nearest folder, from dir upwards, that holds a go.work.
func findRoot(dir string) (string, error) {
	for d := dir; ; {
		if _, err := os.Stat(filepath.Join(d, "go.work")); err == nil {
			return d, nil
		}
		up := filepath.Dir(d)
		if up == d {
			return "", fmt.Errorf("no go.work in %s or above it", dir)
		}
		d = up
	}
}

// readWork parses the root's go.work.
func readWork(root string) (*modfile.WorkFile, error) {
	name := filepath.Join(root, "go.work")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(name, data, nil)
}

// readModule parses the go.mod in dir, a slash-separated path relative to root.
func readModule(root, dir string) (module, error) {
	name := path.Join(dir, "go.mod")
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return module{}, err
	}
	f, err := modfile.Parse(name, data, nil)
	if err != nil {
		return module{}, err
	}
	return module{dir: dir, mod: f}, nil
}

// workModules returns the modules that go.work uses, in its order.
func workModules(root string) ([]module, error) {
	work, err := readWork(root)
	if err != nil {
		return nil, err
	}
	var mods []module
	for _, u := range work.Use {
		m, err := readModule(root, path.Clean(u.Path))
		if err != nil {
			return nil, fmt.Errorf("go.work uses %s: %w", u.Path, err)
		}
		mods = append(mods, m)
	}
	return mods, nil
}

// treeModules returns the folders below root that hold a go.mod, sorted, in slash form.
// Folders that the go command ignores (testdata, vendor, names with a leading dot or underscore) do not count.
func treeModules(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && ignoredDir(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Name() == "go.mod" {
			rel, err := filepath.Rel(root, filepath.Dir(p))
			if err != nil {
				return err
			}
			dirs = append(dirs, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.Sort(dirs)
	return dirs, err
}

func ignoredDir(name string) bool {
	return name == "testdata" || name == "vendor" || name == "node_modules" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// goFiles returns the .go files of the module in dir, relative to it,
// without those of modules nested in it.
func goFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == dir {
				return nil
			}
			if ignoredDir(d.Name()) {
				return filepath.SkipDir
			}
			_, err := os.Stat(filepath.Join(p, "go.mod"))
			if err == nil {
				return filepath.SkipDir
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if d.Type().IsRegular() && strings.HasSuffix(d.Name(), ".go") {
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			files = append(files, rel)
		}
		return nil
	})
	return files, err
}

// wholeTree is the argument that selects the steps that belong to no single module.
const wholeTree = "."

// selection is what the arguments of a command chose.
type selection struct {
	modules []module
	tree    bool // the steps of the whole tree too
}

// selectModules picks modules by the arguments: all of them and the whole tree without any.
func selectModules(mods []module, args []string) (selection, error) {
	if len(args) == 0 {
		return selection{modules: mods, tree: true}, nil
	}
	var sel selection
	chosen := make(map[string]bool)
	for _, arg := range args {
		if arg == wholeTree {
			sel.tree = true
			continue
		}
		name, deep := strings.CutSuffix(path.Clean(filepath.ToSlash(arg)), "/...")
		found := false
		for _, m := range mods {
			if m.dir == name || deep && strings.HasPrefix(m.dir, name+"/") {
				chosen[m.dir], found = true, true
			}
		}
		if !found {
			return selection{}, fmt.Errorf("%w: go.work has no module %q (it has %s)", errUsage, arg, strings.Join(dirsOf(mods), ", "))
		}
	}
	for _, m := range mods {
		if chosen[m.dir] {
			sel.modules = append(sel.modules, m)
		}
	}
	return sel, nil
}

func dirsOf(mods []module) []string {
	dirs := make([]string, len(mods))
	for i, m := range mods {
		dirs[i] = m.dir
	}
	return dirs
}
