package pool

import prometheus "github.com/prometheus/prometheus/util/pool"

// prometheusSlices is Prometheus' util/pool: a sync.Pool a power of two behind a linear search. It holds any kind of slice, so
// that each Put allocates the slice's header twice.
type prometheusSlices struct{ pool *prometheus.Pool }

func newPrometheus() *prometheusSlices {
	return &prometheusSlices{prometheus.New(Smallest, Cutoff, 2, func(size int) any { return make([]byte, 0, size) })}
}

func (p *prometheusSlices) get(size int) []byte { return p.pool.Get(size).([]byte)[:size] }

func (p *prometheusSlices) Cycle(n, size int) {
	for range n {
		b := p.get(size)
		touch(b)
		p.pool.Put(b)
	}
}

func (p *prometheusSlices) Hold(n, size int) {
	var lot [held][]byte
	for ; n > 0; n -= held {
		for i := range lot {
			lot[i] = p.get(size)
			touch(lot[i])
		}
		for _, b := range lot {
			p.pool.Put(b)
		}
	}
}

func (p *prometheusSlices) Handoff(n, size int) {
	handoff(n, func(b *[]byte) { *b = p.get(size); touch(*b) }, func(b *[]byte) { p.pool.Put(*b) })
}

func (p *prometheusSlices) Take(size int) ([]byte, func()) {
	b := p.get(size)
	return b, func() { p.pool.Put(b) }
}
