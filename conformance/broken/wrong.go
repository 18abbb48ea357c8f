package broken

import (
	"context"
	"errors"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/limiter"
)

// wrongWorld is a world with a wrong front. A nil function is the world's own method. Calls of
// leases go through it too.
type wrongWorld struct {
	conformance.World
	// points are the points of the model, if there is one inside.
	points model.Points
	// setup changes the setup of the model. opened, if not nil, is called with the world around it.
	setup     func(s *conformance.Setup)
	opened    func(inner conformance.World) conformance.World
	reserve   func(ctx context.Context, r *weir.Request) (*weir.Lease, error)
	adjust    func(ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs) (*weir.Receipt, error)
	complete  func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error)
	cancel    func(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error)
	extend    func(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error)
	status    func(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error)
	explain   func(ctx context.Context, entity, resource string) (*weir.Explanation, error)
	configure func(d *weir.Definitions) error
}

func (w *wrongWorld) Reserve(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
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

func (w *wrongWorld) Adjust(
	ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs,
) (*weir.Receipt, error) {
	if w.adjust != nil {
		return w.adjust(ctx, id, seq, totals)
	}
	return w.World.Adjust(ctx, id, seq, totals)
}

func (w *wrongWorld) Complete(
	ctx context.Context, id weir.LeaseID, actuals []weir.Costs,
) (*weir.Receipt, error) {
	if w.complete != nil {
		return w.complete(ctx, id, actuals)
	}
	return w.World.Complete(ctx, id, actuals)
}

func (w *wrongWorld) Cancel(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	if w.cancel != nil {
		return w.cancel(ctx, id)
	}
	return w.World.Cancel(ctx, id)
}

func (w *wrongWorld) Extend(ctx context.Context, id weir.LeaseID) (*weir.Receipt, error) {
	if w.extend != nil {
		return w.extend(ctx, id)
	}
	return w.World.Extend(ctx, id)
}

func (w *wrongWorld) Status(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
	if w.status != nil {
		return w.status(ctx, entity, resource)
	}
	return w.World.Status(ctx, entity, resource)
}

func (w *wrongWorld) Explain(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
	if w.explain != nil {
		return w.explain(ctx, entity, resource)
	}
	return w.World.Explain(ctx, entity, resource)
}

func (w *wrongWorld) Configure(d *weir.Definitions) error {
	if w.configure != nil {
		return w.configure(d)
	}
	return w.World.Configure(d)
}

// done returns a receipt that says that something was done.
func (w *wrongWorld) done(id weir.LeaseID) *weir.Receipt {
	return &weir.Receipt{LeaseID: id, At: w.Now()}
}

func denialOf(err error) (*weir.DeniedError, bool) { return errors.AsType[*weir.DeniedError](err) }

func refused(code weir.Code) error { return &weir.Error{Code: code} }

// Wrapper returns a world around another one.
type Wrapper func(conformance.World) conformance.World

// wrapWith returns a Wrapper for a function that sets what is wrong.
func wrapWith(spoil func(w *wrongWorld)) Wrapper {
	return func(inner conformance.World) conformance.World {
		w := &wrongWorld{World: inner}
		spoil(w)
		return w
	}
}

// set opens the model with other options.
func set(change func(o *limiter.Options)) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		w.setup = func(s *conformance.Setup) { change(&s.Options) }
	}
}

// asking changes a copy of each request, or refuses it.
func asking(change func(w *wrongWorld, r *weir.Request) error) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
			c := *r
			if err := change(w, &c); err != nil {
				return nil, err
			}
			return w.World.Reserve(ctx, &c)
		}
	}
}

// answer is the world's answer to a request.
type answer struct {
	w       *wrongWorld
	request *weir.Request
	lease   *weir.Lease
	err     error
}

// answering changes the answer to each request.
func answering(change func(a *answer)) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
			a := &answer{w: w, request: r}
			a.lease, a.err = w.World.Reserve(ctx, r)
			change(a)
			return a.lease, a.err
		}
	}
}

// fail replaces the answer with an error.
func (a *answer) fail(err error) { a.lease, a.err = nil, err }

// admitting changes each lease that was reserved.
func admitting(change func(w *wrongWorld, l *weir.Lease)) func(w *wrongWorld) {
	return answering(func(a *answer) {
		if a.err == nil {
			change(a.w, a.lease)
		}
	})
}

// denying changes each denial.
func denying(change func(a *answer, d *weir.DeniedError)) func(w *wrongWorld) {
	return answering(func(a *answer) {
		if d, ok := denialOf(a.err); ok {
			change(a, d)
		}
	})
}

// failing changes the answer to each request that failed with a code.
func failing(code weir.Code, change func(a *answer)) func(w *wrongWorld) {
	return answering(func(a *answer) {
		if errors.Is(a.err, code) {
			change(a)
		}
	})
}

// completion is the world's answer to a complete.
type completion struct {
	w       *wrongWorld
	id      weir.LeaseID
	actuals []weir.Costs
	receipt *weir.Receipt
	err     error
}

// completing changes the answer to each complete that failed with a code.
func completing(code weir.Code, change func(c *completion)) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
			c := &completion{w: w, id: id, actuals: actuals}
			if c.receipt, c.err = w.World.Complete(ctx, id, actuals); errors.Is(c.err, code) {
				change(c)
			}
			return c.receipt, c.err
		}
	}
}

// done replaces the answer with a receipt that says that the lease was completed.
func (c *completion) done() { c.receipt, c.err = c.w.done(c.id), nil }

// configuring replaces each change of the definitions. Invalid definitions are refused as before.
func configuring(change func(was, is *weir.Definitions) *weir.Definitions) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		var was *weir.Definitions
		w.setup = func(s *conformance.Setup) {
			if was = s.Definitions; was == nil {
				was = &weir.Definitions{}
			}
		}
		w.configure = func(is *weir.Definitions) error {
			if _, err := is.Normalize(); err != nil {
				return err
			}
			now := change(was, is)
			if err := w.World.Configure(now); err != nil {
				return err
			}
			was = now
			return nil
		}
	}
}

// remembering remembers the requests that were admitted, and returns a function that finds one by
// its lease.
func remembering(w *wrongWorld) (of func(weir.LeaseID) *weir.Request) {
	var mu sync.Mutex
	asked := map[weir.LeaseID]*weir.Request{}
	w.reserve = func(ctx context.Context, r *weir.Request) (*weir.Lease, error) {
		l, err := w.World.Reserve(ctx, r)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			asked[l.ID] = r
		}
		return l, err
	}
	return func(id weir.LeaseID) *weir.Request {
		mu.Lock()
		defer mu.Unlock()
		return asked[id]
	}
}
