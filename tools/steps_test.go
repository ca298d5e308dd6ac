package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestRunSteps(t *testing.T) {
	exitError := exec.Command("go", "no-such-command").Run()
	if !isExit(exitError) {
		t.Fatalf("cannot run go: %v", exitError)
	}
	fixed := func(r result) func(context.Context) result { return func(context.Context) result { return r } }
	steps := []step{
		{"lib", "vet", fixed(result{})},
		{"lib", "test -race", fixed(result{
			err: exitError, command: "go test ./...", output: []byte("--- FAIL: TestX\nFAIL"), detail: "8 passed, 2 failed",
			tests: &testReport{passed: 8, failed: 2, skips: []testSkip{{"r/lib", "TestBrowser", "no chromium"}}},
		})},
		{"lib/e2e", "tidy", fixed(result{err: exitError, command: "go mod tidy -diff"})},
		{".", "workspace", fixed(result{err: errors.New("rule broken"), output: []byte("add it\n")})},
	}
	var out bytes.Buffer
	err := runSteps(context.Background(), &env{stdout: &out}, steps, []string{"no race detector"})
	if !errors.Is(err, errFailed) {
		t.Errorf("error %v, want errFailed", err)
	}
	const want = `ok    lib      vet            0.0s
FAIL  lib      test -race     0.0s  8 passed, 2 failed
    $ cd lib && go test ./...
    --- FAIL: TestX
    FAIL
FAIL  lib/e2e  tidy           0.0s
    $ cd lib/e2e && go mod tidy -diff
FAIL  .        workspace      0.0s
    rule broken
    add it
skip  r/lib  TestBrowser: no chromium
note  no race detector
total  4 steps, 3 failed, 0.0s
8 passed, 4 failed, 1 skipped
`
	if got := regexp.MustCompile(`\d\.\ds`).ReplaceAllString(out.String(), "0.0s"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRunSteps_NothingFails(t *testing.T) {
	var out bytes.Buffer
	steps := []step{{"lib", "test", func(context.Context) result { return result{tests: &testReport{passed: 3}} }}}
	if err := runSteps(context.Background(), &env{stdout: &out}, steps, nil); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(out.String(), "\n3 passed, 0 failed, 0 skipped\n") {
		t.Errorf("got:\n%s", &out)
	}
}

func TestRunSteps_NoTests(t *testing.T) {
	var out bytes.Buffer
	steps := []step{{"lib", "vet", func(context.Context) result { return result{} }}}
	if err := runSteps(context.Background(), &env{stdout: &out}, steps, nil); err != nil {
		t.Error(err)
	}
	if strings.Contains(out.String(), "passed") {
		t.Errorf("counts tests that did not run:\n%s", &out)
	}
}

// A step that is interrupted is not a failure, and what has not run is not counted as passed.
func TestRunSteps_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var out bytes.Buffer
	steps := []step{
		{"lib", "test", func(context.Context) result { cancel(); return result{err: ctx.Err()} }},
		{"lib", "tidy", func(context.Context) result { t.Error("ran after the interruption"); return result{} }},
	}
	if err := runSteps(ctx, &env{stdout: &out}, steps, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if s := out.String(); strings.Contains(s, "FAIL") || strings.Contains(s, "passed") || !strings.Contains(s, "stopped after 1 of 2 steps") {
		t.Errorf("got:\n%s", s)
	}
}
