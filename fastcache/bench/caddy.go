package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// buildTimeout bounds the build of Caddy, which takes minutes on a small machine
// that has built nothing yet.
const buildTimeout = 15 * time.Minute

// buildCaddy builds Caddy with fastcache as its users do, without the workspace.
func buildCaddy(ctx context.Context, module, dir string) (string, error) {
	binary := filepath.Join(dir, "caddy")
	_, _, err := runCommand(ctx, buildTimeout, []string{"GOWORK=off"}, "go", "build", "-C", module, "-buildvcs=false", "-o", binary, "./cmd/caddy")
	return binary, err
}

// mode is how much of fastcache's speed is turned on.
type mode int

const (
	modePlain   mode = iota // the handler alone, as in the README's first example
	modeWrapped             // and the listener wrapper
	modeFast                // and the option fast_path
)

// What keeps the bodies in one tier. By default both are used: bodies below
// promote_below in RAM, others on disk.
const (
	ramOnly  = "disk_size 0\n\t\t\tmemory_size 256MiB"
	diskOnly = "memory_size 0"
)

// wrapperModule is the listener wrapper's name among Caddy's modules.
const wrapperModule = "caddy.listeners.fastcache"

// detectModes finds out which modes a Caddy has: the wrapper among its modules, and
// the option by letting it read a configuration.
func (f factory) detectModes(ctx context.Context, dir string) (map[mode]bool, error) {
	f.dir, f.port = dir, 1 // nothing is started
	built := map[mode]bool{modePlain: true, modeWrapped: true, modeFast: true}
	f.built = built
	out, _, err := runCommand(ctx, startTimeout, f.home(), f.caddyB, "list-modules")
	if err != nil {
		return nil, err
	}
	built[modeWrapped] = slices.Contains(strings.Fields(out), wrapperModule)
	if !built[modeWrapped] {
		built[modeFast] = false
		return built, nil
	}
	if _, err := f.fastcache(modeFast, ""); err != nil {
		return nil, err
	}
	if out, _, err := runCommand(ctx, startTimeout, f.home(), f.caddyB, "adapt", "--config", f.caddyfile()); err != nil {
		if !strings.Contains(out, "fast_path") {
			return nil, err
		}
		built[modeFast] = false
	}
	return built, nil
}

// fastcache is Caddy with a cache.
func (f *factory) fastcache(m mode, options string) (command, error) {
	if !f.built[m] {
		return command{}, notThere("not built yet")
	}
	servers := ""
	if m >= modeWrapped {
		servers = "servers {\n\t\tlistener_wrappers {\n\t\t\tfastcache\n\t\t}\n\t}"
	}
	if m == modeFast {
		options += "\n\t\t\tfast_path"
	}
	return f.caddy(servers, f.cacheSite(options))
}

func (f *factory) cacheSite(options string) string {
	return fmt.Sprintf("route {\n\t\tfastcache {\n\t\t\tpath `%s`\n\t\t\t%s\n\t\t}\n\t\treverse_proxy %s\n\t}", filepath.Join(f.dir, "cache"), options, f.origin)
}

func (f *factory) fileSite() string { return "root `" + f.site + "`\n\tfile_server" }

// respondMost is the largest body of the contender "Caddy respond", which has its
// bodies in the configuration.
const respondMost = 64 << 10

// respondSite answers from the configuration: what a request costs in Caddy when its
// handlers do nearly nothing. No handler can be much faster. The length is set because
// net/http would send more than 2 KiB in chunks otherwise.
func (f *factory) respondSite() string {
	var site strings.Builder
	for _, size := range f.sizes {
		if size <= respondMost {
			fmt.Fprintf(&site, "header %[1]s Content-Length %[2]d\n\trespond %[1]s %[3]s\n\t", urlPath(size), size, f.bodies[size])
		}
	}
	return site.String()
}

func (f *factory) proxySite() string { return "reverse_proxy " + f.origin }

func (f *factory) caddyfile() string { return filepath.Join(f.dir, "Caddyfile") }

// home keeps what Caddy writes out of the user's home.
func (f *factory) home() []string {
	return []string{"HOME=" + f.dir, "XDG_CONFIG_HOME=" + f.dir, "XDG_DATA_HOME=" + f.dir}
}

// caddy is Caddy with one site and its defaults otherwise: no access log, no metrics,
// the default protocols (h1 alone would cost sendfile). Only what would open other
// ports, or write elsewhere, is turned off.
func (f *factory) caddy(servers, site string) (command, error) {
	addr := "http://" + f.addr()
	if f.tls != 0 {
		addr = fmt.Sprintf("https://127.0.0.1:%d", f.tls)
		site = fmt.Sprintf("tls `%s` `%s`\n\t%s", f.cert, f.key, site)
	}
	text := fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	storage_clean_interval off
	default_bind 127.0.0.1
	grace_period 1s
	log {
		level ERROR
	}
	%s
}

%s {
	%s
}
`, servers, addr, site)
	if err := os.WriteFile(f.caddyfile(), []byte(text), 0o600); err != nil {
		return command{}, err
	}
	return command{path: f.caddyB, args: []string{"run", "--config", f.caddyfile()}, env: f.home()}, nil
}
