package memory

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// Reserve judges every limit of a plan and takes all of it or nothing. What only a shadow limit's
// count cannot hold is not taken on it. It never fails.
func (s *Store) Reserve(_ context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	var few [8]activeTake
	seats := few[:]
	if len(p.Takes) > len(few) {
		seats = make([]activeTake, len(p.Takes))
	}
	var set stripeSet
	for i := range p.Takes {
		t, seat := p.Takes[i], &seats[i]
		seat.cost = t.Cost()
		if i > 0 && t.Subject == p.Takes[i-1].Subject {
			seat.sameSubjectAs(&seats[i-1].limitRef)
		} else {
			seat.locate(s, &set, t.Subject)
		}
	}
	out.At = now.Truncate(time.Millisecond)
	ms := now.UnixMilli()
	s.decide(ms, p.Takes, seats, &set, out)
	s.sweep(ms)
	return nil
}

// activeTake is a take while it is judged.
type activeTake struct {
	limitRef
	cost int64
}

// decide judges all takes under their stripes' locks, then applies them all or none.
func (s *Store) decide(
	now int64, takes []*driver.Take, seats []activeTake, set *stripeSet, out *driver.Outcome,
) {
	s.lock(set)
	defer s.unlock(set)
	var it *subjectState
	exceeded := false
	for i := range takes {
		t, seat := takes[i], &seats[i]
		if seat.first {
			it = seat.stripe.find(t.Subject, seat.hash)
		}
		seat.load(now, it, t.Limit, t.Limit)
		seat.define(now, t.Limit)
		if judge(now, t, seat, &out.Limits[i]) {
			exceeded = true
			out.Denied = out.Denied || !t.Limit.Shadow
		}
	}
	if out.Denied {
		return
	}
	if exceeded { // what fits can be counted
		skipUncountable(now, takes, seats, out)
	}
	apply(now, takes, seats, out)
}

// skipUncountable makes a shadow limit, which never denies, take nothing of what it cannot count.
func skipUncountable(now int64, takes []*driver.Take, seats []activeTake, out *driver.Outcome) {
	for i := range takes {
		t, seat := takes[i], &seats[i]
		if !out.Limits[i].Exceeded || seat.counter.CanCount(now, kernel.Change{To: seat.cost}) {
			continue
		}
		seat.cost = 0
		if t.Limit.Kind != weir.Concurrency { // a lease has its slots, as if they had timed out
			out.Taken[i].Units = 0
		}
	}
}

// judge writes the status of one take as it was found, and reports whether its limit is exceeded.
func judge(now int64, t *driver.Take, seat *activeTake, status *weir.LimitStatus) bool {
	l := t.Limit
	available, retryAfter, fits := kernel.Judge(seat.counter, now, seat.cost, t.Ceiling, l.Capacity)
	// Field by field, since a whole would be put together elsewhere and copied.
	status.Entity, status.Resource, status.Limit = t.Entity, t.Resource, l.Name
	status.Kind, status.Level = l.Kind, t.Level
	status.Capacity, status.Available, status.Requested = t.Ceiling, available, seat.cost
	status.Exceeded, status.Shadow, status.RetryAfter = !fits, l.Shadow, retryAfter
	return !fits
}

// apply takes everything and notes where the lease's units are.
func apply(now int64, takes []*driver.Take, seats []activeTake, out *driver.Outcome) {
	for i := range takes {
		t, seat := takes[i], &seats[i]
		seat.store(t.Subject, t.Limit)
		out.Limits[i].Available -= seat.cost
		if piece, ok := seat.counter.Take(now, seat.cost); ok {
			out.Taken[i].Pieces = append(out.Taken[i].Pieces, piece)
		}
	}
}
