package goache

import (
	"context"
	"errors"

	"github.com/hotset-go/hotset/goache/internal/word"
)

// GetOrLoadMany returns the values of the keys, as a map that the caller owns. It
// calls load once with those that are neither stored nor being loaded, each once, and
// stores what that returns. A key that is missing in load's result is not found: it is
// missing in the result too, and remembered with [WithNegativeTTL].
//
// All that [Cache.GetOrLoad] says of the context, of errors, panics and of writes
// during a load holds for each key. With an error the map has what could be had.
// Refresh-ahead does not apply. load owns its argument; keys in its result that were
// not asked for are ignored. NaN is never found.
func (c *Cache[K, V]) GetOrLoadMany(ctx context.Context, keys []K, load func(ctx context.Context, keys []K) (map[K]V, error)) (map[K]V, error) {
	if ctx == nil || load == nil {
		panic("goache: GetOrLoadMany with a nil context or a nil load function")
	}
	found := make(map[K]V, len(keys))
	own := trip[K, V]{c: c, load: load}
	var others []arrival[K, V]
	boarded := make(map[K]bool)
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = c.hash(key) // all of them first: a panic must not leave loads behind that nobody does
	}
	for i, key := range keys {
		if _, ok := found[key]; ok || boarded[key] || key != key { //nolint:staticcheck // NaN
			continue
		}
		h := hashes[i]
		if value, _, ok := c.lookup(key, c.onHit); ok {
			found[key] = value
			continue
		}
		if ctx.Err() != nil {
			continue // what is there is returned
		}
		s := c.shardOf(h)
		s.mu.Lock()
		if n, ok := c.live(s, h, key); ok { // stored since we looked
			found[key] = *word.Peek[V](valueAt(n))
		} else if !c.knownAbsent(key) {
			f, first := s.board(key)
			if first {
				own.add(key, h, f)
			} else {
				others = append(others, arrival[K, V]{key, f})
			}
			boarded[key] = true
		}
		s.mu.Unlock()
	}
	err := ctx.Err()
	if len(own.flights) > 0 {
		if ctx.Done() == nil {
			own.run(ctx, false)
		} else {
			go own.run(ctx, true)
		}
	}
	for i, f := range own.flights {
		value, e := f.waitFirst(ctx)
		err = take(found, own.keys[i], value, e, err)
	}
	for _, a := range others {
		value, e := a.flight.wait(ctx)
		err = take(found, a.key, value, e, err)
	}
	return found, err
}

// arrival is the load of another caller that this one waits for.
type arrival[K comparable, V any] struct {
	key    K
	flight *flight[V]
}

// take puts what a flight brought into found. It returns the first error of all.
func take[K comparable, V any](found map[K]V, key K, value V, err, first error) error {
	switch {
	case err == nil:
		found[key] = value
	case first == nil && !errors.Is(err, ErrNotFound):
		return err
	}
	return first
}

func (c *Cache[K, V]) knownAbsent(key K) bool {
	if c.absent == nil {
		return false
	}
	_, ok := c.absent.Get(key)
	return ok
}

func (t *trip[K, V]) add(key K, h uint64, f *flight[V]) {
	t.keys = append(t.keys, key)
	t.hashes = append(t.hashes, h)
	t.flights = append(t.flights, f)
}
