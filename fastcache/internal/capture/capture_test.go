package capture_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hotset-go/hotset/fastcache/internal/capture"
)

var request = httptest.NewRequest(http.MethodGet, "/", nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stored decides to store every response into sink.
func stored(sink io.Writer) capture.Decide {
	return func(int, http.Header) capture.Plan { return capture.Plan{Sink: sink} }
}

// brokenClient fails every write after the first n.
type brokenClient struct {
	*httptest.ResponseRecorder
	n int
}

var errBroken = errors.New("broken pipe")

func (c *brokenClient) Write(p []byte) (int, error) {
	if c.n--; c.n < 0 {
		return 0, errBroken
	}
	return c.ResponseRecorder.Write(p)
}

type brokenSink struct{ n int }

func (s *brokenSink) Write(p []byte) (int, error) {
	if s.n--; s.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestWriter_Write_TeesTheBody(t *testing.T) {
	for name, copyTo := range map[string]func(w *capture.Writer, body string) error{
		"Write": func(w *capture.Writer, body string) error {
			for i := range len(body) {
				if _, err := w.Write([]byte(body[i : i+1])); err != nil {
					return err
				}
			}
			return nil
		},
		"ReadFrom": func(w *capture.Writer, body string) error {
			_, err := io.Copy(w, strings.NewReader(body))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Repeat("bread and butter ", 5000)
			client, sink := httptest.NewRecorder(), new(bytes.Buffer)
			w := capture.New(client, request, stored(sink))
			w.Header().Set("X-A", "1")
			w.WriteHeader(http.StatusAccepted)
			if err := copyTo(w, body); err != nil {
				t.Fatal(err)
			}
			w.Finish()
			if client.Code != http.StatusAccepted || client.Body.String() != body || client.Header().Get("X-A") != "1" {
				t.Error("the client did not get the response as the handler wrote it")
			}
			if sink.String() != body || !w.Whole() || w.Captured() != int64(len(body)) {
				t.Errorf("the sink has %d bytes of %d, whole %v", sink.Len(), len(body), w.Whole())
			}
		})
	}
}

func TestWriter_Header_StaysPrivateUntilDecided(t *testing.T) {
	client := httptest.NewRecorder()
	client.Header().Set("Server", "Caddy")
	client.Header().Set("X-Outer", "kept")
	var seen http.Header
	w := capture.New(client, request, func(_ int, h http.Header) capture.Plan {
		seen = h.Clone()
		h.Set("Cache-Status", "added")
		return capture.Plan{}
	})
	if w.Header().Get("Server") != "Caddy" {
		t.Error("the handler does not see what stands in the header already")
	}
	w.Header().Del("Server")
	w.Header().Set("X-Origin", "1")
	if client.Header().Get("X-Origin") != "" {
		t.Error("a field leaked to the client before the decision")
	}
	w.WriteHeader(http.StatusOK)
	if diff := cmp.Diff(http.Header{"X-Outer": {"kept"}, "X-Origin": {"1"}}, seen); diff != "" {
		t.Errorf("decide saw (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(http.Header{"X-Outer": {"kept"}, "X-Origin": {"1"}, "Cache-Status": {"added"}}, client.Header()); diff != "" {
		t.Errorf("the client got (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(http.Header{"X-Origin": {"1"}}, w.Added(seen)); diff != "" {
		t.Errorf("Added (-want +got):\n%s", diff)
	}
}

func TestWriter_Swallow_NothingReachesTheClient(t *testing.T) {
	client := httptest.NewRecorder()
	client.Header().Set("Server", "Caddy")
	w := capture.New(client, request, func(int, http.Header) capture.Plan { return capture.Plan{Swallow: true} })
	w.Header().Set("X-Origin", "1")
	w.WriteHeader(http.StatusBadGateway)
	if _, err := io.WriteString(w, "sorry"); err != nil {
		t.Fatal(err)
	}
	if err := w.FlushError(); err != nil {
		t.Fatal(err)
	}
	w.Finish()
	if w.Sent() {
		t.Error("a swallowed response counts as sent")
	}
	if client.Body.Len() != 0 || client.Flushed || !cmp.Equal(client.Header(), http.Header{"Server": {"Caddy"}}) {
		t.Errorf("leaked: %v %q", client.Header(), client.Body)
	}
	client.WriteHeader(http.StatusTeapot) // its owner can still answer
	if client.Code != http.StatusTeapot {
		t.Errorf("status %d, want 418", client.Code)
	}
}

func TestWriter_Whole_NeedsTheDeclaredLength(t *testing.T) {
	for _, tc := range []struct {
		declared, body string
		whole          bool
	}{
		{"", "12345", true},
		{"5", "12345", true},
		{"6", "12345", false},
		{"4", "12345", false},
		{"0", "", true},
		{"x", "12345", true}, // net/http reports a malformed length itself
	} {
		w := capture.New(httptest.NewRecorder(), request, stored(io.Discard))
		if tc.declared != "" {
			w.Header().Set("Content-Length", tc.declared)
		}
		_, _ = io.WriteString(w, tc.body)
		w.Finish()
		if w.Whole() != tc.whole {
			t.Errorf("declared %q, body of %d bytes: whole %v, want %v", tc.declared, len(tc.body), w.Whole(), tc.whole)
		}
	}
}

func TestWriter_Write_ClientGone(t *testing.T) {
	for _, keep := range []bool{false, true} {
		sink := new(bytes.Buffer)
		w := capture.New(&brokenClient{ResponseRecorder: httptest.NewRecorder(), n: 1}, request, stored(sink))
		w.KeepFilling = func() bool { return keep }
		var failed error
		for _, part := range []string{"one ", "two ", "three"} {
			if _, failed = io.WriteString(w, part); failed != nil {
				break
			}
		}
		if keep {
			if failed != nil || sink.String() != "one two three" || !w.Whole() {
				t.Errorf("keep filling: err %v, sink %q", failed, sink)
			}
		} else if !errors.Is(failed, capture.ErrClientGone) || !errors.Is(failed, errBroken) {
			t.Errorf("err %v, want ErrClientGone", failed)
		}
		if !errors.Is(w.ClientErr(), errBroken) {
			t.Errorf("ClientErr %v", w.ClientErr())
		}
	}
}

func TestWriter_Write_SinkFailureDoesNotStopTheStream(t *testing.T) {
	client := httptest.NewRecorder()
	w := capture.New(client, request, stored(&brokenSink{n: 1}))
	for range 3 {
		if _, err := io.WriteString(w, "x"); err != nil {
			t.Fatal(err)
		}
	}
	w.Finish()
	if client.Body.String() != "xxx" {
		t.Errorf("client got %q", client.Body)
	}
	if w.Whole() || !errors.Is(w.SinkErr(), errBroken) {
		t.Errorf("whole %v, sink error %v", w.Whole(), w.SinkErr())
	}
}

// serve runs handler behind a Writer on a real server, and returns its address.
func serve(t *testing.T, sink io.Writer, handler func(w *capture.Writer)) string {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("X-Outer", "1")
		w := capture.New(rw, request, stored(sink))
		handler(w)
		w.Finish()
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestWriter_WriteHeader_InterimPassesAndLeavesNothing(t *testing.T) {
	sink := new(bytes.Buffer)
	url := serve(t, sink, func(w *capture.Writer) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "final")
	})
	var hints http.Header
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == http.StatusEarlyHints {
				hints = http.Header(h)
			}
			return nil
		},
	})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	if hints.Get("Link") == "" {
		t.Error("the 103 did not arrive with its Link")
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Link") != "" || res.Header.Get("X-Outer") != "1" {
		t.Errorf("final response: %d %v", res.StatusCode, res.Header)
	}
	body, _ := io.ReadAll(res.Body)
	if string(body) != "final" || sink.String() != "final" {
		t.Errorf("client %q, sink %q", body, sink)
	}
}

func TestWriter_Finish_TrailersReachTheClient(t *testing.T) {
	url := serve(t, io.Discard, func(w *capture.Writer) {
		h := w.Header()
		h.Set("Trailer", "X-Sum, x-count")
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
		h.Set("X-Sum", "abc")
		h.Set("X-Count", "100")
		h.Set(http.TrailerPrefix+"X-Late", "1")
	})
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	want := http.Header{"X-Sum": {"abc"}, "X-Count": {"100"}, "X-Late": {"1"}}
	if diff := cmp.Diff(want, res.Trailer); diff != "" {
		t.Errorf("trailers (-want +got):\n%s", diff)
	}
}

func TestWriter_Hijack_EndsTheCapture(t *testing.T) {
	done := make(chan bool, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w := capture.New(rw, request, stored(io.Discard))
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			done <- true
			return
		}
		defer conn.Close()
		_, _ = buf.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
		_ = buf.Flush()
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrHijacked) {
			t.Errorf("Write after Hijack: %v", err)
		}
		w.Finish()
		done <- w.Whole()
	}))
	defer srv.Close()
	res, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); string(body) != "hi" {
		t.Errorf("got %q", body)
	}
	if <-done {
		t.Error("a hijacked response counts as whole")
	}
}

func TestWriter_FlushError_SendsWhatIsThere(t *testing.T) {
	flushed := make(chan struct{})
	url := serve(t, io.Discard, func(w *capture.Writer) {
		_, _ = io.WriteString(w, "first")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-flushed
		_, _ = io.WriteString(w, " second")
	})
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first" {
		t.Fatalf("before the second write: %q, %v", first, err)
	}
	close(flushed)
	if rest, _ := io.ReadAll(res.Body); string(rest) != " second" {
		t.Errorf("rest %q", rest)
	}
}
