package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// downloadTimeout bounds the fetch of the packages, about 3 MB.
const downloadTimeout = 5 * time.Minute

// tool is a program that the bench does not build itself.
type tool struct {
	program  string // its name
	pkg      string // the Debian package that has it
	required bool   // no run without it
}

var wanted = []tool{
	{"nginx", "nginx", true},
	{"wrk", "wrk", true},
	{"varnishd", "varnish", false},
	{"h2load", "nghttp2-client", false},
}

// toolbox has the programs by name.
type toolbox struct {
	path map[string]string // "" or absent: not there
	env  []string          // that programs of the folder need to find their libraries
}

// findTools looks for the programs on PATH and in the folder, and fetches those that
// are in neither into the folder: the packages are unpacked there and not installed,
// so that no service starts and root is not needed.
func findTools(ctx context.Context, stdout io.Writer, dir string) (*toolbox, error) {
	box, missing := lookForTools(dir)
	if len(missing) == 0 {
		return box, nil
	}
	var pkgs []string
	for _, t := range missing {
		pkgs = append(pkgs, t.pkg)
	}
	fmt.Fprintln(stdout, "fetching the Debian packages", strings.Join(pkgs, " "), "(unpacked into a folder, not installed)")
	fetched := fetchPackages(ctx, dir, pkgs)
	box, missing = lookForTools(dir)
	for _, t := range missing {
		if t.required {
			return nil, errors.Join(fmt.Errorf("%s is not on PATH and could not be fetched; install it (Debian: the package %s, without starting its service)", t.program, t.pkg), fetched)
		}
		fmt.Fprintf(stdout, "%s is not there (Debian: the package %s): what needs it is left out\n", t.program, t.pkg)
	}
	return box, nil
}

func lookForTools(dir string) (*toolbox, []tool) {
	box := &toolbox{path: make(map[string]string)}
	root := filepath.Join(dir, "root")
	if libs, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*")); len(libs) > 0 {
		paths := slices.Clone(libs)
		for _, lib := range libs {
			paths = append(paths, filepath.Join(lib, "varnish"))
		}
		box.env = []string{"LD_LIBRARY_PATH=" + strings.Join(paths, ":")}
	}
	var missing []tool
	for _, t := range wanted {
		found := ""
		if p, err := exec.LookPath(t.program); err == nil {
			found = p
		}
		// Debian's users do not have /usr/sbin on their PATH.
		for _, p := range []string{"/usr/sbin/" + t.program, filepath.Join(root, "usr/sbin", t.program), filepath.Join(root, "usr/bin", t.program)} {
			if _, err := os.Stat(p); found == "" && err == nil {
				found = p
			}
		}
		if found == "" {
			missing = append(missing, t)
		}
		box.path[t.program] = found
	}
	return box, missing
}

// fetchPackages unpacks packages, and those that they depend on and the system does
// not have, below dir/root.
func fetchPackages(ctx context.Context, dir string, pkgs []string) error {
	for _, program := range []string{"apt-get", "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("there is no %s to fetch packages with", program)
		}
	}
	archives := filepath.Join(dir, "apt", "archives")
	lists := filepath.Join(dir, "apt", "lists")
	for _, d := range []string{filepath.Join(archives, "partial"), filepath.Join(lists, "partial"), filepath.Join(dir, "root")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	// With folders of our own apt needs neither root nor the system's lock.
	own := []string{"-o", "Dir::Cache=" + filepath.Join(dir, "apt"), "-o", "Debug::NoLocking=true"}
	download := slices.Concat([]string{"install", "-y", "-q", "--download-only", "--no-install-recommends"}, own)
	_, _, err := runCommand(ctx, downloadTimeout, nil, "apt-get", slices.Concat(download, pkgs)...)
	if err != nil {
		// The system's lists are missing, or name versions that are gone.
		fresh := []string{"-o", "Dir::State::Lists=" + lists}
		if _, _, err := runCommand(ctx, downloadTimeout, nil, "apt-get", slices.Concat([]string{"update", "-q"}, own, fresh)...); err != nil {
			return err
		}
		if _, _, err := runCommand(ctx, downloadTimeout, nil, "apt-get", slices.Concat(download, fresh, pkgs)...); err != nil {
			return err
		}
	}
	debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if _, _, err := runCommand(ctx, downloadTimeout, nil, "dpkg", "-x", deb, filepath.Join(dir, "root")); err != nil {
			return err
		}
	}
	return nil
}

// version returns what a program says of its version, in one line.
func (b *toolbox) version(ctx context.Context, program string) string {
	path := b.path[program]
	if path == "" {
		return "not there"
	}
	flag := map[string]string{"nginx": "-v", "varnishd": "-V", "wrk": "-v", "h2load": "--version"}[program]
	out, _, _ := runCommand(ctx, startTimeout, b.env, path, flag) // wrk -v ends with an exit code of 1
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	line, _, _ = strings.Cut(line, " Copyright")
	return strings.TrimPrefix(line, "nginx version: ")
}
