package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// limiterFronts returns variants that are wrong about a store that does not answer (section 10), or
// about callers. They are in front of a right limiter.
func limiterFronts() []wrappedVariant {
	// admitted turns an error into a lease that stands for nothing.
	admitted := func(code weir.Code) func(w *wrongWorld) { return failing(code, (*answer).degrade) }
	unanswered := func(change func(c *completion)) func(w *wrongWorld) {
		return completing(weir.Unavailable, change)
	}
	// as makes every call in the name of one caller.
	as := func(caller string) func(w *wrongWorld) {
		return func(w *wrongWorld) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				return w.World.Reserve(weir.ContextWithCaller(ctx, caller), r)
			}
		}
	}
	return []wrappedVariant{
		{"one caller's IDs move everybody's horizon", "6.8", as("everybody")},
		{"a caller may take all live leases", "6.9", as("")},
		{"live leases have no bound", "6.9", admitted(weir.Overloaded)},
		{"unavailable is admitted under block", "10.2", admitted(weir.Unavailable)},
		{"a refused permission is admitted", "10.3", admitted(weir.PermissionDenied)},
		{"limits that are not in force admit", "10.4", admitted(weir.Superseded)},
		{"a caller's mistake is admitted", "10.3", admitted(weir.NeverSatisfiable)},
		{"a denial is admitted", "10.3", denying(func(a *answer, _ *weir.DeniedError) { a.degrade() })},
		{"unavailable looks like a denial", "10.2", failing(weir.Unavailable, func(a *answer) {
			a.fail(&weir.DeniedError{RetryAfter: time.Second})
		})},
		{"the error does not name the ID to repeat", "10.2", failing(weir.Unavailable, func(a *answer) {
			if e, ok := errors.AsType[*weir.Error](a.err); ok {
				e.Field, e.Value = "", ""
			}
		})},
		{"an unanswered call is made again", "10.1", func(w *wrongWorld) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if errors.Is(err, weir.Unavailable) {
					return w.World.Reserve(ctx, r)
				}
				return l, err
			}
		}},
		{"a caller that has left gets a degraded lease", "X1: ", func(w *wrongWorld) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if ctx.Err() != nil {
					return degraded(w, r), nil //nolint:nilerr // this is the defect
				}
				return l, err
			}
		}},
		{"a limiter counts by itself", "silent per-process counters", counting},
		{"a degraded lease is not marked", "silent per-process counters", admitting(
			func(_ *wrongWorld, l *weir.Lease) { l.Degraded = false })},

		{"an unanswered complete is said to be done", "H1: errors around on_unavailable",
			unanswered((*completion).done)},
		{"an unanswered complete is swallowed", "a failed complete swallowed",
			unanswered((*completion).done)},
		{"an unanswered complete looks like an ended lease", "7.10", unanswered(func(c *completion) {
			c.err = refused(weir.Ended)
		})},
	}
}

// degraded returns a lease that stands for nothing.
func degraded(w *wrongWorld, r *weir.Request) *weir.Lease {
	return &weir.Lease{
		ID: r.LeaseID, ReservedAt: w.Now(), Expires: w.Now().Add(time.Hour), Degraded: true,
	}
}

// degrade replaces the answer with a lease that stands for nothing.
func (a *answer) degrade() { a.lease, a.err = degraded(a.w, a.request), nil }

// counting admits by a count of its own while the store does not answer, up to ten units of each
// entity.
func counting(w *wrongWorld) {
	var mu sync.Mutex
	used := map[string]int64{}
	failing(weir.Unavailable, func(a *answer) {
		mu.Lock()
		defer mu.Unlock()
		r := a.request
		if used[r.Entity]+r.Costs["n"] > 10 {
			a.fail(&weir.DeniedError{LeaseID: r.LeaseID, RetryAfter: time.Second})
			return
		}
		used[r.Entity] += r.Costs["n"]
		a.degrade()
		a.lease.Degraded = false
	})(w)
}
