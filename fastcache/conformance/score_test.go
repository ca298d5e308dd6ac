package main

import (
	"slices"
	"testing"
)

func TestScoreOf(t *testing.T) {
	tests := []test{
		{ID: "gate", Kind: "required"},
		{ID: "open", Kind: "required"},
		{ID: "behind", Kind: "optimal", DependsOn: []string{"open", "gate"}},
		{ID: "far-behind", Kind: "optimal", DependsOn: []string{"behind"}},
		{ID: "behind-open", Kind: "optimal", DependsOn: []string{"open"}},
		{ID: "circle-1", Kind: "check", DependsOn: []string{"circle-2"}},
		{ID: "circle-2", Kind: "check", DependsOn: []string{"circle-1"}},
		{ID: "failed", Kind: "check", DependsOn: []string{"open"}},
		{ID: "setup", Kind: "check"},
		{ID: "fine", Kind: "check"},
		{ID: "excused", Kind: "check"},
		{ID: "excused-behind", Kind: "check", DependsOn: []string{"gate"}},
	}
	findings := map[string]finding{
		"gate": {result: fail}, "failed": {result: fail}, "setup": {result: setup},
		"excused": {result: fail}, "excused-behind": {result: fail},
	}
	for _, id := range []string{"open", "behind", "far-behind", "behind-open", "circle-1", "circle-2", "fine"} {
		findings[id] = finding{result: pass}
	}
	// A test that passes is not excused, whatever its reason says, and one that
	// its gate keeps from counting is not either.
	excuses := []string{"excused", "excused-behind", "open", "behind"}
	got := scoreOf(tests, findings, func(id string) bool { return slices.Contains(excuses, id) })
	want := map[string][verdicts]int{
		"required": {passed: 1, failed: 1},
		"optimal":  {passed: 1, dependencyFailed: 2},
		"check":    {passed: 1, failed: 1, setupFailed: 1, dependencyFailed: 2, excused: 2},
	}
	for kind, w := range want {
		if *got[kind] != w {
			t.Errorf("%s: %v, want %v", kind, *got[kind], w)
		}
	}
	if line := got.table()[4]; line != "| check | 7 | 1 | 1 | 1 | 2 | 2 |" {
		t.Errorf("the line of the checks is %q", line)
	}
}
