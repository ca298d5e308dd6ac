package flight_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hotset-go/hotset/fastcache/internal/flight"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGroup_Join_OneLeaderPerKey(t *testing.T) {
	g := flight.NewGroup(time.Now)
	const n = 200
	var leaders, landed atomic.Int32
	var wg sync.WaitGroup
	gate := make(chan struct{})
	joined := make(chan struct{}, n)
	for range n {
		wg.Go(func() {
			c, leader := g.Join("k")
			joined <- struct{}{}
			if leader {
				leaders.Add(1)
				<-gate
				c.Land()
				return
			}
			if c.Wait(t.Context(), time.Minute) {
				landed.Add(1)
			}
		})
	}
	for range n {
		<-joined
	}
	close(gate)
	wg.Wait()
	if leaders.Load() != 1 || landed.Load() != n-1 {
		t.Fatalf("leaders %d, followers woken %d; want 1 and %d", leaders.Load(), landed.Load(), n-1)
	}
	if g.Flying("k") {
		t.Fatal("the key is still in flight after Land")
	}
	if _, leader := g.Join("k"); !leader {
		t.Fatal("a landed key has no new leader")
	}
}

func TestCall_Land_Twice(t *testing.T) {
	g := flight.NewGroup(time.Now)
	first, _ := g.Join("k")
	first.Land()
	second, leader := g.Join("k")
	if !leader {
		t.Fatal("want a new leader")
	}
	first.Land() // must not end the second call
	if !g.Flying("k") {
		t.Fatal("landing an old call twice ended the new one")
	}
	second.Land()
}

func TestCall_Wait_Bounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := flight.NewGroup(time.Now)
		c, _ := g.Join("k")
		start := time.Now()
		if c.Wait(t.Context(), 5*time.Second) {
			t.Error("Wait reports a landing that did not happen")
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("waited %v, want the limit of 5s", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start = time.Now()
		if c.Wait(ctx, time.Hour) {
			t.Error("Wait reports a landing that did not happen")
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("a cancelled follower left after %v, want 1s", d)
		}
		c.Land()
	})
}

func TestGroup_Mark_EndsAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := flight.NewGroup(time.Now)
		g.Mark("k", 2*time.Second)
		if !g.Marked("k") || g.Marked("other") {
			t.Fatal("Marked tells the wrong key")
		}
		time.Sleep(2 * time.Second)
		if g.Marked("k") {
			t.Fatal("the mark outlived its time")
		}
		g.Mark("k", time.Minute)
		g.Unmark("k")
		if g.Marked("k") {
			t.Fatal("Unmark kept the mark")
		}
		for i := range 100_000 {
			g.Mark(fmt.Sprint(i), time.Second)
		}
		if n := g.Marks(); n > flight.MaxMarks {
			t.Fatalf("%d marks held, want at most %d", n, flight.MaxMarks)
		}
		g.Mark("fresh", time.Second)
		if !g.Marked("fresh") {
			t.Fatal("a flood of marks shuts a new one out")
		}
	})
}
