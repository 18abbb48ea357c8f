package limiter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// voidingStore is a store that keeps leases and voided IDs, as the test says.
type voidingStore struct {
	*fakeStore
	record *driver.LeaseRecord
	void   func(id weir.LeaseID) (exists bool, err error)
	voids  int
}

func (v *voidingStore) RecoverLease(
	context.Context, time.Time, weir.LeaseID,
) (*driver.LeaseRecord, error) {
	return v.record, nil
}

func (v *voidingStore) Recovered() (time.Time, bool) { return time.Time{}, true }

func (v *voidingStore) AdoptLease(context.Context, time.Time, weir.LeaseID, uint64) error { return nil }

func (v *voidingStore) VoidLease(_ context.Context, _ time.Time, id weir.LeaseID) (bool, error) {
	v.voids++
	return v.void(id)
}

// live makes the store know a live lease.
func (v *voidingStore) live(id weir.LeaseID) {
	now := time.Now()
	v.record = &driver.LeaseRecord{
		ID: id, State: driver.LeaseLive, At: now, Expires: now.Add(time.Hour), Charges: 1,
	}
}

func openVoidingStore(t *testing.T) (*voidingStore, *limiter.Limiter) {
	t.Helper()
	store := &voidingStore{fakeStore: newFakeStore()}
	l, err := limiter.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return store, l
}

// Cancel finds and cancels a lease that another server reserves between the limiter's two calls to
// the store.
func TestCancelFindsWhatAnotherServerReserved(t *testing.T) {
	t.Parallel()
	store, l := openVoidingStore(t)
	store.void = func(id weir.LeaseID) (bool, error) {
		store.live(id)
		return true, nil
	}
	id := weir.NewLeaseID(time.Now())
	if _, err := l.Cancel(t.Context(), id); err != nil || store.settles != 1 {
		t.Errorf("got %v after %d settlements, want the lease cancelled", err, store.settles)
	}
	if _, err := l.Cancel(t.Context(), id); err != nil || store.settles != 1 {
		t.Errorf("again: got %v after %d settlements, want the same answer", err, store.settles)
	}
}

// Cancel returns Unavailable if the store does not answer, and can then be repeated.
func TestCancelUnknownWhileTheStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	store, l := openVoidingStore(t)
	store.void = func(weir.LeaseID) (bool, error) { return false, errors.New("timed out") }
	r := ask()
	r.LeaseID = weir.NewLeaseID(time.Now())
	if _, err := l.Cancel(t.Context(), r.LeaseID); !errors.Is(err, weir.Unavailable) {
		t.Errorf("got %v, want %q", err, weir.Unavailable)
	}
	store.void = func(weir.LeaseID) (bool, error) { return false, nil }
	for range 2 {
		if _, err := l.Cancel(t.Context(), r.LeaseID); !errors.Is(err, weir.UnknownLease) {
			t.Errorf("got %v, want %q", err, weir.UnknownLease)
		}
	}
	if _, err := l.Reserve(t.Context(), r); !errors.Is(err, weir.Ended) || store.reserves != 0 {
		t.Errorf("got %v, and %d reservations in the store; want %q", err, store.reserves, weir.Ended)
	}
	if store.voids != 2 {
		t.Errorf("the store was asked %d times, want 2", store.voids)
	}
	for _, id := range []weir.LeaseID{ // a reserve is refused anyway, so the store is not asked
		weir.NewLeaseID(time.Now().Add(-time.Hour)), weir.NewLeaseID(time.Now().Add(time.Hour)),
	} {
		if _, err := l.Cancel(t.Context(), id); !errors.Is(err, weir.UnknownLease) || store.voids != 2 {
			t.Errorf("got %v, and the store was asked; want %q", err, weir.UnknownLease)
		}
	}
}

// recoveringStore hides that the store is a LeaseVoider.
type recoveringStore struct {
	driver.Store
	driver.LeaseRecoverer
}

// If the store does not record voided IDs, another server may still reserve one. A later cancel
// finds that lease.
func TestRepeatedCancelWithoutVoids(t *testing.T) {
	t.Parallel()
	store := &voidingStore{fakeStore: newFakeStore()}
	l, err := limiter.New(&recoveringStore{store, store}, &limiter.Options{
		Limits: []weir.Limit{{Name: "rpm", Capacity: 100}},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := weir.NewLeaseID(time.Now())
	for range 2 {
		if _, err := l.Cancel(t.Context(), id); !errors.Is(err, weir.UnknownLease) {
			t.Errorf("got %v, want %q", err, weir.UnknownLease)
		}
	}
	store.live(id)
	if _, err := l.Cancel(t.Context(), id); err != nil || store.settles != 1 {
		t.Errorf("got %v after %d settlements, want the lease cancelled", err, store.settles)
	}
	if _, err := l.Complete(t.Context(), id, nil); !errors.Is(err, weir.Conflict) {
		t.Errorf("got %v, want %q", err, weir.Conflict)
	}
}
