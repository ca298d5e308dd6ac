package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// asProgram makes the test binary be the demo.
const asProgram = "FASTCACHE_DEMO_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestRun is the only test that starts Caddy in this process: its state is global.
func TestRun(t *testing.T) {
	temp, cache := t.TempDir(), filepath.Join(t.TempDir(), "a cache")
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	out := &output{}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, out, []string{"-print-config", "-cache-dir", cache}) }()
	url := waitForURL(t, out, ended)

	first, status := get(t, url+"loaves")
	if !strings.Contains(status, "stored") {
		t.Errorf("first answer: Cache-Status = %q, want it stored", status)
	}
	second, status := get(t, url+"loaves")
	if !strings.Contains(status, "fastcache; hit") {
		t.Errorf("second answer: Cache-Status = %q, want a hit", status)
	}
	if first != second {
		t.Error("the hit is not the page that was stored")
	}
	if !strings.Contains(out.String(), "path                    \""+cache+"\"") {
		t.Error("-print-config does not show the Caddyfile")
	}
	purge(t, url+"loaves")
	if third, status := get(t, url+"loaves"); third == first || !strings.Contains(status, "fwd=uri-miss") {
		t.Errorf("after a purge: Cache-Status = %q, want a miss", status)
	}

	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("run: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("run does not end")
	}
	wantEmpty(t, temp)
	if _, err := os.Stat(cache); err != nil {
		t.Errorf("the directory of -cache-dir is gone: %v", err)
	}
	wantClosed(t, strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
}

// TestProgram_LeavesNothingBehind runs the demo as a process with an empty home
// and ends it as Ctrl-C does.
func TestProgram_LeavesNothingBehind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("has no signals to send")
	}
	home, temp, work := t.TempDir(), t.TempDir(), t.TempDir()
	out := &output{}
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{asProgram + "=1", "HOME=" + home, "TMPDIR=" + temp, "PATH=" + os.Getenv("PATH")}
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill() //nolint:errcheck // gone already, when all is well

	url := waitForURL(t, out, ended)
	if body, _ := get(t, url+"oven-log"); !strings.Contains(body, "</html>") {
		t.Error("the oven log is not complete")
	}
	purge(t, url+"oven-log")
	go func() { // a request under way must not keep the demo from ending
		if response, err := http.Get(url + "oven-log"); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}()
	time.Sleep(200 * time.Millisecond) // time to get under way; the test holds without it
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the demo ended with %v, want exit code 0", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the demo does not end")
	}
	for _, dir := range []string{home, temp, work} {
		wantEmpty(t, dir)
	}
	if said := out.String(); strings.Contains(said, `"level"`) {
		t.Errorf("the demo shows Caddy's log:\n%s", said)
	}
}

// waitForURL waits for run to say where the demo is.
func waitForURL(t *testing.T, out *output, ended <-chan error) string {
	t.Helper()
	address := regexp.MustCompile(`fastcache:  (http://127\.0\.0\.1:\d+/)`)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if m := address.FindStringSubmatch(out.String()); m != nil {
			return m[1]
		}
		select {
		case err := <-ended:
			t.Fatalf("run ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("run does not print an address")
	return ""
}

func get(t *testing.T, url string) (body, cacheStatus string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), response.Header.Get("Cache-Status")
}

func purge(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "PURGE", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("PURGE: status = %d, want 200", response.StatusCode)
	}
}

// wantClosed gives Caddy, which closes its listeners in the background, a moment.
func wantClosed(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Errorf("something still listens on %s", addr)
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
	}
}

// output is what run prints, readable while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func TestRun_Flags(t *testing.T) {
	tests := []struct {
		args    []string
		output  string
		wantErr string
	}{
		{[]string{"-help"}, "-cache-dir", ""},
		{[]string{"-nonsense"}, "-cache-dir", "not defined"},
		{[]string{"8080"}, "", "unexpected argument"},
		{[]string{"-port", "70000"}, "", "port 70000 cannot be used"},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		err := run(t.Context(), &out, tt.args)
		if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("run(%q): error %v, want %q", tt.args, err, tt.wantErr)
		}
		if !strings.Contains(out.String(), tt.output) {
			t.Errorf("run(%q) prints %q", tt.args, out.String())
		}
	}
}

func TestRun_PortInUse(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	err = run(t.Context(), io.Discard, []string{"-port", port})
	if err == nil || !strings.Contains(err.Error(), "port "+port+" cannot be used") {
		t.Errorf("error %v, want one that names port %s", err, port)
	}
	wantEmpty(t, temp)
}

func TestChoosePort_SkipsThoseInUse(t *testing.T) {
	first, err := choosePort(0)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
	if err != nil {
		t.Skip(err) // somebody else took it meanwhile
	}
	defer listener.Close()
	second, err := choosePort(0)
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Errorf("port %d is in use and was chosen", first)
	}
}

func TestCaddyfile_Adapts(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		s := site{port: 8080, origin: "127.0.0.1:9", cacheDir: `/a "strange" dir`, verbose: verbose}
		if _, err := adapt(s.caddyfile()); err != nil {
			t.Errorf("verbose %t: %v", verbose, err)
		}
	}
}
