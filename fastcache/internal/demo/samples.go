package demo

import "net/http"

// sample is a row of the front page's table: a request that its script makes
// through the cache.
type sample struct {
	ID     string // the row's data-row, which browser tests use
	Name   string
	URL    string
	Policy string // what the response says about caching, in short

	Method   string // default: GET
	Range    string // the Range field to send
	Language bool   // lets the visitor choose the Accept-Language to send
	After    string // the row to wait for when all are asked
	Body     string // form data to send
	Manual   string // the label of the button that asks; never asked unbidden
}

func (o *Origin) samples() []sample {
	return []sample{
		{ID: "front", Name: "This page", URL: "/", Policy: forPages},
		{ID: "loaves", Name: "Our loaves", URL: "/loaves", Policy: forPages},
		{ID: "style", Name: "Stylesheet", URL: o.site.paths["site.css"], Policy: "max-age of a year, immutable"},
		{ID: "image", Name: "Picture", URL: "/images/rye.png", Policy: forMedia},
		{ID: "stock", Name: "Stock, from the JSON API", URL: "/api/stock", Policy: forStock + ", ETag"},
		{ID: "slow", Name: "Oven log, slow to render", URL: "/oven-log", Policy: forSlow + ", no length"},
		{ID: "language", Name: "Welcome, in your language", URL: "/welcome", Policy: forPages + ", Vary", Language: true},
		{ID: "file", Name: "Catalogue, 5 MiB", URL: cataloguePath, Policy: forMedia},
		{ID: "range", Name: "64 KiB out of the middle", URL: cataloguePath, Policy: "Range: " + sampleRange, Range: sampleRange, After: "file"},
		{ID: "missing", Name: "A loaf that we do not bake", URL: "/loaves/toast", Policy: "404, " + forMissing},
		{ID: "cookie", Name: "Guest book, sets a cookie", URL: "/guestbook", Policy: forPages + ", Set-Cookie"},
		{ID: "account", Name: "Your account", URL: "/account", Policy: forOne},
		{ID: "order", Name: "Order a rye loaf", URL: "/api/stock", Policy: "POST: not cached, and drops the stored stock", Method: http.MethodPost, Body: "loaf=rye", Manual: "Order"},
	}
}
