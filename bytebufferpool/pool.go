package bytebufferpool

import (
	"fmt"
	"runtime"
)

// Pool hands out byte storage and takes it back. Make one with [New], keep it
// for as long as the program has that kind of work, and share the pointer: a Pool
// must not be copied after first use (go vet finds copies). Its zero value is
// not usable. All methods are safe for concurrent use; the Leases,
// Buffers and Chains that it returns belong to one goroutine at a time.
//
// A pool starts no goroutine and needs no closing: once it and everything
// acquired from it are unreachable, it is collected.
type Pool struct {
	_ noCopy
	front
}

// noCopy makes go vet's copylocks check report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// New returns an empty pool, or an error that wraps [ErrInvalidConfig] and names
// the field and its value. A pool takes 256 bytes for each class and shard, and
// touches those of classes that are used; it has four shards for each
// processor, at most 256.
func New(config Config) (*Pool, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config.Classes = append([]int(nil), config.Classes...)
	if invariants {
		config.DiagnosticFill = true
	}
	c := newCore(config)
	p := &Pool{front: c.front}
	if config.Mode == Fast {
		// The core does not refer to the Pool, so the Pool's end is seen and ends
		// the sweeps that the core asks the runtime for.
		runtime.SetFinalizer(p, func(p *Pool) { p.core.closed.Store(true) })
		c.sweepAfterGC()
	}
	return p, nil
}

// Acquire leases storage of len size, and of the capacity of the first class
// that fits; a size above the largest class gets exactly that capacity, and
// is not pooled. Size 0 is valid. The content is whatever the last owner left,
// unless ZeroOnRelease is on, and for fresh storage zeros.
//
// Acquire panics with an error that wraps [ErrInvalidSize] where
// [Pool.TryAcquire] returns it. It allocates only when nothing fitting is idle,
// and does not block on other goroutines' use of storage.
func (p *Pool) Acquire(size int) Lease {
	return Lease{claim: p.lease(size, KindLease), n: size}
}

// TryAcquire is [Pool.Acquire] for sizes that are not trusted: it returns
// [ErrInvalidSize] for a negative size and for one above Config.MaxAcquireSize.
func (p *Pool) TryAcquire(size int) (Lease, error) {
	if err := p.checkSize(size); err != nil {
		return Lease{}, err
	}
	return p.Acquire(size), nil
}

// AcquireSlice returns a raw slice of len size and the capacity that
// [Pool.Acquire] would give, to be returned with [Pool.ReleaseSlice]. It panics
// like Acquire.
//
// A raw slice carries no generation and no state: after its release an old alias
// cannot be told from the next owner's slice. Prefer a [Lease] where the API
// that you serve does not dictate a []byte.
func (p *Pool) AcquireSlice(size int) []byte { return p.slice(size) }

// TryAcquireSlice is [Pool.AcquireSlice] with [ErrInvalidSize] instead of the
// panic.
func (p *Pool) TryAcquireSlice(size int) ([]byte, error) {
	if err := p.checkSize(size); err != nil {
		return nil, err
	}
	return p.slice(size), nil
}

// ReleaseSlice gives a raw slice back, at any length but with the capacity that
// it was acquired with. The pool owns the storage from then on: neither the
// slice nor any alias may be used. A nil slice is ignored.
//
// If append has replaced the storage, release the slice that was acquired and
// leave the replacement to the garbage collector. Without validation, a slice
// that did not come from this pool but has the capacity of a class is taken
// as if it had.
func (p *Pool) ReleaseSlice(b []byte) ReleaseStatus { return p.putSlice(b) }

// Clear drops all storage that is idle and starts a new generation: leases
// acquired before it report [DroppedStale] at their release and keep their bytes
// until then. Raw slices carry no generation: those acquired before may be
// retained after. With validation, the history of released slices is dropped and
// its memory rebuilt for the active ones alone.
func (p *Pool) Clear() { p.core.clear() }

// Trim drops idle storage until at most target bytes are retained, largest
// capacities first, and returns how many bytes it dropped. Trim(0) drops all that
// is idle. In Fast mode the inventory is not exact: what the runtime's pools
// hold is dropped entirely, and the target holds for the rest. Leased
// storage is not touched. It costs a walk over the pool, so call it on memory pressure,
// not per operation.
func (p *Pool) Trim(target int) int { return p.core.trim(target) }

// checkSize is the guard of the Try forms.
func (f *front) checkSize(size int) error {
	if size < 0 || size > f.core.cfg.MaxAcquireSize {
		return fmt.Errorf("%w: %d is not from 0 through %d", ErrInvalidSize, size, f.core.cfg.MaxAcquireSize)
	}
	return nil
}
