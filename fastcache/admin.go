package fastcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// maxPurgeBody bounds the body of a purge, in bytes.
const maxPurgeBody = 1 << 20

func init() { caddy.RegisterModule(adminAPI{}) }

// adminAPI is the module admin.api.fastcache: endpoints of Caddy's admin API, under
// the access control of that. They work on the stores that instances of the
// handler have open, on each store once.
//
//	GET    /fastcache/keys   list what is stored: keys.go
//	DELETE /fastcache/purge  drop it, or mark it stale
type adminAPI struct{}

// CaddyModule implements caddy.Module.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.fastcache",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Provision implements caddy.Provisioner: the admin endpoint's metrics are those of
// its own configuration, which may have no cache or fail before it has one.
func (adminAPI) Provision(ctx caddy.Context) error { return exportMetrics(ctx.GetMetricsRegistry()) }

// Routes implements caddy.AdminRouter.
func (adminAPI) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/fastcache/keys", Handler: caddy.AdminHandlerFunc(serveKeys)},
		{Pattern: "/fastcache/purge", Handler: caddy.AdminHandlerFunc(servePurge)},
	}
}

// servePurge answers DELETE /fastcache/purge. POST means the same, for clients and
// proxies that send no body with DELETE (RFC 9110 section 9.3.5).
func servePurge(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodDelete && r.Method != http.MethodPost {
		return notAllowed(w, "DELETE, POST")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPurgeBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return adminError(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxPurgeBody)
		}
		return adminError(http.StatusBadRequest, "reading the body: %v", err)
	}
	p, err := parsePurge(body)
	if err != nil {
		return adminError(http.StatusBadRequest, "%v", err)
	}
	n, err := p.run(r.Context(), openStores())
	var apiErr caddy.APIError
	if errors.As(err, &apiErr) {
		return apiErr
	}
	log := caddy.Log().Named("admin.api.fastcache").With(zap.String("by", p.by), zap.Bool("soft", p.Soft), zap.Int("purged", n))
	switch {
	case errors.Is(err, context.Canceled):
		log.Warn("purge cut short: the client has left") // there is nobody to answer
		return nil
	case err != nil:
		log.Error("purge failed", zap.Error(err))
		return adminError(http.StatusServiceUnavailable, "%d purged, then: %v", n, err)
	}
	log.Info("purged")
	w.Header().Set("Content-Type", "application/json")
	_, err = fmt.Fprintf(w, "{\"purged\":%d}\n", n)
	return err
}

// purgeRequest is the body of a purge. One selector is given: URL, Prefix, Pattern,
// Tag, Tags, Groups or All.
type purgeRequest struct {
	URL     *string  `json:"url"`     // of a response, under every scheme and port of its host
	Prefix  *string  `json:"prefix"`  // see matchPrefix
	Pattern *string  `json:"pattern"` // RE2, to be found anywhere in the key
	Tag     *string  `json:"tag"`
	Tags    []string `json:"tags"`   // of which a response has any
	Groups  []string `json:"groups"` // of which a response of Origin has any
	Origin  string   `json:"origin"`
	All     bool     `json:"all"`

	Soft bool    `json:"soft"` // mark stale instead of dropping
	Name *string `json:"name"` // only in stores that an instance of this name uses

	by  string    // the selector that is given
	sel selection // what it says; for a URL what the key is depends on the instance
}

// parsePurge decodes and checks the body of a purge. What is empty is refused: a
// variable that was not set must not purge everything.
func parsePurge(body []byte) (*purgeRequest, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("the body is not UTF-8")
	}
	p := new(purgeRequest)
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, fmt.Errorf(`the body has to be an object such as {"pattern": "/static/"}: %w`, err)
	}
	if _, err := dec.Token(); err != io.EOF { //nolint:errorlint // as Token promises
		return nil, errors.New("something follows the object in the body")
	}
	selectors := []struct {
		name  string
		given bool
		parse func() error
	}{
		{"url", p.URL != nil, p.byURL},
		{"prefix", p.Prefix != nil, p.byPrefix},
		{"pattern", p.Pattern != nil, p.byPattern},
		{"tag", p.Tag != nil, p.byTag},
		{"tags", p.Tags != nil, p.byTags},
		{"groups", p.Groups != nil, p.byGroups},
		{"all", p.All, p.byAll},
	}
	var parse func() error
	for _, s := range selectors {
		if s.given && p.by != "" {
			return nil, fmt.Errorf("%s and %s cannot be given together", p.by, s.name)
		}
		if s.given {
			p.by, parse = s.name, s.parse
		}
	}
	switch {
	case parse == nil:
		return nil, errors.New("nothing says what to purge: url, prefix, pattern, tag, tags, groups or all")
	case p.Origin != "" && p.Groups == nil:
		return nil, errors.New("origin goes with groups only")
	}
	if err := parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.by, err)
	}
	return p, nil
}

var errEmpty = errors.New(`empty; to purge everything, say {"all": true}`)

func (p *purgeRequest) byURL() error {
	if _, ok := new(FastCache).keyOfURL(context.Background(), *p.URL, nil); !ok {
		return fmt.Errorf("%q is not the URL of anything that can be cached; it begins with scheme and host, as in https://example.com/a?b, and has no fragment", *p.URL)
	}
	return nil
}

func (p *purgeRequest) byPrefix() error {
	if *p.Prefix == "" {
		return errEmpty
	}
	p.sel.match = matchPrefix(*p.Prefix)
	return nil
}

func (p *purgeRequest) byPattern() error {
	if *p.Pattern == "" {
		return errEmpty
	}
	re, err := regexp.Compile(*p.Pattern)
	if err != nil {
		return err
	}
	p.sel.match = re.MatchString
	return nil
}

func (p *purgeRequest) byTag() error {
	p.Tags = []string{*p.Tag}
	return p.byTags()
}

func (p *purgeRequest) byTags() error {
	if len(p.Tags) == 0 || slices.Contains(p.Tags, "") {
		return errors.New("empty")
	}
	p.sel.labels = tagLabels(p.Tags)
	return nil
}

func (p *purgeRequest) byGroups() error {
	if len(p.Groups) == 0 {
		return errors.New("empty")
	}
	if p.Origin == "" {
		return errors.New("origin is missing: a group is one of an origin, such as https://example.com")
	}
	scheme, host, _ := strings.Cut(p.Origin, "://")
	target, ok := rfc9111.AppendTarget(nil, scheme, strings.TrimSuffix(host, "/"), "/")
	if !ok || scheme != "http" && scheme != "https" {
		return fmt.Errorf("a group is one of an origin, such as https://example.com, and %q is none", p.Origin)
	}
	p.sel.labels = groupLabels(rfc9111.OriginOf(string(target)), p.Groups)
	return nil
}

func (p *purgeRequest) byAll() error {
	p.sel.match = func(string) bool { return true }
	return nil
}

// run purges in every store that the request means, and in each once. With an
// error it returns how many responses it had purged until then.
func (p *purgeRequest) run(ctx context.Context, stores []*sharedStore) (purged int, err error) {
	if p.Prefix != nil && !canBePrefix(*p.Prefix, stores) {
		return 0, adminError(http.StatusBadRequest, "prefix: no key begins with %q: say where it begins, with scheme and host (https://example.com/a) or with a path (/a)", *p.Prefix)
	}
	found := p.Name == nil
	for _, s := range stores {
		users := s.instances()
		if p.Name != nil {
			users = slices.DeleteFunc(users, func(fc *FastCache) bool { return fc.Name != *p.Name })
		}
		if len(users) == 0 {
			continue
		}
		found = true
		sel := p.sel
		if p.URL != nil {
			sel.keys = keysOfURL(users, *p.URL)
		}
		n, err := sel.purge(ctx, s, p.Soft, store.Purged)
		purged += n
		if err != nil {
			return purged, err
		}
	}
	if !found {
		return 0, errNoInstance(*p.Name)
	}
	return purged, nil
}

// canBePrefix reports whether a key may begin so: without a cache_key template, keys
// are URLs.
func canBePrefix(prefix string, stores []*sharedStore) bool {
	if _, _, isURL := cutURL(prefix); isURL || strings.HasPrefix(prefix, "/") {
		return true
	}
	return slices.ContainsFunc(stores, func(s *sharedStore) bool {
		return slices.ContainsFunc(s.instances(), func(fc *FastCache) bool { return fc.CacheKey != "" })
	})
}

// keysOfURL returns the keys that a URL has for the instances of a store: their
// query rules and templates may differ.
func keysOfURL(instances []*FastCache, url string) []string {
	var keys []string
	for _, fc := range instances {
		if key, ok := fc.keyOfURL(context.Background(), url, nil); ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func errNoInstance(name string) error {
	return adminError(http.StatusNotFound, "no fastcache that stores anything has the name %q", name)
}

func notAllowed(w http.ResponseWriter, allow string) error {
	w.Header().Set("Allow", allow)
	return adminError(http.StatusMethodNotAllowed, "this endpoint takes %s", allow)
}

// maxAdminError bounds what an error repeats of the request, in bytes.
const maxAdminError = 400

// adminError is an error that Caddy's admin API answers with {"error": "..."}.
func adminError(status int, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxAdminError {
		text = strings.ToValidUTF8(text[:maxAdminError], "") + "..."
	}
	return caddy.APIError{HTTPStatus: status, Err: errors.New(text)}
}

// Interface guards
var (
	_ caddy.Module      = adminAPI{}
	_ caddy.Provisioner = adminAPI{}
	_ caddy.AdminRouter = adminAPI{}
)
