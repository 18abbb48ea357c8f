package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
)

// ReserveUnplanned takes the costs of a request by the limits that the bucket items have: the item
// of the subject, and the item of the parent that the first one names. It writes both at the same
// time if it knows the parent; otherwise the parent's item follows. It takes nothing if the items
// do not exist, have too little, or are known to differ from the configuration.
func (s *Store) ReserveUnplanned(
	ctx context.Context, now time.Time, u *driver.Unplanned,
) (*driver.Plan, *driver.Outcome, error) {
	if err := s.running.Enter(); err != nil {
		return nil, nil, err
	}
	defer s.running.End()
	if s.leases != nil {
		s.leases.Register(ctx, u.ID)
	}
	a := &attempt{number: s.buckets.Calls.Add(1)}
	s.attempts.put(now, u.ID, now.Add(attemptMemory), a)
	op := s.unplanned(now, u, a.number)
	if op == nil {
		return nil, nil, nil
	}
	defer op.release()
	s.executeParallel(ctx, op)
	all, _, err := op.results()
	if !all {
		op.compensate()
		return nil, nil, err
	}
	op.planByItems()
	op.fillAdmitted()
	a.taken = op
	return op.plan, op.out, nil
}

// KeepUnplanned records the lease of a reservation that ReserveUnplanned has made.
func (s *Store) KeepUnplanned(
	ctx context.Context, _ time.Time, p *driver.Plan, out *driver.Outcome,
) error {
	s.running.Begin()
	defer s.running.End()
	a := s.attempts.remove(p.ID)
	if s.leases == nil || a == nil || a.taken == nil {
		return nil
	}
	op := a.taken
	op.plan, op.out = p, out
	op.retain(s)
	defer op.release()
	return s.keep(ctx, op)
}

// compensateUnplanned refunds what ReserveUnplanned took, with the next write of each item. It
// works on a closed store too. It reports false if the store does not remember the reservation.
func (s *Store) compensateUnplanned(id weir.LeaseID) bool {
	s.running.Begin()
	defer s.running.End()
	a := s.attempts.get(id)
	if a == nil {
		return false
	}
	if op := a.taken; op != nil {
		op.retain(s)
		op.compensate()
		op.release()
		a.taken = nil
	}
	return true
}

// unplanned returns the charges of a request by the limits that the items had last. For an item
// that is not known it charges all costs. It returns nil if the configuration must be read before
// anything is written: an item is known to differ from it, or this process has changed it.
func (s *Store) unplanned(now time.Time, u *driver.Unplanned, number uint64) *reserveOp {
	if s.options.NoSpeculation || s.options.Transactional || s.buckets.Gone.Load() {
		return nil
	}
	for _, units := range u.Costs {
		if units > maxUnits {
			return nil // the plan will return the error
		}
	}
	op := &reserveOp{now: now.UnixMilli(), at: now.Truncate(time.Millisecond), number: number, unplanned: u}
	child := op.chargeFor(s, u.Subject)
	known := op.addTakes(child)
	if parent := child.state.ItemParent(); parent != "" {
		known = op.addParent(s, child, parent) && known
	}
	stale := false
	named := make(map[string]bool)
	for _, ic := range op.charges {
		stale = stale || ic.state.ItemStale() || s.buckets.ConfigStale(ic.state.Subject)
		for k := range ic.takes {
			named[ic.takes[k].Name] = true
		}
	}
	if stale || known && len(named) < len(u.Costs) || len(named) == 0 {
		op.release()
		return nil
	}
	return op
}

// maxUnits is the largest cost whose milli-units fit an int64.
const maxUnits = 9_223_372_036_854_775

// addTakes adds to a charge the costs of the limits that its item has. If the item is not known, it
// adds all costs and reports false.
func (op *reserveOp) addTakes(ic *itemCharge) (known bool) {
	m := ic.state.Queue(0).LastImage()
	costs := op.unplanned.Costs
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		if m == nil || m.Limit(name) != nil {
			ic.takes = append(ic.takes, bucketitem.Take{Name: name, Milli: costs[name] * 1000})
		}
	}
	return m != nil
}

// addParent adds the charge on a parent, unless it is there. It reports whether the limits of the
// parent's item are known.
func (op *reserveOp) addParent(s *Store, child *itemCharge, parent string) (known bool) {
	before := len(op.charges)
	ic := op.chargeFor(s, weir.Subject{Entity: parent, Resource: child.state.Subject.Resource})
	if len(op.charges) == before {
		return true
	}
	return op.addTakes(ic)
}

// addItemParent adds the charge on the parent that the child's item names, after the child was
// charged.
func (op *reserveOp) addItemParent(s *Store, child *itemCharge) {
	if parent := child.state.ItemParent(); parent != "" {
		op.addParent(s, child, parent)
	}
}

// planByItems makes the plan of the takes, with the definitions that the items had, and its
// outcome.
func (op *reserveOp) planByItems() {
	u := op.unplanned
	p := &driver.Plan{
		ID: u.ID, New: u.New, Fingerprint: u.Fingerprint, Charges: 1, Keys: u.Keys,
		Lifetime: u.Lifetime, Memory: u.Memory, MemorySize: u.MemorySize,
	}
	for i, ic := range op.charges {
		j := driver.Judged{Subject: ic.state.Subject, Limits: ic.itemLimits()}
		if i == 0 && len(op.charges) > 1 {
			j.Parent = op.charges[1].state.Subject.Entity
		}
		for k := range ic.takes {
			a := &ic.takes[k]
			a.Holding = len(p.Takes)
			limit := &weir.Limit{Name: a.Name, Kind: weir.Bucket}
			if k < len(ic.found.Found) {
				found := &ic.found.Found[k]
				if l := bucketitem.LimitOf(&found.BucketLimit); found.Matches(&l) { // in whole units
					limit = &l
				}
			}
			p.Takes = append(p.Takes, &driver.Take{
				Subject: j.Subject, Limit: limit, Ceiling: limit.Capacity,
				Parts: []driver.Part{{Units: a.Milli / 1000}},
			})
		}
		p.Subjects = append(p.Subjects, j)
	}
	op.plan, op.out = p, p.Outcome()
	op.out.At = op.at
}

// itemLimits returns the limits that the item has.
func (ic *itemCharge) itemLimits() []weir.Limit {
	var limits []weir.Limit
	if m := ic.state.Queue(0).LastImage(); m != nil {
		for i := range m.Limits {
			if l := &m.Limits[i]; !l.Incomplete {
				limits = append(limits, bucketitem.LimitOf(&l.BucketLimit))
			}
		}
	}
	return limits
}
