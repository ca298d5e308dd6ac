package fastcache

import (
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"
	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/hotset-go/hotset/fastcache/internal/flight"
	"github.com/hotset-go/hotset/fastcache/internal/rfc9111"
	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// Defaults of the options.
const (
	defaultPath              = "/var/cache/fastcache"
	defaultMemorySize        = "64MB"
	defaultDiskSize          = "1GB"
	defaultTTL               = "1h"
	defaultHeuristicMax      = "24h"
	defaultPromoteBelow      = "16KB"
	defaultRevalidateTimeout = "30s"
	defaultMaxVariants       = 64
)

func init() {
	caddy.RegisterModule(new(FastCache))
	httpcaddyfile.RegisterHandlerDirective("fastcache", parseCaddyfile)
	// After authentication and the responders that turn clients away, so that
	// a cached URL is not a way around them; inside encode, so that the bodies
	// stored are the origin's.
	httpcaddyfile.RegisterDirectiveOrder("fastcache", httpcaddyfile.Before, "reverse_proxy")
}

// FastCache is the handler module http.handlers.fastcache: it answers GET and
// HEAD requests from its store and stores the responses of the handlers behind
// it. Several instances may stand in one configuration. Those with the same path
// share one store, whose budgets are the largest of theirs.
//
// Sizes are a number of bytes or a number with a unit (64MB = 64,000,000 bytes,
// 64MiB = 67,108,864). Durations are those of Caddy (90s, 1h30m, 7d).
type FastCache struct {
	// Directory of the disk tier. It is created when missing and belongs to
	// the cache: fastcache deletes files of its own that it cannot use, and
	// leaves others alone. Default: /var/cache/fastcache. Not used when
	// disk_size is 0, except that a configured path keeps a RAM-only cache
	// through a reload of the configuration.
	Path string `json:"path,omitempty"`

	// Name of this instance in logs and metrics. Default: none.
	Name string `json:"name,omitempty"`

	// Budget of the RAM tier, which holds small bodies and the header fields
	// of recently used responses. 0 means that bodies are served from disk
	// only. Default: 64MB.
	MemorySize string `json:"memory_size,omitempty"`

	// Budget of the disk tier, counted in blocks of 4 KiB. 0 means that
	// nothing is written to disk: what does not fit in memory is not cached,
	// and nothing survives a restart. Default: 1GB.
	DiskSize string `json:"disk_size,omitempty"`

	// Largest body to store. 0 means any that fits the budgets. Default: 0.
	MaxBodySize string `json:"max_body_size,omitempty"`

	// Most responses to hold. 0 means as many as the budgets allow. Default: 0.
	MaxItems int `json:"max_items,omitempty"`

	// Most variants (responses that differ by Vary) to hold of one URL; the
	// least recently used one makes room. Default: 64.
	MaxVariants int `json:"max_variants,omitempty"`

	// How long a response stays fresh that says nothing about it itself (no
	// s-maxage, max-age, Expires and no Last-Modified to judge by). It never
	// applies to a request with a Cookie field, unless cache_key names the
	// cookie. 0 means that such responses are not stored. Default: 1h.
	TTL string `json:"ttl,omitempty"`

	// Upper bound of the freshness that is estimated from Last-Modified (10 %
	// of the time since, RFC 9111 section 4.2.2). Default: 24h.
	HeuristicMax string `json:"heuristic_max,omitempty"`

	// How long after its end of freshness a response without a directive of
	// its own is still served at once, while one request refreshes it in the
	// background (RFC 5861). Default: 0, off.
	StaleWhileRevalidate string `json:"stale_while_revalidate,omitempty"`

	// How long after its end of freshness a response without a directive of
	// its own may answer when the origin fails: no connection, or status 500,
	// 502, 503, 504 (RFC 5861). While one request finds out whether it does,
	// others get the stale response at once, within this time. Default: 0, off.
	StaleIfError string `json:"stale_if_error,omitempty"`

	// Upper bounds of freshness by status code; they cap even what a response
	// says itself. 0 means that the status is not stored. Default: none.
	StatusTTL map[int]string `json:"status_ttl,omitempty"`

	// Longest time to wait for the origin when a stored response is
	// validated. 0 means no bound. Default: 30s.
	RevalidateTimeout string `json:"revalidate_timeout,omitempty"`

	// The cache key as a template of Caddy placeholders, instead of scheme,
	// host and original request URI. Requests with equal keys get the same
	// response, so name whatever the origin tells apart. Placeholders that the
	// map directive sets can be named through vars.
	CacheKey string `json:"cache_key,omitempty"`

	// Order the parameters of the query by name, for the key and for the
	// request to the origin. Default: off.
	QuerySort bool `json:"query_sort,omitempty"`

	// Names of query parameters to drop, from the key and from the request to
	// the origin; a name that ends in * stands for all that begin so.
	// Default: none.
	QueryIgnore []string `json:"query_ignore,omitempty"`

	// Let a fresh response answer for other queries of its path as well, as far
	// as its No-Vary-Search field says that they do not matter
	// (draft-ietf-httpbis-no-vary-search-04). A miss then costs one more look
	// into the store. Not together with cache_key. Default: off.
	NoVarySearch bool `json:"no_vary_search,omitempty"`

	// Store only responses whose header field is exactly one of the values; with
	// several fields, all must. Default: none.
	MatchHeaders map[string][]string `json:"match_headers,omitempty"`

	// The only header fields by which stored responses may vary. A response
	// whose Vary names another one is not stored. Default: every field may.
	Vary []string `json:"vary,omitempty"`

	// Do not note on hits that a response was used; eviction is then in order
	// of storing. Default: off.
	DisableTouchOnHit bool `json:"disable_touch_on_hit,omitempty"`

	// Addresses and CIDR ranges of the peers that may send PURGE requests;
	// private_ranges stands for all private ones. It is the peer of the
	// connection that counts, never X-Forwarded-For. Default: loopback only.
	PurgeAllow []string `json:"purge_allow,omitempty"`

	// Obey the Cache-Control and Pragma fields of requests (RFC 9111 section
	// 5.2.1). Any client can then make the cache ask the origin. Default: off.
	HonorRequestCC bool `json:"honor_request_cache_control,omitempty"`

	// Largest body to hold in RAM while it is also on disk; larger ones are
	// sent from disk. 0 means none. Default: 16KB.
	PromoteBelow string `json:"promote_below,omitempty"`

	// Store responses that carry Set-Cookie. Every later client gets the same
	// cookie: only for origins where that is safe. Default: off.
	StoreSetCookie bool `json:"store_set_cookie,omitempty"`

	// Add the cache key to Cache-Status. Default: off.
	CacheStatusKey bool `json:"cache_status_key,omitempty"`

	keyTemplate       string // CacheKey as it is evaluated
	policy            rfc9111.Policy
	query             *rfc9111.QueryRules // nil: the query stays as it is
	revalidateTimeout time.Duration
	purgeAllow        []netip.Prefix // nil: loopback only
	off               bool           // both budgets are 0: a pass-through
	accessLog         bool           // the server may write an access log
	left              bool           // Cleanup has run

	tally   *tally // shared with instances of the same name
	lease   *lease
	store   *store.Store
	flights *flight.Group

	equivalents *equivalents // of the store; nil: no_vary_search is off

	logger *zap.Logger
	now    func() time.Time
}

// CaddyModule implements caddy.Module.
func (*FastCache) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.fastcache",
		New: func() caddy.Module { return new(FastCache) },
	}
}

// Provision implements caddy.Provisioner: it checks every option and opens the
// store, or joins the one that is open at the same path.
func (fc *FastCache) Provision(ctx caddy.Context) error {
	fc.logger = ctx.Logger()
	if fc.Name != "" {
		fc.logger = fc.logger.With(zap.String("name", fc.Name))
	}
	if fc.now == nil { // tests set it
		fc.now = time.Now
	}

	limits, err := fc.configure()
	if err != nil {
		return err
	}
	fc.tally = joinTally(fc.Name)
	srv, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	fc.accessLog = !ok || srv.Logs != nil
	fc.off = limits.Memory == 0 && limits.Disk == 0
	if fc.off {
		fc.logger.Warn("memory_size and disk_size are both 0: nothing is cached")
		return exportMetrics(ctx.GetMetricsRegistry())
	}
	if fc.lease, err = openStore(ctx, fc, limits); err != nil {
		return fmt.Errorf("fastcache: %w", err)
	}
	fc.store = fc.lease.store()
	fc.flights = flight.NewGroup(fc.now)
	if fc.NoVarySearch {
		fc.equivalents = fc.lease.shared.equivalents
		fc.equivalents.start()
	}
	fc.warnAboutServer(ctx)
	return exportMetrics(ctx.GetMetricsRegistry())
}

// Cleanup implements caddy.CleanerUpper: it gives up this instance's share of
// the store, which closes with its last user.
func (fc *FastCache) Cleanup() error {
	if fc.tally != nil && !fc.left {
		fc.left = true
		fc.tally.leave()
	}
	if fc.lease == nil {
		return nil
	}
	return fc.lease.release()
}

// warnAboutServer tells of server settings that cost the cache its speed.
func (fc *FastCache) warnAboutServer(ctx caddy.Context) {
	srv, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if ok && slices.Equal(srv.Protocols, []string{"h1"}) {
		fc.logger.Warn("a server with protocols h1 alone cannot use sendfile: bodies on disk are copied; the default protocols, or h1 h2c, can")
	}
}

// configure turns the options as written into what the handler works with. Each
// error names the option and the value.
func (fc *FastCache) configure() (store.Limits, error) {
	var p optionParser
	limits := store.Limits{
		Memory:       p.size("memory_size", fc.MemorySize, defaultMemorySize),
		Disk:         p.size("disk_size", fc.DiskSize, defaultDiskSize),
		Body:         p.size("max_body_size", fc.MaxBodySize, "0"),
		Items:        p.count("max_items", fc.MaxItems),
		Variants:     p.count("max_variants", fc.MaxVariants),
		PromoteBelow: p.size("promote_below", fc.PromoteBelow, defaultPromoteBelow),
	}
	if limits.Variants == 0 {
		limits.Variants = defaultMaxVariants
	}
	fc.policy = rfc9111.Policy{
		TTL:                  p.duration("ttl", fc.TTL, defaultTTL),
		HeuristicMax:         p.duration("heuristic_max", fc.HeuristicMax, defaultHeuristicMax),
		StaleWhileRevalidate: p.duration("stale_while_revalidate", fc.StaleWhileRevalidate, "0"),
		StaleIfError:         p.duration("stale_if_error", fc.StaleIfError, "0"),
		StatusTTL:            p.statusTTL(fc.StatusTTL),
		StoreSetCookie:       fc.StoreSetCookie,
		HonorRequest:         fc.HonorRequestCC,
		Vary:                 p.fieldNames("vary", fc.Vary),
		MatchHeader:          p.matchHeaders(fc.MatchHeaders),
	}
	fc.revalidateTimeout = p.duration("revalidate_timeout", fc.RevalidateTimeout, defaultRevalidateTimeout)
	fc.purgeAllow = p.prefixes("purge_allow", fc.PurgeAllow)
	p.keyTemplate("cache_key", fc.CacheKey)
	if fc.NoVarySearch && fc.CacheKey != "" {
		p.fail("no_vary_search", fc.CacheKey, "as cache_key hides which URLs are equivalent; use one of the two options")
	}
	// Only responses to GET are stored, also for HEAD and PURGE.
	fc.keyTemplate = strings.NewReplacer("{http.request.method}", http.MethodGet, "{http.request.orig_method}", http.MethodGet).Replace(fc.CacheKey)
	if fc.QuerySort || len(fc.QueryIgnore) > 0 {
		fc.query = &rfc9111.QueryRules{Sort: fc.QuerySort, Ignore: p.queryNames("query_ignore", fc.QueryIgnore)}
	}
	if fc.Path == "" {
		fc.Path = defaultPath
	} else if strings.HasPrefix(fc.Path, "~") || strings.ContainsAny(fc.Path, "{}\x00") {
		p.fail("path", fc.Path, "is not a directory: ~ and placeholders are not expanded; use {$NAME} in a Caddyfile")
	}
	fc.Path = filepath.Clean(fc.Path)
	return limits, p.err
}

// optionParser parses option values and keeps the first error.
type optionParser struct{ err error }

func (p *optionParser) fail(option, value, why string) {
	if p.err == nil {
		p.err = fmt.Errorf("fastcache: %s: %q %s", option, value, why)
	}
}

func (p *optionParser) size(option, value, fallback string) int64 {
	if value == "" {
		value = fallback
	}
	n, err := humanize.ParseBytes(value)
	if err != nil || n > 1<<62 {
		p.fail(option, value, "is not a size; use bytes or a unit, such as 64MB, 512KiB or 0")
		return 0
	}
	return int64(n)
}

func (p *optionParser) duration(option, value, fallback string) time.Duration {
	if value == "" {
		value = fallback
	}
	d, err := caddy.ParseDuration(value)
	if err != nil || d < 0 {
		p.fail(option, value, "is not a duration; use a number with a unit, such as 30s, 1h or 7d, or 0")
		return 0
	}
	return d
}

func (p *optionParser) count(option string, n int) int {
	if n < 0 {
		p.fail(option, strconv.Itoa(n), "is negative")
	}
	return n
}

func (p *optionParser) statusTTL(caps map[int]string) map[int]time.Duration {
	if len(caps) == 0 {
		return nil
	}
	parsed := make(map[int]time.Duration, len(caps))
	for code, value := range caps {
		if code < 200 || code > 599 {
			p.fail("status_ttl", strconv.Itoa(code), "is not a final status code (200 to 599)")
		}
		parsed[code] = p.duration("status_ttl", value, "")
	}
	return parsed
}

func (p *optionParser) fieldNames(option string, names []string) []string {
	if names == nil {
		return nil
	}
	canonical := make([]string, 0, len(names))
	for _, name := range names {
		if !httpguts.ValidHeaderFieldName(name) || name == "*" {
			p.fail(option, name, "is not the name of a header field")
		}
		canonical = append(canonical, http.CanonicalHeaderKey(name))
	}
	slices.Sort(canonical)
	return slices.Compact(canonical)
}

func (p *optionParser) matchHeaders(rules map[string][]string) map[string][]string {
	if len(rules) == 0 {
		return nil
	}
	parsed := make(map[string][]string, len(rules))
	for name, values := range rules {
		if !httpguts.ValidHeaderFieldName(name) {
			p.fail("match_header", name, "is not the name of a header field")
		}
		if len(values) == 0 {
			p.fail("match_header", name, "has no value to match")
		}
		name = http.CanonicalHeaderKey(name)
		parsed[name] = append(parsed[name], values...)
	}
	return parsed
}

func (p *optionParser) prefixes(option string, ranges []string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, r := range ranges {
		if r == "private_ranges" {
			parsed = append(parsed, p.prefixes(option, caddyhttp.PrivateRangesCIDR())...)
			continue
		}
		if addr, err := netip.ParseAddr(r); err == nil {
			addr = addr.Unmap().WithZone("")
			parsed = append(parsed, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(r)
		if err != nil {
			p.fail(option, r, "is not an IP address or CIDR range")
			continue
		}
		if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
		}
		parsed = append(parsed, prefix.Masked())
	}
	return parsed
}

func (p *optionParser) queryNames(option string, names []string) []string {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "&=#? \t") || strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			p.fail(option, name, "is not the name of a query parameter, with at most one * at its end")
		}
	}
	return names
}

// keyPlaceholder matches the placeholders that have a value when the handler
// runs, the same one for equal requests. Those that differ each time (uuid,
// duration), that would read the body, and those of map, which could have any
// name, are left out: a key with a misspelled name would be the same for all.
var keyPlaceholder = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`http\.request\.(?:method|scheme|proto|proto_name|hostport|port)`,
	`http\.request\.host(?:\.labels\.\d+)?`,
	`http\.request\.(?:local|remote)(?:\.host|\.port)?`,
	`http\.request\.remote\.host/\d+(?:,\d+)?`,
	`http\.request\.(?:header|cookie|uri\.query|tls)\..+`,
	`http\.request\.uri(?:_escaped|\.path|\.path_escaped|\.query|\.query_escaped|\.prefixed_query)?`,
	`http\.request\.uri\.path\.(?:file|dir|file\.base|file\.ext|\d+)`,
	`http\.request\.orig_(?:method|uri|uri\.path|uri\.query|uri\.prefixed_query)`,
	`http\.request\.orig_uri\.path\.(?:file|file_escaped|dir|\d+)`,
	`http\.(?:vars|regexp|matchers|auth\.user)\..+`,
	`(?:env|file|system)\..+`,
}, "|") + `)$`)

// keyTemplate checks that every placeholder of a key template closes and is of a
// known kind: a misspelled one would be the same empty text for every request,
// which would make them share one response.
func (p *optionParser) keyTemplate(option, template string) {
	rest := template
	for {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			return
		}
		if i > 0 && rest[i-1] == '\\' {
			rest = rest[i+1:]
			continue
		}
		end := strings.IndexAny(rest[i+1:], "{}")
		if rest[i] == '}' || end < 0 || rest[i+1+end] == '{' {
			p.fail(option, template, "has a placeholder that does not close")
			return
		}
		name := rest[i+1 : i+1+end]
		if !keyPlaceholder.MatchString(name) {
			p.fail(option, template, "has an unknown placeholder {"+name+"}; one that map sets can be used through vars")
			return
		}
		rest = rest[i+1+end+1:]
	}
}

// Interface guards
var (
	_ caddy.Module                = (*FastCache)(nil)
	_ caddy.Provisioner           = (*FastCache)(nil)
	_ caddy.CleanerUpper          = (*FastCache)(nil)
	_ caddyhttp.MiddlewareHandler = (*FastCache)(nil)
	_ caddyfile.Unmarshaler       = (*FastCache)(nil)
)
