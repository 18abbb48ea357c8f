package dynamodb

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
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
			first := w.trapped(t, limiter.Options{})
			mustTake(t, first, "acme", 1)
			w.clock.advance(500 * time.Millisecond) // full again, and refilled lately enough for a cold write

			writes := 0
			second := w.side(t, "second", Options{}, limiter.Options{}, &testkit.FaultOptions{
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

// TestFaultsColdWriteLost: if the write of a take without a plan is not answered, the call is
// unavailable. It is charged once at most, nothing is given back of what may not have been taken,
// and the amount is counted as in doubt.
func TestFaultsColdWriteLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault testkit.Fault
		taken int64
	}{"request lost": {testkit.LostRequest, 10}, "answer lost": {testkit.LostAnswer, 70}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			mustTake(t, w.trapped(t, limiter.Options{}), "acme", 10)
			p := &trap{fault: tc.fault, operation: "UpdateItem"}
			s := w.trapped(t, limiter.Options{}, p)
			p.set(1)
			if _, err := s.limiter.Reserve(t.Context(), rpmOf("acme", 60)); !errors.Is(err, weir.Unavailable) {
				t.Errorf("got %v, want unavailable", err)
			}
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", tc.taken)
			if st := s.store.Stats(); st.Ambiguous != 1 || st.AmbiguousMilli != 60_000 {
				t.Errorf("got %+v, want 60 units in doubt", st)
			}
			mustTake(t, s, "acme", 100-tc.taken)
			wantDenied(t, s, "acme", 1)
		})
	}
}

// TestColdTakeIsGivenBackAfterClose: what was taken without a plan is given back, also if the store
// is closed before the limiter knows that it must be.
func TestColdTakeIsGivenBackAfterClose(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.limits(t, "acme", perSecond("rpm", 100, 1))
	mustTake(t, w.trapped(t, limiter.Options{}), "acme", 10)
	s := w.trapped(t, limiter.Options{}).store
	u := &driver.Unplanned{
		ID: weir.NewLeaseID(w.clock.now()), Subject: weir.Subject{Entity: "acme", Resource: faultResource},
		Costs: weir.Costs{"rpm": 60}, Lifetime: time.Hour,
	}
	plan, _, err := s.ReserveUnplanned(t.Context(), w.clock.now(), u)
	if err != nil || plan == nil {
		t.Fatalf("got %+v, %v, want it taken", plan, err)
	}
	w.wantTaken(t, "acme", "rpm", 70)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cancel := &driver.Update{ID: u.ID, Verb: weir.VerbCancel, Unplanned: true}
	for range 2 { // the second finds nothing to give back, and the store closed
		_ = s.Update(t.Context(), w.clock.now(), cancel, cancel.Outcome())
		s.running.Wait()
		w.wantTaken(t, "acme", "rpm", 10)
	}
}
