package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// step is one check: one line of the output.
type step struct {
	module string // folder, or wholeTree
	name   string
	run    func(ctx context.Context) result
}

// result is the outcome of a step.
type result struct {
	err     error       // nil: passed
	command string      // how to repeat it from the module's folder, printed when it failed
	output  []byte      // printed when it failed
	detail  string      // a few words behind the time
	tests   *testReport // nil: the step runs no tests
}

// runSteps runs all the steps in order, a failure of one notwithstanding, prints a line for each,
// the whole output of those that failed, what was skipped and why, the notes, and two closing lines.
// The last one, "N passed, N failed, N skipped", counts Go tests, and each failed step
// that is not a test run as one failure; it is left out when no step runs tests and nothing fails.
func runSteps(ctx context.Context, e *env, steps []step, notes []string) error {
	p := printer{w: e.stdout, live: isTerminal(e.stdout)}
	for _, s := range steps {
		p.moduleWidth = max(p.moduleWidth, len(s.module))
		p.nameWidth = max(p.nameWidth, len(s.name))
	}
	start := time.Now()
	var passed, failed, failedSteps, ran int
	var counted bool
	var skips []string
	for _, s := range steps {
		if ctx.Err() != nil {
			break
		}
		p.begin(s)
		stepStart := time.Now()
		r := s.run(ctx)
		ran++
		if ctx.Err() != nil {
			p.end(s, "STOP", time.Since(stepStart), "interrupted")
			break
		}
		failures := 0
		if r.tests != nil {
			counted = true
			passed += r.tests.passed
			failures = r.tests.failed
			for _, t := range r.tests.skips {
				skips = append(skips, fmt.Sprintf("skip  %s  %s: %s", t.pkg, t.test, t.reason))
			}
		}
		if r.err == nil {
			p.end(s, "ok", time.Since(stepStart), r.detail)
			continue
		}
		failedSteps++
		failed += max(1, failures)
		p.end(s, "FAIL", time.Since(stepStart), r.detail)
		p.failure(s, r)
	}
	for _, s := range skips {
		p.println(s)
	}
	for _, n := range notes {
		p.println("note  " + n)
	}
	if ctx.Err() != nil {
		p.println(fmt.Sprintf("stopped after %d of %d steps, %.1fs", ran, len(steps), time.Since(start).Seconds()))
		return ctx.Err()
	}
	p.println(fmt.Sprintf("total  %d steps, %d failed, %.1fs", len(steps), failedSteps, time.Since(start).Seconds()))
	if counted || failed > 0 {
		p.println(fmt.Sprintf("%d passed, %d failed, %d skipped", passed, failed, len(skips)))
	}
	if failedSteps > 0 {
		return errFailed
	}
	return nil
}

// printer writes aligned lines.
type printer struct {
	w                      io.Writer
	live                   bool // a terminal: show the step that is running
	moduleWidth, nameWidth int
}

func (p printer) println(s string) { _, _ = fmt.Fprintln(p.w, s) }

func (p printer) begin(s step) {
	if p.live {
		_, _ = fmt.Fprintf(p.w, "%-4s  %-*s  %-*s", "...", p.moduleWidth, s.module, p.nameWidth, s.name)
	}
}

func (p printer) end(s step, status string, d time.Duration, detail string) {
	if p.live {
		_, _ = fmt.Fprint(p.w, "\r")
	}
	line := fmt.Sprintf("%-4s  %-*s  %-*s  %6.1fs  %s", status, p.moduleWidth, s.module, p.nameWidth, s.name, d.Seconds(), detail)
	p.println(strings.TrimRight(line, " "))
}

// failure prints the whole output of a failed step, indented, below the command that repeats it.
func (p printer) failure(s step, r result) {
	switch {
	case r.command == "":
	case s.module == wholeTree:
		p.println("    $ " + r.command)
	default:
		p.println("    $ cd " + s.module + " && " + r.command)
	}
	if !isExit(r.err) {
		p.println("    " + r.err.Error())
	}
	for line := range bytes.Lines(r.output) {
		p.println("    " + strings.TrimRight(string(line), "\r\n"))
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
