package pool

import (
	"fmt"

	"github.com/hotset-go/hotset/compare/internal/measure"
)

// The names of the lines that goals refer to.
const (
	baseline       = "sync.Pool"           // the divisor for slices
	baselineBuffer = "pooled-bytes.Buffer" // the divisor for buffers
	oneLock        = "one-mutex"

	fastLease    = "fast-lease"
	fastRaw      = "fast-raw"
	boundedLease = "bounded-lease"
	boundedRaw   = "bounded-raw"
	checkedRaw   = "fast-raw-validated"
	everything   = "fast-raw-all-options"

	fastBuffer    = "fast-buffer"
	boundedBuffer = "bounded-buffer"
	fastChain     = "fast-chain"
	boundedChain  = "bounded-chain"
)

// goalLines are the lines, and goalGroups the groups of cases, that goals refer to.
var (
	goalLines = []string{
		fastLease, fastRaw, boundedLease, boundedRaw, checkedRaw, everything, baseline, oneLock, "libp2p", "grpc",
		fastBuffer, fastChain, baselineBuffer, "valyala",
	}
	goalGroups = []string{
		"Fixed", "Crowd", "Hold", "Fresh", "Depth", "AfterGC1", "Growth16KiB", "Warm2MiB", "Cold2MiB", "ColdReadFrom2MiB",
	}
)

// sameHeap is how far two heaps may be apart, in MiB, to be called equal: what the harness and the runtime allocate on the side
// differs by some tens of KiB between two runs of the same pool.
const sameHeap = 0.1

// Measured is everything that the goals and the report are computed from.
type Measured struct {
	Results *measure.Results
	Peaks   []PeakRow    // empty: not measured
	Tests   TestOutcomes // nil: not run
}

// Goals returns the goals of bytebufferpool, held against what was measured. What is missing shows as not measured.
func Goals(m Measured) []measure.Goal {
	r := m.Results
	key := func(group, name string, procs int) measure.Key {
		return measure.Key{Group: group, Case: name, Procs: procs}
	}
	ratio := func(label, group, name, divisor string, procs int, limit float64) measure.Check {
		return measure.AtMost(label, r.Ratio(key(group, name, procs), key(group, divisor, procs)), limit, "x")
	}
	allocs := func(label, group, name string, procs int) measure.Check {
		return measure.AtMost(label, r.Allocs(key(group, name, procs)), 0, "")
	}

	lease := measure.Goal{Number: 1, Text: "Fast Lease <= 0.85x at cpu 1 and 2, 0 allocs; >= 2.3x faster than libp2p and gRPC"}
	raw := measure.Goal{Number: 2, Text: "Fast Raw <= 1.0x"}
	for _, procs := range []int{1, 2} {
		cpu := fmt.Sprintf("cpu %d: ", procs)
		lease.Checks = append(lease.Checks,
			ratio(cpu+"Lease", "Fixed", fastLease, baseline, procs, 0.85),
			allocs("allocs", "Fixed", fastLease, procs))
		for _, rival := range []string{"libp2p", "grpc"} {
			lease.Checks = append(lease.Checks, measure.AtLeast(rival+"/Lease",
				r.Ratio(key("Fixed", rival, procs), key("Fixed", fastLease, procs)), 2.3, "x"))
		}
		raw.Checks = append(raw.Checks, ratio(cpu+"Raw", "Fixed", fastRaw, baseline, procs, 1))
	}

	bounded := measure.Goal{Number: 3, Text: "Bounded Lease and Raw <= 1.1x at cpu 1; throughput(2)/throughput(1) >= 1.8; >= 4x a one-mutex pool at 128 goroutines"}
	for _, c := range []struct{ label, name string }{{"Lease", boundedLease}, {"Raw", boundedRaw}} {
		bounded.Checks = append(bounded.Checks,
			ratio(c.label, "Fixed", c.name, baseline, 1, 1.1),
			measure.AtLeast(c.label+" scaling", r.Ratio(key("Fixed", c.name, 1), key("Fixed", c.name, 2)), 1.8, "x"),
			measure.AtLeast("one mutex/"+c.label, r.Ratio(key("Crowd", oneLock, 2), key("Crowd", c.name, 2)), 4, "x"))
	}

	patterns := measure.Goal{Number: 4, Text: "a fresh goroutine, a shard miss, 16 leases held at once: <= 1.5x sync.Pool in the same pattern"}
	for _, p := range []struct{ label, group string }{{"fresh", "Fresh"}, {"shard miss", "Depth"}, {"16 held", "Hold"}} {
		for _, procs := range []int{1, 2} {
			patterns.Checks = append(patterns.Checks,
				ratio(fmt.Sprintf("%s, cpu %d: Fast", p.label, procs), p.group, fastLease, baseline, procs, 1.5),
				ratio("Bounded", p.group, boundedLease, baseline, procs, 1.5))
		}
	}

	exact := measure.Goal{
		Number: 5, Text: "budget, DroppedFull, Stats exact under load and -race; exactly one of k concurrent copies of a lease releases; every stale Bytes panics",
		Checks: []measure.Check{m.Tests.check(5)},
	}

	validation := measure.Goal{
		Number: 6, Text: "validation on: <= 2.2x, 0 allocs, exact FIFO bound",
		Checks: []measure.Check{
			ratio("Raw", "Fixed", checkedRaw, baseline, 1, 2.2), allocs("allocs", "Fixed", checkedRaw, 1), m.Tests.check(6),
		},
	}

	growth := measure.Goal{
		Number: 7, Text: "Buffer growth 16 KiB: <= 1.0x pooled bytes.Buffer, <= 1.2x valyala, 0 allocs",
		Checks: []measure.Check{
			ratio("of bytes.Buffer", "Growth16KiB", fastBuffer, baselineBuffer, 1, 1),
			ratio("of valyala", "Growth16KiB", fastBuffer, "valyala", 1, 1.2),
			allocs("allocs", "Growth16KiB", fastBuffer, 1),
		},
	}

	const mib, mb = 1 << 20, 1e6
	cold := measure.Goal{
		Number: 8, Text: "2 MiB in 4 KiB writes: <= 4.0 MiB, <= 40 allocs cold; ReadFrom 2 MiB <= 4.25 MB cold",
		Checks: []measure.Check{
			measure.AtMost("writes", r.Bytes(key("Cold2MiB", fastBuffer, 1)).Scale(1.0/mib), 4, " MiB"),
			measure.AtMost("allocs", r.Allocs(key("Cold2MiB", fastBuffer, 1)), 40, ""),
			measure.AtMost("ReadFrom", r.Bytes(key("ColdReadFrom2MiB", fastBuffer, 1)).Scale(1/mb), 4.25, " MB"),
		},
	}

	chain := measure.Goal{
		Number: 9, Text: "Chain: 2 MiB in 4 KiB writes <= 0.25x of pooled bytes.Buffer's time, 0 B warm",
		Checks: []measure.Check{
			ratio("Chain", "Warm2MiB", fastChain, baselineBuffer, 1, 0.25),
			measure.AtMost("allocated", r.Bytes(key("Warm2MiB", fastChain, 1)), 0, " B"),
		},
	}

	collected := measure.Goal{
		Number: 10, Text: "acquire after a GC <= 0.7x sync.Pool, no allocation; heap after the third GC equal to sync.Pool's",
		Checks: []measure.Check{
			ratio("Lease", "AfterGC1", fastLease, baseline, 1, 0.7), allocs("allocs", "AfterGC1", fastLease, 1),
		},
	}
	for _, load := range PeakLoads() {
		collected.Checks = append(collected.Checks, measure.AtMost("heap above sync.Pool's, "+load.String(),
			heapAbove(m.Peaks, load, fastLease, baseline), sameHeap, " MiB"))
	}

	all := measure.Goal{
		Number: 11, Text: "zeroing + validation + stats all on: <= 60 ns + the clearing itself",
		Checks: []measure.Check{measure.AtMost("above a clear of 1 KiB",
			r.Difference(key("Fixed", everything, 1), key("Fixed", clearName, 1)), 60, " ns")},
	}

	return []measure.Goal{lease, raw, bounded, patterns, exact, validation, growth, cold, chain, collected, all}
}
