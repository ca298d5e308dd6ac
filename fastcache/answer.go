package fastcache

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/hotset-go/hotset/fastcache/internal/capture"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// serveStored answers the request with a stored response: whole, a part, or 304
// for the client's condition. It reports false, with nothing sent, when the body
// turns out to be damaged or gone: the caller has to ask the origin.
func (x *exchange) serveStored(entry *store.Entry, stored *store.Response, status rfc9111.CacheStatus) (served bool) {
	status.TTL, status.HasTTL = x.fc.ttl(stored), true
	if x.soft {
		status.TTL = min(status.TTL, 0)
	}
	h := x.w.Header()
	notModified := rfc9111.NotModified(x.r.Header, stored.Status, stored.Header)
	if notModified || x.r.Method == http.MethodHead || !hasBody(stored.Status) {
		x.dropLast(entry)
		x.setStored(h, stored, status)
		if notModified {
			toNotModified(h)
			x.w.WriteHeader(http.StatusNotModified)
			return true
		}
		if hasBody(stored.Status) {
			h.Set("Content-Length", strconv.FormatInt(entry.Size(), 10))
		}
		x.w.WriteHeader(stored.Status)
		return true
	}

	body, err := entry.Open()
	if err != nil {
		return false
	}
	defer body.Close()
	x.dropLast(entry)
	x.setStored(h, stored, status)
	size := entry.Size()

	ranges, result := []rfc9111.Range(nil), rfc9111.RangeNone
	if stored.Status == http.StatusOK && has(x.r.Header, "Range") && rfc9111.IfRange(x.r.Header, stored.Header) {
		ranges, result = rfc9111.ParseRange(x.r.Header["Range"], size)
	}
	switch {
	case result == rfc9111.RangeNotSatisfiable:
		toRangeError(h, size)
		x.w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return true

	case result == rfc9111.RangeSatisfiable && len(ranges) > 1:
		x.sendParts(body, size, ranges)
		return true

	case result == rfc9111.RangeSatisfiable:
		r := ranges[0]
		h.Set("Content-Range", contentRange(r, size))
		h.Set("Content-Length", strconv.FormatInt(r.Length, 10))
		x.w.WriteHeader(http.StatusPartialContent)
		x.send(body, r.Start, r.Length)
		return true
	}
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	x.w.WriteHeader(stored.Status)
	x.send(body, 0, size)
	return true
}

// dropLast takes a response that is good for this request only out of the store,
// before the client, who may be slow or leave, gets any of it.
func (x *exchange) dropLast(entry *store.Entry) {
	if x.last {
		x.fc.store.Remove(entry, store.Replaced)
	}
}

// setStored puts the stored header fields into the client's. The values are
// copied: a handler in front may rewrite them in place (Caddy's header directive
// does), and what is stored belongs to every request.
func (x *exchange) setStored(h http.Header, stored *store.Response, status rfc9111.CacheStatus) {
	n := 0
	for _, values := range stored.Header {
		n += len(values)
	}
	copies := make([]string, 0, n)
	appended := stored.Header[capture.AppendedField]
	for name, values := range stored.Header {
		if name == rfc9111.TargetedField || name == capture.AppendedField {
			continue
		}
		from := len(copies)
		copies = append(copies, values...)
		own := copies[from:len(copies):len(copies)]
		if len(appended) > 0 && slices.Contains(appended, name) {
			own = append(h[name][:len(h[name]):len(h[name])], own...)
		}
		h[name] = own
	}
	h["Age"] = []string{strconv.FormatInt(int64(x.fc.age(stored)/time.Second), 10)}
	x.addStatus(h, status)
}

// age is a stored response's current age in whole seconds (RFC 9111 section
// 4.2.3).
func (fc *FastCache) age(stored *store.Response) time.Duration {
	return max(0, fc.now().Sub(stored.Born)).Truncate(time.Second)
}

// ttl is what Cache-Status tells of a response's freshness: with Age it adds up
// to its lifetime.
func (fc *FastCache) ttl(stored *store.Response) time.Duration {
	return stored.Lifetime - fc.age(stored)
}

// addStatus tells what became of the request, as the answer's header is about to
// go out: the client, in Cache-Status, the metrics and the access log.
func (x *exchange) addStatus(h http.Header, status rfc9111.CacheStatus) {
	x.fc.answered(&x.seen, resultOf(status), h, x.key, status)
}

// answered is addStatus for any request, whatever the cache's part in it is.
func (fc *FastCache) answered(seen *observation, res result, h http.Header, key []byte, status rfc9111.CacheStatus) {
	seen.answered(res, status)
	fc.addStatus(h, key, status)
}

// addStatus appends what this cache did to Cache-Status (RFC 9211), behind what
// caches nearer to the origin have said.
func (fc *FastCache) addStatus(h http.Header, key []byte, status rfc9111.CacheStatus) {
	if fc.CacheStatusKey {
		status.Key = string(key)
	}
	var buf [128]byte
	h["Cache-Status"] = append(h["Cache-Status"], string(status.Append(buf[:0])))
}

// hasBody reports whether a response with this status has a body (RFC 9110
// section 6.4.1).
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// toNotModified leaves the fields that a 304 has (RFC 9110 section 15.4.5).
func toNotModified(h http.Header) {
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Range", "Trailer"} {
		delete(h, name)
	}
	if has(h, "Etag") {
		delete(h, "Last-Modified")
	}
}

// toRangeError leaves the fields that a 416 has: those that describe the body
// are not about this empty one (RFC 9110 section 15.5.17).
func toRangeError(h http.Header, size int64) {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Etag", "Last-Modified", "Cache-Control", "Expires"} {
		delete(h, name)
	}
	h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	h.Set("Content-Length", "0")
}

func contentRange(r rfc9111.Range, size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", r.Start, r.Start+r.Length-1, size)
}

// sendParts answers a request for several ranges (RFC 9110 section 14.6).
func (x *exchange) sendParts(body store.Body, size int64, ranges []rfc9111.Range) {
	h := x.w.Header()
	contentType := h.Get("Content-Type")
	length := countingWriter(0)
	parts := multipart.NewWriter(&length)
	for _, r := range ranges {
		_, _ = parts.CreatePart(partHeader(contentType, r, size))
		length += countingWriter(r.Length)
	}
	_ = parts.Close()

	boundary := parts.Boundary()
	h.Set("Content-Type", "multipart/byteranges; boundary="+boundary)
	h.Set("Content-Length", strconv.FormatInt(int64(length), 10))
	x.w.WriteHeader(http.StatusPartialContent)

	parts = multipart.NewWriter(x.w)
	abortOn(parts.SetBoundary(boundary))
	for _, r := range ranges {
		_, err := parts.CreatePart(partHeader(contentType, r, size))
		abortOn(err)
		x.send(body, r.Start, r.Length)
	}
	abortOn(parts.Close())
}

func partHeader(contentType string, r rfc9111.Range, size int64) textproto.MIMEHeader {
	h := textproto.MIMEHeader{"Content-Range": {contentRange(r, size)}}
	if contentType != "" {
		h["Content-Type"] = []string{contentType}
	}
	return h
}

type countingWriter int64

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}

// sendChunk is how much of a file one deadline covers. Caddy renews the write
// deadline for every chunk (write_idle, a minute by default), so a chunk is also
// the least that a slow client must take in that time: 256 KiB a minute is 4 KiB
// a second, and 1 MiB costs 4 system calls instead of 16.
const sendChunk = 256 << 10

// send writes n bytes of a body from offset on, behind a header that announced
// them. A body in RAM is one Write; a file goes through the writer's ReadFrom,
// which ends in sendfile on plain TCP.
func (x *exchange) send(body store.Body, offset, n int64) {
	if body.File == nil {
		_, err := x.w.Write(body.Bytes[offset : offset+n])
		abortOn(err)
		return
	}
	_, err := body.File.Seek(offset, io.SeekStart)
	abortOn(err)
	to, ok := x.w.(io.ReaderFrom)
	_, idle := caddyhttp.IdleTimeoutsFromContext(x.r.Context())
	if !ok || idle == nil {
		_, err := io.CopyN(x.w, body.File, n)
		abortOn(err)
		return
	}
	// Caddy's idle timeout hands the source down in chunks, each inside a
	// LimitedReader, and the kernel takes as much as that says without asking
	// the source. So the chunks must add up to n: whole ones first, then one
	// of the size of the rest.
	defer func(before int) { idle.MaxChunk = before }(idle.MaxChunk)
	if idle.MaxChunk == caddyhttp.DefaultMaxWriteChunk {
		idle.MaxChunk = sendChunk
	}
	rest := n % int64(idle.MaxChunk)
	src := &fileSource{file: body.File, end: offset + n - rest}
	if n > rest {
		_, err := to.ReadFrom(src)
		abortOn(err)
	}
	if rest > 0 {
		src.end += rest
		idle.MaxChunk = int(rest)
		_, err := to.ReadFrom(src)
		abortOn(err)
	}
	if left, err := src.left(); err != nil || left > 0 {
		abortOn(io.ErrUnexpectedEOF) // the file is shorter than it was
	}
}

// abortOn ends the client's connection, or its HTTP/2 stream, when the body
// cannot be sent as announced: the header is out, so there is no other way to
// tell the client that what it has is not all.
func abortOn(err error) {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// fileSource reads a file from its position up to end. It offers the file
// descriptor for sendfile as long as something is left.
type fileSource struct {
	file *os.File
	end  int64
}

func (s *fileSource) left() (int64, error) {
	at, err := s.file.Seek(0, io.SeekCurrent)
	return s.end - at, err
}

func (s *fileSource) Read(p []byte) (int, error) {
	left, err := s.left()
	if err != nil {
		return 0, err
	}
	if left <= 0 {
		return 0, io.EOF
	}
	return s.file.Read(p[:min(int64(len(p)), left)])
}

// SyscallConn implements syscall.Conn, by which package net recognises a file.
func (s *fileSource) SyscallConn() (syscall.RawConn, error) {
	left, err := s.left()
	if err != nil {
		return nil, err
	}
	if left <= 0 {
		return nil, io.EOF
	}
	return s.file.SyscallConn()
}

// discardWriter is the client of a refresh in the background.
type discardWriter struct{ header http.Header }

func newDiscardWriter() *discardWriter { return &discardWriter{header: make(http.Header)} }

func (w *discardWriter) Header() http.Header         { return w.header }
func (w *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *discardWriter) WriteHeader(int)             {}
func (w *discardWriter) FlushError() error           { return nil }
