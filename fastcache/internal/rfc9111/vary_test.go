package rfc9111_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func TestParseVary_RFC9110_12_5_5(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  []string
		star  bool
	}{
		{"none", nil, nil, false},
		{"empty", []string{"", " , "}, nil, false},
		{"canonical, sorted, unique", []string{"foo,ACCEPT-ENCODING", " Foo , bar"}, []string{"Accept-Encoding", "Bar", "Foo"}, false},
		{"star", []string{"*"}, nil, true},
		{"star star", []string{"*, *"}, nil, true},
		{"star on two lines", []string{"*", "*"}, nil, true},
		{"empty and star", []string{", *"}, nil, true},
		{"empty line and star", []string{"", "*"}, nil, true},
		{"star first", []string{"*, Foo"}, nil, true},
		{"star last", []string{"Foo, *"}, nil, true},
		{"missing comma", []string{"Accept-Encoding Cookie"}, nil, true},
		{"quoted", []string{`"Foo"`}, nil, true},
		{"semicolon", []string{"Foo; Bar"}, nil, true},
		{"star in a name", []string{"Foo*"}, []string{"Foo*"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, star := rfc9111.ParseVary(tt.lines)
			if diff := cmp.Diff(tt.want, got); diff != "" || star != tt.star {
				t.Errorf("star %v, -want +got:\n%s", star, diff)
			}
		})
	}
}

func variant(names []string, lines ...string) string {
	return string(rfc9111.AppendVariant(nil, names, header(lines...)))
}

func TestAppendVariant_4_1(t *testing.T) {
	foo := []string{"Foo"}
	language := []string{"Accept-Language"}
	encoding := []string{"Accept-Encoding"}
	tests := []struct {
		name  string
		names []string
		a, b  []string
		equal bool
	}{
		{"same", foo, []string{"Foo: 1"}, []string{"Foo: 1"}, true},
		{"other value", foo, []string{"Foo: 1"}, []string{"Foo: 2"}, false},
		{"other case", foo, []string{"Foo: a"}, []string{"Foo: A"}, false},
		{"absent in both", foo, nil, nil, true},
		{"absent in one", foo, nil, []string{"Foo: 1"}, false},
		{"absent is not empty", foo, nil, []string{"Foo:"}, false},
		{"empty is not two empty lines", foo, []string{"Foo:"}, []string{"Foo:", "Foo:"}, false},
		{"fields that are not listed", foo, []string{"Foo: 1", "Other: 2"}, []string{"Foo: 1", "Other: 3"}, true},
		{"combined lines", foo, []string{"Foo: 1, 2"}, []string{"Foo: 1", "Foo: 2"}, true},
		{"white space around commas", foo, []string{"Foo: 1,2"}, []string{"Foo:  1 \t,  2 "}, true},
		{"white space elsewhere", foo, []string{"Foo: a b"}, []string{"Foo: a  b"}, false},
		{"white space in quotes", foo, []string{`Foo: "a,b"`}, []string{`Foo: "a, b"`}, false},
		{"white space in quotes behind an escape", foo, []string{`Foo: "\",b"`}, []string{`Foo: "\", b"`}, false},
		{"white space behind quotes", foo, []string{`Foo: "a",b`}, []string{`Foo: "a" , b`}, true},
		{"order", foo, []string{"Foo: 1, 2"}, []string{"Foo: 2, 1"}, false},
		{"empty members", foo, []string{"Foo: 1,,2"}, []string{"Foo: 1,2"}, false},
		{"two fields", []string{"A", "B"}, []string{"A: 1", "B: 2"}, []string{"B: 2", "A: 1"}, true},
		{"two fields, value moved", []string{"A", "B"}, []string{"A: 1"}, []string{"B: 1"}, false},
		{"two fields, boundary moved", []string{"A", "B"}, []string{"A: 12", "B: 3"}, []string{"A: 1", "B: 23"}, false},
		{"two fields, one omitted in both", []string{"A", "B"}, []string{"A: 1"}, []string{"A: 1"}, true},

		{"language order", language, []string{"Accept-Language: en, de"}, []string{"Accept-Language: de, en"}, true},
		{"language case", language, []string{"Accept-Language: en, de"}, []string{"Accept-Language: eN, De"}, true},
		{"language space", language, []string{"Accept-Language: en, de"}, []string{"Accept-Language:  en ,   de"}, true},
		{"language lines", language, []string{"Accept-Language: en, de"}, []string{"Accept-Language: en", "Accept-Language: de"}, true},
		{"language twice", language, []string{"Accept-Language: en, en"}, []string{"Accept-Language: en"}, true},
		{"language weight order", language, []string{"Accept-Language: de;q=0.5, en"}, []string{"Accept-Language: en, de; Q=0.50"}, true},
		{"language weight of 1", language, []string{"Accept-Language: en;q=1.000"}, []string{"Accept-Language: en"}, true},
		{"language other weights", language, []string{"Accept-Language: de;q=0.5, en"}, []string{"Accept-Language: en;q=0.5, de"}, false},
		{"language weight matters", language, []string{"Accept-Language: en, de"}, []string{"Accept-Language: en, de;q=0.9"}, false},
		{"language weight of 0", language, []string{"Accept-Language: en;q=0"}, []string{"Accept-Language: en"}, false},
		{"language small weights", language, []string{"Accept-Language: en;q=0.05"}, []string{"Accept-Language: en;q=0.5"}, false},
		{"language malformed", language, []string{"Accept-Language: en;q=x, de"}, []string{"Accept-Language: de, en"}, false},
		{"language absent", language, nil, []string{"Accept-Language:"}, false},

		{"encoding order", encoding, []string{"Accept-Encoding: gzip, br"}, []string{"Accept-Encoding: br, gzip"}, true},
		{"encoding case", encoding, []string{"Accept-Encoding: gzip"}, []string{"Accept-Encoding: GZIP"}, true},
		{"encoding weights", encoding, []string{"Accept-Encoding: br;q=1.0, gzip;q=0.8"}, []string{"Accept-Encoding: gzip, br"}, true},
		{"encoding alias", encoding, []string{"Accept-Encoding: x-gzip"}, []string{"Accept-Encoding: gzip"}, true},
		{"encoding identity is implied", encoding, []string{"Accept-Encoding: gzip, identity"}, []string{"Accept-Encoding: gzip"}, true},
		{"encoding identity named against a wildcard", encoding, []string{"Accept-Encoding: identity, *;q=0"}, []string{"Accept-Encoding: *;q=0"}, false},
		{"encoding identity refused", encoding, []string{"Accept-Encoding: gzip, identity;q=0"}, []string{"Accept-Encoding: gzip"}, false},
		{"encoding refused", encoding, []string{"Accept-Encoding: gzip;q=0"}, []string{"Accept-Encoding: gzip"}, false},
		{"encoding refused is not identity", encoding, []string{"Accept-Encoding: gzip;q=0.000"}, []string{"Accept-Encoding: identity"}, false},
		{"encoding malformed weight", encoding, []string{"Accept-Encoding: gzip;q=2"}, []string{"Accept-Encoding: gzip"}, false},
		{"encoding wildcard", encoding, []string{"Accept-Encoding: *"}, []string{"Accept-Encoding: gzip"}, false},
		{"encoding absent", encoding, nil, []string{"Accept-Encoding: identity"}, false},
		{"encoding unknown", encoding, []string{"Accept-Encoding: foo"}, []string{"Accept-Encoding: bar"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := variant(tt.names, tt.a...), variant(tt.names, tt.b...)
			if (a == b) != tt.equal {
				t.Errorf("%q and %q, want equal: %v", a, b, tt.equal)
			}
		})
	}
}

func TestNormalizeAcceptEncoding_RFC9110_12_5_3(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{"", nil},
		{"identity", nil},
		{"gzip, deflate, br, zstd", []string{"br", "deflate", "gzip", "zstd"}},
		{"br;q=1.0, gzip;q=0.8", []string{"br", "gzip"}},
		{"GZIP", []string{"gzip"}},
		{"x-gzip, gzip, X-Compress", []string{"compress", "gzip"}},
		{"gzip;q=0", []string{"gzip;q=0"}},
		{"gzip;q=0.001", []string{"gzip"}},
		{"gzip, gzip;q=0", []string{"gzip;q=0"}},
		{"*;q=0, identity;q=0", []string{"*;q=0", "identity;q=0"}},
		{"gzip ; q=0.5", []string{"gzip"}},
		{"gzip;q=0.1234", []string{"gzip;q=0.1234"}}, // malformed
		{`"`, []string{`"`}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, rfc9111.NormalizeAcceptEncoding([]string{tt.line})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", tt.line, diff)
		}
	}
}

// The usual values are known by heart; an empty member makes them unusual.
func TestAppendVariant_UsualEncodings(t *testing.T) {
	for _, usual := range []string{"gzip, deflate, br, zstd", "gzip, deflate, br", "gzip, deflate", "gzip"} {
		names := []string{"Accept-Encoding"}
		if a, b := variant(names, "Accept-Encoding: "+usual), variant(names, "Accept-Encoding: ,"+usual); a != b {
			t.Errorf("%q: %q and %q", usual, a, b)
		}
	}
}

func TestEncodingAcceptable_RFC9110_12_5_3(t *testing.T) {
	const absent = "absent"
	tests := []struct {
		coding string
		accept string
		want   bool
	}{
		{"gzip", "gzip", true},
		{"GZIP", "gzip", true},
		{"x-gzip", "gzip", true},
		{"gzip", "x-gzip", true},
		{"gzip", "br;q=1.0, gzip;q=0.8", true},
		{"gzip", "gzip;q=0.001", true},
		{"gzip", "gzip;q=0", false},
		{"gzip", "gzip;q=0.0", false},
		{"gzip", "br", false},
		{"gzip", "identity", false},
		{"gzip", "", false},
		{"gzip", absent, false},
		{"gzip", "*", true},
		{"gzip", "*;q=0", false},
		{"gzip", "*, gzip;q=0", false},
		{"gzip", "*;q=0, gzip", true},
		{"gzip", "gzip;q=x", false},
		{"gzip, br", "gzip, br", true},
		{"gzip, br", "gzip", false},
		{"identity, gzip", "gzip", true},
		{"gzip", "gzip, gzip;q=0", false},
		{"", "identity", true},
		{"", "", true},
		{"", absent, true},
		{"", "gzip;q=0", true},
		{"identity", "identity", true},
		{"", "gzip", false},
		{"", "gzip;q=0.1, identity", false},
		{"", "*", false},
		{"", "identity;q=0", false},
		{"", "*;q=0", false},
		{"", "*;q=0, identity", true},
		{"", "*;q=0, identity;q=0.5", true},
		{"", "rand0m", true}, // no such coding: a flood of those must not pass the cache
		{"gzip", strings.Repeat("a,", 3) + "gzip", true},
		{"gzip", manyCodings(17) + ",gzip", false},
		{"gzip", `"x", gzip`, false},
	}
	for _, tt := range tests {
		lines := []string{tt.accept}
		if tt.accept == absent {
			lines = nil
		}
		if got := rfc9111.EncodingAcceptable(tt.coding, lines, lines != nil); got != tt.want {
			t.Errorf("%q for %q: %v, want %v", tt.coding, tt.accept, got, tt.want)
		}
	}
}

func manyCodings(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	return strings.Join(names, ",")
}

func TestLanguageAcceptable_RFC9110_12_5_4(t *testing.T) {
	tests := []struct {
		language, accept string
		want             bool
	}{
		{"de", "fr;q=0.5, de;q=1.0", true},
		{"DE", "de", true},
		{"de-at", "de-AT, de;q=0.9", true},
		{"de", "de-AT, de;q=0.9", false},
		{"de-AT", "de", false},
		{"de", "en, de", false},
		{"de", "de, DE", true},
		{"fr", "fr;q=0.5, de", false},
		{"de", "de;q=0", false},
		{"de", "*", false},
		{"de", "de, *", false},
		{"de", "de, *;q=0.1", true},
		{"de", "", false},
		{"", "de", false},
		{"de, en", "de", false},
		{"de", "de, en;q=x", false},
		{"de", "de;q=0.3, en;q=0.2", true},
	}
	for _, tt := range tests {
		if got := rfc9111.LanguageAcceptable(tt.language, []string{tt.accept}); got != tt.want {
			t.Errorf("%q for %q: %v, want %v", tt.language, tt.accept, got, tt.want)
		}
	}
}

// cache is the least that a store does with variants.
type cache struct {
	names    []string
	variants []cached
	fetches  int
}

type cached struct {
	key    []byte
	header http.Header
}

func (c *cache) get(request http.Header, origin func(http.Header) http.Header) http.Header {
	key := rfc9111.AppendVariant(nil, c.names, request)
	for _, v := range c.variants {
		if bytes.Equal(v.key, key) {
			return v.header
		}
	}
	for _, v := range c.variants {
		if rfc9111.VariantUsable(c.names, v.key, key, v.header) {
			return v.header
		}
	}
	c.fetches++
	h := origin(request)
	c.variants = append(c.variants, cached{key, h})
	return h
}

// Every order in which browsers come leads to at most two copies, and never to
// gzip for one that does not want it.
func TestVariantUsable_OneCopyACoding(t *testing.T) {
	wantGzip := []string{"gzip, deflate, br, zstd", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8", "gzip", "GZIP"}
	wantPlain := []string{"identity", "absent", "gzip;q=0"}
	origin := func(request http.Header) http.Header {
		lines, present := request["Accept-Encoding"]
		if present && rfc9111.EncodingAcceptable("gzip", lines, true) {
			return header("Content-Encoding: gzip")
		}
		return header()
	}
	rapid.Check(t, func(t *rapid.T) {
		c := cache{names: rapid.SampledFrom([][]string{{"Accept-Encoding"}, {"Accept-Encoding", "Origin"}}).Draw(t, "names")}
		for _, accept := range rapid.Permutation(slices.Concat(wantGzip, wantPlain, wantGzip)).Draw(t, "order") {
			request := header()
			if accept != "absent" {
				request.Set("Accept-Encoding", accept)
			}
			got := c.get(request, origin).Get("Content-Encoding")
			if want := map[bool]string{true: "gzip", false: ""}[slices.Contains(wantGzip, accept)]; got != want {
				t.Fatalf("%q for %q, want %q", got, accept, want)
			}
		}
		if c.fetches > 2 {
			t.Fatalf("%d copies", c.fetches)
		}
	})
}

// A flood of invented codings does not reach the origin, whether it compresses or
// not.
func TestVariantUsable_Flood(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		c := cache{names: []string{"Accept-Encoding"}}
		for i := range 10_000 {
			for _, accept := range []string{"c%d", "gzip, c%d", "gzip;q=0.%03d"} {
				c.get(header("Accept-Encoding: "+fmt.Sprintf(accept, i%1000)), func(request http.Header) http.Header {
					if coding != "" && rfc9111.EncodingAcceptable(coding, request["Accept-Encoding"], true) {
						return header("Content-Encoding: " + coding)
					}
					return header()
				})
			}
		}
		if c.fetches > 3 {
			t.Errorf("%d fetches with coding %q", c.fetches, coding)
		}
	}
}

func TestVariantUsable_4_1(t *testing.T) {
	names := []string{"Accept-Encoding", "Accept-Language", "Foo"}
	tests := []struct {
		name            string
		stored, request []string
		response        []string
		want            bool
	}{
		{"same", []string{"Foo: 1"}, []string{"Foo: 1"}, nil, true},
		{"another field", []string{"Foo: 1"}, []string{"Foo: 2"}, nil, false},
		{"another field, absent", nil, []string{"Foo:"}, nil, false},
		{"coding", []string{"Accept-Encoding: br, gzip"}, []string{"Accept-Encoding: gzip"}, []string{"Content-Encoding: gzip"}, true},
		{"coding not accepted", []string{"Accept-Encoding: br, gzip"}, []string{"Accept-Encoding: gzip"}, []string{"Content-Encoding: br"}, false},
		{"coding, request without the field", []string{"Accept-Encoding: gzip"}, nil, []string{"Content-Encoding: gzip"}, false},
		{"coding and another field", []string{"Accept-Encoding: br, gzip", "Foo: 1"}, []string{"Accept-Encoding: gzip", "Foo: 2"}, []string{"Content-Encoding: gzip"}, false},
		{"two codings", []string{"Accept-Encoding: br, gzip"}, []string{"Accept-Encoding: gzip"}, []string{"Content-Encoding: gzip", "Content-Encoding: br"}, false},
		{"identity, offered more", []string{"Accept-Encoding: br, gzip"}, []string{"Accept-Encoding: gzip"}, nil, true},
		{"identity, offered less", []string{"Accept-Encoding: gzip"}, []string{"Accept-Encoding: br, gzip"}, nil, false},
		{"identity, offered a wildcard", []string{"Accept-Encoding: *"}, []string{"Accept-Encoding: gzip"}, nil, true},
		{"identity, wants a wildcard", []string{"Accept-Encoding: gzip"}, []string{"Accept-Encoding: *"}, nil, false},
		{"identity, refused", []string{"Accept-Encoding: br, gzip"}, []string{"Accept-Encoding: gzip, identity;q=0"}, nil, false},
		{"identity, stored for no field", nil, []string{"Accept-Encoding: gzip"}, nil, false},
		{"identity, wants nothing else", []string{"Accept-Encoding: gzip"}, []string{"Accept-Encoding: identity"}, nil, true},
		{"language", []string{"Accept-Language: en, de"}, []string{"Accept-Language: fr;q=0.5, de;q=1.0"}, []string{"Content-Language: de"}, true},
		{"language, not the best", []string{"Accept-Language: en, de"}, []string{"Accept-Language: fr, de;q=0.5"}, []string{"Content-Language: de"}, false},
		{"language, no Content-Language", []string{"Accept-Language: en"}, []string{"Accept-Language: en, de;q=0.1"}, nil, false},
		{"language, absent", []string{"Accept-Language: en"}, nil, []string{"Content-Language: en"}, false},
		{"language and coding", []string{"Accept-Language: en, de", "Accept-Encoding: br, gzip"}, []string{"Accept-Language: de", "Accept-Encoding: gzip"}, []string{"Content-Language: de", "Content-Encoding: gzip"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored, request := []byte(variant(names, tt.stored...)), []byte(variant(names, tt.request...))
			if got := rfc9111.VariantUsable(names, stored, request, header(tt.response...)); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	for _, key := range []string{"", "\x00", "\x00\x00\x00\x09abc", variant(names) + "x"} {
		if rfc9111.VariantUsable(names, []byte(key), []byte(key), nil) {
			t.Errorf("the key %q is not of these names", key)
		}
	}
}

func TestAppendVariant_Allocs(t *testing.T) {
	names := []string{"Accept-Encoding", "Accept-Language", "Origin", "X-Absent"}
	h := header("Accept-Encoding: gzip, deflate, br, zstd", "Accept-Language: en-US,en;q=0.9,de;q=0.8", "Origin: https://example.com")
	buf := make([]byte, 0, 256)
	noAllocs(t, "AppendVariant", func() { buf = rfc9111.AppendVariant(buf[:0], names, h) })
}

func TestEncodingAcceptable_Allocs(t *testing.T) {
	accept := []string{"gzip, deflate, br, zstd"}
	noAllocs(t, "EncodingAcceptable", func() { _ = rfc9111.EncodingAcceptable("gzip", accept, true) })
}

// Keys are equal exactly when the values are, for fields without a normal form of
// their own and without white space.
func TestAppendVariant_Injective(t *testing.T) {
	names := []string{"A", "B", "C"}
	value := rapid.SliceOfN(rapid.StringMatching(`[ab\x00\xff]{0,4}`), 0, 2)
	draw := func(t *rapid.T, label string) map[string][]string {
		h := map[string][]string{}
		for _, name := range names {
			if lines := value.Draw(t, label+name); len(lines) > 0 {
				h[name] = lines
			}
		}
		return h
	}
	combined := func(h map[string][]string) map[string]string {
		c := map[string]string{}
		for name, lines := range h {
			c[name] = strings.Join(lines, ",")
		}
		return c
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		if rapid.Bool().Draw(t, "same") {
			b = a
		}
		equal := cmp.Equal(combined(a), combined(b))
		if got := bytes.Equal(rfc9111.AppendVariant(nil, names, a), rfc9111.AppendVariant(nil, names, b)); got != equal {
			t.Fatalf("%q and %q: %v", a, b, got)
		}
	})
}

// The normal form of what is in normal form is itself, and means the same.
func TestAppendVariant_Idempotent(t *testing.T) {
	weight := rapid.SampledFrom([]string{"", ";q=1", ";q=0", ";q=0.5", " ; Q=0.123", ";q=x"})
	coding := rapid.SampledFrom([]string{"gzip", "BR", "x-gzip", "identity", "*", "foo", ""})
	rapid.Check(t, func(t *rapid.T) {
		var members []string
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			members = append(members, coding.Draw(t, "coding")+weight.Draw(t, "weight"))
		}
		line := strings.Join(members, rapid.SampledFrom([]string{",", ", ", " ,"}).Draw(t, "comma"))
		normal := strings.Join(rfc9111.NormalizeAcceptEncoding([]string{line}), ",")
		for _, name := range []string{"Accept-Encoding", "Accept-Language"} {
			key := variant([]string{name}, name+": "+line)
			again := variant([]string{name}, name+": "+key[4:])
			if key != again {
				t.Fatalf("%s: %q and again %q", name, key, again)
			}
		}
		for _, c := range []string{"gzip", "br", "", "foo", "zstd"} {
			a, b := rfc9111.EncodingAcceptable(c, []string{line}, true), rfc9111.EncodingAcceptable(c, []string{normal}, true)
			if a != b {
				t.Fatalf("%q is acceptable by %q: %v, by %q: %v", c, line, a, normal, b)
			}
		}
	})
}

// Work that grows with the square of the field's length would not end here before
// the time limit of go test.
func TestAppendVariant_Linear(t *testing.T) {
	long := strings.Repeat("gzip;q=0.5, \"a, ", 400_000)
	h := header("Accept-Encoding: "+long, "Accept-Language: "+long, "Foo: "+long)
	names := []string{"Accept-Encoding", "Accept-Language", "Foo"}
	key := rfc9111.AppendVariant(nil, names, h)
	if rfc9111.EncodingAcceptable("gzip", h["Accept-Encoding"], true) || rfc9111.LanguageAcceptable("en", h["Accept-Language"]) {
		t.Error("read what is malformed")
	}
	if !rfc9111.VariantUsable(names, key, key, h) {
		t.Error("does not match itself")
	}
}

func FuzzAppendVariant(f *testing.F) {
	f.Add("gzip, br;q=0", "Accept-Encoding, foo", "en, de;q=0.5", `"a , b`)
	f.Add(`"a,`, "*", "x;q=1.001", ` " \" , "`)
	f.Fuzz(func(t *testing.T, encoding, vary, language, foo string) {
		h := header("Accept-Encoding:"+encoding, "Accept-Language:"+language, "Foo:"+foo)
		names, star := rfc9111.ParseVary([]string{vary})
		if star && names != nil || !slices.IsSorted(names) {
			t.Errorf("%q: %q, %v", vary, names, star)
		}
		names = []string{"Accept-Encoding", "Accept-Language", "Bar", "Foo"}
		key := rfc9111.AppendVariant([]byte("x"), names, h)
		if key[0] != 'x' {
			t.Error("the prefix is lost")
		}
		if !rfc9111.VariantUsable(names, key[1:], key[1:], h) {
			t.Errorf("%q does not match itself", key)
		}
		_ = rfc9111.VariantUsable(names, []byte(foo), []byte(encoding), h)
		// White space around a value is no part of it.
		spaced := header("Accept-Encoding: "+encoding+"\t", "Accept-Language: "+language+" ", "Foo:\t "+foo+" ")
		if other := rfc9111.AppendVariant([]byte("x"), names, spaced); !bytes.Equal(key, other) {
			t.Errorf("%q and %q", key, other)
		}
	})
}

func BenchmarkAppendVariant(b *testing.B) {
	h := header("Accept-Encoding: gzip, deflate, br, zstd", "Accept-Language: en-US,en;q=0.9,de;q=0.8", "Origin: https://example.com")
	for name, names := range map[string][]string{"vary=encoding": {"Accept-Encoding"}, "vary=language": {"Accept-Language"}, "vary=other": {"Origin"}} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 256)
			b.ReportAllocs()
			for b.Loop() {
				buf = rfc9111.AppendVariant(buf[:0], names, h)
			}
		})
	}
}

func BenchmarkVariantUsable(b *testing.B) {
	names := []string{"Accept-Encoding"}
	stored, request := []byte(variant(names, "Accept-Encoding: gzip, deflate, br, zstd")), []byte(variant(names, "Accept-Encoding: gzip, deflate, br"))
	h := header("Content-Encoding: gzip")
	b.ReportAllocs()
	for b.Loop() {
		_ = rfc9111.VariantUsable(names, stored, request, h)
	}
}
