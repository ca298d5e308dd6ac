package goache

import (
	"testing"
	"unsafe"

	"github.com/hotset-go/hotset/goache/internal/word"
)

// These tests are inside the package: they pin what unsafe code relies on.

func TestNode_Offsets(t *testing.T) {
	checkOffsets[int, int](t)
	checkOffsets[string, int](t)
	checkOffsets[int8, string](t)
	checkOffsets[struct{}, struct{}](t)
	checkOffsets[int, struct{}](t)
	checkOffsets[struct{}, [3]byte](t)
	checkOffsets[any, any](t)
	checkOffsets[uint64, [5]byte](t)
}

// checkOffsets compares the offset of the value, which is the same in all nodes, with
// the compiler's, and holds the sizes to what atomics need.
func checkOffsets[K comparable, V any](t *testing.T) {
	t.Helper()
	type r = record[word.Cell[V], word.Cell[K]]
	if got, want := valueOffset, unsafe.Offsetof(r{}.value); got != want {
		t.Errorf("%T: the value is at %d, computed %d", r{}, want, got)
	}
	for _, kind := range []tails{noTail, withTail, withHeavyTail} {
		l := newLayout[K, V](kind)
		if l.stride%8 != 0 || l.tail%4 != 0 {
			t.Errorf("%T: nodes of %d bytes, tail at %d: a deadline must be aligned to 8 also on 32-bit systems", r{}, l.stride, l.tail)
		}
		if n := l.at(l.chunk(3), 2); uintptr(unsafe.Pointer(n))%8 != 0 {
			t.Errorf("%T: a node at %p", r{}, n)
		}
	}
}

// TestNode_Size pins the memory of an entry: each word more is 8 MB for a million.
func TestNode_Size(t *testing.T) {
	if word.Size != 8 {
		t.Skip("sizes of 64-bit systems")
	}
	check := func(name string, got, want uintptr) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d bytes, want %d", name, got, want)
		}
	}
	check("string to int", newLayout[string, int](noTail).stride, 40)
	check("string to int, bounded", newLayout[string, int](withTail).stride, 48)
	check("string to int, by weight", newLayout[string, int](withHeavyTail).stride, 56)
	check("int to int", newLayout[int, int](noTail).stride, 32)
	check("int to 64 bytes", newLayout[int, [64]byte](noTail).stride, 32)
	check("string to nothing", newLayout[string, struct{}](noTail).stride, 32)
}

// TestShard_LinesAreApart: what readers load must not share a line with what
// writers of this shard or the one before it store.
func TestShard_LinesAreApart(t *testing.T) {
	var s [2]shard[string, int]
	if n := unsafe.Sizeof(s[0]); n%cacheLine != 0 {
		t.Errorf("a shard has %d bytes", n)
	}
	if n := unsafe.Offsetof(s[0].shardWrite); n%cacheLine != 0 {
		t.Errorf("the mutex is %d bytes behind the table pointer", n)
	}
	if n := unsafe.Sizeof(readTally{}); n%cacheLine != 0 {
		t.Errorf("the counts of reads have %d bytes", n)
	}
	var other [2]shard[[9]string, [9]string]
	if n := unsafe.Sizeof(other[0]); n%cacheLine != 0 {
		t.Errorf("a shard of large types has %d bytes", n)
	}
}

// TestCache_ReadsGetPastAStuckWriter: a writer that lost its core in the middle of a
// write holds its shard's lock; a reader must wait for that and not spin.
func TestCache_ReadsGetPastAStuckWriter(t *testing.T) {
	c := New[string, string](WithShardCount(1))
	c.Set("a", "old")
	s := &c.shards[0]
	s.mu.Lock()
	n := c.find(s, bucketBits(c.hash("a")), "a")
	n.begin()
	got := make(chan string)
	go func() {
		v, _ := c.Get("a")
		got <- v
	}()
	word.Store(c.values, valueAt(n), "new")
	n.end()
	s.mu.Unlock()
	if v := <-got; v != "new" && v != "old" {
		t.Errorf("read %q", v)
	}

	// Free nodes keep an odd count: a reader that comes late to one finds a miss.
	s.mu.Lock()
	c.remove(s, n, Deleted)
	s.mu.Unlock()
	if n.seq.Load()&1 == 0 {
		t.Error("a free node can be read")
	}
	if _, ok := c.read(s, n, new(word.Cell[string]), new(word.Cell[string])); ok {
		t.Error("iteration reads a free node")
	}
	if v, ok := c.Get("a"); ok {
		t.Errorf("read %q", v)
	}
}
