package bytebufferpool_test

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

// One body for all contenders, with the standard library alone; the rivals are in
// the module compare. Names are key=value, for benchstat.

// loan is what a contender hands out: its bytes and what it needs to take them back.
type loan struct {
	lease pool.Lease
	boxed *[]byte
	raw   []byte
}

// contender borrows and returns storage of a fixed size.
type contender struct {
	name   string
	borrow func(l *loan) []byte
	giveUp func(l *loan)
}

const (
	benchSize = 1024
	cutoff    = 1 << 20
)

func contenders(b *testing.B) []contender {
	var shared sync.Pool
	shared.New = func() any { p := make([]byte, benchSize); return &p }
	var mu sync.Mutex
	var stack [][]byte
	list := []contender{
		{"make", func(l *loan) []byte { l.raw = make([]byte, benchSize); return l.raw }, func(*loan) {}},
		{"sync.Pool", func(l *loan) []byte {
			l.boxed = shared.Get().(*[]byte)
			return (*l.boxed)[:benchSize]
		}, func(l *loan) {
			if cap(*l.boxed) <= cutoff {
				shared.Put(l.boxed)
			}
		}},
		{"mutex", func(l *loan) []byte {
			mu.Lock()
			defer mu.Unlock()
			if n := len(stack); n > 0 {
				l.raw = stack[n-1]
				stack = stack[:n-1]
			} else {
				l.raw = make([]byte, benchSize)
			}
			return l.raw
		}, func(l *loan) {
			mu.Lock()
			stack = append(stack, l.raw)
			mu.Unlock()
		}},
	}
	type options struct {
		name   string
		change func(*pool.Config)
	}
	for _, mode := range modes {
		for _, o := range []options{
			{"plain", nil},
			{"validated", func(c *pool.Config) { c.ValidationEnabled = true }},
			{"all", func(c *pool.Config) { c.ValidationEnabled, c.StatsEnabled, c.ZeroOnRelease = true, true, true }},
		} {
			p := newPool(b, mode, o.change)
			list = append(list,
				contender{
					fmt.Sprintf("%v-lease-%s", mode, o.name),
					func(l *loan) []byte {
						l.lease = p.Acquire(benchSize)
						return l.lease.Bytes()
					},
					func(l *loan) { l.lease.Release() },
				},
				contender{
					fmt.Sprintf("%v-raw-%s", mode, o.name),
					func(l *loan) []byte { l.raw = p.AcquireSlice(benchSize); return l.raw },
					func(l *loan) { p.ReleaseSlice(l.raw) },
				})
		}
	}
	return list
}

func touch(p []byte) { p[0], p[len(p)-1] = 1, 1 }

// BenchmarkOne holds one storage at a time.
func BenchmarkOne(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run("pool="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var l loan
				for pb.Next() {
					touch(c.borrow(&l))
					c.giveUp(&l)
				}
			})
		})
	}
}

// BenchmarkHeld holds sixteen at once.
func BenchmarkHeld(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run("pool="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var l [16]loan
				n := 0
				for pb.Next() {
					touch(c.borrow(&l[n]))
					if n++; n == len(l) {
						for i := range l {
							c.giveUp(&l[i])
						}
						n = 0
					}
				}
			})
		})
	}
}

// BenchmarkCrowd has 128 goroutines for each processor.
func BenchmarkCrowd(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run("pool="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(128)
			b.RunParallel(func(pb *testing.PB) {
				var l loan
				for pb.Next() {
					touch(c.borrow(&l))
					c.giveUp(&l)
				}
			})
		})
	}
}

// BenchmarkFresh starts a goroutine for each storage.
func BenchmarkFresh(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run("pool="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			done := make(chan struct{})
			for i := 0; i < b.N; i++ {
				go func() {
					var l loan
					touch(c.borrow(&l))
					c.giveUp(&l)
					done <- struct{}{}
				}()
				<-done
			}
		})
	}
}

// BenchmarkGrowth writes 16 KiB in pieces of 64 B.
func BenchmarkGrowth(b *testing.B) {
	piece := make([]byte, 64)
	const pieces = 256
	b.Run("buffer=bytes.Buffer-pooled", func(b *testing.B) {
		shared := sync.Pool{New: func() any { return new(bytes.Buffer) }}
		b.ReportAllocs()
		for i := 0; i < b.N; i++ {
			buf := shared.Get().(*bytes.Buffer)
			buf.Reset()
			for j := 0; j < pieces; j++ {
				buf.Write(piece)
			}
			if buf.Cap() <= cutoff {
				shared.Put(buf)
			}
		}
	})
	for _, mode := range modes {
		p := newPool(b, mode, nil)
		b.Run(fmt.Sprintf("buffer=%v", mode), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				buf := p.Buffer(64)
				grow(&buf, piece, pieces)
				buf.Release()
			}
		})
	}
}

// BenchmarkChain writes 2 MiB in pieces of 4 KiB, and sends them on.
func BenchmarkChain(b *testing.B) {
	piece := make([]byte, 4096)
	const pieces = 512
	p := newPool(b, pool.Fast, nil)
	b.Run("buffer=bytes.Buffer-pooled", func(b *testing.B) {
		shared := sync.Pool{New: func() any { return new(bytes.Buffer) }}
		b.ReportAllocs()
		for i := 0; i < b.N; i++ {
			buf := shared.Get().(*bytes.Buffer)
			for j := 0; j < pieces; j++ {
				buf.Write(piece)
			}
			size := buf.Cap()
			_, _ = buf.WriteTo(io.Discard)
			if size <= cutoff {
				shared.Put(buf)
			}
		}
	})
	b.Run("buffer=Buffer", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i++ {
			buf := p.Buffer(4096)
			grow(&buf, piece, pieces)
			_, _ = buf.WriteTo(io.Discard)
			buf.Release()
		}
	})
	b.Run("buffer=Chain", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i++ {
			c := p.Chain(4096)
			writeChain(&c, piece, pieces)
			_, _ = c.WriteTo(io.Discard)
			c.Release()
		}
	})
}

// BenchmarkFull releases into an exhausted budget: what an exact answer costs.
func BenchmarkFull(b *testing.B) {
	p := newPool(b, pool.Bounded, func(c *pool.Config) { c.MaxRetainedCapacity = 64 * benchSize })
	idle := make([]pool.Lease, 64)
	for i := range idle {
		idle[i] = p.Acquire(benchSize)
	}
	for i := range idle {
		idle[i].Release()
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		if got := p.ReleaseSlice(make([]byte, benchSize)); got != pool.DroppedFull {
			b.Fatal(got)
		}
	}
}

// BenchmarkLocked is the least that exact ownership can cost on a processor: two
// compare-and-swaps, each after a load, and the touching.
func BenchmarkLocked(b *testing.B) {
	var word atomic.Uint64
	p := make([]byte, benchSize)
	swap := func() {
		w := word.Load()
		word.CompareAndSwap(w, w+1)
	}
	for i := 0; i < b.N; i++ {
		swap()
		touch(p)
		swap()
	}
}
