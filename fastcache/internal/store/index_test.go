package store_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func TestSizes(t *testing.T) {
	// An Entry fills its size class, a shard a cache line: a field more doubles or splits.
	if store.SizeEntry != 128 {
		t.Errorf("Entry has %d bytes", store.SizeEntry)
	}
	if store.SizeShard != 64 {
		t.Errorf("shard has %d bytes", store.SizeShard)
	}
}

func TestSameAlias(t *testing.T) {
	groups := [][]string{
		{"http://a/x", "https://a/x", "https://a:8443/x", "http://a:80/x", "http://a:/x", "a/x"},
		{"http://a/y"},
		{"http://b/x", "https://b:1/x"},
		{"http://[::1]/x", "https://[::1]:443/x"},
		{"http://[::2]/x"},
		{"http://a", "https://a:1", "a"},
		{"http://a?q", "http://a:80?q"},
		{"http://a/x:80", "https://a/x:80"},
		{"http://a/x:81"},
		{"plain"},
		{"plain:80"},
		{"GET http://a/x"},
		{"http://a:8x/x"},
		{""},
	}
	for i, g := range groups {
		for j, h := range groups {
			for _, a := range g {
				for _, b := range h {
					if got := store.SameAlias(a, b); got != (i == j) {
						t.Errorf("%q and %q: %t", a, b, got)
					}
				}
			}
		}
	}
}

// TestIndex_ReadersWhileItGrowsAndShrinks: a key that is in the index throughout is always found.
func TestIndex_ReadersWhileItGrowsAndShrinks(t *testing.T) {
	s := open(t, ramOnly())
	const fixed = 50
	for i := range fixed {
		put(t, s, fmt.Sprint("fixed", i), nil, response(200), nil)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if e, _ := s.Lookup(fmt.Append(nil, "fixed", i%fixed), nil); e == nil {
					t.Error("a fixed key was missed")
					return
				}
			}
		})
	}
	for range 3 {
		for i := range 3000 {
			put(t, s, fmt.Sprint("moving", i), nil, response(200), nil)
		}
		n := 0
		for key, variants := range s.Keys {
			if variants != 1 {
				t.Errorf("%s has %d variants", key, variants)
			}
			n++
		}
		if n != fixed+3000 {
			t.Errorf("%d keys", n)
		}
		if n := purgeFunc(t, s, func(key string) bool { return key[0] == 'm' }, false); n != 3000 {
			t.Errorf("purged %d", n)
		}
	}
	stop.Store(true)
	wg.Wait()
	check(t, s)
}
