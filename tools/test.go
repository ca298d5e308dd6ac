package main

import (
	"context"
	"os"
)

var testCommand = command{
	name: "test", args: "[flags] [MODULE...]",
	summary: "everything that must pass: vet, tests with -race, tidy, format, lint",
	run:     runTest,
}

// runTest checks each module alone, then the workspace. -count=1: Go's cache of test results does not notice a newly
// installed browser or server, and this command is the proof, not the everyday check.
func runTest(ctx context.Context, e *env, args []string) error {
	flags := newFlags(e)
	runPattern := flags.String("run", "", "run only the tests that match `regexp`, and no other step")
	race := flags.Bool("race", true, "use the race detector where there is one")
	lint := flags.Bool("lint", true, "run gofumpt and golangci-lint too (the first time, they are compiled: a minute or two)")
	args, err := parseFlags(flags, args)
	if err != nil {
		return err
	}
	p, err := newPlan(ctx, e.root, args)
	if err != nil {
		return err
	}

	// The end-to-end tests of fastcache take eight minutes on two quiet cores.
	testStep, testFlags := "test", []string{"-count=1", "-vet=off", "-timeout=25m"}
	var notes []string
	if *race && len(p.sel.modules) > 0 {
		if why := p.raceProblem(ctx); why == "" {
			testStep, testFlags = "test -race", append(testFlags, "-race")
		} else if ctx.Err() == nil {
			testStep = "test (no -race)"
			notes = append(notes, "tests ran WITHOUT the race detector, which needs a C compiler: "+why)
		}
	}
	if *runPattern != "" {
		for _, m := range p.sel.modules {
			p.addTests(m, testStep, append(testFlags, "-run="+*runPattern)...)
		}
		return runSteps(ctx, e, p.steps, notes)
	}

	if *lint && len(p.sel.modules) > 0 {
		p.addLinters()
	}
	for _, m := range p.sel.modules {
		p.addGo(m, "vet", "vet", "./...")
		p.addTests(m, testStep, testFlags...)
		p.addGo(m, "tidy", "mod", "tidy", "-diff")
		if *lint {
			p.addGofumpt(m)
			p.addGolangciLint(m)
		}
	}
	if p.sel.tree {
		p.addVetWork()
		p.addWorkspace()
	}
	return runSteps(ctx, e, p.steps, notes)
}

var checkCommand = command{
	name: "check", args: "[MODULE...]",
	summary: "the quick subset for everyday use: vet, build, format, short tests without -race",
	run:     runCheck,
}

// runCheck is quick because it lets Go's cache answer for tests whose inputs have not changed.
func runCheck(ctx context.Context, e *env, args []string) error {
	args, err := parseFlags(newFlags(e), args)
	if err != nil {
		return err
	}
	p, err := newPlan(ctx, e.root, args)
	if err != nil {
		return err
	}
	if len(p.sel.modules) > 0 {
		p.addLinters()
	}
	for _, m := range p.sel.modules {
		p.addGo(m, "vet", "vet", "./...")
		p.addGo(m, "build", "build", "-buildvcs=false", "-o", os.DevNull, "./...")
		p.addGofumpt(m)
		p.addTests(m, "test -short", "-short", "-vet=off")
	}
	if p.sel.tree {
		p.addWorkspace()
	}
	return runSteps(ctx, e, p.steps, nil)
}
