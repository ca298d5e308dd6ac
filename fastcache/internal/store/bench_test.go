package store_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

func BenchmarkLookup(b *testing.B) {
	s := open(b, store.Options{Path: b.TempDir(), Limits: store.Limits{Memory: 64 << 20, Disk: 1 << 30, PromoteBelow: 16 << 10}})
	const n = 1000
	keys := make([][]byte, n)
	for i := range keys {
		key := fmt.Sprintf("https://www.example.com/assets/images/picture-%08d.jpg?v=1", i)
		keys[i] = []byte(key)
		put(b, s, key, nil, response(200), body(key, 4096))
	}
	b.Run("do=lookup", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if e, _ := s.Lookup(keys[i%n], nil); e == nil {
				b.Fatal("miss")
			}
		}
	})
	b.Run("do=lookup+response+open", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e, _ := s.Lookup(keys[i%n], nil)
			if e.Response() == nil {
				b.Fatal("no response")
			}
			if body, err := e.Open(); err != nil || body.Bytes == nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("do=lookup+response+open/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				e, _ := s.Lookup(keys[i%n], nil)
				if e.Response() == nil {
					b.Fatal("no response")
				}
				if body, err := e.Open(); err != nil || body.Bytes == nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("do=disk", func(b *testing.B) {
		s.SetLimits(store.Limits{Memory: 64 << 20, Disk: 1 << 30})
		s.Cool()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e, _ := s.Lookup(keys[i%n], nil)
			body, err := e.Open()
			if err != nil || body.File == nil {
				b.Fatal(err)
			}
			body.Close()
		}
	})
}

// names makes n tags of 10 bytes.
func names(i, n int) (tags []string) {
	for j := range n {
		tags = append(tags, fmt.Sprintf("%d-%08d", j, i))
	}
	return tags
}

func BenchmarkCommit(b *testing.B) {
	for _, tier := range []string{"disk", "ram"} {
		for _, tags := range []int{0, 1, 8} {
			b.Run(fmt.Sprintf("tier=%s/tags=%d", tier, tags), func(b *testing.B) {
				l := store.Limits{Memory: 64 << 20, PromoteBelow: 16 << 10}
				if tier == "disk" {
					l.Disk = 256 << 20
				}
				s := open(b, store.Options{Path: b.TempDir(), Limits: l})
				p := body("x", 4096)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					r := response(200)
					r.Tags = names(i%1000, tags)
					put(b, s, fmt.Sprintf("https://www.example.com/%d", i), nil, r, p)
				}
			})
		}
	}
}

// BenchmarkPurge purges n entries of 1 KiB while another goroutine asks for one that stays, and reports
// what the worst hits took: within the purge, and until the last file is gone.
func BenchmarkPurge(b *testing.B) {
	for _, tier := range []string{"disk", "ram"} {
		for _, n := range []int{10, 1000, 40_000} {
			for _, how := range []string{"match", "tag"} {
				for _, soft := range []bool{false, true} {
					b.Run(fmt.Sprintf("tier=%s/n=%d/by=%s/soft=%t", tier, n, how, soft), func(b *testing.B) {
						benchmarkPurge(b, tier, n, how, soft)
					})
				}
			}
		}
	}
}

func benchmarkPurge(b *testing.B, tier string, n int, how string, soft bool) {
	l := store.Limits{Memory: 1 << 30}
	if tier == "disk" {
		l.Disk = 1 << 40
	}
	s := open(b, store.Options{Path: b.TempDir(), Limits: l})
	p := body("x", 1024)
	hot := []byte("https://www.example.com/hot")
	put(b, s, string(hot), nil, response(200), p)
	var hits []time.Duration
	var purging, files time.Duration
	for b.Loop() {
		b.StopTimer()
		for i := range n {
			put(b, s, fmt.Sprintf("http://www.example.com/%d", i), nil, tagged("t"), p)
		}
		s.Settle()
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				start := time.Now()
				e, _ := s.Lookup(hot, nil)
				if body, err := e.Open(); err == nil {
					body.Close()
				}
				hits = append(hits, time.Since(start))
				time.Sleep(100 * time.Microsecond)
			}
		})
		start := time.Now()
		b.StartTimer()
		var got int
		if how == "tag" {
			got = purgeTags(b, s, soft, "t")
		} else {
			got = purgeFunc(b, s, func(key string) bool { return key[4] == ':' }, soft)
		}
		b.StopTimer()
		purging += time.Since(start)
		s.Settle()
		files += time.Since(start)
		stop.Store(true)
		wg.Wait()
		if got != n {
			b.Fatalf("purged %d of %d", got, n)
		}
		if soft {
			purgeTags(b, s, false, "t")
		}
		b.StartTimer()
	}
	slices.Sort(hits)
	b.ReportMetric(float64(purging.Microseconds())/float64(b.N)/1e3, "ms/purge")
	b.ReportMetric(float64(files.Microseconds())/float64(b.N)/1e3, "ms/files")
	b.ReportMetric(float64(hits[len(hits)*99/100].Microseconds()), "us/p99hit")
}

// BenchmarkIndex weighs an entry of the disk tier with a key of 60 bytes. Each tag is on 100 entries.
func BenchmarkIndex(b *testing.B) {
	for _, tags := range []int{0, 1, 8} {
		b.Run(fmt.Sprintf("tags=%d", tags), func(b *testing.B) { benchmarkIndex(b, tags) })
	}
}

func benchmarkIndex(b *testing.B, tags int) {
	const n = 1_000_000
	for b.Loop() {
		s := open(b, store.Options{Path: b.TempDir(), Limits: store.Limits{Disk: 1 << 40}})
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		at := time.Now().Add(time.Hour)
		for i := range n {
			s.AddCold(fmt.Sprintf("https://www.example.com/assets/images/picture-%08d.jpg?v=1", i)[:60], at.Add(time.Duration(i)*time.Millisecond), names(i/100, tags))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/entry")
		start := time.Now()
		runtime.GC()
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/GC")
		runtime.KeepAlive(s)
		s.Close()
	}
}

func BenchmarkRebuild(b *testing.B) {
	const n = 100_000
	dir := b.TempDir()
	l := store.Limits{Disk: 1 << 40}
	s := open(b, store.Options{Path: dir, Limits: l})
	for i := range n {
		put(b, s, fmt.Sprintf("https://www.example.com/%d", i), nil, response(200), body("x", 1024))
	}
	s.Close()
	for b.Loop() {
		s, err := store.Open(store.Options{Path: dir, Limits: l})
		if err != nil {
			b.Fatal(err)
		}
		<-s.Ready()
		if st := s.Stats(); st.Entries != n {
			b.Fatal(st)
		}
		s.Close()
	}
}
