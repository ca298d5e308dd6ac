package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

var lintCommand = command{
	name: "lint", args: "[MODULE...]",
	summary: "gofumpt and golangci-lint only",
	run:     runLint,
}

func runLint(ctx context.Context, e *env, args []string) error {
	args, err := parseFlags(newFlags(e), args)
	if err != nil {
		return err
	}
	p, err := newPlan(ctx, e.root, args)
	if err != nil {
		return err
	}
	p.addLinters()
	for _, m := range p.sel.modules {
		p.addGofumpt(m)
		p.addGolangciLint(m)
	}
	return runSteps(ctx, e, p.steps, nil)
}

// linterDir is where the pinned linters are built to. The go command knows by itself when that is out of date
// (half a second); calling the programs directly afterwards saves the start-up cost of 'go tool' each time.
func linterDir(root string) string { return filepath.Join(root, ".cache", "lint") }

// linter returns the path of a pinned linter's program.
func linter(root, name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(linterDir(root), name)
}

// buildLinters is the program that builds every tool of tools/lint/go.mod.
// The first time, from an empty build cache, it takes a minute or two.
func (p *plan) buildLinters() program {
	return program{
		dir: filepath.Join(p.root, filepath.FromSlash(lintDir)),
		// GOOS and GOARCH may be set to test another platform: the linters run on this one.
		set:  append(p.moduleEnv(), "GOOS=", "GOARCH="),
		args: []string{"go", "build", "-buildvcs=false", "-o", linterDir(p.root) + string(filepath.Separator), "tool"},
	}
}

// addLinters adds the step that builds the linters.
func (p *plan) addLinters() {
	p.addProgram(lintDir, "build", p.buildLinters())
}

// maxFiles is how many file names go into one call of gofumpt: Windows allows 32,767 characters a command line.
const maxFiles = 200

// addGofumpt adds the step that fails when gofumpt would change a file of m.
func (p *plan) addGofumpt(m module) {
	p.add(m.dir, "gofumpt", func(ctx context.Context) result {
		out, err := p.gofumpt(ctx, m, "-l")
		if err == nil && len(out) > 0 {
			err = errors.New("not formatted ('make fmt' does it)")
		}
		return result{err: err, output: out}
	})
}

// gofumpt runs gofumpt with flag on the files of m.
func (p *plan) gofumpt(ctx context.Context, m module, flag string) ([]byte, error) {
	dir := p.moduleDir(m)
	files, err := goFiles(dir)
	if err != nil {
		return nil, err
	}
	var all []byte
	for chunk := range slices.Chunk(files, maxFiles) {
		args := append([]string{linter(p.root, "gofumpt"), flag}, chunk...)
		out, err := program{dir: dir, set: p.moduleEnv(), args: args}.runCombined(ctx)
		all = append(all, out...)
		if err != nil {
			return all, missingLinter(err)
		}
	}
	return all, nil
}

// addGolangciLint adds the step that runs golangci-lint on m with the root's .golangci.yml.
func (p *plan) addGolangciLint(m module) {
	prog := program{
		dir: p.moduleDir(m), set: p.moduleEnv(),
		args: []string{
			linter(p.root, "golangci-lint"), "run", "--allow-parallel-runners",
			"--config", filepath.Join(p.root, ".golangci.yml"), "./...",
		},
	}
	p.add(m.dir, "golangci-lint", func(ctx context.Context) result {
		out, err := prog.runCombined(ctx)
		return result{err: missingLinter(err), output: out, command: prog.String()}
	})
}

// missingLinter says what it means when a linter is not there.
func missingLinter(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("not built, see the step %s build: %w", lintDir, err)
	}
	return err
}
