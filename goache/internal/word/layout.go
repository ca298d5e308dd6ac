package word

import (
	"reflect"
	"unsafe"
)

// Size is the size of a machine word in bytes.
const Size = unsafe.Sizeof(uintptr(0))

// MaxWords is the size of the largest type that is copied word by word. A word under a
// sequence count costs about 1.3 ns to read and 2 to write, a box one dependent load
// to read and an allocation (about 20 ns) to write: beyond four words the box reads
// faster.
const MaxWords = 4

// Layout tells which words of a type hold pointers: bit i stands for word i. It is 0
// for a boxed type.
type Layout uint8

// Of returns the layout of T.
func Of[T any]() Layout {
	if Boxed[T]() {
		return 0
	}
	var l Layout
	l.mark(reflect.TypeFor[T](), 0)
	return l
}

// mark sets the bits of the pointer words of a t at the offset, in bytes.
func (l *Layout) mark(t reflect.Type, offset uintptr) {
	if t.Size() == 0 {
		return // and an array of nothing may have a length that no loop ends
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func, reflect.String, reflect.Slice:
		*l |= 1 << (offset / Size)
	case reflect.Interface:
		// The first word points to a type or a method table. The collector does not
		// follow it, but it is a pointer, and may be handled as one.
		*l |= 3 << (offset / Size)
	case reflect.Array:
		for i := range t.Len() {
			l.mark(t.Elem(), offset+uintptr(i)*t.Elem().Size())
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			l.mark(f.Type, offset+f.Offset)
		}
	}
}

// Cell is memory for a T that begins and ends at a word, so that it can be copied by
// words however small and oddly aligned T is.
type Cell[T any] struct {
	_ [0]uintptr // aligns V
	V T
}

// Boxed reports whether a T is kept behind a pointer. It is a constant to the
// compiler.
func Boxed[T any]() bool {
	return unsafe.Sizeof(Cell[T]{}) > MaxWords*Size
}

// CellSize returns the number of bytes that shared memory needs for a T. It is a
// constant to the compiler.
func CellSize[T any]() uintptr {
	if Boxed[T]() {
		return Size
	}
	return unsafe.Sizeof(Cell[T]{})
}
