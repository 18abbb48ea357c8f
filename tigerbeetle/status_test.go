//go:build cgo

package tigerbeetle

import (
	"testing"
	"time"

	"github.com/weir-limiter/weir"
)

// TestStatusByWhoOnlyLooks: a store that may only read, and so never learns the cluster's time,
// tells of a bucket what it has regained by now and of a budget what was used in this period.
func TestStatusByWhoOnlyLooks(t *testing.T) {
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
	looks, err := OpenLedger(t.Context(), &losing{Ledger: c.ledger},
		&Options{Definitions: d, Poll: -1, Now: c.clock.now, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := weir.New(looks, &weir.Options{Now: c.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, m := left(t, l, "b"), left(t, l, "m"); b != 15 || m != 19 {
		t.Errorf("%d and %d available, want 15 and 19", b, m)
	}
}
