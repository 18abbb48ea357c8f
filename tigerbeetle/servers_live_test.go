//go:build cgo

package tigerbeetle

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// liveServers opens two servers on a namespace of their own of a real TigerBeetle server.
func liveServers(
	t *testing.T, d *weir.Definitions,
) (begin func() *limiter.Limiter, servers []*limiter.Limiter) {
	t.Helper()
	ledger, name := connected(t), liveNamespace()
	begin = func() *limiter.Limiter {
		s, err := OpenLedger(t.Context(), sharedLedger{ledger}, &Options{Definitions: d, Namespace: name, Poll: -1})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{CacheTTL: -1, StoreTimeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	return begin, []*limiter.Limiter{begin(), begin()}
}

// TestServersShrinkLive is TestDebtsShrink on a real server: units that a lease returns are
// admitted once.
func TestServersShrinkLive(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"s", "w"} {
		begin, servers := liveServers(t, only(limit, 30))
		lease, err := servers[0].Reserve(t.Context(), unit(limit, 30))
		if err != nil {
			t.Fatal(err)
		}
		var admitted, refused atomic.Int64
		var stop atomic.Bool
		var prober sync.WaitGroup
		prober.Go(func() {
			for !stop.Load() {
				if _, err := servers[1].Reserve(t.Context(), unit(limit, 1)); err == nil {
					admitted.Add(1)
				} else if denied(err) {
					refused.Add(1)
				} else {
					t.Error(err)
				}
			}
		})
		for left := int64(29); left >= 10; left-- {
			if _, err := lease.Adjust(t.Context(), weir.Costs{limit: left}); err != nil {
				t.Error(err)
			}
		}
		for until := time.Now().Add(20 * time.Second); admitted.Load() < 20 && time.Now().Before(until); {
			<-time.After(10 * time.Millisecond)
		}
		stop.Store(true)
		prober.Wait()
		if admitted.Load() != 20 || refused.Load() == 0 {
			t.Errorf("%s: %d admitted, want 20, and %d denied", limit, admitted.Load(), refused.Load())
		}
		statuses, err := begin().Status(t.Context(), "e", "r")
		if err != nil || statuses[0].Available != 0 {
			t.Errorf("%s: %+v, %v", limit, statuses, err)
		}
	}
}

// TestServersReplayLive checks on a real server that a lease of the largest amounts is replayed on
// another server, settled by a third one that has never seen it, and given back to the last unit.
func TestServersReplayLive(t *testing.T) {
	t.Parallel()
	for _, l := range largest().System {
		begin, servers := liveServers(t, largest())
		r := unit(l.Name, l.Capacity)
		r.LeaseID = weir.NewLeaseID(time.Now())
		for i := range 4 {
			lease, err := servers[i%2].Reserve(t.Context(), r)
			if err != nil || lease.Replay != (i > 0) {
				t.Fatalf("%s: call %d: %+v, %v", l.Name, i, lease, err)
			}
		}
		one := unit(l.Name, 1)
		if _, err := servers[1].Reserve(t.Context(), one); !denied(err) {
			t.Errorf("%s: one more: %v", l.Name, err)
		}
		one.LeaseID = r.LeaseID
		if _, err := begin().Reserve(t.Context(), one); !errors.Is(err, weir.Conflict) {
			t.Errorf("%s: with other costs: got %v, want %v", l.Name, err, weir.Conflict)
		}
		if _, err := begin().Cancel(t.Context(), r.LeaseID); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
		if _, err := servers[0].Reserve(t.Context(), r); !errors.Is(err, weir.Ended) {
			t.Errorf("%s: once it is over: got %v, want %v", l.Name, err, weir.Ended)
		}
		statuses, err := begin().Status(t.Context(), "e", "r")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statuses {
			if s.Limit == l.Name && s.Available != s.Capacity {
				t.Errorf("%s: %d of %d available", s.Limit, s.Available, s.Capacity)
			}
		}
	}
}
