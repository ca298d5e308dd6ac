package bytebufferpool

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// SizeCount is a row of a histogram: Count acquisitions asked for Min through Max
// bytes.
type SizeCount struct {
	Min   int    `json:"min"`
	Max   int    `json:"max"`
	Count uint64 `json:"count"`
}

// SizeHistogram returns how often which sizes were requested since New, ascending,
// without empty rows; nil without [Config.SizeHistogram]. Rows are an eighth of a
// doubling wide, so that classes computed from them waste at most that much
// more than ones computed from the sizes themselves. Growth of a Buffer and
// segments of a Chain count like other acquisitions. As JSON, it is the input of
// the program cmd/bufpooltune.
func (p *Pool) SizeHistogram() []SizeCount {
	if p.core.sizes == nil {
		return nil
	}
	return p.core.sizes.rows()
}

// A histogram has 8 buckets for each doubling: a bucket holds the sizes whose
// predecessors have the same length in bits and the same three bits after the
// first. Predecessors, so that a power of two is the upper end of its row, and
// becomes the class.
const (
	subBits    = 3
	subBuckets = 1 << subBits
)

type histogram struct {
	counts [bits.UintSize * subBuckets]atomic.Uint64
}

func (h *histogram) add(size int) { h.counts[bucketOf(size)].Add(1) }

// bucketOf returns the bucket of a size. Sizes up to subBuckets have one each,
// except for 0, which counts as 1.
func bucketOf(size int) int {
	n := uint(max(size, 1) - 1)
	exp := bits.Len(n)
	if exp <= subBits {
		return int(n)
	}
	shift := exp - subBits - 1
	return shift*subBuckets + int(n>>shift)
}

// bucketStart returns the predecessor of the smallest size of a bucket, which is
// the largest size of the bucket before.
func bucketStart(bucket int) uint64 {
	if bucket < 2*subBuckets {
		return uint64(bucket)
	}
	shift := bucket/subBuckets - 1
	return uint64(bucket%subBuckets+subBuckets) << shift
}

func (h *histogram) rows() (rows []SizeCount) {
	for bucket := range h.counts {
		if n := h.counts[bucket].Load(); n > 0 {
			rows = append(rows, SizeCount{
				Min:   int(bucketStart(bucket)) + 1,
				Max:   int(min(bucketStart(bucket+1), math.MaxInt)),
				Count: n,
			})
		}
	}
	return rows
}
