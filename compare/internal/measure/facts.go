package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Facts is what somebody needs to repeat a measurement, or to see why it cannot be repeated.
type Facts struct {
	CPU     string   `json:"cpu"` // the model, "unknown" where the system does not tell
	CPUs    int      `json:"cpus"`
	OS      string   `json:"os"` // "linux/amd64"
	Go      string   `json:"go"`
	Commit  string   `json:"commit"`            // of the tree, "-dirty" behind it when there were changes; "unknown" outside git
	Load    string   `json:"load"`              // the load average of the last minute when the run began, "unknown" where the system does not tell
	Command string   `json:"command"`           // to be pasted into a shell
	Modules []Module `json:"modules,omitempty"` // what was compared, sorted by path
}

// Module is a module compiled into the program.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"` // "tree" for one that is replaced by a folder
}

// Observe returns the facts of this process. dir is a folder in the tree; modules are the paths of the modules that were
// compared, of which those that are not compiled in are left out. command is how the program was started.
func Observe(ctx context.Context, dir, command string, modules []string) Facts {
	return Facts{
		CPU: cpuModel(), CPUs: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Commit: commit(ctx, dir), Load: load(), Command: command, Modules: versions(modules),
	}
}

// Lines returns the facts as a Markdown list.
func (f Facts) Lines() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- Machine: %s, %d CPUs, %s, load average %s at the start\n", f.CPU, f.CPUs, f.OS, f.Load)
	fmt.Fprintf(&b, "- %s, commit %s\n", f.Go, f.Commit)
	if len(f.Modules) > 0 {
		names := make([]string, len(f.Modules))
		for i, m := range f.Modules {
			names[i] = m.Path + " " + m.Version
		}
		fmt.Fprintf(&b, "- Compared: %s\n", strings.Join(names, ", "))
	}
	fmt.Fprintf(&b, "- Command: `%s`\n", f.Command)
	return b.String()
}

// BenchmarkHeader returns the lines that package testing writes in front of benchmarks; benchstat groups by them.
func (f Facts) BenchmarkHeader(pkg string) string {
	return fmt.Sprintf("goos: %s\ngoarch: %s\npkg: %s\ncpu: %s\ncommit: %s\ngo: %s\n",
		runtime.GOOS, runtime.GOARCH, pkg, f.CPU, f.Commit, f.Go)
}

func cpuModel() string {
	switch runtime.GOOS {
	case "linux":
		data, _ := os.ReadFile("/proc/cpuinfo")
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	case "darwin":
		if out, err := exec.Command("sysctl", "-n", "machdep.cpu.brand_string").Output(); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	return "unknown"
}

func load() string {
	data, _ := os.ReadFile("/proc/loadavg")
	if minute, _, ok := strings.Cut(string(data), " "); ok {
		return minute
	}
	return "unknown"
}

// commit asks git without letting it write: a plain 'git status' refreshes the index.
func commit(ctx context.Context, dir string) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-C", dir}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	hash, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changes, err := git("status", "--porcelain"); err != nil || changes != "" {
		hash += "-dirty"
	}
	return hash
}

func versions(paths []string) []Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var mods []Module
	for _, dep := range info.Deps {
		if !slices.Contains(paths, dep.Path) {
			continue
		}
		version := dep.Version
		if dep.Replace != nil {
			version = "tree"
		}
		mods = append(mods, Module{Path: dep.Path, Version: version})
	}
	slices.SortFunc(mods, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return mods
}
