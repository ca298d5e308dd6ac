package fastcache_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/hotset-go/hotset/fastcache"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// newName returns the name of instances that no other test has counted for: the
// counters are the process's.
func newName(t *testing.T) string {
	return fmt.Sprintf("%s-%d", t.Name(), names.Add(1))
}

var names atomic.Int64

// config stands for a configuration of Caddy, with a registry of its own.
type config struct {
	t   *testing.T
	ctx caddy.Context
	all []*fastcache.FastCache
}

func newConfig(t *testing.T) *config {
	t.Helper()
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	t.Cleanup(cancel)
	c := &config{t: t, ctx: ctx}
	t.Cleanup(c.end)
	return c
}

// add provisions an instance.
func (c *config) add(fc *fastcache.FastCache) *fastcache.FastCache {
	c.t.Helper()
	if err := fc.Provision(c.ctx); err != nil {
		c.t.Fatal(err)
	}
	c.all = append(c.all, fc)
	return fc
}

// end is what Caddy does to a configuration that it has replaced.
func (c *config) end() {
	for _, fc := range c.all {
		if err := fc.Cleanup(); err != nil {
			c.t.Error(err)
		}
	}
	c.all = nil
}

// series returns the value of each series, or the count of a histogram, as
// name{label="value",...} in the order of the labels' names.
func (c *config) series() map[string]float64 {
	c.t.Helper()
	families, err := c.ctx.GetMetricsRegistry().Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "fastcache_") {
			continue // Caddy's and Go's
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			key := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetCounter() != nil:
				all[key] = m.GetCounter().GetValue()
			case m.GetHistogram() != nil:
				all[key] = float64(m.GetHistogram().GetSampleCount())
			default:
				all[key] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// ofName leaves the series of one name: other tests may have instances too.
func ofName(all map[string]float64, name string) map[string]float64 {
	maps.DeleteFunc(all, func(key string, _ float64) bool { return !strings.Contains(key, fmt.Sprintf("name=%q", name)) })
	return all
}

// want fails the test for each series that does not have its value. The names of
// the series leave out the prefix.
func (c *config) want(what string, want map[string]float64) {
	c.t.Helper()
	got := c.series()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got["fastcache_"+key]; !ok || v != want[key] {
			c.t.Errorf("%s: fastcache_%s is %v (there: %v), want %v", what, key, v, ok, want[key])
		}
	}
}

// ask sends a request through an instance in front of an origin.
func ask(t *testing.T, fc *fastcache.FastCache, method, uri string, origin http.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "http://example.com"+uri, nil)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	err := fc.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		origin(w, r)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fresh is an origin whose every response may be stored.
func fresh(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	_, _ = io.WriteString(w, "hello")
}

// TestMetrics_AllSeriesFromTheStart: what has not happened yet is 0 and not
// absent, so that increase() sees the first time too. No other series come up
// later: the label sets are closed.
func TestMetrics_AllSeriesFromTheStart(t *testing.T) {
	c := newConfig(t)
	name := newName(t)
	fc := c.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: name})
	before := ofName(c.series(), name)
	var want []string
	add := func(metric, label string, values ...string) {
		for _, v := range values {
			want = append(want, fmt.Sprintf("fastcache_%s{name=%q,%s=%q}", metric, name, label, v))
		}
	}
	results := []string{"hit", "stale", "miss", "bypass", "purged", "revalidated"}
	add("requests_total", "result", results...)
	add("request_duration_seconds", "result", results...)
	add("revalidations_total", "result", "ok", "not_modified", "error")
	add("bytes", "tier", "memory", "disk")
	for i := range store.Causes {
		add("evictions_total", "reason", store.Cause(i).String())
	}
	for _, r := range rfc9111.Reasons() {
		add("reasons_total", "reason", r.String())
	}
	for _, metric := range []string{"entries", "coalesced_requests_total", "damaged_total", "disk_errors_total", "rebuild_progress_ratio", "rebuild_entries"} {
		want = append(want, fmt.Sprintf("fastcache_%s{name=%q}", metric, name))
	}
	for _, key := range want {
		if _, ok := before[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if len(before) != len(want) {
		t.Errorf("%d series, want %d", len(before), len(want))
	}

	for _, method := range []string{"GET", "GET", "HEAD", "PURGE", "POST", "OPTIONS", "BREW"} {
		ask(t, fc, method, "/", fresh)
	}
	if after := ofName(c.series(), name); len(after) != len(before) {
		t.Errorf("%d series after some requests, %d before", len(after), len(before))
	}
}

// TestMetrics_Lint: the names are as Prometheus wants them.
func TestMetrics_Lint(t *testing.T) {
	c := newConfig(t)
	c.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: t.Name()})
	families, err := c.ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestMetrics_SharedStore: a store that two blocks use counts once, for the name
// that comes first.
func TestMetrics_SharedStore(t *testing.T) {
	name := newName(t)
	a, b := name+"a", name+"b"
	c := newConfig(t)
	path := filepath.Join(t.TempDir(), "cache")
	second := c.add(&fastcache.FastCache{Path: path, Name: b})
	first := c.add(&fastcache.FastCache{Path: path, Name: a})
	third := c.add(&fastcache.FastCache{Path: path, Name: a})
	ask(t, first, "GET", "/1", fresh)
	ask(t, second, "GET", "/2", fresh)
	ask(t, third, "GET", "/3", fresh)
	ask(t, third, "PURGE", "/3", fresh)
	entries := func(name string) string { return fmt.Sprintf("entries{name=%q}", name) }
	c.want("three blocks, one store", map[string]float64{
		entries(a): 3,
		entries(b): 0,
		fmt.Sprintf("requests_total{name=%q,result=\"miss\"}", a):           2,
		fmt.Sprintf("requests_total{name=%q,result=\"miss\"}", b):           1,
		fmt.Sprintf("evictions_total{name=%q,reason=\"expired\"}", a):       0,
		fmt.Sprintf("bytes{name=%q,tier=\"memory\"}", b):                    0,
		fmt.Sprintf("rebuild_progress_ratio{name=%q}", b):                   1,
		fmt.Sprintf("requests_total{name=%q,result=\"purged\"}", a):         1,
		fmt.Sprintf("requests_total{name=%q,result=\"purged\"}", b):         0,
		fmt.Sprintf("reasons_total{name=%q,reason=\"purge-denied\"}", a):    1,
		fmt.Sprintf("reasons_total{name=%q,reason=\"purge-denied\"}", b):    0,
		fmt.Sprintf("request_duration_seconds{name=%q,result=\"miss\"}", a): 2,
	})
}

// TestMetrics_OldAndNewInstance: while two configurations live, each shows the
// store that they share once, and the counters of both. What a store has counted
// stays when it closes.
func TestMetrics_OldAndNewInstance(t *testing.T) {
	name := newName(t)
	path := filepath.Join(t.TempDir(), "cache")
	configure := func() (*config, *fastcache.FastCache) {
		c := newConfig(t)
		return c, c.add(&fastcache.FastCache{Path: path, Name: name, PurgeAllow: []string{"192.0.2.0/24"}})
	}
	counts := func(miss, entries, purge float64) map[string]float64 {
		return map[string]float64{
			fmt.Sprintf("requests_total{name=%q,result=\"miss\"}", name):   miss,
			fmt.Sprintf("entries{name=%q}", name):                          entries,
			fmt.Sprintf("evictions_total{name=%q,reason=\"purge\"}", name): purge,
		}
	}
	before, old := configure()
	ask(t, old, "GET", "/1", fresh)
	ask(t, old, "GET", "/2", fresh)
	before.want("one configuration", counts(2, 2, 0))

	after, young := configure()
	ask(t, old, "GET", "/3", fresh)
	ask(t, young, "GET", "/4", fresh)
	ask(t, young, "PURGE", "/1", fresh)
	before.want("the old one of two", counts(4, 3, 1))
	after.want("the new one of two", counts(4, 3, 1))

	before.end()
	after.want("the new one alone", counts(4, 3, 1))
	ask(t, young, "PURGE", "/2", fresh)
	after.end() // not read since that purge

	// The store is closed, and another one opens.
	again, _ := configure()
	rebuilt := fmt.Sprintf("fastcache_rebuild_progress_ratio{name=%q}", name)
	for deadline := time.Now().Add(10 * time.Second); again.series()[rebuilt] < 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the rebuild does not end")
		}
	}
	again.want("after the store was closed", counts(4, 2, 2))
}

// TestMetrics_FailedReload: Caddy's admin endpoint stays with the registry of a
// configuration that has failed, so that must show the one that goes on.
func TestMetrics_FailedReload(t *testing.T) {
	name := newName(t)
	running := newConfig(t)
	fc := running.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: name})
	failed := newConfig(t)
	gone := newName(t)
	failed.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: gone})
	twin := failed.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: name})
	failed.end()
	if err := twin.Cleanup(); err != nil { // once more takes nothing from the other
		t.Error(err)
	}
	ask(t, fc, "GET", "/", fresh)
	failed.want("after a failed reload", map[string]float64{
		fmt.Sprintf("requests_total{name=%q,result=\"miss\"}", name): 1,
		fmt.Sprintf("entries{name=%q}", name):                        1,
	})
	if n := len(ofName(failed.series(), gone)); n != 0 {
		t.Errorf("%d series of an instance that is gone", n)
	}
}

// TestMetrics_Panic: a request whose handler panics counts, and so does one whose
// handler fails; the panic goes on.
func TestMetrics_Panic(t *testing.T) {
	name := newName(t)
	c := newConfig(t)
	fc := c.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: name})
	for _, method := range []string{"GET", "OPTIONS"} {
		func() {
			defer func() {
				if p := recover(); p != "oh" {
					t.Errorf("%s: recovered %v", method, p)
				}
			}()
			ask(t, fc, method, "/", func(http.ResponseWriter, *http.Request) { panic("oh") })
		}()
	}
	c.want("after two panics", map[string]float64{
		fmt.Sprintf("requests_total{name=%q,result=\"miss\"}", name):          1,
		fmt.Sprintf("requests_total{name=%q,result=\"bypass\"}", name):        1,
		fmt.Sprintf("reasons_total{name=%q,reason=\"upstream-error\"}", name): 1,
		fmt.Sprintf("reasons_total{name=%q,reason=\"method\"}", name):         1,
	})
}

// TestMetrics_CachesInARow: a block behind another one with the same store has no
// part in the request; one with a store of its own has.
func TestMetrics_CachesInARow(t *testing.T) {
	a, b := newName(t), newName(t)
	c := newConfig(t)
	path := filepath.Join(t.TempDir(), "cache")
	front := c.add(&fastcache.FastCache{Path: path, Name: a})
	same := c.add(&fastcache.FastCache{Path: path, Name: a})
	other := c.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: b})
	w := httptest.NewRecorder()
	r := caddyhttp.PrepareRequest(httptest.NewRequest("GET", "http://example.com/", nil), caddy.NewReplacer(), w, new(caddyhttp.Server))
	chain := caddyhttp.Handler(caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		fresh(w, r)
		return nil
	}))
	for _, fc := range []*fastcache.FastCache{other, same, front} {
		next := chain
		chain = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error { return fc.ServeHTTP(w, r, next) })
	}
	if err := chain.ServeHTTP(w, r); err != nil {
		t.Fatal(err)
	}
	c.want("after one request", map[string]float64{
		fmt.Sprintf("requests_total{name=%q,result=\"miss\"}", a): 1,
		fmt.Sprintf("requests_total{name=%q,result=\"miss\"}", b): 1,
	})
}

// TestMetrics_NameTaken: somebody else's metric of the same name is an error of
// the configuration, not a panic.
func TestMetrics_NameTaken(t *testing.T) {
	c := newConfig(t)
	c.ctx.GetMetricsRegistry().MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "fastcache_entries", Help: "Of somebody else."}))
	fc := &fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache")}
	defer func() { _ = fc.Cleanup() }()
	if err := fc.Provision(c.ctx); err == nil || !strings.Contains(err.Error(), "fastcache_entries") {
		t.Errorf("Provision: %v, want an error that names the metric", err)
	}
}

// TestMetrics_StoreOff: a block that stores nothing counts its requests.
func TestMetrics_StoreOff(t *testing.T) {
	c, name := newConfig(t), newName(t)
	fc := c.add(&fastcache.FastCache{MemorySize: "0", DiskSize: "0", Name: name})
	ask(t, fc, "GET", "/", fresh)
	c.want("after a request", map[string]float64{
		fmt.Sprintf("requests_total{name=%q,result=\"bypass\"}", name):   1,
		fmt.Sprintf("reasons_total{name=%q,reason=\"store-off\"}", name): 1,
		fmt.Sprintf("entries{name=%q}", name):                            0,
	})
}

// BenchmarkMetrics_Hit is a whole hit in RAM up to the writer, to see what share
// of it BenchmarkObservation is.
func BenchmarkMetrics_Hit(b *testing.B) {
	server := new(caddyhttp.Server) // without an access log
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.WithValue(context.Background(), caddyhttp.ServerCtxKey, server)})
	defer cancel()
	fc := &fastcache.FastCache{Path: filepath.Join(b.TempDir(), "cache"), DiskSize: "0", Name: b.Name()}
	if err := fc.Provision(ctx); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = fc.Cleanup() }()
	w := &discard{header: make(http.Header)}
	r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, server)
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		fresh(w, r)
		return nil
	})
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		if err := fc.ServeHTTP(w, r, next); err != nil {
			b.Fatal(err)
		}
		delete(r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any), "fastcache.store")
	}
	if !strings.HasPrefix(w.header.Get("Cache-Status"), "fastcache; hit") {
		b.Fatal(w.header)
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
