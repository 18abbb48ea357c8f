//go:build cgo

package tigerbeetle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// TestAbandonedEmpty checks that an abandoned lease without holdings is withdrawn once, and not at
// all if another caller has got it or has ended it.
func TestAbandonedEmpty(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"nothing", "repeated", "ended"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inOutages(t, func(b *outageWorld) { abandonedEmpty(b, what) })
		})
	}
}

func abandonedEmpty(b *outageWorld, what string) {
	b.Helper()
	open := func() (*limiter.Limiter, *Store) {
		s, err := OpenLedger(b.Context(), b.outage, &Options{Definitions: only("b", 20), Poll: -1})
		if err != nil {
			b.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{CacheTTL: -1})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		return l, s
	}
	l, s := open()
	other, _ := open()
	b.down()
	r := &weir.Request{LeaseID: weir.NewLeaseID(time.Now()), Entity: "e", Resource: "r"}
	b.leave(l, r)
	b.up()
	synctest.Wait()
	switch what {
	case "repeated":
		if _, err := other.Reserve(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	case "ended":
		if _, err := other.Complete(b.Context(), r.LeaseID, nil); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(5 * time.Second)
	if n := s.abandoned.count.Load(); n != 0 {
		b.Errorf("%d are still looked after", n)
	}
	want := int64(0)
	if what == "nothing" {
		want = 1
	}
	if got := s.Stats().Withdrawn; got != want {
		b.Errorf("%d were withdrawn, want %d", got, want)
	}
	if what == "repeated" {
		if _, err := other.Extend(b.Context(), r.LeaseID); err != nil {
			b.Errorf("the lease of the repeat: %v", err)
		}
	}
}

// TestEmptyReserveRepeated checks that a reservation of nothing is answered again on every server,
// and is refused after a void.
func TestEmptyReserveRepeated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	d := only("b", 20)
	a, b := c.open(d, 0), c.open(d, 0)
	r := &weir.Request{LeaseID: weir.NewLeaseID(c.clock.now()), Entity: "e", Resource: "r"}
	for _, m := range []*member{a, b, a, b} {
		if _, err := m.Reserve(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	other := &weir.Request{LeaseID: r.LeaseID, Entity: "f", Resource: "r"}
	for _, m := range []*member{a, b, c.open(d, 0)} {
		if _, err := m.Reserve(t.Context(), other); err == nil {
			t.Error("other content under the same ID was admitted")
		}
	}
	r = &weir.Request{LeaseID: weir.NewLeaseID(c.clock.now()), Entity: "e", Resource: "r"}
	if _, err := a.Cancel(t.Context(), r.LeaseID); err == nil {
		t.Error("cancelled a lease that nobody has")
	}
	if _, err := b.Reserve(t.Context(), r); err == nil {
		t.Error("a voided ID was reserved")
	}
}
