package demo

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed site
var files embed.FS

// site is what is embedded: the templates of the pages, and the assets under the
// paths that they are served at.
type site struct {
	pages  *template.Template
	assets map[string]static
	paths  map[string]string // file name to path
}

// assetTypes are the content types by file name extension, so that they do not
// depend on what the machine has registered.
var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func loadSite() *site {
	s := &site{assets: make(map[string]static), paths: make(map[string]string)}
	entries, err := fs.ReadDir(files, "site/assets")
	if err != nil {
		panic("demo: the embedded site is incomplete: " + err.Error())
	}
	for _, entry := range entries {
		body, err := fs.ReadFile(files, "site/assets/"+entry.Name())
		if err != nil {
			panic("demo: the embedded site is incomplete: " + err.Error())
		}
		ext := path.Ext(entry.Name())
		at := fmt.Sprintf("/assets/%s-%s%s", strings.TrimSuffix(entry.Name(), ext), digest(body), ext)
		s.paths[entry.Name()] = at
		s.assets[at] = static{assetTypes[ext], forAssets, strongTag(body), body}
	}
	functions := template.FuncMap{"asset": func(name string) string { return s.paths[name] }}
	s.pages = template.Must(template.New("").Funcs(functions).ParseFS(files, "site/*.html"))
	return s
}

// write executes a template. The templates are ours and the tests execute each
// with the data that it gets, so an error means a writer that went away.
func (s *site) write(w io.Writer, name string, data any) {
	_ = s.pages.ExecuteTemplate(w, name, data)
}

// page is an HTML page before it is stamped.
type page struct {
	template     string
	title        string
	language     string // default: en
	status       int    // default: 200
	cacheControl string
	tagged       bool // has an entity tag
	data         any
}

// top is the data of the part of a page above its content.
type top struct{ Title, Language, Path string }

// contentSecurityPolicy: the site brings all that it uses.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'"

// show renders a page, or answers 304 if the client has its content. The entity
// tag stands for the content without the stamp.
func (o *Origin) show(w http.ResponseWriter, r *http.Request, p page) {
	var content bytes.Buffer
	o.site.write(&content, p.template, p.data)
	o.pageHeader(w, p)
	if p.tagged {
		etag := weakTag(content.Bytes())
		w.Header().Set("ETag", etag)
		if etagMatches(r, etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	stamp := o.render(w, r)

	var body bytes.Buffer
	o.site.write(&body, "top", p.top(r))
	body.Write(content.Bytes())
	o.site.write(&body, "bottom", stamp)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write(body.Bytes())
}

func (o *Origin) pageHeader(w http.ResponseWriter, p page) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("Cache-Control", p.cacheControl)
}

func (p page) top(r *http.Request) top {
	t := top{Title: p.title, Language: p.language, Path: r.URL.Path}
	if t.Language == "" {
		t.Language = "en"
	}
	return t
}

func (o *Origin) front(w http.ResponseWriter, r *http.Request) {
	data := map[string]any{"Samples": o.samples(), "Languages": languages}
	o.show(w, r, page{template: "front", title: "A bakery behind a cache", cacheControl: forPages, tagged: true, data: data})
}

func (o *Origin) loaves(w http.ResponseWriter, r *http.Request) {
	o.show(w, r, page{template: "loaves", title: "Our loaves", cacheControl: forPages, tagged: true, data: loaves})
}

func (o *Origin) loaf(w http.ResponseWriter, r *http.Request) {
	l, ok := findLoaf(r.PathValue("slug"))
	if !ok {
		o.missing(w, r)
		return
	}
	o.show(w, r, page{template: "loaf", title: l.Name, cacheControl: forPages, tagged: true, data: l})
}

// menu is the old address of the loaves.
func (o *Origin) menu(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", forMoved)
	o.render(w, r)
	http.Redirect(w, r, "/loaves", http.StatusMovedPermanently)
}

// welcome is written in the visitor's language.
func (o *Origin) welcome(w http.ResponseWriter, r *http.Request) {
	g := greetings[chooseLanguage(r.Header)]
	w.Header().Set("Vary", "Accept-Language")
	w.Header().Set("Content-Language", g.Language)
	o.show(w, r, page{template: "welcome", title: g.Title, language: g.Language, cacheControl: forPages, tagged: true, data: g})
}

// guestbook knows its visitors by a cookie: a response that sets one must not be
// given to anybody else, whatever its Cache-Control says.
func (o *Origin) guestbook(w http.ResponseWriter, r *http.Request) {
	visitor := "guest-" + strconv.Itoa(o.Count(r.URL.Path)+1)
	if c, err := r.Cookie("visitor"); err == nil {
		visitor = c.Value
	}
	http.SetCookie(w, &http.Cookie{Name: "visitor", Value: visitor, Path: "/guestbook", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	o.show(w, r, page{template: "guestbook", title: "Guest book", cacheControl: forPages, data: visitor})
}

// account is for one person's eyes.
func (o *Origin) account(w http.ResponseWriter, r *http.Request) {
	o.show(w, r, page{template: "account", title: "Your account", cacheControl: forOne})
}

func (o *Origin) missing(w http.ResponseWriter, r *http.Request) {
	o.show(w, r, page{template: "missing", title: "We do not bake that", status: http.StatusNotFound, cacheControl: forMissing, data: r.URL.Path})
}

// logEntry is a line of the oven log.
type logEntry struct{ Time, Text string }

var ovenLog = []logEntry{
	{"03:00", "Oven lit. 280 °C expected by half past four."},
	{"03:20", "Rye out of the cold room, shaped, into the baskets."},
	{"04:35", "Country loaves in. Steam for ten minutes."},
	{"05:15", "Country loaves out: deep brown, 97 °C inside."},
	{"05:40", "Rye on the shelf. Baguettes cut, five strokes each."},
}

// logPause is how long the oven log takes over each line: 1.5 s for the page.
const logPause = 300 * time.Millisecond

// ovenLog is the slow page: it is sent line by line, with no length in front.
func (o *Origin) ovenLog(w http.ResponseWriter, r *http.Request) {
	p := page{title: "Oven log", cacheControl: forSlow}
	etag := weakTag(fmt.Append(nil, ovenLog))
	o.pageHeader(w, p)
	w.Header().Set("ETag", etag)
	if etagMatches(r, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	stamp := o.render(w, r)
	if r.Method == http.MethodHead {
		return
	}
	out := http.NewResponseController(w)
	o.site.write(w, "top", p.top(r))
	o.site.write(w, "log-begin", nil)
	for _, entry := range ovenLog {
		_ = out.Flush()
		select {
		case <-time.After(logPause):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // what was sent must not pass for the whole page
		}
		o.site.write(w, "log-entry", entry)
	}
	o.site.write(w, "log-end", nil)
	o.site.write(w, "bottom", stamp)
}
