package fastcache_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache"
)

// The pages about the metrics are the repository's, so they are not there when
// this module is tested alone.
const (
	metricsPage      = "../docs/metrics.md"
	metricsDashboard = "../docs/grafana-fastcache.json"
)

func needPages(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../docs"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("not in the repository: no docs to check")
	}
}

// family is a metric as the code has it.
type family struct {
	kind   string
	help   string
	labels map[string][]string // the values of each label; nil for name
}

func families(t *testing.T) map[string]family {
	t.Helper()
	c := newConfig(t)
	name := newName(t)
	c.add(&fastcache.FastCache{Path: filepath.Join(t.TempDir(), "cache"), Name: name})
	gathered, err := c.ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]family)
	for _, f := range gathered {
		if !strings.HasPrefix(f.GetName(), "fastcache_") {
			continue
		}
		labels := make(map[string][]string)
		for _, m := range f.GetMetric() {
			own := false
			for _, l := range m.GetLabel() {
				own = own || l.GetName() == "name" && l.GetValue() == name
			}
			for _, l := range m.GetLabel() {
				switch {
				case l.GetName() == "name":
					labels["name"] = nil
				case own:
					labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
				}
			}
		}
		all[f.GetName()] = family{strings.ToLower(f.GetType().String()), f.GetHelp(), labels}
	}
	return all
}

// TestDocs_Metrics: the page has every metric once, with the type, the labels and
// the words of the code.
func TestDocs_Metrics(t *testing.T) {
	needPages(t)
	type row struct {
		Type, Help string
		Labels     []string
	}
	inCode := make(map[string]row)
	for name, f := range families(t) {
		var labels []string
		for l := range f.labels {
			labels = append(labels, l)
		}
		slices.Sort(labels)
		inCode[name] = row{f.kind, f.help, labels}
	}
	rows := tableIn(t, metricsPage, "metrics:")
	documented := make(map[string]row)
	for _, cells := range rows {
		labels := strings.Fields(strings.ReplaceAll(cells[2], "`", ""))
		slices.Sort(labels)
		documented[word(cells[0])] = row{cells[1], cells[3], labels}
	}
	if diff := cmp.Diff(inCode, documented); diff != "" || len(rows) != len(documented) {
		t.Errorf("metrics (-code +docs/metrics.md, %d rows):\n%s", len(rows), diff)
	}
}

// TestDocs_MetricValues: the page has every value of every label. For the reasons
// it sends readers to the README, and the histogram has the results of
// fastcache_requests_total.
func TestDocs_MetricValues(t *testing.T) {
	needPages(t)
	all := families(t)
	inCode := make(map[string]bool)
	for name, f := range all {
		for label, values := range f.labels {
			if name == "fastcache_reasons_total" || name == "fastcache_request_duration_seconds" {
				continue
			}
			for _, v := range values {
				inCode[name+" "+label+" "+v] = true
			}
		}
	}
	rows := tableIn(t, metricsPage, "values:")
	documented := make(map[string]bool)
	for _, cells := range rows {
		documented[word(cells[0])+" "+word(cells[1])+" "+word(cells[2])] = true
	}
	if diff := cmp.Diff(inCode, documented); diff != "" || len(rows) != len(documented) {
		t.Errorf("values of labels (-code +docs/metrics.md, %d rows):\n%s", len(rows), diff)
	}
	if diff := cmp.Diff(all["fastcache_requests_total"].labels["result"], all["fastcache_request_duration_seconds"].labels["result"]); diff != "" {
		t.Errorf("results of the counter and of the histogram:\n%s", diff)
	}
}

// TestDocs_Queries: every query of the page and of the dashboard asks for metrics
// that there are, by labels and values that they have.
func TestDocs_Queries(t *testing.T) {
	needPages(t)
	all := families(t)
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, m := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllSubmatch(page, -1) {
		queries = append(queries, string(m[1]))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+\\(.*|fastcache_[a-z_]+ [<>=].*?)`").FindAllSubmatch(page, -1) {
		queries = append(queries, string(m[1])) // what to alarm on
	}
	if len(queries) < 12 {
		t.Errorf("docs/metrics.md: found %d queries only", len(queries))
	}

	text, err := os.ReadFile(metricsDashboard)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		if ids[p.ID] || len(p.Targets) == 0 || p.Title == "" {
			t.Errorf("panel %d %q: its id is taken, or it shows nothing, or has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if q, ok := v.Query.(map[string]any); ok {
			queries = append(queries, q["query"].(string))
		}
	}

	shown := make(map[string]bool)
	for _, q := range queries {
		for _, problem := range checkQuery(all, q, shown) {
			t.Errorf("%s\n\tin %s", problem, q)
		}
	}
	for name := range all {
		if !shown[name] && name != "fastcache_rebuild_entries" {
			t.Errorf("%s is in no query: nobody will look at it", name)
		}
	}
}

var (
	selector = regexp.MustCompile(`(fastcache_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
)

// checkQuery returns what is wrong with a query, and adds the metrics in it to
// shown.
func checkQuery(all map[string]family, query string, shown map[string]bool) (problems []string) {
	for _, pair := range []string{"()", "[]", "{}"} {
		if strings.Count(query, pair[:1]) != strings.Count(query, pair[1:]) {
			problems = append(problems, "unbalanced "+pair)
		}
	}
	known := map[string]bool{"name": true}
	selectors := selector.FindAllStringSubmatch(query, -1)
	if len(selectors) == 0 {
		problems = append(problems, "no metric")
	}
	for _, s := range selectors {
		name := s[1]
		f, ok := all[name]
		if !ok {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base, cut := strings.CutSuffix(name, suffix); cut && all[base].kind == "histogram" {
					name, f, ok = base, all[base], true
				}
			}
			known["le"] = ok
		}
		if !ok {
			problems = append(problems, "there is no metric "+s[1])
			continue
		}
		shown[name] = true
		for l := range f.labels {
			known[l] = true
		}
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			values, ok := f.labels[m[1]]
			if !ok {
				problems = append(problems, name+" has no label "+m[1])
			}
			for _, v := range strings.Split(m[3], "|") {
				if m[1] != "name" && !slices.Contains(values, v) {
					problems = append(problems, name+" has no "+m[1]+" "+v)
				}
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(query, -1) {
		for _, label := range strings.Split(g[1], ",") {
			if label = strings.TrimSpace(label); !known[label] {
				problems = append(problems, "no metric of the query has the label "+label)
			}
		}
	}
	return problems
}

// TestDocs_CheckQuery: the check of the queries finds what can be wrong.
func TestDocs_CheckQuery(t *testing.T) {
	all := families(t)
	for query, wrong := range map[string]bool{
		`sum by (le, result) (rate(fastcache_request_duration_seconds_bucket{result="hit"}[5m]))`: false,
		`fastcache_bytes{name=~"$name",tier="disk"}`:                                              false,
		`sum(fastcache_hits_total)`:                                                               true,
		`fastcache_entries_bucket`:                                                                true,
		`fastcache_bytes{result="hit"}`:                                                           true,
		`fastcache_bytes{tier="tape"}`:                                                            true,
		`fastcache_requests_total{result=~"hit|hitt"}`:                                            true,
		`sum by (le) (fastcache_entries)`:                                                         true,
		`sum(rate(fastcache_requests_total[5m])`:                                                  true,
		`up`:                                                                                      true,
	} {
		if problems := checkQuery(all, query, make(map[string]bool)); len(problems) > 0 != wrong {
			t.Errorf("%s: %q", query, problems)
		}
	}
}
