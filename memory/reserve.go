package memory

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	arith "github.com/weir-limiter/weir/internal/bucket"
	"github.com/weir-limiter/weir/internal/takes"
)

// Reserve judges every limit that the request reaches and takes all of it or nothing. It fails as
// [weir.Reservation.Plan] does, and with [weir.Invalid] or [weir.NeverSatisfiable] where a sum
// would not fit 64 bits. What only a shadow limit's count cannot hold is not taken on it.
func (s *Store) Reserve(
	ctx context.Context, now time.Time, r *weir.Reservation,
) (*weir.Outcome, error) {
	out, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.reserve(now, out); err != nil {
		return nil, err
	}
	return out, nil
}

// seat is a take while it is judged.
type seat struct {
	spot
	cost int64
}

// reserve fills in the outcome of a plan.
func (s *Store) reserve(now time.Time, out *weir.Outcome) error {
	var few [8]seat
	seats := few[:]
	if len(out.Holdings) > len(few) {
		seats = make([]seat, len(out.Holdings))
	}
	var set stripeSet
	for i := range out.Holdings {
		t, seat := &out.Holdings[i].Take, &seats[i]
		var err error
		if seat.cost, err = takes.Cost(t); err != nil {
			return err
		}
		if i > 0 && t.Subject == out.Holdings[i-1].Subject {
			seat.follow(&seats[i-1].spot)
		} else {
			seat.locate(s, &set, t.Subject)
		}
	}
	out.At = wholeMS(now)
	ms := now.UnixMilli()
	s.decide(ms, seats, &set, out)
	s.sweep(ms)
	return nil
}

// decide judges all takes under their stripes' locks, then applies them all or none.
func (s *Store) decide(now int64, seats []seat, set *stripeSet, out *weir.Outcome) {
	s.lock(set)
	defer s.unlock(set)
	var it *item
	exceeded := false
	for i := range out.Holdings {
		t, seat := &out.Holdings[i].Take, &seats[i]
		if seat.first {
			it = seat.stripe.find(t.Subject, seat.hash)
		}
		seat.open(now, it, t.Limit, t.Limit)
		if judge(now, t, seat, &out.Limits[i]) {
			exceeded = true
			out.Denied = out.Denied || !t.Limit.Shadow
		}
	}
	if out.Denied {
		out.Holdings = nil
		return
	}
	if exceeded { // what fits can be counted
		leaveOut(now, seats, out)
	}
	apply(now, seats, out)
}

// leaveOut makes a shadow limit, which never denies, take nothing of what it cannot count.
func leaveOut(now int64, seats []seat, out *weir.Outcome) {
	for i := range out.Holdings {
		t, seat := &out.Holdings[i].Take, &seats[i]
		if !out.Limits[i].Exceeded || seat.counter.counts(now, claim{limit: t.Limit, to: seat.cost}) {
			continue
		}
		seat.cost = 0
		if t.Limit.Kind != weir.Concurrency { // a lease has its slots, as if they had timed out
			for j := range t.Parts {
				t.Parts[j].Units = 0
			}
		}
	}
}

// judge writes the status of one take as it was found, and reports whether its limit is exceeded.
func judge(now int64, t *weir.Take, seat *seat, status *weir.LimitStatus) bool {
	l := t.Limit
	lowered := l.Capacity - t.Ceiling
	available := seat.counter.available(now, l) - lowered
	// Field by field, since a whole would be put together elsewhere and copied.
	status.Entity, status.Resource, status.Limit = t.Entity, t.Resource, l.Name
	status.Kind, status.Level = l.Kind, t.Level
	status.Capacity, status.Available, status.Requested = t.Ceiling, available, seat.cost
	status.Exceeded, status.Shadow = available < seat.cost, l.Shadow
	if !status.Exceeded {
		return false
	}
	if seat.cost <= t.Ceiling {
		status.RetryAfter = arith.Until(now, seat.counter.freeAt(now, seat.cost+lowered, l))
	}
	return true
}

// apply takes everything and notes where the lease's units are.
func apply(now int64, seats []seat, out *weir.Outcome) {
	for i := range out.Holdings {
		h, seat := &out.Holdings[i], &seats[i]
		seat.keep(h.Subject, h.Limit)
		out.Limits[i].Available -= seat.cost
		if piece, ok := seat.counter.take(now, seat.cost, h.Limit); ok {
			h.Pieces = append(h.Pieces, piece)
		}
	}
}

// wholeMS cuts an instant to the millisecond.
func wholeMS(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).In(t.Location()) }
