package dynamodb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/testkit"
	"github.com/weir-limiter/weir/limiter"
)

// wantCode checks an error's code.
func wantCode(t *testing.T, err error, code weir.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

// TestFaultsPolicy makes each call of a reservation fail in turn. The reservation is an error under
// the policy block and a degraded lease under allow. The settlement of a lease that is in the store
// is an error under both.
func TestFaultsPolicy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operation string
		text      string
		fresh     bool // the limiter has not read the configuration
	}{
		"the read of the configuration": {"BatchGetItem", "", true},
		"the write":                     {"UpdateItem", "/BUCKET#acme#", false},
		"the creation":                  {"PutItem", "acme", true},
		"the write on the parent":       {"UpdateItem", "/BUCKET#top#", false},
	} {
		for _, policy := range []weir.Policy{weir.Block, weir.Allow} {
			t.Run(name+"/"+string(policy), func(t *testing.T) {
				t.Parallel()
				w := newFaultWorld(t)
				w.family(t, 10, 10)
				p := &trap{fault: testkit.LostRequest, operation: tc.operation, text: tc.text}
				if tc.operation == "BatchGetItem" {
					p.fault, p.code = testkit.Throttle, ""
				}
				s := w.trapped(t, limiter.Options{OnUnavailable: policy}, p)
				if !tc.fresh {
					mustTake(t, s, "acme", 1)
					s.store.running.Wait()
				}
				p.set(client.CallAttempts)
				if tc.operation != "BatchGetItem" {
					p.set(1)
				}
				lease, err := s.limiter.Reserve(t.Context(), rpmOf("acme", 1))
				if s.faults.Count(p.fault) == 0 {
					t.Fatal("nothing went wrong")
				}
				if policy == weir.Block {
					wantCode(t, err, weir.Unavailable)
					return
				}
				if err != nil || !lease.Degraded {
					t.Fatalf("got %+v, %v; want a degraded lease", lease, err)
				}
				if r, err := lease.Complete(t.Context(), weir.Costs{"rpm": 5}); err != nil || !r.Degraded {
					t.Errorf("complete: got %+v, %v", r, err)
				}
			})
		}
	}
}

// family declares an entity that cascades to a parent, with the given units of rpm each.
func (w *faultWorld) family(t *testing.T, child, parent int64) {
	t.Helper()
	w.eye.mustEntity(t, "top", "", false)
	w.eye.mustEntity(t, "acme", "top", true)
	w.limits(t, "top", perSecond("rpm", parent, 1))
	w.limits(t, "acme", perSecond("rpm", child, 1))
}

// TestFaultsSettlePolicy checks that a failed settlement is an error under both policies, and can
// be repeated.
func TestFaultsSettlePolicy(t *testing.T) {
	t.Parallel()
	for _, policy := range []weir.Policy{weir.Block, weir.Allow} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.limits(t, "acme", perSecond("rpm", 10, 1))
			p := &trap{fault: testkit.NoConnection, operation: "UpdateItem"}
			s := w.trapped(t, limiter.Options{OnUnavailable: policy}, p)
			lease := mustTake(t, s, "acme", 4)
			for _, verb := range []func() error{
				func() error { _, err := lease.Complete(t.Context(), weir.Costs{"rpm": 6}); return err },
				func() error { _, err := lease.Cancel(t.Context()); return err },
			} {
				p.set(client.CallAttempts)
				wantCode(t, verb(), weir.Unavailable)
				p.set(0)
			}
			if _, err := lease.Complete(t.Context(), weir.Costs{"rpm": 6}); err != nil {
				t.Errorf("complete: %v", err)
			}
			w.wantTaken(t, "acme", "rpm", 6)
		})
	}
}

// TestFaultsCompensation checks that a denial by the parent is the answer even if the compensation
// of the child fails, and that the compensation is made later.
func TestFaultsCompensation(t *testing.T) {
	t.Parallel()
	for _, policy := range []weir.Policy{weir.Block, weir.Allow} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.family(t, 100, 10)
			p := &trap{fault: testkit.NoConnection, operation: "UpdateItem", text: "/BUCKET#acme#"}
			s := w.trapped(t, limiter.Options{OnUnavailable: policy}, p)
			mustTake(t, s, "acme", 8)
			if _, err := s.limiter.Reserve(t.Context(), rpmOf("acme", 5)); err == nil {
				t.Fatal("more than the parent has was admitted")
			}
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", 8)
			// The first write on the child is the charge; the later ones are the compensation.
			p.struck = make(chan struct{}, 1)
			p.skip.Store(p.seen.Load() + 1)
			p.set(1 << 20)
			w.clock.advance(2 * time.Second) // the denial is forgotten
			wantDenied(t, s, "acme", 7)
			<-p.struck
			p.set(0)
			if err := s.limiter.Close(); err != nil {
				t.Error(err)
			}
			w.wantTaken(t, "acme", "rpm", 8)
			w.wantTaken(t, "top", "rpm", 8)
			if n := s.store.Stats().AmbiguousMilli; n != 0 {
				t.Errorf("%d milli-units are said to be ambiguous", n)
			}
		})
	}
}

// TestFaultsPermission checks that a call that AWS refuses is reported as permission denied, under
// allow too and on whichever item, and that the units taken from other items are refunded. If
// leases are in the table, a cancel is made once it is recorded, and a refund that AWS refuses is
// made later.
func TestFaultsPermission(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operation, text string
		process         bool // leases are kept in the process
		recorded        bool // the cancel is recorded before AWS refuses
	}{
		"configuration":          {operation: "BatchGetItem"},
		"child":                  {operation: "UpdateItem", text: "/BUCKET#acme#", recorded: true},
		"parent":                 {operation: "UpdateItem", text: "/BUCKET#top#", recorded: true},
		"record":                 {operation: "UpdateItem", text: "/LEASES#"},
		"child, leases=process":  {operation: "UpdateItem", text: "/BUCKET#acme#", process: true},
		"parent, leases=process": {operation: "UpdateItem", text: "/BUCKET#top#", process: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFaultWorld(t)
			w.family(t, 10, 10)
			p := &trap{
				fault: testkit.Refuse, code: "AccessDeniedException", operation: tc.operation, text: tc.text,
			}
			s := w.trappedIn(t, Options{ProcessLeases: tc.process},
				limiter.Options{OnUnavailable: weir.Allow, CacheTTL: time.Second}, p)
			lease := mustTake(t, s, "acme", 1)
			s.store.running.Wait()
			w.clock.advance(2 * time.Second)
			p.set(1 << 20)
			if name == "configuration" { // limits that a request brings are judged beside those in force
				r := rpmOf("acme", 1)
				r.Limits = []weir.Limit{perSecond("rpm", 9, 1)}
				_, err := s.limiter.Reserve(t.Context(), r)
				wantCode(t, err, weir.PermissionDenied)
				return
			}
			_, err := s.limiter.Reserve(t.Context(), rpmOf("acme", 1))
			wantCode(t, err, weir.PermissionDenied)
			if _, err = lease.Cancel(t.Context()); tc.recorded {
				if err != nil {
					t.Errorf("cancel while the refund is refused: %v", err)
				}
			} else {
				wantCode(t, err, weir.PermissionDenied)
			}
			p.set(0)
			if _, err := lease.Cancel(t.Context()); err != nil {
				t.Errorf("cancel: %v", err)
			}
			s.store.running.Wait()
			w.wantTaken(t, "acme", "rpm", 0)
			w.wantTaken(t, "top", "rpm", 0)
		})
	}
}

// TestFaultsTableDeleted checks that a table that is deleted under a running store is an outage
// with a reason, and that the store works again when the table is back. Leases that were in the
// table are then unknown.
func TestFaultsTableDeleted(t *testing.T) {
	t.Parallel()
	for _, process := range []bool{false, true} {
		t.Run(leasesIn(process), func(t *testing.T) {
			t.Parallel()
			tableDeleted(t, process)
		})
	}
}

// leasesIn returns the name of a mode of the store.
func leasesIn(process bool) string {
	if process {
		return "leases=process"
	}
	return "leases=table"
}

func tableDeleted(t *testing.T, process bool) {
	t.Helper()
	w := newFaultWorld(t)
	limit := perSecond("rpm", 10, 1)
	o := Options{ProcessLeases: process}
	blocks := w.trappedIn(t, o, limiter.Options{Limits: []weir.Limit{limit}})
	allows := w.trappedIn(t, o, limiter.Options{Limits: []weir.Limit{limit}, OnUnavailable: weir.Allow})
	lease := mustTake(t, blocks, "acme", 4)
	mustTake(t, allows, "acme", 1)
	blocks.store.running.Wait()
	allows.store.running.Wait()
	if err := w.table.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := blocks.limiter.Reserve(t.Context(), rpmOf("acme", 1))
		wantCode(t, err, weir.Unavailable)
		if err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("got %v, want it said that the table does not exist", err)
		}
		if lease, err := allows.limiter.Reserve(t.Context(), rpmOf("acme", 1)); err != nil || !lease.Degraded {
			t.Errorf("got %+v, %v; want a degraded lease", lease, err)
		}
		_, err = lease.Complete(t.Context(), weir.Costs{"rpm": 6})
		wantCode(t, err, weir.Unavailable)
	}
	if _, err := w.table.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lease := mustTake(t, allows, "acme", 10); lease.Degraded { // a new table is full
		t.Error("the lease is degraded")
	}
	wantDenied(t, blocks, "acme", 1)
	allows.store.running.Wait()
	before, _ := w.taken(t, "acme", "rpm")
	_, err := lease.Cancel(t.Context())
	blocks.store.running.Wait()
	after, _ := w.taken(t, "acme", "rpm")
	if process {
		if err != nil {
			t.Errorf("cancel: %v", err)
		}
		return
	}
	wantCode(t, err, weir.UnknownLease)
	if after != before {
		t.Errorf("an unknown lease gave back %d milli-units", before-after)
	}
}
