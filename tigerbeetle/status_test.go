//go:build cgo

package tigerbeetle

import (
	"context"
	"testing"
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// afterReadLedger is a ledger that calls a function after a read.
type afterReadLedger struct {
	Ledger

	happens func()
}

func (m *afterReadLedger) LookupAccounts(
	ctx context.Context, ids []tb.Uint128,
) ([]tb.Account, error) {
	found, err := m.Ledger.LookupAccounts(ctx, ids)
	m.happens()
	return found, err
}

func (m *afterReadLedger) AccountTransfers(
	ctx context.Context, f tb.AccountFilter,
) ([]tb.Transfer, error) {
	found, err := m.Ledger.AccountTransfers(ctx, f)
	m.happens()
	return found, err
}

// TestStatusWhileAnchorsMove checks that a status does not count a refill twice if another server
// moves the anchor during the read. If the anchor moves after each read, the refill of one read may
// be missing.
func TestStatusWhileAnchorsMove(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ times, least int }{{0, 10}, {1, 9}, {2, 9}, {3, 9}, {100, 8}} {
		c := newCluster(t, 0)
		d := &weir.Definitions{System: []weir.Limit{bucketOf(20)}} // regains 10 a second
		a, b := c.open(d, 0), c.open(d, 0)
		take := func(n int64) {
			if _, err := b.Reserve(t.Context(), unit("b", n)); err != nil {
				t.Fatal(err)
			}
		}
		take(20)
		c.pass(1050 * time.Millisecond) // and a server's clock may be a thousandth behind
		times := tt.times
		a.store.ledger = &afterReadLedger{a.store.ledger, func() {
			if times--; times >= 0 {
				take(1)
				c.pass(100 * time.Millisecond)
			}
		}}
		if got := left(t, a.Limiter, "b"); got < int64(tt.least) || got > 11 {
			t.Errorf("the anchor moves %d times: %d available, want %d to 11",
				tt.times, got, tt.least)
		}
	}
}

// TestStatusReadOnly checks that a store opened for reading only, which creates nothing,
// reports what a bucket has regained and what was used of a budget in this period.
func TestStatusReadOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	d := &weir.Definitions{System: []weir.Limit{
		bucketOf(20), {Name: "m", Kind: weir.Budget, Capacity: 20, Every: "month", Zone: "UTC"},
	}}
	a := c.open(d, 0)
	for range 2 {
		r := unit("b", 15)
		r.Costs["m"] = 3
		if _, err := a.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		c.pass(40 * 24 * time.Hour)
		if _, err := a.Reserve(t.Context(), unit("m", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Reserve(t.Context(), &weir.Request{
		Entity: "e", Resource: "r", Costs: weir.Costs{"b": 15, "m": 1},
	}); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	reads, err := OpenLedger(t.Context(), &losingLedger{Ledger: c.ledger},
		&Options{Definitions: d, Poll: -1, Now: c.clock.now, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(reads, &limiter.Options{Now: c.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if b, m := left(t, l, "b"), left(t, l, "m"); b != 15 || m != 19 {
		t.Errorf("%d and %d available, want 15 and 19", b, m)
	}
}
