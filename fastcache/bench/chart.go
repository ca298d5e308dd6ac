package main

import (
	"fmt"
	"math"
	"strings"
)

// The chart: two panels of bars, by body size, as ratios to nginx. Lengths in pixels.
const (
	chartWidth  = 960
	panelHeight = 300
	panelTop    = 70 // room above the bars of a panel
	chartLeft   = 50
	chartRight  = 20
)

// series are the contenders of the chart, with their colours.
var series = []struct{ server, colour string }{
	{fileServer, "#b0b0b0"},
	{varnish, "#8c6bb1"},
	{bareNetHTTP, "#d8b365"},
	{plain, "#9ecae1"},
	{wrapped, "#4292c6"},
	{fast, "#08519c"},
}

// chart draws a run as SVG.
func chart(r *results) string {
	var b strings.Builder
	height := 2*panelHeight + 80
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, height)
	panel(&b, r, 0, "Requests per second / nginx proxy_cache (higher is better), 64 connections", perSecond)
	panel(&b, r, panelHeight, "CPU per request / nginx proxy_cache (lower is better), 64 connections", cpu)
	legend(&b, r, 2*panelHeight+30)
	b.WriteString("</svg>\n")
	return b.String()
}

// legend names the bars, in as many lines as that takes.
func legend(b *strings.Builder, r *results, y int) {
	const letter = 7 // more than the mean width of one
	x := chartLeft
	for _, s := range series {
		label := s.server
		if why := r.LeftOut[s.server]; why != "" {
			label += " (" + why + ")"
		}
		width := 40 + letter*len(label)
		if x+width > chartWidth {
			x, y = chartLeft, y+22
		}
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/>`, x, y, s.colour)
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", x+17, y+10, escape(label))
		x += width
	}
}

// panel draws bars of one figure. Those that are higher than the panel are cut, with
// their ratio beside them as at all others.
func panel(b *strings.Builder, r *results, top int, title string, v value) {
	const most = 3.0
	highest := 1.0
	for _, row := range contract {
		for _, s := range series {
			if ratio, ok := r.ratio(row.cell, s.server, r.nginx(row.cell), v); ok {
				highest = max(highest, min(ratio, most))
			}
		}
	}
	scale := math.Ceil(highest*4) / 4
	bottom := top + panelHeight
	y := func(ratio float64) float64 {
		return float64(bottom) - math.Min(ratio, scale)/scale*float64(panelHeight-panelTop)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="15">%s</text>`+"\n", chartLeft, top+30, escape(title))
	for mark := 0.0; mark <= scale; mark += 0.5 {
		colour := "#ddd"
		if mark == 1 {
			colour = "#000" // nginx
		}
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s"/>`, chartLeft, chartWidth-chartRight, y(mark), y(mark), colour)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%.1f</text>`+"\n", chartLeft-6, y(mark)+4, mark)
	}
	group := float64(chartWidth-chartLeft-chartRight) / float64(len(contract))
	bar := group / (float64(len(series)) + 1)
	for i, row := range contract {
		x := float64(chartLeft) + float64(i)*group + bar/2
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x+bar*float64(len(series))/2, bottom+16, sizeName(row.cell.Size))
		for _, s := range series {
			if ratio, ok := r.ratio(row.cell, s.server, r.nginx(row.cell), v); ok {
				fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s, %s: %.2f</title></rect>`, x, y(ratio), bar-2, float64(bottom)-y(ratio), s.colour, escape(s.server), sizeName(row.cell.Size), ratio)
				fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="9">%.2f</text>`+"\n", x+bar/2-1, y(ratio)-3, ratio)
			}
			x += bar
		}
	}
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
