package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-limiter/weir"
)

// simulator replays a plan against a service in virtual time: each call reserves when it comes, and
// is settled when it ends. Events come in the order of their instants; at one instant completions
// come before calls that come back, those before calls that come for the first time, and each in
// the order of the trace.
//
// The simulator knows no clock. Before each event it calls until, which sets one.
type simulator struct {
	*boundWorkload

	service   weir.Service
	ids       *leaseIDs
	until     func(atMS int64)
	estimates *estimates
	retry     *RetryOptions // nil: denied calls do not come back
	watchers  []Watcher

	next    int // the first call that has not come yet
	running eventHeap[runningCall]
	waiting eventHeap[waitingCall]
	// operations counts the calls to the service, and lastMS is the instant of the latest.
	operations int64
	lastMS     int64
}

// runningCall is a call that was admitted and has not ended. It points at nothing: very many may
// run at once.
type runningCall struct {
	endMS, atMS, estimate int64
	seq, try              int32
	lease                 weir.LeaseID
}

func (c runningCall) before(other runningCall) bool {
	return c.endMS < other.endMS || c.endMS == other.endMS && c.seq < other.seq
}

// waitingCall is a call that was denied and comes back.
type waitingCall struct {
	atMS     int64
	seq, try int32 // the attempt that it makes then
}

func (c waitingCall) before(other waitingCall) bool {
	return c.atMS < other.atMS || c.atMS == other.atMS && c.seq < other.seq
}

// run replays the whole plan, or stops at the first error that is not a call's own.
func (e *simulator) run(ctx context.Context) error {
	for {
		comes, returns := e.next < len(e.calls), len(e.waiting) > 0
		arrival := int64(0)
		if comes {
			arrival = e.calls[e.next].AtMS
		}
		if returns && (!comes || e.waiting[0].atMS <= arrival) {
			arrival, comes = e.waiting[0].atMS, false
		}
		var err error
		switch {
		case len(e.running) > 0 && (!comes && !returns || e.running[0].endMS <= arrival):
			err = e.complete(ctx, e.running.pop())
		case comes:
			e.next++
			err = e.reserve(ctx, e.next-1, arrival, 1)
		case returns:
			back := e.waiting.pop()
			err = e.reserve(ctx, int(back.seq), back.atMS, int(back.try))
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// advanceTo moves time to an event.
func (e *simulator) advanceTo(ctx context.Context, atMS int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.operations++
	e.lastMS = atMS
	e.until(atMS)
	return nil
}

func (e *simulator) reserve(ctx context.Context, seq int, atMS int64, try int) error {
	if err := e.advanceTo(ctx, atMS); err != nil {
		return err
	}
	a, err := e.attempt(seq, atMS, e.estimates.output(e.payers[e.calls[seq].Caller], &e.calls[seq]))
	if err != nil {
		return err
	}
	a.Number, a.Lease = try, e.ids.next(atMS)
	lease, err := e.service.Reserve(ctx, &weir.Request{
		LeaseID: a.Lease, Entity: a.Entity, Resource: a.Resource, Costs: a.Costs,
	})
	v, err := newDecision(lease, err)
	if err != nil {
		return fmt.Errorf("%s:%d: reserve: %w", e.trace.Name, a.Call.Line, err)
	}
	if v.Admitted() {
		e.running.push(runningCall{a.EndMS, atMS, a.Estimate, int32(seq), int32(try), a.Lease})
	} else if back, ok := e.retry.returns(a, v); ok {
		v.Retries = true
		e.waiting.push(waitingCall{back, int32(seq), int32(try + 1)})
	}
	for _, w := range e.watchers {
		if err := w.Reserved(a, v); err != nil {
			return err
		}
	}
	return nil
}

// complete settles a call that ends.
func (e *simulator) complete(ctx context.Context, c runningCall) error {
	if err := e.advanceTo(ctx, c.endMS); err != nil {
		return err
	}
	a, err := e.attempt(int(c.seq), c.atMS, c.estimate)
	if err != nil {
		return err
	}
	a.Number, a.Lease = int(c.try), c.lease
	if _, err := e.service.Complete(ctx, a.Lease, []weir.Costs{a.Actuals}); err != nil {
		return fmt.Errorf("%s:%d: complete: %w", e.trace.Name, a.Call.Line, err)
	}
	for _, w := range e.watchers {
		if err := w.Completed(a); err != nil {
			return err
		}
	}
	return nil
}

// virtualClock stands still until it is told the time.
type virtualClock struct {
	atMS int64
}

func (c *virtualClock) now() time.Time { return time.UnixMilli(c.atMS).UTC() }

func (c *virtualClock) until(atMS int64) { c.atMS = atMS }

// ordered is what a heap can hold.
type ordered[T any] interface {
	// before reports whether it comes before another one.
	before(other T) bool
}

// eventHeap is a binary heap: the first element comes before all others.
type eventHeap[T ordered[T]] []T

func (h *eventHeap[T]) push(v T) {
	*h = append(*h, v)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *eventHeap[T]) pop() T {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && s[child].before(s[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
