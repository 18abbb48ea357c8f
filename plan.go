package weir

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Plan resolves what the reservation asks, ancestors included, and returns one take for each limit
// of each (entity, resource): entities in the order in which the charges reach them, limits by name.
// It refuses, before anything is written, what docs/semantics.md calls an error: an unknown limit, no
// limits at all, a chain of parents that is too long, a brought limit that no charged entity has, and
// a sum that can never be satisfied.
func (r *Reservation) Plan(ctx context.Context) ([]Take, error) {
	p := planner{r: r}
	for i := range r.Charges {
		if err := p.charge(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := p.checkBrought(); err != nil {
		return nil, err
	}
	takes := p.takes()
	for i := range takes {
		if err := takes[i].check(); err != nil {
			return nil, err
		}
	}
	return takes, nil
}

// Expires is when a lease reserved at now ends by itself: after the lifetime, and never before its
// longest hold times out.
func (r *Reservation) Expires(now time.Time, holdings []Holding) time.Time {
	lifetime := r.Lifetime
	for i := range holdings {
		lifetime = max(lifetime, holdings[i].Limit.Timeout)
	}
	return now.Truncate(time.Millisecond).Add(lifetime)
}

// Expires is when a lease renewed at now ends by itself, as in [Reservation.Expires], by the
// timeouts now in force.
func (s *Settlement) Expires(now time.Time) time.Time {
	lifetime := s.Lifetime
	for _, l := range s.Limits {
		lifetime = max(lifetime, l.Timeout)
	}
	return now.Truncate(time.Millisecond).Add(lifetime)
}

// planner gathers the subjects that a request reaches and the charges that reach them.
type planner struct {
	r        *Reservation
	subjects []planned
	count    int // takes, at most
}

type planned struct {
	subject  Subject
	resolved *Resolved
	charges  []int
	charged  bool // by a charge of its own, not only as an ancestor
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
		if n > 0 && res.Undeclared {
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
			return tooLong(c.Entity, n-1, res.Parent)
		}
		at.Entity = res.Parent
	}
	return checkNames(c, chain[:n])
}

// tooLong refuses a chain of parents: to charge only the first of them would spend past the others.
func tooLong(entity string, levels int, next string) error {
	return invalid("entity", entity,
		fmt.Sprintf("cascades further than %d levels, to %s", levels, shorten(next)))
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
	p.subjects = append(p.subjects, planned{s, res, []int{i}, own})
	return res
}

// checkNames refuses a cost that names a limit of none of the charged entities.
func checkNames(c *Charge, chain []*Resolved) error {
	configured := false
	for _, res := range chain {
		configured = configured || len(res.Limits) > 0
	}
	if !configured {
		return fault(NoLimits, "entity", c.Entity, "nothing is configured for resource "+shorten(c.Resource))
	}
	missing := ""
	for name := range c.Costs {
		found := false
		for _, res := range chain {
			found = found || res.limit(name) != nil
		}
		if !found && (missing == "" || name < missing) {
			missing = name
		}
	}
	if missing != "" {
		return fault(UnknownLimit, "costs."+missing, c.Costs[missing],
			fmt.Sprintf("neither %s nor an entity that it cascades to has such a limit on %s",
				shorten(c.Entity), shorten(c.Resource)))
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

// takes adds up the costs that fall on one limit of one subject.
func (p *planner) takes() []Take {
	takes := make([]Take, 0, p.count)
	parts := make([]Part, 0, p.count)
	for i := range p.subjects {
		s := &p.subjects[i]
		for j := range s.resolved.Limits {
			l := &s.resolved.Limits[j]
			from := len(parts)
			for _, c := range s.charges {
				if n, ok := p.r.Charges[c].Costs[l.Name]; ok {
					parts = append(parts, Part{c, n})
				}
			}
			if len(parts) == from {
				if l.Kind != Concurrency {
					continue
				}
				// A call occupies a slot whether or not it says so.
				parts = append(parts, Part{s.charges[0], 1})
			}
			takes = append(takes, Take{
				Subject: s.subject, Limit: l, Level: s.resolved.Level,
				Ceiling: p.ceiling(s, l), Parts: parts[from:len(parts):len(parts)],
			})
		}
	}
	return takes
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
					"the limit of "+shorten(s.subject.Entity)+" is a "+string(stored.Kind))
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
