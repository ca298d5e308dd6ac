package word

import (
	"sync/atomic"
	"unsafe"
)

// Load copies the value at p and returns a pointer to it: to buf, or, if T is boxed,
// to the box, which nobody changes. The result is nil if T is boxed and nothing is
// stored at p.
//
// Safety: p points to CellSize bytes, aligned to a word, that were written by [Init],
// [Store] or [Clear], or never, with the layout l of T.
func Load[T any](l Layout, buf *Cell[T], p unsafe.Pointer) *T {
	LoadWord(0, l, buf, p)
	LoadWord(1, l, buf, p)
	LoadWord(2, l, buf, p)
	LoadWord(3, l, buf, p)
	return Loaded(buf, p)
}

// LoadWord copies word i of the value at p to buf, if T has such a word and is not
// boxed. It exists because the compiler inlines it, and not Load: a read of a cache
// does all of Load's steps in place, which saves a call for the key and one for the
// value. What it compares is constant to the compiler: of four calls those remain that
// copy something.
//
// Safety: as for [Load].
func LoadWord[T any](i uintptr, l Layout, buf *Cell[T], p unsafe.Pointer) {
	if unsafe.Sizeof(*buf) > i*Size && unsafe.Sizeof(*buf) <= MaxWords*Size {
		to, from := unsafe.Add(unsafe.Pointer(buf), i*Size), unsafe.Add(p, i*Size)
		if l>>i&1 != 0 {
			*(*unsafe.Pointer)(to) = atomic.LoadPointer((*unsafe.Pointer)(from))
		} else {
			*(*uintptr)(to) = atomic.LoadUintptr((*uintptr)(from))
		}
	}
}

// Loaded returns what Load returns, once its words are in buf.
func Loaded[T any](buf *Cell[T], p unsafe.Pointer) *T {
	if unsafe.Sizeof(*buf) > MaxWords*Size {
		return (*T)(atomic.LoadPointer((*unsafe.Pointer)(p)))
	}
	return &buf.V
}

// Store copies v to p. If T is boxed it allocates the box.
//
// Safety: as for [Load]. Writers exclude each other.
func Store[T any](l Layout, p unsafe.Pointer, v T) {
	if unsafe.Sizeof(Cell[T]{}) > MaxWords*Size {
		box := new(T)
		*box = v
		atomic.StorePointer((*unsafe.Pointer)(p), unsafe.Pointer(box))
		return
	}
	buf := Cell[T]{V: v}
	from := unsafe.Pointer(&buf)
	if unsafe.Sizeof(buf) > 0*Size {
		store(l&1 != 0, p, from)
	}
	if unsafe.Sizeof(buf) > 1*Size {
		store(l&2 != 0, unsafe.Add(p, 1*Size), unsafe.Add(from, 1*Size))
	}
	if unsafe.Sizeof(buf) > 2*Size {
		store(l&4 != 0, unsafe.Add(p, 2*Size), unsafe.Add(from, 2*Size))
	}
	if unsafe.Sizeof(buf) > 3*Size {
		store(l&8 != 0, unsafe.Add(p, 3*Size), unsafe.Add(from, 3*Size))
	}
}

// Init is Store without atomics, for memory that no reader has ever seen.
func Init[T any](p unsafe.Pointer, v T) {
	if Boxed[T]() {
		box := new(T)
		*box = v
		*(*unsafe.Pointer)(p) = unsafe.Pointer(box)
		return
	}
	*(*T)(p) = v
}

// Peek is Load without atomics, for whoever excludes the writers. The result points
// into the shared memory, or to the box.
func Peek[T any](p unsafe.Pointer) *T {
	if Boxed[T]() {
		return *(**T)(p)
	}
	return (*T)(p)
}

// Clear drops what the pointers at p keep alive. Other words stay as they are. Writers
// exclude each other.
func Clear[T any](l Layout, p unsafe.Pointer) {
	if Boxed[T]() {
		l = 1
	}
	for i := uintptr(0); l != 0; i += Size {
		if l&1 != 0 {
			atomic.StorePointer((*unsafe.Pointer)(unsafe.Add(p, i)), nil)
		}
		l >>= 1
	}
}

// Same reports whether two values, read by [Load], are the same words: the same box if
// T is boxed. It compares neither what pointers point to nor as == does.
func Same[T any](a, b *T) bool {
	if Boxed[T]() {
		return a == b
	}
	for i := uintptr(0); i < unsafe.Sizeof(Cell[T]{}); i += Size {
		// Safety: a and b are the values of Cells.
		if *(*uintptr)(unsafe.Add(unsafe.Pointer(a), i)) != *(*uintptr)(unsafe.Add(unsafe.Pointer(b), i)) {
			return false
		}
	}
	return true
}

// store stores the word at from to to, unless it is there already: an atomic store
// costs 2 ns, and a load next to nothing. Two strings in turn often have one length.
//
// Safety: both are aligned to a word, and pointer tells the truth, so the collector
// sees each pointer as one. Only the caller writes, so it may load without atomics.
func store(pointer bool, to, from unsafe.Pointer) {
	if pointer {
		if p := *(*unsafe.Pointer)(from); p != *(*unsafe.Pointer)(to) {
			atomic.StorePointer((*unsafe.Pointer)(to), p)
		}
	} else if w := *(*uintptr)(from); w != *(*uintptr)(to) {
		atomic.StoreUintptr((*uintptr)(to), w)
	}
}
