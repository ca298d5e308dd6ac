package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	// startTimeout bounds the wait until a server listens.
	startTimeout = 30 * time.Second
	// stopTimeout is how long a process may take to end by itself.
	stopTimeout = 5 * time.Second
	// outputKept is how much of a process's output is kept to show when
	// something goes wrong.
	outputKept = 64 << 10
)

// child is a server that runs for the time of a profile.
type child struct {
	name  string
	out   output
	stop  func()        // asks it to end, kills it after stopTimeout, waits
	ended chan struct{} // closed when it has
}

// startChild starts cmd. It ends with ctx, or by stop.
func startChild(ctx context.Context, name string, command func(context.Context) *exec.Cmd) (*child, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := command(ctx)
	c := &child{name: name, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &c.out, &c.out
	endGently(cmd)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is of no interest; that it did too early, is
		close(c.ended)
	}()
	c.stop = func() {
		cancel()
		<-c.ended
	}
	return c, nil
}

// endGently makes the end of cmd's context an interrupt first, which lets a
// process end what it has started itself.
func endGently(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
}

// wait calls ready until it returns true.
func (c *child) wait(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !ready() {
		select {
		case <-c.ended:
			return fmt.Errorf("%s ended before it listened:\n%s", c.name, &c.out)
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w\n%s", c.name, ctx.Err(), &c.out)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// healthy reports a server that has ended, or has printed what none should.
func (c *child) healthy() error {
	select {
	case <-c.ended:
		return fmt.Errorf("%s ended during the tests:\n%s", c.name, &c.out)
	default:
	}
	for _, bad := range []string{"panic", "DATA RACE", "fatal error:"} {
		if bytes.Contains([]byte(c.out.String()), []byte(bad)) {
			return fmt.Errorf("%s printed %q:\n%s", c.name, bad, &c.out)
		}
	}
	return nil
}

// runCommand runs a command to its end, within limit, and returns its standard
// output; its standard error is part of the error.
func runCommand(ctx context.Context, limit time.Duration, command func(context.Context) *exec.Cmd) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := command(ctx)
	var stdout bytes.Buffer
	var stderr output
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	endGently(cmd)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, errors.Join(err, ctx.Err()), &stderr)
	}
	return stdout.Bytes(), nil
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
