package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// findBrowser looks for a Chromium under the names that it is installed by.
func findBrowser(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: the demo is not tried in a browser")
	return ""
}

// startDemo runs what make run runs and returns its address.
func startDemo(t *testing.T) (address string) {
	binary := filepath.Join(t.TempDir(), "demo")
	build := exec.Command("go", "build", "-C", "..", "-o", binary, "./cmd/demo")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the demo: %v\n%s", err, out)
	}
	temp := t.TempDir()
	demo := exec.Command(binary)
	demo.Env = append(os.Environ(), "TMPDIR="+temp, "HOME="+temp)
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	demo.Stderr = os.Stderr
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(lines.Text()); m != "" {
				select {
				case found <- m:
				default:
				}
			}
		}
	}()
	t.Cleanup(func() {
		// Ctrl-C stops everything and leaves nothing behind.
		_ = demo.Process.Signal(syscall.SIGINT)
		<-read
		if err := demo.Wait(); err != nil {
			t.Errorf("the demo ended with %v", err)
		}
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("the demo left %v behind", left)
		}
	})
	select {
	case address = <-found:
	case <-read:
		t.Fatal("the demo ended without printing an address")
	case <-time.After(30 * time.Second):
		t.Fatal("the demo printed no address")
	}
	return address
}

// TestBrowser_DemoShowsHits opens the demo as a visitor does: the first load
// fills the cache, the next one is answered from it, and the page says so.
func TestBrowser_DemoShowsHits(t *testing.T) {
	browser := findBrowser(t)
	address := startDemo(t)

	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-quic", true))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()

	const results = `Object.fromEntries([...document.querySelectorAll("[data-row]")].map(r =>
		[r.dataset.row, (r.matches("[data-result]") ? r : r.querySelector("[data-result]"))?.dataset.result ?? "none"]))`
	load := func() map[string]string {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(address), chromedp.WaitVisible(`[data-state="done"]`)); err != nil {
			t.Fatal(err)
		}
		rows, err := chromedp.Run(ctx, chromedp.Evaluate[map[string]string](results))
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	first, second := load(), load()
	t.Logf("first load %v", first)
	t.Logf("second load %v", second)
	hits := 0
	for row, result := range second {
		if result == "hit" {
			hits++
		}
		// The order is sent by a click only.
		if result == "error" || result == "none" && row != "order" {
			t.Errorf("row %q shows %q", row, result)
		}
	}
	if len(second) < 6 || hits < len(second)/2 {
		t.Errorf("the second load shows %d hits in %d rows", hits, len(second))
	}
}
