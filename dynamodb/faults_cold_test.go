package dynamodb

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/testkit"
)

// TestFaultsRefillLost: who takes from an item that it has not seen moves the time of the refill
// with its next write. If that is lost, it still knows what is left.
func TestFaultsRefillLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault testkit.Fault
		most  int64
	}{
		"request lost": {testkit.LostRequest, 1}, "answer lost": {testkit.LostAnswer, 1},
		"throttled until nobody repeats it": {testkit.Throttle, client.CallAttempts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 100))
			first := w.trapped(t, weir.Options{})
			mustTake(t, first, "acme", 1)
			w.clock.advance(500 * time.Millisecond) // full again, and refilled lately enough for a cold write

			writes := 0
			second := w.side(t, "second", Options{}, weir.Options{}, &testkit.FaultOptions{
				Rules: []testkit.FaultRule{{
					Fault: tc.fault, PerMille: 1000, Most: tc.most,
					Match: func(r *testkit.FaultRequest) bool {
						if r.Operation == "UpdateItem" {
							writes++
						}
						return r.Operation == "UpdateItem" && writes > 1
					},
				}},
			})
			mustTake(t, second, "acme", 60)
			second.store.running.Wait()
			if second.faults.Count(tc.fault) != tc.most {
				t.Fatal("nothing went wrong")
			}
			wantDenied(t, second, "acme", 41)
			mustTake(t, second, "acme", 40)
			wantDenied(t, second, "acme", 1)
			second.store.running.Wait()
			wantDenied(t, first, "acme", 1)
			w.wantTaken(t, "acme", "rpm", 101)
		})
	}
}

// mustTake reserves so much of rpm.
func mustTake(t *testing.T, s *faultSide, entity string, units int64) *weir.Lease {
	t.Helper()
	lease, err := s.limiter.Reserve(t.Context(), rpmOf(entity, units))
	if err != nil {
		t.Fatalf("reserve %d for %s: %v", units, entity, err)
	}
	return lease
}

func rpmOf(entity string, units int64) *weir.Request {
	return &weir.Request{Entity: entity, Resource: faultResource, Costs: weir.Costs{"rpm": units}}
}

// wantDenied checks that so much of rpm is denied.
func wantDenied(t *testing.T, s *faultSide, entity string, units int64) {
	t.Helper()
	_, err := s.limiter.Reserve(t.Context(), rpmOf(entity, units))
	denied, ok := errors.AsType[*weir.DeniedError](err)
	if !ok || denied.Contended {
		t.Errorf("reserve %d for %s: got %v, want it denied", units, entity, err)
	}
}
