package measure

import (
	"fmt"
	"math"
	"strings"
)

// Verdict is the outcome of a goal.
type Verdict uint8

const (
	// NotMeasured means that at least one figure is missing, and that none of those at hand misses its limit.
	NotMeasured Verdict = iota
	// Short means that at least one figure misses its limit.
	Short
	// Reached means that every figure was measured and keeps its limit.
	Reached
)

// String returns the word for a table.
func (v Verdict) String() string {
	switch v {
	case Short:
		return "short"
	case Reached:
		return "reached"
	default:
		return "not measured"
	}
}

// MarshalText makes a verdict readable in JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Check is one figure held against its limit. The limit itself is within it.
type Check struct {
	Name  string // what was measured
	Unit  string // behind the figures: "x", " ns"; "" for what is counted
	Value Spread // its Median is what counts; NaN means not measured

	// Limit is the greatest allowed value or, with AtLeast, the least.
	Limit   float64
	AtLeast bool
}

// AtMost returns a check of an upper limit.
func AtMost(name string, value Spread, limit float64, unit string) Check {
	return Check{Name: name, Value: value, Limit: limit, Unit: unit}
}

// AtLeast returns a check of a lower limit.
func AtLeast(name string, value Spread, limit float64, unit string) Check {
	return Check{Name: name, Value: value, Limit: limit, Unit: unit, AtLeast: true}
}

// Exactly turns a figure without a spread into a value for a check.
func Exactly(x float64) Spread { return Spread{Median: x, Min: x, Max: x} }

// Verdict compares the median with the limit.
func (c Check) Verdict() Verdict {
	v := c.Value.Median
	switch {
	case math.IsNaN(v):
		return NotMeasured
	case c.AtLeast && v >= c.Limit, !c.AtLeast && v <= c.Limit:
		return Reached
	default:
		return Short
	}
}

// String returns the figure, its spread if it has one, and the limit: "Lease 0.66x [0.61..0.72] (<= 0.85x)".
// A figure that misses its limit is in bold.
func (c Check) String() string {
	op := "<="
	if c.AtLeast {
		op = ">="
	}
	format := Number
	if c.Unit == "" {
		format = Count
	}
	limit := fmt.Sprintf("(%s %s%s)", op, format(c.Limit), c.Unit)
	v := c.Verdict()
	if v == NotMeasured {
		return fmt.Sprintf("%s not measured %s", c.Name, limit)
	}
	figure := c.Name + " " + distinct(c.Value.Median, c.Limit, format) + c.Unit + c.Value.mark()
	if v == Short {
		figure = "**" + figure + "**"
	}
	if c.Value.Min != c.Value.Max {
		figure += fmt.Sprintf(" [%s..%s]", format(c.Value.Min), format(c.Value.Max))
	}
	return figure + " " + limit
}

// distinct formats x so that it does not look like the limit that it is above or below.
func distinct(x, limit float64, format func(float64) string) string {
	s := format(x)
	for digits := 3; x != limit && s == format(limit) && digits <= 6; digits++ {
		if t := fmt.Sprintf("%.*f", digits, x); t != fmt.Sprintf("%.*f", digits, limit) {
			return t
		}
	}
	return s
}

// Goal is a promise, with every figure that it consists of.
type Goal struct {
	Number int
	Text   string
	Checks []Check
}

// Verdict is that of the worst check. A goal without a check was not measured.
func (g Goal) Verdict() Verdict {
	verdict := NotMeasured
	if len(g.Checks) > 0 {
		verdict = Reached
	}
	for _, c := range g.Checks {
		switch c.Verdict() {
		case Short:
			return Short
		case NotMeasured:
			verdict = NotMeasured
		}
	}
	return verdict
}

// GoalTable renders goals with what was measured and the verdict of each.
func GoalTable(goals []Goal) Table {
	t := Table{Columns: []string{"#", "goal", "measured", "verdict"}}
	for _, g := range goals {
		figures := make([]string, len(g.Checks))
		for i, c := range g.Checks {
			figures[i] = c.String()
		}
		verdict := g.Verdict().String()
		if g.Verdict() != Reached {
			verdict = "**" + verdict + "**"
		}
		t.Add(fmt.Sprint(g.Number), g.Text, strings.Join(figures, "; "), verdict)
	}
	return t
}
