package goache

import (
	"sync/atomic"
	"unsafe"

	"github.com/hotset-go/hotset/goache/internal/word"
)

// A node is an entry in memory: this head, then the value, then the key, each as
// package word copies it, and in bounded caches a tail for the policy. Nodes lie in
// chunks, never move, and are used again for other keys.
//
// What guards what: the shard's mutex excludes writers. Readers hold no lock; they
// read seq, then what they want by atomic loads, then seq again. An even count that
// did not change means that all of it belongs together. An odd count means that the
// node is being written, or free; then there is nothing to be read in it.
type node struct {
	seq      atomic.Uint32
	hash     uint32       // of the key; guarded by the shard's mutex
	deadline atomic.Int64 // on the cache's clock; 0: never expires
}

// tail is what a bounded cache adds to a node.
type tail struct {
	uses atomic.Uint32 // hits since the policy last looked, at most policy.MaxUses
	slot uint32        // the node's number in its shard; immutable
}

// heavyTail is the tail in a cache that is bounded by weight.
type heavyTail struct {
	tail
	weight uint32 // guarded by the shard's mutex; 0: pinned, and not in the policy
}

const valueOffset = unsafe.Sizeof(node{})

// valueAt returns where a node's value is. Safety: a node is the head of a record.
func valueAt(n *node) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(n), valueOffset) }

// record and tailed are the nodes' types for the collector. A and B stand for the
// value and the key, as a word.Cell or boxed.
type record[A, B any] struct {
	_     node
	value A
	key   B
}

type tailed[A, B, T any] struct {
	_    record[A, B]
	tail T
}

// layout is how the nodes of a cache are made. Immutable.
type layout struct {
	keys, values word.Layout
	key          uintptr // offset of the key in a node
	stride       uintptr // from one node of a chunk to the next
	tail         uintptr // offset of the tail; 0: none
	chunk        func(n int) unsafe.Pointer
}

// tails are the kinds of cache, as far as nodes are concerned.
type tails uint8

const (
	noTail tails = iota
	withTail
	withHeavyTail
)

func newLayout[K comparable, V any](t tails) layout {
	l := layout{keys: word.Of[K](), values: word.Of[V]()}
	switch boxedKey, boxedValue := word.Boxed[K](), word.Boxed[V](); {
	case boxedKey && boxedValue:
		shape[unsafe.Pointer, unsafe.Pointer](&l, t)
	case boxedKey:
		shape[word.Cell[V], unsafe.Pointer](&l, t)
	case boxedValue:
		shape[unsafe.Pointer, word.Cell[K]](&l, t)
	default:
		shape[word.Cell[V], word.Cell[K]](&l, t)
	}
	return l
}

func shape[A, B any](l *layout, t tails) {
	l.key = unsafe.Offsetof(record[A, B]{}.key)
	switch t {
	case withTail:
		l.tail = unsafe.Offsetof(tailed[A, B, tail]{}.tail)
		l.stride, l.chunk = chunks[tailed[A, B, tail]]()
	case withHeavyTail:
		l.tail = unsafe.Offsetof(tailed[A, B, heavyTail]{}.tail)
		l.stride, l.chunk = chunks[tailed[A, B, heavyTail]]()
	default:
		l.stride, l.chunk = chunks[record[A, B]]()
	}
}

func chunks[R any]() (stride uintptr, chunk func(n int) unsafe.Pointer) {
	return unsafe.Sizeof(*new(R)), func(n int) unsafe.Pointer {
		return unsafe.Pointer(unsafe.SliceData(make([]R, n)))
	}
}

// at returns node i of a chunk. Safety: the chunk has more than i nodes.
func (l *layout) at(chunk unsafe.Pointer, i int) *node {
	return (*node)(unsafe.Add(chunk, uintptr(i)*l.stride))
}

// keyAt returns where a node's key is. Safety: the node was made with the layout.
func (l *layout) keyAt(n *node) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(n), l.key) }

// tailOf returns the tail of a node in a bounded cache. Safety: l.tail is not 0.
func (l *layout) tailOf(n *node) *tail {
	return (*tail)(unsafe.Add(unsafe.Pointer(n), l.tail))
}

// heavyTailOf returns the tail of a node in a cache that is bounded by weight. Safety:
// the layout was made withHeavyTail.
func (l *layout) heavyTailOf(n *node) *heavyTail {
	return (*heavyTail)(unsafe.Add(unsafe.Pointer(n), l.tail))
}

// begin makes readers of the node wait or retry, until end.
func (n *node) begin() { n.seq.Store(n.seq.Load() | 1) }

// end lets readers see the node again.
func (n *node) end() { n.seq.Store((n.seq.Load() | 1) + 1) }
