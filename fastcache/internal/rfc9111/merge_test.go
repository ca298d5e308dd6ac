package rfc9111_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// connection are the fields that must go, with one nominated by Connection.
var connection = []string{
	"Connection: a, b", "A: 1", "B: 2", "Keep-Alive: x", "TE: x", "Trailer: x", "Transfer-Encoding: x", "Upgrade: x",
	"Proxy-Authenticate: x", "Proxy-Authorization: x", "Proxy-Authentication-Info: x", "Proxy-Connection: x",
}

func TestStoredHeader_3_1(t *testing.T) {
	lines := append([]string{
		"C: 3", "Content-Type: text/plain", "Content-Length: 5", "Content-Encoding: gzip", "Age: 10", "Set-Cookie: a=b", "Set-Cookie: c=d",
		"Fastcache-Cache-Control: max-age=5", "CDN-Cache-Control: max-age=6", "Cache-Control: max-age=7", "X-User: u", "Date: " + date(0), "Proxy-Status: x",
	}, connection...)
	h := header(lines...)
	got := rfc9111.StoredHeader(h, &rfc9111.Decision{Strip: []string{"X-User", "X-Absent"}})
	want := header("C: 3", "Content-Type: text/plain", "Content-Length: 5", "Content-Encoding: gzip", "Set-Cookie: a=b", "Set-Cookie: c=d",
		"Fastcache-Cache-Control: max-age=5", "CDN-Cache-Control: max-age=6", "Cache-Control: max-age=7", "Date: "+date(0), "Proxy-Status: x")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(header(lines...), h); diff != "" {
		t.Errorf("the argument changed:\n%s", diff)
	}
	got["C"][0] = "changed"
	if h["C"][0] != "3" {
		t.Error("not a deep copy")
	}
}

func TestRemoveHopByHop_RFC9110_7_6_1(t *testing.T) {
	h := header(append([]string{"C: 3", "Age: 1"}, connection...)...)
	rfc9111.RemoveHopByHop(h)
	if diff := cmp.Diff(header("C: 3", "Age: 1"), h); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMergeNotModified_3_2(t *testing.T) {
	stored := []string{
		`ETag: "a"`, "Test-Header: A", "Content-Type: text/plain", "Content-Encoding: A", "Content-Length: 5", "Content-Range: A",
		"Cache-Control: max-age=1", "Set-Cookie: a=b", "Set-Cookie: c=d", "Date: " + date(-60), "Content-Foo: A", "Content-Location: /foo",
	}
	fresh := append([]string{
		`ETag: "a"`, "Content-Type: text/plain;charset=utf-8", "Content-Encoding: B", "Content-Length: 10", "Content-Range: B",
		"Cache-Control: max-age=3600", "Set-Cookie: e=f", "Date: " + date(0), "Content-Foo: B", "Content-Location: /bar", "New: 1", "Age: 7",
	}, connection...)
	want := header(`ETag: "a"`, "Test-Header: A", "Content-Type: text/plain;charset=utf-8", "Content-Encoding: A", "Content-Length: 5", "Content-Range: A",
		"Cache-Control: max-age=3600", "Set-Cookie: e=f", "Date: "+date(0), "Content-Foo: B", "Content-Location: /bar", "New: 1")
	s, f := header(stored...), header(fresh...)
	got := rfc9111.MergeNotModified(s, f)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got["Test-Header"][0], got["New"][0] = "changed", "changed"
	if diff := cmp.Diff([]any{header(stored...), header(fresh...)}, []any{s, f}); diff != "" {
		t.Errorf("an argument changed:\n%s", diff)
	}
}

func TestMergeNotModified_Absent(t *testing.T) {
	got := rfc9111.MergeNotModified(header("A: 1"), header("Content-Encoding: gzip", "Content-Length: 3", "Content-Range: x"))
	if diff := cmp.Diff(header("A: 1"), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := rfc9111.MergeNotModified(nil, nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestUpdateFromHead_4_3_5(t *testing.T) {
	tests := []struct {
		name          string
		stored, fresh []string
		want          []string // nil for refused
	}{
		{"nothing to compare", []string{"A: 1"}, []string{"Cache-Control: max-age=1000"}, []string{"A: 1", "Cache-Control: max-age=1000"}},
		{"all match", []string{`ETag: "a"`, "Last-Modified: x", "Content-Length: 5", "B: 1"}, []string{`ETag: "a"`, "Last-Modified: x", "Content-Length: 5", "B: 2"}, []string{`ETag: "a"`, "Last-Modified: x", "Content-Length: 5", "B: 2"}},
		{"missing in the update", []string{`ETag: "a"`, "Content-Length: 5"}, []string{"B: 2"}, []string{`ETag: "a"`, "Content-Length: 5", "B: 2"}},
		{"another ETag", []string{`ETag: "a"`}, []string{`ETag: "b"`}, nil},
		{"a new ETag", nil, []string{`ETag: "b"`}, nil},
		{"another Last-Modified", []string{"Last-Modified: x"}, []string{"Last-Modified: y"}, nil},
		{"another length", []string{"Content-Length: 5"}, []string{"Content-Length: 6"}, nil},
		{"a length where none is stored", nil, []string{"Content-Length: 6"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := rfc9111.UpdateFromHead(header(tt.stored...), header(tt.fresh...))
			if ok != (tt.want != nil) {
				t.Fatalf("%v", ok)
			}
			if diff := cmp.Diff(header(tt.want...), got); ok && diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
