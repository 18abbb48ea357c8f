package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// limiters are wrong about a store that does not answer (section 10). They stand in front of a
// right limiter and change what it said.
func limiters() []Store {
	answering := func(f func(w *wrong, r *weir.Request, l *weir.Lease, err error) (*weir.Lease, error)) Front {
		return put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				return f(w, r, l, err)
			}
		})
	}
	instead := func(code weir.Code) Front {
		return answering(func(w *wrong, r *weir.Request, l *weir.Lease, err error) (*weir.Lease, error) {
			if errors.Is(err, code) {
				return degraded(w, r), nil
			}
			return l, err
		})
	}
	return append(append(settlingLimiters(), callerLimiters()...), []Store{
		{Name: "live leases have no bound", Breaks: "6.9", Front: instead(weir.Overloaded)},
		{Name: "a limiter counts by itself", Breaks: "silent per-process counters", Front: put(counting)},
		{Name: "a degraded lease is not marked", Breaks: "silent per-process counters", Front: answering(
			func(_ *wrong, _ *weir.Request, l *weir.Lease, err error) (*weir.Lease, error) {
				if l != nil {
					l.Degraded = false
				}
				return l, err
			})},
		{Name: "unavailable is admitted under block", Breaks: "10.2", Front: instead(weir.Unavailable)},
		{Name: "a refused permission is admitted", Breaks: "10.3", Front: instead(weir.PermissionDenied)},
		{Name: "limits that are not in force admit", Breaks: "10.4", Front: instead(weir.Superseded)},
		{Name: "a caller's mistake is admitted", Breaks: "10.3", Front: instead(weir.NeverSatisfiable)},
		{Name: "a denial is admitted", Breaks: "10.3", Front: answering(
			func(w *wrong, r *weir.Request, l *weir.Lease, err error) (*weir.Lease, error) {
				if _, denied := denialOf(err); denied {
					return degraded(w, r), nil
				}
				return l, err
			})},
		{Name: "unavailable looks like a denial", Breaks: "10.2", Front: answering(
			func(_ *wrong, _ *weir.Request, l *weir.Lease, err error) (*weir.Lease, error) {
				if errors.Is(err, weir.Unavailable) {
					return nil, &weir.DeniedError{RetryAfter: time.Second}
				}
				return l, err
			})},
		{Name: "nobody is told which ID to repeat", Breaks: "10.2", Front: answering(
			func(_ *wrong, _ *weir.Request, l *weir.Lease, err error) (*weir.Lease, error) {
				if e, ok := errors.AsType[*weir.Error](err); ok && e.Code == weir.Unavailable {
					e.Field, e.Value = "", ""
				}
				return l, err
			})},
		{Name: "an unanswered call is made again", Breaks: "10.1", Front: put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if errors.Is(err, weir.Unavailable) {
					return w.World.Reserve(ctx, r)
				}
				return l, err
			}
		})},
	}...)
}

// settlingLimiters are wrong about a settlement that the store did not answer.
func settlingLimiters() []Store {
	completing := func(f func(w *wrong, ctx context.Context, id weir.LeaseID, err error) error) Front {
		return put(func(w *wrong) {
			w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
				r, err := w.World.Complete(ctx, id, actuals)
				if !errors.Is(err, weir.Unavailable) {
					return r, err
				}
				if err := f(w, ctx, id, err); err != nil {
					return nil, err
				}
				return w.done(id), nil
			}
		})
	}
	swallow := completing(func(*wrong, context.Context, weir.LeaseID, error) error { return nil })
	return []Store{
		{Name: "an unanswered complete is said to be done", Breaks: "H1: errors around on_unavailable",
			Front: swallow},
		{
			Name:   "an unanswered complete is swallowed",
			Breaks: "a failed complete swallowed",
			Front:  swallow,
		},
		{Name: "an unanswered complete looks like an ended lease", Breaks: "7.10", Front: completing(
			func(*wrong, context.Context, weir.LeaseID, error) error {
				return &weir.Error{Code: weir.Ended}
			})},
		{Name: "a caller who has gone gets a degraded lease", Breaks: "X1: ", Front: put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if ctx.Err() != nil {
					return degraded(w, r), nil //nolint:nilerr // that is what is wrong with it
				}
				return l, err
			}
		})},
	}
}

// degraded is a lease of nothing.
func degraded(w *wrong, r *weir.Request) *weir.Lease {
	return &weir.Lease{
		ID:         r.LeaseID,
		ReservedAt: w.Now(),
		Expires:    w.Now().Add(time.Hour),
		Degraded:   true,
	}
}

// counting admits by a count of its own while the store is gone, up to ten units of each entity.
func counting(w *wrong) {
	var mu sync.Mutex
	used := map[string]int64{}
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		l, err := w.World.Reserve(ctx, r)
		if !errors.Is(err, weir.Unavailable) {
			return l, err
		}
		mu.Lock()
		defer mu.Unlock()
		if used[r.Entity]+r.Costs["n"] > 10 {
			return nil, &weir.DeniedError{LeaseID: r.LeaseID, RetryAfter: time.Second}
		}
		used[r.Entity] += r.Costs["n"]
		lease := degraded(w, r)
		lease.Degraded = false
		return lease, nil
	}
}

// callerLimiters take one caller for another.
func callerLimiters() []Store {
	as := func(caller string) Front {
		return put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				return w.World.Reserve(weir.ContextWithCaller(ctx, caller), r)
			}
		})
	}
	return []Store{
		{Name: "one caller's IDs move everybody's horizon", Breaks: "6.8", Front: as("everybody")},
		{Name: "a caller may take all live leases", Breaks: "6.9", Front: as("")},
	}
}
