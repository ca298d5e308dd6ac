// Command conformance runs the public test suite for HTTP caches, the npm package
// http-cache-tests, against Caddy with fastcache and compares the results with
// those that are committed in the folder expected.
//
//	go run ./fastcache/conformance                 both profiles
//	go run ./fastcache/conformance -update         commit to what the suite says now
//	go run ./fastcache/conformance -test ID        show one test's requests and responses
//
// It needs node and npm; the suite is installed into .cache/conformance at the
// root of the repository. Everything else, origin, Caddy and its cache, is made
// for the run, listens on loopback addresses, and is gone when it ends.
//
// The exit code is 1 when a test that is expected to pass does not, when the
// suite has other tests than expected, or when the run itself fails. Passing more
// than expected is said, and is no failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// errLoss is the result of a run that went well and found less than is expected.
var errLoss = errors.New("not as expected, see above")

func main() {
	// The second signal kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Stdout, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	profile string
	test    string
	caddy   string
	extra   []string // options of fastcache
	update  bool
}

func parseFlags(stdout io.Writer, args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stdout)
	flags.StringVar(&o.profile, "profile", "", "run only this profile: conformance or defaults")
	flags.StringVar(&o.test, "test", "", "run only the test with this id and print its requests and responses")
	flags.StringVar(&o.caddy, "caddy", "", "the Caddy to test (default: built from the source)")
	flags.Func("option", "another `line` for the fastcache block, such as 'disk_size 0': the results must be the same (repeatable)", func(line string) error {
		o.extra = append(o.extra, line)
		return nil
	})
	flags.BoolVar(&o.update, "update", false, "write the results as the new expectations; reasons are kept")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; see -help", flags.Arg(0))
	case o.update && (o.test != "" || o.extra != nil):
		return o, errors.New("-update takes the results of all tests with the options of the profiles: without -test and -option")
	}
	return o, nil
}

func run(ctx context.Context, stdout io.Writer, args []string) (err error) {
	opts, err := parseFlags(stdout, args)
	if err != nil {
		return err
	}
	chosen, err := chooseProfiles(opts.profile)
	if err != nil {
		return err
	}
	module, err := moduleDir(ctx)
	if err != nil {
		return err
	}
	suite, err := installSuite(ctx, stdout, module)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fastcache-conformance-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if opts.caddy == "" {
		if opts.caddy, err = buildCaddy(ctx, stdout, module, dir); err != nil {
			return err
		}
	}

	lost := false
	for _, p := range chosen {
		p.options = slices.Concat(p.options, opts.extra)
		r := &runner{suite: suite, caddy: opts.caddy, module: module, dir: dir, stdout: stdout}
		if opts.test != "" {
			if err := r.show(ctx, p, opts.test); err != nil {
				return fmt.Errorf("%s profile: %w", p.name, err)
			}
			continue
		}
		ok, err := r.judge(ctx, p, opts.update)
		if err != nil {
			return fmt.Errorf("%s profile: %w", p.name, err)
		}
		lost = lost || !ok
	}
	if lost {
		return errLoss
	}
	return nil
}
