package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func testFactory(t *testing.T) *factory {
	t.Helper()
	sizes := []int{512, 4096, 1 << 20}
	return &factory{
		tools: &toolbox{path: map[string]string{"nginx": "nginx"}}, caddyB: "caddy", origin: "127.0.0.1:9", site: "/site",
		built: map[mode]bool{modePlain: true}, sizes: sizes, bodies: newBodies(sizes), dir: t.TempDir(), port: 8081,
	}
}

// config builds a contender and returns its configuration.
func config(t *testing.T, f *factory, name string, list []contender) string {
	t.Helper()
	for _, c := range list {
		if c.name != name {
			continue
		}
		cmd, err := c.build(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(cmd.args[len(cmd.args)-1])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Fatalf("there is no %q", name)
	return ""
}

// The tiers and modes of the contenders are those that their names say.
func TestContenders_Configuration(t *testing.T) {
	f := testFactory(t)
	f.built = map[mode]bool{modePlain: true, modeWrapped: true, modeFast: true}
	for _, test := range []struct {
		name    string
		has     string // words that must be there
		without string // and words that must not
	}{
		{plain, "fastcache reverse_proxy", "disk_size memory_size fast_path listener_wrappers"},
		{plainRAM, "disk_size", "fast_path listener_wrappers"},
		{plainDisk, "memory_size", "disk_size fast_path"},
		{wrapped, "listener_wrappers", "fast_path disk_size memory_size"},
		{fast, "listener_wrappers fast_path", "disk_size memory_size"},
		{fastRAM, "listener_wrappers fast_path disk_size", ""},
		{fastDisk, "listener_wrappers fast_path memory_size", "disk_size"},
		{fileServer, "file_server", "fastcache"},
		{respond, "/b/512 /b/4096", "/b/1048576 fastcache"},
		{nginxNopushOn, "proxy_cache tcp_nopush{on}", "tcp_nopush{off}"},
		{nginxNopushOff, "proxy_cache tcp_nopush{off}", "tcp_nopush{on}"},
		{nginxStatic, "root", "proxy_pass"},
	} {
		text := config(t, f, test.name, contenders)
		for _, word := range strings.Fields(test.has) {
			if word = strings.NewReplacer("{", " ", "}", ";").Replace(word); !strings.Contains(text, word) {
				t.Errorf("%s lacks %q:\n%.1000s", test.name, word, text)
			}
		}
		for _, word := range strings.Fields(test.without) {
			if word = strings.NewReplacer("{", " ", "}", ";").Replace(word); strings.Contains(text, word) {
				t.Errorf("%s has %q:\n%.1000s", test.name, word, text)
			}
		}
		if strings.Contains(text, "0.0.0.0") || !strings.Contains(text, "127.0.0.1:8081") {
			t.Errorf("%s listens elsewhere:\n%.1000s", test.name, text)
		}
	}
}

func TestContenders_NotBuiltYet(t *testing.T) {
	f := testFactory(t)
	for _, c := range contenders {
		var why notThere
		_, err := c.build(f)
		switch c.name {
		case wrapped, fast, fastRAM, fastDisk:
			if !errors.As(err, &why) || why != "not built yet" {
				t.Errorf("%s: %v", c.name, err)
			}
		case varnish:
			if !errors.As(err, &why) || why != "not installed" {
				t.Errorf("%s: %v", c.name, err)
			}
		default:
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

func TestFactory_TLS(t *testing.T) {
	f := testFactory(t)
	f.tls, f.cert, f.key = 8443, "/cert.pem", "/key.pem"
	for _, c := range h2Contenders {
		text := config(t, f, c.name, h2Contenders)
		if !strings.Contains(text, "127.0.0.1:8443") || !strings.Contains(text, "/cert.pem") || strings.Contains(text, "8081") {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}
