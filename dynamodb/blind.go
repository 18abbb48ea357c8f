package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// A blind reservation writes at once by what the bucket items say, and reads the configuration at
// the same time. Its answer waits for both, see [journey.confirm]: if the items differ from what
// was read, what was taken is given back and the reservation is planned by the configuration.
//
// Only the caller that begins the read of an item's configuration writes blind. Those that come
// while it is under way wait for it and write by what it says, all together. So there is one
// reservation at a time in a process that may have to be given back to an item whose limits have
// changed.

// mayBeBlind reports whether a reservation may be written before its configuration has been read,
// because the limiter has none that is fresh. The configuration comes first if the request brings
// limits, if it has several charges, which may meet on one limit, or no costs, so that only the
// configuration says what is charged, and if this process has changed the configuration itself.
func (s *Store) mayBeBlind(ctx context.Context, r *weir.Reservation) bool {
	if len(r.Charges) != 1 || len(r.Brought) > 0 || len(r.Charges[0].Costs) == 0 ||
		s.options.NoSpeculation || s.options.Transactional || s.gone.Load() {
		return false
	}
	for _, units := range r.Charges[0].Costs {
		if units > maxUnits {
			return false // an error, and the configuration says which
		}
	}
	of := weir.Subject{Entity: r.Charges[0].Entity, Resource: r.Charges[0].Resource}
	for { // the entity, then the parent that it cascades to
		resolved, err := r.Resolve(ctx, of, weir.Cached)
		switch {
		case err != nil || s.unread(of):
			return false
		case resolved == nil:
			return true
		case resolved.Parent == "" || resolved.Parent == of.Entity:
			return false // all is at hand
		}
		of.Entity = resolved.Parent
	}
}

// planBlind plans by what the items said last, or by what is asked if they are not known, and
// begins to read the configuration. It returns nil if the items are known not to have what
// applies, or if another caller reads the configuration already.
func (s *Store) planBlind(
	ctx context.Context, now time.Time, r *weir.Reservation, x *resolution,
) *journey {
	j := &journey{
		now: now.UnixMilli(), at: wholeMS(now), blind: true, resolution: x, charges: r.Charges,
		plan: r.Plan,
	}
	c := &r.Charges[0]
	child := j.errand(s, weir.Subject{Entity: c.Entity, Resource: c.Resource})
	known := j.ask(child)
	parent := child.spot.cascadesTo()
	if child.resolved != nil {
		parent = child.resolved.Parent
	}
	if parent != "" {
		known = j.follow(s, child, parent) && known
	}
	behind := false
	named := make(map[string]bool)
	for _, e := range j.errands {
		behind = behind || e.resolved == nil && e.spot.behind() || s.unread(e.spot.subject)
		for k := range e.asks {
			a := &e.asks[k]
			named[a.name] = true
			// What can never be satisfied is an error, and the plan says which.
			behind = behind || a.limit != nil && a.milli/1000 > a.limit.Capacity
		}
	}
	if behind || known && len(named) < len(c.Costs) || len(named) == 0 {
		j.release()
		return nil
	}
	for _, e := range j.errands {
		if e.resolved != nil {
			continue
		}
		began := false
		if e.reading, began = s.read(ctx, x.ask, e.spot); !began {
			j.release()
			return nil
		}
	}
	return j
}

// ask adds the costs to an errand: those of the limits that apply to it or, if the configuration is
// not at hand, that its item has. It adds all of them, and reports false, if the item is not known.
func (j *journey) ask(e *errand) (known bool) {
	if f := j.resolution.of(e.spot.subject); f != nil {
		e.resolved = f.resolved
	}
	m := e.spot.line(0).seen()
	costs := j.charges[0].Costs
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		a := ask{name: name, milli: costs[name] * 1000}
		if e.resolved != nil {
			a.limit = (&terms{limits: e.resolved.Limits}).limit(name)
			if a.limit == nil {
				continue
			}
		} else if m != nil && m.limit(name) == nil {
			continue
		}
		e.asks = append(e.asks, a)
	}
	return m != nil || e.resolved != nil
}

// maxUnits is the most that a bucket can be asked for.
const maxUnits = 9_223_372_036_854_775

// follow adds the errand of a parent. It reports whether what is charged there is known.
func (j *journey) follow(s *Store, child *errand, parent string) (known bool) {
	if e := j.above(s, child, parent); e != nil {
		return j.ask(e)
	}
	return true // it is on its way
}

// above adds an errand of a parent that nothing is asked of yet; nil if it is there.
func (j *journey) above(s *Store, child *errand, parent string) *errand {
	before := len(j.errands)
	e := j.errand(s, weir.Subject{Entity: parent, Resource: child.spot.subject.Resource})
	if len(j.errands) == before {
		return nil
	}
	return e
}

// followItem adds the errand of the parent that the child's item tells, after the child has been
// charged. If another caller reads the parent's configuration already, it waits for that.
func (j *journey) followItem(ctx context.Context, s *Store, child *errand) {
	parent := child.spot.cascadesTo()
	if parent == "" {
		return
	}
	e := j.above(s, child, parent)
	if e == nil {
		return
	}
	if f, err := j.resolution.resolve(ctx, e.spot.subject, weir.Cached); f == nil && err == nil {
		began := false
		if e.reading, began = s.read(ctx, j.resolution.ask, e.spot); !began {
			resolved, err := e.reading.wait(ctx)
			if err != nil {
				e.found = verdict{ruling: failed, err: err}
				return
			}
			j.resolution.keep(found{e.spot.subject, resolved, e.reading.changes})
		}
	}
	j.ask(e)
}

// confirm waits for the configuration that a blind journey was sent without, and plans by it. It
// reports whether all that the plan takes was taken, and nothing else, under the definitions that
// the plan has; then the journey has the plan's outcome.
func (j *journey) confirm(ctx context.Context) (bool, error) {
	for _, e := range j.errands {
		if e.reading == nil {
			continue
		}
		resolved, err := e.reading.wait(ctx)
		if err != nil {
			return false, err
		}
		j.resolution.keep(found{e.spot.subject, resolved, e.reading.changes})
	}
	made, err := j.plan(ctx)
	if err != nil {
		return false, err
	}
	if !j.agrees(made) {
		return false, nil
	}
	j.made, j.out = made, made.Outcome()
	j.out.At = j.at
	for _, e := range j.errands {
		f := j.resolution.of(e.spot.subject)
		e.resolved = f.resolved
		e.spot.verify(f.changes, f.resolved)
	}
	return true, nil
}

// agrees reports whether a plan takes what was taken. It gives each ask its place in the plan.
func (j *journey) agrees(plan *weir.Plan) bool {
	asks := 0
	for _, e := range j.errands {
		asks += len(e.asks)
		if e.found.ruling != taken {
			return false
		}
	}
	if asks != len(plan.Takes) {
		return false
	}
	for i := range plan.Takes {
		t := &plan.Takes[i]
		a := j.taken(t)
		if a == nil || a.milli != t.Cost()*1000 {
			return false
		}
		a.holding, a.limit = i, t.Limit
	}
	return true
}

// taken returns the ask that has taken of a limit under the definition that a plan has; nil if
// there is none.
func (j *journey) taken(t *weir.Take) *ask {
	for _, e := range j.errands {
		if e.spot.subject != t.Subject {
			continue
		}
		for k := range e.asks {
			a := &e.asks[k]
			if a.name == t.Limit.Name && k < len(e.found.found) && e.found.found[k].is(t.Limit) {
				return a
			}
		}
	}
	return nil
}
