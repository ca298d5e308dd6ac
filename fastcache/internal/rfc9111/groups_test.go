package rfc9111_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestGroups_RFC9875_2(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{"absent", nil, nil},
		{"empty", []string{"Cache-Groups:"}, nil},
		{"one", []string{`Cache-Groups: "scripts"`}, []string{"scripts"}},
		{"sorted, each once", []string{`Cache-Groups: "b", "a",  "b"`}, []string{"a", "b"}},
		{"several lines are one list", []string{`Cache-Groups: "b"`, `Cache-Groups: "a"`}, []string{"a", "b"}},
		{"case counts", []string{`Cache-Groups: "A", "a"`}, []string{"A", "a"}},
		{"any visible byte and spaces", []string{`Cache-Groups: " a, b ;=c", "say \"x\\y\""`}, []string{" a, b ;=c", `say "x\y"`}},
		{"the empty string is a group", []string{`Cache-Groups: ""`}, []string{""}},
		{"parameters are ignored", []string{`Cache-Groups: "a";x=1;y, "b";z="a"`}, []string{"a", "b"}},
		{"members of other types are passed over", []string{`Cache-Groups: token, "a", 1, 1.5, ?1, :YQ==:, @1, ("b" "c"), %"d"`}, []string{"a"}},
		{"no list: trailing comma", []string{`Cache-Groups: "a",`}, nil},
		{"no list: unfinished string", []string{`Cache-Groups: "a", "b`}, nil},
		{"no list: bytes beyond ASCII", []string{"Cache-Groups: \"\xc3\xa4\""}, nil},
		{"no list: one bad line spoils the field", []string{`Cache-Groups: "a"`, `Cache-Groups: ,`}, nil},
		{"another field", []string{`Cache-Group-Invalidation: "a"`}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rfc9111.Groups(header(tt.lines...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// The other field has the same grammar.
			var other []string
			for _, line := range tt.lines {
				if value, ok := strings.CutPrefix(line, "Cache-Groups:"); ok {
					other = append(other, "Cache-Group-Invalidation:"+value)
				}
			}
			if diff := cmp.Diff(tt.want, rfc9111.InvalidatedGroups(header(other...))); diff != "" {
				t.Errorf("Cache-Group-Invalidation, -want +got:\n%s", diff)
			}
		})
	}
}

// Section 2 asks for at least 32 groups of 32 characters.
func TestGroups_RFC9875_2_Size(t *testing.T) {
	for _, size := range []struct{ groups, length int }{{32, 32}, {300, 1000}} {
		var want []string
		for i := range size.groups {
			want = append(want, fmt.Sprintf("%0*d", size.length, i))
		}
		got := rfc9111.Groups(header(`Cache-Groups: "` + strings.Join(want, `", "`) + `"`))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d groups of %d: -want +got:\n%.1000s", size.groups, size.length, diff)
		}
	}
}

func TestOriginOf(t *testing.T) {
	for target, want := range map[string]string{
		"http://example.com/a/b?c":  "http://example.com",
		"https://example.com:8443/": "https://example.com:8443",
		"http://[::1]:80/x://y/":    "http://[::1]:80",
		"":                          "",
		"example.com/a":             "",
		"http://example.com":        "",
	} {
		if got := rfc9111.OriginOf(target); got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}

func TestGroups_NoAllocationWithoutTheField(t *testing.T) {
	h := header("Cache-Control: max-age=60", "Content-Type: text/html")
	noAllocs(t, "Groups", func() { rfc9111.Groups(h) })
}

func FuzzGroups(f *testing.F) {
	f.Add(`"a", "b";x=1`, `"c"`)
	f.Add(`token, 1, ("a")`, ``)
	f.Add("\"\\\"\\\\\"", "\"\xff\"")
	f.Fuzz(func(t *testing.T, first, second string) {
		groups := rfc9111.Groups(header("Cache-Groups:"+first, "Cache-Groups:"+second))
		for i, g := range groups {
			if i > 0 && groups[i-1] >= g {
				t.Errorf("%q is not sorted, or has a member twice", groups)
			}
			for j := range len(g) {
				if g[j] < ' ' || g[j] > '~' {
					t.Errorf("%q is not a Structured Fields string", g)
				}
			}
		}
		// Written down again they are the same groups.
		lines := make([]string, 0, len(groups))
		for _, g := range groups {
			lines = append(lines, `Cache-Groups: "`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(g)+`"`)
		}
		if again := rfc9111.Groups(header(lines...)); !slices.Equal(again, groups) {
			t.Errorf("%q becomes %q", groups, again)
		}
	})
}
