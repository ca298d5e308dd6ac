package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// killDelay is how long an interrupted child may take to end by itself before it is killed.
// The end-to-end tests stop a real server in that time.
const killDelay = 5 * time.Second

// baseGoFlags returns the user's GOFLAGS without the flags that choose which module file counts.
func baseGoFlags(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOFLAGS")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOFLAGS: %w", err)
	}
	return withoutModFlags(string(out)), nil
}

// withoutModFlags drops -mod and -modfile from a GOFLAGS value.
func withoutModFlags(flags string) string {
	fields := slices.DeleteFunc(strings.Fields(flags), func(f string) bool {
		f = "-" + strings.TrimLeft(f, "-")
		return strings.HasPrefix(f, "-mod=") || strings.HasPrefix(f, "-modfile=")
	})
	return strings.Join(fields, " ")
}

// setEnv returns environ with the variables in set ("NAME=value") instead of those of the same name.
func setEnv(environ []string, set ...string) []string {
	names := make(map[string]bool, len(set))
	for _, s := range set {
		name, _, _ := strings.Cut(s, "=")
		names[name] = true
	}
	out := make([]string, 0, len(environ)+len(set))
	for _, s := range environ {
		if name, _, _ := strings.Cut(s, "="); !names[name] {
			out = append(out, s)
		}
	}
	return append(out, set...)
}

// program is a command to be run in a folder.
type program struct {
	dir  string
	set  []string // variables that differ from this process's
	args []string // args[0] is the program
}

// String returns a line to paste into a shell.
func (p program) String() string {
	var words []string
	for _, s := range p.set {
		name, value, _ := strings.Cut(s, "=")
		words = append(words, name+"="+quote(value))
	}
	for _, s := range p.args {
		words = append(words, quote(s))
	}
	return strings.Join(words, " ")
}

// quote quotes a word for a POSIX shell where it has to be.
func quote(s string) string {
	if strings.ContainsAny(s, " \t\n\"'`$&|;<>()*?[]{}#~!\\") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// run runs the program and returns what it wrote to standard output and standard error.
// When ctx is cancelled, the program and all its children in its process group are interrupted, then killed.
func (p program) run(ctx context.Context) (stdout, stderr []byte, err error) {
	var outBuf, errBuf bytes.Buffer
	cmd := p.command(ctx)
	cmd.Stdout, cmd.Stderr = &outBuf, &errBuf
	err = cmd.Run()
	killGroup(cmd)
	return outBuf.Bytes(), errBuf.Bytes(), err
}

// runCombined is run with both streams in one, in the order of writing.
func (p program) runCombined(ctx context.Context) ([]byte, error) {
	var buf bytes.Buffer
	cmd := p.command(ctx)
	cmd.Stdout, cmd.Stderr = &buf, &buf
	err := cmd.Run()
	killGroup(cmd)
	return buf.Bytes(), err
}

func (p program) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	cmd.Dir = p.dir
	cmd.Env = setEnv(os.Environ(), append(p.set, "PWD="+p.dir)...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = killDelay
	return cmd
}

// isExit tells whether err only says that the program ran and ended with a code other than 0.
func isExit(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}
