package fastcache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// result is how a request was answered: the label of the same name.
type result uint8

const (
	resultHit         result = iota // from the store, fresh
	resultStale                     // from the store, stale
	resultMiss                      // not before the origin had answered, this request or another one's
	resultRevalidated               // from the store, after the origin confirmed it with a 304
	resultBypass                    // by the handlers behind, the cache having no part in it
	resultPurged                    // a PURGE request, whatever came of it
	numResults
)

var resultWords = [numResults]string{
	resultHit:         "hit",
	resultStale:       "stale",
	resultMiss:        "miss",
	resultRevalidated: "revalidated",
	resultBypass:      "bypass",
	resultPurged:      "purged",
}

// String returns the label.
func (r result) String() string { return resultWords[r] }

// validation is what came of asking the origin about a stored response: the
// label result of fastcache_revalidations_total.
type validation uint8

const (
	validationOK          validation = iota // it sent another response
	validationNotModified                   // it confirmed the stored one
	validationError                         // it failed, timed out, or confirmed something else
	numValidations
)

var validationWords = [numValidations]string{
	validationOK:          "ok",
	validationNotModified: "not_modified",
	validationError:       "error",
}

// durationBounds are the upper bounds of the buckets of
// fastcache_request_duration_seconds: from a hit in RAM (some 20 us) to an origin
// that is as slow as clients put up with, three a decade, so that a quantile is
// right within a factor of 2.5.
var durationBounds = [...]time.Duration{
	25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond,
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// durations is a histogram that costs two atomic adds a request and, when it is
// read, gives the number of requests too, so that the two never disagree. A
// histogram and a counter of the client library make five; by the clock it is
// 40 ns against 57 (BenchmarkObservation, readings of the clock taken off).
type durations struct {
	buckets [len(durationBounds) + 1]atomic.Uint64 // not cumulative; the last one has no bound
	nanos   atomic.Uint64                          // the sum
}

func (d *durations) add(took time.Duration) {
	took = max(took, 0)
	i := 0
	for i < len(durationBounds) && took > durationBounds[i] {
		i++
	}
	d.buckets[i].Add(1)
	d.nanos.Add(uint64(took))
}

// read returns what a constant histogram is made of.
func (d *durations) read() (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(durationBounds))
	for i := range d.buckets {
		count += d.buckets[i].Load()
		if i < len(durationBounds) {
			buckets[durationBounds[i].Seconds()] = count
		}
	}
	return count, time.Duration(d.nanos.Load()).Seconds(), buckets
}

// tally is what the instances of one name have counted since the process
// started. It outlives them, so that no reload of the configuration takes back
// what has been counted. Its counters are safe for concurrent use.
type tally struct {
	requests    [numResults]durations
	reasons     []atomic.Uint64 // by rfc9111.Reason
	coalesced   atomic.Uint64
	validations [numValidations]atomic.Uint64

	// Of the stores, as far as they have been settled; see sharedStore.settle.
	evictions  [store.Causes]atomic.Uint64
	damaged    atomic.Uint64
	diskErrors atomic.Uint64

	users int // instances that there are now; guarded by tallies
}

func newTally() *tally {
	return &tally{reasons: make([]atomic.Uint64, len(rfc9111.Reasons())+1)}
}

// tallies holds the tally of each name that the process has seen: as many as
// configurations have named, some 2 KiB each.
var tallies = struct {
	sync.Mutex
	byName map[string]*tally // guarded by Mutex
}{byName: make(map[string]*tally)}

// joinTally returns the tally of a name for one more instance, until that calls
// leave.
func joinTally(name string) *tally {
	tallies.Lock()
	defer tallies.Unlock()
	t := tallies.byName[name]
	if t == nil {
		t = newTally()
		tallies.byName[name] = t
	}
	t.users++
	return t
}

func (t *tally) leave() {
	tallies.Lock()
	defer tallies.Unlock()
	t.users--
}

// talliesInUse returns the tallies that have instances, by name.
func talliesInUse() map[string]*tally {
	tallies.Lock()
	defer tallies.Unlock()
	inUse := make(map[string]*tally, len(tallies.byName))
	for name, t := range tallies.byName {
		if t.users > 0 {
			inUse[name] = t
		}
	}
	return inUse
}

// reason counts a word of the closed list, if there is one.
func (t *tally) reason(r rfc9111.Reason) {
	if r != rfc9111.ReasonNone {
		t.reasons[r].Add(1)
	}
}

// addStore adds what a store has counted between two snapshots of it.
func (t *tally) addStore(before, after store.Stats) {
	for i := range after.Evictions {
		t.evictions[i].Add(after.Evictions[i] - before.Evictions[i])
	}
	t.damaged.Add(uint64(after.Damaged - before.Damaged))
	t.diskErrors.Add(after.DiskErrors - before.DiskErrors)
}

// desc describes a metric. docs/metrics.md has the same words, which a test holds
// together.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("fastcache_"+name, help, append([]string{"name"}, labels...), nil)
}

var (
	descRequests    = desc("requests_total", "Requests that reached the cache, by how they were answered.", "result")
	descDuration    = desc("request_duration_seconds", "Time from the arrival of a request at the cache to the header of its answer, by how it was answered.", "result")
	descReasons     = desc("reasons_total", "Why requests were not plain hits: the words of detail in Cache-Status.", "reason")
	descCoalesced   = desc("coalesced_requests_total", "Requests answered by another request's trip to the origin; each is a miss too.")
	descValidations = desc("revalidations_total", "Stored responses that the origin was asked about, also in the background, by what came of it.", "result")
	descEvictions   = desc("evictions_total", "Stored responses that left the cache, or its memory, by why.", "reason")
	descDamaged     = desc("damaged_total", "Stored responses that failed a check and were dropped.")
	descDiskErrors  = desc("disk_errors_total", "File operations that failed.")
	descEntries     = desc("entries", "Stored responses, each variant counted.")
	descBytes       = desc("bytes", "Bytes in use of each tier's budget.", "tier")
	descRebuild     = desc("rebuild_progress_ratio", "Share of the cache directory that has been read since the start. It is 1 when all of it has, and stays below if a part cannot be read.")
	descLoaded      = desc("rebuild_entries", "Stored responses of earlier runs that have been found in the cache directory.")
)

// exporter collects the metrics of the process: of the names that have instances
// and of the stores that are open. Stores are asked when the metrics are, never by
// a request.
//
// Each configuration has a registry of its own, but what is collected is the same
// in all of them. While old and new instances live, they share their stores, so
// that nothing is doubled; and after a reload that failed, Caddy's admin endpoint
// goes on with the registry of the configuration that failed, where the metrics
// of the running one must be.
type exporter struct{}

// exportMetrics makes the registry of a configuration show the metrics. It may be
// called more than once.
func exportMetrics(registry *prometheus.Registry) error {
	err := registry.Register(exporter{})
	var already prometheus.AlreadyRegisteredError
	if err != nil && !errors.As(err, &already) {
		return fmt.Errorf("fastcache: registering the metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRequests, descDuration, descReasons, descCoalesced, descValidations, descEvictions,
		descDamaged, descDiskErrors, descEntries, descBytes, descRebuild, descLoaded,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (exporter) Collect(ch chan<- prometheus.Metric) {
	inUse := talliesInUse()
	stats := make(map[string]storeStats, len(inUse))
	for _, s := range openStores() {
		// A store whose blocks have several names counts for the first of
		// them, in alphabetical order: sums over names must be right.
		var owner *FastCache
		for _, fc := range s.instances() {
			if owner == nil || fc.Name < owner.Name {
				owner = fc
			}
		}
		if owner != nil { // not about to open or to close
			stats[owner.Name] = stats[owner.Name].plus(s.settle(owner.tally))
		}
	}
	for name, t := range inUse {
		t.collect(ch, name)
		stats[name].collect(ch, name)
	}
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (t *tally) collect(ch chan<- prometheus.Metric, name string) {
	for i := range t.requests {
		count, sum, buckets := t.requests[i].read()
		counter(ch, descRequests, count, name, resultWords[i])
		ch <- prometheus.MustNewConstHistogram(descDuration, count, sum, buckets, name, resultWords[i])
	}
	for _, r := range rfc9111.Reasons() {
		counter(ch, descReasons, t.reasons[r].Load(), name, r.String())
	}
	counter(ch, descCoalesced, t.coalesced.Load(), name)
	for i := range t.validations {
		counter(ch, descValidations, t.validations[i].Load(), name, validationWords[i])
	}
	for i := range t.evictions {
		counter(ch, descEvictions, t.evictions[i].Load(), name, store.Cause(i).String())
	}
	counter(ch, descDamaged, t.damaged.Load(), name)
	counter(ch, descDiskErrors, t.diskErrors.Load(), name)
}

// storeStats is the sum of the snapshots of some stores.
type storeStats struct {
	entries, memory, disk, loaded int64
	rebuildDone, rebuildTotal     int
}

func (s storeStats) plus(t store.Stats) storeStats {
	s.entries += t.Entries
	s.memory += t.MemoryBytes
	s.disk += t.DiskBytes
	s.loaded += t.Loaded
	s.rebuildDone += t.RebuildDone
	s.rebuildTotal += t.RebuildTotal
	return s
}

func (s storeStats) collect(ch chan<- prometheus.Metric, name string) {
	gauge(ch, descEntries, float64(s.entries), name)
	gauge(ch, descBytes, float64(s.memory), name, "memory")
	gauge(ch, descBytes, float64(s.disk), name, "disk")
	rebuilt := 1.0 // nothing to read is all read
	if s.rebuildTotal > 0 {
		rebuilt = float64(s.rebuildDone) / float64(s.rebuildTotal)
	}
	gauge(ch, descRebuild, rebuilt, name)
	gauge(ch, descLoaded, float64(s.loaded), name)
}

// Interface guard
var _ prometheus.Collector = exporter{}
