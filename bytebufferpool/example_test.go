package bytebufferpool_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hotset-go/hotset/bytebufferpool"
)

func examplePool() *bytebufferpool.Pool {
	pool, err := bytebufferpool.New(bytebufferpool.DefaultConfig(bytebufferpool.Bounded))
	if err != nil {
		panic(err)
	}
	return pool
}

func Example() {
	pool, err := bytebufferpool.New(bytebufferpool.DefaultConfig(bytebufferpool.Fast))
	if err != nil {
		fmt.Println(err)
		return
	}
	lease := pool.Acquire(1500)
	defer lease.Release()
	payload := lease.Bytes()
	fmt.Println(len(payload), cap(payload))
	// Output: 1500 2048
}

func ExampleNew() {
	classes, err := bytebufferpool.PowerOfTwo(256, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	config := bytebufferpool.DefaultConfig(bytebufferpool.Bounded)
	config.Classes = classes
	config.MaxRetainedCapacity = 32 << 20
	config.MaxAcquireSize = 64 << 20
	pool, err := bytebufferpool.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	lease := pool.Acquire(100)
	fmt.Println(lease.Cap(), lease.Release(), pool.Stats().RetainedCapacity)
	// Output: 256 Retained 256
}

func ExampleLease_Release() {
	pool := examplePool()
	lease := pool.Acquire(100)
	fmt.Println(lease.Release())
	fmt.Println(lease.Release())

	old := pool.Acquire(100)
	pool.Clear()
	fmt.Println(old.Release())
	// Output:
	// Retained
	// RejectedDuplicate
	// DroppedStale
}

func ExamplePool_TryAcquire() {
	config := bytebufferpool.DefaultConfig(bytebufferpool.Fast)
	config.MaxAcquireSize = 1 << 20
	pool, err := bytebufferpool.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	announced := 6 << 30 >> 4 // by a peer
	_, err = pool.TryAcquire(announced)
	fmt.Println(errors.Is(err, bytebufferpool.ErrInvalidSize))
	// Output: true
}

func ExamplePool_AcquireSlice() {
	pool := examplePool()
	payload := pool.AcquireSlice(1500)
	defer pool.ReleaseSlice(payload)
	fmt.Println(len(payload), cap(payload))
	// Output: 1500 2048
}

func ExamplePool_Buffer() {
	pool := examplePool()
	buffer := pool.Buffer(1024)
	defer buffer.Release()
	_, _ = buffer.WriteString("hello")
	_ = buffer.WriteByte(' ')
	fmt.Fprintf(&buffer, "%s\n", "world")
	_, _ = buffer.WriteTo(os.Stdout)
	// Output: hello world
}

func ExampleBuffer_AvailableBuffer() {
	pool := examplePool()
	buffer := pool.Buffer(64)
	defer buffer.Release()
	_, _ = buffer.Write(time.Unix(0, 0).UTC().AppendFormat(buffer.AvailableBuffer(), time.RFC3339))
	fmt.Println(buffer.String())
	// Output: 1970-01-01T00:00:00Z
}

func ExamplePool_Chain() {
	pool := examplePool()
	chain := pool.Chain(4096)
	defer chain.Release()
	for i := 0; i < 100_000; i++ {
		_, _ = chain.WriteString("line\n")
	}
	segments := net.Buffers(chain.AppendSegments(nil)) // one writev for all of it
	n, err := segments.WriteTo(io.Discard)
	fmt.Println(n, err)
	// Output: 500000 <nil>
}

func ExampleLease_Body() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()

	pool := examplePool()
	lease := pool.Acquire(5)
	copy(lease.Bytes(), "hello")
	body := lease.Body() // closed by the transport, whenever it is done with it
	request, err := http.NewRequest(http.MethodPost, server.URL, body)
	if err != nil {
		fmt.Println(err)
		return
	}
	request.ContentLength = int64(body.Len())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	fmt.Println(string(answer), err)
	// Output: hello <nil>
}

func ExamplePool_ProxyBuffers() {
	pool := examplePool()
	target, err := url.Parse("http://localhost:9000")
	if err != nil {
		fmt.Println(err)
		return
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.BufferPool = pool.ProxyBuffers(32 << 10)
	fmt.Println(len(proxy.BufferPool.Get()))
	// Output: 32768
}

func ExamplePool_ReadAll() {
	pool := examplePool()
	request := strings.NewReader(`{"name":"gopher"}`)
	buffer, err := pool.ReadAll(request, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer buffer.Release()
	fmt.Println(buffer.String())
	// Output: {"name":"gopher"}
}

func ExamplePool_Copy() {
	pool := examplePool()
	var out bytes.Buffer
	n, err := pool.Copy(&out, strings.NewReader("hello"))
	fmt.Println(n, err, out.String())
	// Output: 5 <nil> hello
}

func ExamplePool_Stats() {
	pool := examplePool()
	for _, size := range []int{100, 1000, 1000} {
		lease := pool.Acquire(size)
		lease.Release()
	}
	stats := pool.Stats()
	fmt.Println(stats.IdleStorageCount, "idle,", stats.RetainedCapacity, "bytes")
	// Output: 2 idle, 1152 bytes
}

func ExamplePool_Trim() {
	pool := examplePool()
	lease := pool.Acquire(1 << 20)
	lease.Release()
	fmt.Println(pool.Trim(0), pool.Stats().RetainedCapacity)
	// Output: 1048576 0
}

func ExamplePool_TrimIdle() {
	pool := examplePool()
	stop := make(chan struct{})
	go func() {
		ticker := time.NewTicker(10 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				pool.TrimIdle(time.Minute)
			case <-stop:
				return
			}
		}
	}()
	close(stop)
}

func ExamplePool_Outstanding() {
	config := bytebufferpool.DefaultConfig(bytebufferpool.Fast)
	config.TrackOutstanding = true
	config.StackSampling = 1
	pool, err := bytebufferpool.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = pool.AcquireSlice(1000) // and forgotten
	list, _ := pool.Outstanding()
	for _, o := range list {
		fmt.Println(o.Kind, o.Size, o.Capacity, strings.Contains(o.Acquired.String(), "ExamplePool_Outstanding"))
	}
	// Output: raw slice 1000 1024 true
}

func ExampleConfig_onMisuse() {
	config := bytebufferpool.DefaultConfig(bytebufferpool.Fast)
	config.OnMisuse = func(m bytebufferpool.Misuse) { fmt.Println(m.Kind, m.Capacity) }
	pool, err := bytebufferpool.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	lease := pool.Acquire(1000)
	lease.Release()
	lease.Release()
	// Output: duplicate release 1024
}

func ExampleGeometric() {
	fmt.Println(bytebufferpool.Geometric(64, 256, 4))
	// Output: [64 80 96 112 128 160 192 224 256] <nil>
}

func ExamplePool_SizeHistogram() {
	config := bytebufferpool.DefaultConfig(bytebufferpool.Fast)
	config.SizeHistogram = true
	pool, err := bytebufferpool.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := 0; i < 10; i++ {
		lease := pool.Acquire(1500)
		lease.Release()
	}
	fmt.Println(pool.SizeHistogram())
	// Output: [{1409 1536 10}]
}
