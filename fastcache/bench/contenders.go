package main

// Names of the contenders that the goals speak of.
const (
	nginxNopushOn  = "nginx proxy_cache, tcp_nopush on"
	nginxNopushOff = "nginx proxy_cache, tcp_nopush off"
	nginxStatic    = "nginx static"
	varnish        = "Varnish malloc"
	fileServer     = "Caddy file_server"
	respond        = "Caddy respond"
	reverseProxy   = "Caddy reverse_proxy"
	bareNetHTTP    = "bare net/http"
	plain          = "fastcache"
	plainRAM       = "fastcache, RAM only"
	plainDisk      = "fastcache, disk only"
	wrapped        = "fastcache + wrapper"
	fast           = "fastcache + fast path"
	fastRAM        = "fastcache + fast path, RAM only"
	fastDisk       = "fastcache + fast path, disk only"
)

// contender is one way to serve the bodies: a server process with one configuration.
// Each is a process of its own, also where one could serve several sites: they would
// share a garbage collector.
type contender struct {
	name  string
	most  int                               // the largest body that it has; 0: any
	core  bool                              // it is measured with 256 connections too
	build func(f *factory) (command, error) // how to start it
}

// command starts a server that listens on the factory's ports.
type command struct {
	path string
	args []string
	env  []string
}

// notThere is why a contender is left out. It is no failure of the run.
type notThere string

func (n notThere) Error() string { return string(n) }

// contenders are those of the hit path.
var contenders = []contender{
	{name: nginxNopushOn, core: true, build: func(f *factory) (command, error) { return f.nginx(nginxCache, "on") }},
	{name: nginxNopushOff, core: true, build: func(f *factory) (command, error) { return f.nginx(nginxCache, "off") }},
	{name: nginxStatic, build: func(f *factory) (command, error) { return f.nginx(nginxFiles, "on") }},
	{name: varnish, build: (*factory).varnish},
	{name: fileServer, build: func(f *factory) (command, error) { return f.caddy("", f.fileSite()) }},
	{name: respond, most: respondMost, build: func(f *factory) (command, error) { return f.caddy("", f.respondSite()) }},
	{name: bareNetHTTP, build: (*factory).bare},
	{name: plain, core: true, build: func(f *factory) (command, error) { return f.fastcache(modePlain, "") }},
	{name: plainRAM, build: func(f *factory) (command, error) { return f.fastcache(modePlain, ramOnly) }},
	{name: plainDisk, build: func(f *factory) (command, error) { return f.fastcache(modePlain, diskOnly) }},
	{name: wrapped, core: true, build: func(f *factory) (command, error) { return f.fastcache(modeWrapped, "") }},
	{name: fast, core: true, build: func(f *factory) (command, error) { return f.fastcache(modeFast, "") }},
	{name: fastRAM, build: func(f *factory) (command, error) { return f.fastcache(modeFast, ramOnly) }},
	{name: fastDisk, build: func(f *factory) (command, error) { return f.fastcache(modeFast, diskOnly) }},
}

// missContenders are those of the miss path: fresh processes, so that what the misses
// store does not evict what the hits are served from.
var missContenders = []contender{
	{name: reverseProxy, build: func(f *factory) (command, error) { return f.caddy("", f.proxySite()) }},
	{name: plain, build: func(f *factory) (command, error) { return f.fastcache(modePlain, "") }},
	{name: plainRAM, build: func(f *factory) (command, error) { return f.fastcache(modePlain, ramOnly) }},
	{name: nginxNopushOn, build: func(f *factory) (command, error) { return f.nginx(nginxCache, "on") }},
}

// h2Contenders are measured over TLS with HTTP/2.
var h2Contenders = []contender{
	{name: nginxNopushOn, build: func(f *factory) (command, error) { return f.nginx(nginxCache, "on") }},
	{name: fileServer, build: func(f *factory) (command, error) { return f.caddy("", f.fileSite()) }},
	{name: plain, build: func(f *factory) (command, error) { return f.fastcache(modePlain, "") }},
}
