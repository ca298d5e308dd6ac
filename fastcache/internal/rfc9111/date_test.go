package rfc9111_test

import (
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestParseDate_RFC9110_5_6_7(t *testing.T) {
	at := func(year int, month time.Month, day, hour, minute, second int) time.Time {
		return time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	}
	bad := time.Time{}
	aug := at(2050, time.August, 18, 2, 1, 18)
	tests := []struct {
		name string
		s    string
		want time.Time
	}{
		{"IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", at(1994, time.November, 6, 8, 49, 37)},
		{"RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", at(1994, time.November, 6, 8, 49, 37)},
		{"asctime", "Sun Nov  6 08:49:37 1994", at(1994, time.November, 6, 8, 49, 37)},
		{"asctime, two digits", "Sun Nov 16 08:49:37 1994", at(1994, time.November, 16, 8, 49, 37)},
		{"asctime, leading zero", "Sun Nov 06 08:49:37 1994", at(1994, time.November, 6, 8, 49, 37)},
		{"32 bits", "Tue, 19 Jan 2038 14:14:08 GMT", at(2038, time.January, 19, 14, 14, 8)},
		{"far future", "Sun, 21 Nov 2286 04:46:39 GMT", at(2286, time.November, 21, 4, 46, 39)},
		{"RFC 850, future", "Thursday, 18-Aug-50 02:01:18 GMT", aug},
		{"asctime, future", "Thu Aug  8 02:01:18 2050", at(2050, time.August, 8, 2, 1, 18)},
		{"case of the weekday", "THU, 18 Aug 2050 02:01:18 GMT", aug},
		{"case of the month", "Thu, 18 AUG 2050 02:01:18 GMT", aug},
		{"case of the zone", "Thu, 18 Aug 2050 02:01:18 gMT", aug},
		{"case, RFC 850", "tHURSDAY, 18-aUG-50 02:01:18 gmt", aug},
		{"case, asctime", "tHU aUG 18 02:01:18 2050", aug},
		{"weekday not checked", "Mon, 18 Aug 2050 02:01:18 GMT", aug},
		{"leap second", "Sat, 31 Dec 2016 23:59:60 GMT", at(2017, time.January, 1, 0, 0, 0)},
		{"29 February", "Thu, 29 Feb 2024 00:00:00 GMT", at(2024, time.February, 29, 0, 0, 0)},
		{"year 0", "Sat, 01 Jan 0000 00:00:00 GMT", at(0, time.January, 1, 0, 0, 0)},
		{"year 9999", "Fri, 31 Dec 9999 23:59:59 GMT", at(9999, time.December, 31, 23, 59, 59)},

		{"empty", "", bad},
		{"0", "0", bad},
		{"-1", "-1", bad},
		{"UTC", "Thu, 18 Aug 2050 02:01:18 UTC", bad},
		{"AEST", "Thu, 18 Aug 2050 02:01:18 AEST", bad},
		{"offset", "Thu, 18 Aug 2050 02:01:18 +0000", bad},
		{"no zone", "Thu, 18 Aug 2050 02:01:18", bad},
		{"two-digit year", "Thu, 18 Aug 50 02:01:18 GMT", bad},
		{"no comma", "Thu 18 Aug 2050 02:01:18 GMT", bad},
		{"double spaces", "Thu, 18  Aug  2050 02:01:18 GMT", bad},
		{"no space", "Thu,18 Aug 2050 02:01:18 GMT", bad},
		{"dashes", "Thu, 18-Aug-2050 02:01:18 GMT", bad},
		{"periods", "Thu, 18 Aug 2050 02.01.18 GMT", bad},
		{"one-digit hour", "Thu, 18 Aug 2050 2:01:18 GMT", bad},
		{"one-digit day", "Thu, 8 Aug 2050 02:01:18 GMT", bad},
		{"space for a digit", "Thu,  8 Aug 2050 02:01:18 GMT", bad},
		{"space in front", " Thu, 18 Aug 2050 02:01:18 GMT", bad},
		{"space behind", "Thu, 18 Aug 2050 02:01:18 GMT ", bad},
		{"list", "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT", bad},
		{"no such weekday", "Xyz, 18 Aug 2050 02:01:18 GMT", bad},
		{"no such month", "Thu, 18 Xyz 2050 02:01:18 GMT", bad},
		{"long month", "Thu, 18 August 2050 02:01:18 GMT", bad},
		{"short weekday, RFC 850", "Thu, 18-Aug-50 02:01:18 GMT", bad},
		{"long weekday, IMF", "Thursday, 18 Aug 2050 02:01:18 GMT", bad},
		{"hour 24", "Thu, 18 Aug 2050 24:00:00 GMT", bad},
		{"minute 60", "Thu, 18 Aug 2050 02:60:00 GMT", bad},
		{"second 60 in mid-day", "Thu, 18 Aug 2050 02:01:60 GMT", bad},
		{"second 61", "Sat, 31 Dec 2016 23:59:61 GMT", bad},
		{"day 0", "Thu, 00 Aug 2050 02:01:18 GMT", bad},
		{"day 32", "Thu, 32 Aug 2050 02:01:18 GMT", bad},
		{"30 February", "Thu, 30 Feb 2050 02:01:18 GMT", bad},
		{"29 February, common year", "Thu, 29 Feb 2050 02:01:18 GMT", bad},
		{"30 February, RFC 850", "Thursday, 30-Feb-50 02:01:18 GMT", bad},
		{"sign", "Thu, +8 Aug 2050 02:01:18 GMT", bad},
		{"NUL", "Thu, 18 Aug 2050 02:01:18 GM\x00", bad},
		{"weekday alone", "Thursday, ", bad},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := rfc9111.ParseDate(tt.s, now)
			if ok != !tt.want.IsZero() || !got.Equal(tt.want) {
				t.Errorf("ParseDate(%q) = %v, %v, want %v", tt.s, got, ok, tt.want)
			}
		})
	}
}

// A date more than 50 years ahead is meant to be the latest past one with these
// digits.
func TestParseDate_RFC850_TwoDigitYear(t *testing.T) {
	tests := []struct {
		now  string
		s    string
		year int
	}{
		{"2026-08-01", "Sunday, 01-Aug-76 00:00:00 GMT", 2076},
		{"2026-08-01", "Sunday, 01-Aug-76 00:00:01 GMT", 1976},
		{"2026-08-01", "Sunday, 06-Nov-94 08:49:37 GMT", 1994},
		{"2026-08-01", "Sunday, 06-Nov-00 08:49:37 GMT", 2000},
		{"2090-01-01", "Sunday, 06-Nov-10 08:49:37 GMT", 2110},
		{"2090-01-01", "Sunday, 06-Nov-90 08:49:37 GMT", 2090},
		{"1999-12-31", "Sunday, 06-Nov-00 08:49:37 GMT", 2000},
		{"2026-08-01", "Tuesday, 29-Feb-00 00:00:00 GMT", 2000},
	}
	for _, tt := range tests {
		reference, err := time.Parse(time.DateOnly, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := rfc9111.ParseDate(tt.s, reference); !ok || got.Year() != tt.year {
			t.Errorf("on %s %q is in %d (%v), want %d", tt.now, tt.s, got.Year(), ok, tt.year)
		}
	}
}

func TestParseDate_Format_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, "unix"), 0).UTC()
		for _, layout := range []string{http.TimeFormat, time.ANSIC} {
			if got, ok := rfc9111.ParseDate(want.Format(layout), now); !ok || !got.Equal(want) {
				t.Errorf("%q: %v, %v", want.Format(layout), got, ok)
			}
		}
		near := now.Add(time.Duration(rapid.Int64Range(-49, 49).Draw(t, "years")) * 365 * 24 * time.Hour)
		s := near.Format("Monday, 02-Jan-06 15:04:05 GMT")
		if got, ok := rfc9111.ParseDate(s, now); !ok || !got.Equal(near) {
			t.Errorf("%q: %v, %v, want %v", s, got, ok, near)
		}
	})
}

func TestParseDate_Allocs(t *testing.T) {
	for _, s := range []string{"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "x"} {
		noAllocs(t, s, func() { _, _ = rfc9111.ParseDate(s, now) })
	}
}

// Whatever is accepted is a date that the standard library reads in the same way,
// if it reads it at all.
func FuzzParseDate(f *testing.F) {
	f.Add("Sun, 06 Nov 1994 08:49:37 GMT")
	f.Add("Sunday, 06-Nov-94 08:49:37 GMT")
	f.Add("Sun Nov  6 08:49:37 1994")
	f.Add("Sat, 31 Dec 2016 23:59:60 GMT")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := rfc9111.ParseDate(s, now)
		if !ok {
			if !got.IsZero() {
				t.Errorf("%q: %v without ok", s, got)
			}
			return
		}
		if got.After(now.AddDate(8000, 0, 0)) || got.Location() != time.UTC {
			t.Errorf("%q: %v", s, got)
		}
		if std, err := http.ParseTime(s); err == nil && !std.Equal(got) && std.Year()%100 != got.Year()%100 {
			t.Errorf("%q: %v, net/http says %v", s, got, std)
		}
	})
}
