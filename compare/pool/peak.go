package pool

import (
	"fmt"
	"math"
	"runtime"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

// PeakLoad is what a process holds at once in the comparison of memory.
type PeakLoad struct {
	Size  int `json:"size"` // of a slice
	Count int `json:"count"`
}

// PeakLoads returns the two loads that are compared: 64 MiB, in large and in small slices.
func PeakLoads() []PeakLoad {
	return []PeakLoad{{Size: 1 << 20, Count: 64}, {Size: 1 << 10, Count: 64 << 10}}
}

// String returns "64 x 1024 KiB".
func (l PeakLoad) String() string { return fmt.Sprintf("%d x %d KiB", l.Count, l.Size>>10) }

// PeakSample is the heap of a process in bytes (HeapAlloc) at the steps of a life: everything borrowed, everything returned,
// and after each of three collections. The harness's own memory is in it: about 4 MiB while 65,536 slices are out.
type PeakSample struct {
	Held     uint64 `json:"held"`
	Released uint64 `json:"released"`
	GC1      uint64 `json:"gc1"`
	GC2      uint64 `json:"gc2"`
	GC3      uint64 `json:"gc3"`

	// Retained is what the pool says that it holds after the release, -1 for a pool that cannot tell.
	Retained int `json:"retained"`
}

// PeakRow is a pool under a load, with a sample from each process.
type PeakRow struct {
	Pool    string       `json:"pool"`
	Load    PeakLoad     `json:"load"`
	Samples []PeakSample `json:"samples"`
}

// Spread returns one step over the samples, in MiB.
func (row PeakRow) Spread(step func(PeakSample) uint64) measure.Spread {
	xs := make([]float64, len(row.Samples))
	for i, s := range row.Samples {
		xs[i] = float64(step(s)) / (1 << 20)
	}
	return measure.SpreadOf(xs)
}

// heapAbove returns how much more of the heap is in use after the third collection with the one pool than with the other,
// in MiB; less counts as equal.
func heapAbove(rows []PeakRow, load PeakLoad, name, than string) measure.Spread {
	at := func(name string) float64 {
		for _, row := range rows {
			if row.Pool == name && row.Load == load {
				return row.Spread(func(s PeakSample) uint64 { return s.GC3 }).Median
			}
		}
		return math.NaN()
	}
	return measure.Exactly(max(0, at(name)-at(than))) // max keeps a NaN
}

// Peak takes a pool through the steps. It is meaningful in a process that has done nothing else.
func Peak(sp SlicePool, load PeakLoad) PeakSample {
	s := sp.New(load.Size)
	releases := make([]func(), load.Count)
	for i := range releases {
		b, release := s.Take(load.Size)
		touch(b)
		releases[i] = release
	}
	out := PeakSample{Held: heap(), Retained: -1}
	for _, release := range releases {
		release()
	}
	out.Released = heap()
	if teller, ok := s.(interface{ Retained() int }); ok {
		out.Retained = teller.Retained()
	}
	clear(releases)
	for _, at := range []*uint64{&out.GC1, &out.GC2, &out.GC3} {
		measure.Collect()
		*at = heap()
	}
	runtime.KeepAlive(s)
	return out
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
