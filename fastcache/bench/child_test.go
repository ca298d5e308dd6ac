package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sleeper starts a process that does nothing until it is stopped.
func sleeper(t *testing.T) *child {
	t.Helper()
	c, err := startChild(t.Context(), "sleep", t.TempDir(), nil, "sleep", "600")
	if err != nil {
		t.Skip("there is no sleep to run:", err)
	}
	t.Cleanup(c.stop)
	return c
}

func TestChild_Stop(t *testing.T) {
	c := sleeper(t)
	if err := c.alive(); err != nil {
		t.Error(err)
	}
	c.stop()
	if c.alive() == nil {
		t.Error("it is alive after its end")
	}
}

func TestChild_AwaitListening(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := sleeper(t).awaitListening(t.Context(), l.Addr().String()); err != nil {
		t.Error(err)
	}
}

// A server that ends at once is reported with what it said.
func TestChild_AwaitListening_Ended(t *testing.T) {
	c, err := startChild(t.Context(), "sh", t.TempDir(), nil, "sh", "-c", "echo bad configuration; exit 1")
	if err != nil {
		t.Skip("there is no sh to run:", err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	f := factory{port: port}
	if err := c.awaitListening(t.Context(), f.addr()); err == nil || !strings.Contains(err.Error(), "bad configuration") {
		t.Error(err)
	}
}

// fakeWrk is a load generator that prints a report, and its arguments into a file.
func fakeWrk(t *testing.T, report string) (path, args string) {
	t.Helper()
	dir := t.TempDir()
	path, args = filepath.Join(dir, "wrk"), filepath.Join(dir, "args")
	script := "#!/bin/sh\necho \"$@\" > " + args + "\ncat <<'END'\n" + report + "END\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, args
}

func TestRunner_Measure(t *testing.T) {
	if _, err := takeReading(os.Getpid()); err != nil {
		t.Skip("there is no /proc as on Linux:", err)
	}
	s := &server{contender: contender{name: "a"}, child: sleeper(t), url: "http://127.0.0.1:1"}
	good := strings.NewReplacer("  Socket errors: connect 1, read 2, write 3, timeout 4\n", "", "  Non-2xx or 3xx responses: 5\n", "").Replace(wrkReport)
	for _, test := range []struct {
		report string
		cell   cell
		args   string // among others
		err    string
	}{
		{good, cell{hits, 4096, 64}, "-c64 -d1s --timeout 15s --latency http://127.0.0.1:1/b/4096", ""},
		{wrkReport, cell{hits, 4096, 64}, "", "15 requests failed"},
		{good, cell{hits, 8192, 64}, "", "too few"},
		{good, cell{misses, 4096, 64}, "-- run-7", "origin was asked 0 times"},
	} {
		wrk, args := fakeWrk(t, test.report)
		r := &runner{tools: &toolbox{path: map[string]string{"wrk": wrk}}, origin: new(origin), seconds: 1, dir: t.TempDir(), run: "run"}
		l, err := r.measure(t.Context(), s, test.cell, 7)
		if given, _ := os.ReadFile(args); !strings.Contains(string(given), test.args) {
			t.Errorf("%s: wrk was called with %s", test.cell, given)
		}
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %q", test.cell, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.PerSecond != 60895.52 || l.P50 != 842 || l.P99 != 11020 || l.Requests != 122400 || l.Round != 7 || !strings.Contains(l.report, wrkReport[:20]) {
			t.Errorf("%+v", l)
		}
	}
}
