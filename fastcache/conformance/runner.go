package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// runner runs the suite.
type runner struct {
	suite  *suite
	caddy  string // binary
	module string // folder
	dir    string // for temporary files
	stdout io.Writer
}

// judge runs all tests in a profile, compares them with the expectations and
// prints what is to be said. It reports whether nothing was lost.
func (r *runner) judge(ctx context.Context, p profile, update bool) (ok bool, err error) {
	file := expectationsFile(r.module, p)
	expected, err := readExpectations(file)
	if err != nil {
		return false, err
	}
	if bare := expected.withoutReason(); len(bare) > 0 && !update {
		return false, fmt.Errorf("%s: no reason why these do not pass: %s", file, strings.Join(bare, " "))
	}
	begin := time.Now()
	findings, err := r.findings(ctx, p)
	if err != nil {
		return false, err
	}
	differences := compare(r.suite.tests, findings, expected)
	var once []difference
	if !update && slices.ContainsFunc(differences, isLoss) {
		// The tests race against the clock: they wait 3 s for what lives 2 s.
		// On a machine that stood still meanwhile some fail. What is really
		// lost is lost twice; the rest is told all the same.
		fmt.Fprintf(r.stdout, "%s profile: not as expected, running again\n", p.name)
		again, err := r.findings(ctx, p)
		if err != nil {
			return false, err
		}
		for id, f := range again {
			if f.result == pass {
				findings[id] = f
			}
		}
		once = slices.DeleteFunc(differences, func(d difference) bool { return !d.loss })
		differences = compare(r.suite.tests, findings, expected)
		once = slices.DeleteFunc(once, func(d difference) bool {
			return slices.ContainsFunc(differences, func(again difference) bool { return again.id == d.id })
		})
	}
	if update {
		expected = expected.renew(r.suite.tests, findings)
	}
	s := scoreOf(r.suite.tests, findings, func(id string) bool { return expected[id].excused() })
	fmt.Fprintf(r.stdout, "\n%s profile, %d tests in %.0f s\n", p.name, len(r.suite.tests), time.Since(begin).Seconds())
	for _, line := range s.table() {
		fmt.Fprintln(r.stdout, "  "+line)
	}
	if update {
		for _, id := range expected.withoutReason() {
			fmt.Fprintf(r.stdout, "  NEEDS A REASON %s: %s\n", id, findings[id].message)
		}
		return true, expected.write(file, p, r.suite.tests, s)
	}
	for _, d := range once {
		fmt.Fprintf(r.stdout, "  ONCE    %s %s\n", d.id, d.text)
	}
	ok = true
	for _, d := range differences {
		word := "CHANGED"
		if d.loss {
			word, ok = "LOST", false
		}
		fmt.Fprintf(r.stdout, "  %-7s %s %s\n", word, d.id, d.text)
	}
	if len(differences) == 0 {
		fmt.Fprintln(r.stdout, "  as expected")
	} else {
		fmt.Fprintln(r.stdout, "  To look at one: make conformance ARGS=\"-profile", p.name, "-test ID\". To accept: make conformance ARGS=-update, and a reason for each that does not pass.")
	}
	return ok, nil
}

func isLoss(d difference) bool { return d.loss }

// findings runs all tests in a profile.
func (r *runner) findings(ctx context.Context, p profile) (findings map[string]finding, err error) {
	err = r.serve(ctx, p, func(ctx context.Context, base string, _ *child) error {
		out, err := r.suite.client(ctx, base)
		if err != nil {
			return err
		}
		findings, err = parseResults(out)
		return err
	})
	return findings, err
}

// show runs one test and prints its requests and responses, on both sides of the
// cache.
func (r *runner) show(ctx context.Context, p profile, id string) error {
	if !slices.ContainsFunc(r.suite.tests, func(t test) bool { return t.ID == id }) {
		return fmt.Errorf("the suite has no test %s", id)
	}
	return r.serve(ctx, p, func(ctx context.Context, base string, origin *child) error {
		out, err := r.suite.client(ctx, base, id)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.stdout, "\n%s profile, between client and cache\n%s\nbetween cache and origin\n%s", p.name, out, &origin.out)
		return nil
	})
}

// serve starts origin and Caddy with an empty cache, calls use with Caddy's base
// URL, and stops both.
func (r *runner) serve(ctx context.Context, p profile, use func(ctx context.Context, base string, origin *child) error) (err error) {
	dir, err := os.MkdirTemp(r.dir, p.name+"-")
	if err != nil {
		return err
	}
	origin, addr, err := r.suite.startOrigin(ctx, dir)
	if err != nil {
		return err
	}
	defer origin.stop()
	caddy, base, err := startCaddy(ctx, r.caddy, dir, p, addr)
	if err != nil {
		return err
	}
	defer caddy.stop()
	err = use(ctx, base, origin)
	if ctx.Err() != nil {
		return err // all have been told to end
	}
	return errors.Join(err, caddy.healthy(), origin.healthy())
}
