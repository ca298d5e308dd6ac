package policy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hotset-go/hotset/goache/internal/policy"
)

// cache is a cache of hashes as small as a policy allows: what the tests and the
// simulator drive a policy with.
type cache struct {
	policy policy.Policy
	slots  []slot
	index  map[uint32]uint32 // hash to slot
	free   []uint32
	limit  int

	looked int // calls of Look
}

type slot struct {
	hash, uses uint32
	expired    bool
}

func newCache(limit int, make func(policy.Slots, int) policy.Policy) *cache {
	c := &cache{index: map[uint32]uint32{}, limit: limit}
	c.policy = make(c, limit)
	return c
}

func (c *cache) Look(i uint32) (hash, uses uint32, expired bool) {
	c.looked++
	s := c.slots[i]
	return s.hash, s.uses, s.expired
}

func (c *cache) SetUses(i, uses uint32) { c.slots[i].uses = uses }

// access reports a hit, or stores the hash.
func (c *cache) access(hash uint32) bool {
	if i, ok := c.index[hash]; ok {
		c.slots[i].uses = min(c.slots[i].uses+1, policy.MaxUses)
		return true
	}
	for len(c.index) >= c.limit {
		c.evict()
	}
	var i uint32
	if n := len(c.free); n > 0 {
		i, c.free = c.free[n-1], c.free[:n-1]
	} else {
		i = uint32(len(c.slots))
		c.slots = append(c.slots, slot{})
	}
	c.slots[i] = slot{hash: hash}
	c.index[hash] = i
	c.policy.Add(i, hash)
	return false
}

func (c *cache) evict() uint32 {
	i, ok := c.policy.Victim()
	if !ok {
		panic("no victim in a cache that is full")
	}
	hash := c.slots[i].hash
	if c.index[hash] != i {
		panic(fmt.Sprintf("victim %d is not in the cache", i))
	}
	delete(c.index, hash)
	c.free = append(c.free, i)
	return hash
}

func (c *cache) remove(hash uint32) {
	if i, ok := c.index[hash]; ok {
		c.policy.Remove(i)
		delete(c.index, hash)
		c.free = append(c.free, i)
	}
}

func window(s policy.Slots, n int) policy.Policy { return policy.NewWindow(s, n) }
func clock(s policy.Slots, n int) policy.Policy  { return policy.NewClock(s, n) }

var policies = map[string]func(policy.Slots, int) policy.Policy{"window": window, "clock": clock}

// TestPolicy_Model: whatever happens, a victim is always an entry that is there, there is
// one as long as there are entries, and what was just stored is not it.
func TestPolicy_Model(t *testing.T) {
	for name, make := range policies {
		for _, limit := range []int{1, 2, 3, 9, 10, 11, 100} {
			rng := rand.New(rand.NewPCG(uint64(limit), 1))
			c := newCache(limit, make)
			for range 20_000 {
				hash := rng.Uint32N(uint32(3 * limit))
				switch rng.IntN(20) {
				case 0:
					c.remove(hash)
				case 1:
					if i, ok := c.index[hash]; ok {
						c.slots[i].expired = true
					}
				case 2:
					if rng.IntN(100) == 0 {
						c.policy.Clear()
						clear(c.index)
						c.slots, c.free = nil, nil
					}
				case 3:
					if rng.IntN(100) == 0 {
						c.limit = 1 + rng.IntN(2*limit)
						c.policy.Resize(c.limit)
						for len(c.index) > c.limit {
							c.evict()
						}
					}
				default:
					c.access(hash)
					if _, ok := c.index[hash]; !ok {
						t.Fatalf("%s %d: %d is not there after its access", name, limit, hash)
					}
				}
			}
			for len(c.index) > 0 {
				c.evict()
			}
			if _, ok := c.policy.Victim(); ok {
				t.Errorf("%s %d: a victim in an empty cache", name, limit)
			}
		}
	}
}

func TestPolicy_ExpiredEntriesLeaveFirst(t *testing.T) {
	for name, make := range policies {
		c := newCache(100, make)
		for h := range uint32(100) {
			c.access(h)
			c.access(h) // all are used
		}
		i := c.index[50]
		c.slots[i].expired = true
		c.access(1000)
		// The hand meets 50 within a round, when it has spared the others.
		for h := range uint32(40) {
			c.access(2000 + h)
		}
		if _, ok := c.index[50]; ok {
			t.Errorf("%s: an expired entry outlives 40 evictions", name)
		}
	}
}

// TestPolicy_HotKeysSurviveAFlood: ten times as many keys that come once do not
// displace what is asked for all the time.
func TestPolicy_HotKeysSurviveAFlood(t *testing.T) {
	for name, make := range policies {
		c := newCache(200, make)
		hits, asked := 0, 0
		for i := range uint32(40_000) {
			if hot := i % 100; i < 1000 || i%2 == 0 {
				hit := c.access(hot / 2 * 2)
				if i >= 2000 {
					asked++
					if hit {
						hits++
					}
				}
			} else {
				c.access(1_000_000 + i)
			}
		}
		if hits < asked*99/100 {
			t.Errorf("%s: %d hits of %d on keys that are always in use", name, hits, asked)
		}
	}
}

// TestWindow_LoopsHit: a loop over a third more than fits is where CLOCK and LRU
// never hit.
func TestWindow_LoopsHit(t *testing.T) {
	const limit = 600
	c := newCache(limit, window)
	hits := 0
	const rounds = 50
	for range rounds {
		for h := range uint32(limit * 4 / 3) {
			if c.access(h * 0x9e3779b9) {
				hits++
			}
		}
	}
	if ratio := float64(hits) / (rounds * limit * 4 / 3); ratio < 0.5 {
		t.Errorf("hit ratio %.2f", ratio)
	}
}

// TestPolicy_EvictionIsCheap: an eviction looks at few entries on average, whatever
// is in use.
func TestPolicy_EvictionIsCheap(t *testing.T) {
	for name, make := range policies {
		c := newCache(1000, make)
		rng := rand.New(rand.NewPCG(1, 1))
		misses := 0
		for range 200_000 {
			h := uint32(rng.ExpFloat64() * 1500)
			if !c.access(h) {
				misses++
			}
		}
		if perMiss := float64(c.looked) / float64(misses); perMiss > 8 {
			t.Errorf("%s: %.1f entries looked at for a miss", name, perMiss)
		}
	}
}
