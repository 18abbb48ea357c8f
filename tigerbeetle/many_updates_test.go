//go:build cgo

package tigerbeetle

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// growingLease is a lease on a window of an hour, on a cluster whose calls hold 253 events.
type growingLease struct {
	*cluster
	a, b  *member
	lease *weir.Lease
	seq   int64
}

func newGrowingLease(t *testing.T) *growingLease {
	t.Helper()
	c := newCluster(t, 253)
	g := &growingLease{cluster: c, a: c.open(fourLimits(1000), 0), b: c.open(fourLimits(1000), 0)}
	var err error
	if g.lease, err = g.a.Reserve(t.Context(), unit("w", 1)); err != nil {
		t.Fatal(err)
	}
	return g
}

// adjust adjusts the lease on one of the servers.
func (g *growingLease) adjust(m *member, to int64) error {
	g.seq++
	return last(m.Adjust(g.t.Context(), g.lease.ID, g.seq, []weir.Costs{{"w": to}}))
}

// TestManyAdjusts checks that a lease that has grown more often than a call holds events can still
// be adjusted and ended, on every server, and that its units return when they should.
func TestManyAdjusts(t *testing.T) {
	t.Parallel()
	end := map[string]func(g *growingLease) error{
		"cancel": func(g *growingLease) error { return last(g.b.Cancel(t.Context(), g.lease.ID)) },
		"less":   func(g *growingLease) error { return g.adjust(g.a, 0) },
		"complete": func(g *growingLease) error {
			return last(g.a.Complete(t.Context(), g.lease.ID, []weir.Costs{{"w": 0}}))
		},
		"nothing": func(*growingLease) error { return nil },
	}
	for what, do := range end {
		g := newGrowingLease(t)
		for i := range int64(300) {
			g.pass(time.Millisecond)
			m := g.a
			if i%50 == 49 {
				m = g.b
			}
			if err := g.adjust(m, 2+i); err != nil {
				t.Fatalf("adjust %d: %v", i, err)
			}
		}
		if err := do(g); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		left := int64(0)
		if what == "nothing" {
			left = 301
		}
		g.uses(g.b, map[string]int64{"w": left})
		g.clock.to(g.lease.ReservedAt.Add(time.Hour - time.Millisecond))
		g.uses(g.b, map[string]int64{"w": left})
		g.pass(time.Second)
		g.uses(g.b, map[string]int64{"w": 0})
	}
}

// TestManyAdjustsAfterTheWindow checks that units added after the window's end each return in their
// own time. An adjust is refused before there are more of them than one call can give back.
func TestManyAdjustsAfterTheWindow(t *testing.T) {
	t.Parallel()
	for _, cancel := range []bool{true, false} {
		g := newGrowingLease(t)
		if _, err := g.lease.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.pass(59 * time.Minute)
		if _, err := g.lease.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.pass(2 * time.Minute)
		admitted := int64(0)
		for g.adjust(g.a, admitted+2) == nil {
			if admitted++; admitted == 300 {
				t.Fatal("was never refused")
			}
			g.pass(time.Millisecond)
		}
		if admitted < 200 {
			t.Errorf("refused after %d, want 200 or more", admitted)
		}
		t.Logf("refused after %d", admitted)
		if err := g.adjust(g.b, 500); !errors.Is(err, weir.Invalid) {
			t.Errorf("on another server: %v, want %v", err, weir.Invalid)
		}
		g.uses(g.b, map[string]int64{"w": admitted})
		var err error
		if cancel {
			_, err = g.b.Cancel(t.Context(), g.lease.ID)
			admitted = 0
		} else {
			_, err = g.b.Complete(t.Context(), g.lease.ID, []weir.Costs{{"w": 500}})
			admitted = 499 // the first has returned
		}
		if err != nil {
			t.Errorf("cancel %t: %v", cancel, err)
		}
		g.uses(g.a, map[string]int64{"w": admitted})
	}
}

// TestManyAdjustsKeepOnePiece checks that units that have returned are kept as one piece.
func TestManyAdjustsKeepOnePiece(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 253)
	d := fourLimits(1000)
	d.System[3].Window = time.Second
	g := &growingLease{cluster: c, a: c.open(d, 0), b: c.open(d, 0)}
	var err error
	if g.lease, err = g.a.Reserve(t.Context(), unit("w", 1)); err != nil {
		t.Fatal(err)
	}
	for i := range int64(1000) {
		g.pass(50 * time.Millisecond)
		if err := g.adjust(g.a, 2+i); err != nil {
			t.Fatalf("adjust %d: %v", i, err)
		}
	}
	g.uses(g.b, map[string]int64{"w": 20})
	if err := g.adjust(g.b, 991); err != nil { // ten that are held return
		t.Error(err)
	}
	g.uses(g.a, map[string]int64{"w": 10})
	if err := g.adjust(g.a, 5); err != nil {
		t.Error(err)
	}
	g.uses(g.a, map[string]int64{"w": 0})
}

// TestManyAdjustsLive checks what only a real server can answer: that it accepts an empty pending
// transfer with a timeout, and a lease that has grown more often than a call of a server for
// development holds events.
func TestManyAdjustsLive(t *testing.T) {
	t.Parallel()
	ledger, namespace := connected(t), liveNamespace()
	d := &weir.Definitions{System: []weir.Limit{
		{Name: "q", Kind: weir.Window, Capacity: 1, Window: time.Hour, Shadow: true},
		{Name: "w", Kind: weir.Window, Capacity: 1000, Window: time.Hour},
	}}
	open := func() *limiter.Limiter {
		o := &Options{Definitions: d, Namespace: namespace, Poll: -1}
		s, err := OpenLedger(t.Context(), sharedLedger{ledger}, o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{StoreTimeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	servers := []*limiter.Limiter{open(), open()}
	lease, err := servers[0].Reserve(t.Context(), &weir.Request{
		Entity: "e", Resource: "r", Costs: weir.Costs{"q": 0, "w": 0},
	})
	if err != nil {
		t.Fatal(err)
	}
	uses := func(want int64) {
		t.Helper()
		got, err := servers[0].Status(t.Context(), "e", "r")
		if err != nil || got[0].Available != 1-want || got[1].Available != 1000-want {
			t.Errorf("got %+v, %v, want %d in use", got, err, want)
		}
	}
	for i := int64(1); i <= 300; i++ {
		m := servers[i/50%2]
		_, err := m.Adjust(t.Context(), lease.ID, i, []weir.Costs{{"q": i, "w": i}})
		if err != nil {
			t.Fatalf("adjust %d: %v", i, err)
		}
	}
	uses(300)
	two := []weir.Costs{{"q": 2, "w": 2}}
	if _, err := servers[1].Adjust(t.Context(), lease.ID, 301, two); err != nil {
		t.Error(err)
	}
	uses(2)
	if _, err := servers[0].Cancel(t.Context(), lease.ID); err != nil {
		t.Error(err)
	}
	uses(0)
}

// TestFarSequenceNumbers checks that adjusts whose sequence numbers are powers of two apart are
// applied in order, on any server and with extends between them, and that each one repeated is a
// replay, even if its answer was lost.
func TestFarSequenceNumbers(t *testing.T) {
	t.Parallel()
	g := newGrowingLease(t)
	servers := []*member{g.a, g.b}
	to := int64(1)
	for i, seq := range []int64{
		1, farSeq - 1, farSeq, farSeq + 1, farSeq + 2, 2*farSeq + 1, 3*farSeq + 1, 1<<62 + 1, math.MaxInt64,
	} {
		m, other := servers[i%2], servers[(i+1)%2]
		g.seq, to = seq-1, to+1
		if i%3 == 1 {
			m.net.lose.Store(true)
			if err := g.adjust(m, to); err == nil {
				t.Fatalf("adjust %d: the answer was not lost", seq)
			}
			g.seq = seq - 1
		}
		if err := g.adjust(m, to); err != nil {
			t.Fatalf("adjust %d: %v", seq, err)
		}
		g.seq = seq - 1
		if err := g.adjust(other, 500); err != nil {
			t.Fatalf("adjust %d again: %v", seq, err)
		}
		g.uses(g.a, map[string]int64{"w": to})
		if i%2 == 0 {
			if err := last(other.Extend(t.Context(), g.lease.ID)); err != nil {
				t.Fatalf("extend after %d: %v", seq, err)
			}
		}
	}
	if err := last(g.b.Cancel(t.Context(), g.lease.ID)); err != nil {
		t.Fatal(err)
	}
	g.uses(g.a, map[string]int64{"w": 0})
}
