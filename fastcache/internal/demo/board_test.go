package demo_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/demo"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// TestBoard_KnowsEveryReason: what the cache may say, the page explains.
func TestBoard_KnowsEveryReason(t *testing.T) {
	script := readFile(t, "site/assets/board.js")
	for _, reason := range rfc9111.Reasons() {
		if !strings.Contains(script, "\n    \""+reason.String()+"\": \"") {
			t.Errorf("board.js has no words for %s", reason)
		}
	}
	for f := rfc9111.FwdNone + 1; f.String() != ""; f++ {
		if !strings.Contains(script, "\n    \""+f.String()+"\": \"") {
			t.Errorf("board.js has no words for fwd=%s", f)
		}
	}
}

// TestBoard_Rows checks what browser tests hold on to.
func TestBoard_Rows(t *testing.T) {
	page := bodyOf(t, ask(t, demo.New(), "GET", "/"))
	var ids []string
	for _, m := range regexp.MustCompile(`data-row="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	want := strings.Fields("front loaves style image stock slow language file range missing cookie account order")
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := strings.Count(page, `data-result="none"`); n != len(want) {
		t.Errorf("%d rows begin without a result, want %d", n, len(want))
	}
	if !strings.Contains(page, `data-state="waiting"`) {
		t.Error("the table has no state")
	}
}

// TestCacheStatus_Parser runs the page's parser, where there is a Node.js to run it.
func TestCacheStatus_Parser(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node")
	}
	type member = map[string]any
	tests := []struct {
		field string
		want  []member // nil: malformed
	}{
		{"fastcache; hit", []member{{"cache": "fastcache", "hit": true}}},
		{"fastcache; hit; ttl=-12", []member{{"cache": "fastcache", "hit": true, "ttl": -12.0}}},
		{"fastcache;fwd=uri-miss;fwd-status=200;stored;ttl=30;detail=x", []member{{"cache": "fastcache", "fwd": "uri-miss", "fwd-status": 200.0, "stored": true, "ttl": 30.0, "detail": "x"}}},
		{`"Edge, \"1\""; key="a;b, c\\d"; hit=?0`, []member{{"cache": `Edge, "1"`, "key": `a;b, c\d`, "hit": false}}},
		{"origin; fwd=miss ,\tfastcache; hit", []member{{"cache": "origin", "fwd": "miss"}, {"cache": "fastcache", "hit": true}}},
		{" fastcache; ttl=1.5 ", []member{{"cache": "fastcache", "ttl": 1.5}}},
		{"", nil},
		{"fastcache; hit,", nil},
		{"fastcache; hit; ", nil},
		{`fastcache; key="open`, nil},
		{"fastcache; Hit", nil},
		{"fastcache hit", nil},
		{"; hit", nil},
	}
	fields := make([]string, len(tests))
	for i, tt := range tests {
		fields[i] = tt.field
	}
	input, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	program := readFile(t, "site/assets/cachestatus.js") +
		"\nconsole.log(JSON.stringify(JSON.parse(process.argv[1]).map(parseCacheStatus)))"
	var stderr bytes.Buffer
	cmd := exec.Command(node, "--eval", program, string(input))
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var got [][]member
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		if diff := cmp.Diff(tt.want, got[i]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.field, diff)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
