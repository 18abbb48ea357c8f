package cli

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
)

// engine replays a workload against a service: it reserves for each call what the call used, and
// settles it when the call ends. Events come in the order of their instants; at one instant
// completions come before reservations, and each in the order of the trace.
//
// The engine knows no clock. Before each event it calls until, which sets a virtual clock or waits.
type engine struct {
	service  weir.Service
	workload *workload
	ids      *leaseIDs
	until    func(ctx context.Context, atMS int64) error
	watchers []watcher

	running callHeap
	// operations counts the calls to the service, and lastMS is the instant of the latest.
	operations int64
	lastMS     int64
}

// watcher is told of every event.
type watcher interface {
	// reserved says what became of a reservation.
	reserved(a *attempt, v *verdict) error
	// completed says that an admitted call was settled at the instant at which it ended.
	completed(a *attempt) error
}

// verdict is the answer to a reservation: admitted, denied, or an error that is the call's own.
type verdict struct {
	limits []weir.LimitStatus
	denied *weir.DeniedError
	// fault is never satisfiable; in a live replay any other error too, which leaves open what
	// became of the call.
	fault *weir.Error
	// degraded is true where a call was admitted without being charged to any limit.
	degraded bool
}

// newVerdict says what an answer means, or returns the error if it is not the call's own.
func newVerdict(lease *weir.Lease, err error) (*verdict, error) {
	if err == nil {
		return &verdict{limits: lease.Limits, degraded: lease.Degraded}, nil
	}
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		return &verdict{denied: denied, limits: denied.Limits}, nil
	}
	if fault, ok := errors.AsType[*weir.Error](err); ok && fault.Code == weir.NeverSatisfiable {
		return &verdict{fault: fault}, nil
	}
	return nil, err
}

// admitted says that the call goes ahead.
func (v *verdict) admitted() bool { return v.denied == nil && v.fault == nil }

// run replays the whole workload, or stops at the first error that is not a call's own.
func (e *engine) run(ctx context.Context) error {
	for i := range e.workload.calls {
		a, err := e.workload.attempt(i)
		if err != nil {
			return err
		}
		if err := e.settleUntil(ctx, a.call.atMS); err != nil {
			return err
		}
		if err := e.reserve(ctx, a); err != nil {
			return err
		}
	}
	for len(e.running) > 0 {
		if err := e.settleUntil(ctx, e.running[0].endMS); err != nil {
			return err
		}
	}
	return nil
}

// reach moves time to an event.
func (e *engine) reach(ctx context.Context, atMS int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.operations++
	e.lastMS = atMS
	return e.until(ctx, atMS)
}

func (e *engine) reserve(ctx context.Context, a *attempt) error {
	if err := e.reach(ctx, a.call.atMS); err != nil {
		return err
	}
	a.lease = e.ids.next(a.call.atMS)
	lease, err := e.service.Reserve(ctx, &weir.Request{
		LeaseID: a.lease, Entity: a.entity, Resource: a.resource, Costs: a.costs,
	})
	v, err := newVerdict(lease, err)
	if err != nil {
		return fmt.Errorf("%s:%d: reserve: %w", e.workload.trace, a.call.line, err)
	}
	if v.admitted() {
		heap.Push(&e.running, a)
	}
	for _, w := range e.watchers {
		if err := w.reserved(a, v); err != nil {
			return err
		}
	}
	return nil
}

// settleUntil settles the calls that have ended by an instant.
func (e *engine) settleUntil(ctx context.Context, atMS int64) error {
	for len(e.running) > 0 && e.running[0].endMS <= atMS {
		a := e.running[0]
		heap.Pop(&e.running)
		if err := e.reach(ctx, a.endMS); err != nil {
			return err
		}
		if _, err := e.service.Complete(ctx, a.lease, []weir.Costs{a.actuals}); err != nil {
			return fmt.Errorf("%s:%d: complete: %w", e.workload.trace, a.call.line, err)
		}
		for _, w := range e.watchers {
			if err := w.completed(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// callHeap has the call that ends first on top; of two that end together, the earlier call.
type callHeap []*attempt

func (h callHeap) Len() int { return len(h) }

func (h callHeap) Less(i, j int) bool {
	if h[i].endMS != h[j].endMS {
		return h[i].endMS < h[j].endMS
	}
	return h[i].seq < h[j].seq
}

func (h callHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push appends a call, for the heap package.
func (h *callHeap) Push(a any) {
	if a, ok := a.(*attempt); ok {
		*h = append(*h, a)
	}
}

// Pop takes the last call, for the heap package.
func (h *callHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}

// virtualClock stands still until it is told the time.
type virtualClock struct {
	atMS int64
}

func (c *virtualClock) now() time.Time { return time.UnixMilli(c.atMS).UTC() }

func (c *virtualClock) until(_ context.Context, atMS int64) error {
	c.atMS = atMS
	return nil
}
