package rfc9111_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestReasons_List_Closed(t *testing.T) {
	want := strings.Fields(`set-cookie private no-store request-no-store vary-star vary-unlisted auth too-big
		ttl-zero status match-header request-fault partial cookie must-understand method upgrade request-body override
		connection conditional purged-in-flight disk-error truncated client-gone wait-timeout
		only-if-cached request-no-cache request-max-age request-min-fresh stale-error
		upstream-error purged purge-miss purge-denied store-off event-stream bad-target`)
	reasons := rfc9111.Reasons()
	if len(reasons) != len(want) {
		t.Fatalf("%d reasons, want %d", len(reasons), len(want))
	}
	for i, r := range reasons {
		if r.String() != want[i] {
			t.Errorf("reason %d is %q, want %q", i, r, want[i])
		}
	}
	if rfc9111.ReasonNone.String() != "" {
		t.Errorf("ReasonNone is %q", rfc9111.ReasonNone)
	}
	if s := rfc9111.Reason(255).String(); s != "" {
		t.Errorf("a reason that is not in the list is %q", s)
	}
}

// The comments are pasted into the documentation for users.
func TestReasons_Comments_OneSentence(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || spec.Names[0].Name == "ReasonNone" {
			return true
		}
		n++
		name := spec.Names[0].Name
		text := strings.TrimSpace(spec.Doc.Text())
		sentence, ok := strings.CutPrefix(text, name+": ")
		if !ok || !strings.HasSuffix(sentence, ".") || strings.Contains(sentence, ". ") || strings.Contains(sentence, "\n") {
			t.Errorf("the comment of %s is not one sentence behind its name: %q", name, text)
		}
		return true
	})
	if n != len(rfc9111.Reasons()) {
		t.Errorf("%d constants, %d reasons", n, len(rfc9111.Reasons()))
	}
}
