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

// silentStore answers nothing until the context of the call ends.
type silentStore struct{ *fakeStore }

func silence(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *silentStore) ReadConfig(
	ctx context.Context, _ weir.Subject, _ bool,
) (*weir.Config, error) {
	return nil, silence(ctx)
}

func (s *silentStore) ReadEntity(ctx context.Context, _ string) (*weir.EntityDefinition, error) {
	return nil, silence(ctx)
}

func (s *silentStore) ListEntities(
	ctx context.Context, _ *weir.EntityQuery,
) (*weir.EntityPage, error) {
	return nil, silence(ctx)
}

func (s *silentStore) WriteLimits(
	ctx context.Context, _ time.Time, _ weir.Subject, _ []weir.Limit,
) error {
	return silence(ctx)
}

func (s *silentStore) WritePolicy(ctx context.Context, _ time.Time, _ weir.Policy) error {
	return silence(ctx)
}

func (s *silentStore) ReadRetention(ctx context.Context) (*weir.Retention, error) {
	return nil, silence(ctx)
}

func (s *silentStore) WriteRetention(ctx context.Context, _ time.Time, _ *weir.Retention) error {
	return silence(ctx)
}

func (s *silentStore) WriteEntity(ctx context.Context, _ time.Time, _, _ string, _ bool) error {
	return silence(ctx)
}

func (s *silentStore) DeleteEntity(ctx context.Context, _ time.Time, _ string) error {
	return silence(ctx)
}

func (s *silentStore) Resources(ctx context.Context, _ time.Time, _ string) ([]string, error) {
	return nil, silence(ctx)
}

func (s *silentStore) Entities(ctx context.Context, _ time.Time, _ string) ([]string, error) {
	return nil, silence(ctx)
}

func (s *silentStore) Status(
	ctx context.Context, _ time.Time, _ []driver.Judged,
) ([]weir.LimitStatus, error) {
	return nil, silence(ctx)
}

// slowCalls returns calls whose work grows with what is stored.
func slowCalls(l *limiter.Limiter) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"limits": func(ctx context.Context) error {
			_, err := l.Limits(ctx, weir.Subject{})
			return err
		},
		"set limits": func(ctx context.Context) error {
			return l.SetLimits(ctx, weir.Subject{}, []weir.Limit{{Name: "rpm", Capacity: 1}})
		},
		"policy":     func(ctx context.Context) error { _, err := l.Policy(ctx); return err },
		"set policy": func(ctx context.Context) error { return l.SetPolicy(ctx, weir.Block) },
		"retention":  func(ctx context.Context) error { _, err := l.Retention(ctx); return err },
		"set retention": func(ctx context.Context) error {
			return l.SetRetention(ctx, weir.Retention{UsageDays: new(int64(7))})
		},
		"entity":        func(ctx context.Context) error { _, err := l.Entity(ctx, "a"); return err },
		"set entity":    func(ctx context.Context) error { return l.SetEntity(ctx, "a", "b", false) },
		"delete entity": func(ctx context.Context) error { return l.DeleteEntity(ctx, "a") },
		"entities":      func(ctx context.Context) error { _, err := l.Entities(ctx, nil); return err },
		"capacity":      func(ctx context.Context) error { _, err := l.Capacity(ctx, "gpt-4o"); return err },
		"status of all": func(ctx context.Context) error { _, err := l.Status(ctx, "a", ""); return err },
	}
}

// quickCalls returns calls that concern one subject, and for which requests may wait.
func quickCalls(l *limiter.Limiter) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"status":  func(ctx context.Context) error { _, err := l.Status(ctx, "a", "gpt-4o"); return err },
		"explain": func(ctx context.Context) error { _, err := l.Explain(ctx, "a", "gpt-4o"); return err },
		"reserve": func(ctx context.Context) error { _, err := l.Reserve(ctx, ask()); return err },
	}
}

// TestAdministrationTimeout checks that calls that may concern thousands of items get all of the
// caller's time, and that calls for which requests wait do not.
func TestAdministrationTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		option, deadline time.Duration // 0 means none
		slow, quick      time.Duration
	}{
		{"no deadline", 0, 0, time.Minute, time.Second},
		{"a near deadline", 0, 500 * time.Millisecond, 450 * time.Millisecond, 450 * time.Millisecond},
		{"a far deadline", 0, 10 * time.Second, 9 * time.Second, time.Second},
		{"a very far deadline", 0, 10 * time.Minute, 9 * time.Minute, time.Second},
		{"a patient limiter", 2 * time.Minute, 0, 2 * time.Minute, 2 * time.Minute},
		{"an impatient limiter", time.Millisecond, 0, time.Minute, time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &silentStore{newFakeStore()}
				l, err := limiter.New(store, &limiter.Options{StoreTimeout: tt.option})
				if err != nil {
					t.Fatal(err)
				}
				for name, call := range slowCalls(l) {
					wantAnswerAfter(t, name, call, tt.deadline, tt.slow)
				}
				for name, call := range quickCalls(l) {
					wantAnswerAfter(t, name, call, tt.deadline, tt.quick)
				}
				time.Sleep(tt.quick + time.Second) // in a bubble: let the shared read end
			})
		})
	}
}

// wantAnswerAfter checks how long a call waits for a store that does not answer.
func wantAnswerAfter(
	t *testing.T, name string, call func(context.Context) error, deadline, want time.Duration,
) {
	t.Helper()
	ctx := t.Context()
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deadline)
		defer cancel()
	}
	start := time.Now()
	if err := call(ctx); !errors.Is(err, weir.Unavailable) {
		t.Errorf("%s: got %v, want %q", name, err, weir.Unavailable)
	}
	if got := time.Since(start); got != want {
		t.Errorf("%s: got an answer after %v, want %v", name, got, want)
	}
}
