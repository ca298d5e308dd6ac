package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpectations_RoundTrip(t *testing.T) {
	tests := []test{{ID: "a", Group: "first", Kind: "required"}, {ID: "b", Group: "first", Kind: "check"}, {ID: "c", Group: "second", Kind: "optimal"}}
	expected := expectations{
		"a": {result: pass},
		"b": {fail, excusedPrefix + "not a number (RFC 9111 section 4.2.1)"},
		"c": {setup, "the client's transport  keeps two spaces"},
	}
	findings := map[string]finding{"a": {result: pass}, "b": {result: fail}, "c": {result: setup}}
	file := filepath.Join(t.TempDir(), "new", "x.txt")
	s := scoreOf(tests, findings, func(id string) bool { return expected[id].excused() })
	if err := expected.write(file, profiles[0], tests, s); err != nil {
		t.Fatal(err)
	}
	got, err := readExpectations(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got, cmp.AllowUnexported(expectation{})); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append(s.table(), "first", "second") {
		if !strings.Contains(string(text), "# "+line+"\n") {
			t.Errorf("the file lacks the line %q:\n%s", line, text)
		}
	}
}

func TestExpectations_Read(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.txt")
	if got, err := readExpectations(file); err != nil || len(got) != 0 {
		t.Errorf("no file: %v, %v", got, err)
	}
	for _, bad := range []string{"a pass\na pass", "a passed", "a", "a pass for a reason", "a FAIL x"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readExpectations(file); err == nil {
			t.Errorf("%q: %v, no error", bad, got)
		}
	}
}

func TestExpectations_Renew(t *testing.T) {
	old := expectations{
		"still": {fail, "a reason"}, "other": {fail, "kept, though it fails otherwise"}, "better": {fail, "gone"},
		"worse": {result: pass}, "removed": {fail, "of no test"},
		"uncertain": {varies, "a race"},
	}
	tests := []test{{ID: "still"}, {ID: "other"}, {ID: "better"}, {ID: "worse"}, {ID: "added"}, {ID: "uncertain"}}
	got := old.renew(tests, map[string]finding{
		"still": {result: fail}, "other": {result: setup}, "better": {result: pass}, "worse": {result: fail}, "added": {result: fail},
		"uncertain": {result: pass},
	})
	want := expectations{
		"still": {fail, "a reason"}, "other": {setup, "kept, though it fails otherwise"},
		"better": {result: pass}, "worse": {result: fail}, "added": {result: fail},
		"uncertain": {varies, "a race"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(expectation{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"added", "worse"}, got.withoutReason()); diff != "" {
		t.Errorf("without a reason (-want +got):\n%s", diff)
	}
}
