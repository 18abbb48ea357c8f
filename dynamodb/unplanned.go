package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
)

// canReserveUnplanned reports whether a reservation may be written before its configuration has
// been read, because the engine has none that is fresh. The configuration comes first if the
// request brings limits, if it has several charges, which may meet on one limit, or no costs, so
// that only the configuration says what is charged, and if this process has changed the
// configuration itself.
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

// planFromItems plans an unplanned reservation by what the items said last, or by all that is
// asked if they are not known, and begins to read the configuration. It returns nil if the items
// are known not to have what applies, or if another caller is reading the configuration already.
// The reservation is written at once; its answer waits for the configuration, see
// [reserveOp.confirmPlan]. Only the caller that begins the read writes without a plan; those that
// come while it is in progress wait for it. So at most one reservation at a time in a process may
// have to be refunded to an item whose limits have changed.
func (s *Store) planFromItems(
	ctx context.Context, now time.Time, r *weir.Reservation, x *resolution,
) *reserveOp {
	op := &reserveOp{
		now: now.UnixMilli(), at: wholeMS(now), number: x.number, unplanned: true,
		resolution: x, requested: r.Charges,
		makePlan: r.Plan,
	}
	c := &r.Charges[0]
	child := op.chargeFor(s, weir.Subject{Entity: c.Entity, Resource: c.Resource})
	known := op.addTakes(child)
	parent := child.state.ItemParent()
	if child.resolved != nil {
		parent = child.resolved.Parent
	}
	if parent != "" {
		known = op.addParent(s, child, parent) && known
	}
	behind := false
	named := make(map[string]bool)
	for _, ic := range op.charges {
		behind = behind || ic.resolved == nil && ic.state.ItemStale() || s.buckets.ConfigStale(ic.state.Subject)
		for k := range ic.takes {
			a := &ic.takes[k]
			named[a.Name] = true
			// What can never be satisfied is an error, and the plan says which.
			behind = behind || a.Limit != nil && a.Milli/1000 > a.Limit.Capacity
		}
	}
	if behind || known && len(named) < len(c.Costs) || len(named) == 0 {
		op.release()
		return nil
	}
	for _, ic := range op.charges {
		if ic.resolved != nil {
			continue
		}
		began := false
		if ic.configRead, began = ic.state.StartRead(ctx, x.ask); !began {
			op.release()
			return nil
		}
	}
	return op
}

// addTakes adds the costs to a charge: those of the limits that apply to it or, if the
// configuration is not at hand, that its item has. If the item is not known it adds all of them
// and reports false.
func (op *reserveOp) addTakes(ic *itemCharge) (known bool) {
	if f := op.resolution.of(ic.state.Subject); f != nil {
		ic.resolved = f.resolved
	}
	m := ic.state.Queue(0).LastImage()
	costs := op.requested[0].Costs
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		a := bucketitem.Take{Name: name, Milli: costs[name] * 1000}
		if ic.resolved != nil {
			a.Limit = (&bucketitem.Config{Limits: ic.resolved.Limits}).Limit(name)
			if a.Limit == nil {
				continue
			}
		} else if m != nil && m.Limit(name) == nil {
			continue
		}
		ic.takes = append(ic.takes, a)
	}
	return m != nil || ic.resolved != nil
}

// maxUnits is the most that a bucket can be asked for.
const maxUnits = 9_223_372_036_854_775

// addParent adds the charge on a parent. It reports whether what is charged there is known.
func (op *reserveOp) addParent(s *Store, child *itemCharge, parent string) (known bool) {
	if ic := op.parentCharge(s, child, parent); ic != nil {
		return op.addTakes(ic)
	}
	return true // it is on its way
}

// parentCharge returns the new charge on a parent; nil if there is one already.
func (op *reserveOp) parentCharge(s *Store, child *itemCharge, parent string) *itemCharge {
	before := len(op.charges)
	ic := op.chargeFor(s, weir.Subject{Entity: parent, Resource: child.state.Subject.Resource})
	if len(op.charges) == before {
		return nil
	}
	return ic
}

// addItemParent adds the charge on the parent that the child's item names, after the child has
// been charged. If another caller is reading the parent's configuration already, it waits for
// that.
func (op *reserveOp) addItemParent(ctx context.Context, s *Store, child *itemCharge) {
	parent := child.state.ItemParent()
	if parent == "" {
		return
	}
	ic := op.parentCharge(s, child, parent)
	if ic == nil {
		return
	}
	if f, err := op.resolution.resolve(ctx, ic.state.Subject, weir.Cached); f == nil && err == nil {
		began := false
		if ic.configRead, began = ic.state.StartRead(ctx, op.resolution.ask); !began {
			resolved, err := ic.configRead.Wait(ctx)
			if err != nil {
				ic.found = bucketitem.Result{Kind: bucketitem.Failed, Err: err}
				return
			}
			op.resolution.keep(found{ic.state.Subject, resolved, ic.configRead.Changes})
		}
	}
	op.addTakes(ic)
}

// confirmPlan waits for the configuration of an unplanned reservation, and plans by it. It reports
// whether exactly what the plan takes was taken, under the plan's definitions; then the
// reservation has the plan's outcome.
func (op *reserveOp) confirmPlan(ctx context.Context) (bool, error) {
	for _, ic := range op.charges {
		if ic.configRead == nil {
			continue
		}
		resolved, err := ic.configRead.Wait(ctx)
		if err != nil {
			return false, err
		}
		op.resolution.keep(found{ic.state.Subject, resolved, ic.configRead.Changes})
	}
	made, err := op.makePlan(ctx)
	if err != nil {
		return false, err
	}
	if !op.matchesPlan(made) {
		return false, nil
	}
	op.plan, op.out = made, made.Outcome()
	op.out.At = op.at
	for _, ic := range op.charges {
		f := op.resolution.of(ic.state.Subject)
		ic.resolved = f.resolved
		ic.state.MarkVerified(f.changes, f.resolved)
	}
	return true, nil
}

// matchesPlan reports whether a plan takes what was taken. It gives each take its place in the
// plan.
func (op *reserveOp) matchesPlan(plan *weir.Plan) bool {
	asks := 0
	for _, ic := range op.charges {
		asks += len(ic.takes)
		if ic.found.Kind != bucketitem.Taken {
			return false
		}
	}
	if asks != len(plan.Takes) {
		return false
	}
	for i := range plan.Takes {
		t := &plan.Takes[i]
		a := op.takenFor(t)
		if a == nil || a.Milli != t.Cost()*1000 {
			return false
		}
		a.Holding, a.Limit = i, t.Limit
	}
	return true
}

// takenFor returns what was taken of a limit under the definition that a plan has; nil if nothing
// was.
func (op *reserveOp) takenFor(t *weir.Take) *bucketitem.Take {
	for _, ic := range op.charges {
		if ic.state.Subject != t.Subject {
			continue
		}
		for k := range ic.takes {
			a := &ic.takes[k]
			if a.Name == t.Limit.Name && k < len(ic.found.Found) && ic.found.Found[k].Matches(t.Limit) {
				return a
			}
		}
	}
	return nil
}
