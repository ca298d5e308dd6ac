package fastcache

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func parseCaddyfile(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	fc := new(FastCache)
	if err := fc.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return fc, nil
}

// UnmarshalCaddyfile implements caddyfile.Unmarshaler. Syntax, with every option
// once at most unless it is marked repeatable:
//
//	fastcache [<matcher>] {
//		path                    <directory>
//		name                    <name>
//		memory_size             <size>
//		disk_size               <size>
//		max_body_size           <size>
//		max_items               <count>
//		max_variants            <count>
//		ttl                     <duration>
//		heuristic_max           <duration>
//		stale_while_revalidate  <duration>
//		stale_if_error          <duration>
//		status_ttl              <code>... <duration>      # repeatable
//		revalidate_timeout      <duration>
//		cache_key               <template>
//		query_sort
//		query_ignore            <name>...                 # repeatable
//		no_vary_search
//		match_header            <field> <value>...        # repeatable
//		vary                    <field>...                # repeatable
//		purge_allow             <address|range>...        # repeatable
//		promote_below           <size>
//		honor_request_cache_control
//		store_set_cookie
//		disable_touch_on_hit
//		cache_status_key
//	}
func (fc *FastCache) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("fastcache takes its options in a block, not as arguments: %q", d.Val())
	}
	seen := make(map[string]bool)
	for d.NextBlock(0) {
		option := d.Val()
		if seen[option] && !repeatable[option] {
			return d.Errf("fastcache: %s is given twice", option)
		}
		seen[option] = true
		if err := fc.unmarshalOption(d, option); err != nil {
			return err
		}
		// Checked one by one, so that an error has the line of its option.
		probe := *fc // configure fills in defaults, which the JSON leaves out
		if _, err := probe.configure(); err != nil {
			return d.WrapErr(err)
		}
	}
	if d.Next() {
		return d.Errf("fastcache takes one block of options, and nothing after it: %q", d.Val())
	}
	return nil
}

var repeatable = map[string]bool{
	"status_ttl": true, "query_ignore": true, "match_header": true, "vary": true, "purge_allow": true,
}

func (fc *FastCache) unmarshalOption(d *caddyfile.Dispenser, option string) error {
	text := map[string]*string{
		"path":                   &fc.Path,
		"name":                   &fc.Name,
		"memory_size":            &fc.MemorySize,
		"disk_size":              &fc.DiskSize,
		"ttl":                    &fc.TTL,
		"heuristic_max":          &fc.HeuristicMax,
		"stale_while_revalidate": &fc.StaleWhileRevalidate,
		"stale_if_error":         &fc.StaleIfError,
		"revalidate_timeout":     &fc.RevalidateTimeout,
		"cache_key":              &fc.CacheKey,
		"promote_below":          &fc.PromoteBelow,
		"max_body_size":          &fc.MaxBodySize,
	}
	counts := map[string]*int{
		"max_items":    &fc.MaxItems,
		"max_variants": &fc.MaxVariants,
	}
	flags := map[string]*bool{
		"query_sort":                  &fc.QuerySort,
		"no_vary_search":              &fc.NoVarySearch,
		"honor_request_cache_control": &fc.HonorRequestCC,
		"store_set_cookie":            &fc.StoreSetCookie,
		"disable_touch_on_hit":        &fc.DisableTouchOnHit,
		"cache_status_key":            &fc.CacheStatusKey,
	}
	lists := map[string]*[]string{
		"query_ignore": &fc.QueryIgnore,
		"vary":         &fc.Vary,
		"purge_allow":  &fc.PurgeAllow,
	}
	args := d.RemainingArgs()
	if d.NextBlock(d.Nesting()) {
		return d.Errf("fastcache: %s takes no block", option)
	}
	switch {
	case text[option] != nil:
		if len(args) != 1 || args[0] == "" {
			return d.Errf("fastcache: %s takes one value, not %d", option, len(args))
		}
		*text[option] = args[0]

	case counts[option] != nil:
		if len(args) != 1 {
			return d.Errf("fastcache: %s takes one number, not %d values", option, len(args))
		}
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 {
			return d.Errf("fastcache: %s: %q is not a number of 0 or more", option, args[0])
		}
		*counts[option] = n

	case flags[option] != nil:
		if len(args) != 0 {
			return d.Errf("fastcache: %s takes no value: leave it out to keep it off", option)
		}
		*flags[option] = true

	case lists[option] != nil:
		if len(args) == 0 {
			return d.Errf("fastcache: %s takes at least one value", option)
		}
		*lists[option] = append(*lists[option], args...)

	case option == "match_header":
		if len(args) < 2 {
			return d.Errf("fastcache: match_header takes the name of a field and at least one value")
		}
		if fc.MatchHeaders == nil {
			fc.MatchHeaders = make(map[string][]string)
		}
		fc.MatchHeaders[args[0]] = append(fc.MatchHeaders[args[0]], args[1:]...)

	case option == "status_ttl":
		if len(args) < 2 {
			return d.Errf("fastcache: status_ttl takes at least one status code and a duration")
		}
		if fc.StatusTTL == nil {
			fc.StatusTTL = make(map[int]string)
		}
		limit := args[len(args)-1]
		for _, arg := range args[:len(args)-1] {
			code, err := strconv.Atoi(arg)
			if err != nil {
				return d.Errf("fastcache: status_ttl: %q is not a status code", arg)
			}
			if _, twice := fc.StatusTTL[code]; twice {
				return d.Errf("fastcache: status_ttl names %d twice", code)
			}
			fc.StatusTTL[code] = limit
		}

	default:
		return d.Errf("fastcache: unknown option %q", option)
	}
	return nil
}
