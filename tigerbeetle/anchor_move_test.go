//go:build cgo

package tigerbeetle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// gatedLedger holds the next call that creates transfers back until its gate is opened.
type gatedLedger struct {
	Ledger

	gate chan struct{}
}

func (g *gatedLedger) CreateTransfers(
	ctx context.Context, transfers []tb.Transfer,
) ([]tb.CreateTransferResult, error) {
	if gate := g.gate; gate != nil {
		g.gate = nil
		<-gate
	}
	return g.Ledger.CreateTransfers(ctx, transfers)
}

func (*gatedLedger) Close() error { return nil }

// TestAnchorMoveDenied checks that if the call that moves the anchor of an idle bucket is denied by
// another limit, the units that other calls took meanwhile do not return with the refill for the
// idle time.
func TestAnchorMoveDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 0)
		net := &gatedLedger{Ledger: c.ledger}
		s, err := OpenLedger(t.Context(), net, &Options{
			Poll: -1, Now: c.clock.now, Definitions: &weir.Definitions{System: []weir.Limit{
				bucketOf(100), {Name: "w", Kind: weir.Window, Capacity: 1, Window: time.Hour},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(s, &limiter.Options{Now: c.clock.now})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		take := func(costs weir.Costs) bool {
			r := &weir.Request{Entity: "e", Resource: "r", Costs: costs}
			_, err := l.Reserve(t.Context(), r)
			if err != nil && !denied(err) {
				t.Error(err)
			}
			return err == nil
		}
		if !take(weir.Costs{"b": 1, "w": 1}) {
			t.Fatal("denied at first")
		}
		c.pass(time.Minute)
		gate := make(chan struct{})
		net.gate = gate
		go take(weir.Costs{"b": 1, "w": 1}) // w denies it
		synctest.Wait()
		var taken int64
		go func() {
			if take(weir.Costs{"b": 90}) {
				taken += 90
			}
		}()
		synctest.Wait()
		close(gate)
		synctest.Wait()
		for taken < 300 && take(weir.Costs{"b": 1}) {
			taken++
		}
		if taken != 100 {
			t.Errorf("took %d of 100 at one instant", taken)
		}
	})
}

// TestUncertainEstimateIsReadAgain checks that an estimate read while chains were in flight, which
// may count some of them twice, is read again by the next call that finds none in flight.
func TestUncertainEstimateIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"b", "m", "s", "w"} {
		c := newCluster(t, 0)
		a := c.open(fourLimits(9), 0)
		for want := int64(8); want > 4; want-- {
			l, err := a.Reserve(t.Context(), unit(limit, 1))
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Limits[0].Available; got != want {
				t.Errorf("%s: %d available, want %d", limit, got, want)
			}
			for _, state := range a.store.states.byKey {
				state.mu.Lock()
				state.uncertain, state.bucket.balance, state.expiring.others = true, 0, 7
				for i := range state.periods {
					state.periods[i].used = 7
				}
				state.mu.Unlock()
			}
		}
	}
}
