package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// TestRFC9110_InterimResponses: interim responses are passed on, all of them in
// their order, and are neither stored nor mixed into what is (section 15.2).
func TestRFC9110_InterimResponses(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		w.WriteHeader(http.StatusProcessing)
		for i := range 2 {
			h.Set("Link", fmt.Sprintf("</%d.css>; rel=preload", i))
			h.Set("X-Hint", "test")
			w.WriteHeader(http.StatusEarlyHints)
		}
		h.Del("Link")
		h.Del("X-Hint")
		h.Set("Cache-Control", "max-age=100000")
		_, _ = io.WriteString(w, "final")
	})
	c := start(t, strictSite(o))
	var seen []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			seen = append(seen, strings.TrimSpace(fmt.Sprint(code, " ", h.Get("Link"), " ", h.Get("X-Hint"))))
			return nil
		},
	})
	final := func() *response {
		t.Helper()
		r := c.send(ctx, http.MethodGet, "/", nil).want(t, 200, "final")
		for _, name := range []string{"Link", "X-Hint"} {
			if got := r.Header.Get(name); got != "" {
				t.Errorf("the final response has the hint's %s: %s", name, got)
			}
		}
		return r
	}
	final().wantStatus(t, "fastcache; fwd=uri-miss; stored")
	if want := []string{"102", "103 </0.css>; rel=preload test", "103 </1.css>; rel=preload test"}; !slices.Equal(seen, want) {
		t.Errorf("interim responses %q, want %q", seen, want)
	}
	seen = nil
	final().wantStatus(t, "fastcache; hit")
	if len(seen) > 0 {
		t.Errorf("interim responses of a stored response: %q", seen)
	}
}

// TestRFC9110_NoInterimResponsesForHTTP10: HTTP/1.0 has none, and a client of it
// would take one for the answer (section 15.2).
func TestRFC9110_NoInterimResponsesForHTTP10(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "final")
	})
	c := start(t, strictSite(o))
	for range 2 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET / HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n", c.port)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(line, " 200 ") {
			t.Errorf("the answer begins with %q, %v", line, err)
		}
	}
	o.wantAsked(t, 1)
}
