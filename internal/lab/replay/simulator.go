package replay

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/weir-limiter/weir"
)

// simulator plays a workload against a service in virtual time: each call reserves when it arrives
// and is settled when it ends. It reads no clock; before each event it calls until to set one.
type simulator struct {
	*boundWorkload

	service   weir.Service
	ids       *leaseIDs
	until     func(atMS int64)
	estimates *estimates
	retry     *RetryOptions // nil: denied calls do not come back
	later     rand.Source   // by how much later than told denied calls come back
	watchers  watchers

	queue eventQueue
	// operations counts the requests to the service, and lastMS is the time of the latest.
	operations, lastMS int64
}

// event is a request to the service that is due. Very many calls may run at once, so it holds no
// pointers.
type event struct {
	atMS     int64
	kind     eventKind
	seq, try int32 // the call's index and the number of its attempt

	// A call that ends has these from its reservation.
	beganMS, estimate int64
	lease             weir.LeaseID
}

// eventKind orders the events of one millisecond.
type eventKind int8

const (
	ends    eventKind = iota // an admitted call ends
	returns                  // a denied call comes back
	arrives                  // a call comes for the first time
)

// run plays the whole workload. It stops at the first error that is not a call's own.
func (e *simulator) run(ctx context.Context) error {
	e.queue.push(event{atMS: e.calls[0].AtMS, kind: arrives, try: 1})
	for len(e.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		due := e.queue.pop()
		if next := due.seq + 1; due.kind == arrives && int(next) < len(e.calls) {
			e.queue.push(event{atMS: e.calls[next].AtMS, kind: arrives, seq: next, try: 1})
		}
		e.operations++
		e.lastMS = due.atMS
		e.until(due.atMS)
		var err error
		if due.kind == ends {
			err = e.complete(ctx, &due)
		} else {
			err = e.reserve(ctx, &due)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *simulator) reserve(ctx context.Context, due *event) error {
	c := &e.calls[due.seq]
	a, err := e.attempt(int(due.seq), due.atMS, e.estimates.output(e.payers[c.Caller], c))
	if err != nil {
		return err
	}
	a.Number, a.Lease = int(due.try), e.ids.next(due.atMS)
	lease, err := e.service.Reserve(ctx, &weir.Request{
		LeaseID: a.Lease, Entity: a.Entity, Resource: a.Resource, Costs: a.Costs,
	})
	v, err := newDecision(lease, err)
	if err != nil {
		return fmt.Errorf("%s:%d: reserve: %w", e.trace.Name, c.Line, err)
	}
	if v.Admitted() {
		e.queue.push(event{
			atMS: a.EndMS, kind: ends, seq: due.seq, try: due.try,
			beganMS: due.atMS, estimate: a.Estimate, lease: a.Lease,
		})
	} else if back, ok := e.retry.returns(a, v, e.later); ok {
		v.Retries = true
		e.queue.push(event{atMS: back, kind: returns, seq: due.seq, try: due.try + 1})
	}
	return e.watchers.reserved(a, v)
}

// complete settles a call that ends.
func (e *simulator) complete(ctx context.Context, due *event) error {
	a, err := e.attempt(int(due.seq), due.beganMS, due.estimate)
	if err != nil {
		return err
	}
	a.Number, a.Lease = int(due.try), due.lease
	if _, err := e.service.Complete(ctx, a.Lease, []weir.Costs{a.Actuals}); err != nil {
		return fmt.Errorf("%s:%d: complete: %w", e.trace.Name, a.Call.Line, err)
	}
	return e.watchers.completed(a)
}

// before reports whether an event comes before another: by time, then by kind, then in the order of
// the trace.
func (v *event) before(other *event) bool {
	switch {
	case v.atMS != other.atMS:
		return v.atMS < other.atMS
	case v.kind != other.kind:
		return v.kind < other.kind
	}
	return v.seq < other.seq
}

// eventQueue is a binary heap of events. It does not use container/heap, which would allocate for
// each event and make replays slower.
type eventQueue []event

func (q *eventQueue) push(v event) {
	*q = append(*q, v)
	s := *q
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(&s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (q *eventQueue) pop() event {
	s := *q
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*q = s
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && s[child].before(&s[least]) {
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
