package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// expectation is what a test is expected to come to, and why it does not pass.
type expectation struct {
	result result
	reason string // empty for pass
}

// varies is the expected result of a test that may or may not pass, which the
// reason explains. It is written by hand.
const varies result = "varies"

// excusedPrefix begins the reasons of tests that should not pass: because they
// contradict an RFC, or ask about what we do not do. Any other reason is a
// weakness of ours.
const excusedPrefix = "excused: "

func (e expectation) excused() bool { return strings.HasPrefix(e.reason, excusedPrefix) }

// expectations are those of one profile. The zero value expects nothing.
type expectations map[string]expectation

func expectationsFile(module string, p profile) string {
	return filepath.Join(module, "conformance", "expected", p.name+".txt")
}

// readExpectations reads a file of expectations: a line a test, with its id,
// result and, if it does not pass, the reason. Lines that begin with # are
// comments. A missing file expects nothing.
func readExpectations(file string) (expectations, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return expectations{}, nil
	}
	if err != nil {
		return nil, err
	}
	expected := make(expectations)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		id, rest, _ := strings.Cut(line, " ")
		word, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
		e := expectation{result(word), strings.TrimSpace(reason)}
		switch _, twice := expected[id]; {
		case twice:
			return nil, fmt.Errorf("%s:%d: %s stands there twice", file, n, id)
		case e.result != pass && e.result != fail && e.result != setup && e.result != varies:
			return nil, fmt.Errorf("%s:%d: %q is not a result", file, n, word)
		case e.result == pass && e.reason != "":
			return nil, fmt.Errorf("%s:%d: %s passes and has a reason for why it does not", file, n, id)
		}
		expected[id] = e
	}
	return expected, lines.Err()
}

// withoutReason lists the tests that do not pass and have no reason yet.
func (expected expectations) withoutReason() []string {
	var ids []string
	for id, e := range expected {
		if e.result != pass && e.reason == "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// write writes the expectations in the suite's order, with the score in front.
func (expected expectations) write(file string, p profile, tests []test, s score) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# What %s %s finds in the %s profile: id, result, reason.\n", suitePackage, suiteVersion, p.name)
	b.WriteString("# Written by 'make conformance ARGS=-update', which keeps the reasons; the reasons are written by hand.\n")
	b.WriteString("# A result counts as the client gives it. The score leaves out tests whose dependency did not pass, as the suite does.\n#\n")
	for _, line := range s.table() {
		b.WriteString("# " + line + "\n")
	}
	group := ""
	for _, t := range tests {
		if t.Group != group {
			group = t.Group
			fmt.Fprintf(&b, "\n# %s\n", group)
		}
		e := expected[t.ID]
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-45s %-6s %s", t.ID, e.result, e.reason), " ") + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// renew returns the findings as expectations, with the old reasons of tests that
// still do not pass. What varies goes on to.
func (expected expectations) renew(tests []test, findings map[string]finding) expectations {
	renewed := make(expectations, len(tests))
	for _, t := range tests {
		e := expectation{result: findings[t.ID].result}
		if old := expected[t.ID]; old.result == varies {
			e = old
		} else if e.result != pass {
			e.reason = old.reason
		}
		renewed[t.ID] = e
	}
	return renewed
}
