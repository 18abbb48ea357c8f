//go:build cgo

package tigerbeetle

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// TestVoidLease checks that an ID that was voided is refused by every server, even by one that is
// opened later, and that nothing is charged. Voiding it again, on any server, writes nothing more.
func TestVoidLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(20), 0), c.open(fourLimits(20), 0)
	r := unit("s", 1)
	r.LeaseID = weir.NewLeaseID(c.clock.now())
	for i, m := range []*member{a, a, b, c.open(fourLimits(20), 0)} {
		reserved, err := m.store.VoidLease(t.Context(), c.clock.now(), r.LeaseID)
		if err != nil || reserved {
			t.Errorf("call %d: got %t, %v, want it voided", i, reserved, err)
		}
	}
	if got := c.sent(codeVoid); got != 1 {
		t.Errorf("%d transfers, want 1", got)
	}
	for i, m := range []*member{a, b, c.open(fourLimits(20), 0)} {
		if _, err := m.Reserve(t.Context(), r); !errors.Is(err, weir.Ended) {
			t.Errorf("server %d: got %v, want %v", i, err, weir.Ended)
		}
		if record, err := m.store.RecoverLease(t.Context(), c.clock.now(), r.LeaseID); record != nil || err != nil {
			t.Errorf("server %d: recovered %+v, %v, want nothing", i, record, err)
		}
		if _, err := m.Extend(t.Context(), r.LeaseID); !errors.Is(err, weir.UnknownLease) {
			t.Errorf("server %d: extend: got %v, want %v", i, err, weir.UnknownLease)
		}
	}
	c.uses(a, map[string]int64{"s": 0})
}

// TestVoidLeaseReserved checks that a lease that exists, live or ended, is not voided.
func TestVoidLeaseReserved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(20), 0), c.open(fourLimits(20), 0)
	lease, err := a.Reserve(t.Context(), unit("s", 1))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		reserved, err := b.store.VoidLease(t.Context(), c.clock.now(), lease.ID)
		if err != nil || !reserved {
			t.Errorf("got %t, %v, want that it exists", reserved, err)
		}
		if _, err := b.Cancel(t.Context(), lease.ID); err != nil {
			t.Error(err)
		}
	}
	c.uses(a, map[string]int64{"s": 0})
}

// TestVoidLeaseLive checks that a real server accepts the transfer and refuses the reservation.
func TestVoidLeaseLive(t *testing.T) {
	t.Parallel()
	ledger, name := connected(t), liveNamespace()
	open := func() (*limiter.Limiter, *Store) {
		s, err := OpenLedger(t.Context(), sharedLedger{ledger}, &Options{
			Definitions: fourLimits(20), Namespace: name, Poll: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{CacheTTL: -1, StoreTimeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l, s
	}
	a, first := open()
	b, second := open()
	r := unit("s", 1)
	r.LeaseID = weir.NewLeaseID(time.Now())
	for _, s := range []*Store{first, second} {
		if reserved, err := s.VoidLease(t.Context(), time.Now(), r.LeaseID); err != nil || reserved {
			t.Errorf("got %t, %v, want it voided", reserved, err)
		}
	}
	for _, l := range []*limiter.Limiter{a, b} {
		if _, err := l.Reserve(t.Context(), r); !errors.Is(err, weir.Ended) {
			t.Errorf("got %v, want %v", err, weir.Ended)
		}
	}
	lease, err := a.Reserve(t.Context(), unit("s", 1))
	if err != nil {
		t.Fatal(err)
	}
	if reserved, err := second.VoidLease(t.Context(), time.Now(), lease.ID); err != nil || !reserved {
		t.Errorf("got %t, %v, want that it exists", reserved, err)
	}
}
