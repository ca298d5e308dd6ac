package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests of the conformance_*_test.go files hold requirements of the RFCs that
// the public suite for HTTP caches does not ask about, or not in the release that
// npm has. docs/conformance.md says which test holds which requirement.

// reply is what an origin answers. Its body is the number of the request unless
// the status has none.
type reply struct {
	status int // 0: 200
	fields []string
}

// script is an origin that answers each URL with the replies that are written
// down for it, in their order; the last one goes on.
type script struct {
	*origin
	mu      sync.Mutex
	replies map[string][]reply
	n       map[string]int
	got     map[string][]http.Header
}

func newScript(t *testing.T) *script {
	s := &script{replies: make(map[string][]reply), n: make(map[string]int), got: make(map[string][]http.Header)}
	s.origin = newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		uri := r.URL.RequestURI()
		s.mu.Lock()
		replies, n := s.replies[uri], s.n[uri]
		s.n[uri]++
		s.got[uri] = append(s.got[uri], r.Header.Clone())
		s.mu.Unlock()
		if len(replies) == 0 {
			t.Errorf("%s %s is not in the script", r.Method, uri)
			return
		}
		reply := replies[min(n, len(replies)-1)]
		for _, f := range reply.fields {
			name, value, _ := strings.Cut(f, ": ")
			if name == "Date" && value == "" {
				w.Header()["Date"] = nil // net/http would add one
				continue
			}
			w.Header().Add(name, atDate(value))
		}
		w.WriteHeader(max(reply.status, 200*btoi(reply.status == 0)))
		if reply.status != http.StatusNotModified && reply.status != http.StatusNoContent && r.Method != http.MethodHead {
			_, _ = io.WriteString(w, fmt.Sprint(n+1))
		}
	})
	return s
}

// on writes down the replies to requests for uri.
func (s *script) on(uri string, replies ...reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[uri] = replies
}

// received is the header of the n-th request for uri, from 0.
func (s *script) received(t *testing.T, uri string, n int) http.Header {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.got[uri]) {
		t.Fatalf("%s: the origin got %d requests only", uri, len(s.got[uri]))
	}
	return s.got[uri][n]
}

// atDate turns NOW and NOW+seconds into a date.
func atDate(value string) string {
	offset, ok := strings.CutPrefix(value, "NOW")
	if !ok {
		return value
	}
	seconds := 0
	if offset != "" {
		_, _ = fmt.Sscan(offset, &seconds)
	}
	return time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(http.TimeFormat)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// strictSite is a cache that gives no response a lifetime of its own making.
func strictSite(o *origin, options ...string) string {
	return strings.Replace(site(o, options...), "ttl 1h", "ttl 0", 1)
}

// reuse is one question to a cache: the origin answers the first request with the
// fields first; does that answer the second request, with the fields ask?
type reuse struct {
	name   string
	status int
	first  []string
	ask    []string
	reused bool
}

// checkReuse asks the questions. Time is told with Age and Date rather than
// waited for.
func checkReuse(t *testing.T, questions []reuse, options ...string) {
	s := newScript(t)
	c := start(t, strictSite(s.origin, options...))
	for i, q := range questions {
		t.Run(q.name, func(t *testing.T) {
			uri := fmt.Sprintf("/%d", i)
			s.on(uri, reply{status: q.status, fields: q.first})
			first := c.get(uri)
			if first.body != "1" {
				t.Fatalf("first body %q", first.body)
			}
			second := c.get(uri, q.ask...)
			if got := second.body == "1"; got != q.reused {
				t.Errorf("reused: %v, want %v (first %q, then %q)", got, q.reused, first.cacheStatus(), second.cacheStatus())
			}
			if second.hit() != q.reused {
				t.Errorf("Cache-Status %q, reused %v", second.cacheStatus(), q.reused)
			}
		})
	}
}
