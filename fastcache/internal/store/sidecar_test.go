package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

func drawResponse(t *rapid.T) *store.Response {
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.IntRange(0, 4).Draw(t, "zero") == 0 {
			return time.Time{}
		}
		return time.Unix(0, rapid.Int64Range(math.MinInt64+1, math.MaxInt64).Draw(t, "nanos"))
	})
	duration := rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })
	h := http.Header(rapid.MapOfN(rapid.String(), rapid.SliceOfN(rapid.String(), 0, 3), 0, 6).Draw(t, "header"))
	vary := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z][a-z]{0,5}`), 0, 3, rapid.ID).Draw(t, "vary")
	return &store.Response{
		Status:               rapid.IntRange(100, 999).Draw(t, "status"),
		Header:               h,
		Born:                 instant.Draw(t, "born"),
		Lifetime:             duration.Draw(t, "lifetime"),
		StaleWhileRevalidate: duration.Draw(t, "swr"),
		StaleIfError:         duration.Draw(t, "sie"),
		Discard:              instant.Draw(t, "discard"),
		Flags:                store.Flags(rapid.Byte().Draw(t, "flags")),
		Vary:                 sorted(vary),
		Tags:                 sorted(rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID).Draw(t, "tags")),
	}
}

var sameResponse = cmp.Options{
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b []string) bool {
		return strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b)
	}),
}

func TestSidecar_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawResponse(t)
		key, vkey := rapid.String().Draw(t, "key"), rapid.String().Draw(t, "vkey")
		b, err := store.EncodeSidecar(key, vkey, r.Vary, rapid.Int64Range(0, math.MaxInt64).Draw(t, "size"), rapid.Uint32().Draw(t, "crc"), r)
		if err != nil {
			t.Fatal(err)
		}
		gotKey, gotVKey, got, err := store.DecodeSidecar(b)
		if err != nil {
			t.Fatal(err)
		}
		if gotKey != key || gotVKey != vkey {
			t.Fatalf("keys %q %q, want %q %q", gotKey, gotVKey, key, vkey)
		}
		if diff := cmp.Diff(r, got, sameResponse); diff != "" {
			t.Fatal(diff)
		}
		if again, err := store.Recode(b); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("re-encoded differently: %v", err)
		}
	})
}

func TestSidecar_EveryBitFlipIsSeen(t *testing.T) {
	r := response(200, "Accept-Encoding")
	r.Tags = []string{"a", "b"}
	b, err := store.EncodeSidecar("https://example.com/", "gzip", r.Vary, 10, 77, r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, _, _, err := store.DecodeSidecar(b); err == nil {
				t.Fatalf("bit %d of byte %d is not seen", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
	for n := range b {
		if _, _, _, err := store.DecodeSidecar(b[:n]); err == nil {
			t.Fatalf("cut to %d bytes is not seen", n)
		}
	}
	if _, _, _, err := store.DecodeSidecar(append(bytes.Clone(b), 0)); err == nil {
		t.Fatal("a byte too many is not seen")
	}
}

func TestSidecar_Bounds(t *testing.T) {
	r := response(200)
	r.Header["X"] = []string{strings.Repeat("v", store.MaxSidecar)}
	if _, err := store.EncodeSidecar("k", "", nil, 0, 0, r); !errors.Is(err, store.ErrTooBig) {
		t.Errorf("a value of 1 MiB: %v", err)
	}
	r.Header["X"] = []string{strings.Repeat("v", store.MaxSidecar-300)}
	if _, err := store.EncodeSidecar("k", "", nil, 0, 0, r); err != nil {
		t.Errorf("just below 1 MiB: %v", err)
	}
	if _, err := store.EncodeSidecar(strings.Repeat("k", store.MaxSidecar), "", nil, 0, 0, response(200)); !errors.Is(err, store.ErrTooBig) {
		t.Errorf("a key of 1 MiB: %v", err)
	}
	r = response(200)
	r.Header[strings.Repeat("n", 1<<16)] = []string{"v"}
	if _, err := store.EncodeSidecar("k", "", nil, 0, 0, r); !errors.Is(err, store.ErrTooBig) {
		t.Errorf("a name of 64 KiB: %v", err)
	}
	r = response(200)
	r.Tags = []string{strings.Repeat("t", 1<<16)}
	if _, err := store.EncodeSidecar("k", "", nil, 0, 0, r); !errors.Is(err, store.ErrTooBig) {
		t.Errorf("a tag of 64 KiB: %v", err)
	}
	for _, list := range [][]string{{"a", "a"}, {"b", "a"}} {
		r.Tags = list
		b, err := store.EncodeSidecar("k", "", nil, 0, 0, r)
		if _, _, _, derr := store.DecodeSidecar(b); err != nil || derr == nil {
			t.Errorf("tags %q: %v, %v", list, err, derr)
		}
	}
	r.Tags = nil
	for i := range 1 << 16 {
		r.Tags = append(r.Tags, fmt.Sprintf("%05d", i))
	}
	if _, err := store.EncodeSidecar("k", "", nil, 0, 0, r); !errors.Is(err, store.ErrTooBig) {
		t.Errorf("64 Ki tags: %v", err)
	}
	for _, status := range []int{-1, 0, 99, 1000, 1 << 16} {
		if _, err := store.EncodeSidecar("k", "", nil, 0, 0, response(status)); err == nil {
			t.Errorf("status %d is encoded", status)
		}
	}
}

func TestResponse_AppendingToOneLineLeavesTheNextAlone(t *testing.T) {
	r := response(200)
	r.Header = http.Header{"A": {"1"}, "B": {"2"}}
	b, err := store.EncodeSidecar("k", "", nil, 0, 0, r)
	if err != nil {
		t.Fatal(err)
	}
	_, _, got, err := store.DecodeSidecar(b)
	if err != nil {
		t.Fatal(err)
	}
	got.Header.Add("A", "x")
	if v := got.Header["B"]; len(v) != 1 || v[0] != "2" {
		t.Fatal(v)
	}
}

// FuzzSidecar looks for input that the decoder does not refuse and that is not the encoding of what
// it decodes to, that makes it panic, or that makes it allocate out of proportion.
func FuzzSidecar(f *testing.F) {
	r := response(200, "Accept", "Cookie")
	r.Discard = time.Now().Add(time.Hour)
	r.Tags = []string{"", "a", "ab"}
	b, _ := store.EncodeSidecar("https://example.com/x", "v", r.Vary, 10, 77, r)
	f.Add(b, false)
	f.Add(b, true)
	b, _ = store.EncodeSidecar("", "", nil, 0, 0, &store.Response{Status: 999})
	f.Add(b, true)
	f.Add([]byte("FCH5"), false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = bytes.Clone(b)
			store.SealSidecar(b) // else the checksum hides the rest of the decoder
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		again, err := store.Recode(b)
		runtime.ReadMemStats(&after)
		// Slack for the fuzzing engine's own goroutines.
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+100*len(b)); got > limit {
			t.Fatalf("%d bytes make it allocate %d", len(b), got)
		}
		if err == nil && !bytes.Equal(again, b) {
			t.Fatalf("% x\nis read, but written as\n% x", b, again)
		}
	})
}

func TestSidecar_HostileCounts(t *testing.T) {
	base, _ := store.EncodeSidecar("k", "", nil, 0, 0, &store.Response{Status: 200})
	for i := store.SidecarFixed; i < len(base); i++ {
		for _, v := range []byte{1, 0x7f, 0xff} {
			b := bytes.Clone(base)
			b[i] = v
			store.SealSidecar(b)
			if again, err := store.Recode(b); err == nil && !bytes.Equal(again, b) {
				t.Errorf("byte %d set to %#x is read but not written", i, v)
			}
		}
	}
}
