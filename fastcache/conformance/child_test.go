package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for a server.
func TestMain(m *testing.M) {
	switch os.Getenv("CONFORMANCE_CHILD") {
	case "serve":
		fmt.Println("Listening on http://127.0.0.1:1/")
		time.Sleep(time.Minute)
	case "end":
		fmt.Println("no such port")
		os.Exit(3)
	case "panic":
		fmt.Println("listening, but panic: oh")
		time.Sleep(time.Minute)
	default:
		os.Exit(m.Run())
	}
}

func startSelf(t *testing.T, what string) *child {
	t.Helper()
	c, err := startChild(t.Context(), what, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), "CONFORMANCE_CHILD="+what)
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	return c
}

func TestChild(t *testing.T) {
	c := startSelf(t, "serve")
	if err := c.wait(t.Context(), func() bool { return listening.MatchString(c.out.String()) }); err != nil {
		t.Fatal(err)
	}
	if err := c.healthy(); err != nil {
		t.Error(err)
	}
	c.stop()
	if err := c.healthy(); err == nil {
		t.Error("a child that has ended counts as healthy")
	}
}

func TestChild_EndsTooEarly(t *testing.T) {
	c := startSelf(t, "end")
	err := c.wait(t.Context(), func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "no such port") {
		t.Errorf("%v, want what it printed", err)
	}
}

func TestChild_Panics(t *testing.T) {
	c := startSelf(t, "panic")
	if err := c.wait(t.Context(), func() bool { return c.out.String() != "" }); err != nil {
		t.Fatal(err)
	}
	if err := c.healthy(); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("%v, want the panic", err)
	}
}

func TestChild_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := startChild(ctx, "serve", func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), "CONFORMANCE_CHILD=serve")
		return cmd
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-c.ended
	if err := c.wait(ctx, func() bool { return false }); err == nil {
		t.Error("waiting goes on")
	}
	c.stop()
}
