//go:build cgo

package tigerbeetle

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/soak"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// TestRefillOfManyServers has five servers, whose clocks are up to five seconds apart and run up to
// half a thousandth fast or slow, ask one bucket for more than it has, either over minutes or all
// in one moment. The bucket admits what it holds and regains: hardly less, and no more than
// docs/tigerbeetle.md says.
func TestRefillOfManyServers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		capacity, amount int64
		period           time.Duration
	}{
		{50, 10, time.Second},
		{2, 1, 1700 * time.Millisecond}, // a unit takes longer than a denial is remembered
		{300, 300, time.Minute},
		{20, 1000, 7 * time.Second},
	} {
		d := &weir.Definitions{System: []weir.Limit{{
			Name: "b", Kind: weir.Bucket, Capacity: tc.capacity,
			RefillAmount: tc.amount, RefillPeriod: tc.period,
		}}}
		c := newCluster(t, 0)
		var servers []*limiter.Limiter
		for i := range 5 {
			servers = append(servers, c.skewed(d, time.Duration(i-2)*2500*time.Millisecond, int64(i-2)*4000))
		}
		random := rand.New(rand.NewPCG(5, uint64(tc.amount)))
		begin := c.clock.now()
		var admitted, refused atomic.Int64
		for c.clock.now().Sub(begin) < time.Duration(soak.Amount(1, 30))*time.Minute {
			c.pass(time.Duration(1+random.IntN(60)) * time.Millisecond)
			var all sync.WaitGroup
			for _, s := range servers {
				all.Go(func() {
					for {
						_, err := s.Reserve(t.Context(), unit("b", 1))
						if denied(err) {
							refused.Add(1)
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
						admitted.Add(1)
					}
				})
			}
			all.Wait()
		}
		took := c.clock.now().Sub(begin)
		regained := float64(tc.amount) * float64(took) / float64(tc.period)
		ahead := float64(leewayMS*time.Millisecond) + float64(took)/1000
		early := float64(tc.amount) * ahead / float64(tc.period)
		least, most := float64(tc.capacity)+regained*0.99-1, float64(tc.capacity)+regained+early
		t.Logf("%d admitted and %d denied, of %.1f: at least %.1f, at most %.1f",
			admitted.Load(), refused.Load(), float64(tc.capacity)+regained, least, most)
		if got := float64(admitted.Load()); got < least || got > most {
			t.Errorf("capacity %d: %.0f admitted, want %.1f to %.1f", tc.capacity, got, least, most)
		}
	}
}

// skewed opens a server whose clock is off by a duration and runs fast by fast parts in 16 million.
func (c *cluster) skewed(d *weir.Definitions, off time.Duration, fast int64) *limiter.Limiter {
	c.t.Helper()
	begin := c.clock.now()
	now := func() time.Time {
		passed := c.clock.now().Sub(begin)
		return begin.Add(off + passed + passed/16_000_000*time.Duration(fast))
	}
	s, err := OpenLedger(c.t.Context(), &losingLedger{Ledger: c.ledger}, &Options{
		Definitions: d, Poll: -1, Now: now,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	l, err := limiter.New(s, &limiter.Options{Now: now, CacheTTL: -1, StoreTimeout: time.Minute})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestRefillIdle checks that idle servers write nothing for limits in use, in debt, and with holds
// that end, although five servers poll the definitions in force every second.
func TestRefillIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger := emulator.New(nil)
		for i := range 5 {
			s, err := OpenLedger(t.Context(), sharedLedger{ledger}, &Options{Definitions: limitsOfAllKinds(100, false)})
			if err != nil {
				t.Fatal(err)
			}
			l, err := limiter.New(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			lease, err := l.Reserve(t.Context(), &weir.Request{
				Entity: "e", Resource: "r", Costs: weir.Costs{"b": 2, "m": 3, "s": 1, "w": 4},
			})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if _, err := lease.Adjust(t.Context(), weir.Costs{"b": 500}); err != nil {
					t.Fatal(err)
				}
				if _, err := lease.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		count := func() [3]int {
			c := ledger.Contents()
			return [3]int{len(c.Accounts), len(c.Transfers), c.FailedIDs}
		}
		time.Sleep(2 * time.Minute) // until what was used is written
		before := count()
		time.Sleep(2 * time.Hour)
		if after := count(); after != before {
			t.Errorf("accounts, transfers and failed IDs %v, were %v", after, before)
		}
		if len(ledger.Expired()) == 0 {
			t.Error("nothing has expired")
		}
	})
}
