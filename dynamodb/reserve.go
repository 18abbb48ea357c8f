package dynamodb

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
)

// errand is what one reservation has to do on one (entity, resource).
type errand struct {
	spot     *spot
	asks     []ask
	resolved *weir.Resolved // nil where it is not at hand
	reading  *reading       // under way for a blind journey; nil where the configuration is at hand
	member   *member
	shard    int
	// draws are where it was taken, once it was.
	draws []draw
	found verdict
}

// draw is what an errand took from one shard.
type draw struct {
	shard int
	asks  []ask
	// found are the limits asked, as the shard had them before, in the order of the asks.
	found []counter
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
		return nil, fault(weir.NotFound, "entity", of.Entity, "is not in the plan")
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
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.running.end()
	number := s.calls.Add(1)
	x := &resolution{store: s, ask: r.Resolve, plan: made}
	mine := *r
	mine.Resolve = x.resolve
	how := byRead
	if made == nil {
		how, x.plan = byKnown, mine.Plan
	}
	for {
		j, err := s.plan(ctx, now, &mine, x, how)
		if err != nil {
			return nil, nil, err
		}
		j.number = number
		out, again, err := s.carryOut(ctx, j)
		j.release()
		if err != nil || !again {
			return j.made, out, err
		}
		switch how {
		case byKnown:
			how = byRead
			if !j.blind {
				how = byAnew
			}
		case byAnewThrice:
			return j.made, out, nil
		default:
			how++
		}
	}
}

// planning says how much a plan may rest on what is known.
type planning int

const (
	// byKnown writes before the configuration has been read where it is not at hand.
	byKnown planning = iota
	// byRead goes by the configuration as the limiter has it, or reads it first.
	byRead
	// byAnew reads it again, because what the limiter had was out of date.
	byAnew
	byAnewTwice
	// byAnewThrice is the last: who changes the configuration that often has to wait.
	byAnewThrice
)

// journey is a reservation with all its errands.
type journey struct {
	now int64
	at  time.Time
	// number is that of the reservation, however often it is planned.
	number  uint64
	errands []*errand
	made    *weir.Plan
	out     *weir.Outcome
	// blind is true where the configuration was not at hand. Until it has been confirmed the
	// journey has no outcome.
	blind      bool
	resolution *resolution
	// charges are the request's, and plan is its plan, which resolves by the resolution; both for a
	// blind journey.
	charges []weir.Charge
	plan    func(context.Context) (*weir.Plan, error)
}

func (j *journey) release() {
	for _, e := range j.errands {
		e.spot.release()
	}
}

// plan finds out what to do where: by the configuration if it is at hand or must be, otherwise by
// what the items themselves will say.
func (s *Store) plan(
	ctx context.Context, now time.Time, r *weir.Reservation, x *resolution, how planning,
) (*journey, error) {
	if how == byKnown && s.mayBeBlind(ctx, r) {
		if j := s.planBlind(ctx, now, r, x); j != nil {
			return j, nil
		}
	}
	for _, c := range r.Charges {
		of := weir.Subject{Entity: c.Entity, Resource: c.Resource}
		if how < byAnew && !s.outdated(ctx, r.Resolve, of) {
			continue
		}
		if err := s.renew(ctx, r.Resolve, of); err != nil {
			return nil, err
		}
	}
	made, err := x.plan(ctx)
	if err != nil {
		return nil, err
	}
	j := &journey{now: now.UnixMilli(), at: wholeMS(now), made: made, out: made.Outcome(), resolution: x}
	j.out.At = j.at
	for i := range made.Takes {
		t := &made.Takes[i]
		milli, err := milliOf(t)
		if err != nil {
			j.release()
			return nil, err
		}
		e := j.errand(s, t.Subject)
		e.asks = append(e.asks, ask{
			name: t.Limit.Name, milli: milli, lowered: (t.Limit.Capacity - t.Ceiling) * 1000,
			limit: t.Limit, holding: i,
		})
	}
	for _, e := range j.errands {
		f := x.of(e.spot.subject)
		if f == nil { // of a plan that was made before
			resolved, err := r.Resolve(ctx, e.spot.subject, weir.Usual)
			if err != nil {
				j.release()
				return nil, err
			}
			x.keep(found{e.spot.subject, resolved, 0})
			f = x.of(e.spot.subject)
		}
		e.resolved = f.resolved
		if f.resolved.Level == "" { // limits that the request brought
			e.resolved = &weir.Resolved{
				Level: weir.LevelRequest, Limits: r.Brought, Parent: f.resolved.Parent,
			}
		}
		e.spot.verify(f.changes, e.resolved)
	}
	return j, nil
}

// outdated reports whether the limiter keeps a configuration that this process has changed: it may
// not have heard of that yet.
func (s *Store) outdated(ctx context.Context, resolve weir.Resolver, of weir.Subject) bool {
	if !s.unread(of) {
		return false
	}
	old, err := resolve(ctx, of, weir.Cached)
	return err == nil && old != nil
}

// errand is that of a subject.
func (j *journey) errand(s *Store, of weir.Subject) *errand {
	for _, e := range j.errands {
		if e.spot.subject == of {
			return e
		}
	}
	e := &errand{spot: s.spots.get(s, of)}
	j.errands = append(j.errands, e)
	return e
}

// milliOf is a take's cost in milli-units.
func milliOf(t *weir.Take) (int64, error) {
	cost := t.Cost()
	if cost > t.Limit.Capacity {
		return 0, fault(weir.NeverSatisfiable, "costs."+t.Limit.Name, "", "is more than can be counted")
	}
	return cost * 1000, nil
}

// renew has the limiter read a subject's configuration anew, and the store with it see every write.
func (s *Store) renew(ctx context.Context, resolve weir.Resolver, of weir.Subject) error {
	for range 2 { // the subject, and whom it cascades to
		r, err := resolve(withConsistent(ctx), of, weir.Fresh)
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

// carryOut does all errands at once. again is true where the reservation must be planned anew.
func (s *Store) carryOut(ctx context.Context, j *journey) (out *weir.Outcome, again bool, err error) {
	if j.refusedBefore() {
		return j.deniedOutcome(), false, nil
	}
	if s.options.Transactional && !j.blind {
		return s.carryOutTogether(ctx, j)
	}
	return s.carryOutApart(ctx, j)
}

// carryOutApart does each errand on its own. Where one is denied, the others give back.
func (s *Store) carryOutApart(ctx context.Context, j *journey) (out *weir.Outcome, again bool, err error) {
	for _, e := range j.errands {
		e.draws, e.found = nil, verdict{}
		j.begin(e)
	}
	for i := 0; i < len(j.errands); i++ { // a blind journey may learn of a parent on the way
		e := j.errands[i]
		if e.member == nil {
			j.begin(e)
		}
		j.end(ctx, e)
		if !j.blind || i > 0 || e.found.ruling != taken || e.resolved != nil {
			continue
		}
		j.followItem(ctx, s, e)
	}
	return s.concludeJourney(ctx, j)
}

// concludeJourney answers, and gives back what was taken in vain.
func (s *Store) concludeJourney(ctx context.Context, j *journey) (out *weir.Outcome, again bool, err error) {
	all := true
	for _, e := range j.errands {
		switch e.found.ruling {
		case taken:
			continue
		case failed:
			if err == nil || !isUnavailable(e.found.err) {
				err = e.found.err
			}
		case stale, missing:
			again = true
		}
		all = false
	}
	if j.blind && err == nil {
		if all, err = j.confirm(ctx); err == nil && !all {
			again = true
		}
	}
	if all && err == nil {
		return j.admittedOutcome(), false, nil
	}
	for _, e := range j.errands {
		e.giveBack(j.now)
	}
	if err != nil {
		return nil, false, err
	}
	if again && j.blind {
		return nil, true, nil
	}
	if again {
		out := j.deniedOutcome()
		out.Contended = true
		return out, true, nil
	}
	out = j.deniedOutcome()
	j.remember() // what each limit has is known only now
	return out, false, nil
}

// begin puts the errand in the line of a shard. One of a blind journey may have nothing to take.
func (j *journey) begin(e *errand) {
	if len(e.asks) == 0 {
		return
	}
	e.shard = e.spot.draw()
	e.member = j.member(e)
	e.spot.line(e.shard).submit(e.member, nil)
}

// end waits for the errand, and goes on to other shards where one has too little.
func (j *journey) end(ctx context.Context, e *errand) {
	if e.member == nil {
		return
	}
	e.found = e.member.wait(ctx)
	if e.found.ruling == taken {
		e.draws = []draw{{e.shard, e.asks, e.found.found}}
		return
	}
	if e.found.ruling == denied && e.spot.count() > 1 && !j.blind {
		j.elsewhere(ctx, e)
	}
}

// wait waits for the answer, or for the caller to go.
func (m *member) wait(ctx context.Context) verdict {
	select {
	case v := <-m.answer:
		return v
	case <-ctx.Done():
	}
	if m.leave() {
		return verdict{ruling: failed, err: late(ctx)}
	}
	return <-m.answer
}

// giveBack returns what an errand took in vain, with the next write of each item.
func (e *errand) giveBack(now int64) {
	for _, d := range e.draws {
		e.spot.line(d.shard).submit(nil, compensation(now, d.asks, d.found))
	}
	e.draws = nil
}

// wholeMS cuts an instant to the millisecond.
func wholeMS(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).In(t.Location()) }
