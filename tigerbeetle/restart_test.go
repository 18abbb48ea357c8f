//go:build cgo

package tigerbeetle

import (
	"context"
	"errors"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// TestRestartTime checks that a server that opens an old namespace knows the time before its first
// call: its first reservation counts in this month, and its first status is as of now.
func TestRestartTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	d := &weir.Definitions{System: append(fourLimits(10).System[1:2], bucketOf(20))}
	first := c.open(d, 0)
	if got := c.admits(first, "m", 7) + c.admits(first, "b", 20); got != 27 {
		t.Fatalf("admitted %d at first", got)
	}
	c.pass(40 * 24 * time.Hour)
	for _, skew := range []time.Duration{0, 5 * time.Second, -5 * time.Second} {
		m := c.open(d, skew)
		if got := m.store.ClockOffset(); (got + skew).Abs() > time.Millisecond {
			t.Errorf("a clock that is %s ahead: corrected by %s", skew, got)
		}
		c.uses(m, map[string]int64{"m": 0, "b": 0})
		r := unit("m", 3)
		r.LeaseID = weir.NewLeaseID(c.clock.now())
		l, err := m.Reserve(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		c.uses(first, map[string]int64{"m": 3})
		if _, err := m.Cancel(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	s, err := OpenLedger(t.Context(), &losingLedger{Ledger: c.ledger}, &Options{
		Definitions: d, Poll: -1, Now: c.clock.now, ReadOnly: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.clock.nowMS(); got != c.clock.now().UnixMilli() {
		t.Errorf("opened for reading: it is %s", time.UnixMilli(got).UTC())
	}
	const refusal = "weir: unsupported: the store was opened for reading only"
	if err := s.Reserve(t.Context(), c.clock.now(), &driver.Plan{}, &driver.Outcome{}); err == nil || err.Error() != refusal {
		t.Errorf("opened for reading: reserve: got %v, want %s", err, refusal)
	}
}

// TestRestartRemembers checks that a limiter that opens a cluster remembers earlier ended leases
// for as long as its own option says, from its first call on.
func TestRestartRemembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	begin := func(memory time.Duration) *limiter.Limiter {
		s, err := OpenLedger(t.Context(), sharedLedger{c.ledger}, &Options{
			Definitions: fourLimits(10), Poll: -1, Now: c.clock.now,
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{Now: c.clock.now, LeaseMemory: memory})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := begin(0)
	lease, err := first.Reserve(t.Context(), unit("w", 1))
	if err != nil {
		t.Fatal(err)
	}
	done, err := first.Cancel(t.Context(), lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	r := unit("w", 1)
	r.LeaseID = lease.ID
	for _, step := range []struct {
		passes, memory time.Duration
		known          bool
	}{
		{20 * time.Minute, 30 * time.Minute, true},
		{0, 0, false}, // the default, ten minutes
		{5 * time.Minute, 30 * time.Minute, true},
		{0, 24 * time.Minute, false},
		{6 * time.Minute, 30 * time.Minute, false},
	} {
		c.pass(step.passes)
		again, err := begin(step.memory).Cancel(t.Context(), lease.ID)
		if step.known && (err != nil || !again.At.Equal(done.At)) {
			t.Errorf("%+v: cancel: got %+v, %v; want the same answer", step, again, err)
		} else if !step.known && !errors.Is(err, weir.UnknownLease) {
			t.Errorf("%+v: cancel: got %+v, %v; want %v", step, again, err, weir.UnknownLease)
		}
		if _, err := begin(step.memory).Reserve(t.Context(), r); step.known && !errors.Is(err, weir.Ended) {
			t.Errorf("%+v: reserve: got %v, want %v", step, err, weir.Ended)
		} else if err == nil {
			t.Errorf("%+v: reserved again", step)
		}
	}
}

// slowLedger is a ledger that takes a millisecond to carry a chain out.
type slowLedger struct {
	Ledger

	pass func(time.Duration)
}

func (s *slowLedger) CreateTransfers(
	ctx context.Context, t []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	s.pass(time.Millisecond)
	return s.Ledger.CreateTransfers(ctx, t)
}

// TestRestartExpires checks that a lease ends at the same instant on every server, although the
// cluster carries its chain out later than the server built it.
func TestRestartExpires(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(10), 0), c.open(fourLimits(10), 0)
	a.net.Ledger = &slowLedger{c.ledger, c.pass}
	for _, costs := range []weir.Costs{{"w": 1}, {"s": 1}} { // the slots time out after an hour, like the leases
		r := &weir.Request{Entity: "e", Resource: "r", Costs: costs, LeaseID: weir.NewLeaseID(c.clock.now())}
		first, err := a.Reserve(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Reserve(t.Context(), r)
		if err != nil || !again.Expires.Equal(first.Expires) || !again.HoldsUntil.Equal(first.HoldsUntil) {
			t.Errorf("%v: expires at %v, on another server %v, %v", costs, first.Expires, again, err)
		}
		if first.Expires.Before(first.HoldsUntil) {
			t.Errorf("%v: expires at %v, before its slots at %v", costs, first.Expires, first.HoldsUntil)
		}
		c.pass(time.Second)
		renewed, err := a.Extend(t.Context(), r.LeaseID)
		if err != nil {
			t.Fatal(err)
		}
		record, err := b.store.RecoverLease(t.Context(), c.clock.now(), r.LeaseID)
		if err != nil || !record.Expires.Equal(renewed.Expires) {
			t.Errorf("%v: extended to %v, on another server %+v, %v", costs, renewed.Expires, record, err)
		}
	}
}

// TestRestartTimeLive is TestRestartTime on a real server.
func TestRestartTimeLive(t *testing.T) {
	t.Parallel()
	ledger, name := connected(t), liveNamespace()
	var opened []*Store
	for _, only := range []bool{false, false, true} {
		s, err := OpenLedger(t.Context(), sharedLedger{ledger}, &Options{Namespace: name, Poll: -1, ReadOnly: only})
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, s)
		<-time.After(time.Second) // real time, because the cluster has its own clock
	}
	first := opened[0].clock.nowMS()
	for i, s := range opened {
		if got := s.clock.nowMS() - first; got < -100 || got > 100 {
			t.Errorf("store %d is %d ms behind the first", i, -got)
		}
	}
}
