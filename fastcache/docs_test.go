package fastcache_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// table returns the rows of the README's table behind a marker, as cells.
func table(t *testing.T, marker string) [][]string {
	t.Helper()
	return tableIn(t, "README.md", marker)
}

// tableIn is table for another page.
func tableIn(t *testing.T, page, marker string) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- "+marker)
	if !ok {
		t.Fatalf("%s has no marker %q", page, marker)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "|") {
			rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
		} else if len(rows) > 0 {
			break
		}
	}
	return rows[2:] // behind the heading and its rule
}

func word(cell string) string { return strings.Trim(cell, "` ") }

// TestREADME_Options: the table has every option once, under the name that it has
// in a Caddyfile, with the default that the code gives it.
func TestREADME_Options(t *testing.T) {
	var documented []string
	defaults := make(map[string]string)
	for _, row := range table(t, "options") {
		documented = append(documented, word(row[0]))
		defaults[word(row[0])] = word(row[1])
	}
	var inCode []string
	typ := reflect.TypeFor[fastcache.FastCache]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "match_headers" {
			name = "match_header"
		}
		if name != "" {
			inCode = append(inCode, name)
		}
	}
	if diff := cmp.Diff(toSet(inCode), toSet(documented)); diff != "" {
		t.Errorf("options (-code +README.md):\n%s", diff)
	}
	if len(documented) != len(inCode) {
		t.Errorf("README.md lists %d options, the code has %d", len(documented), len(inCode))
	}
	source, err := os.ReadFile("module.go")
	if err != nil {
		t.Fatal(err)
	}
	for option, constant := range map[string]string{
		"path": "Path", "memory_size": "MemorySize", "disk_size": "DiskSize", "ttl": "TTL",
		"heuristic_max": "HeuristicMax", "promote_below": "PromoteBelow",
		"revalidate_timeout": "RevalidateTimeout", "max_variants": "MaxVariants",
	} {
		m := regexp.MustCompile(`default` + constant + `\s*=\s*"?([^"\n]*)"?\n`).FindSubmatch(source)
		if m == nil || string(m[1]) != defaults[option] {
			t.Errorf("README.md gives %s the default %q, the code %q", option, defaults[option], m)
		}
	}
}

// TestREADME_OptionsEachHaveADocComment: Caddy's documentation is made from them.
func TestREADME_OptionsEachHaveADocComment(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "module.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	ast.Inspect(file, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok || f.Tag == nil || !strings.Contains(f.Tag.Value, "json:") {
			return true
		}
		fields++
		text := f.Doc.Text()
		if !strings.Contains(text, "Default:") && !strings.Contains(text, "cache key as a template") {
			t.Errorf("%s: its comment gives no default: %q", f.Names[0], text)
		}
		return true
	})
	if fields < 20 {
		t.Errorf("found %d option fields only", fields)
	}
}

// TestREADME_Reasons: the table has every word of detail= once.
func TestREADME_Reasons(t *testing.T) {
	var documented, inCode []string
	for _, row := range table(t, "reasons") {
		documented = append(documented, word(row[0]))
	}
	for _, r := range rfc9111.Reasons() {
		inCode = append(inCode, r.String())
	}
	if diff := cmp.Diff(toSet(inCode), toSet(documented)); diff != "" || len(documented) != len(inCode) {
		t.Errorf("reasons (-code +README.md):\n%s", diff)
	}
}

func toSet(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}
