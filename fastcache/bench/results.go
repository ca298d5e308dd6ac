package main

import (
	"cmp"
	"maps"
	"slices"
)

// results are all legs of a run and what was left out.
type results struct {
	Machine machine           `json:"machine"`
	LeftOut map[string]string `json:"left_out"` // contender: why
	Legs    []leg             `json:"legs"`
	Allocs  []allocation      `json:"allocations"`
	Failed  []string          `json:"failed,omitempty"` // legs that did not measure what they should, and why
	Broken  string            `json:"broken,omitempty"` // why the run ended early
}

// cells returns the cells that have legs, in the order of kind, connections, size.
func (r *results) cells() []cell {
	seen := make(map[cell]bool)
	for _, l := range r.Legs {
		seen[l.cell] = true
	}
	order := []kind{hits, misses, h2}
	return slices.SortedFunc(maps.Keys(seen), func(a, b cell) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(a.Conns, b.Conns), cmp.Compare(a.Size, b.Size))
	})
}

// legsOf returns a contender's legs in a cell, by round.
func (r *results) legsOf(c cell, server string) map[int]leg {
	legs := make(map[int]leg)
	for _, l := range r.Legs {
		if l.cell == c && l.Server == server {
			legs[l.Round] = l
		}
	}
	return legs
}

// value picks a figure of a leg.
type value func(leg) float64

func perSecond(l leg) float64 { return l.PerSecond }
func cpu(l leg) float64       { return l.CPU }
func p50(l leg) float64       { return l.P50 }
func p99(l leg) float64       { return l.P99 }

// median is the median of a figure over the rounds. ok is false without legs.
func (r *results) median(c cell, server string, v value) (m float64, ok bool) {
	var all []float64
	for _, l := range r.legsOf(c, server) {
		all = append(all, v(l))
	}
	return median(all)
}

// ratio is the median over the rounds of a figure, divided by that of another
// contender in the same round. Rounds that lack one of the two do not count.
func (r *results) ratio(c cell, server, to string, v value) (m float64, ok bool) {
	others := r.legsOf(c, to)
	var all []float64
	for round, l := range r.legsOf(c, server) {
		if other, ok := others[round]; ok && v(other) > 0 {
			all = append(all, v(l)/v(other))
		}
	}
	return median(all)
}

// nginx is the variant of nginx's cache to compare with in a cell: the one that
// answers more requests.
func (r *results) nginx(c cell) string {
	on, okOn := r.median(c, nginxNopushOn, perSecond)
	off, okOff := r.median(c, nginxNopushOff, perSecond)
	if okOff && (!okOn || off > on) {
		return nginxNopushOff
	}
	return nginxNopushOn
}

func median(all []float64) (float64, bool) {
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	mid := len(all) / 2
	if len(all)%2 == 1 {
		return all[mid], true
	}
	return (all[mid-1] + all[mid]) / 2, true
}
