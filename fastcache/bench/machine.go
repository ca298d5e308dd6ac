package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// machine is what a figure is worth nothing without.
type machine struct {
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	Memory   string   `json:"memory"`
	Kernel   string   `json:"kernel"`
	Versions []string `json:"versions"`
	Commit   string   `json:"commit"`
	Command  string   `json:"command"`
	Started  string   `json:"started"`
	Load     string   `json:"load_average_before"`
	Rounds   int      `json:"rounds"`
	Seconds  int      `json:"seconds"`
}

var processors = runtime.NumCPU()

func describeMachine(ctx context.Context, box *toolbox, module, command string) machine {
	m := machine{
		CPU:     procField("/proc/cpuinfo", "model name"),
		Cores:   processors,
		Memory:  procField("/proc/meminfo", "MemTotal"),
		Kernel:  firstLine("/proc/sys/kernel/osrelease"),
		Load:    firstLine("/proc/loadavg"),
		Command: command,
		Started: time.Now().UTC().Format(time.RFC3339),
	}
	out, _, _ := runCommand(ctx, startTimeout, []string{"GOWORK=off"}, "go", "list", "-C", module, "-m", "github.com/caddyserver/caddy/v2")
	m.Versions = []string{runtime.Version(), strings.TrimPrefix(strings.TrimSpace(out), "github.com/caddyserver/")}
	for _, t := range wanted {
		m.Versions = append(m.Versions, box.version(ctx, t.program))
	}
	// Without the lock that git would take to write its index.
	git := func(args ...string) string {
		out, _, err := runCommand(ctx, startTimeout, []string{"GIT_OPTIONAL_LOCKS=0"}, "git", append([]string{"-C", module}, args...)...)
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(out)
	}
	m.Commit = git("rev-parse", "HEAD")
	if changed := git("status", "--porcelain", "--untracked-files=no", "--", "."); changed != "" {
		m.Commit += " with changes"
	}
	return m
}

// procField returns the value of a "name : value" line of a file in /proc.
func procField(path, name string) string {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(path string) string {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func (m machine) lines() []string {
	return []string{
		fmt.Sprintf("- machine: %d cores of %s, %s; client and servers share them, loopback, no pinning", m.Cores, m.CPU, m.Memory),
		"- kernel: " + m.Kernel,
		"- versions: " + strings.Join(m.Versions, "; "),
		"- commit: " + m.Commit,
		"- command: `" + m.Command + "`",
		fmt.Sprintf("- started %s, load average before: %s; %d rounds of %d s legs", m.Started, m.Load, m.Rounds, m.Seconds),
	}
}
