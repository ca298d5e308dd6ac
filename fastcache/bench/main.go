// Command bench measures fastcache against nginx, Varnish, Caddy's file_server and
// bare net/http on this machine, and holds the figures against the project's goals.
//
//	make bench-http                      everything, five rounds
//	make bench-http ROUNDS=1 SECONDS=2   a quick look
//	make bench-http ARGS='-sizes 4096 -conns 64 -servers "nginx|RAM only"'
//
// It needs Linux. nginx, Varnish, wrk and h2load are found on PATH, or fetched as
// Debian packages into a folder. All servers listen on loopback, on free ports, and
// end with the run, also on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	// The second signal kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Stdout, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds, seconds int
	sizes, conns    []int
	servers         *regexp.Regexp
	tools, out      string
	caddy           string
	miss, h2, alloc bool
	serveBare       string
}

func parseFlags(stdout io.Writer, args []string) (options, error) {
	o := options{sizes: allSizes, conns: allConns, servers: regexp.MustCompile("")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stdout)
	flags.IntVar(&o.rounds, "rounds", 5, "how often everything is measured; verdicts want at least 5")
	flags.IntVar(&o.seconds, "seconds", 2, "length of a leg")
	flags.Func("sizes", "body sizes in `bytes`, with commas (default 512 B to 3 MiB)", numbers(&o.sizes))
	flags.Func("conns", "numbers of connections of the hit path (default 64,256)", numbers(&o.conns))
	flags.Func("servers", "measure only the servers whose name matches this `pattern`", func(s string) (err error) {
		o.servers, err = regexp.Compile(s)
		return err
	})
	flags.StringVar(&o.tools, "tools", "", "`folder` for fetched programs (default: .cache/bench/tools of the repository)")
	flags.StringVar(&o.out, "out", "", "`folder` for the results (default: .cache/bench/results of the repository)")
	flags.StringVar(&o.caddy, "caddy", "", "the Caddy to measure (default: built from the source)")
	flags.BoolVar(&o.miss, "miss", true, "measure the miss path")
	flags.BoolVar(&o.h2, "h2", true, "measure HTTP/2 over TLS, if h2load is there")
	flags.BoolVar(&o.alloc, "allocs", true, "run the Go benchmark of a hit, for its allocations")
	flags.StringVar(&o.serveBare, "serve-bare", "", "be the bare net/http server at this `address`; the bench starts itself so")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; see -help", flags.Arg(0))
	case o.rounds < 1 || o.seconds < 1:
		return o, errors.New("-rounds and -seconds are at least 1")
	}
	return o, nil
}

// numbers parses a list of positive numbers.
func numbers(to *[]int) func(string) error {
	return func(s string) error {
		*to = nil
		for field := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(field))
			if err != nil || n < 1 {
				return fmt.Errorf("%q is not a positive number", field)
			}
			*to = append(*to, n)
		}
		return nil
	}
}
