package pool_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/hotset-go/hotset/compare/pool"
)

// BenchmarkPools is the suite of cmd/bench-pool in the hands of package testing, for profiles and for benchstat:
//
//	go test -run '^$' -bench 'Pools/group=Fixed/pool=(fast-lease|sync.Pool)/' -count 10 -cpuprofile cpu.out ./pool
//
// The bodies run their own loop, b.N times: a loop around each single operation would call through an interface what a program
// calls directly. For figures to compare, prefer the program, which interleaves.
func BenchmarkPools(b *testing.B) {
	for _, g := range pool.Full.Groups() {
		for _, c := range g.Cases() {
			b.Run(fmt.Sprintf("group=%s/pool=%s/procs=%d", g.Name, c.Name, c.Procs), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.Procs))
				c.Goroutines = max(1, c.Goroutines)
				b.ReportAllocs()
				if c.Ops == 0 {
					var wg sync.WaitGroup
					for range c.Goroutines {
						wg.Go(func() { c.Run(max(1, b.N/c.Goroutines)) })
					}
					wg.Wait()
					return
				}
				for range b.N { // operations that consume what is built in front of each
					b.StopTimer()
					c.Before()
					b.StartTimer()
					c.Run(c.Ops)
				}
			})
		}
	}
}
