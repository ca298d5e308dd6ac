package bytebufferpool

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// MisuseKind tells what was done wrong.
type MisuseKind uint8

const (
	// DuplicateRelease is a second release; it returned RejectedDuplicate.
	DuplicateRelease MisuseKind = iota

	// ForeignRelease is the release of a raw slice that the pool does not know; it
	// returned RejectedForeign. Needs validation.
	ForeignRelease

	// ChangedCapacity is the release of a raw slice with another capacity than it
	// was acquired with; it returned DroppedInvalid. Needs validation.
	ChangedCapacity

	// UseAfterRelease is a method call on a released Lease, Buffer or Chain,
	// which panics after the report.
	UseAfterRelease

	// WriteAfterRelease is a write to storage after its release, found at the
	// next acquisition. Without Config.OnMisuse the acquisition panics. Needs
	// Config.DiagnosticFill.
	WriteAfterRelease
)

var misuseNames = [...]string{"duplicate release", "foreign release", "changed capacity", "use after release", "write after release"}

// String returns the kind in words.
func (k MisuseKind) String() string {
	if int(k) < len(misuseNames) {
		return misuseNames[k]
	}
	return "MisuseKind(" + strconv.Itoa(int(k)) + ")"
}

// Misuse is a report to [Config.OnMisuse].
type Misuse struct {
	Kind     MisuseKind
	Capacity int // of the storage, in bytes

	// Offset is where in the storage a WriteAfterRelease was found, -1 for the
	// other kinds.
	Offset int

	// Acquired and Released are where the storage was acquired and released in
	// the use that the misuse belongs to, if that was sampled (Config.StackSampling)
	// and is still known: the last two uses of a storage are. Nil otherwise.
	Acquired, Released Stack

	// Detected is where the misuse was noticed.
	Detected Stack
}

// String returns the report with its stacks, over several lines.
func (m Misuse) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bytebufferpool: %s of storage of %d bytes", m.Kind, m.Capacity)
	if m.Offset >= 0 {
		fmt.Fprintf(&b, " at offset %d", m.Offset)
	}
	for _, part := range []struct {
		name  string
		stack Stack
	}{{"acquired", m.Acquired}, {"released", m.Released}, {"detected", m.Detected}} {
		if len(part.stack) > 0 {
			fmt.Fprintf(&b, "\n%s at:\n%s", part.name, part.stack)
		}
	}
	return b.String()
}

// Kind tells what was acquired.
type Kind uint8

// The kinds of acquisitions.
const (
	KindLease Kind = iota
	KindSlice
	KindBuffer
	KindChain
)

var kindNames = [...]string{"Lease", "raw slice", "Buffer", "Chain"}

// String returns the kind in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// Outstanding is something that was acquired and not yet released.
type Outstanding struct {
	Kind     Kind
	Size     int       // requested, in bytes
	Capacity int       // of the storage, in bytes
	Since    time.Time // of the acquisition
	Acquired Stack     // if it was sampled, see Config.StackSampling
}

// Outstanding returns what is acquired and not released, the oldest first, and
// whether the pool keeps track of it ([Config.TrackOutstanding]). A Buffer is listed with
// its present storage, a Chain with each of its segments. A raw slice that was
// released to another pool stays on the list.
func (p *Pool) Outstanding() (list []Outstanding, tracked bool) {
	t := p.core.tracker
	if t == nil {
		return nil, false
	}
	t.mu.Lock()
	for _, o := range t.live {
		list = append(list, o)
	}
	t.mu.Unlock()
	sort.SliceStable(list, func(i, j int) bool { return list[i].Since.Before(list[j].Since) })
	return list, true
}

// Stack is a call stack, the innermost call first, without this package's own
// calls.
type Stack []uintptr

// maxStack is how many calls a stack has at most: enough to tell who it was.
const maxStack = 24

func callers() Stack {
	var pcs [maxStack]uintptr
	return append(Stack(nil), pcs[:runtime.Callers(2, pcs[:])]...)
}

// ownPrefix is what the names of this package's functions begin with.
var ownPrefix = reflect.TypeOf(Pool{}).PkgPath() + "."

// String formats the stack as a panic does: two lines a call.
func (s Stack) String() string {
	if len(s) == 0 {
		return ""
	}
	var b strings.Builder
	frames := runtime.CallersFrames(s)
	inside := true
	for {
		f, more := frames.Next()
		inside = inside && strings.HasPrefix(f.Function, ownPrefix)
		if !inside && f.Function != "" {
			fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return strings.TrimSuffix(b.String(), "\n")
		}
	}
}

// trace is where a storage was acquired and released, in one use. It is
// immutable once it can be found.
type trace struct {
	word     uint64 // the lease it belongs to
	acquired Stack
	release  Stack
	prev     *trace // the use before, without its own prev
}

// withRelease returns the trace with the stack of a release; nil for nil.
func (t *trace) withRelease() *trace {
	if t == nil {
		return nil
	}
	u := *t
	u.release = callers()
	return &u
}

// tracedHeader is the header of a pool that samples stacks.
type tracedHeader struct {
	header
	trace atomic.Pointer[trace]
}

// traced returns the whole header in a pool that samples stacks.
func traced(h *header) *tracedHeader {
	// Safety: newHeader allocates a tracedHeader in such a pool, and header is
	// its first field.
	return (*tracedHeader)(unsafe.Pointer(h))
}

// push starts the trace of a new use. The lease's owner calls it.
func (h *tracedHeader) push(t *trace) {
	if old := h.trace.Load(); old != nil {
		prev := *old
		prev.prev = nil
		t.prev = &prev
	}
	h.trace.Store(t)
}

// released completes the trace of the use that word was the lease of.
func (h *tracedHeader) released(word uint64) {
	if t := h.trace.Load(); t != nil && t.word == word {
		h.trace.Store(t.withRelease())
	}
}

// of returns the trace of a lease, if it is still known.
func (h *tracedHeader) of(word uint64) *trace {
	for t := h.trace.Load(); t != nil; t = t.prev {
		if t.word == word {
			return t
		}
	}
	return nil
}

// misused reports the misuse of a lease.
func (c *core) misused(m Misuse, h *header, word uint64) {
	if c.cfg.OnMisuse == nil {
		return
	}
	if c.cfg.StackSampling > 0 {
		if t := traced(h).of(word); t != nil {
			m.Acquired, m.Released = t.acquired, t.release
		}
	}
	m.Detected = callers()
	c.cfg.OnMisuse(m)
}

// reportSlice reports the misuse of a raw slice.
func (c *core) reportSlice(kind MisuseKind, b []byte, t *trace) {
	if c.stats != nil && kind != ChangedCapacity {
		c.stats.shards[c.shard()].rejected.Add(1)
	}
	if c.cfg.OnMisuse == nil {
		return
	}
	m := Misuse{Kind: kind, Capacity: cap(b), Offset: -1, Detected: callers()}
	if t != nil {
		m.Acquired, m.Released = t.acquired, t.release
	}
	c.cfg.OnMisuse(m)
}

// onAcquire does what options want at an acquisition on storage buf, which its caller owns. It
// returns a trace if this one is sampled.
func (c *core) onAcquire(buf []byte, size int, class uint8, hit bool, kind Kind) (t *trace) {
	c.countAcquire(class, hit)
	if c.sizes != nil {
		c.sizes.add(size)
	}
	if hit && c.cfg.DiagnosticFill {
		c.verify(buf)
	}
	if n := c.cfg.StackSampling; n > 0 && c.sampler.Add(1)%uint64(n) == 0 {
		t = &trace{acquired: callers()}
	}
	if c.tracker != nil {
		o := Outstanding{Kind: kind, Size: size, Capacity: cap(buf), Since: time.Now()}
		if t != nil {
			o.Acquired = t.acquired
		}
		c.tracker.add(buf, o)
	}
	return t
}

// onRelease does what options want at a valid release, before anybody else can
// find the storage.
func (c *core) onRelease(buf []byte) {
	c.forget(buf)
	buf = buf[:cap(buf)]
	switch {
	case c.cfg.ZeroOnRelease:
		clear(buf)
		if c.stats != nil && c.classOf(buf) < 0 {
			// Of storage with a class, each counted release says it.
			c.stats.shards[c.shard()].zeroed.Add(uint64(len(buf)))
		}
	case c.cfg.DiagnosticFill:
		for len(buf) > 0 {
			buf = buf[copy(buf, filling):]
		}
	}
}

// forget takes a storage off the list of the outstanding.
func (c *core) forget(buf []byte) {
	if c.tracker != nil {
		c.tracker.remove(buf)
	}
}

// filling and zeros are copied and compared in pieces that stay in the L1 cache.
var (
	filling = bytes.Repeat([]byte{0xDB}, 4096)
	zeros   = make([]byte, 4096)
)

// verify checks that nobody wrote to storage while it was idle.
func (c *core) verify(buf []byte) {
	want := filling
	if c.cfg.ZeroOnRelease {
		want = zeros
	}
	buf = buf[:cap(buf)]
	for at := 0; at < len(buf); at += len(want) {
		piece := buf[at:min(at+len(want), len(buf))]
		if bytes.Equal(piece, want[:len(piece)]) {
			continue
		}
		offset := at
		for i, b := range piece {
			if b != want[i] {
				offset += i
				break
			}
		}
		m := Misuse{Kind: WriteAfterRelease, Capacity: cap(buf), Offset: offset, Detected: callers()}
		if c.cfg.OnMisuse == nil {
			panic(m.String())
		}
		c.cfg.OnMisuse(m)
		return
	}
}

// tracker is the list of what is outstanding.
type tracker struct {
	mu   sync.Mutex
	live map[*byte]Outstanding // by storage; guarded by mu
}

func newTracker() *tracker { return &tracker{live: make(map[*byte]Outstanding)} }

func (t *tracker) add(buf []byte, o Outstanding) {
	t.mu.Lock()
	t.live[unsafe.SliceData(buf)] = o
	t.mu.Unlock()
}

func (t *tracker) remove(buf []byte) {
	t.mu.Lock()
	delete(t.live, unsafe.SliceData(buf))
	t.mu.Unlock()
}
