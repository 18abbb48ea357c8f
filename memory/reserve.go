package memory

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// Reserve judges every limit of a plan and takes all of it or nothing. A shadow limit whose counter
// cannot hold the cost takes nothing. Reserve never fails.
func (s *Store) Reserve(_ context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	var few [8]activeTake
	active := few[:]
	if len(p.Takes) > len(few) {
		active = make([]activeTake, len(p.Takes))
	}
	var set stripeSet
	for i := range p.Takes {
		t, a := p.Takes[i], &active[i]
		a.cost = t.Cost()
		if i > 0 && t.Subject == p.Takes[i-1].Subject {
			a.sameSubjectAs(&active[i-1].limitRef)
		} else {
			a.locate(s, &set, t.Subject)
		}
	}
	out.At = now.Truncate(time.Millisecond)
	ms := now.UnixMilli()
	s.decide(ms, p.Takes, active, &set, out)
	s.sweep(ms)
	return nil
}

// activeTake is a take while it is judged and taken.
type activeTake struct {
	limitRef
	cost int64
}

// decide judges all takes with their stripes locked, and then takes all of them or none.
func (s *Store) decide(
	now int64, takes []*driver.Take, active []activeTake, set *stripeSet, out *driver.Outcome,
) {
	s.lock(set)
	defer s.unlock(set)
	var it *subjectState
	exceeded := false
	for i := range takes {
		t, a := takes[i], &active[i]
		if a.first {
			it = a.stripe.find(t.Subject, a.hash)
		}
		a.load(now, it, t.Limit, t.Limit)
		a.define(now, t.Limit)
		if judge(now, t, a, &out.Limits[i]) {
			exceeded = true
			out.Denied = out.Denied || !t.Limit.Shadow
		}
	}
	if out.Denied {
		return
	}
	if exceeded { // what fits can be counted
		skipUncountable(now, takes, active, out)
	}
	apply(now, takes, active, out)
}

// skipUncountable makes an exceeded shadow limit take nothing if its counter cannot hold the cost.
func skipUncountable(now int64, takes []*driver.Take, active []activeTake, out *driver.Outcome) {
	for i := range takes {
		t, a := takes[i], &active[i]
		if !out.Limits[i].Exceeded || a.counter.CanCount(now, kernel.Change{To: a.cost}) {
			continue
		}
		a.cost = 0
		if t.Limit.Kind != weir.Concurrency { // the lease keeps its slots, as if they had timed out
			out.Taken[i].Units = 0
		}
	}
}

// judge fills in the status of one take as it was found, and reports whether its limit is exceeded.
func judge(now int64, t *driver.Take, a *activeTake, status *weir.LimitStatus) bool {
	l := t.Limit
	available, retryAfter, fits := kernel.Judge(a.counter, now, a.cost, t.Ceiling, l.Capacity)
	// Assign the fields one by one: the compiler would build a composite literal elsewhere and copy
	// it.
	status.Entity, status.Resource, status.Limit = t.Entity, t.Resource, l.Name
	status.Kind, status.Level = l.Kind, t.Level
	status.Capacity, status.Available, status.Requested = t.Ceiling, available, a.cost
	status.Exceeded, status.Shadow, status.RetryAfter = !fits, l.Shadow, retryAfter
	return !fits
}

// apply takes everything and records where the lease's units are.
func apply(now int64, takes []*driver.Take, active []activeTake, out *driver.Outcome) {
	hour := hourOf(now)
	for i := range takes {
		t, a := takes[i], &active[i]
		a.store(t.Subject, t.Limit)
		a.stripe.count(a.item, a.index, hour, out.Taken[i].Units)
		out.Limits[i].Available -= a.cost
		if piece, ok := a.counter.Take(now, a.cost); ok {
			out.Taken[i].Pieces = append(out.Taken[i].Pieces, piece)
		}
	}
}
