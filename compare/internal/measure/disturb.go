package measure

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// waited returns how long the threads of this process, taken together, have been ready to run while other processes had the CPU
// instead. It is 0 where the system does not tell (other than Linux), and only its growth means anything.
//
// It costs some tens of microseconds.
func waited() time.Duration {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, task := range tasks {
		// Three numbers: nanoseconds on a CPU, nanoseconds waiting for one, time slices.
		data, err := os.ReadFile("/proc/self/task/" + task.Name() + "/schedstat")
		if err != nil {
			continue // the thread has ended
		}
		if fields := bytes.Fields(data); len(fields) == 3 {
			if ns, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				sum += time.Duration(ns)
			}
		}
	}
	return sum
}
