package goache

// SingleCoreCache is a [Cache] with one shard, for processes that run on a single
// core, as a Kubernetes pod with limits.cpu of 1000m or less does. Make one with
// [NewSingleCore].
//
// It is the same engine with the same methods and guarantees: reads take no lock there
// either, and it stays correct on any number of cores. With one shard all writers
// share a lock, and in return there is nothing to spread: an empty cache is a few
// hundred bytes, a bound is one policy over all entries, and Len takes one lock. On
// several cores use [New].
type SingleCoreCache[K comparable, V any] struct {
	Cache[K, V]
}

// NewSingleCore creates an empty cache with one shard. It accepts the options of
// [New]; WithShardCount means nothing here and is ignored, so one []Option can be
// passed to either constructor.
func NewSingleCore[K comparable, V any](opts ...Option) *SingleCoreCache[K, V] {
	cfg := newConfig(opts)
	cfg.single = true
	c := new(SingleCoreCache[K, V])
	c.init(cfg)
	return c
}
