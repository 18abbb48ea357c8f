package dynamodb

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// TestFaultsRefillLost loses the write that moves the time of the refill after a take from an item
// that the process had not seen. The process still knows the balance.
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
			w.clock.advance(500 * time.Millisecond) // full; the refill is recent enough for a cold write

			writes := 0
			second := w.side(t, "second", Options{}, limiter.Options{}, &testkit.FaultOptions{
				Rules: []testkit.FaultRule{{
					Fault: tc.fault, PerMille: 1000, Most: tc.most,
					Match: func(r *testkit.FaultRequest) bool {
						if r.Operation != "UpdateItem" || !bytes.Contains(r.Body, []byte("/BUCKET#")) {
							return false
						}
						writes++
						return writes > 1
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

// mustTake reserves units of rpm.
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

// wantDenied checks that a reservation of rpm is denied.
func wantDenied(t *testing.T, s *faultSide, entity string, units int64) {
	t.Helper()
	_, err := s.limiter.Reserve(t.Context(), rpmOf(entity, units))
	denied, ok := errors.AsType[*weir.DeniedError](err)
	if !ok || denied.Contended {
		t.Errorf("reserve %d for %s: got %v, want it denied", units, entity, err)
	}
}

// TestFaultsColdWriteLost loses the answer to the write of a reservation without a plan: the call
// is unavailable. The units are charged at most once, are not refunded because they may not have
// been taken, and are counted as ambiguous.
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
			p := &trap{fault: tc.fault, operation: "UpdateItem", text: "/BUCKET#"}
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

// TestFaultsLostThenStale loses the answer to a reservation, changes the limits, and repeats the
// reservation, whose plan is stale by then. The repetition is charged once; the units that the
// first attempt may have taken are charged at most once, and are counted as ambiguous.
func TestFaultsLostThenStale(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault testkit.Fault
		taken int64 // by the first attempt
	}{"request lost": {testkit.LostRequest, 0}, "answer lost": {testkit.LostAnswer, 30}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 100, 1))
			p := &trap{fault: tc.fault, operation: "UpdateItem", text: "/BUCKET#"}
			s := w.trapped(t, limiter.Options{}, p)
			mustTake(t, s, "acme", 10)
			s.store.running.Wait()
			p.set(1)
			r := rpmOf("acme", 30)
			r.LeaseID = weir.NewLeaseID(w.clock.now())
			if _, err := s.limiter.Reserve(t.Context(), r); !errors.Is(err, weir.Unavailable) {
				t.Errorf("got %v, want unavailable", err)
			}
			s.store.running.Wait()

			other := w.trapped(t, limiter.Options{})
			w.limits(t, "acme", perSecond("rpm", 200, 1))
			mustTake(t, other, "acme", 1) // writes the new limits to the item
			other.store.running.Wait()
			lease, err := s.limiter.Reserve(t.Context(), r)
			if err != nil || lease.Limits[0].Capacity != 200 {
				t.Fatalf("got %+v, %v, want it admitted by the new limits", lease, err)
			}
			if _, err := s.limiter.Reserve(t.Context(), r); err != nil {
				t.Error(err)
			}
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", 10+tc.taken+1+30)
			if st := s.store.Stats(); st.Ambiguous != 1 || st.AmbiguousMilli != 30_000 {
				t.Errorf("got %+v, want 30 units in doubt", st)
			}
		})
	}
}

// TestUnplannedReserveIsRefundedAfterClose checks that the units of a reservation without a plan
// are refunded even if the store is closed before the limiter asks for it.
func TestUnplannedReserveIsRefundedAfterClose(t *testing.T) {
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
	for range 2 { // the second has nothing left to refund, and the store is closed
		_ = s.Update(t.Context(), w.clock.now(), cancel, cancel.Outcome())
		s.running.Wait()
		w.wantTaken(t, "acme", "rpm", 10)
	}
}
