package pool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

// Report renders everything in Markdown, headings from level 3 on: how it was measured, the goals, and a table for each
// comparison, those that went against bytebufferpool included. Tables without a row are left out.
func Report(facts measure.Facts, e Effort, m Measured) string {
	var b strings.Builder
	b.WriteString(facts.Lines())
	fmt.Fprintf(&b, "- Interleaved rounds in one process: %d of %s a case, %d for single operations; medians, and [least..greatest] where the spread matters. "+
		"A ratio (x) is that of two medians of the same run, its spread that of the ratios within one round. Quote ratios: nanoseconds move with the machine.\n", e.Rounds, e.Stretch, e.Single)
	disturbed, of := m.Results.Disturbed()
	fmt.Fprintf(&b, "- Other processes disturbed %d of %d stretches, after up to %d tries each; those count too. %s marks a figure for which that were more than half: it tells more about the machine.\n",
		disturbed, of, e.Tries, measure.DisturbedMark)
	if cas := (measure.Key{Group: "Fixed", Case: casName, Procs: 1}); m.Results.Has(cas) {
		fmt.Fprintf(&b, "- An uncontended compare-and-swap takes %s ns on this machine. A lease needs two, a raw slice two, sync.Pool none: what that costs differs between processors by a factor of five, and with it every ratio to sync.Pool. Clearing 1 KiB takes %s ns.\n",
			measure.Number(m.Results.Time(cas).Median), measure.Number(m.Results.Time(measure.Key{Group: "Fixed", Case: clearName, Procs: 1}).Median))
	}
	one, two := measure.Key{Group: "Fixed", Case: baseline, Procs: 1}, measure.Key{Group: "Fixed", Case: baseline, Procs: 2}
	if m.Results.Has(one) && m.Results.Has(two) {
		fmt.Fprintf(&b, "- sync.Pool, which shares nothing between processors, did %sx as much with two CPUs as with one: more scaling than that this machine did not allow in this run.\n",
			multiple(m.Results, one, two))
	}
	goals := Goals(m)
	reached := 0
	for _, g := range goals {
		if g.Verdict() == measure.Reached {
			reached++
		}
	}
	section := func(title, text string, t measure.Table) {
		if t.Rows() > 0 {
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s", title, text, t)
		}
	}
	section(fmt.Sprintf("Goals: %d of %d reached", reached, len(goals)),
		"The limit is in parentheses behind each figure; a figure beyond it is in bold. x is a multiple of a hand-written sync.Pool with a cutoff, if nothing else is said.",
		measure.GoalTable(goals))
	section("Slices: borrow 1 KiB, touch it, return it",
		"Wall time of one operation with one goroutine at cpu 1, with two at cpu 2, and with 128 goroutines at cpu 2. The divisor of x is sync.Pool in the same column.",
		sliceTable(m.Results))
	section("Slices: other patterns, as a multiple of sync.Pool in the same pattern",
		fmt.Sprintf("16 held: %d slices out at once. Fresh: each goroutine does %d operations and ends. Depth: each few operations at another depth of the stack, which is a shard miss for pools that choose by it. Handoff: one goroutine borrows, another returns.", held, freshCycles),
		patternTable(m.Results))
	section("Slices: a new pool, and the first operation after a collection",
		"One operation at a time: two readings of the clock are in every figure, and caches that the collection has cooled.",
		lifecycleTable(m.Results))
	section("Buffers", "Time of filling one buffer and its return, at cpu 1. Growth: 16 KiB in writes of 64 B. 2 and 8 MiB: in writes of 4 KiB. ReadFrom: from a reader of unknown length.",
		bufferTable(m.Results, false))
	section("Buffers: cold", "The same with a new pool each time: what is allocated until the buffer is full.",
		bufferTable(m.Results, true))
	section("Memory in a fresh process", "HeapAlloc in MiB when all slices are out, when all are returned, and after each of three collections; medians.",
		peakTable(m.Peaks))
	return b.String()
}

// sliceTitle returns the title of a line.
func sliceTitle(name string) string {
	for _, p := range SlicePools() {
		if p.Name == name {
			return p.Title
		}
	}
	return name
}

// multiple formats the ratio of two medians.
func multiple(r *measure.Results, a, b measure.Key) string {
	return measure.Number(r.Ratio(a, b).Median)
}

func sliceTable(r *measure.Results) measure.Table {
	t := measure.Table{Columns: []string{"pool", "cpu 1, ns", "x", "cpu 2, ns", "x", "128 goroutines, ns", "x", "B/op", "allocs/op"}}
	for _, p := range SlicePools() {
		k := measure.Key{Group: "Fixed", Case: p.Name, Procs: 1}
		if !r.Has(k) {
			continue
		}
		cells := []string{p.Title}
		for _, c := range []struct {
			group string
			procs int
		}{{"Fixed", 1}, {"Fixed", 2}, {"Crowd", 2}} {
			k := measure.Key{Group: c.group, Case: p.Name, Procs: c.procs}
			div := measure.Key{Group: c.group, Case: baseline, Procs: c.procs}
			cells = append(cells, r.Time(k).String(), multiple(r, k, div))
		}
		t.Add(append(cells, measure.Count(r.Bytes(k).Median), measure.Count(r.Allocs(k).Median))...)
	}
	return t
}

func patternTable(r *measure.Results) measure.Table {
	type column struct {
		title, group string
		procs        int
	}
	columns := []column{
		{"16 held, cpu 1", "Hold", 1},
		{"cpu 2", "Hold", 2},
		{"fresh, cpu 1", "Fresh", 1},
		{"cpu 2", "Fresh", 2},
		{"depth, cpu 1", "Depth", 1},
		{"cpu 2", "Depth", 2},
		{"handoff, cpu 1", "Handoff", 1},
		{"cpu 2", "Handoff", 2},
	}
	t := measure.Table{Columns: []string{"pool"}}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.title)
	}
	for _, p := range SlicePools() {
		if !r.Has(measure.Key{Group: "Hold", Case: p.Name, Procs: 1}) {
			continue
		}
		cells := []string{p.Title}
		for _, c := range columns {
			k := measure.Key{Group: c.group, Case: p.Name, Procs: c.procs}
			cells = append(cells, multiple(r, k, measure.Key{Group: c.group, Case: baseline, Procs: c.procs}))
		}
		t.Add(cells...)
	}
	return t
}

func lifecycleTable(r *measure.Results) measure.Table {
	t := measure.Table{Columns: []string{
		"pool", "new, ns", "B", "allocs", "after 1 GC, ns", "x", "B", "allocs", "after 2 GCs, ns", "x", "B", "allocs",
	}}
	for _, p := range SlicePools() {
		if !r.Has(measure.Key{Group: "AfterGC1", Case: p.Name, Procs: 1}) {
			continue
		}
		cells := []string{p.Title}
		for _, group := range []string{"Cold", "AfterGC1", "AfterGC2"} {
			k := measure.Key{Group: group, Case: p.Name, Procs: 1}
			cells = append(cells, measure.Number(r.Time(k).Median))
			if group != "Cold" {
				cells = append(cells, multiple(r, k, measure.Key{Group: group, Case: baseline, Procs: 1}))
			}
			cells = append(cells, measure.Count(r.Bytes(k).Median), measure.Count(r.Allocs(k).Median))
		}
		t.Add(cells...)
	}
	return t
}

func bufferTable(r *measure.Results, cold bool) measure.Table {
	t := measure.Table{Columns: []string{"buffer"}}
	var shown []write
	for _, w := range writes() {
		if w.cold == cold {
			shown = append(shown, w)
			t.Columns = append(t.Columns, w.title()+", us", "x", "KiB", "allocs")
		}
	}
	for _, p := range BufferPools() {
		if !slices.ContainsFunc(shown, func(w write) bool { return r.Has(measure.Key{Group: w.name, Case: p.Name, Procs: 1}) }) {
			continue
		}
		cells := []string{p.Title}
		for _, w := range shown {
			k := measure.Key{Group: w.name, Case: p.Name, Procs: 1}
			cells = append(cells,
				measure.Number(r.Time(k).Median/1000), multiple(r, k, measure.Key{Group: w.name, Case: baselineBuffer, Procs: 1}),
				measure.Number(r.Bytes(k).Median/1024), measure.Count(r.Allocs(k).Median))
		}
		t.Add(cells...)
	}
	return t
}

// title returns a short name for a column.
func (w write) title() string {
	switch {
	case w.piece == 0:
		return fmt.Sprintf("ReadFrom %d MiB", w.total>>20)
	case w.total < 1<<20:
		return fmt.Sprintf("growth to %d KiB", w.total>>10)
	default:
		return fmt.Sprintf("%d MiB", w.total>>20)
	}
}

func peakTable(rows []PeakRow) measure.Table {
	t := measure.Table{Columns: []string{"pool", "held at once", "held", "returned", "GC 1", "GC 2", "GC 3", "retained, as the pool tells"}}
	for _, row := range rows {
		cells := []string{sliceTitle(row.Pool), row.Load.String()}
		for _, step := range []func(PeakSample) uint64{
			func(s PeakSample) uint64 { return s.Held },
			func(s PeakSample) uint64 { return s.Released },
			func(s PeakSample) uint64 { return s.GC1 },
			func(s PeakSample) uint64 { return s.GC2 },
			func(s PeakSample) uint64 { return s.GC3 },
		} {
			cells = append(cells, fmt.Sprintf("%.2f", row.Spread(step).Median))
		}
		retained := "-"
		if len(row.Samples) > 0 && row.Samples[0].Retained >= 0 {
			retained = fmt.Sprintf("%.2f MiB", float64(row.Samples[0].Retained)/(1<<20))
		}
		t.Add(append(cells, retained)...)
	}
	return t
}

// Summary is the report for programs.
type Summary struct {
	Facts  measure.Facts `json:"facts"`
	Rounds int           `json:"rounds"`
	Goals  []GoalSummary `json:"goals"`
	Cases  []CaseSummary `json:"cases"`
	Peaks  []PeakRow     `json:"peaks,omitempty"`
}

// GoalSummary is a goal with its figures as they are printed.
type GoalSummary struct {
	Number  int             `json:"number"`
	Text    string          `json:"text"`
	Verdict measure.Verdict `json:"verdict"`
	Figures []string        `json:"figures"`
}

// CaseSummary is one case, reduced.
type CaseSummary struct {
	Group  string         `json:"group"`
	Case   string         `json:"case"`
	Procs  int            `json:"procs"`
	Ns     measure.Spread `json:"ns"`
	Bytes  float64        `json:"bytes"`
	Allocs float64        `json:"allocs"`
}

// Summarize returns the report for programs.
func Summarize(facts measure.Facts, e Effort, m Measured) Summary {
	out := Summary{Facts: facts, Rounds: e.Rounds, Peaks: m.Peaks}
	for _, g := range Goals(m) {
		s := GoalSummary{Number: g.Number, Text: g.Text, Verdict: g.Verdict()}
		for _, c := range g.Checks {
			s.Figures = append(s.Figures, c.String())
		}
		out.Goals = append(out.Goals, s)
	}
	for k := range m.Results.All() {
		out.Cases = append(out.Cases, CaseSummary{
			Group: k.Group, Case: k.Case, Procs: k.Procs,
			Ns: m.Results.Time(k), Bytes: m.Results.Bytes(k).Median, Allocs: m.Results.Allocs(k).Median,
		})
	}
	return out
}
