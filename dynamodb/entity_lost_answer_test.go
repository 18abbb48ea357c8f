package dynamodb

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// TestDeletionWithLostAnswer checks what follows a deletion whose answer was lost: a repeated call
// finishes it, and does nothing to an entity that was not deleted.
func TestDeletionWithLostAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		declared bool
		later    time.Duration // the second call, after the first
		kept     bool
	}{
		{"at once", true, 0, false},
		{"by another clock", true, -time.Second, false},
		{"within minutes", true, 9 * time.Minute, false},
		{"it was changed without a declaration", true, time.Hour, true},
		{"it was never declared", false, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := configured(t)
			if tt.declared {
				s.mustEntity(t, "acme", "", false)
				s.bucket(t, "acme", "gpt-4o", 0, 1)
				faults := testkit.NewFaults(&testkit.FaultOptions{Rules: []testkit.FaultRule{{
					Fault: testkit.LostAnswer, PerMille: 1000,
					Match: func(r *testkit.FaultRequest) bool { return r.Operation == "TransactWriteItems" },
				}}})
				err := s.behind(t, faults).admin.DeleteEntity(t.Context(), configNow, "acme")
				if !errors.Is(err, weir.Unavailable) || s.item(t, schema.MetaKey(s.config.Namespace, "acme")) != nil {
					t.Fatalf("got %v, want a deletion whose answer is lost", err)
				}
			}
			// This is what a reservation in flight would leave.
			id := s.bucket(t, "acme", "gpt-4o", 0, 1)
			err := s.admin.DeleteEntity(t.Context(), configNow.Add(tt.later), "acme")
			wantError(t, err, weir.NotFound, "entity", "not declared")
			if got := s.item(t, id.Key()) != nil; got != tt.kept {
				t.Errorf("kept the bucket: got %t, want %t", got, tt.kept)
			}
		})
	}
}

// TestConfigIsReadAfterLostDeletion checks that a process reads the configuration next after a
// deletion whose answer was lost.
func TestConfigIsReadAfterLostDeletion(t *testing.T) {
	t.Parallel()
	w := newFaultWorld(t)
	w.eye.mustEntity(t, "acme", "", false)
	w.limits(t, "acme", perSecond("rpm", 20, 1))
	p := &trap{fault: testkit.LostAnswer, operation: "TransactWriteItems"}
	s := w.trapped(t, limiter.Options{}, p)
	s.store.admin.Options.Principal = "tester"
	mustTake(t, s, "acme", 4)
	s.store.running.Wait()
	id := schema.BucketID{Namespace: w.eye.config.Namespace, Entity: "acme", Resource: faultResource}
	item := w.eye.item(t, id.Key())
	p.set(1 << 30)
	if err := s.limiter.DeleteEntity(t.Context(), "acme"); !errors.Is(err, weir.Unavailable) {
		t.Errorf("delete: got %v, want unavailable", err)
	}
	w.eye.put(t, item) // as written by another process that had not seen the deletion
	if _, err := s.limiter.Reserve(t.Context(), rpmOf("acme", 1)); !errors.Is(err, weir.NoLimits) {
		t.Errorf("reserve: got %v, want no limits", err)
	}
}
