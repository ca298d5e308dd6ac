package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc. The kernel counts in nanoseconds and
// shows hundredths of a second, on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// processStat is what /proc/PID/stat says of a process, of all its threads.
type processStat struct {
	pid, parent int
	cpu         time.Duration // user and system; not of children
}

// parseProcessStat reads a line of /proc/PID/stat (proc_pid_stat(5)). The name of the
// program, in parentheses, may hold spaces and parentheses.
func parseProcessStat(line string) (processStat, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return processStat{}, fmt.Errorf("%q is not a line of /proc/PID/stat", line)
	}
	f := strings.Fields(line[end+1:]) // f[0] is field 3 of the manual
	if len(f) < 13 {
		return processStat{}, fmt.Errorf("%q has too few fields", line)
	}
	var n [4]int64
	for i, field := range []string{strings.TrimSpace(line[:open]), f[1], f[11], f[12]} {
		var err error
		if n[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			return processStat{}, fmt.Errorf("%q: %w", line, err)
		}
	}
	return processStat{pid: int(n[0]), parent: int(n[1]), cpu: time.Duration(n[2]+n[3]) * tick}, nil
}

// treeCPU sums the processor time of a process and of all that descend from it and
// still run.
func treeCPU(pid int, all []processStat) time.Duration {
	children := make(map[int][]processStat)
	var sum time.Duration
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if p.pid == pid {
			sum += p.cpu
		}
	}
	for queue := children[pid]; len(queue) > 0; queue = queue[1:] {
		sum += queue[0].cpu
		queue = append(queue, children[queue[0].pid]...)
	}
	return sum
}

// processes reads /proc. Processes that end meanwhile are left out.
func processes() ([]processStat, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var all []processStat
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		p, err := parseProcessStat(string(line))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("/proc has no processes: the bench needs Linux")
	}
	return all, nil
}

// parseBusy reads the first line of /proc/stat: how long all processors together were
// not idle, and thus also what other virtual machines took (steal).
func parseBusy(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, fmt.Errorf("%q is not the first line of /proc/stat", line)
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user nice system irq softirq steal; not idle and iowait
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", line, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

func machineBusy() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(stat))
}
