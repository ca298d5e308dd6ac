package main

import (
	"context"
	"fmt"
)

var fmtCommand = command{
	name: "fmt", args: "[MODULE...]",
	summary: "format the Go files with gofumpt",
	run:     runFmt,
}

func runFmt(ctx context.Context, e *env, args []string) error {
	args, err := parseFlags(newFlags(e), args)
	if err != nil {
		return err
	}
	p, err := newPlan(ctx, e.root, args)
	if err != nil {
		return err
	}
	if out, err := p.buildLinters().runCombined(ctx); err != nil {
		return fmt.Errorf("build gofumpt: %w\n%s", err, out)
	}
	for _, m := range p.sel.modules {
		changed, err := p.gofumpt(ctx, m, "-l")
		if err != nil {
			return fmt.Errorf("gofumpt in %s: %w\n%s", m.dir, err, changed)
		}
		if len(changed) == 0 {
			continue
		}
		if out, err := p.gofumpt(ctx, m, "-w"); err != nil {
			return fmt.Errorf("gofumpt in %s: %w\n%s", m.dir, err, out)
		}
		if _, err := fmt.Fprintf(e.stdout, "formatted in %s:\n%s", m.dir, changed); err != nil {
			return err
		}
	}
	return nil
}
