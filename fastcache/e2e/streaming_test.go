package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// within fails the test unless f ends in time.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s takes longer than %v", what, limit)
	}
}

// H09a: server-sent events pass at once, for several clients side by side, and
// the origin learns when they leave.
func TestH09a_EventStream(t *testing.T) {
	for name, fields := range map[string][]string{
		"accept":    {"Accept: text/event-stream"},
		"no accept": nil,
	} {
		t.Run(name, func(t *testing.T) {
			events := make(chan string)
			left := make(chan struct{}, 2)
			o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				w.Header().Set("Cache-Control", "max-age=60") // even so
				_ = http.NewResponseController(w).Flush()
				for {
					select {
					case e := <-events:
						fmt.Fprintf(w, "data: %s\n\n", e)
						_ = http.NewResponseController(w).Flush()
					case <-r.Context().Done():
						left <- struct{}{}
						return
					}
				}
			})
			c := start(t, site(o))
			const limit = 3 * time.Second // far less than any wait for another's fetch
			var streams []*bufio.Reader
			var leave []context.CancelFunc
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				leave = append(leave, cancel)
				within(t, limit, "the header of a stream without an event", func() {
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, c.url("/events"), nil)
					for _, f := range fields {
						k, v, _ := strings.Cut(f, ": ")
						req.Header.Set(k, v)
					}
					res, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					if res.StatusCode != 200 || !strings.Contains(res.Header.Get("Cache-Status"), "detail=event-stream") {
						t.Errorf("%d, Cache-Status %q", res.StatusCode, res.Header.Get("Cache-Status"))
					}
					streams = append(streams, bufio.NewReader(res.Body))
				})
			}
			if t.Failed() {
				return
			}
			// Each event reaches one of the two; send until both have had some.
			got := make(chan int, 64)
			for i, s := range streams {
				go func() {
					for {
						line, err := s.ReadString('\n')
						if err != nil {
							return
						}
						if strings.HasPrefix(line, "data: ") {
							got <- i
						}
					}
				}()
			}
			seen := make(map[int]bool)
			for i := 0; len(seen) < 2; i++ {
				if i == 100 {
					t.Fatal("100 events, and one of two clients has not had one")
				}
				within(t, limit, "an event", func() {
					events <- fmt.Sprint(i)
					seen[<-got] = true
				})
			}
			for _, l := range leave {
				l()
			}
			for range 2 {
				within(t, limit, "telling the origin that the client has left", func() { <-left })
			}
			if files := c.cacheFiles(); len(files) > 0 {
				t.Errorf("an event stream left %v", files)
			}
		})
	}
}

// frame is a WebSocket text frame (RFC 6455 section 5.2), masked as from a client.
func frame(text string) []byte {
	b := []byte{0x81, 0x80 | 126}
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	mask := []byte{1, 2, 3, 4}
	b = append(b, mask...)
	for i := range len(text) {
		b = append(b, text[i]^mask[i%4])
	}
	return b
}

// H10: WebSockets pass the cache.
func TestH10_WebSocket(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = io.WriteString(w, "a page at the same URL")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		_, _ = io.Copy(conn, rw) // the frames come back as they are
	})
	c := start(t, site(o))
	c.get("/ws").want(t, 200, "a page at the same URL")
	c.get("/ws").wantStatus(t, "fastcache; hit")
	for _, connection := range []string{"Upgrade", "keep-alive, Upgrade", "keep-alive, upgrade"} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: %s\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", c.port, connection)
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "websocket" {
			t.Errorf("Connection: %s: %d %v", connection, res.StatusCode, res.Header)
			continue
		}
		for i := range 20 {
			f := frame(testBody("frame", 10+1000*i))
			if _, err := conn.Write(f); err != nil {
				t.Fatal(err)
			}
			echo := make([]byte, len(f))
			if _, err := io.ReadFull(in, echo); err != nil || !bytes.Equal(echo, f) {
				t.Fatalf("frame %d came back wrong: %v", i, err)
			}
		}
	}
	c.get("/ws").want(t, 200, "a page at the same URL").wantStatus(t, "fastcache; hit")
	o.wantAsked(t, 4)
}

// H10: early hints reach the client before the response, and are no part of what
// is stored.
func TestH10_EarlyHints(t *testing.T) {
	hinted := make(chan struct{}, 1)
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		const link = "</style.css>; rel=preload; as=style"
		w.Header().Set("Link", link)
		w.WriteHeader(http.StatusEarlyHints)
		if r.URL.Path == "/without" {
			w.Header().Del("Link")
		}
		select {
		case <-hinted:
		case <-time.After(5 * time.Second):
			t.Error("the hint did not reach the client before the response")
		}
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "the page")
	})
	c := start(t, site(o))
	for uri, link := range map[string]bool{"/without": false, "/with": true} {
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if code == http.StatusEarlyHints && h.Get("Link") != "" {
					hints++
					hinted <- struct{}{}
				}
				return nil
			},
		})
		r := c.send(ctx, http.MethodGet, uri, nil).want(t, 200, "the page")
		if hints != 1 {
			t.Errorf("%s: %d hints", uri, hints)
		}
		if got := r.Header.Get("Link") != ""; got != link {
			t.Errorf("%s: the response has a Link: %v", uri, got)
		}
		r = c.get(uri).want(t, 200, "the page").wantStatus(t, "fastcache; hit")
		if got := r.Header.Get("Link") != ""; got != link {
			t.Errorf("%s: the stored response has a Link: %v", uri, got)
		}
	}
	o.wantAsked(t, 2)
}
