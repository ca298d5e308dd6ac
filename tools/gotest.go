package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// testReport is what one run of 'go test -json' says.
// Subtests count like tests.
type testReport struct {
	passed, failed int
	skips          []testSkip
	// text is what 'go test' would have printed without -json and -v:
	// the output of tests that did not pass, and of packages.
	text []byte
}

// testSkip is one skipped test.
type testSkip struct {
	pkg, test string
	reason    string // as given to t.Skip, on one line
}

// testEvent is one line of 'go test -json', see 'go doc test2json'.
type testEvent struct {
	Action     string
	Package    string
	ImportPath string // instead of Package on build events
	Test       string
	Output     string
}

// pkgLog collects a package's output until its end is known.
type pkgLog struct {
	lines []logLine
	// open holds the tests that have started and not ended: a crash leaves them there.
	open map[string]bool
	done map[string]bool // passed or skipped
}

type logLine struct{ test, text string }

// parseTestEvents reads the standard output of 'go test -json'. Lines that are no events are kept as text.
func parseTestEvents(out []byte) testReport {
	var report testReport
	var text bytes.Buffer
	var order []string
	pkgs := make(map[string]*pkgLog)
	pkgOf := func(name string) *pkgLog {
		p := pkgs[name]
		if p == nil {
			p = &pkgLog{open: make(map[string]bool), done: make(map[string]bool)}
			pkgs[name] = p
			order = append(order, name)
		}
		return p
	}
	finish := func(name string) {
		p := pkgs[name]
		if p == nil {
			return
		}
		delete(pkgs, name)
		report.failed += len(p.open)
		for _, l := range p.lines {
			if !p.done[l.test] && !isMarker(l.text) {
				text.WriteString(l.text)
			}
		}
	}

	for line := range bytes.Lines(out) {
		var ev testEvent
		if line[0] != '{' || json.Unmarshal(line, &ev) != nil {
			text.Write(line)
			continue
		}
		if ev.Package == "" {
			text.WriteString(ev.Output) // build-output
			continue
		}
		p := pkgOf(ev.Package)
		switch ev.Action {
		case "output":
			p.lines = append(p.lines, logLine{ev.Test, ev.Output})
		case "run":
			p.open[ev.Test] = true
		case "pass", "fail", "skip":
			if ev.Test == "" {
				finish(ev.Package)
				continue
			}
			delete(p.open, ev.Test)
			switch ev.Action {
			case "pass":
				report.passed++
				p.done[ev.Test] = true
			case "fail":
				report.failed++
			case "skip":
				report.skips = append(report.skips, testSkip{ev.Package, ev.Test, skipReason(p.lines, ev.Test)})
				p.done[ev.Test] = true
			}
		}
	}
	for _, name := range order { // packages without an end: 'go test' itself was stopped
		finish(name)
	}
	report.text = text.Bytes()
	return report
}

// isMarker tells whether a line is one that only -v prints.
func isMarker(line string) bool {
	for _, m := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ", "PASS\n"} {
		if strings.HasPrefix(line, m) {
			return true
		}
	}
	return false
}

// logPosition is how the testing package begins the output of t.Skip and t.Log: "    x_test.go:12: ".
var logPosition = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// skipReason returns the last thing that the test logged: the argument of t.Skip.
func skipReason(lines []logLine, test string) string {
	var reason []string
	for _, l := range lines {
		if l.test != test || isMarker(l.text) || strings.HasPrefix(strings.TrimSpace(l.text), "--- SKIP: ") {
			continue
		}
		if loc := logPosition.FindStringIndex(l.text); loc != nil {
			reason = []string{strings.TrimSpace(l.text[loc[1]:])}
		} else if reason != nil {
			reason = append(reason, strings.TrimSpace(l.text))
		}
	}
	if reason == nil {
		return "no reason given"
	}
	return strings.Join(reason, " ")
}
