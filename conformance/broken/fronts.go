package broken

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
)

// wrong is a world with something wrong in front of it. A nil function is the world's own. Leases go
// through it too.
type wrong struct {
	conformance.World
	reserve   func(ctx context.Context, r *weir.Request) (*weir.Lease, error)
	adjust    func(ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs) (*weir.Receipt, error)
	complete  func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error)
	cancel    func(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error)
	extend    func(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error)
	status    func(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error)
	explain   func(ctx context.Context, entity, resource string) (*weir.Explanation, error)
	configure func(d *weir.Definitions) error
}

func (w *wrong) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
	f := w.World.Reserve
	if w.reserve != nil {
		f = w.reserve
	}
	l, err := f(ctx, r)
	if l != nil {
		l.Bind(w)
	}
	return l, err
}

func (w *wrong) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	if w.adjust != nil {
		return w.adjust(ctx, id, seq, totals)
	}
	return w.World.Adjust(ctx, id, seq, totals)
}

func (w *wrong) Complete(
	ctx context.Context,
	id weir.LeaseID,
	actuals []weir.Costs,
) (*weir.Receipt, error) {
	if w.complete != nil {
		return w.complete(ctx, id, actuals)
	}
	return w.World.Complete(ctx, id, actuals)
}

func (w *wrong) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	if w.cancel != nil {
		return w.cancel(ctx, id)
	}
	return w.World.Cancel(ctx, id)
}

func (w *wrong) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	if w.extend != nil {
		return w.extend(ctx, id)
	}
	return w.World.Extend(ctx, id)
}

func (w *wrong) Status(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	if w.status != nil {
		return w.status(ctx, entity, resource)
	}
	return w.World.Status(ctx, entity, resource)
}

func (w *wrong) Explain(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
	if w.explain != nil {
		return w.explain(ctx, entity, resource)
	}
	return w.World.Explain(ctx, entity, resource)
}

func (w *wrong) Configure(d *weir.Definitions) error {
	if w.configure != nil {
		return w.configure(d)
	}
	return w.World.Configure(d)
}

// put makes a front of a function that sets what is wrong.
func put(spoil func(w *wrong)) Front {
	return func(inner conformance.World) conformance.World {
		w := &wrong{World: inner}
		spoil(w)
		return w
	}
}

// now is a receipt that says that something was done.
func (w *wrong) now(
	id weir.LeaseID,
) *weir.Receipt {
	return &weir.Receipt{LeaseID: id, At: w.Now()}
}

// fronts are wrong in front of a right model.
func fronts() []front {
	return slices.Concat(settlingFronts(), answeringFronts(), requestFronts(), chargeFronts(),
		worldFronts())
}

// requestFronts are wrong in what they make of lease IDs.
func requestFronts() []front {
	return []front{
		{"the caller's lease ID is dropped", "6.1", put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				c := *r
				c.LeaseID = weir.LeaseID{}
				return w.World.Reserve(ctx, &c)
			}
		})},
		{"calls with one ID do not wait for one another", "6.6", put(hasty)},
		{"every attempt has the same ID", "11.2", put(func(w *wrong) {
			var once sync.Once
			var id weir.LeaseID
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if d, ok := denialOf(err); ok {
					once.Do(func() { id = d.LeaseID })
					d.LeaseID = id
				}
				return l, err
			}
		})},
		{"a freed slot is noticed late", "11.2", put(func(w *wrong) {
			var denied time.Time
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				if !denied.IsZero() && w.Now().Before(denied.Add(20*time.Second)) {
					return nil, &weir.DeniedError{RetryAfter: time.Second,
						Limits: []weir.LimitStatus{{Exceeded: true, RetryAfter: time.Second}}}
				}
				l, err := w.World.Reserve(ctx, r)
				if _, ok := denialOf(err); ok {
					denied = w.Now()
				}
				return l, err
			}
		})},
	}
}

// chargeFronts are wrong in what they make of charges and brought limits.
func chargeFronts() []front {
	return []front{
		{"both forms of charges are taken", "3.2", put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				c := *r
				if len(c.Charges) > 0 {
					c.Entity, c.Resource, c.Costs = "", "", nil
				}
				return w.World.Reserve(ctx, &c)
			}
		})},
		{"what is never satisfiable is charged in part", "3.1", put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if errors.Is(err, weir.NeverSatisfiable) && len(r.Charges) > 0 {
					_, _ = w.World.Reserve(ctx, &weir.Request{Charges: r.Charges[:1]})
				}
				return l, err
			}
		})},
		{"limits are taken one after the other", "3.1", put(inParts)},
		{"entities and resources are joined with a slash", "9.1", put(joined)},
		{"a refused request leaves a lease", "6.5", put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				l, err := w.World.Reserve(ctx, r)
				if errors.Is(err, weir.NeverSatisfiable) && !r.LeaseID.IsZero() {
					_, _ = w.World.Reserve(ctx,
						&weir.Request{LeaseID: r.LeaseID, Entity: r.Entity, Resource: r.Resource})
				}
				return l, err
			}
		})},
		{"a brought capacity bounds the cost alone", "5.3", put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				for _, b := range r.Limits {
					if r.Costs[b.Name] > b.Capacity {
						return w.World.Reserve(ctx, r)
					}
				}
				c := *r
				c.Limits = nil
				return w.World.Reserve(ctx, &c)
			}
		})},
		{"brought limits that are wrong are ignored", "5.4", put(func(w *wrong) {
			w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
				c := *r
				c.Limits = slices.DeleteFunc(slices.Clone(r.Limits),
					func(l weir.Limit) bool { return l.Validate() != nil })
				return w.World.Reserve(ctx, &c)
			}
		})},
	}
}

// worldFronts are wrong in what they make of definitions.
func worldFronts() []front {
	return []front{
		{"cycles are taken", "9.2", put(func(w *wrong) {
			w.configure = func(d *weir.Definitions) error {
				if err := w.World.Configure(d); err != nil && len(d.Entities) == 0 {
					return err
				}
				return nil
			}
		})},
		{"a wrong change takes effect in part", "8.1", put(func(w *wrong) {
			w.configure = func(d *weir.Definitions) error {
				err := w.World.Configure(d)
				if err != nil && len(d.System) > 0 {
					_ = w.World.Configure(&weir.Definitions{System: d.System[:1]})
				}
				return err
			}
		})},
	}
}

// inParts takes what is asked of m after all else.
func inParts(w *wrong) {
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		later := r.Costs["m"]
		if later == 0 || len(r.Charges) > 0 {
			return w.World.Reserve(ctx, r)
		}
		first := *r
		first.Costs = maps.Clone(r.Costs)
		first.Costs["m"] = 0
		l, err := w.World.Reserve(ctx, &first)
		if err == nil {
			runtime.Gosched()
			_, _ = w.World.Adjust(ctx, l.ID, 1, []weir.Costs{{"m": later}})
		}
		return l, err
	}
}

// joined lets the last slash of both together part an entity from its resource.
func joined(w *wrong) {
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		c := *r
		all := r.Entity + "/" + r.Resource
		if i := strings.LastIndexByte(all, '/'); len(r.Charges) == 0 && r.Entity != "" && r.Resource != "" {
			c.Entity, c.Resource = all[:i], all[i+1:]
		}
		return w.World.Reserve(ctx, &c)
	}
}

// hasty lets a call that comes while another is under way on its ID take for itself.
func hasty(w *wrong) {
	var mu sync.Mutex
	busy := map[weir.LeaseID]bool{}
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		mu.Lock()
		second := busy[r.LeaseID]
		busy[r.LeaseID] = true
		mu.Unlock()
		if second {
			c := *r
			c.LeaseID = weir.LeaseID{}
			return w.World.Reserve(ctx, &c)
		}
		defer func() {
			mu.Lock()
			delete(busy, r.LeaseID)
			mu.Unlock()
		}()
		runtime.Gosched()
		return w.World.Reserve(ctx, r)
	}
}
