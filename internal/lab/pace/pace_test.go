package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-limiter/weir/internal/lab/pace"
)

// TestUntil checks that Until returns at the time or at the end of the context, whichever is first,
// and at once if either has passed.
func TestUntil(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		at, end, returns time.Duration
		want             bool
	}{
		{"the time first", time.Second, time.Minute, time.Second, true},
		{"the end first", time.Minute, time.Second, time.Second, false},
		{"a time in the past", -time.Second, time.Minute, 0, true},
		{"a context that has ended", -time.Second, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.end)
				defer cancel()
				start := time.Now()
				got := pace.Until(ctx, start.Add(c.at))
				if took := time.Since(start); got != c.want || took != c.returns {
					t.Errorf("got %v after %v, want %v after %v", got, took, c.want, c.returns)
				}
			})
		})
	}
}

// TestSemaphore checks that a full semaphore admits a request only after a release, and that one
// without a bound always does.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := pace.NewSemaphore(2)
		for range 2 {
			if !s.Acquire(ctx) {
				t.Error("got no room for two requests")
			}
		}
		if s.Acquire(ctx) {
			t.Error("got room for a third request, want the end of the context")
		}
		s.Release()
		if !s.Acquire(t.Context()) {
			t.Error("got no room after a release")
		}
		var unbounded pace.Semaphore
		for range 3 {
			if !unbounded.Acquire(ctx) {
				t.Error("got no room without a bound")
			}
		}
		unbounded.Release()
	})
}
