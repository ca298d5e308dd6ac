// Package capture is the response writer that stands between the origin's
// handler and the client while a response may be stored.
//
// A [Writer] keeps the origin's header fields to itself until the final status
// is known. Then its owner decides once what the client gets and where a copy
// of the body goes ([Plan]), and the body streams to both: nothing is held back
// from the client, and nothing of a swallowed or failed response leaks into the
// client's. Interim responses (1xx) and Flush pass through at once.
//
// The writer never judges: whether what it captured is whole ([Writer.Whole])
// and may be kept is for the owner to ask when the handler has returned.
package capture

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// copyBufferSize is what one Read of a body asks for when it is teed; the same
// size as io.Copy's.
const copyBufferSize = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBufferSize]byte) }}

// ErrClientGone wraps the error of a write to the client.
var ErrClientGone = errors.New("client gone")

// Plan is what becomes of a response.
type Plan struct {
	// Sink gets a copy of the body; nil when it is not stored.
	Sink io.Writer

	// Swallow keeps the whole response from the client: its owner answers.
	Swallow bool
}

// Decide is called once, before the final header goes out, with the status and
// the header fields that the client is about to get. It may edit them. For
// what is to be stored it must take copies: later handlers own the values.
type Decide func(status int, h http.Header) Plan

// Writer is an http.ResponseWriter. Use it from one goroutine at a time, as any
// other; make it with [New].
type Writer struct {
	rw      http.ResponseWriter
	decide  Decide
	interim bool // the client knows interim responses

	// KeepFilling says whether to go on capturing when the client cannot be
	// written to any more. nil means no.
	KeepFilling func() bool

	outer  http.Header // what stood in the client's header before the handler ran
	header http.Header // what the handler writes to

	plan     Plan
	status   int // final status as the handler wrote it; 0 before
	declared atomic.Int64
	captured atomic.Int64
	sinkErr  error
	goneErr  error
	hijacked bool
}

// New returns a Writer in front of rw, which answers r. Fields that already stand
// in rw's header are visible to the handler, as they would be without the Writer.
func New(rw http.ResponseWriter, r *http.Request, decide Decide) *Writer {
	outer := rw.Header().Clone()
	if outer == nil {
		outer = make(http.Header)
	}
	w := &Writer{rw: rw, decide: decide, interim: r.ProtoAtLeast(1, 1), outer: outer, header: outer.Clone()}
	w.declared.Store(-1)
	return w
}

// Header returns the header map that the handler fills.
func (w *Writer) Header() http.Header { return w.header }

// AppendedField is the name, which no field can have, under which [Writer.Added]
// lists fields.
const AppendedField = ":appended"

// Added returns what the handler has put into h: the lines that the server and the
// handlers in front had put there before are left out, since they will put them, or
// others, there again. The names of the fields that had such lines in front of the
// handler's own are under [AppendedField]. The values are shared with h.
func (w *Writer) Added(h http.Header) http.Header {
	added := make(http.Header, len(h))
	var appended []string
	for k, v := range h {
		before := w.outer[k]
		switch n := len(before); {
		case n == 0 || len(v) < n || !slices.Equal(before, v[:n]):
			added[k] = v // all of it the handler's
		case len(v) > n:
			added[k] = v[n:]
			appended = append(appended, k)
		}
	}
	if appended != nil {
		slices.Sort(appended)
		added[AppendedField] = appended
	}
	return added
}

// Front returns the lines of a field that stood in the header before the handler.
func (w *Writer) Front(name string) []string { return w.outer[name] }

// WriteHeader passes interim responses on and decides on the final one.
func (w *Writer) WriteHeader(status int) {
	if w.status != 0 || w.hijacked {
		return
	}
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		if w.interim {
			w.sendInterim(status)
		}
		return
	}
	w.status = status
	hasBody := status != http.StatusNoContent && status != http.StatusNotModified
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); hasBody && err == nil && n >= 0 {
		w.declared.Store(n)
	}
	w.plan = w.decide(status, w.header)
	if w.plan.Swallow {
		return
	}
	replaceHeader(w.rw.Header(), w.header)
	w.rw.WriteHeader(status)
}

// sendInterim sends a 1xx response with the fields of the moment and takes them
// back, so that they do not become part of the final one. A client of HTTP/1.0
// must not get any: it would take it for the answer (RFC 9110 section 15.2).
func (w *Writer) sendInterim(status int) {
	h := w.rw.Header()
	saved := maps.Clone(h)
	replaceHeader(h, w.header)
	w.rw.WriteHeader(status)
	replaceHeader(h, saved)
}

// Write sends p to the client and to the sink. A failing sink is dropped and
// the client's stream goes on; a failing client ends the capture unless
// KeepFilling wants the rest.
func (w *Writer) Write(p []byte) (int, error) {
	if w.hijacked {
		return 0, http.ErrHijacked
	}
	w.WriteHeader(http.StatusOK)
	if w.toClient() {
		if _, err := w.rw.Write(p); err != nil {
			if errors.Is(err, http.ErrBodyNotAllowed) || errors.Is(err, http.ErrContentLength) {
				return 0, err // the handler's fault, not the client's
			}
			w.goneErr = err
			if !w.filling() {
				return 0, errors.Join(ErrClientGone, err)
			}
		}
	} else if w.goneErr != nil && !w.filling() {
		return 0, errors.Join(ErrClientGone, w.goneErr)
	}
	w.sink(p)
	return len(p), nil
}

// ReadFrom copies src as Write would. With nothing to capture it hands src to
// the client's writer, which may have a faster way.
func (w *Writer) ReadFrom(src io.Reader) (int64, error) {
	if w.hijacked {
		return 0, http.ErrHijacked
	}
	w.WriteHeader(http.StatusOK)
	if w.plan.Sink == nil && w.toClient() {
		if rf, ok := w.rw.(io.ReaderFrom); ok {
			n, err := rf.ReadFrom(src)
			w.captured.Add(n)
			return n, err
		}
	}
	buf := copyBuffers.Get().(*[copyBufferSize]byte)
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(writerOnly{w}, src, buf[:])
}

// FlushError sends what is buffered to the client, the header included.
func (w *Writer) FlushError() error {
	if w.hijacked {
		return http.ErrHijacked
	}
	w.WriteHeader(http.StatusOK)
	if !w.toClient() {
		return nil
	}
	return http.NewResponseController(w.rw).Flush()
}

// Hijack hands the connection over and ends the capture: nothing of it is whole.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.status == 0 {
		replaceHeader(w.rw.Header(), w.header)
	}
	conn, buf, err := http.NewResponseController(w.rw).Hijack()
	if err == nil {
		w.hijacked = true
		w.plan.Sink = nil
	}
	return conn, buf, err
}

// Unwrap lets http.ResponseController reach the deadlines of the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.rw }

// Push passes HTTP/2 server push on.
func (w *Writer) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.rw.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// Finish completes a response whose handler returned without an error: a handler
// that wrote nothing has answered 200, and trailers reach the client.
func (w *Writer) Finish() {
	if w.hijacked {
		return
	}
	w.WriteHeader(http.StatusOK)
	if w.plan.Swallow {
		return
	}
	dst := w.rw.Header()
	for _, names := range w.header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if v, ok := w.header[name]; ok {
				dst[name] = v
			}
		}
	}
	for k, v := range w.header {
		if strings.HasPrefix(k, http.TrailerPrefix) {
			dst[k] = v
		}
	}
}

// Status is the final status that the handler wrote, 0 when it wrote none.
func (w *Writer) Status() int { return w.status }

// Captured counts the bytes of body that the handler has written so far. It may
// be called from any goroutine.
func (w *Writer) Captured() int64 { return w.captured.Load() }

// Declared is the Content-Length of the response, -1 when it has none or has not
// come yet. It may be called from any goroutine.
func (w *Writer) Declared() int64 { return w.declared.Load() }

// Whole reports whether the sink has the complete body: all that was declared,
// with no error on the way. It is meaningful once the handler has returned.
func (w *Writer) Whole() bool {
	return w.plan.Sink != nil && w.sinkErr == nil && !w.hijacked &&
		(w.Declared() < 0 || w.Declared() == w.Captured())
}

// SinkErr is the error that made the sink be dropped.
func (w *Writer) SinkErr() error { return w.sinkErr }

// ClientErr is the first error of writing to the client.
func (w *Writer) ClientErr() error { return w.goneErr }

// Sent reports whether the client has been sent a final header or has taken the
// connection over: from then on nobody else can answer it.
func (w *Writer) Sent() bool { return w.hijacked || w.status != 0 && !w.plan.Swallow }

func (w *Writer) toClient() bool {
	return !w.plan.Swallow && w.goneErr == nil
}

func (w *Writer) filling() bool {
	return w.plan.Sink != nil && w.KeepFilling != nil && w.KeepFilling()
}

func (w *Writer) sink(p []byte) {
	w.captured.Add(int64(len(p)))
	if w.plan.Sink == nil {
		return
	}
	if _, err := w.plan.Sink.Write(p); err != nil {
		w.sinkErr = err
		w.plan.Sink = nil
	}
}

// replaceHeader makes dst hold exactly the fields of src, sharing their values.
func replaceHeader(dst, src http.Header) {
	clear(dst)
	maps.Copy(dst, src)
}

// writerOnly hides ReadFrom from io.CopyBuffer.
type writerOnly struct{ io.Writer }

// Interface guards
var (
	_ http.ResponseWriter             = (*Writer)(nil)
	_ io.ReaderFrom                   = (*Writer)(nil)
	_ http.Hijacker                   = (*Writer)(nil)
	_ http.Pusher                     = (*Writer)(nil)
	_ interface{ FlushError() error } = (*Writer)(nil)
)
