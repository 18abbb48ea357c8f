//go:build cgo

package tigerbeetle

import (
	"testing"

	"github.com/weir-limiter/weir"
)

// TestUnnamedElsewhere: a limit that a settlement does not name keeps what the lease stands for
// by now, also where another server has adjusted it since.
func TestUnnamedElsewhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	a, b := c.open(fourLimits(20), 0), c.open(fourLimits(20), 0)
	lease, err := a.Reserve(t.Context(), &weir.Request{
		Entity: "e", Resource: "r", Costs: weir.Costs{"b": 2, "m": 2, "s": 2, "w": 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	settle := func(_ *weir.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	settle(b.Adjust(t.Context(), lease.ID, 1, []weir.Costs{{"b": 5, "m": 6, "s": 1, "w": 7}}))
	settle(a.Adjust(t.Context(), lease.ID, 2, []weir.Costs{{"m": 4}}))
	c.uses(b, map[string]int64{"b": 5, "m": 4, "s": 1, "w": 7})
	settle(b.Adjust(t.Context(), lease.ID, 3, []weir.Costs{{"b": 8}}))
	settle(a.Complete(t.Context(), lease.ID, []weir.Costs{{"m": 3}}))
	c.uses(b, map[string]int64{"b": 8, "m": 3, "s": 0, "w": 7})
}
