package store_test

import (
	"fmt"
	"runtime"
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

func BenchmarkCommit(b *testing.B) {
	for _, tier := range []string{"disk", "ram"} {
		b.Run("tier="+tier, func(b *testing.B) {
			l := store.Limits{Memory: 64 << 20, PromoteBelow: 16 << 10}
			if tier == "disk" {
				l.Disk = 256 << 20
			}
			s := open(b, store.Options{Path: b.TempDir(), Limits: l})
			p := body("x", 4096)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				put(b, s, fmt.Sprintf("https://www.example.com/%d", i), nil, response(200), p)
			}
		})
	}
}

// BenchmarkIndex weighs an entry of the disk tier with a key of 60 bytes.
func BenchmarkIndex(b *testing.B) {
	const n = 1_000_000
	for b.Loop() {
		s := open(b, store.Options{Path: b.TempDir(), Limits: store.Limits{Disk: 1 << 40}})
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		at := time.Now().Add(time.Hour)
		for i := range n {
			s.AddCold(fmt.Sprintf("https://www.example.com/assets/images/picture-%08d.jpg?v=1", i)[:60], at.Add(time.Duration(i)*time.Millisecond))
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
