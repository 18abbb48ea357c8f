package memory

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/weir-limiter/weir"
)

// Reserve judges every limit that the request reaches and takes all of it or nothing. It fails as
// [weir.Reservation.Plan] does, and with [weir.Invalid] or [weir.NeverSatisfiable] where a sum
// would not fit 64 bits. What only a shadow limit's count cannot hold is not taken on it.
func (s *Store) Reserve(
	ctx context.Context, now time.Time, r *weir.Reservation,
) (*weir.Outcome, error) {
	takes, err := r.Plan(ctx)
	if err != nil {
		return nil, err
	}
	return s.reserve(now, takes)
}

// newOutcome returns an outcome with room for n limits, and their holdings.
func newOutcome(n int) (*weir.Outcome, []weir.Holding) {
	if n != 1 {
		return &weir.Outcome{Limits: make([]weir.LimitStatus, n)}, make([]weir.Holding, n)
	}
	var one struct {
		out     weir.Outcome
		limit   [1]weir.LimitStatus
		holding [1]weir.Holding
	}
	one.out.Limits = one.limit[:]
	return &one.out, one.holding[:]
}

// seat is a take while it is judged.
type seat struct {
	stripe  *stripe
	counter counter
	cost    int64
	// fresh is true where the counter is not in its item yet: only an admission puts it there.
	fresh bool
}

func (s *Store) reserve(now time.Time, takes []weir.Take) (*weir.Outcome, error) {
	var few [4]seat
	seats := few[:0]
	var set stripeSet
	at := 0
	for i := range takes {
		t := &takes[i]
		cost, ok := sum(t.Parts)
		if !ok {
			return nil, uncountable(t)
		}
		if i == 0 || t.Entity != takes[i-1].Entity {
			at = s.stripeOf(t.Entity)
			set.add(at)
		}
		seats = append(seats, seat{stripe: &s.stripes[at], cost: cost})
	}
	out, holdings := newOutcome(len(takes))
	out.At = now.Truncate(time.Millisecond)
	ms := now.UnixMilli()
	out.Holdings = holdings
	if err := s.decide(ms, takes, seats, &set, out); err != nil {
		return nil, err
	}
	s.sweep(ms)
	return out, nil
}

// decide judges all takes under their stripes' locks, then applies them all or none.
func (s *Store) decide(
	now int64, takes []weir.Take, seats []seat, set *stripeSet, out *weir.Outcome,
) error {
	s.lock(set)
	defer s.unlock(set)
	var it *item
	for i := range takes {
		t, seat := &takes[i], &seats[i]
		if i == 0 || t.Subject != takes[i-1].Subject {
			it = seat.stripe.items[t.Subject]
		}
		if seat.counter = it.find(t.Limit); seat.counter == nil {
			seat.counter, seat.fresh = newCounter(now, t.Limit), true
		}
		if judge(now, t, seat, &out.Limits[i]) {
			out.Denied = true
		}
	}
	if out.Denied {
		out.Holdings = nil
		return nil
	}
	for i := range takes {
		// What fits can be counted. A shadow limit takes more than fits, and never denies.
		grows := out.Limits[i].Exceeded
		if grows && !seats[i].counter.counts(now, change{limit: takes[i].Limit, to: seats[i].cost}) {
			seats[i].cost = 0
			if takes[i].Limit.Kind != weir.Concurrency { // a lease has its slots, as if they had timed out
				takes[i].Parts = nothingOf(takes[i].Parts)
			}
		}
	}
	apply(now, takes, seats, out)
	return nil
}

// nothingOf returns the same parts, standing for nothing.
func nothingOf(parts []weir.Part) []weir.Part {
	out := make([]weir.Part, len(parts))
	for i := range parts {
		out[i].Charge = parts[i].Charge
	}
	return out
}

// judge writes the status of one take as it was found, and reports whether its limit denies it.
func judge(now int64, t *weir.Take, seat *seat, status *weir.LimitStatus) bool {
	l := t.Limit
	lowered := l.Capacity - t.Ceiling
	available := seat.counter.available(now, l) - lowered
	*status = weir.LimitStatus{
		Entity: t.Entity, Resource: t.Resource, Limit: l.Name, Kind: l.Kind, Level: t.Level,
		Capacity: t.Ceiling, Available: available, Requested: seat.cost,
		Exceeded: available < seat.cost, Shadow: l.Shadow,
	}
	if !status.Exceeded {
		return false
	}
	if seat.cost <= t.Ceiling {
		status.RetryAfter = since(now, seat.counter.freeAt(now, seat.cost+lowered, l))
	}
	return !l.Shadow
}

// apply takes everything and returns what the lease stands for.
func apply(now int64, takes []weir.Take, seats []seat, out *weir.Outcome) {
	var pieces []weir.Piece
	for i := range takes {
		t, seat := &takes[i], &seats[i]
		if seat.fresh {
			seat.stripe.ensure(t.Subject).put(t.Limit, seat.counter)
		}
		out.Limits[i].Available -= seat.cost
		out.Holdings[i].Take = *t
		piece, ok := seat.counter.take(now, seat.cost, t.Limit)
		if !ok {
			continue
		}
		if pieces == nil {
			pieces = make([]weir.Piece, 0, len(takes)-i)
		}
		pieces = append(pieces, piece)
		out.Holdings[i].Pieces = pieces[len(pieces)-1 : len(pieces) : len(pieces)]
	}
}

// since returns the wait between two instants, at most the longest duration there is.
func since(now, at int64) time.Duration {
	const most = uint64(math.MaxInt64 / time.Millisecond)
	ms := uint64(at) - uint64(now) // the difference of two int64 fits
	if ms > most {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// sum adds up parts, and reports whether the sum fits 64 bits.
func sum(parts []weir.Part) (int64, bool) {
	var total int64
	for i := range parts {
		if parts[i].Units > math.MaxInt64-total {
			return 0, false
		}
		total += parts[i].Units
	}
	return total, true
}

// uncountable says that a sum does not fit: above every capacity, unless the limit does not deny.
func uncountable(t *weir.Take) error {
	e := &weir.Error{
		Code: weir.NeverSatisfiable, Field: "costs." + t.Limit.Name,
		Value:  strconv.FormatInt(t.Cost(), 10),
		Reason: "is more than can be counted",
	}
	if t.Limit.Shadow {
		e.Code = weir.Invalid
	}
	return e
}
