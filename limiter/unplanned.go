package limiter

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// unplannedTake is what a store took without a plan. The zero value is nothing.
type unplannedTake struct {
	asked bool // the store was asked, whatever it answered
	plan  *driver.Plan
	out   *driver.Outcome
}

// askUnplanned is askStore for a store that can reserve without a plan. It does so at most once in
// a call, and only beside the read of the configuration that this call has begun: those who come
// meanwhile wait for the read. So no more than one reservation at a time on each subject may have
// to be given back because the store's records are not what is configured.
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
		return p, out, nil
	}
	l.giveBack(ctx, now, &taken)
	p.Again = taken.asked
	return l.reservePlanned(ctx, now, e, c, p)
}

// reserveUnplanned asks the store to take a reservation without a plan, if its configuration is not
// at hand, and waits for the configuration. What it resolves is known to the plan. With an error
// something may have been taken.
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
			return taken, nil // all is at hand
		}
		of.Entity = known.parent
	}
	read, began := l.beginRead(ctx, of, ancestors)
	if began {
		if parent := l.cache.lastParent(of); parent != "" && ancestors > 0 {
			l.beginParent(ctx, read, parent, ancestors-1) // most likely it still is
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

// parentOf returns the parent of a subject by the plan that the store took by.
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

// matches reports whether the store took exactly what a plan asks, by the same definitions.
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

// find returns the position of a take in the store's plan, or -1.
func (t *unplannedTake) find(want *driver.Take) int {
	for j := range t.plan.Takes {
		if has := t.plan.Takes[j]; has.Subject == want.Subject && has.Limit.Name == want.Limit.Name {
			return j
		}
	}
	return -1
}

// fill makes the outcome of a plan from that of the store's, which it matches.
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

// giveBack gives back what the store took, also if the caller has left. If that fails, the store
// counts what is in doubt: to give it back again could return it twice.
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
