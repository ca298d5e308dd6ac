package main

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"
)

func cutAddr(addr string) (host, port string, err error) { return net.SplitHostPort(addr) }

// nginxKind is what a site of nginx does.
type nginxKind int

const (
	nginxCache nginxKind = iota // proxy_cache in front of the origin
	nginxFiles                  // static files
)

// nginx has two workers, one for each core of the machine that the goals were set on,
// and everything that is known to make it faster here: sendfile, no access log, no
// limit of requests on a connection (the default closes it after 1000), and files
// that stay open (open_file_cache).
//
// tcp_nopush is the caller's: on, it is the faster one up to 16 KiB and stalls at
// 64 KiB, so both are measured and the better one counts.
func (f *factory) nginx(kind nginxKind, nopush string) (command, error) {
	path := f.tools.path["nginx"]
	location := "root " + f.site + ";"
	if kind == nginxCache {
		location = `proxy_pass http://origin;
				proxy_http_version 1.1;
				proxy_set_header Connection "";
				proxy_cache bodies;`
	}
	listen := "listen " + f.addr() + ";"
	if f.tls != 0 {
		listen = fmt.Sprintf("listen 127.0.0.1:%d ssl http2;\n\t\tssl_certificate %s;\n\t\tssl_certificate_key %s;", f.tls, f.cert, f.key)
	}
	own := ""
	if me, err := user.Current(); err == nil && os.Geteuid() == 0 {
		own = "user " + me.Username + ";\n" // the workers have to read our temporary folder
	}
	text := own + strings.NewReplacer("{dir}", f.dir, "{nopush}", nopush, "{listen}", listen, "{location}", location, "{origin}", f.origin).Replace(`
worker_processes 2;
daemon off;
pid {dir}/nginx.pid;
error_log stderr error;
events {
	worker_connections 4096;
}
http {
	client_body_temp_path {dir}/body;
	proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi;
	uwsgi_temp_path {dir}/uwsgi;
	scgi_temp_path {dir}/scgi;
	access_log off;
	default_type application/octet-stream;
	sendfile on;
	tcp_nopush {nopush};
	tcp_nodelay on;
	keepalive_timeout 600s;
	keepalive_requests 1000000000;
	open_file_cache max=1000 inactive=1h;
	proxy_cache_path {dir}/cache levels=1:2 keys_zone=bodies:64m inactive=1h max_size=1g;
	upstream origin {
		server {origin};
		keepalive 64;
		keepalive_requests 1000000000;
	}
	server {
		{listen}
		location / {
			{location}
		}
	}
}
`)
	config, err := f.write("nginx.conf", text)
	if err != nil {
		return command{}, err
	}
	return command{path: path, env: f.tools.env, args: []string{"-e", "stderr", "-p", f.dir, "-c", config}}, nil
}
