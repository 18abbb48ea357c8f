package limiter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

// editableStore is a fake store whose configuration can be written and edited.
type editableStore struct {
	*fakeStore
	writes int
}

func (e *editableStore) WriteConfig(context.Context, time.Time, *weir.Definitions) error {
	e.writes++
	return nil
}

func (e *editableStore) WriteLimits(context.Context, time.Time, weir.Subject, []weir.Limit) error {
	e.writes++
	return nil
}

func (e *editableStore) WritePolicy(context.Context, time.Time, weir.Policy) error { return nil }

func (e *editableStore) WriteEntity(context.Context, time.Time, string, string, bool) error {
	return nil
}

func (e *editableStore) DeleteEntity(context.Context, time.Time, string) error { return nil }

// TestNoShadow checks that a shadow limit never reaches a store without shadow limits, and that
// other stores get it.
func TestNoShadow(t *testing.T) {
	t.Parallel()
	shadow := weir.Limit{Name: "rpm", Capacity: 5, Shadow: true}
	fields := map[string]func(*editableStore) error{
		"Limits.rpm.enforce": func(e *editableStore) error {
			_, err := limiter.New(e, &limiter.Options{Limits: []weir.Limit{shadow}})
			return err
		},
		"system.limits.rpm.enforce": limiting(func(ctx context.Context, l *limiter.Limiter) error {
			return l.Configure(ctx, &weir.Definitions{System: []weir.Limit{shadow}})
		}),
		"limits.rpm.enforce": limiting(func(ctx context.Context, l *limiter.Limiter) error {
			return l.SetLimits(ctx, weir.Subject{Resource: "gpt"}, []weir.Limit{shadow})
		}),
	}
	bring := limiting(func(ctx context.Context, l *limiter.Limiter) error {
		r := ask()
		r.Limits = []weir.Limit{shadow}
		_, err := l.Reserve(ctx, r)
		return err
	})
	for field, set := range fields {
		with, without := &editableStore{fakeStore: newFakeStore()}, &editableStore{fakeStore: newFakeStore()}
		without.traits.NoShadow = true
		if err := set(with); err != nil {
			t.Errorf("%s: a store with shadow limits: %v", field, err)
		}
		refusesShadow(t, set(without), field)
		if without.writes > 0 {
			t.Errorf("%s: %d writes were made", field, without.writes)
		}
	}
	with, without := &editableStore{fakeStore: newFakeStore()}, &editableStore{fakeStore: newFakeStore()}
	without.traits.NoShadow = true
	if err := bring(with); err != nil {
		t.Errorf("bring: a store with shadow limits: %v", err)
	}
	refusesShadow(t, bring(without), "limits.rpm.enforce")
	if without.reserves > 0 {
		t.Errorf("bring: the store was asked %d times", without.reserves)
	}
}

// limiting returns a function that opens a limiter over the store and calls f with it.
func limiting(f func(context.Context, *limiter.Limiter) error) func(*editableStore) error {
	return func(e *editableStore) error {
		l, err := limiter.New(e, nil)
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }()
		return f(context.Background(), l)
	}
}

func refusesShadow(t *testing.T, err error, field string) {
	t.Helper()
	e, ok := errors.AsType[*weir.Error](err)
	if !ok || e.Code != weir.Unsupported || e.Field != field || e.Value != "false" {
		t.Errorf("got %v, want %q of %s, false", err, weir.Unsupported, field)
	}
}
