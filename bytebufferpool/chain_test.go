package bytebufferpool_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	pool "github.com/hotset-go/hotset/bytebufferpool"
)

func TestChain_AgreesWithBytesBuffer(t *testing.T) {
	inModes(t, func(t *testing.T, mode pool.Mode) {
		for seed := int64(0); seed < 200; seed++ {
			r := rand.New(rand.NewSource(seed))
			p := newPool(t, mode, func(c *pool.Config) { c.TrackOutstanding = seed%2 == 0 })
			c := p.Chain(r.Intn(200))
			var want bytes.Buffer
			payload := make([]byte, 20_000)
			r.Read(payload)
			for i := 0; i < 200; i++ {
				n := r.Intn(1 << r.Intn(14))
				switch r.Intn(12) {
				case 0, 1, 2:
					_, _ = c.Write(payload[:n])
					want.Write(payload[:n])
				case 3:
					_, _ = c.WriteString(string(payload[:n]))
					want.Write(payload[:n])
				case 4:
					_ = c.WriteByte(byte(n))
					want.WriteByte(byte(n))
				case 5, 6:
					x, y := make([]byte, n), make([]byte, n)
					a, errA := c.Read(x)
					b, errB := want.Read(y)
					if a != b || (errA == nil) != (errB == nil) || !bytes.Equal(x, y) {
						t.Fatalf("Read: %d, %v, want %d, %v", a, errA, b, errB)
					}
				case 7:
					a, err := c.ReadFrom(iotest.HalfReader(bytes.NewReader(payload[:n])))
					if a != int64(n) || err != nil {
						t.Fatalf("ReadFrom: %d, %v", a, err)
					}
					want.Write(payload[:n])
				case 8:
					if got := c.AppendTo([]byte("x")); string(got) != "x"+want.String() {
						t.Fatal("AppendTo differs")
					}
				case 9:
					flat, err := c.Flatten()
					if err != nil || !bytes.Equal(flat.Bytes(), want.Bytes()) {
						t.Fatal("Flatten differs", err)
					}
					flat.Release()
				case 10:
					var out bytes.Buffer
					segments := net.Buffers(c.AppendSegments(nil))
					_, _ = segments.WriteTo(&out)
					if out.String() != want.String() {
						t.Fatal("AppendSegments differs")
					}
				case 11:
					switch r.Intn(10) {
					case 0:
						c.Reset()
						want.Reset()
					case 1:
						var out bytes.Buffer
						a, err := c.WriteTo(&out)
						if a != int64(want.Len()) || err != nil || out.String() != want.String() {
							t.Fatalf("WriteTo: %d, %v", a, err)
						}
						want.Reset()
					}
				}
				if c.Len() != want.Len() {
					t.Fatalf("%d bytes, want %d", c.Len(), want.Len())
				}
			}
			wantStatus(t, c.Release(), pool.Retained)
			wantStatus(t, c.Release(), pool.RejectedDuplicate)
			if list, tracked := p.Outstanding(); tracked && len(list) != 0 {
				t.Fatalf("%d segments were not released", len(list))
			}
		}
	})
}

func TestChain_SegmentsAreBounded(t *testing.T) {
	p := newPool(t, pool.Fast, nil)
	c := p.Chain(0)
	defer c.Release()
	_, _ = c.Write(make([]byte, 1<<20))
	for i, s := range c.AppendSegments(nil) {
		if len(s) > 64<<10 {
			t.Errorf("segment %d is %d bytes", i, len(s))
		}
	}
	small := newPool(t, pool.Fast, func(c *pool.Config) { c.MaxAcquireSize = 100 })
	d := small.Chain(100)
	defer d.Release()
	_, _ = d.Write(make([]byte, 1000))
	if _, err := d.Flatten(); !errors.Is(err, pool.ErrInvalidSize) {
		t.Error(err)
	}
}

func TestChain_Statuses(t *testing.T) {
	p := newPool(t, pool.Bounded, func(c *pool.Config) { c.MaxRetainedCapacity = 1000 })
	c := p.Chain(64)
	_, _ = c.Write(make([]byte, 5000))
	wantStatus(t, c.Release(), pool.DroppedFull)
	var zero pool.Chain
	wantStatus(t, zero.Release(), pool.IgnoredNil)
	d := p.Chain(64)
	p.Clear()
	wantStatus(t, d.Release(), pool.DroppedStale)
}

func TestChain_EveryMethodPanicsAfterRelease(t *testing.T) {
	p := newPool(t, pool.Fast, nil)
	for name, use := range map[string]func(*pool.Chain){
		"Len": func(c *pool.Chain) { c.Len() }, "Write": func(c *pool.Chain) { _, _ = c.Write(nil) },
		"WriteString": func(c *pool.Chain) { _, _ = c.WriteString("") }, "WriteByte": func(c *pool.Chain) { _ = c.WriteByte(1) },
		"ReadFrom": func(c *pool.Chain) { _, _ = c.ReadFrom(strings.NewReader("x")) }, "Read": func(c *pool.Chain) { _, _ = c.Read(nil) },
		"WriteTo": func(c *pool.Chain) { _, _ = c.WriteTo(io.Discard) }, "AppendSegments": func(c *pool.Chain) { c.AppendSegments(nil) },
		"AppendTo": func(c *pool.Chain) { c.AppendTo(nil) }, "Flatten": func(c *pool.Chain) { _, _ = c.Flatten() },
		"Reset": func(c *pool.Chain) { c.Reset() }, "Body": func(c *pool.Chain) { c.Body() },
	} {
		c := p.Chain(10)
		_, _ = c.Write(make([]byte, 100_000))
		c.Release()
		if text := fmt.Sprint(mustPanic(t, func() { use(&c) })); text != "bytebufferpool: Chain."+name+" after Release" {
			t.Error(text)
		}
		var zero pool.Chain
		mustPanic(t, func() { use(&zero) })
	}
}

func TestChain_WriteToKeepsTheRest(t *testing.T) {
	p := newPool(t, pool.Fast, nil)
	c := p.Chain(0)
	defer c.Release()
	_, _ = c.WriteString("0123456789")
	if n, err := c.WriteTo(shorter{}); n != 5 || !errors.Is(err, io.ErrShortWrite) || string(c.AppendTo(nil)) != "56789" {
		t.Error(n, err, string(c.AppendTo(nil)))
	}
	mustPanic(t, func() { _, _ = c.WriteTo(liar{}) })
	if _, err := c.ReadFrom(idle{}); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	if _, err := c.ReadFrom(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
