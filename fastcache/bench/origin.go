package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// bodies has one body for each size: random letters and digits, so that a wrong offset
// is seen and that they can stand in a configuration; the same ones in every run.
type bodies map[int][]byte

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func newBodies(sizes []int) bodies {
	all := make(bodies)
	for _, size := range sizes {
		body := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24)}).Read(body)
		for i, b := range body {
			body[i] = letters[b%byte(len(letters))]
		}
		all[size] = body
	}
	return all
}

// urlPath is where every server has the body of a size.
func urlPath(size int) string { return "/b/" + strconv.Itoa(size) }

// writeFiles writes the bodies where a static file server finds them.
func (b bodies) writeFiles(root string) error {
	dir := filepath.Join(root, "b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for size, body := range b {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(size)), body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// handler answers with the body that the path names, whatever the query is, in one
// Write, and with the header fields that a static site would send.
func (b bodies) handler() http.Handler {
	modified := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := strings.CutPrefix(r.URL.Path, "/b/")
		size, err := strconv.Atoi(name)
		body, ok := b[size]
		if err != nil || !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Length", name)
		h.Set("Cache-Control", "public, max-age=86400")
		h.Set("Etag", `"`+name+`"`)
		h.Set("Last-Modified", modified)
		_, _ = w.Write(body) // the client may have left
	})
}

// origin is the server behind the caches. It runs in the bench's own process and
// counts what it is asked, so that a leg that did not measure hits is seen.
type origin struct {
	addr  string
	asked atomic.Int64
	close func()
}

func startOrigin(b bodies) (*origin, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := &origin{addr: l.Addr().String()}
	handler := b.handler()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o.asked.Add(1)
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: time.Minute,
	}
	o.close = func() { _ = server.Close() }
	go func() { _ = server.Serve(l) }() // ends with close
	return o, nil
}

// serveBare is the contender "bare net/http": this program as a server of its own,
// for the bodies and nothing else.
func serveBare(ctx context.Context, addr string, sizes []int) error {
	if host, _, err := net.SplitHostPort(addr); err != nil || host != "127.0.0.1" {
		return fmt.Errorf("%q is not a port of 127.0.0.1", addr)
	}
	server := &http.Server{Addr: addr, Handler: newBodies(sizes).handler(), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}
