//go:build cgo

package tigerbeetle

import (
	"errors"
	"testing"

	"github.com/weir-limiter/weir"
)

// TestAvailableAfterLostAnswer checks that the available units count what a call whose answer was
// lost has taken or given back.
func TestAvailableAfterLostAnswer(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"b", "m", "s", "w"} {
		c := newCluster(t, 0)
		a := c.open(only(limit, 100), 0)
		kept, err := a.Reserve(t.Context(), unit(limit, 10))
		if err != nil {
			t.Fatal(err)
		}
		a.net.lose.Store(true)
		if _, err := a.Reserve(t.Context(), unit(limit, 40)); !errors.Is(err, weir.Unavailable) {
			t.Fatalf("%s: got %v, want %v", limit, err, weir.Unavailable)
		}
		lease, err := a.Reserve(t.Context(), unit(limit, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Limits[0].Available; got != 49 {
			t.Errorf("%s: %d available after a reservation whose answer was lost, want 49", limit, got)
		}
		a.net.lose.Store(true)
		if _, err := a.Cancel(t.Context(), kept.ID); !errors.Is(err, weir.Unavailable) {
			t.Fatalf("%s: got %v, want %v", limit, err, weir.Unavailable)
		}
		_, err = a.Reserve(t.Context(), unit(limit, 60))
		denied, ok := errors.AsType[*weir.DeniedError](err)
		if !ok || denied.Limits[0].Available != 59 {
			t.Errorf("%s: after a cancel whose answer was lost: got %v, want a denial with 59 available", limit, err)
		}
	}
}
