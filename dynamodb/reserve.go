package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// Reserve takes all costs of a plan, or none. It writes the bucket items, one for each subject, at
// the same time. If one denies, the units taken from the others are refunded with their next write;
// until then other processes see them as taken. The plan is stale if this process has changed the
// configuration after it was read for the plan, or if an item shows that another process has.
func (s *Store) Reserve(ctx context.Context, now time.Time, p *driver.Plan, out *driver.Outcome) error {
	if err := s.running.Enter(); err != nil {
		return err
	}
	defer s.running.End()
	if s.leases != nil {
		s.leases.Register(ctx, p.ID)
	}
	op, err := s.planned(now, p, out)
	if err != nil {
		return err
	}
	defer op.release()
	stale := s.outOfDate(p)
	if !stale {
		op.markVerified()
		if stale, err = s.execute(ctx, op); err != nil {
			return err
		}
	}
	if !stale {
		return s.keep(ctx, op)
	}
	op.fillDenied()
	op.out.Contended = true
	s.attempts.put(now, p.ID, now.Add(attemptMemory), &attempt{number: op.number})
	return &driver.StaleError{}
}

// keep ends a reservation that was admitted or denied. If the store keeps leases in the table, it
// records the lease.
func (s *Store) keep(ctx context.Context, op *reserveOp) error {
	switch {
	case s.leases == nil, op.recorded:
		return nil
	case op.out.Denied:
		return s.answerDenied(ctx, op)
	}
	return s.record(ctx, op)
}

// attempt is the record of one attempt of a reservation, for the next attempt of the same call.
type attempt struct {
	number uint64 // the number of the reservation
	// taken is the reservation that was made without a plan; nil after it was refunded.
	taken *reserveOp
}

// attemptMemory is the time for which an attempt is kept, longer than any call.
const attemptMemory = time.Minute

// planned returns the charges of a plan.
func (s *Store) planned(now time.Time, p *driver.Plan, out *driver.Outcome) (*reserveOp, error) {
	op := &reserveOp{now: now.UnixMilli(), at: now.Truncate(time.Millisecond), plan: p, out: out}
	if p.Again {
		if a := s.attempts.remove(p.ID); a != nil {
			op.number = a.number
		}
	}
	if op.number == 0 {
		op.number = s.buckets.Calls.Add(1)
	}
	out.At = op.at
	for i := range p.Takes {
		t := p.Takes[i]
		milli, err := milliOf(t)
		if err != nil {
			op.release()
			return nil, err
		}
		ic := op.chargeFor(s, t.Subject)
		ic.takes = append(ic.takes, bucketitem.Take{
			Name: t.Limit.Name, Milli: milli, BelowCapacity: (t.Limit.Capacity - t.Ceiling) * 1000,
			Limit: t.Limit, Holding: i,
		})
	}
	return op, nil
}

// milliOf returns the cost of a take in milli-units.
func milliOf(t *driver.Take) (int64, error) {
	cost := t.Cost()
	if cost > t.Limit.Capacity {
		return 0, client.Fault(weir.NeverSatisfiable, "costs."+t.Limit.Name, "",
			"is more than a limit can count")
	}
	return cost * 1000, nil
}

// outOfDate reports whether this process has changed the configuration of one of the plan's
// subjects after it was read for the plan.
func (s *Store) outOfDate(p *driver.Plan) bool {
	for i := range p.Subjects {
		if s.buckets.ConfigChangedSince(p.Subjects[i].Subject, p.Subjects[i].Version) {
			return true
		}
	}
	return false
}

// markVerified notes the configuration of each subject by which the plan was made.
func (op *reserveOp) markVerified() {
	for _, ic := range op.charges {
		for i := range op.plan.Subjects {
			if j := &op.plan.Subjects[i]; j.Subject == ic.state.Subject {
				ic.config = bucketitem.NewConfig(j)
				ic.state.MarkVerified(j)
			}
		}
	}
}

// execute makes all charges of a plan, and fills in the outcome unless the plan is stale.
func (s *Store) execute(ctx context.Context, op *reserveOp) (stale bool, err error) {
	if op.deniedFromMemory() {
		op.fillDenied()
		return false, nil
	}
	done := false
	if s.options.Transactional {
		if done, err = s.executeTransactional(ctx, op); err != nil {
			return false, err
		}
		if op.slotTaken != nil {
			op.recorded = true
			return false, op.answerBySlot(op.slotTaken)
		}
	}
	if !done {
		s.recordEarly(op)
		s.executeParallel(ctx, op)
	}
	all, stale, err := op.results()
	if all {
		op.fillAdmitted()
		return false, nil
	}
	op.compensate()
	if withdrawn := s.withdrawEarly(ctx, op, stale && err == nil); withdrawn != nil {
		return false, withdrawn
	}
	if err != nil || stale {
		return stale && err == nil, err
	}
	op.fillDenied()
	op.rememberDenials() // after fillDenied, which computes the retry-after of each limit
	return false, nil
}

// executeParallel makes the charges independently of each other, at the same time.
func (s *Store) executeParallel(ctx context.Context, op *reserveOp) {
	for _, ic := range op.charges {
		ic.shardTakes, ic.found = nil, bucketitem.Result{}
		ic.enqueue()
	}
	for i := 0; i < len(op.charges); i++ { // addItemParent may add a charge during the loop
		ic := op.charges[i]
		if ic.waiter == nil {
			ic.enqueue()
		}
		ic.await(ctx)
		if op.unplanned != nil && i == 0 && ic.found.Kind == bucketitem.Taken {
			op.addItemParent(s, ic)
		}
	}
}

// results reports whether all charges were taken. If not, it reports whether the plan is stale, and
// returns the error of a charge that failed. An error that is not [weir.Unavailable] wins, because
// a repetition cannot help.
func (op *reserveOp) results() (all, stale bool, err error) {
	all = true
	for _, ic := range op.charges {
		switch ic.found.Kind {
		case bucketitem.Taken:
			continue
		case bucketitem.Failed:
			if err == nil || !isUnavailable(ic.found.Err) {
				err = ic.found.Err
			}
		case bucketitem.Stale, bucketitem.NoItem:
			stale = true
		}
		all = false
	}
	return all, stale, err
}

// compensate refunds the units taken by a reservation that is not admitted.
func (op *reserveOp) compensate() {
	for _, ic := range op.charges {
		ic.compensate()
	}
}
