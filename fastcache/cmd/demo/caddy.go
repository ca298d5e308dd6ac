package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/hotset-go/hotset/fastcache"
)

// site is what the Caddyfile is made of.
type site struct {
	port     int
	origin   string // address
	cacheDir string
	verbose  bool
}

func newSite(opts options, dir, originAddr string) (site, error) {
	s := site{
		origin:   originAddr,
		cacheDir: filepath.Join(dir, "cache"),
		verbose:  opts.verbose,
	}
	var err error
	if opts.cacheDir != "" {
		if s.cacheDir, err = filepath.Abs(opts.cacheDir); err != nil {
			return s, fmt.Errorf("finding the cache directory: %w", err)
		}
	}
	s.port, err = choosePort(opts.port)
	return s, err
}

func (s site) url() string { return fmt.Sprintf("http://127.0.0.1:%d/", s.port) }

// caddyfile is the configuration. The global options keep Caddy from writing to
// the user's directories and from opening other ports; the site's block is what a
// real site would have.
func (s site) caddyfile() string {
	level := "PANIC" // not even the requests that Ctrl-C cuts off
	if s.verbose {
		level = "INFO"
	}
	return fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	default_bind 127.0.0.1
	grace_period %[1]s
	storage_clean_interval off
	log {
		level %[2]s
	}
}

http://127.0.0.1:%[3]d, http://localhost:%[3]d {
	route {
		fastcache {
			path                    %[4]s
			memory_size             64MB
			disk_size               256MB
			ttl                     1h
			stale_while_revalidate  30s
		}
		reverse_proxy %[5]s
	}
}
`, stopTimeout, level, s.port, quote(s.cacheDir), s.origin)
}

// quote makes a path one word of a Caddyfile.
func quote(path string) string {
	return `"` + strings.ReplaceAll(path, `"`, `\"`) + `"`
}

// startCaddy runs the site in this process.
func startCaddy(s site) error {
	config, err := adapt(s.caddyfile())
	if err != nil {
		return err
	}
	if err := caddy.Load(config, false); err != nil {
		return fmt.Errorf("starting Caddy: %w", err)
	}
	return nil
}

// adapt turns a Caddyfile into Caddy's JSON. The demo's own has nothing to warn of.
func adapt(caddyfile string) ([]byte, error) {
	adapter := caddyconfig.GetAdapter("caddyfile")
	if adapter == nil {
		return nil, errors.New("this program is built without the Caddyfile adapter")
	}
	config, _, err := adapter.Adapt([]byte(caddyfile), map[string]any{"filename": "demo"})
	if err != nil {
		return nil, fmt.Errorf("reading the demo's Caddyfile: %w", err)
	}
	return config, nil
}

// stopCaddy closes Caddy's listeners. Requests under way may end a little later.
func stopCaddy() error {
	if err := caddy.Stop(); err != nil {
		return fmt.Errorf("stopping Caddy: %w", err)
	}
	return nil
}
