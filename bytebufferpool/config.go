package bytebufferpool

import (
	"fmt"
	"strconv"
)

// Mode selects how a pool retains idle storage.
type Mode uint8

const (
	// Fast retains as much as the program's use keeps warm and gives it back to
	// the garbage collector when it is not used: storage that nobody acquires is
	// unreachable after the third collection at the latest. There is no budget
	// and no exact inventory.
	Fast Mode = iota

	// Bounded retains at most [Config.MaxRetainedCapacity] bytes, exactly, and
	// nothing is dropped by the garbage collector. Use it when the idle memory
	// must have a bound or must survive collections.
	Bounded
)

// String returns "Fast" or "Bounded".
func (m Mode) String() string {
	switch m {
	case Fast:
		return "Fast"
	case Bounded:
		return "Bounded"
	}
	return "Mode(" + strconv.Itoa(int(m)) + ")"
}

// Limits and defaults.
const (
	// DefaultMaxRetainedCapacity is the budget of DefaultConfig in bytes.
	DefaultMaxRetainedCapacity = 32 << 20

	// DefaultMaxAcquireSize is the largest acquisition of DefaultConfig in bytes:
	// far above what a buffer should be, and small enough for an int of 32 bits.
	DefaultMaxAcquireSize = 1 << 30

	// DefaultMaxValidationTombstones is what 0 selects.
	DefaultMaxValidationTombstones = 16_384

	// MaxClasses is the largest number of capacity classes of a pool: a class
	// number has to fit a byte of the lookup table.
	MaxClasses = 255

	defaultMinClass = 64
	defaultMaxClass = 1 << 20
)

// Config is what a pool is made from. Start from [DefaultConfig]: the zero
// Config has no classes and is an error. [New] copies what it needs, so a Config
// may be changed and used again.
type Config struct {
	// Mode is Fast or Bounded.
	Mode Mode

	// Classes are the capacities, in bytes, that the pool hands out and takes
	// back, ascending, at most MaxClasses. An acquisition gets the first that
	// fits. [PowerOfTwo] and [Geometric] make them, bufpooltune computes them
	// from a histogram. Default: the powers of two from 64 B through 1 MiB.
	Classes []int

	// MaxPooledCapacity is the cutoff in bytes: larger storage is dropped with
	// DroppedOversize. It must not be below the largest class, which could then
	// never be retained. Default: 1 MiB.
	MaxPooledCapacity int

	// MaxRetainedCapacity is the budget of a Bounded pool in bytes: the sum of
	// the capacities of its idle storage never exceeds it, at any instant. It
	// does not count allocator overhead or the 64 bytes of a lease's header.
	// Must be positive in Bounded mode, is ignored in Fast. Default: 32 MiB.
	MaxRetainedCapacity int

	// MaxAcquireSize is the largest size, in bytes, of one acquisition, growth of
	// a Buffer included. Larger requests fail with ErrInvalidSize. The capacity
	// may exceed it by the rounding to a class. Default: 1 GiB; set it to
	// what your protocol allows when sizes come from a peer.
	MaxAcquireSize int

	// ZeroOnRelease clears the complete capacity of every valid release, also of
	// storage that is then dropped. Costs the clearing of the capacity (not of
	// the length used): about 12 ns for 1 KiB. Default: off.
	ZeroOnRelease bool

	// ValidationEnabled makes the pool remember raw slices, so that a foreign,
	// duplicate or changed one is rejected. Costs a lock and a table lookup for
	// each AcquireSlice and ReleaseSlice; leases are exact without it. The table
	// keeps the size that the most owners at once have needed, until Clear. It
	// diagnoses, it does not make a slice safe to use after its release.
	// Default: off.
	ValidationEnabled bool

	// MaxValidationTombstones bounds the history of released raw slices that
	// duplicates are recognised by, first in first out by time of release. 0
	// selects DefaultMaxValidationTombstones. Negative, or not 0 without
	// ValidationEnabled, is an error. About 32 bytes each.
	MaxValidationTombstones int

	// StatsEnabled turns the operation counters of [Stats] on. Costs two
	// atomic additions a cycle, on memory of the goroutine's shard. Default: off.
	StatsEnabled bool

	// SizeHistogram counts the requested sizes for [Pool.SizeHistogram], from
	// which bufpooltune computes classes. Costs an atomic addition for each
	// acquisition. Default: off.
	SizeHistogram bool

	// DiagnosticFill fills released storage with a pattern and verifies it when
	// the storage is acquired again, which finds writes after release. They are
	// reported to OnMisuse, or panic without it. With ZeroOnRelease the storage
	// is zeroed instead, and verified to be still zero. Costs the filling and
	// the comparing of the capacity. Building with the tag invariants turns it
	// on for every pool. Default: off.
	DiagnosticFill bool

	// TrackOutstanding lists what is acquired and not released, for
	// [Pool.Outstanding] and the package bytebufferpooltest. Costs a lock and a
	// map entry for each acquisition, and keeps lost storage reachable, so that
	// it can be named. Default: off.
	TrackOutstanding bool

	// StackSampling records the call stacks of one acquisition in that many, and
	// of its release, for [Misuse] and [Outstanding]: 1 is each one, 0 none.
	// Costs about 0.5 µs and an allocation for each stack recorded. Negative is
	// an error. Default: 0.
	StackSampling int

	// Quarantine holds back so many released storages, first in first out, before
	// any of them can be acquired again, so that a use after release meets the
	// pattern of DiagnosticFill and not another owner's bytes. What is held back
	// is idle and counts against the budget. Negative is an error. Default: 0.
	Quarantine int

	// OnMisuse is called for each misuse that the pool detects, before the call
	// that detected it returns its status or panics. It is called on the goroutine of
	// the misuse, may run concurrently with itself, and must not use the pool.
	// Default: nil.
	OnMisuse func(Misuse)
}

// DefaultConfig returns the defaults for a mode, to be changed and given to
// [New].
func DefaultConfig(mode Mode) Config {
	classes, err := PowerOfTwo(defaultMinClass, defaultMaxClass)
	if err != nil {
		panic(err)
	}
	return Config{
		Mode:                mode,
		Classes:             classes,
		MaxPooledCapacity:   defaultMaxClass,
		MaxRetainedCapacity: DefaultMaxRetainedCapacity,
		MaxAcquireSize:      DefaultMaxAcquireSize,
	}
}

// check reports the first field that cannot be honoured.
func (c *Config) check() error {
	invalid := func(field string, value any, why string) error {
		return fmt.Errorf("%w: %s is %v: %s", ErrInvalidConfig, field, value, why)
	}
	if c.Mode != Fast && c.Mode != Bounded {
		return invalid("Mode", c.Mode, "must be Fast or Bounded")
	}
	if len(c.Classes) == 0 || len(c.Classes) > MaxClasses {
		return invalid("Classes", fmt.Sprintf("of length %d", len(c.Classes)), "must hold 1 to "+strconv.Itoa(MaxClasses)+" capacities")
	}
	for i, capacity := range c.Classes {
		if capacity <= 0 || i > 0 && capacity <= c.Classes[i-1] {
			return invalid("Classes["+strconv.Itoa(i)+"]", capacity, "must be positive and above the one before")
		}
	}
	largest := c.Classes[len(c.Classes)-1]
	switch {
	case c.MaxPooledCapacity < largest:
		return invalid("MaxPooledCapacity", c.MaxPooledCapacity, fmt.Sprintf("is below the largest class, %d, which could never be retained", largest))
	case c.Mode == Bounded && c.MaxRetainedCapacity <= 0:
		return invalid("MaxRetainedCapacity", c.MaxRetainedCapacity, "must be positive in Bounded mode")
	case c.MaxAcquireSize <= 0:
		return invalid("MaxAcquireSize", c.MaxAcquireSize, "must be positive")
	case c.MaxValidationTombstones < 0:
		return invalid("MaxValidationTombstones", c.MaxValidationTombstones, "must not be negative")
	case c.MaxValidationTombstones != 0 && !c.ValidationEnabled:
		return invalid("MaxValidationTombstones", c.MaxValidationTombstones, "needs ValidationEnabled")
	case c.StackSampling < 0:
		return invalid("StackSampling", c.StackSampling, "must not be negative")
	case c.Quarantine < 0:
		return invalid("Quarantine", c.Quarantine, "must not be negative")
	}
	return nil
}
