package fastcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
)

// TestExchange runs random scripts of requests through the handler, in front of an
// origin that does what the script says, and checks each answer against the model.
func TestExchange(t *testing.T) {
	l := newLab(t)
	rounds := 40 // of 100 scripts each
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
		rapid.Check(t, func(rt *rapid.T) {
			l.check(rt)
		})
	}
}

func FuzzExchange(f *testing.F) {
	l := newLab(f)
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(l.check))
}

// check draws a script and runs it.
func (l *lab) check(rt *rapid.T) {
	wrong, report := l.run(drawScript(rt))
	if wrong == "" {
		return
	}
	rt.Log(report)
	// Shrinking keeps to failures with the same text.
	rt.Fatal("the answer " + regexp.MustCompile(`[0-9.]+[a-zµ]*|"[^ ]*"`).ReplaceAllString(wrong, "#"))
}

// lab has a cache for each combination of options, and their clock. A script has
// its own path, so that it meets nothing of those before it.
type lab struct {
	tb      testing.TB
	clock   labClock
	caches  map[scriptOptions]*FastCache
	scripts int
}

// labClock is the time of the lab: it moves when a script says so. The store reads
// it from other goroutines.
type labClock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (c *labClock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *labClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newLab(tb testing.TB) *lab {
	return &lab{
		tb:     tb,
		clock:  labClock{now: time.Date(2026, time.August, 1, 12, 0, 0, 0, time.UTC)},
		caches: make(map[scriptOptions]*FastCache),
	}
}

func (l *lab) cache(o scriptOptions) *FastCache {
	if fc := l.caches[o]; fc != nil {
		return fc
	}
	fc := &FastCache{
		DiskSize:             "0",
		TTL:                  strconv.Itoa(o.ttl) + "s",
		StaleWhileRevalidate: strconv.Itoa(o.swr) + "s",
		StaleIfError:         strconv.Itoa(o.sie) + "s",
		RevalidateTimeout:    "0",
		HonorRequestCC:       o.honorRequest,
		NoVarySearch:         o.noVarySearch,
		now:                  l.clock.time,
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	if err := fc.Provision(ctx); err != nil {
		l.tb.Fatal(err)
	}
	fc.logger = zap.NewNop()
	l.tb.Cleanup(func() {
		_ = fc.Cleanup()
		cancel()
	})
	l.caches[o] = fc
	return fc
}

// run runs a script up to the first wrong answer and returns what is wrong with
// it, and what has happened.
func (l *lab) run(s script) (wrong, report string) {
	l.scripts++
	base := fmt.Sprintf("/%d", l.scripts)
	fc := l.cache(s.options)
	m := &model{options: s.options}
	// Whole seconds, so that a script does the same wherever it stands; and some
	// distance to what came before.
	now := l.clock.time()
	l.clock.add(now.Truncate(time.Second).Add(10 * time.Second).Sub(now))
	start := l.clock.time()

	var log strings.Builder
	fmt.Fprintf(&log, "%v\n", s.options)
	for i := range s.steps {
		st := &s.steps[i]
		l.clock.add(st.wait)
		o := &origin{clock: &l.clock, m: m, ask: &st.ask, reply: &st.reply, answered: make(chan struct{})}
		fmt.Fprintf(&log, "%7.1fs %v\n", l.clock.time().Sub(start).Seconds(), st)
		got := l.exchange(fc, base, &st.ask, o)
		for _, c := range o.calls {
			what := c.reply.describe(c.got, base+st.ask.url.String())
			if c.notModified {
				what = "304 for " + what
			}
			fmt.Fprintf(&log, "         origin, asked %s %s: response %d: %s\n", c.method, compact(c.header), c.id, what)
		}
		fmt.Fprintf(&log, "         answer: %d %s, %d bytes, error %v, aborted %v\n", got.status, compact(got.header), len(got.body), got.err, got.aborted)
		if wrong := m.check(&st.ask, got, o.calls, l.clock.time()); wrong != "" {
			return wrong, log.String() + "         the answer " + wrong
		}
	}
	return "", ""
}

// exchange sends one request and waits for what it leaves behind.
func (l *lab) exchange(fc *FastCache, base string, a *ask, o *origin) *answer {
	r := httptest.NewRequest(a.method, base+a.url.String(), http.NoBody)
	r.Header = a.header()
	r.RemoteAddr = "127.0.0.1:1"
	rec := &recorder{header: make(http.Header)}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), rec, nil)

	// Under this key a refresh in the background flies.
	x := &exchange{fc: fc, r: r, origin: rfc9111.OriginHeader(r.Header)}
	x.key, _ = fc.appendKey(nil, r)
	flight := x.flightKey()
	got := new(answer)
	func() {
		defer func() {
			if p := recover(); p != nil {
				if p != http.ErrAbortHandler { //nolint:errorlint // a panic value
					panic(p)
				}
				got.aborted = true
			}
		}()
		got.err = fc.ServeHTTP(rec, r, o)
	}()
	close(o.answered)
	for fc.flights.Flying(flight) {
		time.Sleep(20 * time.Microsecond)
	}
	got.status, got.header, got.body = rec.status, rec.sent, rec.body.Bytes()
	if got.status != 0 && got.err != nil {
		got.err, got.aborted = nil, true // Caddy has no other way to tell
	}
	if n := got.header.Get("Content-Length"); n != "" && a.method != http.MethodHead && got.status != http.StatusNotModified && n != strconv.Itoa(len(got.body)) {
		got.aborted = true // and neither has net/http
	}
	return got
}

// recorder is the client.
type recorder struct {
	header http.Header
	sent   http.Header // as it was when the status went out
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *recorder) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// origin answers as the script says, any number of times.
type origin struct {
	clock *labClock
	m     *model
	ask   *ask
	reply *reply
	calls []*call // a refresh in the background has ended when they are read

	answered chan struct{} // closed when the client has its answer
}

// ServeHTTP implements caddyhttp.Handler.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	if _, background := w.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(*discardWriter); background {
		<-o.answered // a step at a time, so that scripts repeat
	}
	o.m.responses++
	reply := *o.reply
	c := &call{method: r.Method, header: r.Header.Clone(), id: o.m.responses, sent: o.clock.time(), reply: &reply}
	o.calls = append(o.calls, c)
	o.clock.add(reply.delay)
	c.got = o.clock.time()
	switch reply.fail {
	case failError:
		return caddyhttp.Error(http.StatusBadGateway, errors.New("no answer"))
	case failPanic:
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	for name, lines := range reply.header(c.got, r.RequestURI) {
		h[name] = lines
	}
	h["X-Resp"] = []string{strconv.Itoa(c.id)}
	status := reply.status
	conditional := r.Header["If-None-Match"] != nil || r.Header["If-Modified-Since"] != nil
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(reply.confused && conditional || status == http.StatusOK && reply.honours && notModified(r.Header, &reply)) {
		c.notModified = true
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(status)
		return nil
	}
	body := []byte(strings.Repeat(fmt.Sprintf("body of %d. ", c.id), 3))
	if status == http.StatusNoContent {
		body = nil
	}
	if status == http.StatusOK && reply.ranges && r.Header.Get("Range") == "bytes=0-3" && r.Header.Get("If-Range") == "" {
		status = http.StatusPartialContent
		h["Content-Range"] = []string{fmt.Sprintf("bytes 0-3/%d", len(body))}
		body = body[:4]
	}
	reply.status = status
	h["X-Body"] = []string{strconv.Itoa(c.id)}
	if (reply.length || reply.fail == failShort) && status != http.StatusNoContent {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	asked := *o.ask
	asked.method, asked.ranges = r.Method, r.Header.Get("Range") // a refresh asks for the whole
	c.record = &record{
		id: c.id, last: c.id, ask: asked, reply: reply, cc: reply.fields(), body: body, sent: c.sent, got: c.got,
		whole: reply.fail == failNone || body == nil, dead: make(map[target]bool),
	}
	o.m.records = append(o.m.records, c.record)
	w.WriteHeader(status)
	if status == http.StatusNoContent {
		return nil
	}
	if reply.fail != failNone {
		c.record.body = body[:len(body)/2]
	}
	if _, err := w.Write(c.record.body); err != nil {
		return err
	}
	switch reply.fail {
	case failMidError:
		return errors.New("lost in the middle")
	case failMidPanic:
		panic(http.ErrAbortHandler)
	}
	return nil
}

// notModified evaluates the conditions that have come to the origin.
func notModified(h http.Header, r *reply) bool {
	if lines := h["If-None-Match"]; lines != nil {
		for tag := range strings.SplitSeq(strings.Join(lines, ", "), ", ") {
			if tag == "*" || r.etag != "" && opaque(tag) == opaque(r.etag) {
				return true
			}
		}
		return false
	}
	since := h.Get("If-Modified-Since")
	for n := 1; n <= 3; n++ {
		if since == modified(n) {
			return r.mod > 0 && r.mod <= n
		}
	}
	return false
}
