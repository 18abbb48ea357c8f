package replay

import (
	"errors"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
)

// Attempt is one reservation of a call.
type Attempt struct {
	Call *trace.Call
	// Number counts the attempts of a call, from 1.
	Number int
	// AtMS is the time of the reservation, and EndMS the time at which the call ends if it is
	// admitted, in Unix milliseconds.
	AtMS, EndMS      int64
	Entity, Resource string
	Lease            weir.LeaseID
	// Estimate is the number of output tokens that the reservation assumes.
	Estimate int64
	// Costs has the reserved units and Actuals the used ones. Actuals has no slots, because slots
	// return when the call is settled.
	Costs, Actuals weir.Costs

	seq   int // the index of the call
	payer *pricedCaller
}

// attempt returns the reservation of call seq at an instant if the call is estimated to generate
// estimate tokens.
func (p *boundWorkload) attempt(seq int, atMS, estimate int64) (*Attempt, error) {
	c := &p.calls[seq]
	by := p.payers[c.Caller]
	lasts, _ := p.lasts(c) // bindWorkload has checked it
	a := &Attempt{
		Call: c, Number: 1, AtMS: atMS, EndMS: atMS + lasts, Entity: by.Entity, Resource: by.Resource,
		Estimate: estimate, Costs: make(weir.Costs, len(by.costs)), seq: seq, payer: by,
	}
	a.Actuals = a.Costs
	if estimate != c.Output || slices.ContainsFunc(by.costs, func(n namedCost) bool { return n.slots }) {
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

// Decision is the answer to an attempt: admitted, denied, or an error.
type Decision struct {
	Limits []weir.LimitStatus
	Denied *weir.DeniedError // nil unless denied
	// Err is nil or, in virtual time, "never satisfiable". In real time it may be any error; whether
	// the call was charged is then unknown.
	Err *weir.Error
	// Retries reports whether a denied call comes back.
	Retries bool

	degraded bool // admitted without being charged
}

// newDecision returns the decision that an answer stands for, or the error if it is not the call's
// own.
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

// Admitted reports whether the call goes ahead.
func (v *Decision) Admitted() bool { return v.Denied == nil && v.Err == nil }

// Watcher is told every decision of a replay, one at a time. If it also has a method
// Completed(*Attempt) error, it is told when an admitted call has been settled at its end. An error
// stops the replay.
type Watcher interface {
	Reserved(a *Attempt, v *Decision) error
}

type watchers []Watcher

func (all watchers) reserved(a *Attempt, v *Decision) error {
	for _, w := range all {
		if err := w.Reserved(a, v); err != nil {
			return err
		}
	}
	return nil
}

func (all watchers) completed(a *Attempt) error {
	for _, w := range all {
		if w, ok := w.(interface{ Completed(a *Attempt) error }); ok {
			if err := w.Completed(a); err != nil {
				return err
			}
		}
	}
	return nil
}
