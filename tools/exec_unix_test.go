//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The child of a child must not outlive an interruption.
func TestProgram_Run_KillsGrandchildren(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no named pipes: ", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid := make(chan int, 1)
	go func() {
		defer cancel()
		f, err := os.Open(fifo)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		line, err := bufio.NewReader(f).ReadString('\n')
		if err != nil {
			t.Error(err)
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Error(err)
		}
		pid <- n
	}()
	// The grandchild ignores the interruption, as a background job of a shell does.
	p := program{dir: dir, args: []string{"sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $! >pid; wait"}}
	if _, err := p.runCombined(ctx); err == nil {
		t.Error("no error from an interrupted program")
	}
	n := <-pid
	// Killed, but perhaps not yet reaped by its new parent: a zombie still answers signal 0.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) || isZombie(n) {
			return
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(n, syscall.SIGKILL)
			t.Fatalf("process %d still runs", n)
		}
	}
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
