package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// loaf is one product.
type loaf struct {
	Slug  string
	Name  string
	Grams int
	Cents int
	Note  string
}

// Price is in euros.
func (l loaf) Price() string { return fmt.Sprintf("€%d.%02d", l.Cents/100, l.Cents%100) }

// Image is the path of the loaf's picture.
func (l loaf) Image() string { return "/images/" + l.Slug + ".png" }

// range of products, in the order of the shelf.
var loaves = []loaf{
	{"rye", "Dark rye", 1000, 540, "Three-stage sourdough and nothing lighter than whole rye. Better on the second day, and good for eight."},
	{"country", "Country loaf", 750, 490, "Wheat with a fifth of spelt, eighteen hours in the cold. A crust that talks while it cools."},
	{"baguette", "Baguette", 250, 160, "Flour, water, salt, a little yeast, five cuts. At its best for an hour; it has a short max-age."},
	{"brioche", "Brioche", 400, 620, "As much butter as the dough will take. Baked on Fridays, gone on Fridays."},
}

func findLoaf(slug string) (loaf, bool) {
	i := slices.IndexFunc(loaves, func(l loaf) bool { return l.Slug == slug })
	if i < 0 {
		return loaf{}, false
	}
	return loaves[i], true
}

// batch is how many of a kind come out of the oven at a time.
const batch = 24

// shop is what changes: how many loaves are left.
type shop struct {
	mu   sync.Mutex
	left map[string]int // by slug, guarded by mu
}

func (s *shop) open() {
	s.left = make(map[string]int)
	for _, l := range loaves {
		s.left[l.Slug] = batch
	}
}

// sell takes one loaf off the shelf and, when it was the last, bakes a new batch.
func (s *shop) sell(slug string) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[slug]--
	if s.left[slug] == 0 {
		s.left[slug] = batch
	}
	return s.left[slug]
}

// stockItem is a line of the API's answer.
type stockItem struct {
	Slug  string `json:"slug"`
	Name  string `json:"name"`
	Cents int    `json:"cents"`
	Left  int    `json:"left"`
}

func (s *shop) items() []stockItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := make([]stockItem, 0, len(loaves))
	for _, l := range loaves {
		items = append(items, stockItem{l.Slug, l.Name, l.Cents, s.left[l.Slug]})
	}
	return items
}

// stock is the JSON API: what is left on the shelf. Its tag stands for the stock
// alone, so it stays the same until somebody orders.
func (o *Origin) stock(w http.ResponseWriter, r *http.Request) {
	items := o.shop.items()
	content, err := json.Marshal(items)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", forStock)
	h.Set("ETag", weakTag(content))
	if etagMatches(r, weakTag(content)) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s := o.render(w, r)
	writeJSON(w, map[string]any{"rendered_at": s.At, "render_count": s.Count, "loaves": items})
}

// order sells one loaf. Because it is a POST to the URL of the stock, a cache in
// front drops what it holds of the stock (RFC 9111 section 4.4).
func (o *Origin) order(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	w.Header().Set("Cache-Control", forNobody)
	l, ok := findLoaf(r.PostFormValue("loaf"))
	if !ok {
		http.Error(w, "the form field loaf must name one of our loaves", http.StatusBadRequest)
		return
	}
	left := o.shop.sell(l.Slug)
	s := o.render(w, r)
	writeJSON(w, map[string]any{"rendered_at": s.At, "render_count": s.Count, "sold": l.Slug, "left": left})
}

func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}
