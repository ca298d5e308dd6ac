package bytebufferpool_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

// Linearizability: what concurrent callers were told must be what one caller could
// have been told who does the same operations one after the other, in an order that
// respects real time. Histories are short, and all orders are tried.
//
// A release happens in two steps: from the first on, others are duplicates; what
// becomes of the storage is decided by the second. In a release that is a single
// swap the two are one.

type opKind int

const (
	opAcquire opKind = iota
	opRelease        // a duplicate, or the second step
	opClaim          // the first step
	opClear
	opStats
	opTrim
)

// operation is a call with the interval of its execution and what it returned.
type operation struct {
	kind       opKind
	lease      int // of acquire and release
	start, end int64

	status pool.ReleaseStatus
	gen    uint64
	idle   int
}

func (o operation) String() string {
	return fmt.Sprintf("%d-%d: %v lease %d: %v, generation %d, %d idle", o.start, o.end,
		[]string{"acquire", "release", "claim", "clear", "stats", "trim"}[o.kind], o.lease, o.status, o.gen, o.idle)
}

// linearState is the pool of the specification: one class, idle storages, the
// generation, and the generation of each lease (+1), 0 once it is released.
type linearState struct {
	gen     uint64
	idle    int
	leases  [8]uint64
	claimed [8]bool
}

// apply returns the states that may follow when the operation happens in s and
// returns what it returned; none if it could not have.
func (s linearState) apply(o operation, budget int) []linearState {
	switch o.kind {
	case opAcquire:
		s.leases[o.lease] = s.gen + 1
		if s.idle == 0 {
			return []linearState{s}
		}
		hit := s
		hit.idle--
		return []linearState{hit, s} // a pool may also overlook what is idle
	case opClaim:
		if s.leases[o.lease] == 0 || s.claimed[o.lease] {
			return nil
		}
		s.claimed[o.lease] = true
	case opRelease:
		if o.status == pool.RejectedDuplicate {
			if !s.claimed[o.lease] {
				return nil
			}
			break
		}
		want := pool.Retained
		switch {
		case !s.claimed[o.lease] || s.leases[o.lease] == 0:
			return nil
		case s.leases[o.lease] != s.gen+1:
			want = pool.DroppedStale
		case s.idle == budget:
			want = pool.DroppedFull
		default:
			s.idle++
		}
		s.leases[o.lease] = 0
		if want != o.status {
			return nil
		}
	case opClear:
		s.gen++
		s.idle = 0
	case opStats:
		if s.gen != o.gen || s.idle != o.idle {
			return nil
		}
	case opTrim:
		if s.idle != o.idle {
			return nil
		}
		s.idle = 0
	}
	return []linearState{s}
}

// linearizable searches for an order (Wing and Gong's algorithm, with memory of
// what has been tried).
func linearizable(calls []operation, budget int) bool {
	var history []operation
	for _, o := range calls {
		if o.kind == opRelease && o.status != pool.RejectedDuplicate {
			claim := o
			claim.kind = opClaim
			history = append(history, claim)
		}
		history = append(history, o)
	}
	type tried struct {
		done  uint32
		state linearState
	}
	seen := map[tried]bool{}
	var search func(done uint32, s linearState) bool
	search = func(done uint32, s linearState) bool {
		if int(done) == 1<<len(history)-1 {
			return true
		}
		if seen[tried{done, s}] {
			return false
		}
		seen[tried{done, s}] = true
		// Only an operation that began before every other pending one has ended may be
		// next.
		firstEnd := int64(1 << 62)
		for i, o := range history {
			if done>>i&1 == 0 {
				firstEnd = min(firstEnd, o.end)
			}
		}
		for i, o := range history {
			if done>>i&1 == 0 && o.start <= firstEnd {
				for _, next := range s.apply(o, budget) {
					if search(done|1<<i, next) {
						return true
					}
				}
			}
		}
		return false
	}
	return search(0, linearState{})
}

func TestLinearizable_Checker(t *testing.T) {
	release := func(start, end int64, status pool.ReleaseStatus) operation {
		return operation{kind: opRelease, lease: 0, start: start, end: end, status: status}
	}
	acquire := operation{kind: opAcquire, start: 0, end: 1}
	if !linearizable([]operation{acquire, release(2, 9, pool.RejectedDuplicate), release(3, 8, pool.Retained)}, 1) {
		t.Error("a good history is refused")
	}
	if linearizable([]operation{acquire, release(2, 9, pool.Retained), release(3, 8, pool.Retained)}, 1) {
		t.Error("two releases of one lease are accepted")
	}
	clear := operation{kind: opClear, start: 2, end: 3}
	if linearizable([]operation{acquire, clear, release(4, 5, pool.Retained)}, 1) {
		t.Error("a release after Clear is accepted")
	}
	stats := operation{kind: opStats, start: 6, end: 7, idle: 1}
	if linearizable([]operation{acquire, release(2, 3, pool.DroppedFull), stats}, 1) {
		t.Error("DroppedFull with room is accepted")
	}
}

func TestLinearizable_Histories(t *testing.T) {
	const budget, goroutines, each = 2, 3, 5
	for i := 0; i < rounds(6000); i++ {
		p := newPool(t, pool.Bounded, func(c *pool.Config) {
			c.Classes, c.MaxPooledCapacity, c.MaxRetainedCapacity = []int{64}, 64, budget*64
			c.ZeroOnRelease = i%4 == 0 // also on the checked path
		})
		var clock, names atomic.Int64
		var mu sync.Mutex
		var history []operation
		shared := make(chan [2]any, 100) // leases that anybody may release
		var ready, wg sync.WaitGroup
		ready.Add(goroutines)
		for g := 0; g < goroutines; g++ {
			wg.Add(1)
			go func(seed int64) {
				defer wg.Done()
				r := rand.New(rand.NewSource(seed))
				ready.Done()
				ready.Wait()
				for j := 0; j < each; j++ {
					o := operation{lease: -1}
					switch n := r.Intn(20); {
					case n < 8 && names.Load() < 6:
						o.kind = opAcquire
						o.lease = int(names.Add(1)) - 1
						o.start = clock.Add(1)
						l := p.Acquire(64)
						o.end = clock.Add(1)
						for k := 0; k < 2; k++ { // two copies, to be released by whoever comes
							shared <- [2]any{o.lease, copyOf(&l)}
						}
					case n < 17:
						o.kind = opRelease
						select {
						case s := <-shared:
							o.lease = s[0].(int)
							o.start = clock.Add(1)
							o.status = s[1].(*pool.Lease).Release()
						default:
							continue
						}
						o.end = clock.Add(1)
					case n == 17:
						o.kind = opClear
						o.start = clock.Add(1)
						p.Clear()
						o.end = clock.Add(1)
					case n == 18:
						o.kind = opStats
						o.start = clock.Add(1)
						s := p.Stats()
						o.end = clock.Add(1)
						o.gen, o.idle = s.Generation, s.IdleStorageCount
					default:
						o.kind = opTrim
						o.start = clock.Add(1)
						o.idle = p.Trim(0) / 64
						o.end = clock.Add(1)
					}
					mu.Lock()
					history = append(history, o)
					mu.Unlock()
					if r.Intn(2) == 0 {
						runtime.Gosched()
					}
				}
			}(int64(i*goroutines + g))
		}
		wg.Wait()
		if !linearizable(history, budget) {
			for _, o := range history {
				t.Log(o)
			}
			t.Fatalf("history %d has no order", i)
		}
	}
}
