package rfc9111_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestParseAge_5_1(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  int64 // seconds, -1 for none
	}{
		{"none", nil, -1},
		{"empty", []string{""}, -1},
		{"number", []string{"7200"}, 7200},
		{"zero", []string{"0"}, 0},
		{"white space", []string{"\t7200 "}, 7200},
		{"leading zeros", []string{"007"}, 7},
		{"alpha", []string{"abc"}, -1},
		{"negative", []string{"-7200"}, -1},
		{"plus", []string{"+7200"}, -1},
		{"decimal", []string{"7200.0"}, -1},
		{"quoted", []string{`"7200"`}, -1},
		{"2^31-1", []string{"2147483647"}, 2147483647},
		{"2^31", []string{"2147483648"}, 2147483648},
		{"2^31+1", []string{"2147483649"}, 2147483648},
		{"huge", []string{strings.Repeat("9", 100)}, 2147483648},
		{"list, old first", []string{"7200, 0"}, 7200},
		{"list, old last", []string{"0, 7200"}, 0},
		{"list, same", []string{"0, 0"}, 0},
		{"lines, old first", []string{"7200", "0"}, 7200},
		{"lines, old last", []string{"0", "7200"}, 0},
		{"first is malformed", []string{"x, 7200"}, -1},
		{"first is empty", []string{", 7200"}, 7200},
		{"first line is empty", []string{"", "7200"}, 7200},
		{"parameter", []string{"7200;foo=bar"}, -1},
		{"numeric parameter", []string{"7200;foo=111"}, -1},
		{"two numbers", []string{"7200 0"}, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := rfc9111.ParseAge(tt.lines)
			if ok != (tt.want >= 0) || ok && got != time.Duration(tt.want)*time.Second {
				t.Errorf("%v, %v, want %d s", got, ok, tt.want)
			}
		})
	}
}

func FuzzParseAge(f *testing.F) {
	f.Add("7200, 0", "1")
	f.Add(`"1`, "99999999999999999999")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, ok := rfc9111.ParseAge([]string{a, b})
		if got < 0 || got > maxDelta || !ok && got != 0 {
			t.Errorf("%v, %v", got, ok)
		}
	})
}
