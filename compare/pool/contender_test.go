package pool_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/hotset-go/hotset/compare/pool"
)

// Every line gives slices of the length that was asked for, which nobody else holds, and takes them back.
func TestSlicePools_Conform(t *testing.T) {
	for _, sp := range pool.SlicePools() {
		t.Run(sp.Name, func(t *testing.T) {
			for _, size := range []int{1, 63, 64, 1000, 1024, 1025, 40_000, 1 << 20} {
				s := sp.New(size)
				for range 3 { // new slices, then used ones
					type loan struct {
						b       []byte
						release func()
					}
					var loans []loan
					for i := range max(2, min(20, 100_000/size)) {
						b, release := s.Take(size)
						if len(b) != size {
							t.Fatalf("asked for %d bytes, got %d", size, len(b))
						}
						copy(b, bytes.Repeat([]byte{byte(i)}, size))
						loans = append(loans, loan{b, release})
					}
					for i, l := range loans {
						if n := bytes.Count(l.b, []byte{byte(i)}); n != size {
							t.Fatalf("size %d: slice %d shares bytes with another: %d are its own", size, i, n)
						}
						l.release()
					}
				}
			}
		})
	}
}

// One pool serves slices of many sizes, up to the one that it was made for.
func TestSlicePools_MixedSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const most = 8192
	for _, sp := range pool.SlicePools() {
		t.Run(sp.Name, func(t *testing.T) {
			s := sp.New(most)
			for range 500 {
				size := 1 + r.IntN(most)
				b, release := s.Take(size)
				if len(b) != size {
					t.Fatalf("asked for %d bytes, got %d", size, len(b))
				}
				release()
			}
		})
	}
}

// A pool gives a slice back that was returned to it; "make" is the one that is none. sync.Pool may lose some, so one of many
// is enough.
func TestSlicePools_Recycle(t *testing.T) {
	const size = 1024
	for _, sp := range pool.SlicePools() {
		t.Run(sp.Name, func(t *testing.T) {
			s := sp.New(size)
			seen := make(map[*byte]bool)
			var kept [][]byte // all stay reachable, so that no address can come up again by a new allocation
			again := false
			for range 50 {
				b, release := s.Take(size)
				again = again || seen[unsafe.SliceData(b)]
				seen[unsafe.SliceData(b)] = true
				kept = append(kept, b)
				release()
			}
			if want := sp.Name != "make"; again != want {
				t.Errorf("storage came back: %v, want %v (%d slices)", again, want, len(kept))
			}
		})
	}
}

// The timed loops run, from several goroutines, and leave a pool that works.
func TestSlicePools_Loops(t *testing.T) {
	for _, sp := range pool.SlicePools() {
		t.Run(sp.Name, func(t *testing.T) {
			s := sp.New(1024)
			together(4, 1000, func(n int) {
				s.Cycle(n, 1024)
				s.Hold(n, 1024)
				s.Handoff(n, 1024)
			})
			b, release := s.Take(1024)
			defer release()
			if len(b) != 1024 {
				t.Errorf("afterwards: %d bytes, want 1024", len(b))
			}
		})
	}
}

// together runs body in several goroutines.
func together(goroutines, n int, body func(n int)) {
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() { body(n) })
	}
	wg.Wait()
}

// What is written into a buffer, in any pieces, comes out.
func TestBufferPools_Conform(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	data := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
	for _, bp := range pool.BufferPools() {
		t.Run(bp.Name, func(t *testing.T) {
			p := bp.New()
			for round := range 20 {
				total := r.IntN(1 << r.IntN(22))
				b, release := p.Open()
				for at := 0; at < total; {
					n := min(total-at, 1+r.IntN(10_000))
					if got, err := b.Write(data[at : at+n]); got != n || err != nil {
						t.Fatalf("wrote %d of %d: %v", got, n, err)
					}
					at += n
				}
				content(t, b, data[:total])
				release()

				b, release = p.Open()
				if n, err := b.ReadFrom(plain{bytes.NewReader(data[:total])}); int(n) != total || err != nil {
					t.Fatalf("round %d: read %d of %d: %v", round, n, total, err)
				}
				content(t, b, data[:total])
				release()
			}
		})
	}
}

// plain hides the WriterTo of a reader.
type plain struct{ r *bytes.Reader }

func (p plain) Read(b []byte) (int, error) { return p.r.Read(b) }

func content(t *testing.T, b pool.Stream, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if n, err := b.WriteTo(&got); int(n) != len(want) || err != nil {
		t.Fatalf("WriteTo: %d of %d, %v", n, len(want), err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("%d bytes differ from what was written", len(want))
	}
}

func TestBufferPools_Loops(t *testing.T) {
	data := make([]byte, 100_000)
	for _, bp := range pool.BufferPools() {
		t.Run(bp.Name, func(t *testing.T) {
			p := bp.New()
			together(4, 10, func(n int) {
				p.Write(n, data[:64], 300)
				p.ReadFrom(n, data)
			})
			b, release := p.Open()
			defer release()
			content(t, b, nil)
		})
	}
}

// Names become parts of benchmark names, and goals find their figures by them.
func TestPools_Names(t *testing.T) {
	check := func(kind string, names []string) {
		seen := make(map[string]bool)
		for _, name := range names {
			if name == "" || strings.ContainsAny(name, " /=:\t") || seen[name] {
				t.Errorf("%s: the name %q is empty, not one word or not the only one", kind, name)
			}
			seen[name] = true
		}
	}
	var names []string
	for _, sp := range pool.SlicePools() {
		names = append(names, sp.Name)
	}
	check("slices", names)
	names = nil
	for _, bp := range pool.BufferPools() {
		names = append(names, bp.Name)
	}
	check("buffers", names)
}
