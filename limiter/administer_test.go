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

// slowReader answers a read of the configuration only when the test says so.
type slowReader struct {
	*fakeStore
	asked, answer chan struct{}
}

func (s *slowReader) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	c, err := s.fakeStore.ReadConfig(ctx, of, consistent)
	if s.asked != nil {
		s.asked <- struct{}{}
		<-s.answer
	}
	return c, err
}

func (s *slowReader) WriteLimits(context.Context, time.Time, weir.Subject, []weir.Limit) error {
	return nil
}

func (s *slowReader) WritePolicy(_ context.Context, _ time.Time, p weir.Policy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := *s.config
	c.OnUnavailable = p
	s.config = &c
	return nil
}

func (s *slowReader) WriteEntity(context.Context, time.Time, string, string, bool) error { return nil }

func (s *slowReader) DeleteEntity(context.Context, time.Time, string) error { return nil }

// TestPolicyReadBeforeItWasSet checks that a read that began before SetPolicy does not bring back
// the old policy.
func TestPolicyReadBeforeItWasSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowReader{newFakeStore(), make(chan struct{}), make(chan struct{})}
		store.config.OnUnavailable = weir.Allow
		l, err := limiter.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		var reader sync.WaitGroup
		reader.Go(func() { _, _ = l.Explain(t.Context(), "acme", "gpt-4o") })
		<-store.asked // the reader has the old policy, allow
		if err := l.SetPolicy(t.Context(), weir.Block); err != nil {
			t.Fatal(err)
		}
		close(store.answer)
		reader.Wait()
		store.asked = nil
		store.reserve = func(context.Context, *driver.Plan) (*driver.Outcome, error) { return nil, errWire }
		store.configErr = errWire
		if lease, err := l.Reserve(t.Context(), ask()); !errors.Is(err, weir.Unavailable) {
			t.Errorf("got %v, %v, want %q: the policy was set to block", lease, err, weir.Unavailable)
		}
		if err := l.SetPolicy(t.Context(), weir.Allow); err != nil {
			t.Fatal(err)
		}
		if lease, err := l.Reserve(t.Context(), ask()); err != nil || !lease.Degraded {
			t.Errorf("got %v, %v, want a degraded lease: the policy was set to allow", lease, err)
		}
	})
}

// TestCallsOnOneLeaseShareTheStoreTimeout checks that calls that repeat an unanswered one do
// not queue up, each waiting for the store's timeout of all calls before it.
func TestCallsOnOneLeaseShareTheStoreTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeStore()
		fake.reserve = func(ctx context.Context, _ *driver.Plan) (*driver.Outcome, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		l, err := limiter.New(fake, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := ask()
		r.LeaseID = weir.NewLeaseID(time.Now())
		began := time.Now()
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				if _, err := l.Reserve(t.Context(), r); !errors.Is(err, weir.Unavailable) {
					t.Errorf("got %v, want %q", err, weir.Unavailable)
				}
			})
		}
		calls.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("100 calls took %v, want at most twice the store's second", took)
		}
	})
}

// barrierStore is a store that makes two concurrent changes read before either writes: a call that
// has read the children of an entity waits up to a second for another call to do so.
type barrierStore struct {
	*memory.Store
	met chan struct{}
}

func (m *barrierStore) ListEntities(
	ctx context.Context, q *weir.EntityQuery,
) (*weir.EntityPage, error) {
	page, err := m.Store.ListEntities(ctx, q)
	select {
	case m.met <- struct{}{}:
	case <-m.met:
	case <-time.After(time.Second):
	}
	return page, err
}

// TestConcurrentChangesNeverCascadeTooDeep makes two changes of which each alone is within the
// depth, and both together are not.
func TestConcurrentChangesNeverCascadeTooDeep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(&memory.Options{Definitions: &weir.Definitions{
			System:   []weir.Limit{{Name: "rpm", Capacity: 60}},
			Entities: map[string]weir.EntityDefinition{"a": {}, "b": {}, "c": {}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(&barrierStore{store, make(chan struct{})}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var errs [2]error
		var changes sync.WaitGroup
		changes.Go(func() { errs[0] = l.SetEntity(t.Context(), "a", "b", true) })
		changes.Go(func() { errs[1] = l.SetEntity(t.Context(), "b", "c", true) })
		changes.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), weir.Invalid) {
			t.Errorf("got %v, want one change made and one refused", errs)
		}
		if _, err := l.Explain(t.Context(), "a", "llm"); err != nil {
			t.Errorf("got %v: the chain is too deep to be charged", err)
		}
	})
}

// TestChangeWaitsUntilItsDeadline checks that a store that hangs in one change does not delay
// another change beyond its caller's deadline.
func TestChangeWaitsUntilItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(&barrierStore{store, make(chan struct{})}, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = l.SetEntity(t.Context(), "a", "b", true) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := l.SetPolicy(ctx, weir.Allow); !errors.Is(err, weir.Unavailable) {
			t.Errorf("got %v, want %q", err, weir.Unavailable)
		}
		time.Sleep(time.Minute)
		if err := l.SetPolicy(t.Context(), weir.Allow); err != nil {
			t.Error(err)
		}
	})
}
