//go:build !race

// Under the race detector, sync.Pool drops elements at random, so allocations cannot be counted.

package limiter_test

import (
	"context"
	"testing"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// nobody is an observer that does nothing.
type nobody struct{}

// Observe implements [limiter.Observer].
func (nobody) Observe(context.Context, limiter.Event) {}

// TestEventsCostNoAllocation compares reservations with and without an observer.
func TestEventsCostNoAllocation(t *testing.T) {
	allocations := func(o limiter.Observer) float64 {
		l := family(t, o)
		r := &weir.Request{Entity: "team-a", Resource: "m", Costs: weir.Costs{"rpm": 0}}
		return testing.AllocsPerRun(200, func() {
			lease, err := l.Reserve(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := lease.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	without, with := allocations(nil), allocations(nobody{})
	t.Logf("%v without an observer, %v with one", without, with)
	if with > without {
		t.Errorf("got %v allocations with an observer, want %v as without", with, without)
	}
}
