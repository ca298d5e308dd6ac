package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page reads docs/conformance.md.
func page(t *testing.T) string {
	t.Helper()
	return document(t, "conformance.md")
}

// document reads a page of docs, which only the repository has, not the module.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("docs/%s is not here: this is the module without its repository", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// committed reads the committed expectations of a profile.
func committed(t *testing.T, p profile) (expectations, string) {
	t.Helper()
	file := expectationsFile("..", p)
	expected, err := readExpectations(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return expected, string(text)
}

// TestExpectations_Committed: the profiles are about the same tests, and whatever
// does not pass has a reason.
func TestExpectations_Committed(t *testing.T) {
	first, _ := committed(t, profiles[0])
	for _, p := range profiles {
		expected, _ := committed(t, p)
		for _, id := range expected.withoutReason() {
			t.Errorf("%s: %s does not pass, for no reason", p.name, id)
		}
		if len(expected) < 300 || len(expected) != len(first) {
			t.Errorf("%s has %d tests, %s has %d", p.name, len(expected), profiles[0].name, len(first))
		}
		for id := range expected {
			if _, ok := first[id]; !ok {
				t.Errorf("%s has %s, %s has not", p.name, id, profiles[0].name)
			}
		}
	}
}

// TestDocs_Scores: the page has the scores that stand in the expectations.
func TestDocs_Scores(t *testing.T) {
	text := page(t)
	for _, p := range profiles {
		_, file := committed(t, p)
		var table []string
		for line := range strings.Lines(file) {
			if row, ok := strings.CutPrefix(line, "# |"); ok {
				table = append(table, "|"+row)
			}
		}
		if len(table) != 2+len(kinds) {
			t.Errorf("the expectations of %s have a score of %d lines", p.name, len(table))
		}
		if !strings.Contains(text, strings.Join(table, "")) {
			t.Errorf("docs/conformance.md lacks the score of the %s profile:\n%s", p.name, strings.Join(table, ""))
		}
	}
}

// TestDocs_Reasons: each test that does not pass stands on the page, in a row with
// its reason.
func TestDocs_Reasons(t *testing.T) {
	text := page(t)
	for _, p := range profiles {
		expected, _ := committed(t, p)
		for id, e := range expected {
			if e.result == pass {
				continue
			}
			reason := strings.TrimPrefix(e.reason, excusedPrefix)
			found := false
			for line := range strings.Lines(text) {
				plain := strings.ReplaceAll(line, "`", "")
				found = found || strings.Contains(line, "`"+id+"`") && strings.Contains(strings.ToLower(plain), strings.ToLower(reason))
			}
			if !found {
				t.Errorf("%s: docs/conformance.md has no row for %s with the reason %q", p.name, id, reason)
			}
		}
	}
}

var (
	codeSpan = regexp.MustCompile("`([^`]*)`")
	testName = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*$`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// sourceTests finds the names of all tests of fastcache, those of its nested
// modules included.
func sourceTests(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range testFunc.FindAllSubmatch(source, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestDocs_Names: every test that a page names exists.
func TestDocs_Names(t *testing.T) {
	names := sourceTests(t)
	for _, name := range []string{"conformance.md", "threats.md"} {
		for _, span := range codeSpan.FindAllStringSubmatch(document(t, name), -1) {
			if testName.MatchString(span[1]) && !names[span[1]] {
				t.Errorf("docs/%s names %s, which is no test of fastcache", name, span[1])
			}
		}
	}
}

// TestDocs_Requirements: every requirement names what holds it, or says why
// nothing does.
func TestDocs_Requirements(t *testing.T) {
	_, text, ok := strings.Cut(page(t), "\n## Requirements\n")
	if !ok {
		t.Fatal("docs/conformance.md has no chapter Requirements")
	}
	expected, _ := committed(t, profiles[0])
	rows := 0
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) < 3 || strings.HasPrefix(line, "| Section") {
			continue
		}
		rows++
		last := strings.TrimSpace(cells[len(cells)-1])
		spans := codeSpan.FindAllStringSubmatch(last, -1)
		excuse := strings.HasPrefix(last, "does not apply: ") || strings.HasPrefix(last, "not tested: ") ||
			strings.HasPrefix(last, "not held: ") || last == "the rows that follow"
		if len(spans) == 0 && !excuse || strings.Contains(line, "TODO") {
			t.Errorf("nothing holds this requirement: %s", line)
		}
		for _, span := range spans {
			if !testName.MatchString(span[1]) && expected[span[1]].result != pass {
				t.Errorf("%s is neither a test nor passes in the %s profile: %s", span[1], profiles[0].name, line)
			}
		}
	}
	if rows < 100 {
		t.Errorf("found %d requirements only", rows)
	}
}
