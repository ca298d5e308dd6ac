package goache_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hotset-go/hotset/goache"
)

// The model test runs random operations on a cache and on a slice of pairs, and
// compares every result, what OnRemove reports, and the whole content.

// fakeClock is a clock that a test moves.
type fakeClock struct{ t time.Time }

func newFakeClock() *fakeClock { return &fakeClock{time.Unix(1_700_000_000, 0)} }

func (f *fakeClock) now() time.Time { return f.t }

// kind makes values of a type from small numbers: equal for equal numbers, except
// where NaN says otherwise.
type kind[T any] struct {
	name string
	make func(i int) T
	same func(a, b T) bool // identity for the test; nil: by printing
}

func (k kind[T]) equal(a, b T) bool {
	if k.same != nil {
		return k.same(a, b)
	}
	return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

type padded struct {
	A int8
	B int64
	C int16
}

type withPointers struct {
	N int32
	S string
	P *int
}

type large struct {
	A, B, C string
	N       [5]int
}

var pointees = func() (p [64]*int) {
	for i := range p {
		p[i] = new(int)
		*p[i] = i
	}
	return p
}()

func makeInt(i int) int        { return i }
func makeInt8(i int) int8      { return int8(i) }
func makeString(i int) string  { return "key-" + strconv.Itoa(i) }
func makePadded(i int) padded  { return padded{int8(i), int64(i) << 33, int16(-i)} }
func makeArray(i int) [3]byte  { return [3]byte{1, byte(i), byte(i >> 8)} }
func makePointer(i int) *int   { return pointees[i%len(pointees)] }
func makeNothing(int) struct{} { return struct{}{} }
func makeLarge(i int) large    { return large{A: makeString(i), C: makeString(-i), N: [5]int{4: i}} }
func makeSlice(i int) []int    { return []int{i, -i}[:i%3%2+1] }

func makeFloat(i int) float64 {
	switch i % 8 {
	case 0:
		return math.NaN()
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return 0
	}
	return float64(i)
}

func makeMixed(i int) any {
	switch i % 6 {
	case 0:
		return i
	case 1:
		return makeString(i)
	case 2:
		return makePadded(i)
	case 3:
		return makeFloat(i)
	case 4:
		return nil
	}
	return makePointer(i)
}

func makeWithPointers(i int) withPointers {
	return withPointers{int32(i), makeString(i), makePointer(i)}
}

// Each pair of types is compiled on its own, so not all combinations are here: all
// kinds of key, all kinds of value, and the ways of holding one (one word, words, boxed,
// nothing) against each other.
func TestCache_Model(t *testing.T) {
	testModel(t, kind[int]{"int", makeInt, nil}, kind[string]{"string", makeString, nil})
	testModel(t, kind[string]{"string", makeString, nil}, kind[int]{"int", makeInt, nil})
	testModel(t, kind[string]{"string", makeString, nil}, kind[large]{"large", makeLarge, nil})
	testModel(t, kind[int8]{"int8", makeInt8, nil}, kind[*int]{"pointer", makePointer, nil})
	testModel(t, kind[padded]{"padded", makePadded, nil}, kind[withPointers]{"withPointers", makeWithPointers, nil})
	testModel(t, kind[withPointers]{"withPointers", makeWithPointers, nil}, kind[padded]{"padded", makePadded, nil})
	testModel(t, kind[[3]byte]{"array", makeArray, nil}, kind[[3]byte]{"array", makeArray, nil})
	testModel(t, kind[any]{"interface", makeMixed, nil}, kind[any]{"interface", makeMixed, nil})
	testModel(t, kind[float64]{"float", makeFloat, nil}, kind[float64]{"float", makeFloat, nil})
	testModel(t, kind[*int]{"pointer", makePointer, nil}, kind[[]int]{"slice", makeSlice, nil})
	testModel(t, kind[struct{}]{"nothing", makeNothing, nil}, kind[large]{"large", makeLarge, nil})
	testModel(t, kind[large]{"large", makeLarge, nil}, kind[struct{}]{"nothing", makeNothing, nil})
}

func testModel[K comparable, V any](t *testing.T, keys kind[K], values kind[V]) {
	t.Run(keys.name+"-"+values.name, func(t *testing.T) {
		for seed := range uint64(6) {
			runModel(t, keys, values, seed)
		}
	})
}

type modelPair[K comparable, V any] struct {
	key      K
	value    V
	deadline time.Time // zero: never
}

type modelRemoval[K comparable, V any] struct {
	key   K
	value V
	cause goache.Cause
}

// model is what the cache should do.
type model[K comparable, V any] struct {
	pairs []modelPair[K, V]
	gone  []modelRemoval[K, V]
	clock *fakeClock
}

func (m *model[K, V]) dead(p modelPair[K, V]) bool {
	return !p.deadline.IsZero() && !m.clock.t.Before(p.deadline)
}

func (m *model[K, V]) index(key K) int {
	return slices.IndexFunc(m.pairs, func(p modelPair[K, V]) bool { return p.key == key })
}

// live returns the index of a live pair, or -1.
func (m *model[K, V]) live(key K) int {
	if i := m.index(key); i >= 0 && !m.dead(m.pairs[i]) {
		return i
	}
	return -1
}

func (m *model[K, V]) get(key K) (v V, ok bool) {
	if i := m.live(key); i >= 0 {
		return m.pairs[i].value, true
	}
	return v, false
}

func (m *model[K, V]) leave(i int, cause goache.Cause) {
	p := m.pairs[i]
	if m.dead(p) {
		cause = goache.Expired
	}
	m.gone = append(m.gone, modelRemoval[K, V]{p.key, p.value, cause})
}

func (m *model[K, V]) set(key K, value V, ttl time.Duration) {
	var deadline time.Time
	if ttl > 0 {
		deadline = m.clock.t.Add(ttl)
	}
	m.put(key, value, deadline)
}

func (m *model[K, V]) put(key K, value V, deadline time.Time) {
	if i := m.index(key); i >= 0 {
		m.leave(i, goache.Replaced)
		m.pairs[i].value, m.pairs[i].deadline = value, deadline
		return
	}
	m.pairs = append(m.pairs, modelPair[K, V]{key, value, deadline})
}

func (m *model[K, V]) delete(key K, cause goache.Cause) {
	if i := m.index(key); i >= 0 {
		m.remove(i, cause)
	}
}

func (m *model[K, V]) remove(i int, cause goache.Cause) {
	m.leave(i, cause)
	m.pairs = slices.Delete(m.pairs, i, i+1)
}

func runModel[K comparable, V any](t *testing.T, keys kind[K], values kind[V], seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	clock := newFakeClock()
	m := &model[K, V]{clock: clock}
	var gone []modelRemoval[K, V]
	opts := []goache.Option{
		goache.WithClock(clock.now),
		goache.WithStats(),
		goache.WithOnRemove(func(key K, value V, cause goache.Cause) {
			gone = append(gone, modelRemoval[K, V]{key, value, cause})
		}),
	}
	var c *goache.Cache[K, V]
	if seed%2 == 0 {
		c = goache.New[K, V](append(opts, goache.WithShardCount(1<<(seed/2)))...)
	} else {
		c = &goache.NewSingleCore[K, V](opts...).Cache
	}

	space := 1 << (2 + seed) // from a handful of keys to more than a table's first buckets take
	key := func() K { return keys.make(rng.IntN(space)) }
	ttl := func() time.Duration { return time.Duration(rng.IntN(40)-10) * time.Millisecond }
	check := func(op string, got V, gotOK bool, want V, wantOK bool) {
		t.Helper()
		if gotOK != wantOK || !values.equal(got, want) {
			t.Fatalf("seed %d: %s: got %v %v, want %v %v", seed, op, got, gotOK, want, wantOK)
		}
	}
	var zero V
	for step := range 1500 {
		k, v := key(), values.make(rng.IntN(1<<10))
		switch rng.IntN(22) {
		case 0, 1, 2:
			c.Set(k, v)
			m.set(k, v, 0)
		case 3, 4:
			d := ttl()
			c.SetWithTTL(k, v, d)
			m.set(k, v, d)
		case 5, 6, 7:
			got, ok := c.Get(k)
			want, wantOK := m.get(k)
			check("Get", got, ok, want, wantOK)
		case 8:
			got, ok := c.Peek(k)
			want, wantOK := m.get(k)
			check("Peek", got, ok, want, wantOK)
		case 9:
			c.Delete(k)
			m.delete(k, goache.Deleted)
		case 10:
			got, stored := c.SetIfAbsentWithTTL(k, v, 5*time.Millisecond)
			want, exists := m.get(k)
			if !exists {
				want = v
				m.set(k, v, 5*time.Millisecond)
			}
			check("SetIfAbsent", got, !stored, want, exists)
		case 11:
			replaced := c.Replace(k, v)
			i := m.live(k)
			if i >= 0 {
				m.put(k, v, m.pairs[i].deadline)
			}
			check("Replace", zero, replaced, zero, i >= 0)
		case 12:
			op := goache.Op(rng.IntN(3))
			var old V
			var had bool
			got, ok := c.Compute(k, func(o V, h bool) (V, goache.Op) {
				old, had = o, h
				return v, op
			})
			want, wantOK := m.get(k)
			check("Compute's argument", old, had, want, wantOK)
			switch i := m.live(k); {
			case op == goache.Store && i >= 0:
				m.put(k, v, m.pairs[i].deadline)
			case op == goache.Store:
				m.set(k, v, 0)
			case op == goache.Remove:
				m.delete(k, goache.Deleted)
			}
			switch op {
			case goache.Store:
				want, wantOK = v, true
			case goache.Remove:
				want, wantOK = zero, false
			}
			check("Compute", got, ok, want, wantOK)
		case 13:
			got, ok := c.GetAndDelete(k)
			want, wantOK := m.get(k)
			m.delete(k, goache.Deleted)
			check("GetAndDelete", got, ok, want, wantOK)
		case 14:
			d := ttl()
			touched := c.Touch(k, d)
			i := m.live(k)
			if i >= 0 {
				m.pairs[i].deadline = time.Time{}
				if d > 0 {
					m.pairs[i].deadline = clock.t.Add(d)
				}
			}
			check("Touch", zero, touched, zero, i >= 0)
		case 15:
			got, left, ok := c.GetWithTTL(k)
			want, wantOK := m.get(k)
			check("GetWithTTL", got, ok, want, wantOK)
			var wantLeft time.Duration
			if i := m.live(k); i >= 0 && !m.pairs[i].deadline.IsZero() {
				wantLeft = m.pairs[i].deadline.Sub(clock.t)
			}
			if left != wantLeft {
				t.Fatalf("GetWithTTL: %v left, want %v", left, wantLeft)
			}
		case 16:
			var batch []goache.Entry[K, V]
			for range rng.IntN(8) {
				e := goache.Entry[K, V]{Key: key(), Value: values.make(rng.IntN(1 << 10)), TTL: ttl()}
				batch = append(batch, e)
				m.set(e.Key, e.Value, e.TTL)
			}
			c.SetMany(batch)
		case 17:
			var batch []K
			for range rng.IntN(8) {
				batch = append(batch, key())
				m.delete(batch[len(batch)-1], goache.Deleted)
			}
			c.DeleteMany(batch)
		case 18:
			batch := []K{key(), key(), key()}
			found := c.GetMany(nil, batch)
			for _, k := range batch {
				if want, ok := m.get(k); ok {
					if len(found) == 0 {
						t.Fatal("GetMany: a key is missing")
					}
					check("GetMany", found[0].Value, keys.equal(found[0].Key, k), want, true)
					found = found[1:]
				}
			}
			if len(found) != 0 {
				t.Fatal("GetMany found too much")
			}
		case 19:
			clock.t = clock.t.Add(time.Duration(rng.IntN(10)) * time.Millisecond)
		case 20:
			want := 0
			for i := len(m.pairs) - 1; i >= 0; i-- {
				if m.dead(m.pairs[i]) {
					m.remove(i, goache.Expired)
					want++
				}
			}
			if got := c.Purge(); got != want {
				t.Fatalf("Purge: %d, want %d", got, want)
			}
		case 21:
			switch rng.IntN(8) {
			case 0:
				c.Clear()
				for len(m.pairs) > 0 {
					m.remove(0, goache.Cleared)
				}
			case 1:
				// NaN included: what is seen can be removed.
				odd := func(v V) bool { return len(fmt.Sprint(v))%2 == 1 }
				want := 0
				for i := len(m.pairs) - 1; i >= 0; i-- {
					if p := m.pairs[i]; !m.dead(p) && odd(p.value) {
						m.remove(i, goache.Deleted)
						want++
					}
				}
				got := c.DeleteFunc(func(_ K, v V) bool { return odd(v) })
				if got != want {
					t.Fatalf("DeleteFunc: %d, want %d", got, want)
				}
			}
		}
		if got := c.Len(); got != len(m.pairs) {
			t.Fatalf("seed %d, step %d: Len %d, want %d", seed, step, got, len(m.pairs))
		}
		if len(gone) != len(m.gone) {
			t.Fatalf("seed %d, step %d: %d removals, want %d", seed, step, len(gone), len(m.gone))
		}
		if step%50 == 0 {
			compareContent(t, c, m, keys, values)
		}
	}
	compareContent(t, c, m, keys, values)
	compareRemovals(t, gone, m.gone, keys, values)
	compareStats(t, c.Stats(), m.gone)
}

// compareContent takes each live pair of the model away that All yields.
func compareContent[K comparable, V any](t *testing.T, c *goache.Cache[K, V], m *model[K, V], keys kind[K], values kind[V]) {
	t.Helper()
	rest := slices.Clone(m.pairs)
	rest = slices.DeleteFunc(rest, m.dead)
	for k, v := range c.All() {
		i := slices.IndexFunc(rest, func(p modelPair[K, V]) bool { return keys.equal(p.key, k) && values.equal(p.value, v) })
		if i < 0 {
			t.Fatalf("All yields %v: %v, which is not there", k, v)
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest) > 0 {
		t.Fatalf("All leaves out %v", rest)
	}
}

// compareRemovals compares without regard to order: within one call there is none.
func compareRemovals[K comparable, V any](t *testing.T, got, want []modelRemoval[K, V], keys kind[K], values kind[V]) {
	t.Helper()
	for _, w := range want {
		i := slices.IndexFunc(got, func(g modelRemoval[K, V]) bool {
			return g.cause == w.cause && keys.equal(g.key, w.key) && values.equal(g.value, w.value)
		})
		if i < 0 {
			t.Fatalf("the removal of %v: %v, %v was not reported", w.key, w.value, w.cause)
		}
		got = slices.Delete(got, i, i+1)
	}
}

func compareStats[K comparable, V any](t *testing.T, s goache.Stats, gone []modelRemoval[K, V]) {
	t.Helper()
	var want [5]uint64
	for _, g := range gone {
		want[g.cause]++
	}
	got := [5]uint64{s.Replaced, s.Deleted, s.Expired, s.Evicted, s.Cleared}
	if got != want {
		t.Fatalf("Stats counts removals %v, want %v", got, want)
	}
}
