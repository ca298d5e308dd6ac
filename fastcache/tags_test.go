package fastcache

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestResponseTags(t *testing.T) {
	tests := []struct {
		name   string
		header http.Header
		want   []string
	}{
		{"none", http.Header{"Content-Type": {"text/plain"}}, nil},
		{"empty", http.Header{"Cache-Tag": {"", " , ,"}, "Surrogate-Key": {"  "}, "Xkey": {""}}, nil},
		{"Cache-Tag by comma", http.Header{"Cache-Tag": {"b, a ,c d", "e"}}, []string{"a", "b", "c d", "e"}},
		{"Surrogate-Key by white space", http.Header{"Surrogate-Key": {" b  a\tc,d ", "e"}}, []string{"a", "b", "c,d", "e"}},
		{"xkey too", http.Header{"Xkey": {"a b", "c"}}, []string{"a", "b", "c"}},
		{"all of them, each once", http.Header{"Cache-Tag": {"a,b"}, "Surrogate-Key": {"b c"}, "Xkey": {"c a"}}, []string{"a", "b", "c"}},
		{"case counts", http.Header{"Cache-Tag": {"A,a"}}, []string{"A", "a"}},
		{"any bytes", http.Header{"Surrogate-Key": {"\xff\u00a0\u2003 x"}}, []string{"x", "\xff\u00a0\u2003"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, responseTags(tt.header)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// carries reports whether a purge by these labels finds the response.
func carries(response, purge []string) bool {
	return slices.ContainsFunc(purge, func(l string) bool { return slices.Contains(response, l) })
}

func labelled(target string, lines ...string) []string {
	h := make(http.Header)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return labelsOf(&rfc9111.Exchange{Target: target, Header: h})
}

// A purge takes the responses with its tags and groups, and no text that an
// origin can send makes one pass for the other.
func TestLabels_Match(t *testing.T) {
	const a, b = "https://a.example/x", "https://b.example/x"
	long := strings.Repeat("l", 300)
	tests := []struct {
		name     string
		response []string
		purge    []string
		want     bool
	}{
		{"tag", labelled(a, "Cache-Tag: t, u"), tagLabels([]string{"u"}), true},
		{"tag on another origin", labelled(b, "Cache-Tag: t"), tagLabels([]string{"t"}), true},
		{"another tag", labelled(a, "Cache-Tag: t, u"), tagLabels([]string{"v"}), false},
		{"any of several", labelled(a, "Cache-Tag: t, u"), tagLabels([]string{"v", "t"}), true},
		{"beginning of a tag", labelled(a, "Cache-Tag: tag"), tagLabels([]string{"ta", "tagg", ""}), false},
		{"group", labelled(a, `Cache-Groups: "g", "h"`), groupLabels("https://a.example", []string{"h"}), true},
		{"group of another host", labelled(b, `Cache-Groups: "g"`), groupLabels("https://a.example", []string{"g"}), false},
		{"group of another scheme", labelled("http://a.example/x", `Cache-Groups: "g"`), groupLabels("https://a.example", []string{"g"}), false},
		{"group of another port", labelled("https://a.example:444/x", `Cache-Groups: "g"`), groupLabels("https://a.example", []string{"g"}), false},
		{"empty group", labelled(a, `Cache-Groups: ""`), groupLabels("https://a.example", []string{""}), true},
		{"not the empty group", labelled(a, `Cache-Groups: "g"`), groupLabels("https://a.example", []string{""}), false},
		{"group is no tag", labelled(a, `Cache-Groups: "g"`), tagLabels([]string{"g", "ghttps://a.example g", "G", "https://a.example g"}), false},
		{"tag is no group", labelled(a, `Cache-Tag: g, ghttps://a.example g, Ghttps://a.example, T, #`), groupLabels("https://a.example", []string{"g", ""}), false},
		{"group with the origin of another", labelled(b, `Cache-Groups: "https://a.example g", " g"`), groupLabels("https://a.example", []string{"g"}), false},
		{"long tag", labelled(a, "Cache-Tag: "+long), tagLabels([]string{long}), true},
		{"another long tag", labelled(a, "Cache-Tag: "+long), tagLabels([]string{long + "l"}), false},
		{"long group", labelled(a, `Cache-Groups: "`+long+`"`), groupLabels("https://a.example", []string{long}), true},
		{"long group of another origin", labelled(b, `Cache-Groups: "`+long+`"`), groupLabels("https://a.example", []string{long}), false},
		{"long tag is no long group", labelled(a, "Cache-Tag: "+long), groupLabels("https://a.example", []string{long}), false},
		{"nothing", labelled(a), append(tagLabels([]string{"t"}), groupLabels("https://a.example", []string{"g"})...), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := carries(tt.response, tt.purge); got != tt.want {
				t.Errorf("%q purged by %q: %v", tt.response, tt.purge, got)
			}
		})
	}
}

// What is more than a response can keep is purged too often rather than never, but
// by purges of its own kind and origin only.
func TestLabels_TooMany(t *testing.T) {
	names := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%05d", i)
		}
		return list
	}
	list := func(n int) string { return strings.Join(names(n), ", ") }
	quoted := func(n int) string { return `"` + strings.Join(names(n), `", "`) + `"` }
	const target, origin = "https://a.example/x", "https://a.example"
	for n := maxLabels - 1; n <= maxLabels+1; n++ {
		for kind, response := range map[string][]string{
			"tags":   labelled(target, "Cache-Tag: "+list(n)),
			"groups": labelled(target, "Cache-Groups: "+quoted(n)),
		} {
			purge, other := tagLabels, func(names []string) []string { return groupLabels(origin, names) }
			if kind == "groups" {
				purge, other = other, purge
			}
			for _, name := range names(n) {
				if !carries(response, purge([]string{name})) {
					t.Fatalf("%d %s: %s is not found", n, kind, name)
				}
			}
			if got := carries(response, purge([]string{"else"})); got != (n > maxLabels) {
				t.Errorf("%d %s: something else is found: %v", n, kind, got)
			}
			if carries(response, other([]string{"00001"})) {
				t.Errorf("%d %s: the other kind is found", n, kind)
			}
			if carries(response, groupLabels("https://b.example", []string{"00001"})) {
				t.Errorf("%d %s: a group of another origin is found", n, kind)
			}
		}
	}
	both := labelled(target, "Cache-Groups: "+quoted(32), "Cache-Tag: "+list(10_000))
	if carries(both, groupLabels(origin, []string{"else"})) {
		t.Error("32 groups do not fit beside many tags")
	}
	if !carries(both, tagLabels([]string{"09999"})) {
		t.Error("a tag beyond the bound is not found")
	}
}

// The store is promised sorted and unique labels of a bounded number and length.
func FuzzLabels(f *testing.F) {
	f.Add("https://a.example/x", "a, b", "c d", `"e", "f"`)
	f.Add("key", strings.Repeat("x,", 300), strings.Repeat("y", 300), `""`)
	f.Fuzz(func(t *testing.T, target, cacheTag, surrogateKey, groups string) {
		h := http.Header{"Cache-Tag": {cacheTag}, "Surrogate-Key": {surrogateKey}, "Cache-Groups": {groups}}
		labels := labelsOf(&rfc9111.Exchange{Target: target, Header: h})
		if len(labels) > maxLabels+2 {
			t.Errorf("%d labels", len(labels))
		}
		for i, l := range labels {
			if len(l) > maxLabel && l[0] != 'G' {
				t.Errorf("label of %d bytes", len(l))
			}
			if i > 0 && labels[i-1] >= l {
				t.Errorf("%q is not sorted, or has a label twice", labels)
			}
		}
		for _, tag := range responseTags(h) {
			if !carries(labels, tagLabels([]string{tag})) {
				t.Errorf("tag %q is not found", tag)
			}
		}
		for _, group := range rfc9111.Groups(h) {
			if !carries(labels, groupLabels(rfc9111.OriginOf(target), []string{group})) {
				t.Errorf("group %q is not found", group)
			}
		}
	})
}
