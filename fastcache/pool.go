package fastcache

import (
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// stores holds the open stores by path. While a configuration is reloaded, the
// instances of the old and of the new one use the same store, so that nothing is
// lost and nothing is indexed twice.
var stores = caddy.NewUsagePool()

// sharedStore is one open store and the instances that use it.
type sharedStore struct {
	store       *store.Store
	equivalents *equivalents

	mu      sync.Mutex
	users   map[*lease]store.Limits // guarded by mu
	settled store.Stats             // what the tallies have of it; guarded by mu
}

// lease is one instance's share of a store.
type lease struct {
	shared *sharedStore
	key    any
	config *prometheus.Registry // stands for the configuration that the instance is part of
	tally  *tally               // of the instance
	user   *FastCache           // the instance
	once   sync.Once            // of release
	nested sync.Once            // of a warning
}

// poolKey tells which instances share a store: those with the same directory. A
// RAM-only instance without a configured path shares with nobody, because
// nothing in its configuration would tell it from another one.
type poolKey struct {
	path    string
	ramOnly bool
	owner   *FastCache // nil when shared by path
}

// openStore opens the store of an instance, or joins the one in use.
func openStore(ctx caddy.Context, fc *FastCache, limits store.Limits) (*lease, error) {
	key := poolKey{path: fc.Path, ramOnly: limits.Disk == 0}
	if key.ramOnly && fc.Path == defaultPath {
		key.owner = fc
	}
	value, _, err := stores.LoadOrNew(key, func() (caddy.Destructor, error) {
		s, err := store.Open(store.Options{
			Path:         fc.Path,
			Limits:       limits,
			NoTouch:      fc.DisableTouchOnHit,
			Logger:       ctx.Logger(),
			Now:          fc.now,
			VariantKey:   rfc9111.AppendVariant,
			SecondChance: rfc9111.VariantUsable,
		})
		if err != nil {
			return nil, err
		}
		return &sharedStore{store: s, equivalents: newEquivalents(fc.now), users: make(map[*lease]store.Limits)}, nil
	})
	if err != nil {
		return nil, err
	}
	l := &lease{shared: value.(*sharedStore), key: key, config: ctx.GetMetricsRegistry(), tally: fc.tally, user: fc}
	if l.shared.join(l, limits) {
		ctx.Logger().Warn("two fastcache blocks of this configuration use the same path: they share one store, with the larger of their budgets",
			zap.String("path", fc.Path))
	}
	return l, nil
}

// openStores returns the stores in use, each once.
func openStores() []*sharedStore {
	var open []*sharedStore
	stores.Range(func(_, value any) bool {
		open = append(open, value.(*sharedStore))
		return true
	})
	return open
}

// instances returns the instances that use the store.
func (s *sharedStore) instances() []*FastCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	users := make([]*FastCache, 0, len(s.users))
	for l := range s.users {
		users = append(users, l.user)
	}
	return users
}

func (l *lease) store() *store.Store { return l.shared.store }

// release gives the share up. The last one closes the store.
func (l *lease) release() error {
	var err error
	l.once.Do(func() {
		l.shared.leave(l)
		_, err = stores.Delete(l.key)
	})
	return err
}

// join adds a user and reports whether its configuration already had one.
func (s *sharedStore) join(l *lease, limits store.Limits) (twice bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.users {
		twice = twice || other.config == l.config
	}
	s.users[l] = limits
	s.applyLimits()
	return twice
}

func (s *sharedStore) leave(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, l)
	if len(s.users) > 0 {
		s.applyLimits()
		return
	}
	s.settleLocked(l.tally)
}

// settle adds to t what the store has counted since the last time, whoever it
// was for, and returns the snapshot. The metrics do it when they are read, and
// the last instance when it leaves, so that what a store has counted is not lost
// when it closes.
func (s *sharedStore) settle(t *tally) store.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settleLocked(t)
}

// settleLocked is settle; s.mu is held.
func (s *sharedStore) settleLocked(t *tally) store.Stats {
	now := s.store.Stats()
	t.addStore(s.settled, now)
	s.settled = now
	return now
}

// applyLimits gives the store the largest budgets of its users: a reload that
// fails must not have evicted anything, and one that shrinks a budget does so
// when the old instance leaves. s.mu is held.
func (s *sharedStore) applyLimits() {
	var largest store.Limits
	first := true
	for _, l := range s.users {
		if first {
			largest, first = l, false
			continue
		}
		largest.Memory = max(largest.Memory, l.Memory)
		largest.Disk = max(largest.Disk, l.Disk)
		largest.Items = laxer(largest.Items, l.Items)
		largest.Body = laxer(largest.Body, l.Body)
		largest.Variants = max(largest.Variants, l.Variants)
		largest.PromoteBelow = max(largest.PromoteBelow, l.PromoteBelow)
	}
	s.store.SetLimits(largest)
}

// laxer is the larger of two limits of which 0 stands for none.
func laxer[T int | int64](a, b T) T {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// Destruct implements caddy.Destructor.
func (s *sharedStore) Destruct() error { return s.store.Close() }
