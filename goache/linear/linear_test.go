package linear

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/hotset-go/hotset/goache"
)

type op uint8

const (
	get op = iota
	set
	remove
	setIfAbsent
	replace
	compareAndSwap
	getAndDelete
	appendTo // Compute that stores
	drop     // Compute that removes
	clearAll
	ops
)

func (o op) String() string {
	return [...]string{
		"Get", "Set", "Delete", "SetIfAbsent", "Replace", "CompareAndSwap", "GetAndDelete",
		"Compute/Store", "Compute/Remove", "Clear",
	}[o]
}

type input struct {
	op         op
	key        int
	value, old string
}

// output is what an operation returned: the value it found, or left, and whether it
// found one, or did what it should.
type output struct {
	value string
	ok    bool
}

// state is a key's value; nothing is "".
type state = string

// step is one operation on one key. In a cache that evicts, a key may be gone whenever
// an operation says so; and then it stays so until it is written.
func step(evicts bool) func(s, in, out any) (bool, any) {
	return func(s, in, out any) (bool, any) {
		was, i, o := s.(state), in.(input), out.(output)
		if evicts && was != "" && sawNothing(was, i, o) {
			was = ""
		}
		there := was != ""
		switch i.op {
		case get:
			return o == output{was, there}, was
		case set:
			return true, i.value
		case remove, clearAll, drop:
			return true, ""
		case setIfAbsent: // ok: stored
			if there {
				return o == output{was, false}, was
			}
			return o == output{i.value, true}, i.value
		case replace:
			if !there {
				return !o.ok, was
			}
			return o.ok, i.value
		case compareAndSwap:
			if was != i.old || !there {
				return !o.ok, was
			}
			return o.ok, i.value
		case getAndDelete:
			return o == output{was, there}, ""
		case appendTo: // value: what Compute's function saw
			return o == output{was, there}, i.value
		}
		panic("unknown operation")
	}
}

// sawNothing reports whether the operation must have found no value where was would
// have been.
func sawNothing(was state, i input, o output) bool {
	switch i.op {
	case setIfAbsent:
		return o.ok
	case compareAndSwap:
		return !o.ok && was == i.old
	case get, replace, getAndDelete, appendTo:
		return !o.ok
	}
	return false
}

func model(evicts bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: step(evicts),
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[int][]porcupine.Operation{}
			for _, o := range history {
				k := o.Input.(input).key
				byKey[k] = append(byKey[k], o)
			}
			var parts [][]porcupine.Operation
			for _, p := range byKey {
				parts = append(parts, p)
			}
			return parts
		},
		DescribeOperation: func(in, out any) string {
			i, o := in.(input), out.(output)
			return fmt.Sprintf("%v(%d, %q, %q) = %q, %v", i.op, i.key, i.old, i.value, o.value, o.ok)
		},
	}
}

// cache is what the clients drive: goache, or something that is wrong on purpose.
type cache interface {
	do(in input) output
	noise(rng *rand.Rand)
}

type real struct{ c *goache.Cache[int, string] }

func (r real) do(in input) (out output) {
	c := r.c
	switch in.op {
	case get:
		out.value, out.ok = c.Get(in.key)
	case set:
		c.Set(in.key, in.value)
	case remove:
		c.Delete(in.key)
	case setIfAbsent:
		out.value, out.ok = c.SetIfAbsent(in.key, in.value)
	case replace:
		out.ok = c.Replace(in.key, in.value)
	case compareAndSwap:
		out.ok = goache.CompareAndSwap(c, in.key, in.old, in.value)
	case getAndDelete:
		out.value, out.ok = c.GetAndDelete(in.key)
	case appendTo:
		c.Compute(in.key, func(old string, ok bool) (string, goache.Op) {
			out = output{old, ok}
			return in.value, goache.Store
		})
	case drop:
		c.Compute(in.key, func(string, bool) (string, goache.Op) { return "", goache.Remove })
	case clearAll:
		c.Clear()
	}
	return out
}

// noise makes entries be used again for other keys, and tables grow and wear out.
func (r real) noise(rng *rand.Rand) {
	k := 1000 + rng.IntN(200)
	if rng.IntN(2) == 0 {
		r.c.Set(k, "noise")
	} else {
		r.c.Delete(k)
	}
}

// run has clients do random operations on few keys, and returns the history.
func run(c cache, seed uint64) []porcupine.Operation {
	const clients, each, keys = 4, 60, 2
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	start := time.Now()
	for client := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(client)))
			var mine []porcupine.Operation
			last := ""
			for n := range each {
				in := input{op: op(rng.IntN(int(ops))), key: rng.IntN(keys), old: last}
				if rng.IntN(3) == 0 {
					in.op = get
				}
				if in.op == clearAll && rng.IntN(5) != 0 {
					in.op = set
				}
				// Lengths differ, so that a pointer with another value's length shows.
				in.value = fmt.Sprintf("%d.%d.%0*d", client, n, rng.IntN(20), seed)
				c.noise(rng)
				call := int64(time.Since(start))
				out := c.do(in)
				end := int64(time.Since(start))
				if in.op == get && out.ok {
					last = out.value
				}
				if in.op != clearAll {
					mine = append(mine, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
					continue
				}
				for k := range keys { // for each key, Clear is a Delete
					in.key = k
					mine = append(mine, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
				}
			}
			mu.Lock()
			history = append(history, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return history
}

// during returns how long to go on: HOTSET_STRESS=10m for long.
func during(t *testing.T) time.Duration {
	if s := os.Getenv("HOTSET_STRESS"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("HOTSET_STRESS: %v", err)
		}
		return d
	}
	if testing.Short() {
		return 300 * time.Millisecond
	}
	return 2 * time.Second
}

func TestCache_IsLinearizable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		evicts bool
		opts   []goache.Option
	}{
		{"unbounded", false, []goache.Option{goache.WithShardCount(1)}},
		{"watched", false, []goache.Option{goache.WithStats(), goache.WithOnRemove(func(int, string, goache.Cause) {})}},
		{"bounded", true, []goache.Option{goache.WithMaxSize(8), goache.WithShardCount(1)}},
		{"clock", true, []goache.Option{goache.WithMaxSize(8), goache.WithPolicy(goache.Clock)}},
		{"by weight", true, []goache.Option{
			goache.WithMaxWeight(200), goache.WithShardCount(1),
			goache.WithWeigher(func(_ int, v string) uint32 { return uint32(len(v)) }),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			deadline := time.Now().Add(during(t) / 5)
			histories := 0
			for seed := uint64(1); histories == 0 || time.Now().Before(deadline); seed++ {
				history := run(real{goache.New[int, string](tt.opts...)}, seed)
				switch result := porcupine.CheckOperationsTimeout(model(tt.evicts), history, 20*time.Second); result {
				case porcupine.Illegal:
					t.Fatalf("seed %d: not linearizable", seed)
				case porcupine.Unknown:
					t.Logf("seed %d: not decided in time", seed)
				}
				histories++
			}
			t.Logf("%d histories", histories)
		})
	}
}

// late is a cache whose Get returns what was true some time ago: the check must
// notice.
type late struct {
	real
	seen [2]atomic.Pointer[output]
}

func (l *late) do(in input) output {
	out := l.real.do(in)
	if in.op != get {
		return out
	}
	if old := l.seen[in.key].Swap(&out); old != nil {
		return *old
	}
	return out
}

func TestModel_NoticesStaleReads(t *testing.T) {
	for seed := uint64(1); seed < 20; seed++ {
		history := run(&late{real: real{goache.New[int, string]()}}, seed)
		if porcupine.CheckOperationsTimeout(model(false), history, 20*time.Second) == porcupine.Illegal {
			return
		}
	}
	t.Error("reads of old values pass as linearizable")
}
