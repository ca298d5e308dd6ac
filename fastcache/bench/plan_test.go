package main

import (
	"fmt"
	"testing"
)

func testServers() []*server {
	return []*server{
		{contender: contender{name: "a", core: true}},
		{contender: contender{name: "b"}},
		{contender: contender{name: "c", core: true}},
		{contender: contender{name: "d"}},
	}
}

// Every contender is measured once a round in every cell that it takes part in, and
// the legs of a cell are neighbours.
func TestPlan_EachOnceARound(t *testing.T) {
	few, many := cell{hits, 512, fewConns}, cell{hits, 512, 256}
	const rounds = 5
	count := make(map[string]int)
	changes := 0
	steps := plan(rounds, []cell{few, many}, testServers())
	for i, s := range steps {
		count[fmt.Sprint(s.cell.Conns, s.server.name, s.round)]++
		if i > 0 && (steps[i-1].cell != s.cell || steps[i-1].round != s.round) {
			changes++
		}
	}
	if want := rounds * (4 + 2); len(steps) != want || len(count) != want {
		t.Errorf("%d steps, %d different ones, want %d", len(steps), len(count), want)
	}
	if want := 2*rounds - 1; changes != want {
		t.Errorf("the cell changes %d times, want %d: its legs are not neighbours", changes, want)
	}
	for round := range rounds {
		if count[fmt.Sprint(256, "b", round)] != 0 {
			t.Error("b is not core and measured with 256 connections")
		}
	}
}

func TestPlan_LargestBody(t *testing.T) {
	servers := testServers()
	servers[1].most = 4096
	for _, s := range plan(1, []cell{{hits, 4096, fewConns}, {hits, 4097, fewConns}}, servers) {
		if s.server.name == "b" && s.cell.Size > 4096 {
			t.Error("b is measured with a body that it does not have")
		}
	}
}

// Over the rounds each contender is the first, and none always follows the same one.
func TestPlan_OrderChanges(t *testing.T) {
	first, before := make(map[string]bool), make(map[string]map[string]bool)
	steps := plan(4, []cell{{hits, 512, fewConns}}, testServers())
	for i, s := range steps {
		if i == 0 || steps[i-1].round != s.round {
			first[s.server.name] = true
			continue
		}
		if before[s.server.name] == nil {
			before[s.server.name] = make(map[string]bool)
		}
		before[s.server.name][steps[i-1].server.name] = true
	}
	for _, s := range testServers() {
		if len(before[s.name]) < 2 {
			t.Errorf("%s always follows %v", s.name, before[s.name])
		}
	}
	if len(first) < 3 {
		t.Errorf("only %v were first", first)
	}
}
