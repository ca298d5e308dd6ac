package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func runIn(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(dir)
	var outBuf, errBuf bytes.Buffer
	code = run(context.Background(), args, &outBuf, &errBuf)
	return code, outBuf.String(), errBuf.String()
}

func TestRun_Help(t *testing.T) {
	code, stdout, _ := runIn(t, t.TempDir(), "help")
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, c := range commands() {
		if !strings.Contains(stdout, "\n  "+c.name+" ") {
			t.Errorf("the help text does not list %s", c.name)
		}
	}
}

func TestRun_Usage(t *testing.T) {
	root := tree(t, goodTree)
	for _, args := range [][]string{{}, {"nonsense"}, {"test", "-nonsense"}, {"test", "no/module"}, {"workspace", "x"}, {"modules", "x"}} {
		if code, _, stderr := runIn(t, root, args...); code != exitUsage || stderr == "" {
			t.Errorf("%q: exit code %d, stderr %q", args, code, stderr)
		}
	}
}

func TestRun_OutsideRepository(t *testing.T) {
	if code, _, stderr := runIn(t, t.TempDir(), "modules"); code != exitFailed || !strings.Contains(stderr, "no go.work") {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestRun_Workspace(t *testing.T) {
	if code, stdout, stderr := runIn(t, tree(t, goodTree), "workspace"); code != exitOK {
		t.Errorf("good tree: exit code %d\n%s%s", code, stdout, stderr)
	}
	bad := tree(t, goodTree+"-- docs/adr/0002-x.md --\n")
	if code, stdout, _ := runIn(t, bad, "workspace"); code != exitFailed || !strings.Contains(stdout, "0002-x.md is not in the index") {
		t.Errorf("bad tree: exit code %d\n%s", code, stdout)
	}
}

func TestRun_ModulesJSON(t *testing.T) {
	code, stdout, _ := runIn(t, tree(t, goodTree), "modules", "-json")
	var got []moduleInfo
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v", code, err)
	}
	if len(got) != 3 || got[0] != (moduleInfo{"lib", "example.com/r/lib", "1.25.0", true}) || got[1].Released {
		t.Errorf("got %+v", got)
	}
	if strings.Count(stdout, "\n") != 1 {
		t.Error("not on one line: a CI output variable holds one line")
	}
}
