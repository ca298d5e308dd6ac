package main

import "fmt"

// goal is a bound on a ratio between two contenders in a cell.
type goal struct {
	cell   cell
	server string
	to     string // "": the better nginx of the cell
	figure value
	atMost bool // the bound is an upper one
	bound  float64
}

// verdict is what a run says of a goal.
type verdict struct {
	ratio float64
	word  string // pass, short, or why there is no ratio
}

func (g goal) judge(r *results) verdict {
	to := g.to
	if to == "" {
		to = r.nginx(g.cell)
	}
	ratio, ok := r.ratio(g.cell, g.server, to, g.figure)
	switch {
	case ok && (g.atMost && ratio <= g.bound || !g.atMost && ratio >= g.bound):
		return verdict{ratio, "pass"}
	case ok:
		return verdict{ratio, "short"}
	}
	for _, name := range []string{g.server, to} {
		if why := r.LeftOut[name]; why != "" {
			return verdict{word: why}
		}
	}
	return verdict{word: "not measured"}
}

// text is the verdict as a cell of a table: "0.61 pass (>= 0.60)".
func (g goal) text(r *results) string {
	sign := ">="
	if g.atMost {
		sign = "<="
	}
	bound := fmt.Sprintf("(%s %.2f)", sign, g.bound)
	v := g.judge(r)
	if v.word != "pass" && v.word != "short" {
		return v.word + " " + bound
	}
	return fmt.Sprintf("%.2f %s %s", v.ratio, v.word, bound)
}

// row is a row of the contract's table: for one body size the least ratio of requests
// per second to nginx, by mode, and the most processor time of the fast path.
type row struct {
	cell                                cell
	plain, wrapped, fast, fastCPUAtMost float64
}

var contract = []row{
	{cell{hits, 512, 64}, 0.60, 0.63, 1.5, 0.65},
	{cell{hits, 4 << 10, 64}, 0.47, 0.55, 1.4, 0.65},
	{cell{hits, 16 << 10, 64}, 0.45, 0.55, 1.05, 0.9},
	{cell{hits, 64 << 10, 64}, 0.72, 0.87, 1.1, 0.95},
	{cell{hits, 1 << 20, 64}, 1.0, 1.3, 1.3, 0.8},
	{cell{hits, 3 << 20, 64}, 1.2, 1.2, 1.4, 1.2},
}

// goals are the goals of the row, in the order of the table's columns.
func (r row) goals() []goal {
	return []goal{
		{cell: r.cell, server: plain, figure: perSecond, bound: r.plain},
		{cell: r.cell, server: wrapped, figure: perSecond, bound: r.wrapped},
		{cell: r.cell, server: fast, figure: perSecond, bound: r.fast},
		{cell: r.cell, server: fast, figure: cpu, atMost: true, bound: r.fastCPUAtMost},
	}
}

// further are the goals beside the table.
func further() []goal {
	all := []goal{{cell: cell{hits, 4 << 10, 256}, server: fast, figure: perSecond, bound: 1.7}}
	for _, row := range contract {
		if row.cell.Size <= 64<<10 {
			all = append(all, goal{cell: row.cell, server: plain, to: fileServer, figure: perSecond, bound: 2})
		}
	}
	for _, row := range contract {
		all = append(all, goal{cell: row.cell, server: fast, to: varnish, figure: perSecond, bound: 1})
	}
	return append(all,
		goal{cell: missCell, server: plain, to: reverseProxy, figure: perSecond, bound: 0.8},
		goal{cell: h2Cells[0], server: plain, to: fileServer, figure: perSecond, bound: 1.6},
	)
}
