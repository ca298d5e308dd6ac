package measure

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// runAll does n operations in the case's goroutines, and returns the time from their common start to the end of the last one.
// With several, it also returns how long threads waited for a CPU in that time; finding out allocates some hundred bytes.
// With one it allocates nothing of its own.
func (c Case) runAll(n int) (elapsed, delay time.Duration) {
	if c.Goroutines > 1 {
		return c.runTogether(n)
	}
	start := time.Now()
	c.Run(n)
	return time.Since(start), 0
}

func (c Case) runTogether(n int) (elapsed, delay time.Duration) {
	var (
		wg             sync.WaitGroup
		arrived, ended atomic.Int64
		begin          atomic.Bool
		start          time.Time
		waitedBefore   time.Duration
	)
	spin := c.Goroutines <= runtime.GOMAXPROCS(0)
	started := make(chan struct{}) // instead of begin when there are too many to spin
	for i := range c.Goroutines {
		share := n / c.Goroutines
		if i < n%c.Goroutines {
			share++
		}
		wg.Go(func() {
			// The goroutines wait for each other on their CPUs, without giving them up: the system may take milliseconds to wake a
			// second thread, in which the first would do all the work alone.
			if last := arrived.Add(1) == int64(c.Goroutines); last {
				waitedBefore = waited()
				start = time.Now()
				begin.Store(true)
				close(started)
			} else if spin {
				for !begin.Load() {
				}
			} else {
				<-started
			}
			c.Run(share)
			if last := ended.Add(1) == int64(c.Goroutines); last {
				elapsed = time.Since(start)
				delay = max(0, waited()-waitedBefore)
			}
		})
	}
	wg.Wait()
	return elapsed, delay
}
