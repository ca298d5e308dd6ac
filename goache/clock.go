package goache

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// The cache's clock counts nanoseconds since the cache was made, and does not follow
// steps of the wall clock. A deadline of 0 means never.

// now reads the clock: about 25 ns, unless WithCoarseClock.
func (c *Cache[K, V]) now() int64 {
	if c.coarse != nil {
		if now := c.coarse.now.Load(); now != stopped {
			return now
		}
	}
	if c.clock != nil {
		return int64(c.clock().Sub(c.start))
	}
	return int64(time.Since(c.start))
}

// expired reports whether a deadline has come. The instant itself is too late.
func (c *Cache[K, V]) expired(deadline int64) bool {
	return deadline != 0 && c.now() >= deadline
}

// deadline returns when something ends that begins now and lasts for ttl, with the
// cache's jitter; 0 for a ttl that is not positive.
func (c *Cache[K, V]) deadline(ttl time.Duration) int64 {
	if ttl <= 0 {
		return 0
	}
	return c.deadlineFrom(c.now(), ttl)
}

func (c *Cache[K, V]) deadlineFrom(now int64, ttl time.Duration) int64 {
	if ttl <= 0 {
		return 0
	}
	if c.jitter > 0 {
		ttl -= time.Duration(c.jitter * rand.Float64() * float64(ttl))
		ttl = max(ttl, 1)
	}
	switch d := now + int64(ttl); {
	case now > 0 && d < now: // some hundred years from now
		return math.MaxInt64
	case d == 0: // a clock of the user's may cross zero; 0 is taken
		return 1
	default:
		return d
	}
}

// remaining returns how long a deadline is off; 0 for never. It is at least 1 ns for a
// deadline that has not come.
func remaining(deadline, now int64) time.Duration {
	switch left := deadline - now; {
	case deadline == 0:
		return 0
	case left < 0: // a clock of the user's stands far below zero
		return math.MaxInt64
	default:
		return time.Duration(left)
	}
}

// coarseClock is a clock that a goroutine sets. The goroutine knows the clock and not
// the cache, so the cache can become garbage and stop it.
type coarseClock struct {
	now  atomic.Int64 // or stopped
	once sync.Once
	done chan struct{}
}

// stopped is what a coarse clock shows that nobody sets any more.
const stopped = math.MinInt64

// startCoarseClock counts from start in steps.
func startCoarseClock(start time.Time, step time.Duration) *coarseClock {
	k := &coarseClock{done: make(chan struct{})}
	k.now.Store(int64(time.Since(start)))
	go func() {
		t := time.NewTicker(step)
		defer t.Stop()
		for {
			select {
			case <-k.done:
				k.now.Store(stopped)
				return
			case <-t.C:
				k.now.Store(int64(time.Since(start)))
			}
		}
	}()
	return k
}

// stop ends the goroutine.
func (k *coarseClock) stop() { k.once.Do(func() { close(k.done) }) }
