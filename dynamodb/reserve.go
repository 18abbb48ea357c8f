package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Reserve takes what a plan asks, or nothing. Bucket items with other limits than the plan are
// given those of the plan.
func (s *Store) Reserve(ctx context.Context, now time.Time, p *weir.Plan, out *weir.Outcome) error {
	r := &weir.Reservation{ID: p.ID, New: p.New, Fingerprint: p.Fingerprint, Keys: p.Keys}
	r.Resolve = func(_ context.Context, of weir.Subject, _ weir.ResolveMode) (*weir.Resolved, error) {
		for i := range p.Subjects {
			if at := &p.Subjects[i]; at.Subject == of {
				return &weir.Resolved{Level: at.Level, Limits: at.Limits, Parent: at.Parent}, nil
			}
		}
		return nil, client.Fault(weir.NotFound, "entity", of.Entity, "is not in the plan")
	}
	_, found, err := s.reserve(ctx, now, r, func(context.Context) (*weir.Plan, error) { return p, nil })
	if err == nil {
		*out = *found
	}
	return err
}

// ReserveLazily takes what a reservation asks, or nothing. The bucket items, one for each subject,
// are written at the same time; if one denies, what the others took is refunded with their next
// write, so that for a moment other processes may see the difference. It fails as
// [weir.Reservation.Plan] does.
func (s *Store) ReserveLazily(
	ctx context.Context, now time.Time, r *weir.Reservation,
) (*weir.Plan, *weir.Outcome, error) {
	return s.reserve(ctx, now, r, nil)
}

// reserve takes what a reservation asks. makePlan returns the plan that was made for it; nil if
// there is none.
func (s *Store) reserve(
	ctx context.Context, now time.Time, r *weir.Reservation, made func(context.Context) (*weir.Plan, error),
) (*weir.Plan, *weir.Outcome, error) {
	if err := s.running.Enter(); err != nil {
		return nil, nil, err
	}
	defer s.running.End()
	x := &resolution{store: s, ask: r.Resolve, makePlan: made, number: s.buckets.Calls.Add(1)}
	mine := *r
	mine.Resolve = x.resolve
	how := fromRead
	if made == nil {
		how, x.makePlan = fromCache, mine.Plan
	}
	for {
		op, err := s.plan(ctx, now, &mine, x, how)
		if err != nil {
			return nil, nil, err
		}
		out, again, err := s.execute(ctx, op)
		op.release()
		if err != nil || !again {
			return op.plan, out, err
		}
		switch how {
		case fromCache:
			how = fromRead
			if !op.unplanned {
				how = fromConsistentRead
			}
		case fromThirdRead:
			return op.plan, out, nil
		default:
			how++
		}
	}
}

// execute makes all charges. again is true if the reservation must be planned again.
func (s *Store) execute(
	ctx context.Context, op *reserveOp,
) (out *weir.Outcome, again bool, err error) {
	if op.deniedFromMemory() {
		return op.deniedOutcome(), false, nil
	}
	done := false
	if s.options.Transactional && !op.unplanned {
		if done, err = s.executeTransactional(ctx, op); err != nil {
			return nil, false, err
		}
	}
	if !done {
		s.executeParallel(ctx, op)
	}
	return s.finishReserve(ctx, op)
}

// executeParallel makes each charge on its own.
func (s *Store) executeParallel(ctx context.Context, op *reserveOp) {
	for _, ic := range op.charges {
		ic.shardTakes, ic.found = nil, bucketitem.Result{}
		ic.enqueue()
	}
	for i := 0; i < len(op.charges); i++ { // an unplanned reservation may learn of a parent meanwhile
		ic := op.charges[i]
		if ic.waiter == nil {
			ic.enqueue()
		}
		ic.await(ctx)
		if !op.unplanned || i > 0 || ic.found.Kind != bucketitem.Taken || ic.resolved != nil {
			continue
		}
		op.addItemParent(ctx, s, ic)
	}
}

// finishReserve answers the reservation, and refunds what was taken of one that is not admitted.
func (s *Store) finishReserve(
	ctx context.Context, op *reserveOp,
) (out *weir.Outcome, again bool, err error) {
	all := true
	for _, ic := range op.charges {
		switch ic.found.Kind {
		case bucketitem.Taken:
			continue
		case bucketitem.Failed:
			if err == nil || !isUnavailable(ic.found.Err) {
				err = ic.found.Err
			}
		case bucketitem.Stale, bucketitem.NoItem:
			again = true
		}
		all = false
	}
	if op.unplanned && err == nil {
		if all, err = op.confirmPlan(ctx); err == nil && !all {
			again = true
		}
	}
	if all && err == nil {
		return op.admittedOutcome(), false, nil
	}
	for _, ic := range op.charges {
		ic.compensate()
	}
	if err != nil {
		return nil, false, err
	}
	if again && op.unplanned {
		return nil, true, nil
	}
	if again {
		out := op.deniedOutcome()
		out.Contended = true
		return out, true, nil
	}
	out = op.deniedOutcome()
	op.rememberDenials() // what each limit has is known only now
	return out, false, nil
}
