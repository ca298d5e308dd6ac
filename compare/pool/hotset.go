package pool

import "github.com/hotset-go/hotset/bytebufferpool"

// firstCapacity is what our buffers are asked to begin with: nothing is known of what will be written.
const firstCapacity = Smallest

// newOurs returns a pool with defaults, but for what change does to them.
func newOurs(mode bytebufferpool.Mode, change func(*bytebufferpool.Config)) *bytebufferpool.Pool {
	config := bytebufferpool.DefaultConfig(mode)
	if change != nil {
		change(&config)
	}
	p, err := bytebufferpool.New(config)
	if err != nil {
		panic("pool: " + err.Error()) // the configurations below are constants
	}
	return p
}

func ourSlicePools() []SlicePool {
	leases := func(mode bytebufferpool.Mode) func(int) Slices {
		return func(int) Slices { return ourLeases{newOurs(mode, nil)} }
	}
	raw := func(mode bytebufferpool.Mode, change func(*bytebufferpool.Config)) func(int) Slices {
		return func(int) Slices { return ourRaw{newOurs(mode, change)} }
	}
	validated := func(c *bytebufferpool.Config) { c.ValidationEnabled = true }
	all := func(c *bytebufferpool.Config) {
		c.ValidationEnabled, c.ZeroOnRelease, c.StatsEnabled = true, true, true
	}
	return []SlicePool{
		{Name: fastLease, Title: "**Fast Lease**", New: leases(bytebufferpool.Fast)},
		{Name: fastRaw, Title: "**Fast Raw**", New: raw(bytebufferpool.Fast, nil)},
		{Name: boundedLease, Title: "**Bounded Lease**", New: leases(bytebufferpool.Bounded)},
		{Name: boundedRaw, Title: "**Bounded Raw**", New: raw(bytebufferpool.Bounded, nil)},
		{Name: checkedRaw, Title: "**Fast Raw, validated**", New: raw(bytebufferpool.Fast, validated)},
		{Name: everything, Title: "**Fast Raw, validated, zeroed, counted**", New: raw(bytebufferpool.Fast, all)},
	}
}

// ourLeases is bytebufferpool by its Lease: with every misuse caught.
type ourLeases struct{ pool *bytebufferpool.Pool }

func (p ourLeases) Cycle(n, size int) {
	for range n {
		l := p.pool.Acquire(size)
		touch(l.Bytes())
		l.Release()
	}
}

func (p ourLeases) Hold(n, size int) {
	var lot [held]bytebufferpool.Lease
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.pool.Acquire(size)
			touch(lot[i].Bytes())
		}
		for i := range lot {
			lot[i].Release()
		}
	}
}

func (p ourLeases) Handoff(n, size int) {
	handoff(n,
		func(l *bytebufferpool.Lease) { *l = p.pool.Acquire(size); touch(l.Bytes()) },
		func(l *bytebufferpool.Lease) { l.Release() })
}

func (p ourLeases) Take(size int) ([]byte, func()) {
	l := p.pool.Acquire(size)
	return l.Bytes(), func() { l.Release() }
}

// Retained returns what a Bounded pool holds, -1 for a Fast one.
func (p ourLeases) Retained() int { return retained(p.pool) }

// ourRaw is bytebufferpool by its raw slices.
type ourRaw struct{ pool *bytebufferpool.Pool }

func (p ourRaw) Cycle(n, size int) {
	for range n {
		b := p.pool.AcquireSlice(size)
		touch(b)
		p.pool.ReleaseSlice(b)
	}
}

func (p ourRaw) Hold(n, size int) {
	var lot [held][]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.pool.AcquireSlice(size)
			touch(lot[i])
		}
		for _, b := range lot {
			p.pool.ReleaseSlice(b)
		}
	}
}

func (p ourRaw) Handoff(n, size int) {
	handoff(n,
		func(b *[]byte) { *b = p.pool.AcquireSlice(size); touch(*b) },
		func(b *[]byte) { p.pool.ReleaseSlice(*b) })
}

func (p ourRaw) Take(size int) ([]byte, func()) {
	b := p.pool.AcquireSlice(size)
	return b, func() { p.pool.ReleaseSlice(b) }
}

// Retained returns what a Bounded pool holds, -1 for a Fast one.
func (p ourRaw) Retained() int { return retained(p.pool) }

func retained(p *bytebufferpool.Pool) int {
	if s := p.Stats(); s.RetainedAvailable {
		return s.RetainedCapacity
	}
	return -1
}
