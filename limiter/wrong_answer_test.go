package limiter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// wrongStore is a store that gives answers that no store may give. It has a record of each lease.
type wrongStore struct {
	*fakeStore
	answer func(out *driver.Outcome) error // nil means that nothing is wrong
	record *driver.LeaseRecord
}

func (s *wrongStore) Reserve(
	ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	if err := s.fakeStore.Reserve(ctx, now, p, out); err != nil || s.answer == nil {
		return err
	}
	return s.answer(out)
}

func (s *wrongStore) Update(
	ctx context.Context, now time.Time, u *driver.Update, out *driver.Outcome,
) error {
	if err := s.fakeStore.Update(ctx, now, u, out); err != nil || s.answer == nil {
		return err
	}
	return s.answer(out)
}

func (s *wrongStore) RecoverLease(
	context.Context, time.Time, weir.LeaseID,
) (*driver.LeaseRecord, error) {
	return s.record, nil
}

func (s *wrongStore) Recovered() (time.Time, bool) { return time.Time{}, true }

// The functions below spoil an outcome.
func takenOfNothing(out *driver.Outcome) error {
	out.Taken = nil
	return nil
}

func anotherOutcome(out *driver.Outcome) error {
	*out = driver.Outcome{At: out.At}
	return nil
}

func takenTwice(out *driver.Outcome) error {
	out.Taken = append(out.Taken, out.Taken...)
	return nil
}

func staleWithout(*driver.Outcome) error { return &driver.StaleError{} }

// staleWith returns an error that says that the lease stands for an impossible holding.
func staleWith(h driver.Holding) func(*driver.Outcome) error {
	return func(*driver.Outcome) error {
		return &driver.StaleError{Lease: &driver.LeaseRecord{
			State: driver.LeaseLive, Charges: 1, Holdings: []driver.Holding{h},
		}}
	}
}

// wantWrongAnswer checks that an error says that the outcome is unknown, and what was wrong.
func wantWrongAnswer(t *testing.T, call string, err error, reason string) {
	t.Helper()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unavailable || !strings.Contains(e.Reason, reason) {
		t.Errorf("%s: got %v, want %q because of %q", call, err, weir.Unavailable, reason)
	}
}

// TestWrongAnswers checks that a wrong answer of the store makes the call unavailable, and that the
// error names what was wrong. The lease stays as it was, and the call can be repeated.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	now := newClock()
	store := &wrongStore{fakeStore: newFakeStore()}
	l, err := limiter.New(store, &limiter.Options{Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	request := ask()
	request.LeaseID = weir.NewLeaseID(now.Now())
	for _, wrong := range []func(*driver.Outcome) error{takenOfNothing, anotherOutcome, takenTwice} {
		store.answer = wrong
		_, err := l.Reserve(ctx, request)
		wantWrongAnswer(t, "reserve", err, "what was taken")
	}
	store.answer = nil
	lease, err := l.Reserve(ctx, request)
	if err != nil || lease.Replay {
		t.Fatalf("reserve again: got %+v, %v", lease, err)
	}
	verbs := map[string]func() error{
		"adjust": func() error {
			_, err := l.Adjust(ctx, lease.ID, 1, []weir.Costs{{"rpm": 3}})
			return err
		},
		"extend":   func() error { _, err := l.Extend(ctx, lease.ID); return err },
		"complete": func() error { _, err := l.Complete(ctx, lease.ID, nil); return err },
	}
	for _, c := range []struct {
		answer func(*driver.Outcome) error
		reason string
		verbs  []string
	}{
		{takenOfNothing, "what was taken", []string{"adjust", "extend"}},
		{anotherOutcome, "what was taken", []string{"adjust", "extend"}},
		{takenTwice, "what was taken", []string{"adjust", "extend"}},
		{staleWithout, "changed elsewhere", []string{"adjust", "extend", "complete"}},
		{staleWith(driver.Holding{}), "names no limit", []string{"adjust", "extend", "complete"}},
		{staleWith(driver.Holding{Take: driver.Take{Limit: &weir.Limit{}, Parts: []driver.Part{{Charge: 1}}}}),
			"of charge 1", []string{"adjust", "extend", "complete"}},
	} {
		store.answer = c.answer
		for _, verb := range c.verbs {
			wantWrongAnswer(t, verb, verbs[verb](), c.reason)
		}
	}
	store.answer = nil
	for _, verb := range []string{"adjust", "extend"} {
		if err := verbs[verb](); err != nil {
			t.Errorf("%s once the answers are right: %v", verb, err)
		}
	}
	store.answer = takenOfNothing // allowed, because the update ends the lease
	if err := verbs["complete"](); err != nil {
		t.Errorf("complete: %v", err)
	}
}

// noConfig returns neither a configuration nor an error.
type noConfig struct{ *fakeStore }

func (noConfig) ReadConfig(context.Context, weir.Subject, bool) (*weir.Config, error) {
	return nil, nil
}

// TestWrongConfig does the same for the answer to a read of the configuration.
func TestWrongConfig(t *testing.T) {
	t.Parallel()
	l, err := limiter.New(noConfig{newFakeStore()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Reserve(t.Context(), ask())
	wantWrongAnswer(t, "reserve", err, "a configuration")
	_, err = l.Explain(t.Context(), "acme", "gpt-4o")
	wantWrongAnswer(t, "explain", err, "a configuration")
}

// TestWrongRecords does the same for a lease that only the store knows.
func TestWrongRecords(t *testing.T) {
	t.Parallel()
	now := newClock()
	store := &wrongStore{fakeStore: newFakeStore()}
	l, err := limiter.New(store, &limiter.Options{Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	id := weir.NewLeaseID(now.Now())
	store.record = &driver.LeaseRecord{
		ID: id, State: driver.LeaseLive, Expires: now.Now().Add(time.Hour), Charges: 1, Holdings: make([]driver.Holding, 1),
	}
	_, err = l.Adjust(t.Context(), id, 1, []weir.Costs{{"rpm": 3}})
	wantWrongAnswer(t, "adjust", err, "names no limit")
	request := ask()
	request.LeaseID = id
	store.answer = func(out *driver.Outcome) error {
		out.Replay = true
		return nil
	}
	_, err = l.Reserve(t.Context(), request)
	wantWrongAnswer(t, "reserve", err, "names no limit")
	_, err = l.Cancel(t.Context(), id)
	wantWrongAnswer(t, "cancel", err, "names no limit")
}
