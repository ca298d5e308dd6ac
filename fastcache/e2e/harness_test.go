package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// caddyBinary is the Caddy under test, built once by TestMain.
var caddyBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "fastcache-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		caddyBinary = filepath.Join(dir, "caddy")
		args := []string{"build", "-C", "..", "-o", caddyBinary}
		if raceBuild {
			args = append(args, "-race")
		}
		build := exec.Command("go", append(args, "./cmd/caddy")...)
		build.Env = append(os.Environ(), "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building Caddy: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// origin is a server behind the cache that counts what it is asked.
type origin struct {
	*httptest.Server
	n atomic.Int64 // requests in all

	mu   sync.Mutex
	seen []string // "METHOD URI" of each
}

func newOrigin(t *testing.T, handler http.HandlerFunc) *origin {
	t.Helper()
	o := new(origin)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.n.Add(1)
		o.mu.Lock()
		o.seen = append(o.seen, r.Method+" "+r.RequestURI)
		o.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

// asked is how often the origin has been asked.
func (o *origin) asked() int { return int(o.n.Load()) }

func (o *origin) log() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.seen...)
}

// addr is host:port, as reverse_proxy takes it.
func (o *origin) addr() string { return o.Listener.Addr().String() }

// caddy is a running Caddy.
type caddy struct {
	t     *testing.T
	cmd   *exec.Cmd
	dir   string // of its files; the cache is in dir/cache unless the site says otherwise
	port  int    // of the site
	admin int
	ended chan struct{}
	err   error // of the process; valid once ended is closed

	mu  sync.Mutex
	out bytes.Buffer
}

// freePort asks the kernel for a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// site is the plain configuration of most tests: a cache with the given extra
// options in front of an origin.
func site(o *origin, options ...string) string {
	return "http://:{port} {\n\troute {\n\t\tfastcache {\n\t\t\tpath {dir}/cache\n\t\t\tttl 1h\n\t\t\t" +
		strings.Join(options, "\n\t\t\t") + "\n\t\t}\n\t\treverse_proxy " + o.addr() + "\n\t}\n}\n"
}

// start runs a Caddy with the Caddyfile, in which {port} and {dir} stand for a
// free port and a directory of the test's own, and waits until it listens.
func start(t *testing.T, caddyfile string) *caddy {
	t.Helper()
	return startIn(t, t.TempDir(), caddyfile)
}

func startIn(t *testing.T, dir, caddyfile string) *caddy {
	t.Helper()
	c := &caddy{t: t, dir: dir, port: freePort(t), admin: freePort(t)}
	c.run(caddyfile)
	t.Cleanup(func() {
		c.stop()
		c.check()
	})
	return c
}

// fill replaces {port} and {dir} and adds the global options, to those that the
// Caddyfile has.
func (c *caddy) fill(caddyfile string) string {
	rest, _ := strings.CutPrefix(caddyfile, "{\n")
	if rest == caddyfile {
		rest = "}\n" + caddyfile
	}
	return fmt.Sprintf("{\n\tadmin 127.0.0.1:%d\n\tpersist_config off\n\tauto_https disable_redirects\n\tskip_install_trust\n\tgrace_period 3s\n\tstorage file_system %s/storage\n", c.admin, c.dir) +
		strings.NewReplacer("{port}", strconv.Itoa(c.port), "{dir}", c.dir).Replace(rest)
}

// run starts the process, also again after stop or kill, on the same ports.
func (c *caddy) run(caddyfile string) {
	c.t.Helper()
	file := filepath.Join(c.dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(c.fill(caddyfile)), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.cmd = exec.Command(caddyBinary, "run", "--config", file)
	c.cmd.Env = append(os.Environ(), "HOME="+c.dir, "XDG_CONFIG_HOME="+c.dir, "XDG_DATA_HOME="+c.dir, "GORACE=halt_on_error=0")
	c.cmd.Stdout, c.cmd.Stderr = c, c
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		c.err = cmd.Wait()
		close(ended)
	}(c.cmd, c.ended)
	if err := c.waitListening(); err != nil {
		c.t.Fatalf("%v\n%s", err, c.output())
	}
}

func (c *caddy) waitListening() error {
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-c.ended:
			return fmt.Errorf("caddy ended: %w", c.err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.New("caddy does not listen")
}

// Write collects what the process prints.
func (c *caddy) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *caddy) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// stop ends the process as an operator would.
func (c *caddy) stop() { c.end(syscall.SIGTERM) }

// kill ends the process as the kernel would, in the middle of whatever it does.
func (c *caddy) kill() { c.end(syscall.SIGKILL) }

func (c *caddy) end(sig syscall.Signal) {
	_ = c.cmd.Process.Signal(sig)
	select {
	case <-c.ended:
	case <-time.After(20 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
		c.t.Errorf("caddy did not end on %v\n%s", sig, c.output())
	}
}

// check fails the test for anything that a healthy process never prints.
func (c *caddy) check() {
	out := c.output()
	for _, bad := range []string{"DATA RACE", "panic:", "http: panic serving", "fatal error:", "superfluous response.WriteHeader"} {
		if i := strings.Index(out, bad); i >= 0 {
			c.t.Errorf("caddy printed %q:\n%s", bad, out[max(0, i-300):min(len(out), i+4000)])
		}
	}
	if c.t.Failed() {
		c.t.Logf("caddy printed:\n%.20000s", out)
	}
}

// reload loads a new Caddyfile through the admin API.
func (c *caddy) reload(caddyfile string) error {
	res, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/load", c.admin), "text/caddyfile", strings.NewReader(c.fill(caddyfile)))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("reload: %s: %s", res.Status, body)
	}
	return nil
}

func (c *caddy) url(uri string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", c.port, uri) }

// response is a response that has been read to its end.
type response struct {
	*http.Response
	body string
	err  error // of reading the body
}

// cacheStatus is what the cache says of the response.
func (r *response) cacheStatus() string { return r.Header.Get("Cache-Status") }

func (r *response) hit() bool { return strings.HasPrefix(r.cacheStatus(), "fastcache; hit") }

// client never decompresses, follows no redirects and keeps connections apart
// from other tests'.
func newClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       60 * time.Second,
	}
}

var client = newClient()

// do sends a request; fields are "Name: value" lines, a Host line sets the host.
func (c *caddy) do(method, uri string, fields ...string) *response {
	c.t.Helper()
	return c.send(c.t.Context(), method, uri, nil, fields...)
}

func (c *caddy) get(uri string, fields ...string) *response {
	c.t.Helper()
	return c.do(http.MethodGet, uri, fields...)
}

func (c *caddy) send(ctx context.Context, method, uri string, body io.Reader, fields ...string) *response {
	c.t.Helper()
	r, err := c.try(ctx, method, uri, body, fields...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, uri, err)
	}
	return r
}

// try is send for when failing is possible.
func (c *caddy) try(ctx context.Context, method, uri string, body io.Reader, fields ...string) (*response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url("/"), body)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(uri, "//") {
		req.URL.Path = uri // an Opaque that begins so would become an absolute URI
	} else {
		req.URL.Opaque = uri // goes out as it stands
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return &response{Response: res, body: string(data), err: err}, nil
}

// want fails the test unless the response has the status and the body.
func (r *response) want(t *testing.T, status int, body string) *response {
	t.Helper()
	if r.err != nil {
		t.Errorf("reading the body: %v", r.err)
	}
	if r.StatusCode != status {
		t.Errorf("status %d, want %d (Cache-Status: %s)", r.StatusCode, status, r.cacheStatus())
	}
	if r.body != body {
		t.Errorf("body of %d bytes %.80q, want %d bytes %.80q (Cache-Status: %s)", len(r.body), r.body, len(body), body, r.cacheStatus())
	}
	return r
}

// wantStatus fails the test unless Cache-Status begins with the given text.
func (r *response) wantStatus(t *testing.T, begin string) *response {
	t.Helper()
	if !strings.HasPrefix(r.cacheStatus(), begin) {
		t.Errorf("Cache-Status %q, want it to begin with %q", r.cacheStatus(), begin)
	}
	return r
}

// wantAsked fails the test unless the origin has been asked n times.
func (o *origin) wantAsked(t *testing.T, n int) {
	t.Helper()
	if got := o.asked(); got != n {
		t.Errorf("the origin was asked %d times, want %d: %v", got, n, o.log())
	}
}

// eventually waits for a condition that others bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// cacheFiles lists the files below the cache directory.
func (c *caddy) cacheFiles() []string {
	var files []string
	_ = filepath.WalkDir(filepath.Join(c.dir, "cache"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
			files = append(files, path)
		}
		return nil
	})
	return files
}

// testBody is n bytes that tell where they are from and are not repeated soon.
func testBody(name string, n int) string {
	var b strings.Builder
	b.Grow(n + 32)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s %d;", name, i)
	}
	return b.String()[:n]
}

// runCaddy runs a Caddy command to its end and returns what it printed.
func runCaddy(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(caddyBinary, args...).Output()
	if err != nil {
		t.Fatalf("caddy %v: %v", args, err)
	}
	return out
}

// runCaddyFails is runCaddy for a command that must fail; both outputs count.
func runCaddyFails(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(caddyBinary, args...).CombinedOutput()
	if err == nil {
		t.Errorf("caddy %v: no error", args)
	}
	return out
}
