package bytebufferpool_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

var _ httputil.BufferPool = (*pool.ProxyBuffers)(nil)

func tracked(t testing.TB) *pool.Pool {
	return newPool(t, pool.Bounded, func(c *pool.Config) {
		c.TrackOutstanding, c.StackSampling, c.ValidationEnabled, c.DiagnosticFill = true, 1, true, true
		c.OnMisuse = func(m pool.Misuse) { t.Error(m) }
	})
}

// allBack fails if something was not released.
func allBack(t testing.TB, p *pool.Pool) {
	t.Helper()
	list, _ := p.Outstanding()
	for _, o := range list {
		t.Errorf("a %v of %d bytes is outstanding, acquired at\n%v", o.Kind, o.Size, o.Acquired)
	}
}

func TestProxyBuffers_ReverseProxy(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(zeroReader{}, 1<<20))
	}))
	defer origin.Close()
	target, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := tracked(t)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.BufferPool = p.ProxyBuffers(32 << 10)
	front := httptest.NewServer(proxy)
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := 0; j < 5; j++ {
				resp, err := http.Get(front.URL)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if n != 1<<20 || err != nil {
					t.Error(n, err)
				}
			}
		}()
	}
	wg.Wait()
	front.Close()
	allBack(t, p)
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestProxyBuffers_InvalidSize(t *testing.T) {
	p := newPool(t, pool.Fast, nil)
	mustPanic(t, func() { p.ProxyBuffers(-1) })
}

func TestCopy_AllBytes(t *testing.T) {
	p := tracked(t)
	src := make([]byte, 100_000)
	for i := range src {
		src[i] = byte(i * 7)
	}
	var out bytes.Buffer
	n, err := p.Copy(struct{ io.Writer }{&out}, onlyReader{bytes.NewReader(src)})
	if n != int64(len(src)) || err != nil || !bytes.Equal(out.Bytes(), src) {
		t.Error(n, err)
	}
	out.Reset()
	if n, err = p.CopyBuffer(struct{ io.Writer }{&out}, onlyReader{bytes.NewReader(src)}, 7); n != int64(len(src)) || err != nil || !bytes.Equal(out.Bytes(), src) {
		t.Error(n, err)
	}
	if _, err := p.Copy(io.Discard, iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	mustPanic(t, func() { _, _ = p.CopyBuffer(io.Discard, strings.NewReader(""), 0) })
	allBack(t, p)
}

func TestReadAll_Limit(t *testing.T) {
	p := tracked(t)
	for _, size := range []int{0, 1, 511, 512, 513, 100_000} {
		for _, limit := range []int{0, 1, 512, 513, 100_000, 200_000} {
			src := strings.Repeat("x", size)
			b, err := p.ReadAll(iotest.OneByteReader(strings.NewReader(src)), limit)
			if size > limit {
				if !errors.Is(err, pool.ErrTooLarge) {
					t.Errorf("%d bytes with limit %d: %v", size, limit, err)
				}
				wantStatus(t, b.Release(), pool.IgnoredNil)
				continue
			}
			if err != nil || b.String() != src {
				t.Errorf("%d bytes with limit %d: %v, %d bytes", size, limit, err, b.Len())
			}
			wantStatus(t, b.Release(), pool.Retained)
		}
	}
	if _, err := p.ReadAll(strings.NewReader(""), -1); !errors.Is(err, pool.ErrInvalidSize) {
		t.Error(err)
	}
	if _, err := p.ReadAll(iotest.ErrReader(io.ErrUnexpectedEOF), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := p.ReadAll(iotest.ErrReader(io.ErrUnexpectedEOF), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := p.ReadAll(idle{}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	mustPanic(t, func() { _, _ = p.ReadAll(liar{}, 1000) })
	allBack(t, p)
}

func TestReadAll_MaxAcquireSize(t *testing.T) {
	p := newPool(t, pool.Fast, func(c *pool.Config) { c.MaxAcquireSize = 1000 })
	if _, err := p.ReadAll(strings.NewReader(strings.Repeat("x", 1001)), 1<<20); !errors.Is(err, pool.ErrTooLarge) {
		t.Error(err)
	}
}

// bodies makes a Body of the same content from each kind.
func bodies(p *pool.Pool, content string) map[string]*pool.Body {
	l := p.Acquire(len(content))
	copy(l.Bytes(), content)
	b := p.Buffer(0)
	_, _ = b.WriteString("x" + content)
	b.Next(1)
	c := p.Chain(0)
	_, _ = c.WriteString("x" + content)
	_, _ = c.Read(make([]byte, 1))
	return map[string]*pool.Body{"Lease": l.Body(), "Buffer": b.Body(), "Chain": c.Body()}
}

func TestBody_ReadsAndReleasesOnce(t *testing.T) {
	content := strings.Repeat("0123456789", 20_000)
	for _, name := range []string{"Lease", "Buffer", "Chain"} {
		p := tracked(t)
		body := bodies(p, content)[name]
		if err := iotest.TestReader(io.LimitReader(body, 0), nil); err != nil {
			t.Error(err)
		}
		if body.Len() != len(content) {
			t.Errorf("%s: Len is %d", name, body.Len())
		}
		half := make([]byte, 70_000)
		if _, err := io.ReadFull(body, half); err != nil {
			t.Error(err)
		}
		var rest bytes.Buffer
		if n, err := body.WriteTo(&rest); n != int64(len(content)-len(half)) || err != nil {
			t.Error(n, err)
		}
		if string(half)+rest.String() != content {
			t.Errorf("%s: the content differs", name)
		}
		if n, err := body.Read(half); n != 0 || !errors.Is(err, io.EOF) {
			t.Error(n, err)
		}
		for i := 0; i < 3; i++ {
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := body.Read(half); !errors.Is(err, pool.ErrClosed) {
			t.Errorf("%s: Read after Close: %v", name, err)
		}
		if _, err := body.WriteTo(io.Discard); !errors.Is(err, pool.ErrClosed) {
			t.Errorf("%s: WriteTo after Close: %v", name, err)
		}
		if body.Len() != 0 {
			t.Error("Len after Close")
		}
	}
}

// The lease that a Body was made of is over: it can neither be read nor released
// under the Body.
func TestBody_TakesTheLease(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		p := newPool(t, mode, nil)
		for i := 0; i < 3; i++ { // without a seat, and with one
			l := p.Acquire(10)
			body := l.Body()
			mustPanic(t, func() { l.Bytes() })
			mustPanic(t, func() { l.Body() })
			wantStatus(t, l.Release(), pool.RejectedDuplicate)
			other := p.Acquire(10)
			if got, err := io.ReadAll(body); len(got) != 10 || err != nil {
				t.Error(len(got), err)
			}
			body.Close()
			other.Release()
		}
	})
}

// Close while a write is under way does not release what is being written.
func TestBody_CloseDuringWrite(t *testing.T) {
	for _, name := range []string{"Lease", "Buffer", "Chain"} {
		p := tracked(t)
		all := bodies(p, strings.Repeat("x", 200_000))
		body := all[name]
		for other, b := range all {
			if other != name {
				b.Close()
			}
		}
		r, w := io.Pipe()
		done := make(chan error)
		go func() {
			_, err := body.WriteTo(w)
			done <- err
		}()
		one := make([]byte, 1)
		_, _ = r.Read(one)
		body.Close()
		if list, _ := p.Outstanding(); len(list) == 0 {
			t.Errorf("%s: released while it is being written", name)
		}
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if err := <-done; name == "Chain" && !errors.Is(err, pool.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		allBack(t, p)
	}
}

func TestBody_WriterPanics(t *testing.T) {
	p := tracked(t)
	l := p.Acquire(10)
	body := l.Body()
	mustPanic(t, func() { _, _ = body.WriteTo(liar{}) })
	if n, err := body.WriteTo(shorter{}); n != 5 || !errors.Is(err, io.ErrShortWrite) {
		t.Error(n, err)
	}
	body.Close()
	allBack(t, p)
}

// Request bodies, with a server that answers before it has read them: the case in
// which releasing after Do corrupts other requests.
func TestBody_HTTPRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		if n != 300_000 || err != nil {
			t.Error(n, err)
		}
	}))
	p := tracked(t)
	for i := 0; i < 20; i++ {
		b := p.Buffer(0)
		_, _ = b.WriteString(strings.Repeat("x", 300_000))
		body := b.Body()
		req, err := http.NewRequest(http.MethodPost, server.URL+[]string{"/", "/early"}[i%2], body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = int64(body.Len())
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
		}
	}
	server.Close()
	http.DefaultClient.CloseIdleConnections()
	waitFor(t, func() bool { list, _ := p.Outstanding(); return len(list) == 0 })
}
