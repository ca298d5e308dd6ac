package fastcache_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache"
)

// adapt turns a Caddyfile into JSON as caddy adapt does.
func adapt(t *testing.T, text string) ([]byte, error) {
	t.Helper()
	out, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": "Caddyfile"})
	return out, err
}

// handlerOf finds the fastcache handler in an adapted configuration.
func handlerOf(t *testing.T, config []byte) map[string]any {
	t.Helper()
	var tree any
	if err := json.Unmarshal(config, &tree); err != nil {
		t.Fatal(err)
	}
	var find func(v any) map[string]any
	find = func(v any) map[string]any {
		switch v := v.(type) {
		case map[string]any:
			if v["handler"] == "fastcache" {
				return v
			}
			for _, child := range v {
				if h := find(child); h != nil {
					return h
				}
			}
		case []any:
			for _, child := range v {
				if h := find(child); h != nil {
					return h
				}
			}
		}
		return nil
	}
	h := find(tree)
	if h == nil {
		t.Fatalf("no fastcache handler in %s", config)
	}
	delete(h, "handler")
	return h
}

const everyOption = `http://localhost:9999 {
	fastcache {
		path                         /tmp/fc
		name                         main
		memory_size                  10MB
		disk_size                    1GiB
		max_body_size                1GB
		max_items                    1000
		max_variants                 8
		ttl                          10m
		heuristic_max                2d
		stale_while_revalidate       30s
		stale_if_error               1h
		status_ttl                   404 410 1m
		status_ttl                   500 0
		revalidate_timeout           5s
		cache_key                    {host}{path}?lang={query.lang}
		query_sort
		query_ignore                 utm_* gclid
		query_ignore                 fbclid
		match_header                 X-Cacheable yes true
		match_header                 content-type image/png
		vary                         Accept-Encoding x-device
		vary                         Accept-Language
		purge_allow                  10.0.0.0/8 192.168.1.10
		promote_below                32KiB
		honor_request_cache_control
		store_set_cookie
		disable_touch_on_hit
		cache_status_key
	}
	respond ok
}`

func TestUnmarshalCaddyfile_EveryOption(t *testing.T) {
	config, err := adapt(t, everyOption)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"path": "/tmp/fc", "name": "main", "memory_size": "10MB", "disk_size": "1GiB",
		"max_body_size": "1GB", "max_items": 1000.0, "max_variants": 8.0, "ttl": "10m", "heuristic_max": "2d",
		"stale_while_revalidate": "30s", "stale_if_error": "1h",
		"status_ttl":         map[string]any{"404": "1m", "410": "1m", "500": "0"},
		"revalidate_timeout": "5s",
		"cache_key":          "{http.request.host}{http.request.uri.path}?lang={http.request.uri.query.lang}",
		"query_sort":         true, "query_ignore": []any{"utm_*", "gclid", "fbclid"},
		"match_headers": map[string]any{"X-Cacheable": []any{"yes", "true"}, "content-type": []any{"image/png"}},
		"vary":          []any{"Accept-Encoding", "x-device", "Accept-Language"},
		"purge_allow":   []any{"10.0.0.0/8", "192.168.1.10"}, "promote_below": "32KiB",
		"honor_request_cache_control": true, "store_set_cookie": true,
		"disable_touch_on_hit": true, "cache_status_key": true,
	}
	if diff := cmp.Diff(want, handlerOf(t, config)); diff != "" {
		t.Errorf("JSON of the Caddyfile (-want +got):\n%s", diff)
	}
}

func TestUnmarshalCaddyfile_NoVarySearch(t *testing.T) {
	config, err := adapt(t, "http://localhost:9999 {\n\tfastcache {\n\t\tno_vary_search\n\t\tquery_sort\n\t}\n\trespond ok\n}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"no_vary_search": true, "query_sort": true}, handlerOf(t, config)); diff != "" {
		t.Errorf("JSON of the Caddyfile (-want +got):\n%s", diff)
	}
	const want = `no_vary_search: "{http.request.uri.path}" as cache_key hides which URLs are equivalent`
	_, err = adapt(t, "http://localhost:9999 {\n\tfastcache {\n\t\tno_vary_search\n\t\tcache_key {path}\n\t}\n\trespond ok\n}")
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with cache_key: %v, want %s", err, want)
	}
}

func TestUnmarshalCaddyfile_NoOptions(t *testing.T) {
	for _, block := range []string{"fastcache", "fastcache {\n\t}", "fastcache /static/*"} {
		config, err := adapt(t, "http://localhost:9999 {\n\t"+block+"\n\trespond ok\n}")
		if err != nil {
			t.Errorf("%q: %v", block, err)
			continue
		}
		if h := handlerOf(t, config); len(h) != 0 {
			t.Errorf("%q: JSON %v, want no options: defaults are not written out", block, h)
		}
	}
}

func TestUnmarshalCaddyfile_Errors(t *testing.T) {
	for _, tc := range []struct{ option, want string }{
		{"colour red", `unknown option "colour"`},
		{"memory_size 10XB", `memory_size: "10XB" is not a size`},
		{"memory_size -1", `memory_size: "-1" is not a size`},
		{"no_vary_search on", `no_vary_search takes no value`},
		{"disk_size lots", `disk_size: "lots" is not a size`},
		{"promote_below 1 KB", `promote_below takes one value, not 2`},
		{"memory_size", `memory_size takes one value, not 0`},
		{`memory_size ""`, `memory_size takes one value`},
		{"ttl soon", `ttl: "soon" is not a duration`},
		{"ttl -1s", `ttl: "-1s" is not a duration`},
		{"ttl 10", `ttl: "10" is not a duration`},
		{"stale_if_error 5 minutes", `stale_if_error takes one value, not 2`},
		{"max_items many", `max_items: "many" is not a number`},
		{"max_items -1", `max_items: "-1" is not a number`},
		{"max_variants 1.5", `max_variants: "1.5" is not a number`},
		{"status_ttl 200", `status_ttl takes at least one status code and a duration`},
		{"status_ttl OK 10s", `status_ttl: "OK" is not a status code`},
		{"status_ttl 99 10s", `status_ttl: "99" is not a final status code`},
		{"status_ttl 101 10s", `status_ttl: "101" is not a final status code`},
		{"status_ttl 200 200 10s", `status_ttl names 200 twice`},
		{"status_ttl 200 tomorrow", `status_ttl: "tomorrow" is not a duration`},
		{"purge_allow 10.0.0.0/33", `purge_allow: "10.0.0.0/33" is not an IP address or CIDR range`},
		{"purge_allow localhost", `purge_allow: "localhost" is not an IP address or CIDR range`},
		{"purge_allow", `purge_allow takes at least one value`},
		{"cache_key {http.request.host", `does not close`},
		{"cache_key {http.request.hots}{uri}", `unknown placeholder {http.request.hots}`},
		{"cache_key {nope}", `unknown placeholder {nope}`},
		{"cache_key {http.request.orig_uri.query.s}", `unknown placeholder {http.request.orig_uri.query.s}`},
		{"cache_key {http.request.host.labels.x}", `unknown placeholder {http.request.host.labels.x}`},
		{"cache_key {path", `does not close`},
		{"cache_key path}", `does not close`},
		{"cache_key {uuid}", `unknown placeholder {http.request.uuid}`},
		{"cache_key {http.request.header.}", `unknown placeholder {http.request.header.}`},
		{"match_header Content-Type", `match_header takes the name of a field and at least one value`},
		{`match_header "Content Type" x`, `match_header: "Content Type" is not the name of a header field`},
		{"vary", `vary takes at least one value`},
		{`vary "Accept Encoding"`, `vary: "Accept Encoding" is not the name of a header field`},
		{"query_ignore *utm", `query_ignore: "*utm" is not the name of a query parameter`},
		{"store_set_cookie on", `store_set_cookie takes no value`},
		{"honor_request_cache_control off", `honor_request_cache_control takes no value`},
		{"ttl 1h {\n\t\t\tx\n\t\t}", `ttl takes no block`},
		{"ttl 1h\n\t\tttl 2h", `ttl is given twice`},
	} {
		_, err := adapt(t, "http://localhost:9999 {\n\tfastcache {\n\t\tname x\n\t\t"+tc.option+"\n\t}\n\trespond ok\n}")
		if err == nil {
			t.Errorf("%q: no error", tc.option)
			continue
		}
		line := "Caddyfile:4"
		if strings.HasPrefix(tc.option, "ttl 1h") {
			line = "Caddyfile:5" // the second of its lines
		}
		if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: error %q\nwant %q at %s", tc.option, err, tc.want, line)
		}
	}
}

// TestUnmarshalCaddyfile_KeyPlaceholders: what Caddy documents for a request may
// stand in a key.
func TestUnmarshalCaddyfile_KeyPlaceholders(t *testing.T) {
	for _, key := range []string{
		"{method} {scheme} {hostport} {host} {port} {remote_host} {client_ip} {uri} {path} {?query} {query} {dir} {file}",
		"{orig_uri} {orig_path} {orig_?query} {orig_query} {orig_method} {orig_dir} {orig_file}",
		"{header.X-A} {cookie.session} {labels.1} {path.0} {file.base} {query.lang} {re.name.1} {vars.device}",
		"{http.request.remote.host/24,48} {http.request.tls.server_name} {http.request.proto} {http.auth.user.id}",
		"{env.STAGE} {system.hostname} {http.matchers.file.relative}",
		`literal \{braces\} {host}`,
		"no placeholder",
	} {
		if _, err := adapt(t, "http://localhost:9999 {\n\tfastcache {\n\t\tcache_key \""+key+"\"\n\t}\n\trespond ok\n}"); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestUnmarshalCaddyfile_ArgumentsAndSecondBlock(t *testing.T) {
	for _, text := range []string{
		"fastcache 1h",
		"fastcache * 1h {\n\t}",
		"fastcache {\n\t} {\n\t}",
	} {
		_, err := adapt(t, "http://localhost:9999 {\n\t"+text+"\n\trespond ok\n}")
		if err == nil || !strings.Contains(err.Error(), "Caddyfile:") {
			t.Errorf("%q: error %v, want one with file and line", text, err)
		}
	}
}

// TestDirectiveOrder: no order line is needed, the cache stands behind what turns
// clients away and inside encode.
func TestDirectiveOrder(t *testing.T) {
	config, err := adapt(t, `http://localhost:9999 {
	reverse_proxy localhost:1
	fastcache
	respond /bot 403
	encode gzip
	basic_auth /private/* {
		u $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
	}
}`)
	if err != nil {
		t.Fatal(err)
	}
	text, last := string(config), -1
	for _, handler := range []string{`"authentication"`, `"encode"`, `"static_response"`, `"fastcache"`, `"reverse_proxy"`} {
		i := strings.Index(text, `"handler":`+handler)
		if i < 0 || i < last {
			t.Fatalf("handler %s is missing or too early in %s", handler, text)
		}
		last = i
	}
}

// TestProvision_JSONErrors: what the Caddyfile refuses, JSON refuses too.
func TestProvision_JSONErrors(t *testing.T) {
	for option, want := range map[string]string{
		`"memory_size":"10XB"`:                   `memory_size: "10XB" is not a size`,
		`"ttl":"x"`:                              `ttl: "x" is not a duration`,
		`"max_items":-1`:                         `max_items: "-1" is negative`,
		`"status_ttl":{"42":"1s"}`:               `status_ttl: "42" is not a final status code`,
		`"purge_allow":["x"]`:                    `purge_allow: "x" is not an IP address`,
		`"cache_key":"{host}"`:                   `unknown placeholder {host}`,
		`"match_headers":{"X":[]}`:               `match_header: "X" has no value`,
		`"vary":[""]`:                            `vary: "" is not the name of a header field`,
		`"colour":"red"`:                         `unknown field "colour"`,
		`"ttl":3600`:                             `ttl`,
		`"path":"/dev/null/x","memory_size":"1"`: `/dev/null/x`,
	} {
		config := `{"admin":{"disabled":true},"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"routes":[{"handle":[{"handler":"fastcache",` + option + `}]}]}}}}}`
		var cfg caddy.Config
		err := json.Unmarshal([]byte(config), &cfg)
		if err == nil {
			err = caddy.Validate(&cfg)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", option, err, want)
		}
	}
}

func TestUnmarshalCaddyfile_Direct(t *testing.T) {
	var fc fastcache.FastCache
	if err := fc.UnmarshalCaddyfile(caddyfile.NewTestDispenser("fastcache {\n\tttl 5m\n}")); err != nil {
		t.Fatal(err)
	}
	if fc.TTL != "5m" {
		t.Errorf("TTL %q", fc.TTL)
	}
}
