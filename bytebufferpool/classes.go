package bytebufferpool

import (
	"fmt"
	"math"
	"math/bits"
)

// PowerOfTwo returns the capacity classes smallest, 2*smallest, ... through
// largest, in bytes. Both must be positive powers of two and in order; otherwise
// the error is [ErrInvalidConfig]. At most half of a class is unused.
func PowerOfTwo(smallest, largest int) ([]int, error) {
	switch {
	case smallest <= 0 || smallest&(smallest-1) != 0:
		return nil, fmt.Errorf("%w: smallest class %d is not a power of two", ErrInvalidConfig, smallest)
	case largest <= 0 || largest&(largest-1) != 0:
		return nil, fmt.Errorf("%w: largest class %d is not a power of two", ErrInvalidConfig, largest)
	case smallest > largest:
		return nil, fmt.Errorf("%w: smallest class %d is above the largest, %d", ErrInvalidConfig, smallest, largest)
	}
	return Geometric(smallest, largest, 1)
}

// Geometric returns capacity classes from smallest through largest, in bytes,
// with stepsPerDoubling of them for each doubling, equally spaced between the
// doublings as memory allocators have it: with 4, a class is at most a quarter
// larger than the one before. Steps of less than 16 bytes are rounded up to 16,
// except for the ends. The largest is always a class.
//
// More classes waste less of each storage, and are reused less often. The error
// is [ErrInvalidConfig] for ends that are not positive or not in order, for
// stepsPerDoubling below 1, and for more than [MaxClasses] classes.
func Geometric(smallest, largest, stepsPerDoubling int) ([]int, error) {
	switch {
	case smallest <= 0 || smallest > largest:
		return nil, fmt.Errorf("%w: classes from %d through %d", ErrInvalidConfig, smallest, largest)
	case stepsPerDoubling < 1:
		return nil, fmt.Errorf("%w: %d steps per doubling", ErrInvalidConfig, stepsPerDoubling)
	}
	classes := []int{smallest}
	for base := smallest; base < largest; base *= 2 {
		for step := 1; step <= stepsPerDoubling; step++ {
			// base*step/steps in two words: it may exceed an int of 32 bits.
			high, low := bits.Mul64(uint64(base), uint64(step))
			add, _ := bits.Div64(high, low, uint64(stepsPerDoubling))
			capacity := largest
			if sum := uint64(base) + add; sum < uint64(largest) {
				capacity = int(sum)
				if stepsPerDoubling > 1 {
					capacity = min((capacity+minStep-1)/minStep*minStep, largest)
				}
			}
			if capacity > classes[len(classes)-1] {
				classes = append(classes, capacity)
			}
			if len(classes) > MaxClasses {
				return nil, fmt.Errorf("%w: more than %d classes from %d through %d with %d steps per doubling",
					ErrInvalidConfig, MaxClasses, smallest, largest, stepsPerDoubling)
			}
		}
		if base > math.MaxInt/2 {
			break
		}
	}
	return classes, nil
}

// minStep is the granularity of the Go allocator's small size classes: classes
// closer than that would get the same memory.
const minStep = 16

// lookup finds the class of a size in about 1 ns for any ascending classes.
type lookup struct {
	// first[n] is the first class above 2^(n-1), where a search for a size of n
	// bits starts. Size 0 is looked up as a number with all bits set, whose entry is
	// class 0, since no other size has that many bits.
	first [bits.UintSize + 1]uint8

	// capacity holds the classes; an array of 256, so that a class number of a
	// byte needs no bounds check. The entry after the last is the largest int,
	// where every search ends.
	capacity [MaxClasses + 1]int

	n int // number of classes
}

func newLookup(classes []int) *lookup {
	t := &lookup{n: len(classes)}
	copy(t.capacity[:], classes)
	for i := t.n; i < len(t.capacity); i++ {
		t.capacity[i] = math.MaxInt
	}
	class := 0
	for n := 1; n < bits.UintSize; n++ {
		for class < t.n && uint64(t.capacity[class]) <= 1<<(n-1) {
			class++
		}
		t.first[n] = uint8(class)
	}
	return t
}

// class returns the first class that fits size, which must not be negative; the
// number of classes if none does.
func (t *lookup) class(size int) uint8 {
	class := t.first[bits.Len(uint(size-1))]
	for t.capacity[class] < size {
		class++
	}
	return class
}

// exact returns the class of exactly this capacity, or -1.
func (t *lookup) exact(capacity int) int {
	class := int(t.class(capacity))
	if class == t.n || t.capacity[class] != capacity {
		return -1
	}
	return class
}
