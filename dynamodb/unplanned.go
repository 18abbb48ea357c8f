package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
)

// A blind reservation writes at once by what the bucket items say, and reads the configuration at
// the same time. Its answer waits for both, see [journey.confirm]: if the items differ from what
// was read, what was taken is given back and the reservation is planned by the configuration.
//
// Only the caller that begins the read of an item's configuration writes blind. Those that come
// while it is under way wait for it and write by what it says, all together. So there is one
// reservation at a time in a process that may have to be given back to an item whose limits have
// changed.

// canReserveUnplanned reports whether a reservation may be written before its configuration has been read,
// because the limiter has none that is fresh. The configuration comes first if the request brings
// limits, if it has several charges, which may meet on one limit, or no costs, so that only the
// configuration says what is charged, and if this process has changed the configuration itself.
func (s *Store) canReserveUnplanned(ctx context.Context, r *weir.Reservation) bool {
	if len(r.Charges) != 1 || len(r.Brought) > 0 || len(r.Charges[0].Costs) == 0 ||
		s.options.NoSpeculation || s.options.Transactional || s.buckets.Gone.Load() {
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
		case err != nil || s.buckets.ConfigStale(of):
			return false
		case resolved == nil:
			return true
		case resolved.Parent == "" || resolved.Parent == of.Entity:
			return false // all is at hand
		}
		of.Entity = resolved.Parent
	}
}

// planFromItems plans by what the items said last, or by what is asked if they are not known, and
// begins to read the configuration. It returns nil if the items are known not to have what
// applies, or if another caller reads the configuration already.
func (s *Store) planFromItems(
	ctx context.Context, now time.Time, r *weir.Reservation, x *resolution,
) *reserveOp {
	j := &reserveOp{
		now: now.UnixMilli(), at: wholeMS(now), unplanned: true, resolution: x, charges: r.Charges,
		plan: r.Plan,
	}
	c := &r.Charges[0]
	child := j.chargeFor(s, weir.Subject{Entity: c.Entity, Resource: c.Resource})
	known := j.addTakes(child)
	parent := child.state.ItemParent()
	if child.resolved != nil {
		parent = child.resolved.Parent
	}
	if parent != "" {
		known = j.addParent(s, child, parent) && known
	}
	behind := false
	named := make(map[string]bool)
	for _, e := range j.itemCharges {
		behind = behind || e.resolved == nil && e.state.ItemStale() || s.buckets.ConfigStale(e.state.Subject)
		for k := range e.takes {
			a := &e.takes[k]
			named[a.Name] = true
			// What can never be satisfied is an error, and the plan says which.
			behind = behind || a.Limit != nil && a.Milli/1000 > a.Limit.Capacity
		}
	}
	if behind || known && len(named) < len(c.Costs) || len(named) == 0 {
		j.release()
		return nil
	}
	for _, e := range j.itemCharges {
		if e.resolved != nil {
			continue
		}
		began := false
		if e.configRead, began = e.state.StartRead(ctx, x.ask); !began {
			j.release()
			return nil
		}
	}
	return j
}

// addTakes adds the costs to an errand: those of the limits that apply to it or, if the configuration is
// not at hand, that its item has. It adds all of them, and reports false, if the item is not known.
func (j *reserveOp) addTakes(e *itemCharge) (known bool) {
	if f := j.resolution.of(e.state.Subject); f != nil {
		e.resolved = f.resolved
	}
	m := e.state.Queue(0).LastImage()
	costs := j.charges[0].Costs
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		a := bucketitem.Take{Name: name, Milli: costs[name] * 1000}
		if e.resolved != nil {
			a.Limit = (&bucketitem.Config{Limits: e.resolved.Limits}).Limit(name)
			if a.Limit == nil {
				continue
			}
		} else if m != nil && m.Limit(name) == nil {
			continue
		}
		e.takes = append(e.takes, a)
	}
	return m != nil || e.resolved != nil
}

// maxUnits is the most that a bucket can be asked for.
const maxUnits = 9_223_372_036_854_775

// addParent adds the errand of a parent. It reports whether what is charged there is known.
func (j *reserveOp) addParent(s *Store, child *itemCharge, parent string) (known bool) {
	if e := j.parentCharge(s, child, parent); e != nil {
		return j.addTakes(e)
	}
	return true // it is on its way
}

// parentCharge adds an errand of a parent that nothing is asked of yet; nil if it is there.
func (j *reserveOp) parentCharge(s *Store, child *itemCharge, parent string) *itemCharge {
	before := len(j.itemCharges)
	e := j.chargeFor(s, weir.Subject{Entity: parent, Resource: child.state.Subject.Resource})
	if len(j.itemCharges) == before {
		return nil
	}
	return e
}

// addItemParent adds the errand of the parent that the child's item tells, after the child has been
// charged. If another caller reads the parent's configuration already, it waits for that.
func (j *reserveOp) addItemParent(ctx context.Context, s *Store, child *itemCharge) {
	parent := child.state.ItemParent()
	if parent == "" {
		return
	}
	e := j.parentCharge(s, child, parent)
	if e == nil {
		return
	}
	if f, err := j.resolution.resolve(ctx, e.state.Subject, weir.Cached); f == nil && err == nil {
		began := false
		if e.configRead, began = e.state.StartRead(ctx, j.resolution.ask); !began {
			resolved, err := e.configRead.Wait(ctx)
			if err != nil {
				e.found = bucketitem.Result{Kind: bucketitem.Failed, Err: err}
				return
			}
			j.resolution.keep(found{e.state.Subject, resolved, e.configRead.Changes})
		}
	}
	j.addTakes(e)
}

// confirmPlan waits for the configuration that a blind journey was sent without, and plans by it. It
// reports whether all that the plan takes was taken, and nothing else, under the definitions that
// the plan has; then the journey has the plan's outcome.
func (j *reserveOp) confirmPlan(ctx context.Context) (bool, error) {
	for _, e := range j.itemCharges {
		if e.configRead == nil {
			continue
		}
		resolved, err := e.configRead.Wait(ctx)
		if err != nil {
			return false, err
		}
		j.resolution.keep(found{e.state.Subject, resolved, e.configRead.Changes})
	}
	made, err := j.plan(ctx)
	if err != nil {
		return false, err
	}
	if !j.matchesPlan(made) {
		return false, nil
	}
	j.made, j.out = made, made.Outcome()
	j.out.At = j.at
	for _, e := range j.itemCharges {
		f := j.resolution.of(e.state.Subject)
		e.resolved = f.resolved
		e.state.MarkVerified(f.changes, f.resolved)
	}
	return true, nil
}

// matchesPlan reports whether a plan takes what was taken. It gives each ask its place in the plan.
func (j *reserveOp) matchesPlan(plan *weir.Plan) bool {
	asks := 0
	for _, e := range j.itemCharges {
		asks += len(e.takes)
		if e.found.Kind != bucketitem.Taken {
			return false
		}
	}
	if asks != len(plan.Takes) {
		return false
	}
	for i := range plan.Takes {
		t := &plan.Takes[i]
		a := j.takenFor(t)
		if a == nil || a.Milli != t.Cost()*1000 {
			return false
		}
		a.Holding, a.Limit = i, t.Limit
	}
	return true
}

// takenFor returns the ask that has taken of a limit under the definition that a plan has; nil if
// there is none.
func (j *reserveOp) takenFor(t *weir.Take) *bucketitem.Take {
	for _, e := range j.itemCharges {
		if e.state.Subject != t.Subject {
			continue
		}
		for k := range e.takes {
			a := &e.takes[k]
			if a.Name == t.Limit.Name && k < len(e.found.Found) && e.found.Found[k].Matches(t.Limit) {
				return a
			}
		}
	}
	return nil
}

// resolution answers for one reservation which limits apply to a subject. It keeps what it has
// found, so that the whole reservation goes by one state of the configuration, and reads nothing
// twice even if the limiter has no cache. It belongs to the goroutine of the reservation.
type resolution struct {
	store *Store
	ask   weir.Resolver // the limiter's
	found []found
	// plan plans the reservation by the resolution.
	plan func(context.Context) (*weir.Plan, error)
}

// found is what applies to a subject.
type found struct {
	subject  weir.Subject
	resolved *weir.Resolved
	// changes is the number of this process's last change of the configuration when that was asked.
	changes uint64
}

// resolve is the [weir.Resolver] of the reservation.
func (x *resolution) resolve(
	ctx context.Context, of weir.Subject, mode weir.ResolveMode,
) (*weir.Resolved, error) {
	if mode != weir.Fresh {
		if f := x.of(of); f != nil {
			return f.resolved, nil
		}
	}
	changes := x.store.buckets.ConfigChanges.Latest()
	first := mode
	if mode == weir.Usual {
		first = weir.Cached
	}
	r, err := x.ask(ctx, of, first)
	if err == nil && r == nil && mode == weir.Usual {
		p := x.store.buckets.Subject(of)
		defer p.Release()
		reading, _ := p.StartRead(ctx, x.ask)
		changes = reading.Changes
		r, err = reading.Wait(ctx)
	}
	if err != nil || r == nil {
		return nil, err
	}
	x.keep(found{of, r, changes})
	return r, nil
}

// keep replaces what was found for a subject.
func (x *resolution) keep(f found) {
	if was := x.of(f.subject); was != nil {
		*was = f
		return
	}
	x.found = append(x.found, f)
}

// of returns what was found for a subject, or nil.
func (x *resolution) of(s weir.Subject) *found {
	for i := range x.found {
		if x.found[i].subject == s {
			return &x.found[i]
		}
	}
	return nil
}
