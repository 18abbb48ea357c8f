//go:build cgo

package tigerbeetle

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestRestartTime: a server that begins on a namespace of long ago knows the time before it has
// done anything: its first reservation counts in this month, and what it looks at is as it is now.
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
	s, err := OpenLedger(t.Context(), &losing{Ledger: c.ledger}, &Options{
		Definitions: d, Poll: -1, Now: c.clock.now, ReadOnly: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.clock.ms(); got != c.clock.now().UnixMilli() {
		t.Errorf("opened for reading: it is %s", time.UnixMilli(got).UTC())
	}
}

// TestRestartTimeLive: on a real server too.
func TestRestartTimeLive(t *testing.T) {
	t.Parallel()
	ledger, name := connected(t), liveNamespace()
	var opened []*Store
	for _, only := range []bool{false, false, true} {
		s, err := OpenLedger(t.Context(), shared{ledger}, &Options{Namespace: name, Poll: -1, ReadOnly: only})
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, s)
		<-time.After(time.Second) // the cluster's time is its own
	}
	first := opened[0].clock.ms()
	for i, s := range opened {
		if got := s.clock.ms() - first; got < -100 || got > 100 {
			t.Errorf("store %d is %d ms behind the first", i, -got)
		}
	}
}
