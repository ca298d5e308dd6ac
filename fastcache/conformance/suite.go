package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// The suite is an npm package with a single release. What its repository has
// added since is tested in the module fastcache/e2e (conformance_*_test.go).
const (
	suitePackage = "http-cache-tests"
	suiteVersion = "0.4.5"
)

// Bounds of steps that take seconds.
const (
	installTimeout = 3 * time.Minute
	clientTimeout  = 2 * time.Minute
)

//go:embed client.mjs
var clientScript []byte

//go:embed loopback.cjs
var loopbackScript []byte

// suite is the installed package and what is in it.
type suite struct {
	dir    string // of the package
	script string // client.mjs, where it finds the package's dependencies
	hook   string // loopback.cjs
	tests  []test // in the package's order, without those for browsers only
}

// test is what the package says of one of its tests.
type test struct {
	ID        string   `json:"id"`
	Group     string   `json:"group"`
	Kind      string   `json:"kind"` // required, optimal or check
	DependsOn []string `json:"depends_on"`
}

// installSuite installs the package below .cache unless it is there already, and
// reads which tests it has.
func installSuite(ctx context.Context, stdout io.Writer, module string) (*suite, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return nil, fmt.Errorf("the suite runs on Node.js, version 20 or newer: %w", err)
	}
	cache := filepath.Join(module, "..", ".cache", "conformance")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	s := &suite{
		dir:    filepath.Join(cache, "node_modules", suitePackage),
		script: filepath.Join(cache, "client.mjs"),
		hook:   filepath.Join(cache, "loopback.cjs"),
	}
	stamp := filepath.Join(cache, "installed-"+suiteVersion)
	if _, err := os.Stat(stamp); err != nil {
		if err := npmInstall(ctx, stdout, cache); err != nil {
			return nil, err
		}
		if err := os.WriteFile(stamp, nil, 0o644); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(os.WriteFile(s.script, clientScript, 0o644), os.WriteFile(s.hook, loopbackScript, 0o644)); err != nil {
		return nil, err
	}
	list, err := s.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the tests of %s; if it is damaged, remove %s: %w", suitePackage, cache, err)
	}
	if err := json.Unmarshal(list, &s.tests); err != nil {
		return nil, fmt.Errorf("reading the list of tests: %w", err)
	}
	return s, nil
}

// npmInstall installs the package without running scripts of anybody's.
func npmInstall(ctx context.Context, stdout io.Writer, dir string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("npm installs the suite: %w", err)
	}
	fmt.Fprintf(stdout, "installing %s %s\n", suitePackage, suiteVersion)
	_, err := runCommand(ctx, installTimeout, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund",
			"--prefix", dir, suitePackage+"@"+suiteVersion)
		cmd.Dir = dir
		return cmd
	})
	return err
}

// listening is what the origin prints once it does.
var listening = regexp.MustCompile(`Listening on http://(127\.0\.0\.1:\d+)/`)

// startOrigin starts the suite's origin server on a free port.
func (s *suite) startOrigin(ctx context.Context, dir string) (origin *child, addr string, err error) {
	origin, err = startChild(ctx, "the suite's origin", func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "node", "--require", s.hook, "server/server.mjs")
		cmd.Dir = s.dir
		cmd.Env = append(os.Environ(), "npm_config_protocol=http", "npm_config_port=0", "npm_config_pidfile="+filepath.Join(dir, "origin.pid"))
		return cmd
	})
	if err != nil {
		return nil, "", err
	}
	err = origin.wait(ctx, func() bool {
		match := listening.FindStringSubmatch(origin.out.String())
		if match != nil {
			addr = match[1]
		}
		return match != nil
	})
	if err != nil {
		origin.stop()
		return nil, "", err
	}
	return origin, addr, nil
}

// client runs client.mjs with the arguments behind the first and returns what it
// prints.
func (s *suite) client(ctx context.Context, args ...string) ([]byte, error) {
	return runCommand(ctx, clientTimeout, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, "node", append([]string{"--no-warnings", s.script, s.dir}, args...)...)
	})
}
