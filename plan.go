package weir

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Plan resolves what the reservation asks, ancestors included, and returns the outcome to fill in:
// for each limit of each (entity, resource) a holding with what is asked of it, and room for its
// status. Entities come in the order in which the charges reach them, limits by name. It refuses,
// before anything is written, what docs/semantics.md calls an error: an unknown limit, no limits at
// all, a chain of parents that is too long, a brought limit that no charged entity has, and a sum
// that can never be satisfied.
//
// The outcome is the answer to one call: a store that wants to know of it later copies what it
// needs, holdings with their parts and pieces too.
func (r *Reservation) Plan(ctx context.Context) (*Outcome, error) {
	var p *planner
	var out *Outcome
	if c := r.call; c != nil && !c.planned { // who plans again may still have the outcome before
		p, out, c.planned = &c.planner, &c.outcome, true
		p.reset()
		p.recycles = true
		*out = Outcome{}
	} else {
		p, out = &planner{}, &Outcome{}
	}
	p.r, p.costs = r, r.costLists()
	for i := range r.Charges {
		if err := p.charge(ctx, i); err != nil {
			return nil, err
		}
	}
	if r.call != nil { // a store elsewhere gives the context to what it writes with
		if err := gone(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.checkBrought(); err != nil {
		return nil, err
	}
	out.Holdings = p.holdings()
	for i := range out.Holdings {
		h := &out.Holdings[i]
		if len(h.Parts) == 1 && h.Parts[0].Units <= h.Ceiling {
			continue
		}
		if err := h.check(); err != nil {
			return nil, err
		}
	}
	out.Limits = p.statuses(len(out.Holdings))
	if p.recycles && r.entry != nil {
		r.entry.planned, r.entry.planOf = p.valid()
	}
	return out, nil
}

// costLists returns the costs of each charge. Who stands before a store may have put other charges
// in the place of the limiter's.
func (r *Reservation) costLists() []costList {
	if n := len(r.costs); n > 0 && n == len(r.Charges) && &r.Charges[0] == r.read {
		return r.costs
	}
	lists := make([]costList, len(r.Charges))
	for i := range r.Charges {
		lists[i] = r.Charges[i].Costs.appendTo(nil)
	}
	return lists
}

// Expires is when a lease reserved at now ends by itself: after the lifetime, and never before its
// longest hold times out.
func (r *Reservation) Expires(now time.Time, holdings []Holding) time.Time {
	lifetime := r.Lifetime
	for i := range holdings {
		lifetime = max(lifetime, holdings[i].Limit.Timeout)
	}
	return wholeMS(now).Add(lifetime)
}

// Expires is when a lease renewed at now ends by itself, as in [Reservation.Expires], by the
// timeouts now in force.
func (s *Settlement) Expires(now time.Time) time.Time {
	lifetime := s.Lifetime
	for _, l := range s.Limits {
		lifetime = max(lifetime, l.Timeout)
	}
	return wholeMS(now).Add(lifetime)
}

// planner gathers the subjects that a request reaches and the charges that reach them.
type planner struct {
	r        *Reservation
	costs    []costList // of each charge
	subjects []planned
	count    int  // limits, at most
	recycles bool // the memory of the call and of a lease before
}

type planned struct {
	subject  Subject
	resolved *Resolved
	charges  []int
	charged  bool // by a charge of its own, not only as an ancestor
}

// reset empties the planner and keeps its memory.
func (p *planner) reset() {
	*p = planner{subjects: p.subjects[:0]}
}

// valid says until when the definitions of the plan are in force, as far as the cache knows, and of
// which generation they are.
func (p *planner) valid() (until, generation int64) {
	first := p.subjects[0].resolved
	until, generation = first.until, first.generation
	for i := range p.subjects {
		if r := p.subjects[i].resolved; r.generation == generation {
			until = min(until, r.until)
		} else {
			until = 0
		}
	}
	return until, generation
}

// charge adds one charge: its own subject, then its ancestors.
func (p *planner) charge(ctx context.Context, i int) error {
	c := &p.r.Charges[i]
	at := Subject{c.Entity, c.Resource}
	var chain [9]*Resolved // the entity and at most eight ancestors
	n := 0
	for {
		res, err := p.r.Resolve(ctx, at, Usual)
		if err != nil {
			return err
		}
		if n > 0 && res.Undeclared && !p.r.UndeclaredParents {
			return fault(NotFound, "parent", at.Entity, "is no declared entity")
		}
		if res.Level == "" && len(p.r.Brought) > 0 {
			res = &Resolved{Level: LevelRequest, Limits: p.r.Brought, Parent: res.Parent}
		}
		res = p.reach(at, res, i, n == 0)
		chain[n] = res
		n++
		if res.Parent == "" {
			break
		}
		if n > p.r.Depth || n == len(chain) {
			return tooLong(ctx, p.r.Resolve, Subject{c.Entity, c.Resource}, n-1)
		}
		at.Entity = res.Parent
	}
	return checkNames(c, p.costs[i], chain[:n])
}

// maxAncestors is how far up a chain that is too long is followed, to say whether it ends.
const maxAncestors = 32

// tooLong refuses a chain of parents that goes on after so many levels: to charge only the first
// of them would spend past the others. It says if the chain is a cycle, which another program can
// have stored.
func tooLong(ctx context.Context, resolve Resolver, of Subject, levels int) error {
	entity, next := of.Entity, ""
	seen := make(map[string]bool)
	for n := 0; of.Entity != "" && n <= maxAncestors; n++ {
		if seen[of.Entity] {
			return invalid("entity", entity, fmt.Sprintf("cascades in a cycle of parents, through %q", shorten(of.Entity)))
		}
		seen[of.Entity] = true
		if n == levels+1 {
			next = of.Entity
		}
		r, err := resolve(ctx, of, Usual)
		if err != nil {
			return err
		}
		of.Entity = r.Parent
	}
	return invalid("entity", entity,
		fmt.Sprintf("cascades further than %d levels, to %q", levels, shorten(next)))
}

// reach notes that charge i falls on a subject, and returns what applies to it: for all charges the
// same, also where the configuration has changed between two of them.
func (p *planner) reach(s Subject, res *Resolved, i int, own bool) *Resolved {
	p.count += len(res.Limits)
	for j := range p.subjects {
		if at := &p.subjects[j]; at.subject == s {
			at.charges = append(at.charges, i)
			at.charged = at.charged || own
			return at.resolved
		}
	}
	if n := len(p.subjects); n < cap(p.subjects) { // with the list of charges of one before
		p.subjects = p.subjects[:n+1]
	} else {
		p.subjects = append(p.subjects, planned{})
	}
	at := &p.subjects[len(p.subjects)-1]
	*at = planned{s, res, append(at.charges[:0], i), own}
	return res
}

// checkNames refuses a cost that names a limit of none of the charged entities.
func checkNames(c *Charge, costs costList, chain []*Resolved) error {
	configured := false
	for _, res := range chain {
		configured = configured || len(res.Limits) > 0
	}
	if !configured {
		return fault(NoLimits, "entity", c.Entity, fmt.Sprintf("nothing is configured for resource %q", shorten(c.Resource)))
	}
	for i := range costs {
		found := false
		for j := 0; j < len(chain) && !found; j++ {
			found = chain[j].limit(costs[i].name) != nil
		}
		if !found {
			return fault(UnknownLimit, "costs."+costs[i].name, costs[i].units,
				fmt.Sprintf("neither %q nor an entity that it cascades to has such a limit on %q",
					shorten(c.Entity), shorten(c.Resource)))
		}
	}
	return nil
}

// limit returns the limit of that name, or nil.
func (r *Resolved) limit(name string) *Limit {
	for i := range r.Limits {
		if r.Limits[i].Name == name {
			return &r.Limits[i]
		}
	}
	return nil
}

// holdings adds up the costs that fall on one limit of one subject.
func (p *planner) holdings() []Holding {
	room := p.room(p.count)
	n := 0
	for i := range p.subjects {
		s := &p.subjects[i]
		for j := range s.resolved.Limits {
			l := &s.resolved.Limits[j]
			h := &room[n]
			parts := h.Parts[:0]
			for _, c := range s.charges {
				if units, ok := p.costs[c].find(l.Name); ok {
					parts = append(parts, Part{c, units})
				}
			}
			if len(parts) == 0 {
				if l.Kind != Concurrency {
					continue
				}
				// A call occupies a slot whether or not it says so.
				parts = append(parts, Part{s.charges[0], 1})
			}
			h.Subject, h.Limit, h.Level = s.subject, l, s.resolved.Level
			h.Ceiling, h.Parts = p.ceiling(s, l), parts
			h.Pieces = h.Pieces[:0]
			n++
		}
	}
	return room[:n]
}

// ceiling is the limit's capacity, or the lower one that the request brought for an entity that it
// names itself. An ancestor's limits are shared by others, so a request cannot lower them.
func (p *planner) ceiling(s *planned, l *Limit) int64 {
	if s.charged {
		for i := range p.r.Brought {
			if b := &p.r.Brought[i]; b.Name == l.Name {
				return min(l.Capacity, b.Capacity)
			}
		}
	}
	return l.Capacity
}

// checkBrought refuses a brought limit that would be ignored: one that no charged entity has, or of
// another kind.
func (p *planner) checkBrought() error {
	for i := range p.r.Brought {
		b := &p.r.Brought[i]
		found := false
		for j := range p.subjects {
			s := &p.subjects[j]
			stored := s.resolved.limit(b.Name)
			if !s.charged || stored == nil {
				continue
			}
			found = true
			if stored.Kind != b.Kind {
				return invalid("limits."+b.Name+".kind", string(b.Kind),
					fmt.Sprintf("the limit of %q is a %s", shorten(s.subject.Entity), stored.Kind))
			}
		}
		if !found {
			return fault(UnknownLimit, "limits."+b.Name, b.Capacity, "no charged entity has such a limit")
		}
	}
	return nil
}

// check refuses a sum that the limit can never hold, however empty it is.
func (t *Take) check() error {
	cost := t.Cost()
	if cost <= t.Ceiling {
		return nil
	}
	if t.Limit.Shadow {
		if t.Limit.Kind == Bucket && cost > maxBucketUnits {
			return invalid("costs."+t.Limit.Name, cost, "is more than a bucket can count")
		}
		return nil
	}
	return fault(NeverSatisfiable, "costs."+t.Limit.Name, cost,
		fmt.Sprintf("%s/%s can hold at most %d", shorten(t.Entity), shorten(t.Resource), t.Ceiling))
}

// sumParts adds up, and stays at MaxInt64 where the sum would not fit.
func sumParts(parts []Part) int64 {
	var sum int64
	for _, p := range parts {
		if p.Units > math.MaxInt64-sum {
			return math.MaxInt64
		}
		sum += p.Units
	}
	return sum
}
