package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSoak drives a Caddy with everything at once, for as long as
// FASTCACHE_SOAK says: reads of all kinds over HTTP/1 and HTTP/2, writes, purges,
// clients that leave, an origin that misbehaves, reloads and kill -9. Every body
// byte is checked against what the origin has sent, and the process must end as
// large as it began.
func TestSoak(t *testing.T) {
	text := os.Getenv("FASTCACHE_SOAK")
	if text == "" {
		t.Skip("a long test: FASTCACHE_SOAK=10m runs it, and so does make soak")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 30*time.Second || length > time.Hour {
		t.Fatalf("FASTCACHE_SOAK=%s: want a duration from 30s to 1h", text)
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FASTCACHE_SOAK_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v, FASTCACHE_SOAK_SEED=%d", length, seed)

	s := &soak{t: t, seed: seed, tlsPort: freePort(t)}
	s.origin = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.origin.CloseClientConnections()
		s.origin.Close()
	})
	s.c = start(t, s.config("1h"))
	s.plain, s.secure = s.client(false), s.client(true)
	s.hastyPlain, s.hastySecure = s.client(false), s.client(true)
	s.waitForCertificate()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { s.work(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	// Kills come in the first half; the second shows whether the process grows.
	rnd := rand.New(rand.NewPCG(seed, 1<<32))
	half := time.Now().Add(length / 2)
	s.disturb(rnd, half, true)
	time.Sleep(min(5*time.Second, length/20))
	first := s.measure()
	var samples []soakSample
	for end := time.Now().Add(length / 2); time.Now().Before(end) && !t.Failed(); {
		s.disturb(rnd, time.Now().Add(length/40), false)
		samples = append(samples, s.measure())
	}
	cancel()
	wg.Wait()
	s.plain.CloseIdleConnections()
	s.secure.CloseIdleConnections()
	s.hastyPlain.CloseIdleConnections()
	s.hastySecure.CloseIdleConnections()
	s.wantFlat(first, samples)
	s.wantTidy()
	t.Logf("%d requests: %d hits, %d other right answers, %d bytes checked, %d refused or cut as they must be, %d while Caddy was down or reloading; %d writes, %d purges, %d reloads, %d refused reloads, %d kills",
		s.requests.Load(), s.hits.Load(), s.right.Load(), s.checked.Load(), s.faults.Load(), s.down.Load(), s.writes.Load(), s.purges.Load(), s.reloads, s.refused, s.kills)
	if s.hits.Load() < s.requests.Load()/20 {
		t.Errorf("only %d hits of %d requests: the test proves little", s.hits.Load(), s.requests.Load())
	}
}

const (
	soakObjects = 400
	soakHost    = "soak.test"
)

type soak struct {
	t       *testing.T
	seed    uint64
	c       *caddy
	origin  *httptest.Server
	tlsPort int

	plain, secure *http.Client

	// Of clients that leave: a connection that one of them breaks off must not be
	// one that another request has just been given.
	hastyPlain, hastySecure *http.Client

	objects [soakObjects]soakObject

	// epoch counts what may cost a client its connection: it is odd while that
	// goes on.
	epoch atomic.Int64

	requests, hits, right, checked, faults, down, writes, purges atomic.Int64
	reloads, refused, kills                                      int
}

// soakObject is one resource of the origin.
type soakObject struct {
	version atomic.Int64 // what the origin has now

	// What a request that begins from now on must not fall behind.
	floor      atomic.Int64 // version, after a write that has succeeded
	bornAfter  atomic.Int64 // Unix nanoseconds, after a purge
	writing    sync.Mutex
	entityTags sync.Map // variant -> the last ETag seen
}

func (s *soak) config(ttl string) string {
	site := fmt.Sprintf(`{
	route {
		fastcache {
			path {dir}/cache
			ttl %s
			disk_size 24MB
			memory_size 4MB
			name soak
		}
		reverse_proxy %s
	}
}
`, ttl, s.origin.Listener.Addr())
	return "http://:{port} " + site + fmt.Sprintf("https://%s:%d ", soakHost, s.tlsPort) + strings.Replace(site, "{\n", "{\n\ttls internal\n", 1)
}

// client returns one that takes soakHost for this machine.
func (s *soak) client(secure bool) *http.Client {
	port := s.c.port
	if secure {
		port = s.tlsPort
	}
	var d net.Dialer
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
			},
			TLSClientConfig:    &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a test's own server
			ForceAttemptHTTP2:  secure,
			DisableCompression: true,
		},
		Timeout: 20 * time.Second,
	}
}

// waitForCertificate waits until Caddy has made one: it listens before that.
func (s *soak) waitForCertificate() {
	eventually(s.t, "Caddy has a certificate", func() bool {
		res, err := s.secure.Get("https://" + soakHost + "/nothing")
		if err != nil {
			return false
		}
		return res.Body.Close() == nil
	})
}

// The origin.

// soakSize is a resource's body size: all kinds of edges, mostly small.
func soakSize(n int) int {
	sizes := []int{0, 1, 100, 1000, 4095, 4096, 5000, 16383, 16384, 16385, 30000, 65536, 200000, 1<<20 + 1, 3 << 20}
	if n%20 != 0 {
		return sizes[n%11]
	}
	return sizes[11+n/20%4]
}

// soakBody is what the origin sends of a version and variant.
func soakBody(n int, version int64, variant string) []byte {
	body := make([]byte, soakSize(n))
	head := copy(body, fmt.Sprintf("object %d version %d variant %s\n", n, version, variant))
	rnd := rand.NewPCG(uint64(n)<<32|uint64(version), uint64(len(variant))+uint64(variant[0]))
	for i := head; i < len(body); i += 8 {
		v := rnd.Uint64()
		for j := i; j < min(i+8, len(body)); j++ {
			body[j] = byte(v)
			v >>= 8
		}
	}
	return body
}

func soakVaries(n int) bool { return n%4 == 1 }

func soakTag(n int) string { return fmt.Sprintf("tag%d", n%10) }

func (s *soak) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch kind {
	case "obj":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n >= soakObjects {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.serveObject(w, r, n)
	case "me":
		h.Set("Cache-Control", "max-age=60")
		if len(rest)%2 == 0 {
			h.Set("Cache-Control", "private, max-age=60")
		}
		_, _ = io.WriteString(w, "for "+r.Header.Get("Authorization"))
	case "fault":
		s.serveFault(w, r, rest)
	}
}

func (s *soak) serveObject(w http.ResponseWriter, r *http.Request, n int) {
	h, o := w.Header(), &s.objects[n]
	if r.Method == http.MethodPut {
		o.version.Add(1)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	born := time.Now().UnixNano()
	version, variant := o.version.Load(), "-"
	if soakVaries(n) {
		h.Set("Vary", "X-V")
		variant = "v" + r.Header.Get("X-V")
	}
	switch born >> 10 % 50 {
	case 0:
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "the origin's own trouble")
		return
	case 1:
		panic(http.ErrAbortHandler)
	}
	h.Set("X-Version", strconv.FormatInt(version, 10))
	h.Set("X-Born", strconv.FormatInt(born, 10))
	h.Set("Cache-Tag", soakTag(n))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", []string{
		"max-age=1", "max-age=5", "max-age=60", "max-age=1, stale-while-revalidate=10",
		"max-age=1, stale-if-error=30", "max-age=2, must-revalidate", "no-cache", "s-maxage=3", "max-age=0, must-revalidate",
	}[n/3%9])
	tag := fmt.Sprintf(`"%d-%d-%s"`, n, version, variant)
	if n%3 != 0 {
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	body := soakBody(n, version, variant)
	if n%2 == 0 {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	if r.Method == http.MethodHead {
		return
	}
	if n%2 == 1 {
		_ = http.NewResponseController(w).Flush()
	}
	for len(body) > 0 {
		k := min(len(body), 48<<10)
		if _, err := w.Write(body[:k]); err != nil {
			return
		}
		body = body[k:]
		if n%20 == 0 && k > 40<<10 {
			time.Sleep(time.Millisecond)
		}
	}
}

// serveFault never sends the whole of what it announces.
func (s *soak) serveFault(w http.ResponseWriter, r *http.Request, kind string) {
	w.Header().Set("Cache-Control", "max-age=60")
	kind, _, _ = strings.Cut(kind, "/")
	switch kind {
	case "hang":
		select {
		case <-r.Context().Done():
		case <-time.After(15 * time.Second):
		}
		panic(http.ErrAbortHandler)
	case "truncate":
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(make([]byte, 50000))
		panic(http.ErrAbortHandler)
	case "reset":
		_, _ = w.Write(make([]byte, 50000))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "lie":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		// More than announced: what is beyond is not part of the response.
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nliesHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
	}
}

// The clients.

func (s *soak) work(ctx context.Context, rnd *rand.Rand) {
	for ctx.Err() == nil && !s.t.Failed() {
		n := rnd.IntN(soakObjects)
		if rnd.IntN(2) == 0 {
			n = rnd.IntN(40) // what is asked for often
		}
		switch p := rnd.IntN(1000); {
		case p < 20:
			s.write(ctx, rnd, n)
		case p < 25:
			s.purge(ctx, n)
		case p < 60:
			s.fault(ctx, rnd)
		case p < 120:
			s.me(ctx, rnd)
		default:
			s.read(ctx, rnd, n)
		}
	}
}

func (s *soak) request(ctx context.Context, rnd *rand.Rand, method, uri string, fields ...string) (*http.Response, error) {
	scheme, client, hasty := "http", s.plain, s.hastyPlain
	if rnd.IntN(4) == 0 {
		scheme, client, hasty = "https", s.secure, s.hastySecure
	}
	if _, leaves := ctx.Deadline(); leaves {
		client = hasty
	}
	req, err := http.NewRequestWithContext(ctx, method, scheme+"://"+soakHost+uri, nil)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Set(name, value)
	}
	s.requests.Add(1)
	return client.Do(req)
}

// excused reports whether a failure is due to a kill or a reload since epoch.
func (s *soak) excused(ctx context.Context, epoch int64) bool {
	if ctx.Err() != nil {
		return true
	}
	if epoch%2 == 1 || s.epoch.Load() != epoch {
		s.down.Add(1)
		time.Sleep(20 * time.Millisecond)
		return true
	}
	return false
}

func (s *soak) read(ctx context.Context, rnd *rand.Rand, n int) {
	o := &s.objects[n]
	variant, fields := "-", []string(nil)
	if soakVaries(n) {
		v := string(rune('a' + rnd.IntN(3)))
		variant, fields = "v"+v, append(fields, "X-V: "+v)
	}
	method, size := http.MethodGet, soakSize(n)
	var condition string
	switch rnd.IntN(10) {
	case 0:
		method = http.MethodHead
	case 1:
		if tag, ok := o.entityTags.Load(variant); ok {
			condition = tag.(string)
			fields = append(fields, "If-None-Match: "+condition)
		}
	case 2:
		if size > 10 {
			from := rnd.IntN(size)
			r := fmt.Sprintf("bytes=%d-%d", from, from+rnd.IntN(size))
			if rnd.IntN(3) == 0 {
				r = fmt.Sprintf("bytes=0-4,%d-", size-3)
			}
			fields = append(fields, "Range: "+r)
			if tag, ok := o.entityTags.Load(variant); ok && rnd.IntN(2) == 0 {
				fields = append(fields, "If-Range: "+tag.(string))
			}
		}
	}
	epoch, floor, bornAfter := s.epoch.Load(), o.floor.Load(), o.bornAfter.Load()
	if rnd.IntN(30) == 0 {
		s.leave(ctx, rnd, method, fmt.Sprintf("/obj/%d", n), fields)
		return
	}
	res, err := s.request(ctx, rnd, method, fmt.Sprintf("/obj/%d", n), fields...)
	if err != nil {
		if !s.excused(ctx, epoch) {
			s.t.Errorf("object %d %v: %v", n, fields, err)
		}
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		// An origin that breaks off in mid-body leaves no other way to say so.
		if !s.excused(ctx, epoch) {
			s.t.Errorf("object %d %v: after %d bytes: %v (Cache-Status: %s)", n, fields, len(body), err, res.Header.Get("Cache-Status"))
		}
		return
	}
	status := res.Header.Get("Cache-Status")
	fail := func(format string, args ...any) {
		s.t.Errorf("object %d %v: %s (status %d, Cache-Status: %s, %s)", n, fields, fmt.Sprintf(format, args...), res.StatusCode, status, res.Request.URL.Scheme)
	}
	switch res.StatusCode {
	case http.StatusOK, http.StatusPartialContent, http.StatusNotModified, http.StatusRequestedRangeNotSatisfiable:
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		s.faults.Add(1)
		return
	default:
		fail("unexpected")
		return
	}
	if res.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		s.right.Add(1)
		return
	}
	version, err := strconv.ParseInt(res.Header.Get("X-Version"), 10, 64)
	if err != nil {
		fail("no version")
		return
	}
	born, _ := strconv.ParseInt(res.Header.Get("X-Born"), 10, 64)
	if version < floor {
		fail("version %d, but %d was written before", version, floor)
	}
	if born < bornAfter {
		fail("%v older than the purge", time.Duration(bornAfter-born))
	}
	want := soakBody(n, version, variant)
	switch {
	case res.StatusCode == http.StatusNotModified:
		if condition == "" || res.Header.Get("ETag") != condition {
			fail("304 with ETag %s", res.Header.Get("ETag"))
		}
	case method == http.MethodHead:
		if len(body) > 0 || res.ContentLength >= 0 && res.ContentLength != int64(len(want)) {
			fail("HEAD: %d bytes, Content-Length %d, want %d", len(body), res.ContentLength, len(want))
		}
	case res.StatusCode == http.StatusPartialContent:
		if why := checkParts(res.Header, body, want); why != "" {
			fail("%s", why)
		}
	case !bytes.Equal(body, want):
		i := 0
		for i < min(len(body), len(want)) && body[i] == want[i] {
			i++
		}
		fail("%d bytes, want %d, first difference at %d: %.60q", len(body), len(want), i, body)
	}
	s.checked.Add(int64(len(body)))
	if tag := res.Header.Get("ETag"); tag != "" {
		o.entityTags.Store(variant, tag)
	}
	if strings.HasPrefix(status, "fastcache; hit") {
		s.hits.Add(1)
	} else {
		s.right.Add(1)
	}
}

// checkParts returns what is wrong with the body of a 206.
func checkParts(h http.Header, body, whole []byte) string {
	check := func(contentRange string, part []byte) string {
		var from, to, size int
		if _, err := fmt.Sscanf(contentRange, "bytes %d-%d/%d", &from, &to, &size); err != nil {
			return fmt.Sprintf("Content-Range %q", contentRange)
		}
		if size != len(whole) || from < 0 || to < from || to >= size || !bytes.Equal(part, whole[from:to+1]) {
			return fmt.Sprintf("%d bytes for %q of %d", len(part), contentRange, len(whole))
		}
		return ""
	}
	mediaType, params, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if mediaType != "multipart/byteranges" {
		return check(h.Get("Content-Range"), body)
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return err.Error()
		}
		if why := check(p.Header.Get("Content-Range"), data); why != "" {
			return why
		}
	}
}

// leave asks and goes away in the middle.
func (s *soak) leave(ctx context.Context, rnd *rand.Rand, method, uri string, fields []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rnd.IntN(8))*time.Millisecond)
	defer cancel()
	res, err := s.request(ctx, rnd, method, uri, fields...)
	if err == nil {
		_, _ = io.CopyN(io.Discard, res.Body, int64(rnd.IntN(100000)))
		res.Body.Close()
	}
}

// write changes an object through the cache.
func (s *soak) write(ctx context.Context, rnd *rand.Rand, n int) {
	o := &s.objects[n]
	o.writing.Lock()
	defer o.writing.Unlock()
	epoch := s.epoch.Load()
	res, err := s.request(ctx, rnd, http.MethodPut, fmt.Sprintf("/obj/%d", n))
	if err != nil {
		if !s.excused(ctx, epoch) {
			s.t.Errorf("PUT %d: %v", n, err)
		}
		return
	}
	res.Body.Close()
	if res.StatusCode == http.StatusNoContent {
		o.floor.Store(o.version.Load()) // nobody else writes
		s.writes.Add(1)
	}
}

func (s *soak) purge(ctx context.Context, n int) {
	epoch, now := s.epoch.Load(), time.Now().UnixNano()
	req, _ := http.NewRequestWithContext(ctx, "PURGE", fmt.Sprintf("http://%s/obj/%d", soakHost, n), nil)
	res, err := s.plain.Do(req)
	if err != nil {
		if !s.excused(ctx, epoch) {
			s.t.Errorf("PURGE %d: %v", n, err)
		}
		return
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNotFound {
		s.t.Errorf("PURGE %d: %s", n, res.Status)
		return
	}
	raise(&s.objects[n].bornAfter, now)
	s.purges.Add(1)
}

func raise(to *atomic.Int64, v int64) {
	for old := to.Load(); old < v && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}

// me asks for what is for one user only.
func (s *soak) me(ctx context.Context, rnd *rand.Rand) {
	user := fmt.Sprint("user ", rnd.IntN(1000))
	epoch := s.epoch.Load()
	res, err := s.request(ctx, rnd, http.MethodGet, fmt.Sprintf("/me/%d", rnd.IntN(20)), "Authorization: "+user)
	if err != nil {
		if !s.excused(ctx, epoch) {
			s.t.Errorf("/me: %v", err)
		}
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		if !s.excused(ctx, epoch) {
			s.t.Errorf("/me: %v", err)
		}
	case res.StatusCode != 200:
		if !s.excused(ctx, epoch) {
			s.t.Errorf("/me: %s", res.Status)
		}
	case string(body) != "for "+user:
		s.t.Errorf("%s got %q (Cache-Status: %s)", user, body, res.Header.Get("Cache-Status"))
	default:
		s.right.Add(1)
	}
}

// fault asks for what never comes whole.
func (s *soak) fault(ctx context.Context, rnd *rand.Rand) {
	kind := []string{"hang", "truncate", "reset", "lie"}[rnd.IntN(4)]
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	res, err := s.request(ctx, rnd, http.MethodGet, fmt.Sprintf("/fault/%s/%d", kind, rnd.IntN(5)))
	if err != nil {
		s.faults.Add(1)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	s.faults.Add(1)
	if err == nil && res.StatusCode == 200 && (kind != "lie" || string(body) != "lies") {
		s.t.Errorf("/fault/%s: %d bytes as if they were all (Cache-Status: %s)", kind, len(body), res.Header.Get("Cache-Status"))
	}
}

// What happens to the process.

// disturb reloads, purges through the admin API and, if told so, kills, until
// the time has come.
func (s *soak) disturb(rnd *rand.Rand, until time.Time, kill bool) {
	nextKill := time.Now().Add(10 * time.Second)
	for time.Now().Before(until) && !s.t.Failed() {
		time.Sleep(min(time.Duration(300+rnd.IntN(700))*time.Millisecond, max(time.Until(until), 0)))
		switch p := rnd.IntN(10); {
		case kill && time.Now().After(nextKill):
			nextKill = time.Now().Add(10 * time.Second)
			s.epoch.Add(1)
			s.c.kill()
			s.c.run(s.config("1h"))
			s.waitForCertificate()
			s.epoch.Add(1)
			s.kills++
		case p < 2:
			s.reload(rnd)
		case p < 5:
			s.adminPurge(rnd)
		}
	}
}

func (s *soak) reload(rnd *rand.Rand) {
	config := s.config([]string{"1h", "30m"}[rnd.IntN(2)])
	if rnd.IntN(4) == 0 {
		bad := strings.Replace(config, "path {dir}/cache", "path /dev/null/x", 1)
		if err := s.c.reload(bad); err == nil {
			s.t.Error("a configuration that cannot work was taken")
		}
		s.refused++
		return
	}
	s.epoch.Add(1)
	if err := s.c.reload(config); err != nil {
		s.t.Error(err)
	}
	time.Sleep(3500 * time.Millisecond) // the grace period of the harness and some
	s.epoch.Add(1)
	s.reloads++
}

// adminPurge drops what a pattern or a tag names.
func (s *soak) adminPurge(rnd *rand.Rand) {
	n := rnd.IntN(soakObjects)
	now := time.Now().UnixNano()
	selector, hit := "", func(int) bool { return true }
	switch rnd.IntN(4) {
	case 0:
		selector, hit = fmt.Sprintf(`{"pattern":"/obj/%d$"}`, n), func(i int) bool { return i == n }
	case 1:
		tag := soakTag(n)
		selector, hit = fmt.Sprintf(`{"tag":%q}`, tag), func(i int) bool { return soakTag(i) == tag }
	case 2:
		prefix := fmt.Sprintf("/obj/%d", n%40)
		selector = fmt.Sprintf(`{"pattern":%q}`, prefix)
		hit = func(i int) bool { return strings.HasPrefix(fmt.Sprintf("/obj/%d", i), prefix) }
	case 3:
		if rnd.IntN(10) != 0 {
			return
		}
		selector = `{"all":true}`
	}
	req, _ := http.NewRequestWithContext(s.t.Context(), http.MethodDelete, fmt.Sprintf("http://127.0.0.1:%d/fastcache/purge", s.c.admin), strings.NewReader(selector))
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(err)
		return
	}
	text, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Errorf("purge %s: %s: %s", selector, res.Status, text)
		return
	}
	for i := range s.objects {
		if hit(i) {
			raise(&s.objects[i].bornAfter, now)
		}
	}
	s.purges.Add(1)
}

type soakSample struct {
	goroutines, files int
	heap, rss         int64
}

func (s *soak) measure() soakSample {
	return soakSample{s.c.goroutines(s.t), len(s.c.openFiles(s.t)), s.c.heap(s.t), s.c.rss(s.t)}
}

// wantFlat compares the beginning of the second half with the end.
func (s *soak) wantFlat(first soakSample, samples []soakSample) {
	if len(samples) < 4 {
		return
	}
	median := func(list []soakSample, of func(soakSample) int64) int64 {
		var v []int64
		for _, x := range list {
			v = append(v, of(x))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	third := max(len(samples)/3, 1)
	for name, check := range map[string]struct {
		of    func(soakSample) int64
		slack int64
	}{
		"goroutines": {func(x soakSample) int64 { return int64(x.goroutines) }, 100},
		"open files": {func(x soakSample) int64 { return int64(x.files) }, 60},
		"heap":       {func(x soakSample) int64 { return x.heap }, 8 << 20},
	} {
		begin, end := median(samples[:third], check.of), median(samples[len(samples)-third:], check.of)
		s.t.Logf("%s: %d at first, then %d (first third) and %d (last third)", name, check.of(first), begin, end)
		if end > begin+check.slack {
			s.t.Errorf("%s grew from %d to %d", name, begin, end)
		}
	}
	s.t.Logf("resident memory: %d MiB at first, %d MiB at the end", first.rss>>20, samples[len(samples)-1].rss>>20)
	// Without clients all of it goes away but what an idle Caddy has.
	eventually(s.t, "the process is idle", func() bool {
		return s.c.goroutines(s.t) < 150 && len(s.c.openFiles(s.t)) < 120
	})
}

// wantTidy looks for files that belong to no stored response.
func (s *soak) wantTidy() {
	eventually(s.t, "no file is left over", func() bool {
		bodies, sidecars := make(map[string]bool), make(map[string]bool)
		for _, f := range s.c.cacheFiles() {
			if meta, ok := strings.CutSuffix(f, ".meta"); ok {
				sidecars[meta] = true
			} else if filepath.Ext(f) != "" {
				return false
			} else {
				bodies[f] = true
			}
		}
		for f := range bodies {
			if !sidecars[f] {
				return false
			}
		}
		return len(bodies) == len(sidecars)
	})
}
