package main

import (
	"fmt"
	"slices"
	"strings"
)

// report writes a run as Markdown.
func report(r *results) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("# fastcache against nginx, Varnish and Caddy's file_server\n")
	for _, l := range r.Machine.lines() {
		line("%s", l)
	}
	if others, ok := othersBusy(r.Legs); ok {
		line("- other programs took %.0f %% of the machine (median over the legs; above a few percent the figures are noise)", 100*others)
	}
	if r.Machine.Rounds < 5 {
		line("- **fewer than 5 rounds: a look, and no verdict**")
	}
	for _, f := range r.Failed {
		line("- **a leg failed and is left out:** %s", f)
	}
	if r.Broken != "" {
		line("- **the run ended early:** %s", r.Broken)
	}

	line("\n## Goals\n")
	line("Requests per second: ratio to the better of nginx's proxy_cache with `tcp_nopush` on and off, inside a round, median of %d rounds.", r.Machine.Rounds)
	line("64 connections, HTTP/1.1 keep-alive. fastcache with its default tiers: bodies below promote_below in RAM, others on disk.\n")
	line("| body | nginx req/s | plain handler | with the connection wrapper | with the fast path | CPU per request, fast path / nginx |")
	line("|---|---|---|---|---|---|")
	for _, row := range contract {
		cells := []string{sizeName(row.cell.Size), figure(r, row.cell, r.nginx(row.cell), perSecond)}
		for _, g := range row.goals() {
			cells = append(cells, g.text(r))
		}
		line("| %s |", strings.Join(cells, " | "))
	}

	line("\n| further goal | ratio of req/s |")
	line("|---|---|")
	for _, g := range further() {
		to := g.to
		if to == "" {
			to = "nginx"
		}
		line("| %s: %s / %s | %s |", g.cell, g.server, to, g.text(r))
	}
	if len(r.Allocs) > 0 {
		line("\n| a hit in the handler alone | ns | bytes | allocations (goal 0) |")
		line("|---|---|---|---|")
		for _, a := range r.Allocs {
			line("| %s | %.0f | %d | %d |", a.Name, a.Nanos, a.Bytes, a.Objects)
		}
	}

	line("\n## All figures\n")
	line("Medians. Each: requests per second · ratio to nginx · CPU us per request of the server's processes · p50/p99 in ms.")
	for _, section := range []struct {
		title string
		kind  kind
		conns int
	}{
		{"Hits, 64 connections", hits, 64},
		{"Hits, 256 connections", hits, 256},
		{"Misses: every URL once", misses, missCell.Conns},
		{fmt.Sprintf("Hits over TLS and HTTP/2, %d connections of %d streams", h2Conns, h2Streams), h2, h2Conns},
	} {
		writeSection(line, r, section.title, section.kind, section.conns)
	}
	if len(r.LeftOut) > 0 {
		line("\n## Left out\n")
		for _, name := range contenderNames() {
			if why := r.LeftOut[name]; why != "" {
				line("- %s: %s", name, why)
			}
		}
	}
	return b.String()
}

// writeSection writes a table of the cells of one kind and number of connections.
func writeSection(line func(string, ...any), r *results, title string, k kind, conns int) {
	cells := slices.DeleteFunc(r.cells(), func(c cell) bool { return c.Kind != k || c.Conns != conns })
	if len(cells) == 0 {
		return
	}
	heading := []string{"server"}
	for _, c := range cells {
		heading = append(heading, sizeName(c.Size))
	}
	line("\n### %s\n", title)
	line("| %s |", strings.Join(heading, " | "))
	line("|%s", strings.Repeat("---|", len(heading)))
	for _, name := range contenderNames() {
		texts, measured := []string{name}, false
		for _, c := range cells {
			text := fullFigure(r, c, name)
			texts, measured = append(texts, text), measured || text != "–"
		}
		if measured {
			line("| %s |", strings.Join(texts, " | "))
		}
	}
}

// contenderNames are all contenders, each once, in the order of the tables.
func contenderNames() []string {
	var names []string
	for _, c := range slices.Concat(contenders, missContenders, h2Contenders) {
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// fullFigure is a cell of the tables of all figures.
func fullFigure(r *results, c cell, server string) string {
	rate, ok := r.median(c, server, perSecond)
	if !ok {
		return "–"
	}
	parts := []string{short(rate)}
	if ratio, ok := r.ratio(c, server, r.nginx(c), perSecond); ok {
		parts = append(parts, fmt.Sprintf("%.2f", ratio))
	}
	used, _ := r.median(c, server, cpu)
	parts = append(parts, fmt.Sprintf("%.1f", used))
	if mid, _ := r.median(c, server, p50); mid > 0 {
		high, _ := r.median(c, server, p99)
		parts = append(parts, fmt.Sprintf("%.2f/%.1f", mid/1000, high/1000))
	}
	return strings.Join(parts, " · ")
}

func figure(r *results, c cell, server string, v value) string {
	m, ok := r.median(c, server, v)
	if !ok {
		return "–"
	}
	return short(m)
}

// short writes a rate with three or four digits.
func short(n float64) string {
	if n >= 10_000 {
		return fmt.Sprintf("%.1fk", n/1000)
	}
	return fmt.Sprintf("%.0f", n)
}

// othersBusy is the median share of the machine that other programs took.
func othersBusy(legs []leg) (float64, bool) {
	var all []float64
	for _, l := range legs {
		all = append(all, l.OthersBusy)
	}
	return median(all)
}
