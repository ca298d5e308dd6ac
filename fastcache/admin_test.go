package fastcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"

	"github.com/hotset-go/hotset/fastcache/internal/store"
)

// callAdmin calls an endpoint as Caddy's admin API does.
func callAdmin(handler caddy.AdminHandlerFunc, r *http.Request) (status int, text string, allow string) {
	w := httptest.NewRecorder()
	err := handler(w, r)
	var apiErr caddy.APIError
	if errors.As(err, &apiErr) {
		return apiErr.HTTPStatus, apiErr.Err.Error(), w.Header().Get("Allow")
	}
	if err != nil {
		return http.StatusInternalServerError, err.Error(), ""
	}
	return w.Code, w.Body.String(), ""
}

func purgeBy(t *testing.T, body string) (status int, text string) {
	t.Helper()
	status, text, _ = callAdmin(servePurge, httptest.NewRequest(http.MethodDelete, "/fastcache/purge", strings.NewReader(body)))
	return status, text
}

func TestAdminPurge_Body(t *testing.T) {
	const nothing = "{\"purged\":0}\n"
	tests := []struct {
		body   string
		status int
		text   string // in the answer
	}{
		{`{"pattern": "/static/"}`, 200, nothing},
		{` {"pattern": "(a+)+$"} `, 200, nothing},
		{`{"url": "https://example.com/a?b"}`, 200, nothing},
		{`{"prefix": "/a"}`, 200, nothing},
		{`{"tag": "a"}`, 200, nothing},
		{`{"tags": ["a", "b"], "soft": true}`, 200, nothing},
		{`{"groups": ["a", ""], "origin": "https://example.com"}`, 200, nothing},
		{`{"groups": ["a"], "origin": "http://example.com:81/"}`, 200, nothing},
		{`{"all": true}`, 200, nothing},
		{`{"all": true, "name": "who"}`, 404, `no fastcache that stores anything has the name "who"`},

		{``, 400, `has to be an object such as {"pattern": "/static/"}`},
		{`null`, 400, `nothing says what to purge`},
		{`{}`, 400, `nothing says what to purge: url, prefix, pattern, tag, tags, groups or all`},
		{`{"all": false}`, 400, `nothing says what to purge`},
		{`{"soft": true}`, 400, `nothing says what to purge`},
		{`[]`, 400, `has to be an object`},
		{`"/static/"`, 400, `has to be an object`},
		{`{"pattern": "/static/"`, 400, `unexpected EOF`},
		{`{"pattern": "/a"} {"all": true}`, 400, `something follows`},
		{`{"pattern": "/a"}x`, 400, `something follows`},
		{`{"patern": "/a"}`, 400, `unknown field "patern"`},
		{`{"pattern": 1}`, 400, `pattern`},
		{`{"all": "yes"}`, 400, `all`},
		{`{"pattern": "/a", "all": true}`, 400, `pattern and all cannot be given together`},
		{`{"tag": "a", "tags": ["b"]}`, 400, `tag and tags cannot be given together`},
		{`{"pattern": ""}`, 400, `pattern: empty; to purge everything, say {"all": true}`},
		{`{"prefix": ""}`, 400, `prefix: empty`},
		{`{"tag": ""}`, 400, `tag: empty`},
		{`{"tags": []}`, 400, `tags: empty`},
		{`{"tags": ["a", ""]}`, 400, `tags: empty`},
		{`{"groups": [], "origin": "https://example.com"}`, 400, `groups: empty`},
		{`{"groups": ["a"]}`, 400, `groups: origin is missing: a group is one of an origin, such as https://example.com`},
		{`{"groups": ["a"], "origin": "example.com"}`, 400, `groups: a group is one of an origin`},
		{`{"groups": ["a"], "origin": "https://example.com/a"}`, 400, `groups: a group is one of an origin`},
		{`{"tag": "a", "origin": "https://example.com"}`, 400, `origin goes with groups only`},
		{`{"url": "/a"}`, 400, `url: "/a" is not the URL`},
		{`{"url": ""}`, 400, `url: "" is not the URL`},
		{`{"pattern": "a("}`, 400, "pattern: error parsing regexp: missing closing ): `a(`"},
		{`{"pattern": "(?=a)"}`, 400, `pattern: error parsing regexp: invalid or unsupported Perl syntax`},
		{`{"pattern": "a{1001}"}`, 400, `pattern: error parsing regexp: invalid repeat count`},
		{`{"pattern": "((a{100}){100}){100}"}`, 400, `pattern: error parsing regexp: `},
		{"{\"tag\": \"\xff\"}", 400, `not UTF-8`},
		{`{"pattern": "` + strings.Repeat("(", 1000) + `"}`, 400, `pattern: error parsing regexp: `},
		{`{"tag": "` + strings.Repeat("a", maxPurgeBody-11) + `"}`, 200, nothing}, // to the byte
		{`{"tag": "` + strings.Repeat("a", maxPurgeBody-10) + `"}`, 413, `larger than 1048576 bytes`},
		{strings.Repeat(" ", 2<<20), 413, `larger than 1048576 bytes`},
	}
	for _, tt := range tests {
		status, text := purgeBy(t, tt.body)
		if status != tt.status || !strings.Contains(text, tt.text) {
			t.Errorf("%.100q: %d %.500q, want %d %q", tt.body, status, text, tt.status, tt.text)
		}
	}
}

// TestREADME_Selectors: the table has each selector once, as it can be used.
func TestREADME_Selectors(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(readme), "<!-- selectors:")
	if !ok {
		t.Skip("README.md has no table of selectors")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for _, row := range strings.Split(table, "\n| `")[1:] {
		selector, _, _ := strings.Cut(row, "`")
		p, err := parsePurge([]byte("{" + strings.ReplaceAll(selector, `\|`, "|") + "}"))
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		documented = append(documented, p.by)
	}
	_, err = parsePurge([]byte("{}"))
	if want := "nothing says what to purge: " + strings.Join(documented[:6], ", ") + " or " + documented[6]; err.Error() != want {
		t.Errorf("README.md has %q, the code says %q", documented, err)
	}
}

// A purge whose client leaves ends where it is.
func TestPurgeRequest_Canceled(t *testing.T) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("http://h/%d", i)
	}
	s := storeOf(t, keys...)
	s.users = map[*lease]store.Limits{{user: new(FastCache)}: {}}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := parsePurge([]byte(`{"all": true}`))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	p.sel.match = func(string) bool {
		if seen++; seen == 5000 {
			cancel()
		}
		return true
	}
	n, err := p.run(ctx, []*sharedStore{s})
	if !errors.Is(err, context.Canceled) || n > 5000 {
		t.Errorf("%d purged, error %v", n, err)
	}
	if left := int(s.store.Stats().Entries); left != len(keys)-n {
		t.Errorf("%d of %d purged, %d left", n, len(keys), left)
	}
	cancel()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodDelete, "/", strings.NewReader(`{"all": true}`)).WithContext(ctx)
	if err := servePurge(w, r); err != nil {
		t.Errorf("an error for nobody: %v", err)
	}
}

func TestAdmin_Methods(t *testing.T) {
	tests := []struct {
		handler caddy.AdminHandlerFunc
		allow   []string
	}{
		{servePurge, []string{http.MethodDelete, http.MethodPost}},
		{serveKeys, []string{http.MethodGet, http.MethodHead}},
	}
	for i, tt := range tests {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "X"} {
			status, _, allow := callAdmin(tt.handler, httptest.NewRequest(method, "/", strings.NewReader(`{"all":true}`)))
			want := http.StatusMethodNotAllowed
			if strings.Contains(strings.Join(tt.allow, " "), method) && method != "X" {
				want = http.StatusOK
			}
			if status != want || (want != http.StatusOK) != (allow == strings.Join(tt.allow, ", ")) {
				t.Errorf("endpoint %d, %s: %d, Allow %q", i, method, status, allow)
			}
		}
	}
}

// Whatever the body is, the answer is a count or an error that a client can show.
func FuzzAdminPurge(f *testing.F) {
	for _, body := range []string{
		`{"pattern": "(a+)+$"}`, `{"url": "https://example.com/a?b"}`, `{"prefix": "/a", "soft": true}`,
		`{"tags": ["a", "b"]}`, `{"groups": ["a"], "origin": "https://example.com"}`, `{"all": true, "name": ""}`,
		`{"tag": "\u0000\ud800"}`, `{"pattern": "[[:word:]"}`, "", "[", "\xff",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		status, text := purgeBy(t, body)
		switch status {
		case http.StatusOK:
			if text != "{\"purged\":0}\n" {
				t.Errorf("%q", text)
			}
		case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge:
			if text == "" || len(text) > maxAdminError+3 || !utf8.ValidString(text) {
				t.Errorf("%d with the text %q", status, text)
			}
		default:
			t.Errorf("status %d: %s", status, text)
		}
		if status == http.StatusOK {
			// What is accepted is one object, and it selects by one means.
			var object map[string]any
			if err := json.Unmarshal([]byte(body), &object); err != nil {
				t.Errorf("accepted, but %v", err)
			}
		}
	})
}
