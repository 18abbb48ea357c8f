//go:build cgo

package tigerbeetle

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/tigerbeetle/emulator"
)

// TestDebtsOfWindow overruns a full window by 50. At each instant after that, as the units return
// one by one, the available units are those that a plain list of them gives.
func TestDebtsOfWindow(t *testing.T) {
	t.Parallel()
	const capacity, over, window = 100, 50, 60 * time.Second
	for _, holds := range []int{1, 4, 10} {
		for which := range holds {
			c := newCluster(t, 0)
			d := only("w", capacity)
			d.System[0].Window = window
			servers := []*member{c.open(d, 0), c.open(d, 0)}
			type held struct {
				until time.Time
				units int64
			}
			var list []held
			var leases []*weir.Lease
			each := int64(capacity / holds)
			for i := range holds {
				l, err := servers[i%2].Reserve(t.Context(), unit("w", each))
				if err != nil {
					t.Fatal(err)
				}
				leases, list = append(leases, l), append(list, held{l.ReservedAt.Add(window), each})
				c.pass(5 * time.Second)
			}
			list[which].units += over
			actual := weir.Costs{"w": list[which].units}
			_, err := servers[holds%2].Complete(t.Context(), leases[which].ID, []weir.Costs{actual})
			if err != nil {
				t.Fatal(err)
			}
			c.pass(500 * time.Millisecond) // between the ends
			for i := range 65 {
				free := int64(capacity)
				for _, h := range list {
					if h.until.After(c.clock.now()) {
						free -= h.units
					}
				}
				// Units that were taken again end up to a second late, because the rest of their
				// time is rounded up.
				if d := c.clock.now().Sub(list[which].until); d >= 0 && d < 1100*time.Millisecond {
					c.pass(1001 * time.Millisecond)
					continue
				}
				if got := c.room(servers[i%2], "w", max(free, 0)); got != max(free, 0) {
					t.Errorf("%d holds, hold %d overrun: after %d s %d are admitted, want %d",
						holds, which, i, got, free)
				}
				c.uses(servers[(i+1)%2], map[string]int64{"w": capacity - free})
				c.pass(1001 * time.Millisecond)
			}
		}
	}
}

// TestDebtsShrink shrinks a lease by one unit at a time while another server keeps asking for one.
// Each returned unit is admitted once, the capacity is never exceeded, and the units that stay are
// held for as long as before.
func TestDebtsShrink(t *testing.T) {
	t.Parallel()
	const capacity = 100
	for _, limit := range []string{"s", "w"} {
		c := newCluster(t, 0)
		a, b := c.open(only(limit, capacity), 0), c.open(only(limit, capacity), 0)
		var leases []*weir.Lease
		for _, n := range []int64{60, 40} {
			l, err := a.Reserve(t.Context(), unit(limit, n))
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		var admitted, refused atomic.Int64
		var stop atomic.Bool
		var prober sync.WaitGroup
		prober.Go(func() {
			for !stop.Load() {
				_, err := b.Reserve(t.Context(), unit(limit, 1))
				switch {
				case err == nil:
					admitted.Add(1)
				case denied(err):
					refused.Add(1)
				default:
					t.Error(err)
				}
				c.pass(time.Millisecond)
			}
		})
		c.passUntil(func() bool { return refused.Load() > 0 }) // the prober has been denied
		for left := int64(59); left >= 20; left-- {
			if _, err := leases[0].Adjust(t.Context(), weir.Costs{limit: left}); err != nil {
				t.Error(err)
			}
			c.pass(3 * time.Millisecond)
		}
		if _, err := leases[1].Complete(t.Context(), weir.Costs{limit: 10}); err != nil {
			t.Error(err)
		}
		want := int64(40 + 30)
		if limit == "s" { // a completed lease has no slots
			want += 10
		}
		c.passUntil(func() bool { return admitted.Load() >= want })
		stop.Store(true)
		prober.Wait()
		if admitted.Load() != want || refused.Load() == 0 {
			t.Errorf("%s: %d admitted and %d denied, want %d", limit, admitted.Load(), refused.Load(), want)
		}
		most, ends := c.occupied(a, limit)
		if most != capacity {
			t.Errorf("%s: at most %d in use at once, want %d", limit, most, capacity)
		}
		for i, l := range leases {
			until := l.ReservedAt.Add(time.Hour)
			if limit == "s" && i == 1 {
				continue
			}
			end := ends[leaseNumber(l.ID)]
			if end.Before(until) || end.After(until.Add(1100*time.Millisecond)) {
				t.Errorf("%s: lease %d ends at %s, want %s", limit, i, end, until)
			}
		}
	}
}

// passUntil lets milliseconds pass until so returns true, for twenty seconds of real time at most.
// It passes a quarter of an hour at most, which is no limit's window here: on a busy machine the
// clock could otherwise advance by hours before another goroutine runs.
func (c *cluster) passUntil(so func() bool) {
	end := c.clock.now().Add(15 * time.Minute)
	for begun := time.Now(); !so() && time.Since(begun) < 20*time.Second; runtime.Gosched() {
		if c.clock.now().Before(end) {
			c.pass(time.Millisecond)
		}
	}
}

// occupied goes through all transfers on the cluster. It returns the most units in use after any
// chain, and when the last units of each lease end.
func (c *cluster) occupied(m *member, limit string) (most int64, ends map[tb.Uint128]time.Time) {
	state := m.store.states.byKey[limitKey{weir.Subject{Entity: "e", Resource: "r"}, limit, kindFor(limit)}]
	held := make(map[tb.Uint128]emulator.Transfer)
	ends = make(map[tb.Uint128]time.Time)
	sum := int64(0)
	for _, e := range c.ledger.Contents().Transfers {
		switch {
		case e.DebitAccountID != state.account:
		case e.Flags&flagPending != 0:
			held[e.ID] = e
			sum += int64(lowUint64(e.Amount))
			if e.Code != codeCheck {
				until := int64(e.Timestamp) + int64(e.Timeout)*int64(time.Second)
				ends[e.UserData128] = time.Unix(0, until)
			}
		case e.Flags&flagVoid != 0:
			sum -= int64(lowUint64(held[e.PendingID].Amount))
			delete(held, e.PendingID)
		}
		if e.Flags&flagLinked == 0 {
			most = max(most, sum)
		}
	}
	return most, ends
}

func kindFor(limit string) weir.Kind { return only(limit, 1).System[0].Kind }
