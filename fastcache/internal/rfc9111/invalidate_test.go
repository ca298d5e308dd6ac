package rfc9111_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestInvalidationTargets_4_4(t *testing.T) {
	const self = "http://example.com/dir/a?q"
	tests := []struct {
		name  string
		lines []string
		want  []string // besides the target itself
	}{
		{"target", nil, nil},
		{"location", []string{"Location: /b?x=1"}, []string{"http://example.com/b?x=1"}},
		{"content-location", []string{"Content-Location: /c"}, []string{"http://example.com/c"}},
		{"both", []string{"Location: /b", "Content-Location: /c"}, []string{"http://example.com/b", "http://example.com/c"}},
		{"the same twice", []string{"Location: /b", "Content-Location: /b"}, []string{"http://example.com/b"}},
		{"itself", []string{"Location: /dir/a?q"}, nil},
		{"relative", []string{"Location: b"}, []string{"http://example.com/dir/b"}},
		{"dots", []string{"Location: ../b/./c"}, []string{"http://example.com/b/c"}},
		{"query", []string{"Location: ?z"}, []string{"http://example.com/dir/a?z"}},
		{"empty", []string{"Location:"}, nil},
		{"escapes stay", []string{"Location: /a%2Fb%zz", "Content-Location: /a%2Fb"}, []string{"http://example.com/a%2Fb"}},
		{"fragment", []string{"Location: /b#c"}, []string{"http://example.com/b"}},
		{"absolute", []string{"Location: http://EXAMPLE.com:80/b"}, []string{"http://example.com/b"}},
		{"network path", []string{"Location: //example.com/b"}, []string{"http://example.com/b"}},
		{"no path", []string{"Location: http://example.com"}, []string{"http://example.com/"}},
		{"another host", []string{"Location: http://example.org/b"}, nil},
		{"another host that starts alike", []string{"Location: http://example.com.evil/b"}, nil},
		{"user that looks like the host", []string{"Location: http://example.com@evil/b"}, nil},
		{"another network path", []string{"Location: //evil/b"}, nil},
		{"another port", []string{"Location: http://example.com:8080/b"}, nil},
		{"another scheme", []string{"Location: https://example.com/b"}, nil},
		{"no web scheme", []string{"Location: mailto:a@example.com"}, nil},
		{"opaque", []string{"Location: http:b"}, nil},
		{"malformed", []string{"Location: http://[::1/b"}, nil},
		{"two lines", []string{"Location: /b", "Location: /c"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := rfc9111.InvalidationTargets("http", "Example.com", "/dir/a?q", header(tt.lines...))
			if diff := cmp.Diff(append([]string{self}, tt.want...), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestInvalidationTargets_Target(t *testing.T) {
	if got := rfc9111.InvalidationTargets("http", "h", "*", header("Location: /a")); got != nil {
		t.Errorf("%q", got)
	}
	// The target is its raw bytes, even where url.Parse would give up.
	got := rfc9111.InvalidationTargets("http", "h", "/a%zz", header("Location: /b"))
	if diff := cmp.Diff([]string{"http://h/a%zz"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzInvalidationTargets(f *testing.F) {
	f.Add("/a", "/b", "http://h/c")
	f.Add("//x", "//x", "http:///x")
	f.Fuzz(func(t *testing.T, uri, location, content string) {
		for _, key := range rfc9111.InvalidationTargets("http", "h", uri, header("Location:"+location, "Content-Location:"+content)) {
			if len(key) < 9 || key[:9] != "http://h/" {
				t.Errorf("%q is of another origin", key)
			}
		}
	})
}
