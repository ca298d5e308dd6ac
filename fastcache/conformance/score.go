package main

import (
	"fmt"
	"slices"
	"strings"
)

// kinds of tests, in the order of their weight.
var kinds = []string{"required", "optimal", "check"}

// verdict is what a test counts as. The suite does not judge a test when one that
// it depends on has not passed.
type verdict int

const (
	passed verdict = iota
	failed
	setupFailed
	dependencyFailed
	excused // not passed, with a reason why it should not
	verdicts
)

func (v verdict) String() string {
	return [...]string{"passed", "failed", "setup failed", "dependency failed", "excused"}[v]
}

// score counts the tests of each kind by verdict.
type score map[string]*[verdicts]int

// scoreOf judges the findings as the suite does. isExcused says which tests
// should not pass; it is asked only about those that do not.
func scoreOf(tests []test, findings map[string]finding, isExcused func(id string) bool) score {
	byID := make(map[string]test, len(tests))
	for _, t := range tests {
		byID[t.ID] = t
	}
	known := make(map[string]verdict, len(tests))
	var judge func(id string) verdict
	judge = func(id string) verdict {
		if v, ok := known[id]; ok {
			return v
		}
		known[id] = dependencyFailed // what a circle comes to
		var v verdict
		switch {
		case slices.ContainsFunc(byID[id].DependsOn, func(on string) bool { return judge(on) != passed }):
			v = dependencyFailed
		case findings[id].result == pass:
			v = passed
		case findings[id].result == setup:
			v = setupFailed
		default:
			v = failed
		}
		known[id] = v
		return v
	}
	s := make(score)
	for _, kind := range kinds {
		s[kind] = new([verdicts]int)
	}
	for _, t := range tests {
		v := judge(t.ID)
		if v != passed && findings[t.ID].result != pass && isExcused(t.ID) {
			v = excused
		}
		s[t.Kind][v]++
	}
	return s
}

// table returns the score as lines of a Markdown table.
func (s score) table() []string {
	head := []string{"kind", "tests"}
	for v := range verdicts {
		head = append(head, v.String())
	}
	lines := []string{row(head), "|" + strings.Repeat("---|", len(head))}
	for _, kind := range kinds {
		sum := 0
		cells := []string{kind, ""}
		for v := range verdicts {
			n := s[kind][v]
			sum += n
			cells = append(cells, fmt.Sprint(n))
		}
		cells[1] = fmt.Sprint(sum)
		lines = append(lines, row(cells))
	}
	return lines
}

func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
