// Tools is the repository's own program: it checks the modules of the workspace and, later, releases them.
//
// Run it from anywhere in the repository:
//
//	go run ./tools help
//	go run ./tools test fastcache
//
// One file holds one command; [commands] is the table of all of them.
// Which modules exist is read from go.work, so that a new module needs no edit here.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of the program.
const (
	exitOK          = 0
	exitFailed      = 1   // a check failed or the command could not do its work
	exitUsage       = 2   // unknown command, flag or module
	exitInterrupted = 130 // 128 + SIGINT, as shells count it
)

var (
	// errFailed is returned by a command that has already printed what went wrong.
	errFailed = errors.New("failed")
	// errUsage is wrapped by errors that the caller of the program made on the command line.
	errUsage = errors.New("usage")
)

// command is one entry of the table.
type command struct {
	name    string
	args    string // what follows the name, for the help text
	summary string // one line
	run     func(ctx context.Context, env *env, args []string) error
}

// env is what a command gets from the outside.
type env struct {
	command command
	root    string // the folder that holds go.work
	stdout  io.Writer
	stderr  io.Writer
}

// commands returns the table in the order of the help text.
func commands() []command {
	return []command{
		testCommand, checkCommand, lintCommand, fmtCommand,
		workspaceCommand, modulesCommand,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printHelp(stderr)
		return exitUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		printHelp(stdout)
		return exitOK
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		wd, err := os.Getwd()
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "tools:", err)
			return exitFailed
		}
		root, err := findRoot(wd)
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "tools:", err)
			return exitFailed
		}
		err = c.run(ctx, &env{command: c, root: root, stdout: stdout, stderr: stderr}, args)
		switch {
		case ctx.Err() != nil:
			_, _ = fmt.Fprintf(stderr, "tools %s: interrupted\n", name)
			return exitInterrupted
		case err == nil, errors.Is(err, flag.ErrHelp):
			return exitOK
		case errors.Is(err, errFailed):
			return exitFailed
		case errors.Is(err, errUsage):
			_, _ = fmt.Fprintf(stderr, "tools %s: %v\n", name, err)
			return exitUsage
		default:
			_, _ = fmt.Fprintf(stderr, "tools %s: %v\n", name, err)
			return exitFailed
		}
	}
	_, _ = fmt.Fprintf(stderr, "tools: no command %q; 'go run ./tools help' lists them\n", name)
	return exitUsage
}

func printHelp(w io.Writer) {
	_, _ = fmt.Fprint(w, "usage: go run ./tools COMMAND [flags] [arguments]\n\n")
	for _, c := range commands() {
		_, _ = fmt.Fprintf(w, "  %-26s %s\n", c.name+" "+c.args, c.summary)
	}
	_, _ = fmt.Fprintf(w, "  %-26s %s\n", "help", "print this text")
	_, _ = fmt.Fprint(w, `
MODULE is a folder as go.work names it (fastcache), FOLDER/... that folder and
all modules below it, or . for the steps that look at the whole tree.
Without MODULE a command takes everything. COMMAND -h explains its flags.
`)
}

// newFlags returns a flag set that reports a wrong flag as [errUsage] instead of ending the program.
func newFlags(e *env) *flag.FlagSet {
	fs := flag.NewFlagSet(e.command.name, flag.ContinueOnError)
	fs.SetOutput(e.stderr)
	fs.Usage = func() {
		_, _ = fmt.Fprintf(e.stderr, "usage: go run ./tools %s %s\n%s\n", e.command.name, e.command.args, e.command.summary)
		fs.PrintDefaults()
	}
	return fs
}

// parseFlags parses args; flags may stand before and after the arguments, which it returns.
func parseFlags(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}
