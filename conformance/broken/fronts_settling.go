package broken

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

func denialOf(err error) (*weir.DeniedError, bool) { return errors.AsType[*weir.DeniedError](err) }

// settlingFronts are wrong in the verbs on a lease.
func settlingFronts() []front {
	return append([]front{
		{"a complete without actuals gives everything back", "aborted streams losing usage",
			put(func(w *wrong) {
				w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
					if len(actuals) == 0 {
						return w.World.Cancel(ctx, id)
					}
					return w.World.Complete(ctx, id, actuals)
				}
			})},
		{"a cancel does nothing", "X1: ", put(func(w *wrong) {
			w.cancel = func(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) { return w.now(id), nil }
		})},
		{"an extend does nothing", "11.1", put(func(w *wrong) {
			w.extend = func(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) {
				r := w.now(id)
				r.Expires = r.At.Add(10 * time.Second)
				return r, nil
			}
		})},
		{"an extend does not renew the lease", "6.3", put(func(w *wrong) {
			w.extend = func(_ context.Context, id weir.LeaseID) (*weir.Receipt, error) { return w.now(id), nil }
		})},
		{"what was used does not count", "11.1", put(func(w *wrong) {
			w.complete = func(ctx context.Context, id weir.LeaseID, _ []weir.Costs) (*weir.Receipt, error) {
				return w.World.Complete(ctx, id, nil)
			}
		})},
		{"leases of removed limits cannot be settled", "8.3", put(unsettled)},
	}, failingFronts()...)
}

// failingFronts are wrong where a verb fails or is repeated.
func failingFronts() []front {
	return []front{
		{"a complete that failed is said to be done", "a failed complete swallowed", put(func(w *wrong) {
			w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
				if r, err := w.World.Complete(ctx, id, actuals); err == nil {
					return r, nil
				}
				return w.now(id), nil
			}
		})},
		{"a complete that failed ends the lease", "7.10", put(func(w *wrong) {
			w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
				r, err := w.World.Complete(ctx, id, actuals)
				if errors.Is(err, weir.Invalid) {
					_, _ = w.World.Complete(ctx, id, nil)
				}
				return r, err
			}
		})},
		{"a complete is done in two steps", "7.4", put(func(w *wrong) {
			w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
				r, err := w.World.Complete(ctx, id, actuals)
				if errors.Is(err, weir.Invalid) && len(actuals) == 2 {
					_, _ = w.World.Adjust(ctx, id, 1<<40, []weir.Costs{actuals[0], {}})
				}
				return r, err
			}
		})},
		{"a shrink gives everything back for a moment", "7.6", put(momentary)},
		{"a replay says when it was repeated", "7.1", put(func(w *wrong) {
			w.adjust = func(
				ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
			) (*weir.Receipt, error) {
				r, err := w.World.Adjust(ctx, id, seq, totals)
				if err == nil {
					r.At = w.Now()
				}
				return r, err
			}
		})},
		{"slots that have timed out cannot be named", "7.9", put(forgetful)},
	}
}

// unsettled refuses verbs on leases whose limits are gone.
func unsettled(w *wrong) {
	var mu sync.Mutex
	asked := map[weir.LeaseID]*weir.Request{}
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		l, err := w.World.Reserve(ctx, r)
		if err == nil && len(r.Charges) == 0 {
			mu.Lock()
			asked[l.ID] = r
			mu.Unlock()
		}
		return l, err
	}
	w.cancel = func(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
		mu.Lock()
		r := asked[id]
		mu.Unlock()
		if r != nil {
			e, err := w.World.Explain(ctx, r.Entity, r.Resource)
			for name := range r.Costs {
				known := func(l weir.Limit) bool { return l.Name == name }
				if err == nil && !slices.ContainsFunc(e.Limits, known) {
					return nil, &weir.Error{Code: weir.UnknownLimit}
				}
			}
		}
		return w.World.Cancel(ctx, id)
	}
}

// momentary adjusts in two steps: first to nothing, then to what was asked.
func momentary(w *wrong) {
	w.adjust = func(
		ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
	) (*weir.Receipt, error) {
		if len(totals) == 1 && totals[0]["n"] > 0 && seq < 1<<60 {
			if _, err := w.World.Adjust(ctx, id, 2*seq-1, []weir.Costs{{"n": 0}}); err == nil {
				runtime.Gosched()
				if r, err := w.World.Adjust(ctx, id, 2*seq, totals); err == nil {
					return r, nil
				}
			}
		}
		return w.World.Adjust(ctx, id, 2*seq, totals)
	}
}

// forgetful refuses actuals of leases whose slots have timed out.
func forgetful(w *wrong) {
	var mu sync.Mutex
	until := map[weir.LeaseID]time.Time{}
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		l, err := w.World.Reserve(ctx, r)
		if err == nil {
			mu.Lock()
			until[l.ID] = l.HoldsUntil
			mu.Unlock()
		}
		return l, err
	}
	w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
		mu.Lock()
		end := until[id]
		mu.Unlock()
		if len(actuals) > 0 && !end.IsZero() && !w.Now().Before(end) {
			return nil, &weir.Error{Code: weir.Invalid}
		}
		return w.World.Complete(ctx, id, actuals)
	}
}

// answeringFronts are wrong in what they answer.
func answeringFronts() []front {
	reserved := func(change func(w *wrong, l *weir.Lease)) func(w *wrong) {
		return func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if err == nil {
					change(w, l)
				}
				return l, err
			}
		}
	}
	return []front{
		{"instants have nanoseconds", "1.2", put(reserved(func(w *wrong, l *weir.Lease) {
			l.ReservedAt = l.ReservedAt.Add(time.Duration(w.Now().Nanosecond() % 1e6))
		}))},
		{"a lease does not say when its slots return", "1.2", put(reserved(func(_ *wrong, l *weir.Lease) {
			l.HoldsUntil = time.Time{}
		}))},
		{"a lease says that it ends with its slots", "6.3", put(reserved(func(_ *wrong, l *weir.Lease) {
			if !l.HoldsUntil.IsZero() {
				l.Expires = l.HoldsUntil
			}
		}))},
		{"a denial has no wait", "4.1", put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if d, ok := denialOf(err); ok {
					d.RetryAfter = 0
				}
				return l, err
			}
		})},
		{"a status tells of the parent too", "9.1", put(func(w *wrong) {
			w.status = func(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
				statuses, err := w.World.Status(ctx, entity, resource)
				if e, known := w.World.Explain(ctx, entity, "m"); known == nil && e.Parent != nil {
					more, _ := w.World.Status(ctx, e.Parent.Entity, resource)
					statuses = append(statuses, more...)
				}
				return statuses, err
			}
		})},
		{"a chain is explained without its parents", "9.1", put(func(w *wrong) {
			w.explain = func(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
				e, err := w.World.Explain(ctx, entity, resource)
				if err == nil {
					e.Parent = nil
				}
				return e, err
			}
		})},
	}
}
