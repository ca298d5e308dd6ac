package main

import "testing"

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		found    string // "" when the client says nothing
		expected string // "" when nothing is
		gone     bool   // not in the suite
		want     string // "", "loss" or "gain"
	}{
		"passes as expected":   {found: "pass", expected: "pass"},
		"fails as expected":    {found: "fail", expected: "fail"},
		"does not pass":        {found: "fail", expected: "pass", want: "loss"},
		"does not get so far":  {found: "setup", expected: "pass", want: "loss"},
		"passes now":           {found: "pass", expected: "fail", want: "gain"},
		"fails otherwise":      {found: "setup", expected: "fail", want: "gain"},
		"passes as it may":     {found: "pass", expected: "varies"},
		"fails as it may":      {found: "setup", expected: "varies"},
		"not run":              {expected: "fail", want: "loss"},
		"not known":            {found: "pass", want: "loss"},
		"only expected":        {expected: "pass", gone: true, want: "loss"},
		"only in the findings": {found: "pass", gone: true, want: "loss"},
	} {
		t.Run(name, func(t *testing.T) {
			var tests []test
			if !tc.gone {
				tests = []test{{ID: "x"}}
			}
			findings, expected := map[string]finding{}, expectations{}
			if tc.found != "" {
				findings["x"] = finding{result: result(tc.found)}
			}
			if tc.expected != "" {
				expected["x"] = expectation{result(tc.expected), "for a reason"}
			}
			got := compare(tests, findings, expected)
			switch {
			case tc.want == "" && len(got) == 0:
			case len(got) == 1 && got[0].id == "x" && got[0].loss == (tc.want == "loss") && tc.want != "":
			default:
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}
