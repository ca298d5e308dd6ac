package main

import (
	"fmt"
	"math"
	"sort"

	"github.com/hotset-go/hotset/bytebufferpool"
)

// size is a size in bytes and how often it is requested.
type size struct {
	max   int
	count uint64
}

// fromHistogram checks the rows, merges equal sizes and sorts them. Rows above
// largest are counted only.
func fromHistogram(rows []bytebufferpool.SizeCount, largest int) (sizes []size, ignored uint64, err error) {
	counts := map[int]uint64{}
	for i, row := range rows {
		switch {
		case row.Max < 1 || row.Min > row.Max:
			return nil, 0, fmt.Errorf("row %d of the histogram: sizes from %d through %d", i, row.Min, row.Max)
		case row.Max > largest:
			ignored += row.Count
		case row.Count > 0:
			counts[row.Max] += row.Count
		}
	}
	for bytes, n := range counts {
		sizes = append(sizes, size{bytes, n})
	}
	if len(sizes) == 0 {
		return nil, 0, fmt.Errorf("the histogram has no requests of at most %d bytes", largest)
	}
	sort.Slice(sizes, func(i, j int) bool { return sizes[i].max < sizes[j].max })
	return sizes, ignored, nil
}

// tune returns at most count classes with the smallest waste, ascending. A class is
// one of the sizes: a smaller one would not fit, a larger one waste more.
//
// Dynamic programming over (classes, sizes): the best way to serve the first j
// sizes with k classes ends with the class of size j and serves the ones from
// some i on with it. n sizes cost count*n*n steps; a histogram has at most 512.
func tune(sizes []size, count int) []int {
	n := len(sizes)
	count = min(count, n)
	// The waste of serving sizes i through j-1 with the last of them.
	number := make([]float64, n+1) // requests for the first so many sizes
	bytes := make([]float64, n+1)  // and their bytes
	for i, s := range sizes {
		number[i+1] = number[i] + float64(s.count)
		bytes[i+1] = bytes[i] + float64(s.count)*float64(s.max)
	}
	cost := func(i, j int) float64 {
		return float64(sizes[j-1].max)*(number[j]-number[i]) - (bytes[j] - bytes[i])
	}
	best := make([]float64, n+1) // with the classes so far, of the first j sizes
	for j := range best {
		best[j] = math.Inf(1)
	}
	best[0] = 0
	from := make([][]int, count+1)
	for k := 1; k <= count; k++ {
		next := make([]float64, n+1)
		from[k] = make([]int, n+1)
		for j := range next {
			next[j] = math.Inf(1)
		}
		for j := k; j <= n; j++ {
			for i := k - 1; i < j; i++ {
				if w := best[i] + cost(i, j); w < next[j] {
					next[j], from[k][j] = w, i
				}
			}
		}
		best = next
	}
	classes := make([]int, count)
	for k, j := count, n; k > 0; k-- {
		classes[k-1] = sizes[j-1].max
		j = from[k][j]
	}
	return classes
}

// waste returns the bytes of capacity that the classes leave unused.
func waste(sizes []size, classes []int) (sum float64) {
	for _, s := range sizes {
		if i := sort.SearchInts(classes, s.max); i < len(classes) {
			sum += float64(classes[i]-s.max) * float64(s.count)
		}
	}
	return sum
}
