package pool

import "sync"

// syncPool is the pool that people write by hand, and the divisor of every ratio: one sync.Pool of *[]byte, which makes a
// slice that is too small anew, and drops one above the cutoff.
type syncPool struct {
	pool   sync.Pool
	cutoff int
}

func (p *syncPool) get(size int) *[]byte {
	b, _ := p.pool.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	if cap(*b) < size {
		*b = make([]byte, size)
	}
	*b = (*b)[:size]
	return b
}

func (p *syncPool) put(b *[]byte) {
	if cap(*b) <= p.cutoff {
		p.pool.Put(b)
	}
}

func (p *syncPool) Cycle(n, size int) {
	for range n {
		b := p.get(size)
		touch(*b)
		p.put(b)
	}
}

func (p *syncPool) Hold(n, size int) {
	var lot [held]*[]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.get(size)
			touch(*lot[i])
		}
		for _, b := range lot {
			p.put(b)
		}
	}
}

func (p *syncPool) Handoff(n, size int) {
	handoff(n, func(b **[]byte) { *b = p.get(size); touch(**b) }, func(b **[]byte) { p.put(*b) })
}

func (p *syncPool) Take(size int) ([]byte, func()) {
	b := p.get(size)
	return *b, func() { p.put(b) }
}
