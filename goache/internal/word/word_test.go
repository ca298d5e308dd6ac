package word_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/hotset-go/hotset/goache/internal/word"
)

type inner struct {
	b byte
	s string
}

func TestOf_MarksPointerWords(t *testing.T) {
	if word.Size != 8 {
		t.Skip("the masks below are those of 64-bit systems")
	}
	check := func(name string, got, want word.Layout) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %04b, want %04b", name, got, want)
		}
	}
	check("int", word.Of[int](), 0)
	check("string", word.Of[string](), 0b1)
	check("slice", word.Of[[]int](), 0b1)
	check("any", word.Of[any](), 0b11)
	check("error", word.Of[error](), 0b11)
	check("map", word.Of[map[int]int](), 0b1)
	check("chan", word.Of[chan int](), 0b1)
	check("func", word.Of[func()](), 0b1)
	check("pointer", word.Of[*int](), 0b1)
	check("unsafe.Pointer", word.Of[unsafe.Pointer](), 0b1)
	check("uintptr", word.Of[uintptr](), 0)
	check("nothing", word.Of[struct{}](), 0)
	check("huge array of nothing", word.Of[[1 << 30]struct{}](), 0)
	check("inner", word.Of[inner](), 0b10)
	check("array", word.Of[[2]inner](), 0) // six words: boxed
	check("two strings", word.Of[[2]string](), 0b101)
	check("mixed", word.Of[struct {
		a bool
		p *int
		_ [0]string
		c int32
		e any
	}](), 0) // five words
	check("mixed", word.Of[struct {
		a bool
		e any
		_ [0]string
		p *int
	}](), 0b1110)
}

func TestCellSize(t *testing.T) {
	check := func(name string, got, want uintptr) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	const w = word.Size
	check("nothing", word.CellSize[struct{}](), 0)
	check("bool", word.CellSize[bool](), w)
	check("[3]byte", word.CellSize[[3]byte](), w)
	check("[9]byte", word.CellSize[[w + 1]byte](), 2*w)
	check("string", word.CellSize[string](), 2*w)
	check("largest", word.CellSize[[word.MaxWords]uintptr](), word.MaxWords*w)
	check("boxed", word.CellSize[[word.MaxWords*w + 1]byte](), w)
}

// roundTrip stores, loads and clears a value in memory that has a guard on both sides.
func roundTrip[T comparable](t *testing.T, values ...T) {
	t.Helper()
	type guarded struct {
		before uintptr
		cell   word.Cell[T]
		after  uintptr
	}
	type boxed struct {
		before uintptr
		cell   unsafe.Pointer
		after  uintptr
	}
	l := word.Of[T]()
	var p unsafe.Pointer
	var before, after *uintptr
	if word.Boxed[T]() {
		m := &boxed{before: 1, after: 2}
		p, before, after = unsafe.Pointer(&m.cell), &m.before, &m.after
	} else {
		m := &guarded{before: 1, after: 2}
		p, before, after = unsafe.Pointer(&m.cell), &m.before, &m.after
	}
	word.Init(p, values[0])
	for _, v := range values {
		for _, store := range []func(){func() { word.Init(p, v) }, func() { word.Store(l, p, v) }} {
			store()
			var a, b word.Cell[T]
			if got := *word.Load(l, &a, p); got != v {
				t.Errorf("%T: loaded %v, want %v", v, got, v)
			}
			if got := *word.Peek[T](p); got != v {
				t.Errorf("%T: peeked %v, want %v", v, got, v)
			}
			if !word.Same(word.Load(l, &a, p), word.Load(l, &b, p)) {
				t.Errorf("%T: two readings of %v are not the same", v, v)
			}
		}
	}
	word.Clear[T](l, p)
	if *before != 1 || *after != 2 {
		t.Errorf("%T: memory beside the cell was written", values[0])
	}
}

func TestCopy_RoundTrip(t *testing.T) {
	x, y := 1, 2
	roundTrip(t, 1, -1, 0)
	roundTrip[int8](t, 1, -1)
	roundTrip(t, true, false)
	roundTrip(t, 1.5, 0)
	roundTrip(t, [3]byte{1, 2, 3}, [3]byte{255, 255, 255})
	roundTrip(t, [9]byte{8: 1})
	roundTrip(t, "", "one", strings.Repeat("long", 100))
	roundTrip[any](t, nil, 1, "two", &x, inner{1, "x"})
	roundTrip(t, &x, &y, nil)
	roundTrip(t, struct{}{})
	roundTrip(t, inner{1, "a"}, inner{})
	roundTrip(t, [2]string{"a", "b"}, [2]string{})
	roundTrip(t, [word.MaxWords]*int{&x, nil, &y, &x})
	roundTrip(t, [10]string{"a", 9: "b"}, [10]string{})
	roundTrip(t, complex(1, 2))
}

func TestSame_TellsWordsApart(t *testing.T) {
	l := word.Of[inner]()
	x, y := new(word.Cell[inner]), new(word.Cell[inner])
	load := func(c *word.Cell[inner]) *inner { return word.Load(l, new(word.Cell[inner]), unsafe.Pointer(c)) }
	word.Store(l, unsafe.Pointer(x), inner{1, "same"})
	seen := load(x)
	if !word.Same(seen, load(x)) {
		t.Error("what did not change is not the same")
	}
	word.Store(l, unsafe.Pointer(y), inner{1, strings.Clone("same")})
	if word.Same(seen, load(y)) {
		t.Error("another string, though equal, is the same")
	}
}

// TestClear_LetsGo: what only the cell pointed to is collected.
func TestClear_LetsGo(t *testing.T) {
	p := unsafe.Pointer(new(word.Cell[[]byte]))
	l := word.Of[[]byte]()
	gone := make(chan bool, 1)
	func() {
		b := make([]byte, 1<<16)
		runtime.AddCleanup(&b[0], func(int) { gone <- true }, 0)
		word.Store(l, p, b)
	}()
	word.Clear[[]byte](l, p)
	for range 10 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(p)
			return
		default:
		}
	}
	t.Error("a cleared slice is still held")
}

// TestCopy_UnderASequenceCount is how the cache uses the package: readings that the
// count accepts are whole. The race detector has nothing to say about it.
func TestCopy_UnderASequenceCount(t *testing.T) {
	type value struct {
		n int
		s string
		p *int
	}
	var cell struct {
		seq atomic.Uint32
		v   word.Cell[value]
	}
	l, p := word.Of[value](), unsafe.Pointer(&cell.v)
	make1 := func(i int) value { return value{i, fmt.Sprint(i), &i} }
	word.Store(l, p, make1(0))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20_000 {
			v := make1(i)
			cell.seq.Add(1)
			word.Store(l, p, v)
			cell.seq.Add(1)
			if i%1000 == 0 {
				runtime.GC()
			}
		}
	}()
	accepted := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		seq := cell.seq.Load()
		var buf word.Cell[value]
		v := word.Load(l, &buf, p)
		if seq&1 != 0 || cell.seq.Load() != seq {
			continue
		}
		accepted++
		if v.s != fmt.Sprint(v.n) || *v.p != v.n {
			t.Fatalf("torn: %d %q %d", v.n, v.s, *v.p)
		}
	}
	if accepted == 0 {
		t.Error("no reading was accepted")
	}
}
