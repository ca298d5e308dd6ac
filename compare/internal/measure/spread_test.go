package measure_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

func TestSpreadOf(t *testing.T) {
	tests := map[string]struct {
		xs   []float64
		want measure.Spread
	}{
		"one":      {[]float64{3}, measure.Spread{Median: 3, Min: 3, Max: 3}},
		"odd":      {[]float64{9, 1, 5}, measure.Spread{Median: 5, Min: 1, Max: 9}},
		"even":     {[]float64{4, 1, 2, 9}, measure.Spread{Median: 3, Min: 1, Max: 9}},
		"repeated": {[]float64{2, 2, 2, 7}, measure.Spread{Median: 2, Min: 2, Max: 7}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.xs)
			if got := measure.SpreadOf(tc.xs); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if !slices.Equal(before, tc.xs) {
				t.Errorf("the sample was changed to %v", tc.xs)
			}
		})
	}
	if s := measure.SpreadOf(nil); !math.IsNaN(s.Median) || !math.IsNaN(s.Min) || !math.IsNaN(s.Max) {
		t.Errorf("an empty sample gives %v, want NaN", s)
	}
}

// Half of the sample is on either side of a median, whatever the sample.
func TestSpreadOf_SplitsTheSample(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		xs := make([]float64, 1+r.IntN(20))
		for i := range xs {
			xs[i] = float64(r.IntN(10))
		}
		s := measure.SpreadOf(xs)
		var below, above int
		for _, x := range xs {
			if x < s.Median {
				below++
			}
			if x > s.Median {
				above++
			}
		}
		if below > len(xs)/2 || above > len(xs)/2 || s.Min != slices.Min(xs) || s.Max != slices.Max(xs) {
			t.Fatalf("%v gives %v", xs, s)
		}
	}
}

func TestNumber(t *testing.T) {
	for want, x := range map[string]float64{
		"-": math.NaN(), "0": 0, "0.85": 0.85, "1.00": 1, "9.99": 9.99, "10.0": 9.996, "12.6": 12.57, "100": 99.96, "4194304": 4 << 20, "-3.50": -3.5,
	} {
		if got := measure.Number(x); got != want {
			t.Errorf("Number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestSpread_String(t *testing.T) {
	for want, s := range map[string]measure.Spread{
		"12.6 [11.9..20.9]":  {Median: 12.57, Min: 11.9, Max: 20.9},
		"12.6† [11.9..20.9]": {Median: 12.57, Min: 11.9, Max: 20.9, Disturbed: true},
		"-":                  measure.SpreadOf(nil),
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpread_Scale(t *testing.T) {
	got := measure.Spread{Median: 4, Min: 2, Max: 8}.Scale(0.5)
	if want := (measure.Spread{Median: 2, Min: 1, Max: 4}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
