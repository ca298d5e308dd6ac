package rfc9111_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

const maxDelta = 1 << 31 * time.Second

func sec(n int) rfc9111.Seconds {
	return rfc9111.Seconds{D: time.Duration(n) * time.Second, Set: true}
}

func TestDirectives_ParseCacheControl_5_2(t *testing.T) {
	type D = rfc9111.Directives
	tests := []struct {
		name  string
		lines []string
		want  D
	}{
		{"no field", nil, D{}},
		{"empty", []string{""}, D{}},
		{"5.2.2 all booleans", []string{"no-store, no-cache, private, public, must-revalidate, proxy-revalidate, must-understand, immutable, no-transform, only-if-cached"}, D{
			NoStore: true, NoCache: true, Private: true, Public: true, MustRevalidate: true, ProxyRevalidate: true,
			MustUnderstand: true, Immutable: true, NoTransform: true, OnlyIfCached: true,
		}},
		{"5.2.2 all seconds", []string{"max-age=1, s-maxage=2, stale-while-revalidate=3, stale-if-error=4, min-fresh=5, max-stale=6"}, D{
			MaxAge: sec(1), SMaxAge: sec(2), StaleWhileRevalidate: sec(3), StaleIfError: sec(4), MinFresh: sec(5), MaxStale: sec(6),
		}},
		{"case", []string{"MaX-aGe=3600, No-StOrE"}, D{MaxAge: sec(3600), NoStore: true}},
		{"lines", []string{"max-age=1", "public"}, D{MaxAge: sec(1), Public: true}},
		{"white space and empty members", []string{" ,, \tmax-age=1 ,, public\t,"}, D{MaxAge: sec(1), Public: true}},
		{"5.2.3 extensions", []string{`foobar, foo=bar, foo="bar, no-store", max-age=1`}, D{MaxAge: sec(1)}},
		{"5.2 quoted argument", []string{`max-age="3600"`}, D{MaxAge: sec(3600)}},
		{"5.2 quoted argument with escapes", []string{`max-age="\3\6"`}, D{MaxAge: sec(36)}},
		{"quoted comma does not split", []string{`extension="max-age=3600", max-age=1`}, D{MaxAge: sec(1)}},
		{"quoted comma does not split, reversed", []string{`max-age=1, extension="max-age=3600"`}, D{MaxAge: sec(1)}},
		{"quoted escape does not end", []string{`extension="\", max-age=3600", max-age=1`}, D{MaxAge: sec(1)}},
		{"4.2.1 first of two", []string{"max-age=1800, max-age=1"}, D{MaxAge: sec(1800)}},
		{"4.2.1 first of two lines", []string{"max-age=1", "max-age=1800"}, D{MaxAge: sec(1)}},
		{"4.2.1 first of two, malformed", []string{"max-age=x, max-age=1800"}, D{MaxAge: sec(0)}},
		{"1.2.2 leading zeros", []string{"max-age=003600"}, D{MaxAge: sec(3600)}},
		{"1.2.2 2^31-1", []string{"max-age=2147483647"}, D{MaxAge: sec(2147483647)}},
		{"1.2.2 2^31", []string{"max-age=2147483648"}, D{MaxAge: sec(2147483648)}},
		{"1.2.2 2^31+1", []string{"max-age=2147483649"}, D{MaxAge: sec(2147483648)}},
		{"1.2.2 beyond a Duration", []string{"max-age=99999999999"}, D{MaxAge: sec(2147483648)}},
		{"1.2.2 beyond an int64", []string{"max-age=" + strings.Repeat("9", 400)}, D{MaxAge: sec(2147483648)}},
		{"4.2.1 decimal", []string{"max-age=3600.0"}, D{MaxAge: sec(0)}},
		{"4.2.1 alpha first", []string{"max-age=a3600"}, D{MaxAge: sec(0)}},
		{"4.2.1 alpha last", []string{"max-age=3600a"}, D{MaxAge: sec(0)}},
		{"4.2.1 negative", []string{"max-age=-3600"}, D{MaxAge: sec(0)}},
		{"4.2.1 plus", []string{"max-age=+3600"}, D{MaxAge: sec(0)}},
		{"4.2.1 empty", []string{"max-age="}, D{MaxAge: sec(0)}},
		{"4.2.1 empty quoted", []string{`max-age=""`}, D{MaxAge: sec(0)}},
		{"4.2.1 no argument", []string{"max-age"}, D{MaxAge: sec(0)}},
		{"4.2.1 single quotes", []string{"max-age='3600'"}, D{MaxAge: sec(0)}},
		{"4.2.1 space before equals", []string{"max-age =3600"}, D{MaxAge: sec(0)}},
		{"4.2.1 space after equals", []string{"max-age= 3600"}, D{MaxAge: sec(0)}},
		{"4.2.1 other digits", []string{"max-age=٣٦٠٠"}, D{MaxAge: sec(0)}},
		{"4.2.1 garbage behind quotes", []string{`max-age="1"2`}, D{MaxAge: sec(0)}},
		{"4.2.1 colon", []string{`max-age:3600`}, D{MaxAge: sec(0)}},
		{"5.2.1.2 max-stale alone", []string{"max-stale"}, D{MaxStale: rfc9111.Seconds{D: maxDelta, Set: true}}},
		{"5.2.1.2 max-stale malformed", []string{"max-stale=x"}, D{MaxStale: sec(0)}},
		{"5.2.2.4 qualified no-cache", []string{`no-cache="set-cookie, x-a"`}, D{NoCacheFields: []string{"Set-Cookie", "X-A"}}},
		{"5.2.2.4 qualified no-cache, token", []string{`no-cache=set-cookie`}, D{NoCacheFields: []string{"Set-Cookie"}}},
		{"5.2.2.7 qualified private", []string{`private="X-USER"`}, D{PrivateFields: []string{"X-User"}}},
		{"5.2.2.7 qualified and not", []string{`private="x-user", private`}, D{Private: true, PrivateFields: []string{"X-User"}}},
		{"5.2.2.7 qualified twice", []string{`private="a"`, `private="b"`}, D{PrivateFields: []string{"A", "B"}}},
		{"5.2.2.7 no field is all fields", []string{`private="", no-cache=" , "`}, D{Private: true, NoCache: true}},
		{"5.2.2.7 not a field is all fields", []string{`private="a b"`}, D{Private: true}},
		{"5.2.2.7 malformed is all fields", []string{`private ="a"`, `no-cache= "a"`}, D{Private: true, NoCache: true}},
		{"restrictions with arguments stand", []string{"no-store=1, must-revalidate=0, proxy-revalidate=x"}, D{NoStore: true, MustRevalidate: true, ProxyRevalidate: true}},
		{"permissions with arguments do not", []string{"public=1, must-understand=x"}, D{}},
		{"RFC 8246 2 arguments are ignored", []string{`immutable="x"`}, D{Immutable: true}},
		{"restrictions before garbage stand", []string{"no-store max-age=60"}, D{NoStore: true}},
		{"names are whole", []string{"no-stores, xno-store, max-ages=5"}, D{}},
		{"not ASCII case", []string{"no-\u017ftore"}, D{}}, // long s folds to s in Unicode
		{"unbalanced quote hides no restriction", []string{`ext="a, no-store, max-age=60, public`}, D{NoStore: true, MaxAge: sec(0)}},
		{"unbalanced quote, qualified", []string{`private="a, b`}, D{Private: true}},
		{"unbalanced quote ends with its line", []string{`ext="a`, `max-age=60`}, D{MaxAge: sec(60)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rfc9111.ParseCacheControl(tt.lines)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDirectives_RequestDirectives_5_4(t *testing.T) {
	type D = rfc9111.Directives
	tests := []struct {
		name  string
		lines []string
		want  D
	}{
		{"nothing", nil, D{}},
		{"cache-control", []string{"Cache-Control: max-age=0, only-if-cached"}, D{MaxAge: sec(0), OnlyIfCached: true}},
		{"pragma alone", []string{"Pragma: no-cache"}, D{NoCache: true}},
		{"pragma list", []string{"Pragma: foo, No-Cache"}, D{NoCache: true}},
		{"pragma other", []string{"Pragma: no-cached"}, D{}},
		{"pragma with cache-control", []string{"Pragma: no-cache", "Cache-Control: max-age=5"}, D{MaxAge: sec(5)}},
		{"pragma with empty cache-control", []string{"Pragma: no-cache", "Cache-Control:"}, D{}},
		{"targeted fields are for responses", []string{"CDN-Cache-Control: no-store"}, D{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rfc9111.RequestDirectives(header(tt.lines...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDirectives_RequestDirectives_Allocs(t *testing.T) {
	h := header("User-Agent: x")
	noAllocs(t, "RequestDirectives", func() { _ = rfc9111.RequestDirectives(h) })
	h = header("Cache-Control: max-age=0, no-cache")
	noAllocs(t, "RequestDirectives with field", func() { _ = rfc9111.RequestDirectives(h) })
}

func TestDirectives_ResponseDirectives_RFC9213(t *testing.T) {
	type D = rfc9111.Directives
	tests := []struct {
		name  string
		lines []string
		want  D
	}{
		{"only Cache-Control", []string{"Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.2 targeted replaces", []string{"Cache-Control: no-store", "CDN-Cache-Control: max-age=10000"}, D{MaxAge: sec(10000), Targeted: true}},
		{"2.2 target list order", []string{"CDN-Cache-Control: max-age=1", "Fastcache-Cache-Control: max-age=2"}, D{MaxAge: sec(2), Targeted: true}},
		{"2.2 unknown directives alone replace too", []string{"Cache-Control: max-age=1", "CDN-Cache-Control: foo"}, D{Targeted: true}},
		{"2.1 extension", []string{"CDN-Cache-Control: foobar, max-age=3600"}, D{MaxAge: sec(3600), Targeted: true}},
		{"2.1 empty is ignored", []string{"CDN-Cache-Control:", "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 spaces are ignored", []string{"CDN-Cache-Control:    ", "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 not a dictionary", []string{"CDN-Cache-Control: max-age=10000, &&&&&", "Cache-Control: no-store"}, D{NoStore: true}},
		{"2.1 the next in the list is tried", []string{"Fastcache-Cache-Control: &", "CDN-Cache-Control: max-age=2", "Cache-Control: no-store"}, D{MaxAge: sec(2), Targeted: true}},
		{"2.1 upper case is not a key", []string{"CDN-Cache-Control: MaX-aGe=3600", "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 space before equals", []string{"CDN-Cache-Control: max-age =100", "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 space after equals", []string{"CDN-Cache-Control: max-age= 100", "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 trailing comma", []string{"CDN-Cache-Control: max-age=100,", "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 wrong type: string", []string{`CDN-Cache-Control: max-age="10000"`, "Cache-Control: no-store"}, D{NoStore: true}},
		{"2.1 wrong type: decimal", []string{`CDN-Cache-Control: max-age=10.5`, "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 wrong type: inner list", []string{`CDN-Cache-Control: max-age=(1 2)`, "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 wrong type: true", []string{`CDN-Cache-Control: max-age`, "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 wrong type: false", []string{`CDN-Cache-Control: public=?0`, "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 wrong type: integer for a boolean", []string{`CDN-Cache-Control: must-revalidate=1`, "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"what an ill-typed field forbids stands", []string{`CDN-Cache-Control: no-store, max-age="60"`, "Cache-Control: max-age=60"}, D{NoStore: true, MaxAge: sec(60)}},
		{"what an ill-typed field forbids stands in the next targeted one", []string{`Fastcache-Cache-Control: private, max-age="60"`, "CDN-Cache-Control: max-age=60"}, D{Private: true, MaxAge: sec(60), Targeted: true}},
		{"what an ill-typed field allows does not", []string{`CDN-Cache-Control: public, s-maxage=5, max-age="60"`, "Cache-Control: max-age=60"}, D{MaxAge: sec(60)}},
		{"no-cache of a wrong type forbids", []string{`CDN-Cache-Control: no-cache=5`, "Cache-Control: max-age=60"}, D{NoCache: true, MaxAge: sec(60)}},
		{"2.1 negative seconds", []string{`CDN-Cache-Control: max-age=-5`, "Cache-Control: max-age=60"}, D{MaxAge: sec(0), Targeted: true}},
		{"2^31", []string{"CDN-Cache-Control: max-age=2147483648"}, D{MaxAge: sec(1 << 31), Targeted: true}},
		{"beyond 2^31", []string{"CDN-Cache-Control: max-age=99999999999"}, D{MaxAge: sec(1 << 31), Targeted: true}},
		{"beyond an integer", []string{"CDN-Cache-Control: max-age=9999999999999999", "Cache-Control: max-age=1"}, D{MaxAge: sec(1)}},
		{"2.1 parameters are ignored", []string{`CDN-Cache-Control: max-age=60;a=b, no-store;x`}, D{MaxAge: sec(60), NoStore: true, Targeted: true}},
		{"RFC 8941 last key counts", []string{"CDN-Cache-Control: max-age=1", "CDN-Cache-Control: max-age=2"}, D{MaxAge: sec(2), Targeted: true}},
		{"all directives", []string{"CDN-Cache-Control: no-store, no-cache, private, public, must-revalidate, proxy-revalidate, must-understand, immutable, no-transform, s-maxage=1, stale-while-revalidate=2, stale-if-error=3"}, D{
			NoStore: true, NoCache: true, Private: true, Public: true, MustRevalidate: true, ProxyRevalidate: true,
			MustUnderstand: true, Immutable: true, NoTransform: true, SMaxAge: sec(1), StaleWhileRevalidate: sec(2), StaleIfError: sec(3), Targeted: true,
		}},
		{"qualified, string", []string{`CDN-Cache-Control: no-cache="a, b", max-age=1`}, D{NoCacheFields: []string{"A", "B"}, MaxAge: sec(1), Targeted: true}},
		{"qualified, inner list", []string{`CDN-Cache-Control: private=("a" b), max-age=1`}, D{PrivateFields: []string{"A", "B"}, MaxAge: sec(1), Targeted: true}},
		{"qualified, token", []string{`CDN-Cache-Control: private=set-cookie`}, D{PrivateFields: []string{"Set-Cookie"}, Targeted: true}},
		{"qualified, no field", []string{`CDN-Cache-Control: private=(), no-cache=""`}, D{Private: true, NoCache: true, Targeted: true}},
		{"qualified, wrong type inside", []string{`CDN-Cache-Control: private=(1)`, "Cache-Control: max-age=5"}, D{Private: true, MaxAge: sec(5)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rfc9111.ResponseDirectives(header(tt.lines...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A quote that never ends must not make the parser look at the rest of the field
// once for every comma. If it does, this test runs into the time limit of go test.
func TestDirectives_ParseCacheControl_Linear(t *testing.T) {
	line := `a="` + strings.Repeat(`,\"`, 2_000_000) + ", no-store"
	if d := rfc9111.ParseCacheControl([]string{line}); !d.NoStore {
		t.Error("lost no-store")
	}
}

func inBounds(t *testing.T, d rfc9111.Directives) {
	t.Helper()
	for _, s := range []rfc9111.Seconds{d.MaxAge, d.SMaxAge, d.StaleIfError, d.StaleWhileRevalidate, d.MinFresh, d.MaxStale} {
		if s.D < 0 || s.D > maxDelta || !s.Set && s.D != 0 {
			t.Errorf("seconds out of bounds: %+v", s)
		}
	}
}

func FuzzDirectives_ParseCacheControl(f *testing.F) {
	f.Add(`max-age=60, private="a, b", no-cache=x`, ` ext="\",no-store`)
	f.Add(`max-age="1`, `,,,="`)
	f.Fuzz(func(t *testing.T, a, b string) {
		d := rfc9111.ParseCacheControl([]string{a, b})
		inBounds(t, d)
		// A prohibition in front cannot be undone by anything behind.
		d = rfc9111.ParseCacheControl([]string{"no-store, private, no-cache", a, b})
		if !d.NoStore || !d.Private || !d.NoCache {
			t.Errorf("lost a prohibition in %q, %q", a, b)
		}
		// Nor can it be hidden by anything on a line of its own in front.
		d = rfc9111.ParseCacheControl([]string{a, b, "no-store"})
		if !d.NoStore {
			t.Errorf("lost no-store behind %q, %q", a, b)
		}
	})
}

func FuzzDirectives_ResponseDirectives(f *testing.F) {
	f.Add("max-age=60, private=(a \"b\")", "no-store;a=1", "max-age=5")
	f.Add("max-age=:YQ==:", "a=%\"f%c3\"", "x=@1")
	f.Fuzz(func(t *testing.T, own, cdn, cc string) {
		h := header("Fastcache-Cache-Control:"+own, "CDN-Cache-Control:"+cdn, "Cache-Control:"+cc)
		d := rfc9111.ResponseDirectives(h)
		inBounds(t, d)
		if !d.Targeted && !d.NoStore && rfc9111.ParseCacheControl([]string{cc}).NoStore {
			t.Errorf("no-store of Cache-Control is lost: %v", h)
		}
	})
}

func BenchmarkDirectives_RequestDirectives(b *testing.B) {
	for name, h := range map[string][]string{
		"field=none": {"User-Agent: x", "Accept: */*"},
		"field=some": {"Cache-Control: max-age=0, no-cache"},
	} {
		h := header(h...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = rfc9111.RequestDirectives(h)
			}
		})
	}
}

func BenchmarkDirectives_ResponseDirectives(b *testing.B) {
	for name, h := range map[string][]string{
		"field=cache-control": {"Cache-Control: public, max-age=3600, stale-while-revalidate=60"},
		"field=targeted":      {"CDN-Cache-Control: public, max-age=3600, stale-while-revalidate=60"},
	} {
		h := header(h...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = rfc9111.ResponseDirectives(h)
			}
		})
	}
}
