// Bench-pool measures module bytebufferpool against the byte pools that people use in Go, and prints the module's goals with what
// was reached.
//
//	go run ./cmd/bench-pool -quick                 # where things stand, in well under a minute
//	go run ./cmd/bench-pool -out DIR -readme FILE  # figures to publish, in some minutes
//
// Progress goes to standard error, the report to standard output. The exit code is 0 when it was measured, whatever the verdicts:
// goals are judged by people, on a machine that they know to be quiet.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hotset-go/hotset/compare/internal/measure"
	"github.com/hotset-go/hotset/compare/pool"
)

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

const (
	// watchdogDelay is how long the program may go on after its time limit: a stretch ends in between.
	watchdogDelay = 30 * time.Second

	// testLimit bounds the tests of the goals that are not a matter of time, compilation with the race detector included.
	testLimit = 5 * time.Minute
)

type options struct {
	quick, json, tests, race, peak bool

	out, readme, run, child string

	limit time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	fs := flag.NewFlagSet("bench-pool", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.BoolVar(&o.quick, "quick", false, "only what goals refer to, fewer rounds, one process for each peak, tests without the race detector")
	fs.BoolVar(&o.json, "json", false, "print the report as JSON")
	fs.StringVar(&o.out, "out", "", "also write report.md, report.json and every sample (bench.txt, for benchstat) into `DIR`")
	fs.StringVar(&o.readme, "readme", "", "also write the report into `FILE`, between the lines "+measure.RegionBegin+" and "+measure.RegionEnd)
	fs.StringVar(&o.run, "run", "", "only the groups of cases that match `REGEXP`, such as '^(Fixed|Hold)$'")
	fs.BoolVar(&o.tests, "tests", true, "run the tests behind the goals that are not a matter of time")
	fs.BoolVar(&o.race, "race", true, "run them with the race detector, which needs a C compiler")
	fs.BoolVar(&o.peak, "peak", true, "measure memory in fresh processes")
	fs.DurationVar(&o.limit, "limit", 15*time.Minute, "give up after this time")
	fs.StringVar(&o.child, "child", "", "for the program itself: measure the memory of one pool, `NAME:SIZE:COUNT`")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	if fs.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "bench-pool: unexpected argument %q\n", fs.Arg(0))
		return exitUsage
	}
	if o.child != "" {
		if err := peakChild(stdout, o.child); err != nil {
			_, _ = fmt.Fprintln(stderr, "bench-pool:", err)
			return exitFailed
		}
		return exitOK
	}
	only, err := regexp.Compile(o.run)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "bench-pool: -run:", err)
		return exitUsage
	}

	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	// A pool that never returns would hold the program for ever, since a stretch cannot be interrupted.
	watchdog := time.AfterFunc(o.limit+watchdogDelay, func() {
		_, _ = fmt.Fprintln(stderr, "bench-pool: stuck; goroutines:")
		_ = pprof.Lookup("goroutine").WriteTo(stderr, 2)
		os.Exit(exitFailed)
	})
	defer watchdog.Stop()

	if err := bench(ctx, o, only, stdout, stderr); err != nil {
		_, _ = fmt.Fprintln(stderr, "bench-pool:", err)
		return exitFailed
	}
	return exitOK
}

func bench(ctx context.Context, o options, only *regexp.Regexp, stdout, stderr io.Writer) error {
	start := time.Now()
	progress := func(line string) {
		_, _ = fmt.Fprintf(stderr, "%5.0fs %s\n", time.Since(start).Seconds(), line)
	}
	root, err := findRoot()
	if err != nil {
		return err
	}
	if o.readme != "" {
		if err := measure.CheckRegion(o.readme); err != nil {
			return err
		}
	}
	effort, processes := pool.Full, 3
	if o.quick {
		effort, processes = pool.Quick, 1
	}
	facts := measure.Observe(ctx, root, commandLine(), modules)

	groups := slices.DeleteFunc(effort.Groups(), func(g measure.Group) bool { return !only.MatchString(g.Name) })
	var m pool.Measured
	if m.Results, err = measure.Run(ctx, groups, progress); err != nil {
		_, _ = io.WriteString(stdout, pool.Report(facts, effort, m)) // what there is
		return err
	}
	if o.peak && only.MatchString("Peak") {
		if m.Peaks, err = peaks(ctx, effort.SlicePools(), processes, progress); err != nil {
			return err
		}
	}
	if o.tests && only.MatchString("Tests") {
		race := o.race && !o.quick
		progress("tests of the exact goals")
		if m.Tests, err = pool.RunTests(ctx, filepath.Join(root, "bytebufferpool"), race, testLimit); err != nil {
			return err
		}
		if missing := m.Tests.Missing(); len(missing) > 0 {
			progress("did not pass: " + strings.Join(missing, ", "))
		}
	}
	progress("done")
	return publish(o, facts, effort, m, stdout)
}

// publish prints the report and writes it to the files that were asked for.
func publish(o options, facts measure.Facts, effort pool.Effort, m pool.Measured, stdout io.Writer) error {
	report := pool.Report(facts, effort, m)
	asJSON, err := json.MarshalIndent(pool.Summarize(facts, effort, m), "", "\t")
	if err != nil {
		return err
	}
	asJSON = append(asJSON, '\n')
	if o.json {
		_, err = stdout.Write(asJSON)
	} else {
		_, err = io.WriteString(stdout, report)
	}
	if err != nil {
		return err
	}
	if o.readme != "" {
		if err := measure.ReplaceRegion(o.readme, report); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	var samples strings.Builder
	samples.WriteString(facts.BenchmarkHeader("bytebufferpool against rivals"))
	if err := m.Results.WriteBenchmarks(&samples, "pool"); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"report.md": []byte("# bytebufferpool against other pools\n\n" + report), "report.json": asJSON, "bench.txt": []byte(samples.String()),
	} {
		if err := os.WriteFile(filepath.Join(o.out, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// modules are those that are compared.
var modules = []string{
	"github.com/hotset-go/hotset/bytebufferpool", "github.com/bytedance/gopkg", "github.com/libp2p/go-buffer-pool",
	"github.com/oxtoacart/bpool", "github.com/prometheus/prometheus", "github.com/valyala/bytebufferpool", "google.golang.org/grpc",
}

// commandLine is how to get the same figures again, from the root of the repository.
func commandLine() string {
	command := "make bench-pool"
	if len(os.Args) > 1 {
		command += " ARGS='" + strings.Join(os.Args[1:], " ") + "'"
	}
	return command
}

// findRoot returns the folder that holds go.work, from the current one upwards.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.work")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.work in %s or above: run it inside the repository", dir)
		}
	}
}
