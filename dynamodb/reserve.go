package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
)

// itemCharge is what one reservation has to do on one (entity, resource).
type itemCharge struct {
	state      *bucketitem.Subject
	takes      []bucketitem.Take
	resolved   *weir.Resolved         // nil where it is not at hand
	configRead *bucketitem.ConfigRead // under way for a blind journey; nil where the configuration is at hand
	waiter     *bucketitem.Waiter
	shard      int
	// shardTakes are where it was taken, once it was.
	shardTakes []shardTake
	found      bucketitem.Result
}

// shardTake is what an errand took from one shard.
type shardTake struct {
	shard int
	asks  []bucketitem.Take
	// found are the limits asked, as the shard had them before, in the order of the asks.
	found []bucketitem.LimitImage
}

// Reserve takes what a plan asks, or nothing. If bucket items have other limits than the plan, they are
// given those of the plan.
func (s *Store) Reserve(ctx context.Context, now time.Time, p *weir.Plan, out *weir.Outcome) error {
	r := &weir.Reservation{ID: p.ID, New: p.New, Fingerprint: p.Fingerprint, Keys: p.Keys}
	r.Resolve = func(_ context.Context, of weir.Subject, _ weir.ResolveMode) (*weir.Resolved, error) {
		for i := range p.Subjects {
			if j := &p.Subjects[i]; j.Subject == of {
				return &weir.Resolved{Level: j.Level, Limits: j.Limits, Parent: j.Parent}, nil
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

// ReserveLazily takes what a reservation asks, or nothing. Bucket items are written at once, one for each
// (entity, resource); where one of them denies, the others get back what was taken with their next
// write, so that for a moment others may see the difference. It fails as [weir.Reservation.Plan]
// does.
func (s *Store) ReserveLazily(
	ctx context.Context, now time.Time, r *weir.Reservation,
) (*weir.Plan, *weir.Outcome, error) {
	return s.reserve(ctx, now, r, nil)
}

// reserve is ReserveLazily, with a plan that has been made if there is one.
func (s *Store) reserve(
	ctx context.Context, now time.Time, r *weir.Reservation, made func(context.Context) (*weir.Plan, error),
) (*weir.Plan, *weir.Outcome, error) {
	if err := s.running.Enter(); err != nil {
		return nil, nil, err
	}
	defer s.running.End()
	number := s.buckets.Calls.Add(1)
	x := &resolution{store: s, ask: r.Resolve, plan: made}
	mine := *r
	mine.Resolve = x.resolve
	how := fromRead
	if made == nil {
		how, x.plan = fromCache, mine.Plan
	}
	for {
		j, err := s.plan(ctx, now, &mine, x, how)
		if err != nil {
			return nil, nil, err
		}
		j.number = number
		out, again, err := s.execute(ctx, j)
		j.release()
		if err != nil || !again {
			return j.made, out, err
		}
		switch how {
		case fromCache:
			how = fromRead
			if !j.unplanned {
				how = fromConsistentRead
			}
		case fromThirdRead:
			return j.made, out, nil
		default:
			how++
		}
	}
}

// planSource says how much a plan may rest on what is known.
type planSource int

const (
	// fromCache writes before the configuration has been read where it is not at hand.
	fromCache planSource = iota
	// fromRead goes by the configuration as the limiter has it, or reads it first.
	fromRead
	// fromConsistentRead reads it again, because what the limiter had was out of date.
	fromConsistentRead
	fromSecondRead
	// fromThirdRead is the last: who changes the configuration that often has to wait.
	fromThirdRead
)

// reserveOp is a reservation with all its errands.
type reserveOp struct {
	now int64
	at  time.Time
	// number is that of the reservation, however often it is planned.
	number      uint64
	itemCharges []*itemCharge
	made        *weir.Plan
	out         *weir.Outcome
	// unplanned is true where the configuration was not at hand. Until it has been confirmed the
	// journey has no outcome.
	unplanned  bool
	resolution *resolution
	// charges are the request's, and plan is its plan, which resolves by the resolution; both for a
	// blind journey.
	charges []weir.Charge
	plan    func(context.Context) (*weir.Plan, error)
}

func (j *reserveOp) release() {
	for _, e := range j.itemCharges {
		e.state.Release()
	}
}

// plan finds out what to do where: by the configuration if it is at hand or must be, otherwise by
// what the items themselves will say.
func (s *Store) plan(
	ctx context.Context, now time.Time, r *weir.Reservation, x *resolution, how planSource,
) (*reserveOp, error) {
	if how == fromCache && s.canReserveUnplanned(ctx, r) {
		if j := s.planFromItems(ctx, now, r, x); j != nil {
			return j, nil
		}
	}
	for _, c := range r.Charges {
		of := weir.Subject{Entity: c.Entity, Resource: c.Resource}
		if how < fromConsistentRead && !s.engineStale(ctx, r.Resolve, of) {
			continue
		}
		if err := s.rereadConfig(ctx, r.Resolve, of); err != nil {
			return nil, err
		}
	}
	made, err := x.plan(ctx)
	if err != nil {
		return nil, err
	}
	j := &reserveOp{now: now.UnixMilli(), at: wholeMS(now), made: made, out: made.Outcome(), resolution: x}
	j.out.At = j.at
	for i := range made.Takes {
		t := &made.Takes[i]
		milli, err := milliOf(t)
		if err != nil {
			j.release()
			return nil, err
		}
		e := j.chargeFor(s, t.Subject)
		e.takes = append(e.takes, bucketitem.Take{
			Name: t.Limit.Name, Milli: milli, BelowCapacity: (t.Limit.Capacity - t.Ceiling) * 1000,
			Limit: t.Limit, Holding: i,
		})
	}
	for _, e := range j.itemCharges {
		f := x.of(e.state.Subject)
		if f == nil { // of a plan that was made before
			resolved, err := r.Resolve(ctx, e.state.Subject, weir.Usual)
			if err != nil {
				j.release()
				return nil, err
			}
			x.keep(found{e.state.Subject, resolved, 0})
			f = x.of(e.state.Subject)
		}
		e.resolved = f.resolved
		if f.resolved.Level == "" { // limits that the request brought
			e.resolved = &weir.Resolved{
				Level: weir.LevelRequest, Limits: r.Brought, Parent: f.resolved.Parent,
			}
		}
		e.state.MarkVerified(f.changes, e.resolved)
	}
	return j, nil
}

// engineStale reports whether the limiter keeps a configuration that this process has changed: it may
// not have heard of that yet.
func (s *Store) engineStale(ctx context.Context, resolve weir.Resolver, of weir.Subject) bool {
	if !s.buckets.ConfigStale(of) {
		return false
	}
	old, err := resolve(ctx, of, weir.Cached)
	return err == nil && old != nil
}

// chargeFor is that of a subject.
func (j *reserveOp) chargeFor(s *Store, of weir.Subject) *itemCharge {
	for _, e := range j.itemCharges {
		if e.state.Subject == of {
			return e
		}
	}
	e := &itemCharge{state: s.buckets.Subject(of)}
	j.itemCharges = append(j.itemCharges, e)
	return e
}

// milliOf is a take's cost in milli-units.
func milliOf(t *weir.Take) (int64, error) {
	cost := t.Cost()
	if cost > t.Limit.Capacity {
		return 0, client.Fault(weir.NeverSatisfiable, "costs."+t.Limit.Name, "", "is more than can be counted")
	}
	return cost * 1000, nil
}

// rereadConfig has the limiter read a subject's configuration anew, and the store with it see every write.
func (s *Store) rereadConfig(ctx context.Context, resolve weir.Resolver, of weir.Subject) error {
	for range 2 { // the subject, and whom it cascades to
		r, err := resolve(config.WithConsistent(ctx), of, weir.Fresh)
		if err != nil {
			return err
		}
		if r.Parent == "" {
			return nil
		}
		of.Entity = r.Parent
	}
	return nil
}

// execute does all errands at once. again is true where the reservation must be planned anew.
func (s *Store) execute(ctx context.Context, j *reserveOp) (out *weir.Outcome, again bool, err error) {
	if j.deniedFromMemory() {
		return j.deniedOutcome(), false, nil
	}
	if s.options.Transactional && !j.unplanned {
		return s.executeTransactional(ctx, j)
	}
	return s.executeParallel(ctx, j)
}

// executeParallel does each errand on its own. Where one is denied, the others give back.
func (s *Store) executeParallel(ctx context.Context, j *reserveOp) (out *weir.Outcome, again bool, err error) {
	for _, e := range j.itemCharges {
		e.shardTakes, e.found = nil, bucketitem.Result{}
		j.enqueue(e)
	}
	for i := 0; i < len(j.itemCharges); i++ { // a blind journey may learn of a parent on the way
		e := j.itemCharges[i]
		if e.waiter == nil {
			j.enqueue(e)
		}
		j.await(ctx, e)
		if !j.unplanned || i > 0 || e.found.Kind != bucketitem.Taken || e.resolved != nil {
			continue
		}
		j.addItemParent(ctx, s, e)
	}
	return s.finishReserve(ctx, j)
}

// finishReserve answers, and gives back what was taken in vain.
func (s *Store) finishReserve(ctx context.Context, j *reserveOp) (out *weir.Outcome, again bool, err error) {
	all := true
	for _, e := range j.itemCharges {
		switch e.found.Kind {
		case bucketitem.Taken:
			continue
		case bucketitem.Failed:
			if err == nil || !isUnavailable(e.found.Err) {
				err = e.found.Err
			}
		case bucketitem.Stale, bucketitem.NoItem:
			again = true
		}
		all = false
	}
	if j.unplanned && err == nil {
		if all, err = j.confirmPlan(ctx); err == nil && !all {
			again = true
		}
	}
	if all && err == nil {
		return j.admitted(), false, nil
	}
	for _, e := range j.itemCharges {
		e.compensate(j.now)
	}
	if err != nil {
		return nil, false, err
	}
	if again && j.unplanned {
		return nil, true, nil
	}
	if again {
		out := j.deniedOutcome()
		out.Contended = true
		return out, true, nil
	}
	out = j.deniedOutcome()
	j.rememberDenials() // what each limit has is known only now
	return out, false, nil
}

// enqueue puts the errand in the line of a shard. One of a blind journey may have nothing to take.
func (j *reserveOp) enqueue(e *itemCharge) {
	if len(e.takes) == 0 {
		return
	}
	e.shard = e.state.PickShard()
	e.waiter = j.waiterFor(e)
	e.state.Queue(e.shard).EnqueueWaiter(e.waiter)
}

// await waits for the errand, and goes on to other shards where one has too little.
func (j *reserveOp) await(ctx context.Context, e *itemCharge) {
	if e.waiter == nil {
		return
	}
	e.found = e.waiter.Wait(ctx)
	if e.found.Kind == bucketitem.Taken {
		e.shardTakes = []shardTake{{e.shard, e.takes, e.found.Found}}
		return
	}
	if e.found.Kind == bucketitem.Denied && e.state.ShardCount() > 1 && !j.unplanned {
		j.tryOtherShards(ctx, e)
	}
}

// compensate returns what an errand took in vain, with the next write of each item.
func (e *itemCharge) compensate(now int64) {
	for _, d := range e.shardTakes {
		e.state.Queue(d.shard).Enqueue(bucketitem.Compensation(now, d.asks, d.found))
	}
	e.shardTakes = nil
}

// wholeMS cuts an instant to the millisecond.
func wholeMS(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).In(t.Location()) }

// waiterFor is that of an errand.
func (j *reserveOp) waiterFor(e *itemCharge) *bucketitem.Waiter { return j.waiterForPart(e, e.takes) }

// waiterForPart is one for a part of an errand.
func (j *reserveOp) waiterForPart(e *itemCharge, asks []bucketitem.Take) *bucketitem.Waiter {
	return &bucketitem.Waiter{
		Now: j.now, Number: j.number, Takes: asks, Resolved: e.resolved, Answer: make(chan bucketitem.Result, 1),
	}
}
