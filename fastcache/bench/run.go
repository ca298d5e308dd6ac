package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// maxFailed is how many legs may fail before the run ends.
const maxFailed = 10

func run(ctx context.Context, stdout io.Writer, args []string) (err error) {
	o, err := parseFlags(stdout, args)
	if err != nil {
		return err
	}
	if o.serveBare != "" {
		return serveBare(ctx, o.serveBare, o.sizes)
	}
	if runtime.GOOS != "linux" {
		return errors.New("processor times are read from /proc: the bench needs Linux")
	}
	module, err := moduleDir()
	if err != nil {
		return err
	}
	cache := filepath.Join(filepath.Dir(module), ".cache", "bench")
	if o.tools == "" {
		o.tools = filepath.Join(cache, "tools")
	}
	if o.out == "" {
		o.out = filepath.Join(cache, "results")
	}
	box, err := findTools(ctx, stdout, o.tools)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fastcache-bench-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	r := &results{
		Machine: describeMachine(ctx, box, module, commandLine(args)),
		LeftOut: make(map[string]string),
	}
	r.Machine.Rounds, r.Machine.Seconds = o.rounds, o.seconds
	if o.caddy == "" {
		fmt.Fprintln(stdout, "building Caddy with fastcache")
		if o.caddy, err = buildCaddy(ctx, module, dir); err != nil {
			return err
		}
	}
	if o.alloc {
		fmt.Fprintln(stdout, "counting the allocations of a hit")
		if r.Allocs, err = measureAllocs(ctx, module); err != nil {
			return err
		}
	}
	broken := bench(ctx, stdout, o, box, dir, r)
	if broken != nil {
		r.Broken, _, _ = strings.Cut(broken.Error(), "\n")
	}
	if len(r.Legs) > 0 {
		if err := writeResults(o.out, r); err != nil {
			return errors.Join(broken, err)
		}
		fmt.Fprintf(stdout, "\n%s\nraw output and chart: %s\n", report(r), o.out)
	}
	if broken == nil && len(r.Failed) > 0 {
		return fmt.Errorf("%d legs failed, see above", len(r.Failed))
	}
	return broken
}

// bench measures and puts the legs into r; with an error, those that there are.
func bench(ctx context.Context, stdout io.Writer, o options, box *toolbox, dir string, r *results) error {
	b := newBodies(append([]int{missCell.Size, h2Cells[1].Size}, o.sizes...))
	orig, err := startOrigin(b)
	if err != nil {
		return err
	}
	defer orig.close()
	f := factory{tools: box, caddyB: o.caddy, site: filepath.Join(dir, "site"), origin: orig.addr, sizes: o.sizes, bodies: b}
	if err := b.writeFiles(f.site); err != nil {
		return err
	}
	if f.self, err = os.Executable(); err != nil {
		return err
	}
	if f.cert, f.key, err = writeCertificate(dir); err != nil {
		return err
	}
	if f.built, err = f.detectModes(ctx, dir); err != nil {
		return err
	}
	m := &measuring{f: f, bodies: b, stdout: stdout, dir: dir, results: r, rounds: o.rounds, wanted: o.servers.MatchString, runner: &runner{
		tools: box, origin: orig, seconds: o.seconds, dir: dir, run: strconv.FormatInt(time.Now().Unix(), 36),
	}}
	if err := m.part(ctx, contenders, hitCells(o.sizes, o.conns), false); err != nil {
		return err
	}
	if o.miss {
		if err := m.part(ctx, missContenders, []cell{missCell}, false); err != nil {
			return err
		}
	}
	if o.h2 && box.path["h2load"] != "" {
		return m.part(ctx, h2Contenders, h2Cells, true)
	}
	return nil
}

// measuring is a run's parts: hits, misses, HTTP/2.
type measuring struct {
	f       factory
	bodies  bodies
	stdout  io.Writer
	dir     string
	rounds  int
	wanted  func(name string) bool
	runner  *runner
	results *results
}

// part starts contenders, warms them, runs their legs, and stops them.
func (m *measuring) part(ctx context.Context, list []contender, cells []cell, withTLS bool) error {
	servers, left, err := m.f.startAll(ctx, list, m.dir, withTLS, m.wanted)
	if err != nil {
		return err
	}
	defer stopAll(servers)
	for name, why := range left {
		m.results.LeftOut[name] = why
	}
	steps := plan(m.rounds, cells, servers)
	// A leg's limit bounds it alone; this one bounds them all.
	leg := time.Duration(m.runner.seconds)*time.Second + 500*time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, 2*time.Duration(len(steps))*leg+5*time.Minute)
	defer cancel()
	fmt.Fprintf(m.stdout, "%s: %d servers, %d legs, about %s\n", cells[0].Kind, len(servers), len(steps), (time.Duration(len(steps)) * leg).Round(time.Second))
	warmed := make(map[string]bool)
	for _, step := range steps {
		what := step.server.url + urlPath(step.cell.Size)
		if step.cell.Kind == misses || warmed[what] {
			continue
		}
		warmed[what] = true
		if err := warm(ctx, step.server, m.runner.origin, m.bodies, step.cell.Size); err != nil {
			return err
		}
	}
	for _, step := range steps {
		l, err := m.runner.measure(ctx, step.server, step.cell, step.round)
		if err != nil {
			if err := m.failed(ctx, step, err); err != nil {
				return err
			}
			continue
		}
		m.results.Legs = append(m.results.Legs, l)
		fmt.Fprintf(m.stdout, "round %d  %-18s  %-34s %9.0f req/s  %7.1f us CPU\n", step.round+1, step.cell, step.server.name, l.PerSecond, l.CPU)
	}
	return nil
}

// failed notes a leg that has failed. The others may be good, so the run goes on,
// unless it is to end or too much has failed; its exit code tells.
func (m *measuring) failed(ctx context.Context, s step, err error) error {
	if ctx.Err() != nil || s.server.alive() != nil || len(m.results.Failed) >= maxFailed {
		return err
	}
	fmt.Fprintln(m.stdout, "failed:", err)
	why, _, _ := strings.Cut(err.Error(), "\n")
	m.results.Failed = append(m.results.Failed, fmt.Sprintf("round %d: %s", s.round+1, why))
	return nil
}

// writeResults writes the legs as JSON, the load generators' reports as they were, the
// tables and the chart.
func writeResults(dir string, r *results) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	var raw bytes.Buffer
	for _, l := range r.Legs {
		raw.WriteString(l.report)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "results.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "raw.txt"), raw.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, "report.md"), []byte(report(r)), 0o644),
		os.WriteFile(filepath.Join(dir, "chart.svg"), []byte(chart(r)), 0o644),
	)
}

// commandLine is the command for the report, such that a shell can read it.
func commandLine(args []string) string {
	words := []string{"bench-http"}
	for _, arg := range args {
		if strings.ContainsFunc(arg, func(r rune) bool { return !strings.ContainsRune(plainLetters, r) }) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

const plainLetters = letters + "./=,"

// moduleDir finds the folder of the module fastcache, in the folder that this is run
// in or above it.
func moduleDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		module := filepath.Join(dir, "fastcache")
		if _, err := os.Stat(filepath.Join(module, "cmd", "caddy")); err == nil {
			return module, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("this runs in a checkout of the repository")
		}
		dir = parent
	}
}
