package rfc9111_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestInitialAge_4_2_3(t *testing.T) {
	tests := []struct {
		name  string
		delay time.Duration // from request to response
		lines []string
		want  time.Duration
	}{
		{"nothing", 0, nil, 0},
		{"date is now", 0, []string{"Date: " + date(0)}, 0},
		{"apparent age", 0, []string{"Date: " + date(-7200)}, 7200 * time.Second},
		{"date in the future", 0, []string{"Date: " + date(10)}, 0},
		{"age", 0, []string{"Date: " + date(0), "Age: 7200"}, 7200 * time.Second},
		{"age with delay", 1500 * time.Millisecond, []string{"Date: " + date(0), "Age: 10"}, 11500 * time.Millisecond},
		{"delay alone", 1500 * time.Millisecond, nil, 1500 * time.Millisecond},
		{"greater of both: apparent", 2 * time.Second, []string{"Date: " + date(-60), "Age: 10"}, time.Minute},
		{"greater of both: corrected", 2 * time.Second, []string{"Date: " + date(-5), "Age: 10"}, 12 * time.Second},
		{"slow date", 0, []string{"Date: " + date(-10), "Age: 25"}, 25 * time.Second},
		{"fast date", 0, []string{"Date: " + date(10), "Age: 15"}, 15 * time.Second},
		{"malformed date", 0, []string{"Date: foo", "Age: 3"}, 3 * time.Second},
		{"two dates", 0, []string{"Date: " + date(-60), "Date: " + date(-60)}, 0},
		{"malformed age", 0, []string{"Age: abc"}, 0},
		{"request after response", -time.Hour, []string{"Age: 3"}, 3 * time.Second},
		{"huge", 0, []string{"Age: 99999999999"}, maxDelta},
		{"huge with delay", time.Hour, []string{"Age: 99999999999"}, maxDelta},
		{"ancient", 0, []string{"Date: Sat, 01 Jan 0000 00:00:00 GMT"}, maxDelta},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := rfc9111.InitialAge(header(tt.lines...), now.Add(-tt.delay), now); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// Date has whole seconds: the rest of the second is no age.
func TestInitialAge_FractionOfDate(t *testing.T) {
	received := now.Add(900 * time.Millisecond)
	if got := rfc9111.InitialAge(header("Date: "+date(0)), received, received); got != 0 {
		t.Errorf("%v, want 0", got)
	}
}

func TestInitialAge_Bounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := rapid.Int64Range(-1<<40, 1<<40)
		h := header("Age: "+rapid.String().Draw(t, "age"), "Date: "+time.Unix(second.Draw(t, "date"), 0).Format(time.RFC1123))
		got := rfc9111.InitialAge(h, time.Unix(second.Draw(t, "request"), 0), time.Unix(second.Draw(t, "response"), 0))
		if got < 0 || got > maxDelta {
			t.Errorf("%v", got)
		}
	})
}
