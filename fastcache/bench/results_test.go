package main

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"testing"
)

var smallCell = cell{hits, 4 << 10, 64}

// legs returns legs of a contender in a cell, one a round, with these rates and a
// processor time of 1000 / rate.
func legs(c cell, server string, rates ...float64) []leg {
	var all []leg
	for round, rate := range rates {
		if rate > 0 { // 0: the round has none
			all = append(all, leg{cell: c, Server: server, Round: round, PerSecond: rate, CPU: 1000 / rate})
		}
	}
	return all
}

func join(all ...[]leg) *results {
	r := &results{LeftOut: map[string]string{}}
	for _, legs := range all {
		r.Legs = append(r.Legs, legs...)
	}
	return r
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		of   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 100}, 3}} {
		if got, ok := median(test.of); !ok || got != test.want {
			t.Errorf("%v: got %v, %v, want %v", test.of, got, ok, test.want)
		}
	}
	if _, ok := median(nil); ok {
		t.Error("nothing has a median")
	}
}

// A disturbance that slows a whole round leaves the ratios as they are, which the
// ratio of the medians would not.
func TestResults_Ratio_InsideARound(t *testing.T) {
	r := join(
		legs(smallCell, plain, 50, 10, 60),
		legs(smallCell, nginxNopushOn, 100, 20, 240),
	)
	if got, ok := r.ratio(smallCell, plain, nginxNopushOn, perSecond); !ok || got != 0.5 {
		t.Errorf("got %v, %v, want 0.5", got, ok)
	}
	if got, ok := r.ratio(smallCell, plain, nginxNopushOn, cpu); !ok || got != 2 {
		t.Errorf("CPU: got %v, %v, want 2", got, ok)
	}
}

func TestResults_Ratio_WithoutAPartner(t *testing.T) {
	r := join(legs(smallCell, plain, 50, 90), legs(smallCell, nginxNopushOn, 100, 0))
	if got, ok := r.ratio(smallCell, plain, nginxNopushOn, perSecond); !ok || got != 0.5 {
		t.Errorf("got %v, %v, want 0.5 of the first round alone", got, ok)
	}
	if got, ok := r.ratio(cell{hits, 512, 64}, plain, nginxNopushOn, perSecond); ok {
		t.Errorf("a cell without legs has the ratio %v", got)
	}
}

func TestResults_Nginx_TheBetterOne(t *testing.T) {
	large := cell{hits, 64 << 10, 64}
	r := join(
		legs(smallCell, nginxNopushOn, 80, 70, 5), legs(smallCell, nginxNopushOff, 60, 65, 62),
		legs(large, nginxNopushOn, 2, 2, 2), legs(large, nginxNopushOff, 38, 30, 35),
	)
	if got := r.nginx(smallCell); got != nginxNopushOn {
		t.Errorf("4 KiB: %s", got)
	}
	if got := r.nginx(large); got != nginxNopushOff {
		t.Errorf("64 KiB: %s", got)
	}
}

func TestGoal_Judge(t *testing.T) {
	r := join(
		legs(smallCell, plain, 50), legs(smallCell, nginxNopushOn, 100), legs(smallCell, nginxNopushOff, 40),
		legs(smallCell, fileServer, 30),
	)
	r.LeftOut[fast] = "not built yet"
	for _, test := range []struct {
		goal goal
		want string
	}{
		{goal{cell: smallCell, server: plain, figure: perSecond, bound: 0.5}, "0.50 pass (>= 0.50)"},
		{goal{cell: smallCell, server: plain, figure: perSecond, bound: 0.51}, "0.50 short (>= 0.51)"},
		{goal{cell: smallCell, server: plain, figure: cpu, atMost: true, bound: 2}, "2.00 pass (<= 2.00)"},
		{goal{cell: smallCell, server: plain, figure: cpu, atMost: true, bound: 1.9}, "2.00 short (<= 1.90)"},
		{goal{cell: smallCell, server: plain, to: fileServer, figure: perSecond, bound: 2}, "1.67 short (>= 2.00)"},
		{goal{cell: smallCell, server: fast, figure: perSecond, bound: 1.4}, "not built yet (>= 1.40)"},
		{goal{cell: smallCell, server: plain, to: varnish, figure: perSecond, bound: 1}, "not measured (>= 1.00)"},
	} {
		if got := test.goal.text(r); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// Every contender and cell that a goal names is one that is measured: a misspelled
// goal would be "not measured" for ever.
func TestGoals_AreMeasured(t *testing.T) {
	goals := further()
	for _, row := range contract {
		goals = append(goals, row.goals()...)
	}
	lists := map[kind][]contender{hits: contenders, misses: missContenders, h2: h2Contenders}
	cells := map[kind][]cell{hits: hitCells(allSizes, allConns), misses: {missCell}, h2: h2Cells}
	for _, g := range goals {
		var servers []*server
		for _, c := range lists[g.cell.Kind] {
			servers = append(servers, &server{contender: c})
		}
		measured := make(map[string]bool)
		for _, s := range plan(1, cells[g.cell.Kind], servers) {
			if s.cell == g.cell {
				measured[s.server.name] = true
			}
		}
		to := g.to
		if to == "" {
			to = nginxNopushOn
		}
		for _, name := range []string{g.server, to} {
			if !measured[name] {
				t.Errorf("%s is not measured in %s", name, g.cell)
			}
		}
	}
}

func TestReport(t *testing.T) {
	r := join(
		legs(smallCell, plain, 25000, 20000, 30000), legs(smallCell, nginxNopushOn, 50000, 40000, 60000),
		legs(missCell, plain, 3000), legs(missCell, reverseProxy, 4000),
	)
	r.LeftOut[wrapped] = "not built yet"
	r.Allocs = []allocation{{"BenchmarkX", 1234, 56, 7}}
	got := report(r)
	for _, want := range []string{
		"| 4 KiB | 50.0k | 0.50 pass (>= 0.47) | not built yet (>= 0.55) | not measured (>= 1.40) | not measured (<= 0.65) |",
		"| miss 4 KiB c=64: fastcache / Caddy reverse_proxy | 0.75 short (>= 0.80) |",
		"| BenchmarkX | 1234 | 56 | 7 |",
		"| fastcache | 25.0k · 0.50 · 0.0 |",
		"- fastcache + wrapper: not built yet",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
}

func TestChart(t *testing.T) {
	r := join(legs(smallCell, plain, 25, 20), legs(smallCell, nginxNopushOn, 50, 40), legs(smallCell, fileServer, 5000, 4000))
	r.LeftOut[fast], r.LeftOut[wrapped] = "a < b", "not built yet"
	got := chart(r)
	for _, want := range []string{"fastcache, 4 KiB: 0.50</title>", "Caddy file_server, 4 KiB: 100.00</title>", "(a &lt; b)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	// It is well-formed, and nothing leaves the picture.
	xmlDecoder := xml.NewDecoder(strings.NewReader(got))
	var width, height float64
	var at map[string]float64 // of the element that has begun
	for {
		token, err := xmlDecoder.Token()
		if err == io.EOF { //nolint:errorlint // as the decoder promises
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && at["centred"] == 0 && at["x"]+6*float64(len(strings.TrimSpace(string(text)))) > width {
			t.Errorf("%q leaves the picture", text)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		at = make(map[string]float64)
		for _, a := range element.Attr {
			at[a.Name.Local], _ = strconv.ParseFloat(a.Value, 64)
			if a.Name.Local == "text-anchor" {
				at["centred"] = 1
			}
		}
		if element.Name.Local == "svg" {
			width, height = at["width"], at["height"]
		}
		if at["x"] < 0 || at["y"] < 0 || at["width"] < 0 || at["height"] < 0 || at["x"]+at["width"] > width || at["y"]+at["height"] > height {
			t.Errorf("%s %v leaves the picture", element.Name.Local, at)
		}
	}
}
