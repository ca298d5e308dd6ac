package measure

import (
	"fmt"
	"math"
	"slices"
)

// Spread is a sample reduced to what a table shows. All three are NaN for an empty sample.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`

	// Disturbed says that other processes had a part in more than half of the samples, so that the figure tells more about them.
	Disturbed bool `json:"disturbed,omitempty"`
}

// DisturbedMark stands behind a figure that is [Spread].Disturbed.
const DisturbedMark = "†"

// SpreadOf reduces xs, which it leaves as it is. The median of an even number of values is the mean of the middle two.
func SpreadOf(xs []float64) Spread {
	if len(xs) == 0 {
		return Spread{Median: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(xs))
	mid := len(sorted) / 2
	median := sorted[mid]
	if len(sorted)%2 == 0 {
		median = (sorted[mid-1] + sorted[mid]) / 2
	}
	return Spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// Scale returns the spread in another unit: each value times factor, which must not be negative.
func (s Spread) Scale(factor float64) Spread {
	s.Median, s.Min, s.Max = s.Median*factor, s.Min*factor, s.Max*factor
	return s
}

// String returns "median [min..max]" with three significant digits, and the mark; "-" for nothing.
func (s Spread) String() string {
	if math.IsNaN(s.Median) {
		return "-"
	}
	return fmt.Sprintf("%s%s [%s..%s]", Number(s.Median), s.mark(), Number(s.Min), Number(s.Max))
}

func (s Spread) mark() string {
	if s.Disturbed {
		return DisturbedMark
	}
	return ""
}

// Number formats x for people: three significant digits, no exponent, "-" for NaN.
func Number(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return "-"
	case a == 0 || a >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// Count formats what is counted: whole where it is whole, as [Number] elsewhere.
func Count(x float64) string {
	if x == math.Trunc(x) && !math.IsInf(x, 0) {
		return fmt.Sprintf("%.0f", x)
	}
	return Number(x)
}
