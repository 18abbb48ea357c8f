package limiter

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// unplannedTake is a reservation that a store made without a plan. The zero value means that it
// took nothing.
type unplannedTake struct {
	asked bool // whether the store was asked, with any answer
	plan  *driver.Plan
	out   *driver.Outcome
}

// askUnplanned is like askStore, for a store that can reserve without a plan. The store reserves by
// its own records while the limiter reads the configuration. If the plan made from the
// configuration asks exactly what the store took, the two round trips have become one. Otherwise
// what was taken is given back, and the reservation continues with the plan.
//
// Only the call that begins the read of the configuration does this; the calls that come while the
// read is in progress wait for it. So at most one reservation of a subject at a time may have to be
// given back, however many arrive when the cache has expired.
func (l *Limiter) askUnplanned(
	ctx context.Context, now time.Time, e *leaseEntry, c *scratch,
) (*driver.Plan, *driver.Outcome, error) {
	taken, err := l.reserveUnplanned(ctx, now, c)
	if err == nil && taken.out != nil && taken.out.Replay {
		return taken.plan, taken.out, nil
	}
	var p *driver.Plan
	if err == nil {
		if p, err = c.plan(ctx, e, usual); err != nil {
			err = l.planError(err)
		}
	}
	if err != nil {
		l.giveBack(ctx, now, &taken)
		return nil, nil, err
	}
	if taken.matches(p) {
		out := c.planOutcome(e)
		taken.fill(p, out)
		return p, out, l.unplanned.KeepUnplanned(ctx, now, p, out)
	}
	l.giveBack(ctx, now, &taken)
	p.Again = taken.asked
	return l.reservePlanned(ctx, now, e, c, p)
}

// reserveUnplanned asks the store to reserve without a plan, unless all resolutions are cached, and
// waits for the configuration. It leaves the resolutions in c.known for the plan. Even if it
// returns an error, something may have been taken.
func (l *Limiter) reserveUnplanned(
	ctx context.Context, now time.Time, c *scratch,
) (taken unplannedTake, err error) {
	r := &c.reservation
	if len(r.charges) != 1 || len(r.charges[0].Costs) == 0 || len(r.brought) > 0 || !l.sharesReads() {
		return taken, nil
	}
	own := weir.Subject{Entity: r.charges[0].Entity, Resource: r.charges[0].Resource}
	of, ancestors := own, r.depth
	for ; ; ancestors-- {
		known, err := l.resolveSubject(ctx, of, cached)
		if err != nil {
			return taken, err
		}
		if known == nil {
			break
		}
		c.known = append(c.known, memoEntry{of, known})
		if known.parent == "" || ancestors == 0 {
			return taken, nil // all resolutions are cached
		}
		of.Entity = known.parent
	}
	read, began := l.beginRead(ctx, of, ancestors)
	if began {
		if parent := l.cache.lastParent(of); parent != "" && ancestors > 0 {
			l.beginParent(ctx, read, parent, ancestors-1) // the parent has most likely not changed
		}
		taken.asked = true
		taken.plan, taken.out, err = l.unplanned.ReserveUnplanned(ctx, now, &driver.Unplanned{
			ID: r.id, New: r.isNew, Fingerprint: r.fingerprint, Keys: r.keys, Subject: own,
			Costs: r.charges[0].Costs, Lifetime: r.lifetime, Memory: r.memory, MemorySize: r.memorySize,
		})
		if err == nil && taken.plan != nil {
			err = checkTaken(taken.out, len(taken.plan.Takes))
		}
		if err != nil {
			taken.plan = nil
			return taken, err
		}
		if parent := taken.parentOf(of); parent != "" && ancestors > 0 {
			l.beginParent(ctx, read, parent, ancestors-1)
		}
	}
	for read != nil {
		resolved, err := read.wait(ctx)
		if err != nil {
			return taken, err
		}
		c.known = append(c.known, memoEntry{read.subject, resolved})
		if len(c.known) > r.depth+1 { // a cycle, which the plan refuses
			break
		}
		read = l.parentOf(read)
	}
	return taken, nil
}

// parentOf returns the parent of a subject in the plan by which the store took.
func (t *unplannedTake) parentOf(of weir.Subject) string {
	if t.plan == nil {
		return ""
	}
	for i := range t.plan.Subjects {
		if t.plan.Subjects[i].Subject == of {
			return t.plan.Subjects[i].Parent
		}
	}
	return ""
}

// matches reports whether the store took exactly what the plan asks, under the same definitions.
func (t *unplannedTake) matches(p *driver.Plan) bool {
	if t.plan == nil || t.out.Denied || len(t.plan.Takes) != len(p.Takes) {
		return false
	}
	for i := range p.Takes {
		want := p.Takes[i]
		j := t.find(want)
		if j < 0 || !t.plan.Takes[j].Limit.Same(*want.Limit) || t.plan.Takes[j].Cost() != want.Cost() {
			return false
		}
	}
	return true
}

// find returns the index of the take in the store's plan that is for the same limit, or -1.
func (t *unplannedTake) find(want *driver.Take) int {
	for j := range t.plan.Takes {
		if has := t.plan.Takes[j]; has.Subject == want.Subject && has.Limit.Name == want.Limit.Name {
			return j
		}
	}
	return -1
}

// fill fills in the outcome of p from the store's outcome of its own plan, which p matches. Takes
// may be in another order. The level and ceiling are those of p, because the store's records may
// not have them.
func (t *unplannedTake) fill(p *driver.Plan, out *driver.Outcome) {
	limits, taken := out.Limits, out.Taken
	*out = *t.out
	out.Limits, out.Taken = limits, taken
	for i := range p.Takes {
		j := t.find(p.Takes[i])
		limits[i], taken[i] = t.out.Limits[j], t.out.Taken[j]
		limits[i].Level, limits[i].Capacity = p.Takes[i].Level, p.Takes[i].Ceiling
	}
}

// giveBack cancels what the store took, even if the caller has left. It is called once and ignores
// an error: after a lost answer the refund may have been made, and a second one could return the
// units twice. The store counts such refunds.
func (l *Limiter) giveBack(ctx context.Context, now time.Time, t *unplannedTake) {
	if t.plan == nil || t.out.Denied || t.out.Replay {
		return
	}
	p := t.plan
	u := &driver.Update{
		ID: p.ID, Verb: weir.VerbCancel, Unplanned: true, Fingerprint: p.Fingerprint, Lifetime: p.Lifetime,
		Memory: p.Memory, MemorySize: p.MemorySize,
	}
	holdings := p.Holdings(t.out)
	for i := range holdings {
		h := &holdings[i]
		c := driver.Change{Holding: h, Limit: h.Limit, From: h.Cost(), Parts: make([]driver.Part, len(h.Parts))}
		for j := range c.Parts {
			c.Parts[j].Charge = h.Parts[j].Charge
		}
		u.Changes = append(u.Changes, c)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.options.StoreTimeout)
	defer cancel()
	_ = l.store.Update(ctx, now, u, u.Outcome())
}
