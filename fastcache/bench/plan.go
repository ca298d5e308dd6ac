package main

import "slices"

// All goals but one are about 64 connections; with more only the core contenders are
// measured, to keep a run short.
const fewConns = 64

// HTTP/2 carries its requests on few connections with many streams each.
const (
	h2Conns   = 8
	h2Streams = 16
)

var (
	allSizes = []int{512, 4 << 10, 16 << 10, 64 << 10, 1 << 20, 3 << 20}
	allConns = []int{fewConns, 256}
	missCell = cell{Kind: misses, Size: 4 << 10, Conns: fewConns}
	h2Cells  = []cell{{h2, 4 << 10, h2Conns}, {h2, 64 << 10, h2Conns}}
)

// step is one leg to come.
type step struct {
	cell   cell
	server *server
	round  int
}

// plan is the order of the legs: in every round each cell, and in each cell each
// contender, directly one after another, so that what disturbs the machine for longer
// than a leg disturbs those who are compared alike. Every second round goes backwards,
// and after it another one begins, so that nobody always follows the same one.
func plan(rounds int, cells []cell, servers []*server) []step {
	var steps []step
	for round := range rounds {
		for i, c := range cells {
			var in []*server
			for _, s := range servers {
				if (s.most == 0 || c.Size <= s.most) && (c.Kind != hits || c.Conns == fewConns || s.core) {
					in = append(in, s)
				}
			}
			if len(in) == 0 {
				continue
			}
			turn := (round/2 + i) % len(in)
			order := slices.Concat(in[turn:], in[:turn])
			if round%2 == 1 {
				slices.Reverse(order)
			}
			for _, s := range order {
				steps = append(steps, step{c, s, round})
			}
		}
	}
	return steps
}

// hitCells are the cells of the hit path.
func hitCells(sizes, conns []int) []cell {
	var cells []cell
	for _, c := range conns {
		for _, size := range sizes {
			cells = append(cells, cell{hits, size, c})
		}
	}
	return cells
}
