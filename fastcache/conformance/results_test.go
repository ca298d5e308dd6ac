package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseResults(t *testing.T) {
	got, err := parseResults([]byte(`{
		"a": true,
		"b": ["Assertion", "Response 2 comes from cache"],
		"c": ["Setup", "retry"],
		"d": ["TypeError", "fetch failed"]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]finding{
		"a": {result: pass},
		"b": {result: fail, message: "Response 2 comes from cache"},
		"c": {result: setup, message: "retry"},
		"d": {result: fail, message: "fetch failed"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(finding{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{``, `[]`, `{"a": false}`, `{"a": [1, 2]}`, `{"a": tru`} {
		if got, err := parseResults([]byte(bad)); err == nil {
			t.Errorf("%s: %v, no error", bad, got)
		}
	}
}
