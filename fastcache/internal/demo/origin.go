// Package demo is the site behind fastcache's demonstration: a small bakery whose
// pages differ in what a cache may do with them. Every response says when the
// origin rendered it and how often it has done so, which shows a visitor, or a
// test, whether the origin was asked.
package demo

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Header fields that every rendered response carries. A 304 does not: nothing was
// rendered for it, and a cache that got one keeps those of what it has.
const (
	// RenderedAtHeader is the time of rendering, in the form of TimeFormat.
	RenderedAtHeader = "X-Rendered-At"
	// RenderCountHeader counts the renderings of this path, the first is 1.
	RenderCountHeader = "X-Render-Count"
)

// TimeFormat is RFC 3339 with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// What the site tells caches about its responses. The short times let a visitor
// see a response grow stale without waiting for it.
const (
	forPages   = "public, max-age=30"
	forStock   = "public, max-age=5"
	forSlow    = "public, max-age=60"
	forMissing = "public, max-age=10"
	forMoved   = "public, max-age=300"
	forMedia   = "public, max-age=3600"
	forAssets  = "public, max-age=31536000, immutable" // their names change with their content
	forOne     = "private, no-store"
	forNobody  = "no-store"
)

// Origin is the demo site. It is safe for concurrent use; make one with New.
type Origin struct {
	mux   *http.ServeMux
	site  *site             // immutable after New
	media map[string]static // by path; immutable after New
	shop  shop

	mu      sync.Mutex
	renders map[string]int // by path, guarded by mu
}

// New makes the site. The first call in a process also draws the pictures and
// fills the catalogue, which takes some tenths of a second and 5 MiB of memory.
// The content is the same each time.
func New() *Origin {
	o := &Origin{
		mux:     http.NewServeMux(),
		site:    loadSite(),
		media:   makeMedia(),
		renders: make(map[string]int),
	}
	o.shop.open()

	o.mux.HandleFunc("GET /{$}", o.front)
	o.mux.HandleFunc("GET /loaves", o.loaves)
	o.mux.HandleFunc("GET /loaves/{slug}", o.loaf)
	o.mux.HandleFunc("GET /menu", o.menu)
	o.mux.HandleFunc("GET /oven-log", o.ovenLog)
	o.mux.HandleFunc("GET /welcome", o.welcome)
	o.mux.HandleFunc("GET /guestbook", o.guestbook)
	o.mux.HandleFunc("GET /account", o.account)
	o.mux.HandleFunc("GET /api/stock", o.stock)
	o.mux.HandleFunc("POST /api/stock", o.order)
	o.mux.HandleFunc("GET /assets/", o.asset)
	o.mux.HandleFunc("GET /images/", o.medium)
	o.mux.HandleFunc("GET /files/", o.medium)
	o.mux.HandleFunc("GET /", o.missing)
	return o
}

// ServeHTTP implements http.Handler.
func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	o.mux.ServeHTTP(w, r)
}

// Count is how often the response of a path was rendered. A 304 is no rendering;
// an answer to HEAD or to a range request is one. Answers to POST count apart,
// under "POST " and the path.
func (o *Origin) Count(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.renders[path]
}

// stamp says when a response was rendered.
type stamp struct {
	At    string
	Count int
}

// render counts a rendering and puts its stamp into the header.
func (o *Origin) render(w http.ResponseWriter, r *http.Request) stamp {
	key := r.URL.Path
	if r.Method == http.MethodPost {
		key = "POST " + key
	}
	o.mu.Lock()
	o.renders[key]++
	s := stamp{At: time.Now().UTC().Format(TimeFormat), Count: o.renders[key]}
	o.mu.Unlock()

	w.Header().Set(RenderedAtHeader, s.At)
	w.Header().Set(RenderCountHeader, strconv.Itoa(s.Count))
	return s
}

// static is a response that never changes.
type static struct {
	contentType  string
	cacheControl string
	etag         string
	body         []byte
}

// serveStatic answers whole, with a part, or with 304.
func (o *Origin) serveStatic(w http.ResponseWriter, r *http.Request, s static) {
	h := w.Header()
	h.Set("Content-Type", s.contentType)
	h.Set("Cache-Control", s.cacheControl)
	h.Set("ETag", s.etag)
	if !etagMatches(r, s.etag) {
		o.render(w, r)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.body))
}

// medium serves a picture or the catalogue.
func (o *Origin) medium(w http.ResponseWriter, r *http.Request) {
	m, ok := o.media[r.URL.Path]
	if !ok {
		o.missing(w, r)
		return
	}
	o.serveStatic(w, r, m)
}

// asset serves a stylesheet, script or drawing under its name with a hash.
func (o *Origin) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := o.site.assets[r.URL.Path]
	if !ok {
		o.missing(w, r)
		return
	}
	o.serveStatic(w, r, a)
}

// Interface guard
var _ http.Handler = (*Origin)(nil)
