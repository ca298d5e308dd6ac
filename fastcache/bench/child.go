package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout bounds the wait until a server listens. Varnish compiles its
	// configuration with the C compiler first.
	startTimeout = 30 * time.Second
	// stopTimeout is how long a process may take to end by itself.
	stopTimeout = 5 * time.Second
	// outputKept is how much of a server's output is kept for error messages.
	outputKept = 64 << 10
)

// child is a server that runs until its context ends or it is stopped.
type child struct {
	title  string
	pid    int
	out    output
	cancel context.CancelFunc
	ended  chan struct{} // closed when it has
}

// startChild starts a server. SIGTERM reaches the process that was started, by its
// pid; nginx and varnishd end their workers themselves.
func startChild(ctx context.Context, name, dir string, env []string, path string, args ...string) (*child, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	c := &child{title: name, cancel: cancel, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &c.out, &c.out
	endGently(cmd)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c.pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait() // how it ended is of no interest; that it did too early, is
		close(c.ended)
	}()
	return c, nil
}

// endGently makes the end of cmd's context a SIGTERM first, so that a process can
// end what it has started itself.
func endGently(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
}

// stop ends the server and waits until it has ended.
func (c *child) stop() {
	c.cancel()
	<-c.ended
}

// awaitListening waits until the server accepts connections at addr.
func (c *child) awaitListening(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var dialer net.Dialer
	for {
		if conn, err := dialer.DialContext(ctx, "tcp", addr); err == nil {
			return conn.Close()
		}
		select {
		case <-c.ended:
			return fmt.Errorf("%s ended before it listened:\n%s", c.title, &c.out)
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w\n%s", c.title, ctx.Err(), &c.out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// alive reports a server that has ended on its own.
func (c *child) alive() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended during the run:\n%s", c.title, &c.out)
	default:
		return nil
	}
}

// runCommand runs a command to its end, within limit, and returns what it printed
// on both streams, and the processor time that it took.
func runCommand(ctx context.Context, limit time.Duration, env []string, path string, args ...string) (string, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	endGently(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), 0, fmt.Errorf("%s %s: %w\n%s", filepath.Base(path), strings.Join(args, " "), errors.Join(err, ctx.Err()), out)
	}
	return string(out), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// freePort asks the kernel for a loopback port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// output keeps the beginning of what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := outputKept - o.buf.Len(); room > 0 {
		o.buf.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
