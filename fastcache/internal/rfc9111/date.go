package rfc9111

import "time"

// ParseDate parses an HTTP date (RFC 9110 section 5.6.7) in any of its three
// forms: IMF-fixdate, RFC 850 and asctime.
//
// It is as strict as the grammar: one space where the grammar has one, two-digit
// hours, GMT as the only zone, days that the month has. Two things are looser.
// Letters match without regard to case, as the section allows (and as
// time.Parse does not for the zone). The name of the day is not checked against
// the date, since a recipient has nothing to gain from it.
//
// A leap second, 60 in the last minute of a day, is the first second of the next
// day, as in POSIX time. The two-digit year of the RFC 850 form is the latest
// that is not more than 50 years after now.
//
// It does not allocate.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	// The forms differ in the byte behind the name of the day.
	switch {
	case len(s) == len("Sun, 06 Nov 1994 08:49:37 GMT") && s[3] == ',':
		p := dateParser{s: s}
		p.name(shortDays[:])
		p.literal(", ")
		day := p.digits(2)
		p.literal(" ")
		month := p.name(months[:])
		p.literal(" ")
		year := p.digits(4)
		p.literal(" ")
		hour, minute, second := p.clock()
		p.literal(" gmt")
		return p.date(year, month, day, hour, minute, second)

	case len(s) == len("Sun Nov  6 08:49:37 1994") && s[3] == ' ':
		p := dateParser{s: s}
		p.name(shortDays[:])
		p.literal(" ")
		month := p.name(months[:])
		p.literal(" ")
		var day int
		if p.s[0] == ' ' {
			p.literal(" ")
			day = p.digits(1)
		} else {
			day = p.digits(2)
		}
		p.literal(" ")
		hour, minute, second := p.clock()
		p.literal(" ")
		return p.date(p.digits(4), month, day, hour, minute, second)

	default:
		p := dateParser{s: s}
		p.name(longDays[:])
		p.literal(", ")
		day := p.digits(2)
		p.literal("-")
		month := p.name(months[:])
		p.literal("-")
		year := p.digits(2)
		p.literal(" ")
		hour, minute, second := p.clock()
		p.literal(" gmt")

		limit := now.AddDate(50, 0, 0)
		for year += now.Year()/100*100 + 100; ; year -= 100 {
			t, ok := p.date(year, month, day, hour, minute, second)
			// 29 February exists in some of the centuries only.
			if !ok && p.failed || ok && !t.After(limit) || year < 0 {
				return t, ok
			}
		}
	}
}

var (
	// The names in lower case, as dateParser.name wants them.
	shortDays = [...]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	longDays  = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
	months    = [...]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
)

// dateParser takes a date apart from the front. After the first mismatch all its
// methods return 0.
type dateParser struct {
	s      string
	failed bool
}

// literal takes want, which is in lower case.
func (p *dateParser) literal(want string) bool {
	if p.failed || len(p.s) < len(want) || !equalFold(p.s[:len(want)], want) {
		p.failed = true
		return false
	}
	p.s = p.s[len(want):]
	return true
}

// name takes one of the names and returns its index. No name is the beginning of
// another one.
func (p *dateParser) name(names []string) int {
	for i, name := range names {
		if len(p.s) >= len(name) && equalFold(p.s[:len(name)], name) {
			p.s = p.s[len(name):]
			return i
		}
	}
	p.failed = true
	return 0
}

// digits takes exactly n digits.
func (p *dateParser) digits(n int) (value int) {
	if p.failed || len(p.s) < n {
		p.failed = true
		return 0
	}
	for i := range n {
		if !isDigit(p.s[i]) {
			p.failed = true
			return 0
		}
		value = value*10 + int(p.s[i]-'0')
	}
	p.s = p.s[n:]
	return value
}

// clock takes hh:mm:ss.
func (p *dateParser) clock() (hour, minute, second int) {
	hour = p.digits(2)
	p.literal(":")
	minute = p.digits(2)
	p.literal(":")
	second = p.digits(2)
	return hour, minute, second
}

// date makes a time of the parts. month counts from 0. It fails if anything is
// out of range or left over.
func (p *dateParser) date(year, month, day, hour, minute, second int) (time.Time, bool) {
	leap := second == 60 && hour == 23 && minute == 59
	if p.failed || p.s != "" || hour > 23 || minute > 59 || second > 59 && !leap {
		p.failed = true
		return time.Time{}, false
	}
	midnight := time.Date(year, time.Month(month+1), day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != day || day == 0 {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month+1), day, hour, minute, second, 0, time.UTC), true
}

// fieldDate returns the date in a field that has exactly one line.
func fieldDate(h map[string][]string, name string, now time.Time) (time.Time, bool) {
	value, ok := single(h, name)
	if !ok {
		return time.Time{}, false
	}
	return ParseDate(value, now)
}
