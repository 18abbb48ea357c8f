package replay

import (
	"errors"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// Attempt is a call that asks: what for, and until when it lasts if it is admitted.
type Attempt struct {
	Call *trace.Call
	// Number counts the attempts of a call, from 1.
	Number int
	// AtMS is when it asks, and EndMS when the call ends, in Unix milliseconds.
	AtMS, EndMS      int64
	Entity, Resource string
	Lease            weir.LeaseID
	// Estimate is how many tokens it is taken to generate.
	Estimate int64
	// Costs are what it reserves, and Actuals what it uses, without slots: those return when the call
	// is settled.
	Costs, Actuals weir.Costs

	seq   int // which call of the workload
	payer *pricedCaller
}

// attempt returns what a call asks at an instant if it is estimated to generate estimate tokens.
func (p *boundWorkload) attempt(seq int, atMS, estimate int64) (*Attempt, error) {
	c := &p.calls[seq]
	by := p.payers[c.Caller]
	lasts, _ := p.lasts(c) // bindWorkload has checked it
	a := &Attempt{
		Call: c, Number: 1, AtMS: atMS, EndMS: atMS + lasts, Entity: by.Entity, Resource: by.Resource,
		Estimate: estimate, Costs: make(weir.Costs, len(by.costs)), seq: seq, payer: by,
	}
	a.Actuals = a.Costs
	if estimate != c.Output || by.slots() {
		a.Actuals = make(weir.Costs, len(by.costs))
	}
	for i := range by.costs {
		n := &by.costs[i]
		if !n.slots {
			a.Actuals[n.limit], _ = n.cost.units(c.Input, c.Output) // bindWorkload has checked it
		}
		units, ok := n.cost.units(c.Input, estimate)
		if !ok {
			return nil, p.overflow(c, *n, "the call's estimate")
		}
		a.Costs[n.limit] = units
	}
	return a, nil
}

// slots reports whether a concurrency limit has a cost of its own.
func (p *pricedCaller) slots() bool {
	for i := range p.costs {
		if p.costs[i].slots {
			return true
		}
	}
	return false
}

// Decision is the answer to an attempt: admitted, denied, or an error that is the call's own.
type Decision struct {
	Limits []weir.LimitStatus
	Denied *weir.DeniedError // nil if it is not
	// Err is never satisfiable; in real time any other error too, which leaves open what became of
	// the call.
	Err *weir.Error
	// Retries is true for a denied call that comes back.
	Retries bool

	// degraded is true where a call was admitted without being charged to any limit.
	degraded bool
}

// newDecision says what an answer means, or returns the error if it is not the call's own.
func newDecision(lease *weir.Lease, err error) (*Decision, error) {
	if err == nil {
		return &Decision{Limits: lease.Limits, degraded: lease.Degraded}, nil
	}
	if denied, ok := errors.AsType[*weir.DeniedError](err); ok {
		return &Decision{Denied: denied, Limits: denied.Limits}, nil
	}
	if fault, ok := errors.AsType[*weir.Error](err); ok && fault.Code == weir.NeverSatisfiable {
		return &Decision{Err: fault}, nil
	}
	return nil, err
}

// Admitted says that the call goes ahead.
func (v *Decision) Admitted() bool { return v.Denied == nil && v.Err == nil }

// Watcher is told of every event of a replay, one after the other. An error ends the replay.
type Watcher interface {
	// Reserved says what became of an attempt.
	Reserved(a *Attempt, v *Decision) error
	// Completed says that an admitted call was settled at the instant at which it ended.
	Completed(a *Attempt) error
}
