package dynamodb

import (
	"context"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// TestFaultsExtendBetween makes one half of a settlement on a child and its parent fail, extends
// the lease, and repeats the settlement. The half that was made is not made again, even if the
// lease would have expired without the extend. If leases are in the table, a settlement that only
// refunds has ended the lease with the first call.
func TestFaultsExtendBetween(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		process bool
		settle  func(context.Context, *weir.Lease) error
		taken   int64
	}{
		"less, leases=process": {true, func(ctx context.Context, l *weir.Lease) error {
			_, err := l.Cancel(ctx)
			return err
		}, 0},
		"more, leases=process": {true, completeSeven, 7},
		"more, leases=table":   {false, completeSeven, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const lifetime = time.Hour
			w := newFaultWorld(t)
			w.family(t, 20, 20)
			p := &trap{fault: testkit.NoConnection, operation: "UpdateItem", text: "/BUCKET#top#"}
			s := w.trappedIn(t, Options{ProcessLeases: tc.process},
				limiter.Options{LeaseLifetime: lifetime}, p)
			lease := mustTake(t, s, "acme", 4)
			s.store.running.Wait()
			p.set(1 << 20)
			wantCode(t, tc.settle(t.Context(), lease), weir.Unavailable)
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", tc.taken)
			w.wantTaken(t, "top", "rpm", 4)
			p.set(0)
			w.clock.advance(lifetime * 2 / 3)
			if _, err := lease.Extend(t.Context()); err != nil {
				t.Fatalf("extend: %v", err)
			}
			w.clock.advance(lifetime * 2 / 3)
			s.forgetUnfinished(w.clock.now())
			if err := tc.settle(t.Context(), lease); err != nil {
				t.Errorf("the second time: %v", err)
			}
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", tc.taken)
			w.wantTaken(t, "top", "rpm", tc.taken)
		})
	}
}

func completeSeven(ctx context.Context, l *weir.Lease) error {
	_, err := l.Complete(ctx, weir.Costs{"rpm": 7})
	return err
}

// forgetUnfinished makes the store forget the unfinished updates of leases that have expired, as it
// does when it has many.
func (s *faultSide) forgetUnfinished(now time.Time) {
	s.store.unfinished.sweep = 0
	s.store.unfinished.put(now, weir.NewLeaseID(now), now, nil)
}
