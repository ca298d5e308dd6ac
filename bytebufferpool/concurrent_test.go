package bytebufferpool_test

import (
	"math/rand"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

// rounds scales loops for -short and the race detector.
func rounds(n int) int {
	if testing.Short() {
		n /= 10
	}
	if raceEnabled {
		n /= 4
	}
	return n
}

// Case K16: no two owners, whatever is released twice or used late.
func TestConcurrent_NoTwoOwners_K16(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.MaxRetainedCapacity = 256 << 10 })
		stop := make(chan struct{})
		var clears sync.WaitGroup
		clears.Add(1)
		go func() {
			defer clears.Done()
			for {
				select {
				case <-stop:
					return
				default:
					p.Clear()
					runtime.Gosched()
				}
			}
		}()
		var wg sync.WaitGroup
		for id := 1; id <= 64; id++ {
			wg.Add(1)
			go func(id byte) {
				defer wg.Done()
				r := rand.New(rand.NewSource(int64(id)))
				for i := 0; i < rounds(600); i++ {
					l := p.Acquire(r.Intn(3000))
					fill(l.Bytes(), id)
					s := p.AcquireSlice(r.Intn(3000))
					fill(s, id)
					runtime.Gosched()
					if !all(l.Bytes(), id) || !all(s, id) {
						t.Errorf("goroutine %d: somebody else wrote to my storage", id)
						return
					}
					switch status := l.Release(); status {
					case pool.Retained, pool.DroppedStale, pool.DroppedFull:
					default:
						t.Errorf("first release: %v", status)
					}
					p.ReleaseSlice(s)
					if status := l.Release(); status != pool.RejectedDuplicate {
						t.Errorf("second release: %v", status)
					}
					if i%100 == 0 {
						mustPanic(t, func() { l.Bytes() })
					}
				}
			}(byte(id))
		}
		wg.Wait()
		close(stop)
		clears.Wait()
	})
}

// copyOf makes the copy of a lease that go vet forbids and users make.
func copyOf(l *pool.Lease) *pool.Lease {
	c := new(pool.Lease)
	reflect.ValueOf(c).Elem().Set(reflect.ValueOf(l).Elem())
	return c
}

// Exactly one of many racing releases counts, of copies and of one variable, while
// others acquire the storage as soon as it is idle.
func TestConcurrent_CopiesRaceToRelease(t *testing.T) {
	for name, change := range map[string]func(*pool.Config){
		"plain":   func(*pool.Config) {},
		"checked": func(c *pool.Config) { c.ZeroOnRelease, c.StatsEnabled = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			inModes(t, func(t *testing.T, mode pool.Mode) {
				p := newPool(t, mode, change)
				for i := 0; i < rounds(4000); i++ {
					l := p.Acquire(100)
					var first, duplicates atomic.Int32
					var wg sync.WaitGroup
					for k := 0; k < 4; k++ {
						c := &l
						if k%2 == 0 {
							c = copyOf(&l)
						}
						wg.Add(1)
						go func() {
							defer wg.Done()
							switch c.Release() {
							case pool.Retained:
								first.Add(1)
							case pool.RejectedDuplicate:
								duplicates.Add(1)
							}
							next := p.Acquire(100)
							next.Bytes()[0]++
							next.Release()
						}()
					}
					wg.Wait()
					if first.Load() != 1 || duplicates.Load() != 3 {
						t.Fatalf("%d releases counted, %d were duplicates", first.Load(), duplicates.Load())
					}
				}
			})
		})
	}
}

func TestConcurrent_SlicesRaceToRelease(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.ValidationEnabled = true })
	for i := 0; i < rounds(2000); i++ {
		s := p.AcquireSlice(100)
		var first, duplicates atomic.Int32
		var wg sync.WaitGroup
		for k := 0; k < 4; k++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				switch p.ReleaseSlice(s) {
				case pool.Retained:
					first.Add(1)
				case pool.RejectedDuplicate:
					duplicates.Add(1)
				}
			}()
		}
		wg.Wait()
		if first.Load() != 1 || duplicates.Load() != 3 {
			t.Fatalf("%d releases counted, %d were duplicates", first.Load(), duplicates.Load())
		}
	}
}

// The budget holds at every instant that can be sampled, with leases, slices,
// clears, trims and sweeps under way, and the sums of a sample always agree.
func TestConcurrent_BudgetHoldsUnderLoad(t *testing.T) {
	const budget = 20 * 1024
	for name, quarantine := range map[string]int{"plain": 0, "quarantine": 3} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, pool.Bounded, func(c *pool.Config) { c.MaxRetainedCapacity, c.Quarantine = budget, quarantine })
			var done atomic.Bool
			var wg sync.WaitGroup
			var full atomic.Int64
			for g := 0; g < 8; g++ {
				wg.Add(1)
				go func(seed int64) {
					defer wg.Done()
					r := rand.New(rand.NewSource(seed))
					var leases [6]pool.Lease
					var slices [6][]byte
					for !done.Load() {
						for i := range leases {
							leases[i] = p.Acquire(r.Intn(4096))
							slices[i] = p.AcquireSlice(r.Intn(4096))
						}
						for i := range leases {
							if leases[i].Release() == pool.DroppedFull {
								full.Add(1)
							}
							p.ReleaseSlice(slices[i])
						}
					}
				}(int64(g))
			}
			for i := 0; i < rounds(4000); i++ {
				s := p.Stats()
				count, sum := 0, 0
				for _, row := range s.ClassInventory {
					count += row.IdleStorageCount
					sum += row.RetainedCapacity
				}
				if s.RetainedCapacity > budget || count != s.IdleStorageCount || sum != s.RetainedCapacity {
					t.Errorf("sample %d: %+v", i, s)
					break
				}
				switch i % 50 {
				case 10:
					p.Clear()
				case 20:
					p.Trim(budget / 2)
				case 30:
					p.TrimIdle(0)
				}
				runtime.Gosched()
			}
			done.Store(true)
			wg.Wait()
			if err := p.CheckReservations(); err != nil {
				t.Error(err)
			}
			if full.Load() == 0 && !testing.Short() {
				t.Error("the budget was never exhausted: the test tests nothing")
			}
		})
	}
}

// Nothing may be dropped for lack of budget while the budget has room for all storage
// there is. Eight goroutines with one each make more than eight at times: a search
// is not of one instant, and what moves behind its back is not found. So storage is counted.
func TestConcurrent_NotFullWithRoom(t *testing.T) {
	const goroutines = 8
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.MaxRetainedCapacity = goroutines * 1024 })
	var mu sync.Mutex
	seen, full := map[*byte]bool{}, 0 // seen keeps what was dropped, so that no address comes twice
	var wg sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			own := map[*byte]bool{}
			note := func(b []byte) {
				// Only what is new takes the lock: the others shall meet in the pool.
				if first := unsafe.SliceData(b); !own[first] {
					own[first] = true
					mu.Lock()
					seen[first] = true
					mu.Unlock()
				}
			}
			for i := 0; i < rounds(20_000); i++ {
				var status pool.ReleaseStatus
				if (g+i/64)%2 == 0 {
					l := p.Acquire(1024)
					note(l.Bytes())
					status = l.Release()
				} else {
					b := p.AcquireSlice(1024)
					note(b)
					status = p.ReleaseSlice(b)
				}
				if status != pool.DroppedFull {
					continue
				}
				mu.Lock()
				if left := len(seen) - full; left <= goroutines {
					t.Errorf("dropped one of %d", left)
				}
				full++
				mu.Unlock()
			}
		}(g)
	}
	wg.Wait()
}

// What is released on another goroutine than it was acquired on comes back to where
// it is acquired.
func TestConcurrent_ProducerConsumer(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, func(c *pool.Config) { c.StatsEnabled = true })
		ch := make(chan *pool.Lease, 4)
		go func() {
			defer close(ch)
			for i := 0; i < 1000; i++ {
				l := p.Acquire(1000)
				l.Bytes()[0] = byte(i)
				ch <- copyOf(&l)
			}
		}()
		i := 0
		for l := range ch {
			if l.Bytes()[0] != byte(i) {
				t.Fatal("content changed on the way")
			}
			l.Release()
			i++
		}
		if s := p.Stats(); s.Misses > 20 && !raceEnabled {
			t.Errorf("%d of %d acquisitions allocated", s.Misses, s.Acquires)
		}
	})
}
