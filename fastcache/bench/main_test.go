package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestParseFlags(t *testing.T) {
	o, err := parseFlags(io.Discard, []string{"-rounds", "3", "-sizes", "512, 4096", "-conns", "64", "-servers", "nginx|fastcache$"})
	if err != nil || o.rounds != 3 || !slices.Equal(o.sizes, []int{512, 4096}) || !slices.Equal(o.conns, []int{64}) || !o.servers.MatchString(plain) || o.servers.MatchString(fast) {
		t.Errorf("got %+v, %v", o, err)
	}
	if !slices.Equal(allSizes[:2], []int{512, 4096}) || len(allSizes) != 6 {
		t.Errorf("a flag has changed the default sizes: %v", allSizes)
	}
	for _, bad := range [][]string{{"-rounds", "0"}, {"-seconds", "0"}, {"-sizes", "4k"}, {"-sizes", "-1"}, {"-conns", ""}, {"-servers", "("}, {"x"}} {
		if o, err := parseFlags(io.Discard, bad); err == nil {
			t.Errorf("%q: got %+v", bad, o)
		}
	}
}

func TestCommandLine(t *testing.T) {
	got := commandLine([]string{"-rounds", "5", "-servers", "a|it's$", "-out", "docs/x"})
	if want := `bench-http -rounds 5 -servers 'a|it'\''s$' -out docs/x`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// One failed leg leaves the others standing; too many, or a server that is gone, end
// the run.
func TestMeasuring_Failed(t *testing.T) {
	running := &server{contender: contender{name: "a"}, child: &child{ended: make(chan struct{})}}
	gone := &server{contender: contender{name: "b"}, child: &child{ended: make(chan struct{})}}
	close(gone.ended)
	broken := errors.New("broken\nwith details")

	m := &measuring{stdout: io.Discard, results: new(results)}
	for range maxFailed {
		if err := m.failed(t.Context(), step{server: running}, broken); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.failed(t.Context(), step{server: running}, broken); err == nil {
		t.Error("the run goes on for ever")
	}
	if got := m.results.Failed[0]; got != "round 1: broken" {
		t.Errorf("noted %q", got)
	}

	m.results = new(results)
	if err := m.failed(t.Context(), step{server: gone}, broken); err == nil {
		t.Error("the run goes on without the server")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.failed(ctx, step{server: running}, broken); err == nil {
		t.Error("the run goes on after its end")
	}
}

// What is written can be read again, with every leg.
func TestWriteResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	r := join(legs(smallCell, plain, 50, 60), legs(smallCell, nginxNopushOn, 100, 110))
	r.Legs[0].report = "what wrk said"
	if err := writeResults(dir, r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var again results
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	r.Legs[0].report = ""
	if !slices.Equal(again.Legs, r.Legs) {
		t.Errorf("got %+v, want %+v", again.Legs, r.Legs)
	}
	for _, name := range []string{"report.md", "raw.txt", "chart.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
