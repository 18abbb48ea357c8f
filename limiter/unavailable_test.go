package limiter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

var errWire = errors.New("connection reset")

func TestUnavailable(t *testing.T) {
	t.Parallel()
	denied := func(context.Context, *driver.Plan) (*driver.Outcome, error) {
		return &driver.Outcome{Denied: true, Limits: []weir.LimitStatus{{Limit: "rpm", Exceeded: true,
			RetryAfter: time.Second}}}, nil
	}
	fails := func(err error) func(context.Context, *driver.Plan) (*driver.Outcome, error) {
		return func(context.Context, *driver.Plan) (*driver.Outcome, error) { return nil, err }
	}
	forbidden := &weir.Error{Code: weir.PermissionDenied, Reason: "no"}
	for _, tt := range []struct {
		name     string
		policy   weir.Policy
		reserve  func(context.Context, *driver.Plan) (*driver.Outcome, error)
		request  *weir.Request
		want     error // nil means a lease
		degraded bool
	}{
		{"answers", weir.Allow, nil, ask(), nil, false},
		{"blocks by default", "", fails(errWire), ask(), weir.Unavailable, false},
		{"blocks", weir.Block, fails(errWire), ask(), weir.Unavailable, false},
		{"allows", weir.Allow, fails(errWire), ask(), nil, true},
		{"allows after a typed error", weir.Allow, fails(&weir.Error{Code: weir.Unavailable}), ask(), nil, true},
		{"never hides a permission", weir.Allow, fails(forbidden), ask(), weir.PermissionDenied, false},
		{"never hides that other limits are in force", weir.Allow,
			fails(&weir.Error{Code: weir.Superseded}), ask(), weir.Superseded, false},
		{"never hides a mistake", weir.Allow, fails(errWire), &weir.Request{Entity: "acme", Resource: "gpt-4o",
			Costs: weir.Costs{"nope": 1}}, weir.UnknownLimit, false},
		{"never hides a denial", weir.Allow, denied, ask(), &weir.DeniedError{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake := newFakeStore()
			fake.reserve = tt.reserve
			l, err := limiter.New(fake, &limiter.Options{OnUnavailable: tt.policy})
			if err != nil {
				t.Fatal(err)
			}
			lease, err := l.Reserve(t.Context(), tt.request)
			if _, ok := tt.want.(*weir.DeniedError); ok {
				if _, ok := errors.AsType[*weir.DeniedError](err); !ok {
					t.Fatalf("got %v, want a denial", err)
				}
				return
			}
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err == nil && lease.Degraded != tt.degraded {
				t.Errorf("got degraded %v, want %v", lease.Degraded, tt.degraded)
			}
		})
	}
}

func TestUnavailableNamesTheLease(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	fake.reserve = func(context.Context, *driver.Plan) (*driver.Outcome, error) { return nil, errWire }
	l, _ := limiter.New(fake, nil)
	_, err := l.Reserve(t.Context(), ask())
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Field != "lease_id" {
		t.Fatalf("got %v, want an error that names the lease", err)
	}
	id, parseErr := weir.ParseLeaseID(e.Value)
	if parseErr != nil {
		t.Fatal(parseErr)
	}
	fake.reserve = nil
	again := ask()
	again.LeaseID = id
	if lease, err := l.Reserve(t.Context(), again); err != nil || lease.ID != id {
		t.Errorf("repeated: got %v, %v; want the lease", lease, err)
	}
}

func TestDegradedLeaseDoesNothing(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	fake.reserve = func(context.Context, *driver.Plan) (*driver.Outcome, error) { return nil, errWire }
	l, _ := limiter.New(fake, &limiter.Options{OnUnavailable: weir.Allow})
	lease, err := l.Reserve(t.Context(), ask())
	if err != nil {
		t.Fatal(err)
	}
	for name, verb := range map[string]func() (*weir.Receipt, error){
		"adjust":   func() (*weir.Receipt, error) { return lease.Adjust(t.Context(), weir.Costs{"rpm": 5}) },
		"extend":   func() (*weir.Receipt, error) { return lease.Extend(t.Context()) },
		"complete": func() (*weir.Receipt, error) { return lease.Complete(t.Context(), weir.Costs{"rpm": 7}) },
	} {
		if name == "complete" {
			continue // tested last, because it ends the lease
		}
		if r, err := verb(); err != nil || !r.Degraded {
			t.Errorf("%s: got %+v, %v; want a degraded receipt", name, r, err)
		}
	}
	if r, err := lease.Complete(t.Context(), weir.Costs{"rpm": 7}); err != nil || !r.Degraded {
		t.Errorf("complete: got %+v, %v; want a degraded receipt", r, err)
	}
	if fake.settles != 0 {
		t.Errorf("the store was asked %d times, want never", fake.settles)
	}
}

// TestRefundInDoubt checks that every answer about a lease reports a refund in doubt once the store
// has reported it, replays included, and that no answer about another lease does.
func TestRefundInDoubt(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{false, true} { // if local, the memory of ended leases is used again
		fake := newFakeStore()
		fake.traits.Local = local
		doubt := false
		fake.settle = func(_ context.Context, s *driver.Update) (*driver.Outcome, error) {
			return &driver.Outcome{At: time.Now(), RefundInDoubt: doubt}, nil
		}
		seen := &lastEvent{}
		l, err := limiter.New(fake, &limiter.Options{Observer: seen})
		if err != nil {
			t.Fatal(err)
		}
		settle := func(what string, want bool, call func() (*weir.Receipt, error)) {
			t.Helper()
			r, err := call()
			if err != nil || r.RefundInDoubt != want || seen.e.RefundInDoubt != want {
				t.Errorf("local %t: %s: got %+v, %v, and %t observed; want in doubt %t",
					local, what, r, err, seen.e.RefundInDoubt, want)
			}
		}
		for range 3 {
			lease, err := l.Reserve(t.Context(), ask())
			if err != nil {
				t.Fatal(err)
			}
			adjust := func() (*weir.Receipt, error) {
				return l.Adjust(t.Context(), lease.ID, 2, []weir.Costs{{"rpm": 0}})
			}
			complete := func() (*weir.Receipt, error) { return lease.Complete(t.Context()) }
			settle("extend before", false, func() (*weir.Receipt, error) { return lease.Extend(t.Context()) })
			settle("first adjust", false, func() (*weir.Receipt, error) {
				return l.Adjust(t.Context(), lease.ID, 1, []weir.Costs{{"rpm": 1}})
			})
			doubt = true
			settle("adjust", true, adjust)
			doubt = false
			settle("adjust, repeated", true, adjust)
			settle("extend", true, func() (*weir.Receipt, error) { return lease.Extend(t.Context()) })
			settle("complete", true, complete)
			settle("complete, repeated", true, complete)
			other, err := l.Reserve(t.Context(), ask())
			if err != nil {
				t.Fatal(err)
			}
			settle("another lease", false, func() (*weir.Receipt, error) { return other.Cancel(t.Context()) })
		}
	}
}

// lastEvent keeps the last event.
type lastEvent struct{ e limiter.Event }

func (l *lastEvent) Observe(_ context.Context, e limiter.Event) { l.e = e }

// A settlement that the store does not answer changes nothing in the limiter. Repeated, it is
// applied once.
func TestFailedSettlementMayBeRepeated(t *testing.T) {
	t.Parallel()
	for _, policy := range []weir.Policy{weir.Block, weir.Allow} {
		fake := newFakeStore()
		l, _ := limiter.New(fake, &limiter.Options{OnUnavailable: policy})
		lease, err := l.Reserve(t.Context(), ask())
		if err != nil {
			t.Fatal(err)
		}
		fake.settle = func(context.Context, *driver.Update) (*driver.Outcome, error) { return nil, errWire }
		if _, err := lease.Complete(t.Context(), weir.Costs{"rpm": 9}); !errors.Is(err, weir.Unavailable) {
			t.Errorf("%s: got %v, want unavailable", policy, err)
		}
		var got []driver.Part
		fake.settle = func(_ context.Context, s *driver.Update) (*driver.Outcome, error) {
			got = s.Changes[0].Parts
			return &driver.Outcome{}, nil
		}
		if _, err := lease.Complete(t.Context(), weir.Costs{"rpm": 9}); err != nil {
			t.Errorf("%s: repeated: %v", policy, err)
		}
		if len(got) != 1 || got[0].Units != 9 {
			t.Errorf("%s: got %v, want 9 units", policy, got)
		}
	}
}

// The store gets its own timeout, or nine tenths of the time to the caller's deadline.
func TestStoreTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		deadline time.Duration // 0 means none
		want     time.Duration
	}{
		{"its own", 0, time.Second},
		{"a near deadline", 500 * time.Millisecond, 450 * time.Millisecond},
		{"a far deadline", time.Minute, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := newFakeStore()
				fake.reserve = func(ctx context.Context, _ *driver.Plan) (*driver.Outcome, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				l, _ := limiter.New(fake, &limiter.Options{OnUnavailable: weir.Allow})
				ctx := t.Context()
				if tt.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				start := time.Now()
				lease, err := l.Reserve(ctx, ask())
				if err != nil || !lease.Degraded {
					t.Fatalf("got %v, %v; want a degraded lease", lease, err)
				}
				if got := time.Since(start); got != tt.want {
					t.Errorf("got an answer after %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// A caller that leaves does not get a degraded lease.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	fake := newFakeStore()
	l, _ := limiter.New(fake, &limiter.Options{OnUnavailable: weir.Allow})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Reserve(ctx, ask()); !errors.Is(err, context.Canceled) || !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want canceled and unavailable", err)
	}
	if fake.reserves != 0 {
		t.Errorf("the store was asked %d times, want never", fake.reserves)
	}
}

// TestStatusWithoutConfiguration checks that the store is not asked if the configuration cannot be
// read.
func TestStatusWithoutConfiguration(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	store.configErr = errors.New("connection refused")
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Status(t.Context(), "acme", "gpt-4o"); !errors.Is(err, store.configErr) ||
		!errors.Is(err, weir.Unavailable) {
		t.Errorf("status: got %v, want %q with the store's own error", err, weir.Unavailable)
	}
}
