package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// plan is the list of steps that a command puts together.
type plan struct {
	root    string
	goflags string // the user's, without -mod
	sel     selection
	steps   []step
}

// newPlan reads go.work and selects modules by the arguments of the command.
func newPlan(ctx context.Context, root string, args []string) (*plan, error) {
	mods, err := workModules(root)
	if err != nil {
		return nil, err
	}
	sel, err := selectModules(mods, args)
	if err != nil {
		return nil, err
	}
	goflags, err := baseGoFlags(ctx, root)
	if err != nil {
		return nil, err
	}
	return &plan{root: root, goflags: goflags, sel: sel}, nil
}

// moduleEnv are the variables with which a module is built alone, as its users will build it:
// the workspace would hide a missing requirement and raise versions.
func (p *plan) moduleEnv() []string {
	return []string{"GOWORK=off", "GOFLAGS=" + joinFlags(p.goflags, "-mod=readonly")}
}

// workEnv are the variables for the workspace as a whole.
func (p *plan) workEnv() []string {
	return []string{"GOWORK=" + filepath.Join(p.root, "go.work"), "GOFLAGS=" + joinFlags(p.goflags, "-mod=readonly")}
}

func joinFlags(a, b string) string { return strings.TrimSpace(a + " " + b) }

func (p *plan) moduleDir(m module) string { return filepath.Join(p.root, filepath.FromSlash(m.dir)) }

func (p *plan) add(module, name string, run func(context.Context) result) {
	p.steps = append(p.steps, step{module: module, name: name, run: run})
}

// addProgram adds a step that passes when the program ends with code 0.
func (p *plan) addProgram(module, name string, prog program) {
	p.add(module, name, func(ctx context.Context) result {
		out, err := prog.runCombined(ctx)
		return result{err: err, output: out, command: prog.String()}
	})
}

// addGo adds a step that runs the go command in module m alone.
func (p *plan) addGo(m module, name string, args ...string) {
	p.addProgram(m.dir, name, program{dir: p.moduleDir(m), set: p.moduleEnv(), args: append([]string{"go"}, args...)})
}

// addTests adds a step that runs the tests of m and counts them.
func (p *plan) addTests(m module, name string, flags ...string) {
	prog := program{dir: p.moduleDir(m), set: p.moduleEnv(), args: append([]string{"go", "test"}, append(flags, "./...")...)}
	p.add(m.dir, name, func(ctx context.Context) result {
		asJSON := prog
		asJSON.args = append([]string{"go", "test", "-json"}, prog.args[2:]...)
		stdout, stderr, err := asJSON.run(ctx)
		tests := parseTestEvents(stdout)
		return result{
			err: err, command: prog.String(), output: append(tests.text, stderr...),
			detail: testDetail(tests), tests: &tests,
		}
	})
}

// testDetail says how many tests ran.
func testDetail(t testReport) string {
	s := fmt.Sprintf("%d passed", t.passed)
	if t.failed > 0 {
		s += fmt.Sprintf(", %d failed", t.failed)
	}
	if n := len(t.skips); n > 0 {
		s += fmt.Sprintf(", %d skipped", n)
	}
	return s
}

// addVetWork adds the step that vets all modules in the workspace. There the go command completes go.work.sum
// even under -mod=readonly: the step says so, since that change belongs in a commit.
func (p *plan) addVetWork() {
	prog := program{dir: p.root, set: p.workEnv(), args: []string{"go", "vet", "work"}}
	p.add(wholeTree, "vet work", func(ctx context.Context) result {
		sums := filepath.Join(p.root, "go.work.sum")
		before, _ := os.ReadFile(sums) // there is none before the first use
		out, err := prog.runCombined(ctx)
		r := result{err: err, output: out, command: prog.String()}
		if after, _ := os.ReadFile(sums); !bytes.Equal(before, after) {
			r.detail = "go.work.sum has changed: commit it"
		}
		return r
	})
}

// addWorkspace adds the steps that look at the whole tree.
func (p *plan) addWorkspace() {
	p.add(wholeTree, "workspace", func(context.Context) result {
		problems, err := workspaceProblems(p.root)
		if err == nil && len(problems) > 0 {
			err = errors.New("the tree breaks rules of the repository")
		}
		return result{err: err, output: []byte(strings.Join(problems, "\n")), command: "go run ./tools workspace"}
	})
}

// raceProblem returns why the race detector cannot be used here, or "" if it can.
func (p *plan) raceProblem(ctx context.Context) string {
	prog := program{dir: p.root, set: []string{"GOWORK=off", "GOFLAGS=" + p.goflags}}
	// Fails at once on platforms without a race detector, and where CGO_ENABLED is 0
	// (which is its default where the go command finds no C compiler).
	prog.args = []string{"go", "list", "-race", "runtime/race"}
	if out, err := prog.runCombined(ctx); err != nil {
		return firstLine(out, err)
	}
	prog.args = []string{"go", "env", "CGO_ENABLED"}
	if out, err := prog.runCombined(ctx); err != nil || strings.TrimSpace(string(out)) != "1" {
		return "" // the detector works without cgo, on macOS for example
	}
	// A compiler without the C library's headers shows only here. The tests need this package anyway.
	prog.args = []string{"go", "build", "-race", "runtime/cgo"}
	if out, err := prog.runCombined(ctx); err != nil {
		return "no working C compiler: " + firstLine(out, err)
	}
	return ""
}

// firstLine returns the first line of a program's output that says something, or its error.
func firstLine(out []byte, err error) string {
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return err.Error()
}
