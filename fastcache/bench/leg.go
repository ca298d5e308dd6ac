package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// kind is what a leg measures.
type kind string

const (
	hits   kind = "hit"
	misses kind = "miss" // every URL once
	h2     kind = "h2"   // hits over TLS and HTTP/2
)

// cell is what contenders are compared in.
type cell struct {
	Kind  kind `json:"kind"`
	Size  int  `json:"size"`  // of the body, in bytes
	Conns int  `json:"conns"` // connections
}

func (c cell) String() string { return fmt.Sprintf("%s %s c=%d", c.Kind, sizeName(c.Size), c.Conns) }

// leg is one measurement: one contender under load for some seconds.
type leg struct {
	cell
	Server     string  `json:"server"`
	Round      int     `json:"round"`
	PerSecond  float64 `json:"requests_per_second"`
	CPU        float64 `json:"cpu_us_per_request"` // of the server's processes, in microseconds
	P50        float64 `json:"p50_us,omitempty"`
	P99        float64 `json:"p99_us,omitempty"`
	Requests   int64   `json:"requests"`
	Asked      int64   `json:"origin_asked"`
	ClientCPU  float64 `json:"client_cpu"`  // processors that the load generator kept busy
	OthersBusy float64 `json:"others_busy"` // share of the machine that went to what is no part of the bench

	report string // of the load generator, as it was
}

// runner runs legs.
type runner struct {
	tools   *toolbox
	origin  *origin
	seconds int
	dir     string // for the script
	run     string // makes the URLs of this run's misses different from those of others
}

// legMargin is how much longer than its seconds a leg may take: at the end of its
// time wrk waits for nobody, so this is for a machine that hangs.
const legMargin = 20 * time.Second

// wrkTimeout is from when on wrk calls an answer late, which here is a failure. Its
// default of 2 s is less than 256 bodies of 3 MiB may take on a busy machine.
const wrkTimeout = "15s"

// missScript asks for a new URL each time: of one body, as the origin ignores the query.
const missScript = `local n = 0
local prefix
function init(args)
	prefix = args[1]
end
function request()
	n = n + 1
	return wrk.format("GET", wrk.path .. "?" .. prefix .. "-" .. n)
end
`

// measure puts a server under load. The processor time is that of the server and its
// children over the whole life of the load generator: connecting is part of it.
func (r *runner) measure(ctx context.Context, s *server, c cell, round int) (leg, error) {
	l := leg{cell: c, Server: s.name, Round: round}
	if err := s.alive(); err != nil {
		return l, err
	}
	program, args, parse := "wrk", []string{"-t1", "-c" + strconv.Itoa(c.Conns), "-d" + strconv.Itoa(r.seconds) + "s", "--timeout", wrkTimeout, "--latency", s.url + urlPath(c.Size)}, parseWrk
	switch c.Kind {
	case hits:
	case misses:
		script := filepath.Join(r.dir, "miss.lua")
		if err := os.WriteFile(script, []byte(missScript), 0o600); err != nil {
			return l, err
		}
		prefix := fmt.Sprintf("%s-%d", r.run, round)
		args = append([]string{"-s", script}, append(args, "--", prefix)...)
	case h2:
		program, parse = "h2load", parseH2load
		args = []string{"-t1", "-c" + strconv.Itoa(c.Conns), "-m" + strconv.Itoa(h2Streams), "-D", strconv.Itoa(r.seconds), s.url + urlPath(c.Size)}
	}

	before, err := takeReading(s.pid)
	if err != nil {
		return l, err
	}
	asked := r.origin.asked.Load()
	out, clientCPU, err := runCommand(ctx, time.Duration(r.seconds)*time.Second+legMargin, r.tools.env, r.tools.path[program], args...)
	if err != nil {
		return l, fmt.Errorf("%s, %s: %w", s.name, c, err)
	}
	after, err := takeReading(s.pid)
	if err != nil {
		return l, err
	}
	l.Asked = r.origin.asked.Load() - asked
	l.report = fmt.Sprintf("== round %d, %s, %s\n%s\n", round, c, s.name, out)

	got, err := parse(out)
	if err != nil {
		return l, fmt.Errorf("%s, %s: %w", s.name, c, err)
	}
	if err := check(c, got, l.Asked); err != nil {
		return l, fmt.Errorf("%s, %s: %w\n%s", s.name, c, err, out)
	}
	l.PerSecond, l.Requests = got.perSecond, got.requests
	l.P50, l.P99 = micros(got.p50), micros(got.p99)
	l.CPU = micros(after.server-before.server) / float64(got.requests)
	elapsed := after.at.Sub(before.at)
	l.ClientCPU = round3(clientCPU.Seconds() / elapsed.Seconds())
	// The kernel's work for the network counts as that of whom it interrupted, so
	// a small difference is nobody's.
	others := (after.machine - before.machine) - (after.server - before.server) - (after.self - before.self) - clientCPU
	l.OthersBusy = round3(max(0, others.Seconds()) / elapsed.Seconds() / float64(processors))
	return l, nil
}

// check tells whether a leg has measured what it was to measure.
func check(c cell, got load, asked int64) error {
	switch {
	case got.requests == 0:
		return fmt.Errorf("no request was answered")
	case got.failures > 0:
		return fmt.Errorf("%d requests failed", got.failures)
	case c.Kind != misses && asked > 0:
		return fmt.Errorf("these were to be hits, and the origin was asked %d times", asked)
	case c.Kind == misses && asked < got.requests:
		return fmt.Errorf("these were to be misses, and the origin was asked %d times for %d requests", asked, got.requests)
	// wrk rounds to three digits, and counts the bytes of answers that it does not
	// wait for to their end.
	case c.Kind != h2 && float64(got.read) < 0.98*float64(got.requests)*float64(c.Size):
		return fmt.Errorf("%d bytes are too few for %d bodies", got.read, got.requests)
	}
	return nil
}

// reading is what has been spent up to a moment.
type reading struct {
	at                    time.Time
	server, self, machine time.Duration // processor time
}

func takeReading(pid int) (reading, error) {
	all, err := processes()
	if err != nil {
		return reading{}, err
	}
	machine, err := machineBusy()
	if err != nil {
		return reading{}, err
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return reading{}, fmt.Errorf("getrusage: %w", err)
	}
	return reading{
		at:      time.Now(),
		server:  treeCPU(pid, all),
		self:    time.Duration(own.Utime.Nano() + own.Stime.Nano()),
		machine: machine,
	}, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func round3(x float64) float64 { return math.Round(x*1000) / 1000 }

// sizeName writes a size as the goals do: 512 B, 4 KiB, 1 MiB.
func sizeName(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
