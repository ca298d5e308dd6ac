package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/hotset-go/hotset/compare/pool"
)

// childLimit bounds one process; it needs well under a second.
const childLimit = time.Minute

// peaks measures each pool under each load, in that many processes of its own. The processes of one load go round all pools
// before the next round begins.
func peaks(ctx context.Context, pools []pool.SlicePool, processes int, progress func(string)) ([]pool.PeakRow, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var rows []pool.PeakRow
	for _, load := range pool.PeakLoads() {
		progress(fmt.Sprintf("memory, %s: %d processes a pool", load, processes))
		first := len(rows)
		for _, sp := range pools {
			rows = append(rows, pool.PeakRow{Pool: sp.Name, Load: load})
		}
		for range processes {
			for i := first; i < len(rows); i++ {
				sample, err := peakProcess(ctx, self, rows[i].Pool, load)
				if err != nil {
					return nil, fmt.Errorf("memory of %s: %w", rows[i].Pool, err)
				}
				rows[i].Samples = append(rows[i].Samples, sample)
			}
		}
	}
	return rows, nil
}

func peakProcess(ctx context.Context, self, name string, load pool.PeakLoad) (pool.PeakSample, error) {
	ctx, cancel := context.WithTimeout(ctx, childLimit)
	defer cancel()
	var sample pool.PeakSample
	cmd := exec.CommandContext(ctx, self, "-child", fmt.Sprintf("%s:%d:%d", name, load.Size, load.Count))
	out, err := cmd.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return sample, fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return sample, err
	}
	return sample, json.Unmarshal(out, &sample)
}

// peakChild is what runs in such a process.
func peakChild(stdout io.Writer, what string) error {
	fields := strings.Split(what, ":")
	if len(fields) != 3 {
		return fmt.Errorf("-child %q: want NAME:SIZE:COUNT", what)
	}
	size, err := strconv.Atoi(fields[1])
	if err != nil {
		return fmt.Errorf("-child: size: %w", err)
	}
	count, err := strconv.Atoi(fields[2])
	if err != nil {
		return fmt.Errorf("-child: count: %w", err)
	}
	for _, sp := range pool.SlicePools() {
		if sp.Name == fields[0] {
			return json.NewEncoder(stdout).Encode(pool.Peak(sp, pool.PeakLoad{Size: size, Count: count}))
		}
	}
	return fmt.Errorf("-child: no pool is called %q", fields[0])
}
