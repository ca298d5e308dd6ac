package pool

import "sync"

// oneMutex is the bounded pool that people write by hand: a stack of slices of one size and a byte budget behind one mutex.
// Quick alone, and the reason why bytebufferpool's Bounded mode is not built like that.
type oneMutex struct {
	mu     sync.Mutex
	idle   [][]byte // guarded by mu
	bytes  int      // their capacities, guarded by mu
	budget int
}

func (p *oneMutex) get(size int) []byte {
	p.mu.Lock()
	if n := len(p.idle); n > 0 && cap(p.idle[n-1]) >= size {
		b := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.bytes -= cap(b)
		p.mu.Unlock()
		return b[:size]
	}
	p.mu.Unlock()
	return make([]byte, size)
}

func (p *oneMutex) put(b []byte) {
	p.mu.Lock()
	if p.bytes+cap(b) <= p.budget {
		p.bytes += cap(b)
		p.idle = append(p.idle, b)
	}
	p.mu.Unlock()
}

func (p *oneMutex) Cycle(n, size int) {
	for range n {
		b := p.get(size)
		touch(b)
		p.put(b)
	}
}

func (p *oneMutex) Hold(n, size int) {
	var lot [held][]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.get(size)
			touch(lot[i])
		}
		for _, b := range lot {
			p.put(b)
		}
	}
}

func (p *oneMutex) Handoff(n, size int) {
	handoff(n, func(b *[]byte) { *b = p.get(size); touch(*b) }, func(b *[]byte) { p.put(*b) })
}

func (p *oneMutex) Take(size int) ([]byte, func()) {
	b := p.get(size)
	return b, func() { p.put(b) }
}
