package demo_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotset-go/hotset/fastcache/internal/demo"
)

// ask sends a request to the origin; fields are pairs of name and value.
func ask(t *testing.T, o http.Handler, method, path string, fields ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wantHeader(t *testing.T, r *http.Response, name, want string) {
	t.Helper()
	if got := r.Header.Get(name); got != want {
		t.Errorf("%s = %q, want %q", name, got, want)
	}
}

// assetPath finds an asset's path, which holds a hash, in the front page.
func assetPath(t *testing.T, o http.Handler, name, ext string) string {
	t.Helper()
	page := bodyOf(t, ask(t, o, "GET", "/"))
	path := regexp.MustCompile(`/assets/` + name + `-[0-9a-f]{12}\.` + ext).FindString(page)
	if path == "" {
		t.Fatalf("the front page names no %s.%s", name, ext)
	}
	return path
}

func TestOrigin_Routes(t *testing.T) {
	o := demo.New()
	const html = "text/html; charset=utf-8"
	tests := []struct {
		path, contentType, cacheControl string
		status                          int
		tagged                          bool
	}{
		{"/", html, "public, max-age=30", 200, true},
		{"/loaves", html, "public, max-age=30", 200, true},
		{"/loaves/rye", html, "public, max-age=30", 200, true},
		{"/loaves/toast", html, "public, max-age=10", 404, false},
		{"/no/such/page", html, "public, max-age=10", 404, false},
		{"/menu", html, "public, max-age=300", 301, false},
		{"/welcome", html, "public, max-age=30", 200, true},
		{"/guestbook", html, "public, max-age=30", 200, false},
		{"/account", html, "private, no-store", 200, false},
		{"/api/stock", "application/json", "public, max-age=5", 200, true},
		{"/images/rye.png", "image/png", "public, max-age=3600", 200, true},
		{"/images/toast.png", html, "public, max-age=10", 404, false},
		{"/files/catalogue.bin", "application/octet-stream", "public, max-age=3600", 200, true},
		{assetPath(t, o, "site", "css"), "text/css; charset=utf-8", "public, max-age=31536000, immutable", 200, true},
		{assetPath(t, o, "board", "js"), "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", 200, true},
		{assetPath(t, o, "mark", "svg"), "image/svg+xml", "public, max-age=31536000, immutable", 200, true},
		{"/assets/site.css", html, "public, max-age=10", 404, false},
	}
	for _, tt := range tests {
		t.Run("path="+tt.path, func(t *testing.T) {
			before := o.Count(tt.path)
			r := ask(t, o, "GET", tt.path)
			if r.StatusCode != tt.status {
				t.Fatalf("status = %d, want %d", r.StatusCode, tt.status)
			}
			wantHeader(t, r, "Content-Type", tt.contentType)
			wantHeader(t, r, "Cache-Control", tt.cacheControl)
			wantHeader(t, r, demo.RenderCountHeader, strconv.Itoa(before+1))
			if n := o.Count(tt.path); n != before+1 {
				t.Errorf("Count = %d, want %d", n, before+1)
			}
			if _, err := time.Parse(demo.TimeFormat, r.Header.Get(demo.RenderedAtHeader)); err != nil {
				t.Error(err)
			}
			body := bodyOf(t, r)
			if length := r.Header.Get("Content-Length"); tt.status == 200 && length != strconv.Itoa(len(body)) {
				t.Errorf("Content-Length = %s for a body of %d", length, len(body))
			}
			etag := r.Header.Get("ETag")
			if (etag != "") != tt.tagged {
				t.Fatalf("ETag = %q, want one: %t", etag, tt.tagged)
			}
			if tt.tagged {
				testValidation(t, o, tt.path, etag)
			}
		})
	}
}

// testValidation checks that a client which has the content gets a 304 that costs
// no rendering, and another one the whole.
func testValidation(t *testing.T, o *demo.Origin, path, etag string) {
	t.Helper()
	before := o.Count(path)
	for _, condition := range []string{etag, "W/" + strings.TrimPrefix(etag, "W/"), `"other", ` + etag, "*"} {
		r := ask(t, o, "GET", path, "If-None-Match", condition)
		if r.StatusCode != http.StatusNotModified {
			t.Errorf("If-None-Match: %s: status = %d, want 304", condition, r.StatusCode)
		}
		wantHeader(t, r, "ETag", etag)
		wantHeader(t, r, demo.RenderedAtHeader, "")
		if r.Header.Get("Cache-Control") == "" {
			t.Error("a 304 without Cache-Control")
		}
	}
	if n := o.Count(path); n != before {
		t.Errorf("304 answers were counted as %d renderings", n-before)
	}
	if r := ask(t, o, "GET", path, "If-None-Match", `"other"`); r.StatusCode != http.StatusOK {
		t.Errorf("If-None-Match with another tag: status = %d, want 200", r.StatusCode)
	}
}

func TestOrigin_PagesShowTheirStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the oven log takes its time
		o := demo.New()
		for _, path := range []string{"/", "/loaves", "/loaves/brioche", "/welcome", "/guestbook", "/account", "/nothing", "/oven-log"} {
			for n := 1; n <= 2; n++ {
				r := ask(t, o, "GET", path)
				body := bodyOf(t, r)
				at := r.Header.Get(demo.RenderedAtHeader)
				if at == "" || !strings.Contains(body, at) || !strings.Contains(body, fmt.Sprintf("<b>%d</b>", n)) {
					t.Errorf("%s: the page does not show its stamp %q and count %d", path, at, n)
				}
				if !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
					t.Errorf("%s: the page is not complete", path)
				}
			}
		}
	})
}

func TestOrigin_HeadHasTheHeaderOfGet(t *testing.T) {
	server := httptest.NewServer(demo.New())
	defer server.Close()
	for _, path := range []string{"/", "/api/stock", "/images/rye.png", "/files/catalogue.bin", "/loaves/toast", "/oven-log"} {
		head, err := http.Head(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		head.Body.Close()
		get, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		bodyOf(t, get)
		get.Body.Close()
		if head.StatusCode != get.StatusCode {
			t.Errorf("%s: HEAD has status %d, GET %d", path, head.StatusCode, get.StatusCode)
		}
		for _, name := range []string{"Cache-Control", "Content-Type", "Content-Length", "ETag", "Accept-Ranges"} {
			if h, g := head.Header.Get(name), get.Header.Get(name); h != g {
				t.Errorf("%s: HEAD has %s %q, GET %q", path, name, h, g)
			}
		}
	}
}

func TestOrigin_Catalogue(t *testing.T) {
	const path = "/files/catalogue.bin"
	o := demo.New()
	r := ask(t, o, "GET", path)
	wantHeader(t, r, "Accept-Ranges", "bytes")
	wantHeader(t, r, "Content-Length", "5242880")
	whole := bodyOf(t, r)
	const want = "9927fcb88cb51e3b95a5a9fafe1163250849147250b15b7871c9ecc60fa32902"
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(whole))); got != want {
		t.Errorf("the catalogue has changed: its SHA-256 is %s, want %s", got, want)
	}

	tests := []struct {
		field, contentRange string
		status              int
		body                string
	}{
		{"bytes=0-99", "bytes 0-99/5242880", 206, whole[:100]},
		{"bytes=2621440-2686975", "bytes 2621440-2686975/5242880", 206, whole[2621440:2686976]},
		{"bytes=-1", "bytes 5242879-5242879/5242880", 206, whole[5242879:]},
		{"bytes=5242880-", "bytes */5242880", 416, ""},
	}
	for _, tt := range tests {
		r := ask(t, o, "GET", path, "Range", tt.field)
		if r.StatusCode != tt.status {
			t.Errorf("Range: %s: status = %d, want %d", tt.field, r.StatusCode, tt.status)
		}
		wantHeader(t, r, "Content-Range", tt.contentRange)
		if body := bodyOf(t, r); tt.status == 206 && body != tt.body {
			t.Errorf("Range: %s: wrong bytes", tt.field)
		}
	}
}

func TestOrigin_Pictures(t *testing.T) {
	o := demo.New()
	for _, name := range []string{"rye", "country", "baguette", "brioche"} {
		path := "/images/" + name + ".png"
		body := bodyOf(t, ask(t, o, "GET", path))
		if len(body) < 10_000 || len(body) > 80_000 {
			t.Errorf("%s has %d bytes, want 10 to 80 KB", name, len(body))
		}
		if _, err := png.Decode(strings.NewReader(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOrigin_OvenLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := demo.New()
		start := time.Now()
		w := &pieces{ResponseRecorder: httptest.NewRecorder()}
		o.ServeHTTP(w, httptest.NewRequest("GET", "/oven-log", nil))
		if took := time.Since(start); took != 1500*time.Millisecond {
			t.Errorf("took %v, want 1.5s", took)
		}
		if w.flushes != 5 {
			t.Errorf("flushed %d times, want 5", w.flushes)
		}
		r := w.Result()
		wantHeader(t, r, "Cache-Control", "public, max-age=60")
		wantHeader(t, r, "Content-Length", "")
		if n := strings.Count(bodyOf(t, r), "<li>"); n != 5 {
			t.Errorf("the log has %d lines, want 5", n)
		}

		start = time.Now()
		testValidation(t, o, "/oven-log", r.Header.Get("ETag"))
		if took := time.Since(start); took != 1500*time.Millisecond { // the one that is not a 304
			t.Errorf("validation took %v, want 1.5s", took)
		}
	})
}

type pieces struct {
	*httptest.ResponseRecorder
	flushes int
}

func (p *pieces) Flush() { p.flushes++ }

func TestOrigin_OvenLog_ClientLeaves(t *testing.T) {
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
			t.Errorf("panic value %v: the truncated page would pass for the whole", p)
		}
	}()
	o := demo.New()
	r := httptest.NewRequest("GET", "/oven-log", nil)
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	o.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
}

func TestOrigin_Welcome(t *testing.T) {
	o := demo.New()
	tests := []struct{ accept, want string }{
		{"", "en"},
		{"de", "de"},
		{"DE", "de"},
		{"fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "fr"},
		{"de-AT", "de"},
		{"en;q=0.5, de;q=0.7", "de"},
		{"en;q=0.5,fr;q=0.7,de;q=0.6", "fr"},
		{"en, de", "en"},
		{"de, en", "de"},
		{"es, fr;q=0.1", "fr"},
		{"es", "en"},
		{"*", "en"},
		{"de;q=0", "en"},
		{"de;q=0, fr;q=0.001", "fr"},
		{"de;q=2, fr;q=0.3", "fr"},
		{"de;q=NaN, fr;q=0.3", "fr"},
		{"de ; Q = 0.2 , fr ; q=0.3", "fr"},
		{",,de", "de"},
	}
	tags := make(map[string]string)
	for _, tt := range tests {
		r := ask(t, o, "GET", "/welcome", "Accept-Language", tt.accept)
		if got := r.Header.Get("Content-Language"); got != tt.want {
			t.Errorf("Accept-Language: %s: got %s, want %s", tt.accept, got, tt.want)
		}
		wantHeader(t, r, "Vary", "Accept-Language")
		if !strings.Contains(bodyOf(t, r), `<html lang="`+tt.want+`">`) {
			t.Errorf("the page is not marked as %s", tt.want)
		}
		tags[r.Header.Get("ETag")] = tt.want
	}
	if len(tags) != 3 {
		t.Errorf("three languages have %d entity tags: %v", len(tags), tags)
	}
	r := ask(t, o, "GET", "/welcome", "Accept-Language", "en;q=0.5", "Accept-Language", "de")
	wantHeader(t, r, "Content-Language", "de")
}

func TestOrigin_Guestbook(t *testing.T) {
	o := demo.New()
	first := ask(t, o, "GET", "/guestbook")
	cookie := first.Cookies()
	if len(cookie) != 1 || cookie[0].Value != "guest-1" || cookie[0].Path != "/guestbook" || !cookie[0].HttpOnly {
		t.Fatalf("Set-Cookie = %v", first.Header["Set-Cookie"])
	}
	again := ask(t, o, "GET", "/guestbook", "Cookie", "visitor=guest-1")
	if !strings.Contains(bodyOf(t, again), "guest-1") || again.Cookies()[0].Value != "guest-1" {
		t.Error("a guest that comes back is not known")
	}
	hostile := bodyOf(t, ask(t, o, "GET", "/guestbook", "Cookie", "visitor=<script>"))
	if strings.Contains(hostile, "<script>") {
		t.Error("the cookie's value is not escaped")
	}
}

func TestOrigin_Menu(t *testing.T) {
	wantHeader(t, ask(t, demo.New(), "GET", "/menu"), "Location", "/loaves")
}

func TestOrigin_Stock(t *testing.T) {
	o := demo.New()
	type answer struct {
		RenderedAt  string `json:"rendered_at"`
		RenderCount int    `json:"render_count"`
		Loaves      []struct {
			Slug string
			Left int
		}
	}
	read := func(r *http.Response) (a answer) {
		t.Helper()
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	order := func(form string) *http.Response {
		t.Helper()
		r := httptest.NewRequest("POST", "/api/stock", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		o.ServeHTTP(w, r)
		return w.Result()
	}

	first := ask(t, o, "GET", "/api/stock")
	etag := first.Header.Get("ETag")
	a := read(first)
	if a.RenderedAt != first.Header.Get(demo.RenderedAtHeader) || a.RenderCount != 1 {
		t.Errorf("the body has the stamp %s, %d", a.RenderedAt, a.RenderCount)
	}
	if len(a.Loaves) != 4 || a.Loaves[0].Slug != "rye" || a.Loaves[0].Left != 24 {
		t.Errorf("stock = %v", a.Loaves)
	}

	sold := order("loaf=rye")
	if sold.StatusCode != http.StatusOK || sold.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("order: status %d, Cache-Control %q", sold.StatusCode, sold.Header.Get("Cache-Control"))
	}
	if o.Count("/api/stock") != 1 || o.Count("POST /api/stock") != 1 {
		t.Errorf("counted %d renderings and %d orders, want 1 and 1", o.Count("/api/stock"), o.Count("POST /api/stock"))
	}
	r := ask(t, o, "GET", "/api/stock", "If-None-Match", etag)
	if r.StatusCode != http.StatusOK || r.Header.Get("ETag") == etag {
		t.Errorf("after an order the old tag %s still holds", etag)
	}
	if left := read(r).Loaves[0].Left; left != 23 {
		t.Errorf("%d left after an order, want 23", left)
	}
	for range 23 {
		order("loaf=rye")
	}
	if left := read(ask(t, o, "GET", "/api/stock")).Loaves[0].Left; left != 24 {
		t.Errorf("%d left after the last loaf was sold, want a new batch of 24", left)
	}

	for _, form := range []string{"", "loaf=toast", "loaf=" + strings.Repeat("rye", 1000)} {
		if r := order(form); r.StatusCode != http.StatusBadRequest {
			t.Errorf("order of %.20q: status = %d, want 400", form, r.StatusCode)
		}
	}
}

func TestOrigin_OtherMethods(t *testing.T) {
	o := demo.New()
	for _, method := range []string{"POST", "PUT", "DELETE", "PURGE"} {
		r := ask(t, o, method, "/loaves")
		if r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: status = %d, Allow = %q", method, r.StatusCode, r.Header.Get("Allow"))
		}
	}
}

// TestOrigin_Links follows every link and asset of every page.
func TestOrigin_Links(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the oven log takes its time
		o := demo.New()
		reference := regexp.MustCompile(`(?:href|src|data-url)="(/[^"]*)"`)
		seen := map[string]bool{"/": true}
		for queue := []string{"/"}; len(queue) > 0; queue = queue[1:] {
			r := ask(t, o, "GET", queue[0])
			if r.StatusCode >= 400 && queue[0] != "/loaves/toast" { // the table's example of a 404
				t.Errorf("%s: status = %d", queue[0], r.StatusCode)
			}
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
				continue
			}
			for _, m := range reference.FindAllStringSubmatch(bodyOf(t, r), -1) {
				if !seen[m[1]] {
					seen[m[1]] = true
					queue = append(queue, m[1])
				}
			}
		}
		for _, path := range []string{"/loaves/rye", "/images/brioche.png", "/files/catalogue.bin", "/menu", "/oven-log"} {
			if !seen[path] {
				t.Errorf("no page links to %s", path)
			}
		}
	})
}
