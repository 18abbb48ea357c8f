package dynamodb

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/admin"
	"github.com/weir-limiter/weir/limiter"
)

// series returns n limits.
func series(prefix string, n int, capacity int64) []weir.Limit {
	limits := make([]weir.Limit, n)
	for i := range limits {
		limits[i] = perSecond(fmt.Sprintf("%s-%02d", prefix, i), capacity, 1)
	}
	return limits
}

// TestLargestNumberOfLimits changes all limits of a place that has the largest number of them. Each
// process continues with the new limits.
func TestLargestNumberOfLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after []weir.Limit }{
		"redefined": {series("old", admin.MaxLimits, 100), series("old", admin.MaxLimits, 50)},
		"replaced":  {series("old", admin.MaxLimits, 100), series("new", admin.MaxLimits, 100)},
		"removed":   {series("old", admin.MaxLimits, 100), series("old", 1, 100)},
		"added":     {series("old", 1, 100), series("old", admin.MaxLimits, 100)},
	} {
		for _, at := range []string{"acme", ""} { // the entity's limits, and the resource's
			t.Run(name+" of "+at, func(t *testing.T) {
				t.Parallel()
				w := newFaultWorld(t)
				w.limits(t, at, tc.before...)
				warm := w.side(t, "warm", Options{}, limiter.Options{}, nil)
				lease := takeEach(t, warm, tc.before, 40)
				w.limits(t, at, tc.after...)
				for range 2 { // the first use reads the configuration, the second has it
					w.clock.advance(2 * time.Minute)
					takeEach(t, warm, tc.after, tc.after[0].Capacity)
				}
				w.clock.advance(time.Minute)
				takeEach(t, w.side(t, "cold", Options{}, limiter.Options{}, nil), tc.after, 10)
				if _, err := lease.Cancel(t.Context()); err != nil {
					t.Errorf("cancel: %v", err)
				}
				warm.store.running.Wait()
				for _, m := range w.images(t, "acme") {
					if len(m.Limits) != len(tc.after) {
						t.Errorf("the item has %d limits, want %d", len(m.Limits), len(tc.after))
					}
				}
			})
		}
	}
}

// takeEach reserves units of each limit.
func takeEach(t *testing.T, s *faultSide, limits []weir.Limit, units int64) *weir.Lease {
	t.Helper()
	costs := weir.Costs{}
	for _, l := range limits[:min(32, len(limits))] { // a request can name 32
		costs[l.Name] = units
	}
	lease, err := s.limiter.Reserve(t.Context(), &weir.Request{
		Entity: "acme", Resource: faultResource, Costs: costs,
	})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	s.store.running.Wait()
	return lease
}

// TestTooManyLimits checks that one more limit is refused at every place, and that nothing is
// written.
func TestTooManyLimits(t *testing.T) {
	t.Parallel()
	s := configured(t)
	for _, at := range []weir.Subject{
		{},
		{Resource: faultResource},
		{Entity: "acme", Resource: weir.DefaultResource},
		{Entity: "acme", Resource: faultResource},
	} {
		err := s.admin.WriteLimits(t.Context(), configNow, at, series("rpm", admin.MaxLimits+1, 5))
		wantError(t, err, weir.Invalid, "limits", `limits "37": is too many limits: `+
			"an entity, a resource or the system can have at most 36 on a DynamoDB table")
		if events := s.audited(t, at, ""); len(events) > 0 {
			t.Errorf("%+v: got %+v, want nothing recorded", at, events)
		}
		config, err := s.config.ReadSubject(t.Context(), at, true)
		if err != nil || config.Declared() || config.Winner() != nil {
			t.Errorf("%+v: got %+v, %v; want nothing configured", at, config, err)
		}
	}
	s.mustSet(t, weir.Subject{}, series("rpm", admin.MaxLimits, 5)...)
}
