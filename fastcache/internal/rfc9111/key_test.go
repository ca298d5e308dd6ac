package rfc9111_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestAppendTarget_2(t *testing.T) {
	tests := []struct {
		name, scheme, host, uri string
		want                    string // "" for refused
	}{
		{"plain", "http", "example.com", "/a", "http://example.com/a"},
		{"scheme", "https", "example.com", "/a", "https://example.com/a"},
		{"scheme case", "HTTPS", "example.com", "/a", "https://example.com/a"},
		{"host case", "http", "EXAMPLE.com", "/A", "http://example.com/A"},
		{"default port, http", "http", "example.com:80", "/", "http://example.com/"},
		{"default port, https", "https", "example.com:443", "/", "https://example.com/"},
		{"other scheme's port", "http", "example.com:443", "/", "http://example.com:443/"},
		{"other port", "http", "example.com:8080", "/", "http://example.com:8080/"},
		{"empty port", "http", "example.com:", "/", "http://example.com/"},
		{"trailing dot", "http", "example.com.", "/", "http://example.com/"},
		{"trailing dot and port", "http", "example.com.:80", "/", "http://example.com/"},
		{"two trailing dots", "http", "example.com..", "/", "http://example.com./"},
		{"IPv4", "http", "127.0.0.1:8080", "/", "http://127.0.0.1:8080/"},
		{"IPv6", "http", "[::1]", "/", "http://[::1]/"},
		{"IPv6, case", "http", "[2001:DB8::1]", "/", "http://[2001:db8::1]/"},
		{"IPv6, default port", "https", "[::1]:443", "/", "https://[::1]/"},
		{"IPv6, other port", "https", "[::1]:80", "/", "https://[::1]:80/"},
		{"IPv6, zone", "http", "[fe80::1%25eth0]", "/", "http://[fe80::1%25eth0]/"},
		{"underscore", "http", "a_b", "/", "http://a_b/"},

		{"empty path", "http", "h", "", "http://h/"},
		{"query without path", "http", "h", "?a", "http://h/?a"},
		{"empty query", "http", "h", "/a?", "http://h/a?"},
		{"query", "http", "h", "/a?x=1&y=2", "http://h/a?x=1&y=2"},
		{"query, other order", "http", "h", "/a?y=2&x=1", "http://h/a?y=2&x=1"},
		{"encoded slash", "http", "h", "/a%2Fb", "http://h/a%2Fb"},
		{"encoded slash, other case", "http", "h", "/a%2fb", "http://h/a%2fb"},
		{"double slash", "http", "h", "//a", "http://h//a"},
		{"dots", "http", "h", "/a/../b/./c", "http://h/a/../b/./c"},
		{"semicolon", "http", "h", "/a;x", "http://h/a;x"},
		{"encoded hash", "http", "h", "/a%23b", "http://h/a%23b"},
		{"encoded NUL", "http", "h", "/a%00", "http://h/a%00"},
		{"malformed escape", "http", "h", "/a?a=%zz", "http://h/a?a=%zz"},
		{"URL in the query", "http", "h", "/?u=http://x/", "http://h/?u=http://x/"},
		{"obs-text", "http", "h", "/\xfc", "http://h/\xfc"},
		{"back slash", "http", "h", "/a\\b", "http://h/a\\b"},

		{"absolute form", "http", "good", "http://evil/a?b", "http://good/a?b"},
		{"absolute form, other scheme", "http", "good", "HTTPS://evil/a", "http://good/a"},
		{"absolute form without path", "http", "good", "http://evil", "http://good/"},
		{"absolute form, query only", "http", "good", "http://evil?a/b", "http://good/?a/b"},
		{"absolute form, user", "http", "good", "http://u:p@evil/a", "http://good/a"},
		{"absolute form, no authority", "http", "good", "http:///a", "http://good/a"},

		{"star", "http", "h", "*", ""},
		{"authority form", "http", "h", "h:80", ""},
		{"relative", "http", "h", "a", ""},
		{"another scheme", "http", "h", "ftp://h/a", ""},
		{"fragment", "http", "h", "/a#b", ""},
		{"fragment in the query", "http", "h", "/a?b#", ""},
		{"fragment in absolute form", "http", "h", "http://h#/a", ""},
		{"space", "http", "h", "/a b", ""},
		{"tab", "http", "h", "/a\tb", ""},
		{"line break", "http", "h", "/a\r\nb", ""},
		{"NUL", "http", "h", "/a\x00", ""},
		{"DEL", "http", "h", "/a\x7f", ""},
		{"empty host", "http", "", "/", ""},
		{"only a dot", "http", ".", "/", ""},
		{"only a port", "http", ":80", "/", ""},
		{"empty literal", "http", "[]", "/", ""},
		{"open literal", "http", "[::1", "/", ""},
		{"junk behind a literal", "http", "[::1]x", "/", ""},
		{"bare IPv6", "http", "::1", "/", ""},
		{"port with letters", "http", "h:8o", "/", ""},
		{"two ports", "http", "h:80:80", "/", ""},
		{"slash in the host", "http", "h/x", "/", ""},
		{"query in the host", "http", "h?x", "/", ""},
		{"user in the host", "http", "u@h", "/", ""},
		{"space in the host", "http", "a b", "/", ""},
		{"line break in the host", "http", "a\nb", "/", ""},
		{"hash in the host", "http", "a#b", "/", ""},
		{"UTF-8 in the host", "http", "ü", "/", ""},
		{"no scheme", "", "h", "/", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := rfc9111.AppendTarget([]byte("x"), tt.scheme, tt.host, tt.uri)
			if string(got) != "x"+tt.want || ok != (tt.want != "") {
				t.Errorf("%q, %v, want %q", got, ok, "x"+tt.want)
			}
		})
	}
}

// No two targets that an origin may tell apart share a key.
func TestAppendTarget_Distinct(t *testing.T) {
	seen := map[string]string{}
	for _, uri := range []string{"/a", "/a?", "/a?x=1", "/a?x=1&y=2", "/a?y=2&x=1", "/a%2Fb", "/a%2fb", "//a", "/a/", "/A", "/a%20", "/a+", "/a;x", "/a%23b", "/a?x=1;y=2"} {
		key, ok := rfc9111.AppendTarget(nil, "http", "h", uri)
		if other, dup := seen[string(key)]; dup || !ok {
			t.Errorf("%q and %q share %q (%v)", uri, other, key, ok)
		}
		seen[string(key)] = uri
	}
}

func TestQueryRules_Append(t *testing.T) {
	utm := []string{"utm_*", "gclid"}
	tests := []struct {
		name  string
		rules rfc9111.QueryRules
		uri   string
		want  string
	}{
		{"zero", rfc9111.QueryRules{}, "/a?b=1&a=2&&", "/a?b=1&a=2&&"},
		{"no query", rfc9111.QueryRules{Sort: true, Ignore: utm}, "/a", "/a"},
		{"empty query stays", rfc9111.QueryRules{Sort: true, Ignore: utm}, "/a?", "/a?"},
		{"empty uri", rfc9111.QueryRules{Sort: true}, "", ""},
		{"query alone", rfc9111.QueryRules{Ignore: utm}, "?gclid=1&a=1", "?a=1"},
		{"ignore", rfc9111.QueryRules{Ignore: utm}, "/a?utm_source=x&b=1&gclid&a=2&utm_=", "/a?b=1&a=2"},
		{"ignore all drops the mark", rfc9111.QueryRules{Ignore: utm}, "/a?utm_source=x", "/a"},
		{"ignore all drops the mark, sorted", rfc9111.QueryRules{Sort: true, Ignore: utm}, "/a?utm_source=x", "/a"},
		{"names are whole", rfc9111.QueryRules{Ignore: utm}, "/a?gclidx=1&xgclid=2&utm=3", "/a?gclidx=1&xgclid=2&utm=3"},
		{"names are case-sensitive", rfc9111.QueryRules{Ignore: utm}, "/a?GCLID=1&Utm_x=2", "/a?GCLID=1&Utm_x=2"},
		{"names are not decoded", rfc9111.QueryRules{Ignore: utm}, "/a?utm%5Fsource=1", "/a?utm%5Fsource=1"},
		{"semicolons do not separate", rfc9111.QueryRules{Ignore: utm}, "/a?a=1;gclid=2&gclid=1;callback=evil", "/a?a=1;gclid=2"},
		{"value with equals signs", rfc9111.QueryRules{Ignore: []string{"a"}}, "/?a=b=c&b=a=c", "/?b=a=c"},
		{"question mark in the query", rfc9111.QueryRules{Ignore: utm}, "/?a?gclid=1&gclid=?", "/?a?gclid=1"},
		{"star alone", rfc9111.QueryRules{Ignore: []string{"*"}}, "/a?b&c", "/a"},
		{"star in the middle is a letter", rfc9111.QueryRules{Ignore: []string{"a*b"}}, "/?axb=1&a*b=2", "/?axb=1"},
		{"sort", rfc9111.QueryRules{Sort: true}, "/a?b=2&a=1&b=1&", "/a?&a=1&b=2&b=1"},
		{"sort is by name", rfc9111.QueryRules{Sort: true}, "/a?a-b=1&a=2", "/a?a=2&a-b=1"},
		{"sort and ignore", rfc9111.QueryRules{Sort: true, Ignore: utm}, "/a?c&gclid=1&b&utm_x&a", "/a?a&b&c"},
		{"sort keeps bytes", rfc9111.QueryRules{Sort: true}, "/a?b=%zz&a=%41+%2b", "/a?a=%41+%2b&b=%zz"},
		{"fragment is kept to be refused", rfc9111.QueryRules{Ignore: utm}, "/a?gclid=1#b", "/a?gclid=1#b"},
		{"absolute form", rfc9111.QueryRules{Ignore: utm}, "http://h/a?gclid=1&b", "http://h/a?b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(tt.rules.Append([]byte("x"), tt.uri)); got != "x"+tt.want {
				t.Errorf("%q, want %q", got, "x"+tt.want)
			}
		})
	}
}

func TestQueryRules_Append_Long(t *testing.T) {
	uri := "/a?" + strings.Repeat("b=1&a=2&utm_x&", 100_000)
	got := (&rfc9111.QueryRules{Sort: true, Ignore: []string{"utm_*"}}).Append(nil, uri)
	if want := "/a?" + strings.Repeat("&a=2", 100_000) + strings.Repeat("&b=1", 100_000); string(got) != want {
		t.Error("wrong result")
	}
}

func TestKey_Allocs(t *testing.T) {
	buf := make([]byte, 0, 256)
	noAllocs(t, "AppendTarget", func() { buf, _ = rfc9111.AppendTarget(buf[:0], "https", "Example.com:443", "/a?b=c") })
	rules := &rfc9111.QueryRules{Ignore: []string{"utm_*"}}
	noAllocs(t, "QueryRules.Append", func() { buf = rules.Append(buf[:0], "/a?b=c&utm_x=1&d") })
}

func TestQueryRules_Append_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		query := rapid.StringMatching(`[ab=&;%?]{0,12}`).Draw(t, "query")
		rules := rfc9111.QueryRules{
			Sort:   rapid.Bool().Draw(t, "sort"),
			Ignore: rapid.SliceOf(rapid.SampledFrom([]string{"a", "b*", "ab"})).Draw(t, "ignore"),
		}
		once := string(rules.Append(nil, "/?"+query))
		if again := string(rules.Append(nil, once)); again != once {
			t.Fatalf("%q, then %q", once, again)
		}
		if rules.Ignore == nil {
			a, b := strings.Split("/?"+query, "&"), strings.Split(once, "&")
			if len(a) != len(b) {
				t.Fatalf("%q lost a parameter: %q", query, once)
			}
		}
		for param := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(once, "/"), "?"), "&") {
			if name, _, _ := strings.Cut(param, "="); param != "" && slices.Contains(rules.Ignore, name) {
				t.Fatalf("%q still has %q", once, name)
			}
		}
	})
}

func FuzzAppendTarget(f *testing.F) {
	f.Add("http", "Example.com:80", "/a?b")
	f.Add("https", "[::1]:443", "http://x?y")
	f.Add("https", "[]].", "?")
	f.Fuzz(func(t *testing.T, scheme, host, uri string) {
		key, ok := rfc9111.AppendTarget([]byte("x"), scheme, host, uri)
		if !ok {
			if string(key) != "x" {
				t.Errorf("refused, but appended %q", key)
			}
			return
		}
		rest := string(key[1:])
		for _, c := range []byte(rest[len(scheme):]) {
			if c <= ' ' || c == 0x7f || c == '#' {
				t.Errorf("%q has a byte that it must not", key)
			}
		}
		authority, path, found := strings.Cut(rest[len(scheme)+3:], "/")
		if !found || authority == "" {
			t.Errorf("%q has no path or host", key)
		}
		// The path is the end of the target as it was sent.
		if uri != "" && !strings.HasSuffix(uri, path) {
			t.Errorf("%q does not end like %q", key, uri)
		}
		// What was made of parts is a fixed point.
		again, ok := rfc9111.AppendTarget([]byte("x"), scheme, authority, "/"+path)
		if !strings.HasSuffix(host, "..") && !strings.Contains(host, "..:") && (!ok || string(again) != string(key)) {
			t.Errorf("%q and again %q, %v", key, again, ok)
		}
	})
}

func FuzzQueryRules_Append(f *testing.F) {
	f.Add("/a?b&utm_x=1", "utm_*", true)
	f.Add("?&&=#", "", false)
	f.Fuzz(func(t *testing.T, uri, ignore string, sort bool) {
		rules := rfc9111.QueryRules{Sort: sort, Ignore: []string{ignore}}
		once := string(rules.Append(nil, uri))
		if len(once) > len(uri) || strings.Contains(uri, "#") && once != uri {
			t.Errorf("%q of %q", once, uri)
		}
		if again := string(rules.Append(nil, once)); again != once {
			t.Errorf("%q, then %q", once, again)
		}
	})
}

func BenchmarkAppendTarget(b *testing.B) {
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = rfc9111.AppendTarget(buf[:0], "https", "www.example.com", "/assets/app.js?v=12")
	}
}

func BenchmarkQueryRules_Append(b *testing.B) {
	for name, rules := range map[string]*rfc9111.QueryRules{"sort=off": {Ignore: []string{"utm_*", "gclid"}}, "sort=on": {Sort: true}} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 256)
			b.ReportAllocs()
			for b.Loop() {
				buf = rules.Append(buf[:0], "/a?b=1&a=2&utm_source=x")
			}
		})
	}
}
