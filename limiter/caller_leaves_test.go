package limiter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// endableContext is a context that has ended, but whose Done channel is not closed, like one that
// ends at the same time as something else that a call waits for.
type endableContext struct {
	context.Context
	ended atomic.Bool
}

func (e *endableContext) Err() error {
	if e.ended.Load() {
		return context.Canceled
	}
	return nil
}

// A call that waited for another call on its lease writes nothing if its caller has left meanwhile.
func TestCallerLeavesWhileWaitingForTheLease(t *testing.T) {
	for _, gone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore()
			store.traits.Local = true
			finish := make(chan struct{})
			store.reserve = func(context.Context, *driver.Plan) (*driver.Outcome, error) {
				<-finish
				return &driver.Outcome{Denied: true}, nil
			}
			l, err := limiter.New(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := ask()
			r.LeaseID = weir.NewLeaseID(time.Now())
			var calls sync.WaitGroup
			calls.Go(func() { _, _ = l.Reserve(t.Context(), r) })
			synctest.Wait()
			ctx := &endableContext{Context: context.Background()}
			calls.Go(func() {
				if _, err := l.Reserve(ctx, r); errors.Is(err, context.Canceled) != gone {
					t.Errorf("gone: %v: got %v", gone, err)
				}
			})
			synctest.Wait()
			ctx.ended.Store(gone)
			close(finish)
			calls.Wait()
			if want := map[bool]int{true: 1, false: 2}[gone]; store.reserves != want {
				t.Errorf("gone: %v: the store was asked %d times, want %d", gone, store.reserves, want)
			}
		})
	}
}

// slowConfig is a store that takes some time to read its configuration.
type slowConfig struct {
	*fakeStore
	wrote bool
}

func (s *slowConfig) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	time.Sleep(time.Second)
	return s.fakeStore.ReadConfig(ctx, of, consistent)
}

func (s *slowConfig) Reserve(
	_ context.Context, now time.Time, _ *driver.Plan, out *driver.Outcome,
) error {
	s.wrote = true
	out.At = now
	return nil
}

// A store in the process writes nothing for a caller that left while the limits were resolved.
func TestCallerLeavesWhilePlanning(t *testing.T) {
	for _, patience := range []time.Duration{500 * time.Millisecond, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowConfig{fakeStore: newFakeStore()}
			store.traits.Local = true
			l, err := limiter.New(store, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err = l.Reserve(ctx, ask())
			if there := patience > time.Second; (err == nil) != there || store.wrote != there {
				t.Errorf("a caller that waits %v: got %v, wrote: %v", patience, err, store.wrote)
			}
		})
	}
}

// lateService ends the caller's context just before it returns a lease.
type lateService struct {
	weir.Service
	end func()
}

func (s *lateService) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	lease, err := s.Service.Reserve(ctx, r)
	s.end()
	return lease, err
}

// Do cancels the lease and does not run the function if the context ended during the reservation.
func TestDoCancelsALateReservation(t *testing.T) {
	t.Parallel()
	store := newFakeStore()
	var cancelled int
	store.settle = func(_ context.Context, s *driver.Update) (*driver.Outcome, error) {
		if s.Verb == weir.VerbCancel {
			cancelled++
		}
		return &driver.Outcome{At: time.Now()}, nil
	}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = weir.Do(ctx, &lateService{l, cancel}, ask(), func(context.Context, *weir.Lease) error {
		t.Error("the function ran")
		return nil
	})
	if !errors.Is(err, context.Canceled) || cancelled != 1 {
		t.Errorf("got %v after %d cancels, want the context's error after one", err, cancelled)
	}
	if err := weir.Do(t.Context(), l, ask(), func(context.Context, *weir.Lease) error { return nil }); err != nil || cancelled != 1 {
		t.Errorf("in time: got %v after %d cancels", err, cancelled)
	}
}
