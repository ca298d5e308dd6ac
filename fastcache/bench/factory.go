package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// factory is what the configurations of servers are made from. One start of one
// server gets a copy with a folder and ports of its own.
type factory struct {
	tools  *toolbox
	caddyB string        // Caddy with fastcache
	built  map[mode]bool // what it has of fastcache
	self   string        // this program
	site   string        // the folder with the bodies as files
	origin string        // host:port
	cert   string        // files of a self-signed certificate for 127.0.0.1
	key    string
	sizes  []int
	bodies bodies

	dir  string // of the server
	port int
	tls  int // 0: no TLS
}

// server is a started contender.
type server struct {
	contender
	*child
	url string // scheme://host:port
}

// start starts a contender below parent. An error that is a notThere means that this
// machine, or this version of fastcache, does not have it.
func (f factory) start(ctx context.Context, c contender, parent string, withTLS bool) (*server, error) {
	var err error
	if f.dir, err = os.MkdirTemp(parent, "server-"); err != nil {
		return nil, err
	}
	if f.port, err = freePort(); err != nil {
		return nil, err
	}
	s := &server{contender: c, url: "http://" + f.addr()}
	listening := f.addr()
	if withTLS {
		if f.tls, err = freePort(); err != nil {
			return nil, err
		}
		listening = "127.0.0.1:" + strconv.Itoa(f.tls)
		s.url = "https://" + listening
	}
	cmd, err := c.build(&f)
	if err != nil {
		return nil, err
	}
	if s.child, err = startChild(ctx, c.name, f.dir, cmd.env, cmd.path, cmd.args...); err != nil {
		return nil, err
	}
	if err := s.awaitListening(ctx, listening); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// startAll starts the contenders whose names are wanted. It returns why others are
// left out, by name. With an error nothing is left running.
func (f factory) startAll(ctx context.Context, list []contender, parent string, withTLS bool, wanted func(string) bool) (servers []*server, left map[string]string, err error) {
	left = make(map[string]string)
	for _, c := range list {
		if !wanted(c.name) {
			continue
		}
		s, err := f.start(ctx, c, parent, withTLS)
		var why notThere
		switch {
		case errors.As(err, &why):
			left[c.name] = string(why)
		case err != nil:
			stopAll(servers)
			return nil, nil, err
		default:
			servers = append(servers, s)
		}
	}
	return servers, left, nil
}

func stopAll(servers []*server) {
	for _, s := range servers {
		s.cancel() // all at once, then wait for each
	}
	for _, s := range servers {
		s.stop()
	}
}

func (f *factory) addr() string { return "127.0.0.1:" + strconv.Itoa(f.port) }

// write writes a configuration file into the server's folder.
func (f *factory) write(name, text string) (string, error) {
	path := filepath.Join(f.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// bare is this program as a plain server, see serveBare.
func (f *factory) bare() (command, error) {
	sizes := ""
	for _, size := range f.sizes {
		sizes += "," + strconv.Itoa(size)
	}
	return command{path: f.self, args: []string{"-serve-bare", f.addr(), "-sizes", sizes[1:]}}, nil
}

// varnish keeps the bodies in malloc'ed memory. It has no sendfile, no access log but
// the one in shared memory that it always writes, and compiles its configuration
// with the C compiler.
func (f *factory) varnish() (command, error) {
	path := f.tools.path["varnishd"]
	if path == "" {
		return command{}, notThere("not installed")
	}
	host, port, _ := cutAddr(f.origin)
	config, err := f.write("default.vcl", fmt.Sprintf("vcl 4.1;\nbackend default { .host = %q; .port = %q; }\n", host, port))
	if err != nil {
		return command{}, err
	}
	return command{path: path, env: f.tools.env, args: []string{
		"-F", "-j", "none", "-n", filepath.Join(f.dir, "state"), "-T", "none",
		"-a", f.addr(), "-s", "malloc,256m", "-f", config,
	}}, nil
}
