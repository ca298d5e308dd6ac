// Package flight coalesces concurrent fetches of one key and remembers for a
// short time which keys are not worth coalescing.
//
// A [Group] hands out one [Call] a key: the first caller leads and fetches, the
// others follow and wait for it to land. A call carries no value: followers look
// into the store again, so that what they serve has passed the same checks as
// for any other request.
package flight

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// shards bounds contention on the maps; a fetch costs far more than a
	// short lock, so a handful is enough.
	shards = 16

	// maxMarks bounds the hit-for-miss marks of one generation of a shard. A
	// flood of distinct uncacheable URLs then costs at most 2*shards*maxMarks
	// small map slots, and a mark lost early costs one wait for one leader.
	maxMarks = 512
)

// Group coalesces calls by key. The zero value is not usable: call [NewGroup].
// All methods are safe for concurrent use.
type Group struct {
	seed   maphash.Seed
	now    func() time.Time
	shards [shards]shard
}

type shard struct {
	mu    sync.Mutex
	calls map[string]*Call // guarded by mu

	// Marks are hashes of keys with the time that they end. They are kept in
	// two generations: a full young one becomes the old one, whose marks are
	// then dropped, ended or not. Both are guarded by mu.
	young, old map[uint64]time.Time
}

// Call is one fetch in flight.
type Call struct {
	group *Group
	key   string
	done  chan struct{} // closed by Land
	once  sync.Once

	failed atomic.Bool
}

// NewGroup returns an empty group that reads the time from now.
func NewGroup(now func() time.Time) *Group {
	g := &Group{seed: maphash.MakeSeed(), now: now}
	for i := range g.shards {
		g.shards[i].calls = make(map[string]*Call)
		g.shards[i].young = make(map[uint64]time.Time)
	}
	return g
}

// Join returns the call in flight for key, or starts one. The caller that
// started it (leader true) must call [Call.Land] on every path, also when it
// panics.
func (g *Group) Join(key string) (c *Call, leader bool) {
	s := g.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.calls[key]; ok {
		return c, false
	}
	c = &Call{group: g, key: key, done: make(chan struct{})}
	s.calls[key] = c
	return c, true
}

// Flying reports whether a call for key is in flight.
func (g *Group) Flying(key string) bool {
	s := g.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.calls[key]
	return ok
}

// Fail notes that the fetch has failed, for those who wait. It goes before Land.
func (c *Call) Fail() { c.failed.Store(true) }

// Failed reports whether the fetch has failed. It is settled once Wait has returned
// true.
func (c *Call) Failed() bool { return c.failed.Load() }

// Land ends the call and wakes its followers. It may be called more than once.
func (c *Call) Land() {
	c.once.Do(func() {
		s := c.group.shard(c.key)
		s.mu.Lock()
		delete(s.calls, c.key)
		s.mu.Unlock()
		close(c.done)
	})
}

// Wait blocks until the call lands (true), or until ctx is done or the limit
// has passed (false).
func (c *Call) Wait(ctx context.Context, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-c.done:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

// Mark remembers for d that answers for key cannot be shared, so that requests
// for it go to the origin side by side instead of queueing (hit-for-miss).
func (g *Group) Mark(key string, d time.Duration) {
	s := g.shard(key)
	h := maphash.String(g.seed, key)
	end := g.now().Add(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= maxMarks {
		s.old, s.young = s.young, make(map[uint64]time.Time)
	}
	s.young[h] = end
}

// Unmark forgets the mark of key.
func (g *Group) Unmark(key string) {
	s := g.shard(key)
	h := maphash.String(g.seed, key)
	s.mu.Lock()
	delete(s.young, h)
	delete(s.old, h)
	s.mu.Unlock()
}

// Marked reports whether key carries a mark that has not ended.
func (g *Group) Marked(key string) bool {
	s := g.shard(key)
	h := maphash.String(g.seed, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.young[h]
	if !ok {
		end, ok = s.old[h]
	}
	return ok && g.now().Before(end)
}

func (g *Group) shard(key string) *shard {
	return &g.shards[maphash.String(g.seed, key)%shards]
}
