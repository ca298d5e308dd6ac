package measure_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

func TestCheck_Verdict(t *testing.T) {
	nan := measure.Exactly(math.NaN())
	tests := map[string]struct {
		check measure.Check
		want  measure.Verdict
	}{
		"below an upper limit":   {measure.AtMost("a", measure.Exactly(0.8), 0.85, "x"), measure.Reached},
		"on an upper limit":      {measure.AtMost("a", measure.Exactly(0.85), 0.85, "x"), measure.Reached},
		"above an upper limit":   {measure.AtMost("a", measure.Exactly(0.8501), 0.85, "x"), measure.Short},
		"below a lower limit":    {measure.AtLeast("a", measure.Exactly(2.29), 2.3, "x"), measure.Short},
		"on a lower limit":       {measure.AtLeast("a", measure.Exactly(2.3), 2.3, "x"), measure.Reached},
		"above a lower limit":    {measure.AtLeast("a", measure.Exactly(7), 2.3, "x"), measure.Reached},
		"nothing allowed":        {measure.AtMost("a", measure.Exactly(1), 0, ""), measure.Short},
		"no figure, upper limit": {measure.AtMost("a", nan, 1, "x"), measure.NotMeasured},
		"no figure, lower limit": {measure.AtLeast("a", nan, 1, "x"), measure.NotMeasured},
		"the median counts":      {measure.AtMost("a", measure.Spread{Median: 0.8, Min: 0.5, Max: 3}, 0.85, "x"), measure.Reached},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.check.Verdict(); got != tc.want {
				t.Errorf("%v: got %v, want %v", tc.check, got, tc.want)
			}
		})
	}
}

func TestGoal_Verdict_IsThatOfTheWorstCheck(t *testing.T) {
	good := measure.AtMost("good", measure.Exactly(1), 2, "")
	bad := measure.AtMost("bad", measure.Exactly(3), 2, "")
	none := measure.AtMost("none", measure.Exactly(math.NaN()), 2, "")
	tests := map[string]struct {
		checks []measure.Check
		want   measure.Verdict
	}{
		"no check":         {nil, measure.NotMeasured},
		"all good":         {[]measure.Check{good, good}, measure.Reached},
		"bad last":         {[]measure.Check{good, bad}, measure.Short},
		"bad first":        {[]measure.Check{bad, good}, measure.Short},
		"one missing":      {[]measure.Check{good, none}, measure.NotMeasured},
		"missing, then ok": {[]measure.Check{none, good}, measure.NotMeasured},
		"missing and bad":  {[]measure.Check{none, bad, none}, measure.Short},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (measure.Goal{Checks: tc.checks}).Verdict(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCheck_String(t *testing.T) {
	tests := map[string]measure.Check{
		"Lease 0.66x [0.61..0.72] (<= 0.85x)": measure.AtMost("Lease", measure.Spread{Median: 0.66, Min: 0.61, Max: 0.72}, 0.85, "x"),
		"**libp2p 2.11x** (>= 2.30x)":         measure.AtLeast("libp2p", measure.Exactly(2.11), 2.3, "x"),
		"allocs 0 (<= 0)":                     measure.AtMost("allocs", measure.Exactly(0), 0, ""),
		"tests passed 10 (>= 10)":             measure.AtLeast("tests passed", measure.Exactly(10), 10, ""),
		"**allocs 40.5** [40..41] (<= 40)":    measure.AtMost("allocs", measure.Spread{Median: 40.5, Min: 40, Max: 41}, 40, ""),
		"Raw not measured (<= 1.00x)":         measure.AtMost("Raw", measure.Exactly(math.NaN()), 1, "x"),
		// Rounded to the limit it would look as if it kept it.
		"**Raw 1.003x** (<= 1.00x)": measure.AtMost("Raw", measure.Exactly(1.003), 1, "x"),
	}
	for want, check := range tests {
		if got := check.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestGoalTable(t *testing.T) {
	got := measure.GoalTable([]measure.Goal{
		{Number: 1, Text: "quick", Checks: []measure.Check{measure.AtMost("a", measure.Exactly(1), 2, "x"), measure.AtMost("b", measure.Exactly(2), 2, "x")}},
		{Number: 2, Text: "small", Checks: []measure.Check{measure.AtMost("c", measure.Exactly(3), 2, "x")}},
		{Number: 3, Text: "right"},
	}).String()
	want := `
|   # | goal  | measured                               | verdict          |
| --: | ----- | -------------------------------------- | ---------------- |
|   1 | quick | a 1.00x (<= 2.00x); b 2.00x (<= 2.00x) | reached          |
|   2 | small | **c 3.00x** (<= 2.00x)                 | **short**        |
|   3 | right |                                        | **not measured** |
`
	if got != want[1:] {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestVerdict_IsReadableInJSON(t *testing.T) {
	out, err := json.Marshal([]measure.Verdict{measure.Reached, measure.Short, measure.NotMeasured})
	if err != nil || string(out) != `["reached","short","not measured"]` {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestTable_Escapes(t *testing.T) {
	table := measure.Table{Columns: []string{"a", "b"}}
	table.Add("x|y")
	if got := table.String(); !strings.Contains(got, `| x\|y |`) {
		t.Errorf("a bar in a cell would split it:\n%s", got)
	}
	if table.Rows() != 1 {
		t.Errorf("%d rows, want 1", table.Rows())
	}
}
