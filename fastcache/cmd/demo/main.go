// Command demo shows fastcache at work: it starts a small web site and, in front
// of it, Caddy with fastcache, both on loopback addresses. The site's front page
// shows what the cache does with its URLs.
//
//	go run github.com/hotset-go/hotset/fastcache/cmd/demo@latest
//
// Nothing is left behind when it ends, except a directory given by -cache-dir.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/demo"
)

const (
	// readyTimeout bounds the wait for the first answer through the cache.
	readyTimeout = 15 * time.Second
	// stopTimeout bounds the wait for requests under way at the end: longer
	// than the slow page takes.
	stopTimeout = 3 * time.Second
)

func main() {
	// SIGHUP comes when the terminal closes, SIGPIPE when nobody reads what is
	// printed any more. The second signal kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	port        int
	cacheDir    string
	printConfig bool
	verbose     bool
}

func parseFlags(stdout io.Writer, args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stdout)
	flags.IntVar(&o.port, "port", 0, "port to listen on; 0 takes the first free one from 8080 to 8099, or any")
	flags.StringVar(&o.cacheDir, "cache-dir", "", "directory for the cache, kept at the end (default: a temporary one)")
	flags.BoolVar(&o.printConfig, "print-config", false, "print the Caddyfile that is used, and go on")
	flags.BoolVar(&o.verbose, "verbose", false, "show Caddy's log")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; see -help", flags.Arg(0))
	}
	return o, nil
}

// run serves the demo until ctx is done, and cleans up after itself.
func run(ctx context.Context, stdout io.Writer, args []string) (err error) {
	opts, err := parseFlags(stdout, args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "fastcache-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	origin, err := startOrigin()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, origin.stop()) }()

	site, err := newSite(opts, dir, origin.addr)
	if err != nil {
		return err
	}
	if err := startCaddy(site); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopCaddy()) }()

	if err := waitReady(ctx, site.url()); err != nil {
		return err
	}
	printWelcome(stdout, site, opts)

	select {
	case <-ctx.Done():
		fmt.Fprintln(stdout, "\nStopping.")
		return nil
	case err := <-origin.failed:
		return fmt.Errorf("the origin stopped: %w", err)
	}
}

// origin is the demo site on a port of its own.
type origin struct {
	addr   string
	server *http.Server
	failed chan error
}

func startOrigin() (*origin, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the origin: %w", err)
	}
	o := &origin{
		addr: listener.Addr().String(),
		server: &http.Server{
			Handler:           demo.New(),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      time.Minute,
			IdleTimeout:       2 * time.Minute,
		},
		failed: make(chan error, 1),
	}
	go func() {
		if err := o.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.failed <- err
		}
	}()
	return o, nil
}

func (o *origin) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := o.server.Shutdown(ctx); err != nil {
		return o.server.Close()
	}
	return nil
}

// The ports that are tried in turn when none is asked for.
const firstPort, lastPort = 8080, 8099

// choosePort finds a port that is free on the loopback address. Caddy would share
// a port that another Caddy listens on, so the check is made here.
func choosePort(asked int) (int, error) {
	if asked != 0 {
		port, err := tryPort(asked)
		if err != nil {
			return 0, fmt.Errorf("port %d cannot be used; leave -port out to have a free one chosen: %w", asked, err)
		}
		return port, nil
	}
	for port := firstPort; port <= lastPort; port++ {
		if port, err := tryPort(port); err == nil {
			return port, nil
		}
	}
	port, err := tryPort(0)
	if err != nil {
		return 0, fmt.Errorf("no free port: %w", err)
	}
	return port, nil
}

func tryPort(port int) (int, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// waitReady fetches the front page until it comes through the cache.
func waitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	for {
		err := fetchThroughCache(ctx, client, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the front page does not come through the cache: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func fetchThroughCache(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Cache-Status") == "" {
		return fmt.Errorf("GET %s: status %d, Cache-Status %q", url, response.StatusCode, response.Header.Get("Cache-Status"))
	}
	return nil
}

func printWelcome(w io.Writer, s site, opts options) {
	fmt.Fprintf(w, `
  A bakery behind fastcache:  %[1]s

  The front page shows what the cache does. Or try it in another terminal:

    # a miss, then a hit
    for i in 1 2; do curl -sD- -o /dev/null %[1]sloaves | grep -i cache-status; done

    # 16 bytes of a file of 5 MiB: ask for the whole once, then parts are hits
    curl -so /dev/null %[1]sfiles/catalogue.bin; curl -sD- -o /dev/null -r 1000-1015 %[1]sfiles/catalogue.bin

    # forget the page: the next request for it is a miss again
    curl -i -X PURGE %[1]sloaves

`, s.url())
	if opts.cacheDir != "" {
		fmt.Fprintf(w, "  The cache is in %s and stays there.\n", s.cacheDir)
	}
	if opts.printConfig {
		fmt.Fprintf(w, "  The Caddyfile:\n\n%s\n", s.caddyfile())
	} else {
		fmt.Fprintln(w, "  -print-config shows the Caddyfile, -help the other flags.")
	}
	fmt.Fprintln(w, "  Ctrl-C stops everything.")
}
