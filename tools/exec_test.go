package main

import (
	"slices"
	"testing"
)

func TestWithoutModFlags(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"-mod=mod":                           "",
		"-buildvcs=false --mod=vendor -race": "-buildvcs=false -race",
		"-modcacherw -modfile=x.mod":         "-modcacherw",
	} {
		if got := withoutModFlags(in); got != want {
			t.Errorf("withoutModFlags(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSetEnv(t *testing.T) {
	got := setEnv([]string{"A=1", "GOFLAGS=x", "GOFLAGS2=y"}, "GOFLAGS=z")
	if want := []string{"A=1", "GOFLAGS2=y", "GOFLAGS=z"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestProgram_String(t *testing.T) {
	p := program{set: []string{"GOWORK=off", "GOFLAGS=-a -b", "GOOS="}, args: []string{"go", "test", "-run=^It's$", "./..."}}
	const want = `GOWORK=off GOFLAGS='-a -b' GOOS= go test '-run=^It'\''s$' ./...`
	if got := p.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
