package measure

import (
	"fmt"
	"io"
	"iter"
	"math"
)

// Key names a case among all that were measured.
type Key struct {
	Group string
	Case  string
	Procs int // as in [Case]: 0 where GOMAXPROCS was left alone
}

// Results holds the samples of each case, in the order in which cases were first added. It is not safe for concurrent use.
type Results struct {
	keys    []Key
	samples map[Key][]Sample
}

// NewResults returns an empty collection.
func NewResults() *Results { return &Results{samples: make(map[Key][]Sample)} }

// Add appends a sample.
func (r *Results) Add(k Key, s Sample) {
	if _, ok := r.samples[k]; !ok {
		r.keys = append(r.keys, k)
	}
	r.samples[k] = append(r.samples[k], s)
}

// All iterates over the cases and their samples, in the order of the rounds.
func (r *Results) All() iter.Seq2[Key, []Sample] {
	return func(yield func(Key, []Sample) bool) {
		for _, k := range r.keys {
			if !yield(k, r.samples[k]) {
				return
			}
		}
	}
}

// Has tells whether the case was measured.
func (r *Results) Has(k Key) bool { return len(r.samples[k]) > 0 }

// Disturbed returns how many of the samples were disturbed by other processes, and how many there are.
func (r *Results) Disturbed() (disturbed, of int) {
	for _, samples := range r.samples {
		for _, s := range samples {
			if of++; s.Disturbed() {
				disturbed++
			}
		}
	}
	return disturbed, of
}

// Time returns the nanoseconds of one operation.
func (r *Results) Time(k Key) Spread {
	s := r.spread(k, Sample.NsPerOp)
	disturbed := 0
	for _, sample := range r.samples[k] {
		if sample.Disturbed() {
			disturbed++
		}
	}
	s.Disturbed = disturbed > len(r.samples[k])/2
	return s
}

// Allocs returns the allocations of one operation.
func (r *Results) Allocs(k Key) Spread { return r.spread(k, Sample.AllocsPerOp) }

// Bytes returns the bytes allocated by one operation.
func (r *Results) Bytes(k Key) Spread { return r.spread(k, Sample.BytesPerOp) }

func (r *Results) spread(k Key, of func(Sample) float64) Spread {
	xs := make([]float64, len(r.samples[k]))
	for i, s := range r.samples[k] {
		xs[i] = of(s)
	}
	return SpreadOf(xs)
}

// Ratio returns the time of a as a multiple of the time of b: the ratio of the medians, and the least and the greatest ratio
// within one round. It is NaN when one of them was not measured.
func (r *Results) Ratio(a, b Key) Spread {
	return r.pair(a, b, func(a, b float64) float64 { return a / b })
}

// Difference returns the time of a less the time of b in nanoseconds, with the spread as in [Results.Ratio].
func (r *Results) Difference(a, b Key) Spread {
	return r.pair(a, b, func(a, b float64) float64 { return a - b })
}

func (r *Results) pair(a, b Key, of func(a, b float64) float64) Spread {
	as, bs := r.samples[a], r.samples[b]
	rounds := make([]float64, min(len(as), len(bs)))
	for i := range rounds {
		rounds[i] = of(as[i].NsPerOp(), bs[i].NsPerOp())
	}
	s, ta, tb := SpreadOf(rounds), r.Time(a), r.Time(b)
	s.Median, s.Disturbed = of(ta.Median, tb.Median), ta.Disturbed || tb.Disturbed
	return s
}

// WriteBenchmarks writes every sample as a line of Go's benchmark format, which benchstat reads:
//
//	BenchmarkGROUP/pool=CASE-PROCS  OPS  NS ns/op  BYTES B/op  ALLOCS allocs/op
//
// subject is the word in front of the case's name ("pool" above).
func (r *Results) WriteBenchmarks(w io.Writer, subject string) error {
	for k, samples := range r.All() {
		procs := ""
		if k.Procs > 1 { // as package testing does it
			procs = fmt.Sprintf("-%d", k.Procs)
		}
		for _, s := range samples {
			_, err := fmt.Fprintf(w, "Benchmark%s/%s=%s%s\t%d\t%s ns/op\t%.0f B/op\t%.0f allocs/op\n",
				k.Group, subject, k.Case, procs, s.Ops, exact(s.NsPerOp()), s.BytesPerOp(), s.AllocsPerOp())
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// exact keeps enough digits of a raw figure to compute with, and no more.
func exact(x float64) string {
	if math.Abs(x) < 1000 {
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
