package limiter_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/memory"
)

// declaringStore is a store that gives an entity limits of its own just before its configuration is
// read for the first time.
type declaringStore struct {
	*memory.Store
	entity string
	limits []weir.Limit
	once   sync.Once
}

func (d *declaringStore) ReadConfig(
	ctx context.Context, s weir.Subject, consistent bool,
) (*weir.Config, error) {
	var err error
	if s.Entity == d.entity {
		d.once.Do(func() { err = d.WriteLimits(ctx, time.Time{}, s, d.limits) })
	}
	if err != nil {
		return nil, err
	}
	return d.Store.ReadConfig(ctx, s, consistent)
}

// An entity that is declared while it is resolved, perhaps through another limiter, gets its own
// limits, and undeclared entities keep theirs.
func TestEntityIsDeclaredWhileItIsResolved(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{{Name: "rpm", Capacity: 5}}}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := limiter.New(&declaringStore{
		Store: store, entity: "big", limits: []weir.Limit{{Name: "rpm", Capacity: 1000}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		entity string
		want   int64
	}{{"big", 1000}, {"small", 5}, {"other", 5}, {"big", 1000}} {
		lease, err := l.Reserve(t.Context(),
			&weir.Request{Entity: tt.entity, Resource: "gpt-4o", Costs: weir.Costs{"rpm": 1}})
		if err != nil || lease.Limits[0].Capacity != tt.want {
			t.Errorf("%s: got %+v, %v; want a capacity of %d", tt.entity, lease, err, tt.want)
		}
	}
}

// replayingStore is a store that knows one lease, and answers with Replay when it is given a plan
// for it.
type replayingStore struct {
	*fakeStore
	record driver.LeaseRecord
}

func (r *replayingStore) RecoverLease(
	context.Context, time.Time, weir.LeaseID,
) (*driver.LeaseRecord, error) {
	return &r.record, nil
}

func (r *replayingStore) Recovered() (time.Time, bool) { return time.Time{}, true }

// A lease that the store had reserved under a definition that has changed since is settled under
// the definition in force.
func TestReplayedLeaseIsSettledUnderTheDefinitionInForce(t *testing.T) {
	t.Parallel()
	fake := newFakeStore() // its capacity is 100
	fake.traits.Local = true
	fake.reserve = func(context.Context, *driver.Plan) (*driver.Outcome, error) {
		return &driver.Outcome{Replay: true}, nil
	}
	var inForce int64
	fake.settle = func(_ context.Context, s *driver.Update) (*driver.Outcome, error) {
		inForce = s.Changes[0].Limit.Capacity
		return &driver.Outcome{At: time.Now()}, nil
	}
	r, now := ask(), time.Now()
	r.LeaseID = weir.NewLeaseID(now)
	before := weir.Limit{Name: "rpm", Kind: weir.Bucket, Capacity: 50}
	l, err := limiter.New(&replayingStore{fake, driver.LeaseRecord{
		ID: r.LeaseID, State: driver.LeaseLive, At: now, Expires: now.Add(time.Hour), Charges: 1,
		Holdings: []driver.Holding{{Take: driver.Take{
			Subject: weir.Subject{Entity: r.Entity, Resource: r.Resource},
			Limit:   &before, Ceiling: 50, Parts: []driver.Part{{Units: 1}},
		}}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lease, err := l.Reserve(t.Context(), r); err != nil || !lease.Replay {
		t.Fatalf("got %+v, %v; want a replay", lease, err)
	}
	if _, err := l.Complete(t.Context(), r.LeaseID, nil); err != nil || inForce != 100 {
		t.Errorf("settled under a capacity of %d, %v; want 100", inForce, err)
	}
}

// lateStore is a store that returns when the context ends, and goes on reading what it was given.
type lateStore struct {
	*fakeStore
	goOn chan struct{} // closed to let it read
	all  sync.WaitGroup
}

func (s *lateStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, _ *driver.Outcome,
) error {
	s.all.Go(func() {
		<-s.goOn
		_ = s.fakeStore.Reserve(context.WithoutCancel(ctx), now, p, p.Outcome())
	})
	<-ctx.Done()
	return ctx.Err()
}

// A store that still reads a plan after it has answered shares no memory with the lease or with the
// next call. The race detector would report it.
func TestStoreKeepsReadingThePlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &lateStore{fakeStore: newFakeStore(), goOn: make(chan struct{})}
		l, err := limiter.New(store, &limiter.Options{OnUnavailable: weir.Allow, StoreTimeout: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var leases []*weir.Lease
		for range 8 {
			lease, err := l.Reserve(t.Context(), ask())
			if err != nil || !lease.Degraded {
				t.Fatalf("got %+v, %v; want a degraded lease", lease, err)
			}
			leases = append(leases, lease)
		}
		close(store.goOn)
		for _, lease := range leases {
			if _, err := lease.Complete(t.Context(), weir.Costs{"rpm": 1}); err != nil {
				t.Error(err)
			}
		}
		store.all.Wait()
		if store.reserves != len(leases) {
			t.Errorf("got %d reservations in the end, want %d", store.reserves, len(leases))
		}
	})
}

// mirroredStore is a store that reserves in two stores, and returns the answer of the first.
type mirroredStore struct{ *memory.Store }

func (s mirroredStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if err := s.Store.Reserve(ctx, now, p, out); err != nil {
		return err
	}
	other, err := memory.Open(nil)
	if err != nil {
		return err
	}
	return other.Reserve(ctx, now.Add(time.Second), p, p.Outcome())
}

// An outcome does not change when the reservation is planned again.
func TestOutcomeAfterReplanning(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{{Name: "rpm", Kind: weir.Window, Window: time.Minute, Capacity: 5}}}})
	if err != nil {
		t.Fatal(err)
	}
	now := newClock()
	l, err := limiter.New(mirroredStore{store}, &limiter.Options{Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{4, 3} {
		lease, err := l.Reserve(t.Context(), ask())
		if err != nil || lease.Limits[0].Available != left || !lease.ReservedAt.Equal(now.Now()) {
			t.Fatalf("got %+v, %v; want %d left, now", lease, err, left)
		}
		if left == 3 {
			continue
		}
		if _, err := lease.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lease, err = l.Reserve(t.Context(), ask()); err != nil || lease.Limits[0].Available != left {
			t.Errorf("after a cancel: got %+v, %v; want %d left", lease, err, left)
		}
	}
}

// Every instant in an answer is in the zone of the limiter's clock, in repeated answers too.
func TestInstantsAreInTheZoneOfTheClock(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{System: []weir.Limit{
		{Name: "slots", Kind: weir.Concurrency, Capacity: 1, Timeout: time.Minute}}}})
	if err != nil {
		t.Fatal(err)
	}
	zone := time.FixedZone("here", 3600)
	now := newClock().Now().In(zone)
	l, err := limiter.New(store, &limiter.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	request := &weir.Request{LeaseID: weir.NewLeaseID(now), Entity: "a", Resource: "r"}
	check := func(what string, instants ...time.Time) {
		t.Helper()
		for i, at := range instants {
			if at.IsZero() || at.Location() != zone {
				t.Errorf("%s: instant %d is %v, want one in zone %v", what, i, at, zone)
			}
		}
	}
	for range 2 {
		lease, err := l.Reserve(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		check("reserve", lease.ReservedAt, lease.Expires, lease.HoldsUntil)
		adjusted, err := l.Adjust(t.Context(), lease.ID, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		check("adjust", adjusted.At, adjusted.Expires, adjusted.HoldsUntil)
	}
	for range 2 {
		completed, err := l.Complete(t.Context(), request.LeaseID, nil)
		if err != nil {
			t.Fatal(err)
		}
		check("complete", completed.At)
	}
}

// unreadableStore is a store whose configuration cannot be read.
type unreadableStore struct {
	*memory.Store
	err error
}

func (u unreadableStore) ReadConfig(context.Context, weir.Subject, bool) (*weir.Config, error) {
	return nil, u.err
}

// A reservation that cannot be planned returns the error of the plan.
func TestReserveFailsAsThePlanDoes(t *testing.T) {
	t.Parallel()
	store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
		System: []weir.Limit{{Name: "tpm", Capacity: 5}}}})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for _, tt := range []struct {
		store driver.Store
		want  error
	}{{store, weir.UnknownLimit}, {unreadableStore{store, broken}, broken}} {
		l, err := limiter.New(tt.store, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = l.Reserve(t.Context(), ask()); !errors.Is(err, tt.want) {
			t.Errorf("got %v, want %v", err, tt.want)
		}
	}
}
