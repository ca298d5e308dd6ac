// Proxy shows what a pool of copy buffers saves in a reverse proxy. It starts an
// origin and two proxies in front of it, one without and one with a pool, sends the same
// requests through both, and prints what was allocated for each request:
//
//	go run ./examples/proxy
//
// With -listen it keeps the proxy with the pool running in front of -origin
// instead:
//
//	go run ./examples/proxy -listen :8080 -origin http://localhost:9000
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"

	"github.com/hotset-go/hotset/bytebufferpool"
)

const (
	bufferSize = 32 << 10 // what ReverseProxy allocates without a pool
	answerSize = 100 << 10
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("proxy", flag.ContinueOnError)
	requests := flags.Int("requests", 2000, "`number` of requests to measure")
	listen := flags.String("listen", "", "serve at this `address` instead of measuring")
	origin := flags.String("origin", "", "`URL` of the site behind the proxy, with -listen")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config := bytebufferpool.DefaultConfig(bytebufferpool.Bounded)
	config.MaxRetainedCapacity = 4 << 20 // 128 idle copy buffers
	pool, err := bytebufferpool.New(config)
	if err != nil {
		return err
	}
	if *listen != "" {
		proxy, err := newProxy(*origin, pool.ProxyBuffers(bufferSize))
		if err != nil {
			return err
		}
		return http.ListenAndServe(*listen, proxy)
	}
	if *requests < 1 {
		return errors.New("-requests must be at least 1")
	}
	before, err := measure(nil, *requests)
	if err != nil {
		return err
	}
	after, err := measure(pool.ProxyBuffers(bufferSize), *requests)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "allocated for a request, origin, proxy and client together (%d requests of %d KiB):\n", *requests, answerSize>>10)
	fmt.Fprintf(out, "without a pool: %6d bytes in %d objects\n", before.bytes, before.objects)
	fmt.Fprintf(out, "with a pool:    %6d bytes in %d objects\n", after.bytes, after.objects)
	fmt.Fprintf(out, "retained by the pool: %d bytes\n", pool.Stats().RetainedCapacity)
	return nil
}

func newProxy(origin string, buffers httputil.BufferPool) (*httputil.ReverseProxy, error) {
	target, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.BufferPool = buffers
	return proxy, nil
}

// usage is what one request allocates.
type usage struct{ bytes, objects uint64 }

// measure sends requests through a proxy with these buffers.
func measure(buffers httputil.BufferPool, requests int) (usage, error) {
	answer := make([]byte, answerSize)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))
	defer origin.Close()
	proxy, err := newProxy(origin.URL, buffers)
	if err != nil {
		return usage{}, err
	}
	front := httptest.NewServer(proxy)
	defer front.Close()

	get := func() error {
		response, err := front.Client().Get(front.URL)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		n, err := io.Copy(io.Discard, response.Body)
		if err == nil && n != answerSize {
			err = fmt.Errorf("an answer of %d bytes", n)
		}
		return err
	}
	for i := 0; i < 10; i++ { // connections and pools get warm
		if err := get(); err != nil {
			return usage{}, err
		}
	}
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	for i := 0; i < requests; i++ {
		if err := get(); err != nil {
			return usage{}, err
		}
	}
	runtime.ReadMemStats(&to)
	n := uint64(requests)
	return usage{(to.TotalAlloc - from.TotalAlloc) / n, (to.Mallocs - from.Mallocs) / n}, nil
}
