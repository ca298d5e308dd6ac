package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const modulePath = "github.com/hotset-go/hotset/fastcache"

// buildTimeout bounds the build of Caddy, which takes minutes on a small machine
// that has built nothing yet.
const buildTimeout = 15 * time.Minute

// moduleDir finds the folder of the module fastcache.
func moduleDir(ctx context.Context) (string, error) {
	out, err := runCommand(ctx, clientTimeout, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath)
	})
	if err != nil {
		return "", fmt.Errorf("this runs in a checkout of the repository: %w", err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// buildCaddy builds Caddy with fastcache as its users do, without the workspace.
func buildCaddy(ctx context.Context, stdout io.Writer, module, dir string) (string, error) {
	fmt.Fprintln(stdout, "building Caddy with fastcache")
	binary := filepath.Join(dir, "caddy")
	_, err := runCommand(ctx, buildTimeout, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", binary, "./cmd/caddy")
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "GOWORK=off")
		return cmd
	})
	return binary, err
}

// startCaddy starts Caddy with a cache of the profile in front of the origin.
// What it writes is below dir.
func startCaddy(ctx context.Context, binary, dir string, p profile, origin string) (caddy *child, base string, err error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(caddyfile(port, filepath.Join(dir, "cache"), p, origin)), 0o600); err != nil {
		return nil, "", err
	}
	caddy, err = startChild(ctx, "Caddy", func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, binary, "run", "--config", config)
		// No answer may depend on the local time zone (RFC 9111 section 4.2):
		// the origin is in another.
		cmd.Env = append(os.Environ(), "TZ=Pacific/Chatham", "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
		return cmd
	})
	if err != nil {
		return nil, "", err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	err = caddy.wait(ctx, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if err != nil {
		caddy.stop()
		return nil, "", err
	}
	return caddy, "http://" + addr, nil
}

// caddyfile is the plainest site with a cache. The global options keep Caddy from
// opening other ports and from writing elsewhere; the log has errors of the cache
// only, as the suite makes its origin fail on purpose.
func caddyfile(port int, cache string, p profile, origin string) string {
	options := slices.Concat([]string{"path `" + cache + "`"}, p.options)
	return fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	storage_clean_interval off
	default_bind 127.0.0.1
	grace_period 1s
	log {
		level ERROR
		exclude http.log
	}
}

http://127.0.0.1:%d {
	route {
		fastcache {
			%s
		}
		reverse_proxy %s
	}
}
`, port, strings.Join(options, "\n\t\t\t"), origin)
}

// freePort asks the kernel for a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
