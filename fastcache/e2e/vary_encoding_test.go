package e2e

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gzipped is s in the content coding gzip.
func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

// decoded is the body without its content coding, which must be gzip or none.
func (r *response) decoded(t *testing.T) string {
	t.Helper()
	switch codings := r.Header.Values("Content-Encoding"); {
	case len(codings) == 0:
		return r.body
	case len(codings) == 1 && codings[0] == "gzip":
		z, err := gzip.NewReader(strings.NewReader(r.body))
		if err != nil {
			t.Errorf("Content-Encoding is gzip, the body is not: %v", err)
			return r.body
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Error(err)
		}
		return string(plain)
	default:
		t.Errorf("Content-Encoding %q", codings)
		return r.body
	}
}

// gzipClients are the values of Accept-Encoding, "-" for none, and whether the
// client understands gzip.
var gzipClients = []struct {
	accept string
	gzip   bool
}{
	{"gzip, deflate, br, zstd", true},
	{"gzip, deflate, br", true},
	{"br;q=1.0, gzip;q=0.8", true},
	{"gzip", true},
	{"GZIP", true},
	{"identity", false},
	{"-", false},
	{"gzip;q=0", false},
}

func acceptEncoding(value string) []string {
	if value == "-" {
		return nil
	}
	return []string{"Accept-Encoding: " + value}
}

// H02: one page, one copy per browser.
func TestH02_OneCopyACoding(t *testing.T) {
	page := testBody("H02", 5000)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		accept := strings.ToLower(r.Header.Get("Accept-Encoding"))
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Accept-Encoding")
		w.Header().Set("Content-Type", "text/html")
		if strings.Contains(accept, "gzip") && !strings.Contains(accept, "gzip;q=0") || strings.Contains(accept, "gzip;q=0.8") {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, gzipped(page))
			return
		}
		_, _ = io.WriteString(w, page)
	})
	c := start(t, site(o))
	n := len(gzipClients)
	forward := make([]int, n)
	for i := range forward {
		forward[i] = i
	}
	backward := slices.Clone(forward)
	slices.Reverse(backward)
	for name, order := range map[string][]int{
		"a_forward":  forward,
		"b_backward": backward,
		"c_mixed":    {2, 5, 4, 7, 0, 6, 3, 1},
		"d_mixed":    {6, 4, 2, 0, 1, 3, 5, 7},
	} {
		t.Run(name, func(t *testing.T) {
			before := o.asked()
			for range 2 {
				for _, i := range order {
					client := gzipClients[i]
					r := c.get("/"+name, acceptEncoding(client.accept)...)
					if got := r.decoded(t); r.StatusCode != 200 || got != page {
						t.Errorf("%q: %d, %d bytes", client.accept, r.StatusCode, len(got))
					}
					if coding := r.Header.Get("Content-Encoding"); coding != "" && !client.gzip {
						t.Errorf("%q got the coding %q", client.accept, coding)
					}
					if r.Header.Get("Vary") != "Accept-Encoding" {
						t.Errorf("%q: Vary %q", client.accept, r.Header.Get("Vary"))
					}
				}
			}
			if n := o.asked() - before; n > 2 {
				t.Errorf("%d fetches for 2 forms of one page", n)
			}
			// They are one URL's: one purge takes both.
			c.do("PURGE", "/"+name).want(t, 200, "{\"purged\":2}\n")
		})
	}
}

// H02 for languages: spelling does not make variants, preference does.
func TestH02_LanguagesByMeaning(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		language := "en"
		if strings.HasPrefix(strings.ToLower(r.Header.Get("Accept-Language")), "de") {
			language = "de"
		}
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Accept-Language")
		w.Header().Set("Content-Language", language)
		_, _ = io.WriteString(w, language)
	})
	c := start(t, site(o))
	for _, accept := range []string{"de-DE, de;q=0.9, en;q=0.5", "de-DE,de;q=0.90,en;q=0.500", "DE-de,DE;q=0.9 , EN;q=0.5"} {
		c.get("/", "Accept-Language: "+accept).want(t, 200, "de")
	}
	o.wantAsked(t, 1)
	c.get("/", "Accept-Language: en, de;q=0.1").want(t, 200, "en")
	c.get("/", "Accept-Language: en,de;q=0.1").want(t, 200, "en").wantStatus(t, "fastcache; hit")
	c.get("/", "Accept-Language: de-DE, de;q=0.9, en;q=0.5").want(t, 200, "de").wantStatus(t, "fastcache; hit")
	o.wantAsked(t, 2)
}

// H06: encode on either side of the cache.
func TestH06_Encode(t *testing.T) {
	text := testBody("H06", 5000)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("ETag", `"v"`)
		if r.URL.Path == "/coded" && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Vary", "Accept-Encoding")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, gzipped(text))
			return
		}
		if r.URL.Path == "/coded" {
			w.Header().Set("Vary", "Accept-Encoding")
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text)
	})
	cache := "fastcache {\n\t\t\tpath {dir}/cache\n\t\t}\n"
	proxy := "reverse_proxy " + o.addr() + "\n"
	for _, tc := range []struct {
		name, config string
		fetches      int
	}{
		{"a_outside", "route {\n\t\tencode gzip\n\t\t" + cache + proxy + "}\n", 1},
		{"b_inside", "route {\n\t\t" + cache + "encode gzip\n\t\t" + proxy + "}\n", 2},
		{"c_default_order", cache + "encode gzip\n" + proxy, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, "http://:{port} {\n\t"+tc.config+"}\n")
			for _, order := range [][]string{{"gzip", "-", "gzip", "gzip, br"}, {"-", "gzip", "-", "gzip;q=0"}} {
				for _, path := range []string{"/plain", "/coded"} {
					before := o.asked()
					var etag [2]string
					for i, accept := range order {
						r := c.get(path, acceptEncoding(accept)...)
						if got := r.decoded(t); r.StatusCode != 200 || got != text {
							t.Errorf("%s %q: %d, %d bytes", path, accept, r.StatusCode, len(got))
						}
						wants := accept == "gzip" || accept == "gzip, br"
						coding := r.Header.Get("Content-Encoding")
						if wants != (coding == "gzip") {
							t.Errorf("%s %q: Content-Encoding %q", path, accept, coding)
						}
						// Encode adds its Vary only where it encodes; what
						// varied at the origin says so to everybody.
						if (wants || path == "/coded") && !slices.Contains(r.Header.Values("Vary"), "Accept-Encoding") {
							t.Errorf("%s %q: Vary %q", path, accept, r.Header.Values("Vary"))
						}
						if r.ContentLength >= 0 && r.ContentLength != int64(len(r.body)) {
							t.Errorf("%s %q: Content-Length %d, %d bytes", path, accept, r.ContentLength, len(r.body))
						}
						if i < 2 {
							etag[i] = r.Header.Get("ETag")
						} else if r.Header.Get("ETag") != etag[i%2] && i == 2 {
							t.Errorf("%s %q: ETag %q on the first, %q on the second response", path, accept, etag[i%2], r.Header.Get("ETag"))
						}
					}
					// Each form's own validator makes a 304, out of the store.
					for i, accept := range order[:2] {
						c.get(path, append(acceptEncoding(accept), "If-None-Match: "+etag[i])...).want(t, 304, "").wantStatus(t, "fastcache; hit")
					}
					most := tc.fetches
					if path == "/coded" {
						most = 2
					}
					if n := o.asked() - before; n > most {
						t.Errorf("%s in the order %q: %d fetches, want %d at most", path, order, n, most)
					}
					c.do("PURGE", path)
				}
			}
		})
	}
}
