package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

var workspaceCommand = command{
	name:    "workspace",
	summary: "check go.work, every go.mod, dependabot and the index of decision records",
	run:     runWorkspace,
}

func runWorkspace(_ context.Context, e *env, args []string) error {
	flags := newFlags(e)
	if args, err := parseFlags(flags, args); err != nil {
		return err
	} else if len(args) > 0 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, args[0])
	}
	problems, err := workspaceProblems(e.root)
	if err != nil {
		return err
	}
	for _, p := range problems {
		if _, err := fmt.Fprintln(e.stdout, p); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return errFailed
	}
	_, err = fmt.Fprintln(e.stdout, "ok")
	return err
}

// workspaceProblems returns one line for each rule of docs/adr/0001 that the tree breaks.
// An error means that the tree could not be read.
func workspaceProblems(root string) ([]string, error) {
	work, err := readWork(root)
	if err != nil {
		return nil, err
	}
	dirs, err := treeModules(root)
	if err != nil {
		return nil, err
	}
	problems := useProblems(work, dirs)
	if work.Toolchain != nil {
		problems = append(problems, "go.work: remove the toolchain line")
	}

	var mods []module
	for _, dir := range dirs {
		m, err := readModule(root, dir)
		if err != nil {
			return nil, err
		}
		mods = append(mods, m)
	}
	problems = append(problems, pathProblems(mods)...)
	for _, m := range mods {
		problems = append(problems, directiveProblems(m, mods)...)
	}
	for _, check := range []func(string, []string) ([]string, error){dependabotProblems, recordProblems} {
		more, err := check(root, dirs)
		if err != nil {
			return nil, err
		}
		problems = append(problems, more...)
	}
	return problems, nil
}

// useProblems compares the use list with the folders that hold a go.mod.
func useProblems(work *modfile.WorkFile, dirs []string) []string {
	var problems []string
	used := make(map[string]bool)
	for _, u := range work.Use {
		dir := path.Clean(u.Path)
		switch {
		case used[dir]:
			problems = append(problems, fmt.Sprintf("go.work: %s is listed twice", u.Path))
		case dir == lintDir:
			problems = append(problems, fmt.Sprintf("go.work: remove %s: the linters' dependencies would raise everybody's", u.Path))
		case !slices.Contains(dirs, dir):
			problems = append(problems, fmt.Sprintf("go.work: uses %s, but %s/go.mod is not in the tree", u.Path, dir))
		}
		used[dir] = true
	}
	for _, dir := range dirs {
		if !used[dir] && dir != lintDir {
			problems = append(problems, fmt.Sprintf("go.work: add 'use ./%s': %s/go.mod is in the tree", dir, dir))
		}
	}
	return problems
}

// pathProblems holds each module path against the module's folder: a tag DIR/vX.Y.Z works only for PREFIX/DIR.
func pathProblems(mods []module) []string {
	var problems []string
	var prefix, from string
	for _, m := range mods {
		p, ok := strings.CutSuffix(m.path(), "/"+m.dir)
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s/go.mod: module path %s does not end in /%s", m.dir, m.path(), m.dir))
		case prefix == "":
			prefix, from = p, m.dir
		case p != prefix:
			problems = append(problems, fmt.Sprintf("%s/go.mod: module path starts with %s, that of %s with %s", m.dir, p, from, prefix))
		}
	}
	return problems
}

// directiveProblems checks the directives of one go.mod.
func directiveProblems(m module, all []module) []string {
	var problems []string
	bad := func(format string, args ...any) {
		problems = append(problems, m.dir+"/go.mod: "+fmt.Sprintf(format, args...))
	}
	if m.mod.Go == nil {
		bad("no go directive")
	}
	if m.mod.Toolchain != nil {
		bad("remove the toolchain line")
	}
	dirOf := make(map[string]string)
	for _, o := range all {
		dirOf[o.path()] = o.dir
	}
	if m.released() {
		if len(m.mod.Replace) > 0 {
			bad("a released module holds no replace directive: 'go install %s/...@version' would refuse it", m.path())
		}
		if len(m.mod.Exclude) > 0 {
			bad("a released module holds no exclude directive: nobody but its own builds would see it")
		}
		if len(m.mod.Tool) > 0 {
			bad("a released module holds no tool directive: users would get the tool's dependencies (use %s)", lintDir)
		}
		for _, r := range m.mod.Require {
			if dir, ok := dirOf[r.Mod.Path]; ok {
				bad("requires %s: released modules do not require each other", dir)
			}
		}
		return problems
	}
	for _, r := range m.mod.Replace {
		dir, ok := dirOf[r.Old.Path]
		switch {
		case !ok:
			bad("replaces %s, which is not a module of this repository", r.Old.Path)
		case path.Join(m.dir, r.New.Path) != dir:
			bad("replaces %s by %s, but it is in %s", r.Old.Path, r.New.Path, dir)
		}
	}
	return problems
}

// dependabotProblems checks that .github/dependabot.yml, if there is one, names every folder of dirs,
// since dependabot cannot read go.work.
func dependabotProblems(root string, dirs []string) ([]string, error) {
	const name = ".github/dependabot.yml"
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	listed := make(map[string]bool)
	for _, m := range dependabotDir.FindAllStringSubmatch(string(data), -1) {
		listed[m[1]] = true
	}
	var problems []string
	for _, dir := range dirs {
		if !listed[dir] {
			problems = append(problems, fmt.Sprintf("%s: add '- /%s' to the list of Go modules", name, dir))
		}
		delete(listed, dir)
	}
	for dir := range listed {
		problems = append(problems, fmt.Sprintf("%s: /%s is not a module", name, dir))
	}
	slices.Sort(problems)
	return problems, nil
}

// dependabotDir matches an item "- /dir" of a directories list.
var dependabotDir = regexp.MustCompile(`(?m)^\s*- ["']?/([^\s"']+)["']?\s*$`)

var (
	recordName = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	recordLink = regexp.MustCompile(`\]\((\d{4}[^)\s]*)\)`)
)

// recordProblems checks that docs/adr/README.md lists each decision record once and nothing else.
func recordProblems(root string, _ []string) ([]string, error) {
	const dir = "docs/adr"
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	index, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(dir), "README.md"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listed := make(map[string]int)
	for _, m := range recordLink.FindAllStringSubmatch(string(index), -1) {
		listed[m[1]]++
	}
	var problems []string
	numbers := make(map[string]string)
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || name == "README.md" || path.Ext(name) != ".md" {
			continue
		}
		m := recordName.FindStringSubmatch(name)
		if m == nil {
			problems = append(problems, fmt.Sprintf("%s/%s: a record is named NNNN-words-with-dashes.md", dir, name))
			continue
		}
		if other, ok := numbers[m[1]]; ok {
			problems = append(problems, fmt.Sprintf("%s: %s and %s have the same number", dir, other, name))
		}
		numbers[m[1]] = name
		switch listed[name] {
		case 0:
			problems = append(problems, fmt.Sprintf("%s/README.md: %s is not in the index", dir, name))
		case 1:
		default:
			problems = append(problems, fmt.Sprintf("%s/README.md: %s is in the index more than once", dir, name))
		}
		delete(listed, name)
	}
	for name := range listed {
		problems = append(problems, fmt.Sprintf("%s/README.md: links to %s, which does not exist", dir, name))
	}
	slices.SortFunc(problems, cmp.Compare[string])
	return problems, nil
}
