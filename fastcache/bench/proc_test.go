package main

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func TestParseProcessStat(t *testing.T) {
	// The name of a program may look like fields.
	line := "4711 (a) S 1 (b c) R 42 4711 4711 0 -1 4194560 1000 2000 0 0 123 45 6000 7000 20 0 9 0 99 1 2 3"
	got, err := parseProcessStat(line)
	if err != nil {
		t.Fatal(err)
	}
	// Times of children that have ended, 6000 and 7000, are not the process's.
	if want := (processStat{pid: 4711, parent: 42, cpu: 1680 * time.Millisecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 2 3", "x (x) S 42 1 1 0 -1 1 1 2 0 0 123 45 6 7", "1 (x) S 42 1 1 0 -1 1 1 2 0 0 12x 45 6 7"} {
		if got, err := parseProcessStat(bad); err == nil {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
}

func TestTreeCPU(t *testing.T) {
	all := []processStat{
		{pid: 30, parent: 20, cpu: 100},
		{pid: 10, parent: 1, cpu: 1},
		{pid: 20, parent: 10, cpu: 10},
		{pid: 21, parent: 10, cpu: 1000},
		{pid: 11, parent: 1, cpu: 5000}, // a sibling
		{pid: 1, parent: 0, cpu: 7000},  // the parent
	}
	if got := treeCPU(10, all); got != 1111 {
		t.Errorf("got %d, want 1111", got)
	}
	if got := treeCPU(99, all); got != 0 {
		t.Errorf("a process that is not there: got %d", got)
	}
}

// The kernel agrees with the parsers: this test is a process that has worked.
func TestProcesses_Own(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc is Linux's")
	}
	busyBefore, err := machineBusy()
	if err != nil {
		t.Fatal(err)
	}
	own := func() time.Duration {
		all, err := processes()
		if err != nil {
			t.Fatal(err)
		}
		return treeCPU(os.Getpid(), all)
	}
	before := own()
	for deadline := time.Now().Add(10 * time.Second); own() < before+2*tick; { // reading /proc is the work
		if time.Now().After(deadline) {
			t.Fatal("the kernel has not counted any processor time in 10 s of work")
		}
	}
	busyAfter, err := machineBusy()
	if err != nil {
		t.Fatal(err)
	}
	if busyAfter <= busyBefore {
		t.Errorf("the machine was busy for %v before and %v after", busyBefore, busyAfter)
	}
}

func TestParseBusy(t *testing.T) {
	got, err := parseBusy("cpu  100 20 3 40000 5000 6 7 8 90000 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if want := 144 * tick; err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7 8 9", "cpu 1 2 3", "cpu 1 2 x 4 5 6 7 8 9 0"} {
		if got, err := parseBusy(bad); err == nil {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}
