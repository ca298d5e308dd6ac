package rfc9111_test

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

func variance(lines ...string) rfc9111.SearchVariance { return rfc9111.ParseNoVarySearch(lines) }

// TestParseNoVarySearch_Invalid has the draft's examples (section 5.2.1) of
// fields that give the default variance, and others.
func TestParseNoVarySearch_Invalid(t *testing.T) {
	for _, field := range []string{
		``, `unknown-key`, `key-order="not a boolean"`, `params="not a boolean or inner list"`, `params=(not-a-string)`,
		`params=("a"), except=("x")`, `params=(), except=()`, `params=?0, except=("x")`, `params, except=(not-a-string)`,
		`params, except="not an inner list"`, `params, except=?1`, `except=("x")`, `except=()`,
		// Valid, and the same as no field.
		`params=?0`, `params=()`, `key-order=?0`, `key-order=?0, params=(), x=1`,
		// One bad part makes all of it invalid.
		`params=("a"`, `params=("a") key-order`, `key-order, params=1`, `key-order=1, params`, `params=("a" 1)`, `Params`, `params=("é")`,
		`params=("a"), key-order=(?1)`, `params=("%ff")`, `params, except=("a" "%f6")`,
		// The last of several with one name counts.
		`params, params=?0`, `key-order, key-order=1`,
		`params=("` + strings.Repeat("a", 5000) + `")`,
	} {
		if v := variance(field); !v.IsDefault() || !v.Equal(rfc9111.SearchVariance{}) {
			t.Errorf("%.50s: %+v, want the default", field, v)
		}
	}
	if v := variance(); !v.IsDefault() {
		t.Errorf("no field: %+v", v)
	}
}

// TestParseNoVarySearch_Same: fields that are written in another way (section
// 5.2.1), are equal.
func TestParseNoVarySearch_Same(t *testing.T) {
	different := make([]rfc9111.SearchVariance, 0, 8)
	for _, fields := range [][]string{
		{`params`, `params=?1`, `params;x=1`, `params, except=()`, `new, params`, `params=("x"), params`},
		{`key-order`, `key-order=?1`, `key-order, params=()`, `key-order, params=?0`},
		{`key-order, params`, `params,key-order`},
		{`params=("a")`, `params=("%61")`, `params=("a" "a")`, `params=("a";x=1);y`},
		{`params=("a b" "b")`, `params=("b" "a+b")`, `params=("b" "a%20b")`},
		{`params, except=("x")`, `except=("x"), params`, `params=?1, except=("%78")`},
		{`key-order, params, except=("x")`, `params, key-order, except=("x")`},
		{`params=("%C3%A9+%E6%B0%97")`, `params=("%c3%a9%20%e6%b0%97")`},
	} {
		first := variance(fields[0])
		for _, field := range fields {
			if v := variance(field); v.IsDefault() || !v.Equal(first) {
				t.Errorf("%s is not %s: %+v", field, fields[0], v)
			}
		}
		for _, other := range different {
			if first.Equal(other) {
				t.Errorf("%s is equal to %+v", fields[0], other)
			}
		}
		different = append(different, first)
	}
	if !variance(`params`, `except=("x")`).Equal(variance(`params, except=("x")`)) {
		t.Error("two lines are not one list")
	}
}

// TestSearchVariance_Equivalent: the queries of one list are equivalent, those of
// different lists are not. Most are from the draft (sections 5.3.1 and 6.1).
func TestSearchVariance_Equivalent(t *testing.T) {
	for field, classes := range map[string][][]string{
		``: {
			{""}, {"?"}, {"?a=b&&&c"}, {"?a=b&c="}, {"?a"}, {"?a="}, {"?%61"}, {"?a&b"}, {"?b&a"}, {"?a=%20"}, {"?a=+"},
		},
		`key-order`: {
			{"", "?", "?&", "?&&"},
			{"?a=x", "?%61=%78", "?a=x&&&&", "?&a=x"},
			{"?a=%C3%A9", "?a=%c3%a9", "?a=\xc3\xa9"},
			{"?a=", "?a", "?%61=&"},
			{"?a=%20", "?a=+", "?a=%20&"},
			{"?a=1&b=2", "?b=2&a=1", "?&b=2&&a=1"},
			{"?a=1&a=2&b", "?b&a=1&a=2", "?a=1&b&a=2"},
			{"?a=2&a=1&b", "?b&a=2&a=1"}, // of one name, the order counts
			{"?=", "?=&"},
			{"?=a"},
			{"?a=b=c", "?a=b%3Dc"},
			{"?a%3Db=c"},
			{"?a=%2B"},
			{"?a=%", "?a=%25"},
			{"?a=%2"},
			{"?a=%2g"},
			{"?A=x"},
			{"?a=X"},
			{"?a=%00"},
			{"?a=%0A"},
			{"?a?"},
			{"?a=1;b=2"},
			// Not UTF-8: the draft takes the first three for one.
			{"?a=%f6"},
			{"?a=%ef%bf%bd"},
			{"?a=\xf6"},
			{"?b&a=%f6"},
			{"?a=%fe%ff"},
			{"?%f6&b"},
			{"?b&%f6"},
		},
		`params`: {
			{"", "?", "?a", "?a=1&b", "?a=%f6", "?%C3%A9"}, {"?%f6"}, {"?%f5"},
		},
		`params=("a" "utm_source")`: {
			{"", "?", "?a", "?a=2", "?utm_source=x&a=%f6", "?%61"},
			{"?b", "?a&b", "?b&a=1", "?b="},
			{"?b&c"},
			{"?c&b", "?a&c&utm_source&b"},
			{"?A"},
			{"?b=%f6"},
			{"?b=%f6&a"},
		},
		`params, except=("id" "p")`: {
			{"", "?a", "?x=id&ID=1"}, {"?id=1", "?a&id=1&b", "?id=%31"}, {"?id=2"}, {"?id=1&id=2"}, {"?id=1&p=1", "?x=1&id=1&p=1"}, {"?p=1&id=1"},
		},
		`params, key-order, except=("id" "p")`: {
			{"?id=1&p=1", "?x=1&p=1&y&id=1"}, {"?id=2&p=1"},
		},
		`params=("%C3%A9+%E6%B0%97")`: {
			{"", "?\xc3\xa9+\xe6\xb0\x97=2", "?%C3%A9%20\xe6\xb0\x97=3", "?%C3%A9+%E6%B0%97=4"}, {"?%C3%A9=1"},
		},
		`params, except=("x+y")`: {
			{"?x+y=1", "?x%20y=1"}, {"", "?xy=1", "?x%2By=1"},
		},
	} {
		v := variance(field)
		for i, class := range classes {
			for _, a := range class {
				for j, other := range classes {
					for _, b := range other {
						if got := v.Equivalent("http://h/p"+a, "http://h/p"+b); got != (i == j) {
							t.Errorf("%s: %q and %q: %v", field, a, b, got)
						}
					}
				}
				for _, elsewhere := range []string{"http://h/P", "http://h/p/", "https://h/p", "http://h:8080/p", "http://g/p", "http://h/p%20"} {
					if v.Equivalent("http://h/p"+a, elsewhere+a) {
						t.Errorf("%s: %q of %s is equivalent", field, a, elsewhere)
					}
				}
			}
		}
	}
}

// TestSearchVariance_Hostile: what an origin or a client can send is bounded in
// its cost, and read right.
func TestSearchVariance_Hostile(t *testing.T) {
	var forth, back []string
	for i := range 10_000 {
		forth = append(forth, fmt.Sprintf("p%d=%d", i, i))
	}
	back = slices.Clone(forth)
	slices.Reverse(back)
	a, b := "/?"+strings.Join(forth, "&"), "/?"+strings.Join(back, "&")
	if !variance("key-order").Equivalent(a, b) || variance("params=(\"p1\")").Equivalent(a, b) {
		t.Error("10,000 parameters are compared wrongly")
	}
	if v := variance(`params=("` + strings.Join(forth[:300], `" "`) + `")`); v.IsDefault() {
		t.Error("300 names are refused")
	}
}

// draftEquivalent is the comparison of the draft (section 6), written from its
// steps with the decoder of net/url. ok is false for queries that net/url refuses, for
// a bad percent sign.
func draftEquivalent(anyOrder, only bool, names []string, a, b string) (equivalent, ok bool) {
	if !anyOrder && !only && len(names) == 0 {
		return a == b, true
	}
	listA, okA := draftParams(anyOrder, only, names, a)
	listB, okB := draftParams(anyOrder, only, names, b)
	return slices.Equal(listA, listB), okA && okB
}

func draftParams(anyOrder, only bool, names []string, target string) (list [][2]string, ok bool) {
	_, query, _ := strings.Cut(target, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil {
			return nil, false
		}
		name, value = strings.ToValidUTF8(name, "\uFFFD"), strings.ToValidUTF8(value, "\uFFFD")
		if slices.Contains(names, name) == only {
			list = append(list, [2]string{name, value})
		}
	}
	if anyOrder {
		slices.SortStableFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	}
	return list, true
}

// TestSearchVariance_Draft compares with the draft's own steps.
func TestSearchVariance_Draft(t *testing.T) {
	part := rapid.StringOfN(rapid.SampledFrom([]rune("aab%6&&==+é")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		anyOrder, only := rapid.Bool().Draw(t, "key-order"), rapid.Bool().Draw(t, "only")
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "f", "aa", ""}), 0, 3).Draw(t, "names")
		field := "key-order=?0"
		if anyOrder {
			field = "key-order"
		}
		list := `("` + strings.Join(names, `" "`) + `")`
		switch {
		case only && len(names) == 0:
			field += ", params"
		case only:
			field += ", params, except=" + list
		case len(names) > 0:
			field += ", params=" + list
		}
		// b is a with its parameters in another order, some written anew.
		a := "/?" + part.Draw(t, "a")
		b := "/?" + part.Draw(t, "b")
		if rapid.Bool().Draw(t, "related") {
			params := rapid.Permutation(strings.Split(a[2:], "&")).Draw(t, "params")
			b = "/?" + strings.Join(params, "&") + rapid.SampledFrom([]string{"", "&", "&a=1", "&b"}).Draw(t, "more")
		}
		want, ok := draftEquivalent(anyOrder, only, names, a, b)
		// Where the query is not UTF-8, less is equivalent than in the draft.
		got := variance(field).Equivalent(a, b)
		if ok && got != want && (got || isUTF8(a) && isUTF8(b)) {
			t.Fatalf("%s: %q and %q: %v, want %v", field, a, b, got, want)
		}
	})
}

func isUTF8(query string) bool {
	decoded, err := url.QueryUnescape(query)
	return err == nil && utf8.ValidString(decoded)
}

// FuzzNoVarySearch: whatever an origin and three clients send, equivalence is an
// equivalence relation, holds between URLs of one base only, and never where the
// draft does not say so.
func FuzzNoVarySearch(f *testing.F) {
	f.Add(`params=("a" "%C3%A9"), key-order`, "/?a=1&b=2", "/?b=2&a=1", "/?b=%32&&a")
	f.Add(`params, except=("a")`, "/?a=%f6", "/?a=\xff\xfe", "/?%61=%ef%bf%bd#")
	f.Add(`key-order`, "/p?b&a", "/p?a&b=", "/p\n")
	f.Fuzz(func(t *testing.T, field, a, b, c string) {
		v := variance(field)
		keys := make([]string, 0, 3)
		for _, uri := range []string{a, b, c} {
			key, ok := rfc9111.AppendTarget(nil, "http", "h", uri)
			if !ok {
				return
			}
			keys = append(keys, string(key))
		}
		a, b, c = keys[0], keys[1], keys[2]
		ab, bc, ac := v.Equivalent(a, b), v.Equivalent(b, c), v.Equivalent(a, c)
		switch {
		case !v.Equivalent(a, a):
			t.Errorf("%s: %q is not equivalent to itself", field, a)
		case ab != v.Equivalent(b, a):
			t.Errorf("%s: not symmetric: %q, %q", field, a, b)
		case ab && bc && !ac, ab && ac && !bc, ac && bc && !ab:
			t.Errorf("%s: not transitive: %q, %q, %q", field, a, b, c)
		case ab && v.IsDefault() && a != b:
			t.Errorf("%s is the default, %q and %q are equivalent", field, a, b)
		}
		forms := [2]string{string(v.AppendCanonical([]byte("x"), a)), string(v.AppendCanonical([]byte("x"), b))}
		if ab != (forms[0] == forms[1]) || forms[0][0] != 'x' {
			t.Errorf("%s: %q and %q: forms %q", field, a, b, forms)
		}
		baseA, queryA, _ := strings.Cut(a, "?")
		baseB, queryB, _ := strings.Cut(b, "?")
		if ab && baseA != baseB {
			t.Errorf("%s: %q and %q are equivalent", field, a, b)
		}
		// By the widest rules all that is left are the names and the values of
		// parameters: without any, two URLs must be equivalent.
		if !v.IsDefault() && baseA == baseB && strings.Trim(queryA+queryB, "&") == "" && !ab {
			t.Errorf("%s: %q and %q are not equivalent", field, a, b)
		}
		if variance("params").Equivalent(a, b) != (a == b || baseA == baseB && namesAreUTF8(queryA) && namesAreUTF8(queryB)) {
			t.Errorf("params: %q and %q", a, b)
		}
	})
}

func namesAreUTF8(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		var b []byte
		for i := 0; i < len(name); i++ {
			if name[i] == '%' && i+2 < len(name) {
				if c, err := hex.DecodeString(name[i+1 : i+3]); err == nil {
					b, i = append(b, c...), i+2
					continue
				}
			}
			b = append(b, name[i])
		}
		if !utf8.Valid(b) {
			return false
		}
	}
	return true
}

func BenchmarkSearchVariance_AppendCanonical(b *testing.B) {
	v := variance(`params=("utm_source" "utm_medium" "utm_campaign"), key-order`)
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buf = v.AppendCanonical(buf[:0], "https://www.example.com/products?utm_source=x&id=12&page=2&utm_campaign=a%20b")
	}
}
