package limiter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/internal/clip"
)

// plan resolves what the reservation asks, ancestors included. It refuses, before anything is
// written, what docs/semantics.md calls an error: an unknown limit, no limits at all, a chain of
// parents that is too long, a brought limit that no charged entity has, and a sum that can never be
// satisfied.
func (p *planner) plan(ctx context.Context) (*driver.Plan, error) {
	r := p.r
	for i := range r.charges {
		if err := p.charge(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := p.checkBrought(); err != nil {
		return nil, err
	}
	p.made = driver.Plan{
		ID: r.id, New: r.isNew, Fingerprint: r.fingerprint, Charges: len(r.charges), Keys: r.keys,
		Subjects: p.judged(), Takes: p.takes(), Lifetime: r.lifetime, Memory: r.memory, MemorySize: r.memorySize,
	}
	for i := range p.made.Takes {
		t := p.made.Takes[i]
		p.made.Lifetime = max(p.made.Lifetime, t.Limit.Timeout)
		if len(t.Parts) == 1 && t.Parts[0].Units <= t.Ceiling {
			continue
		}
		if err := checkTake(t); err != nil {
			return nil, err
		}
	}
	return &p.made, nil
}

// reservation is a request on its way into a store: checked, with its limits not yet resolved.
type reservation struct {
	id weir.LeaseID
	// isNew, fingerprint and keys are as in a [driver.Plan].
	isNew       bool
	fingerprint uint64
	keys        []uint64
	// charges are in the request's order.
	charges []weir.Charge
	// brought are the limits that the request brought, in the order of their names.
	brought []weir.Limit
	// depth is how many ancestors to charge at most; a longer chain is an error.
	depth int
	// undeclaredParents is the store's trait: an ancestor that was never declared is charged.
	undeclaredParents bool
	// lifetime is how long the lease lives at least.
	lifetime time.Duration
	// memory and memorySize are as in a [driver.Plan].
	memory     time.Duration
	memorySize int
}

// planner gathers the subjects that a request reaches and the charges that reach them.
type planner struct {
	r        *reservation
	costs    []costList // of each charge
	resolve  resolver
	mode     resolveMode
	subjects []plannedSubject
	count    int // limits, at most
	made     driver.Plan

	list   []*driver.Take  // memory for takes
	judges []driver.Judged // memory for subjects
	// entry is the lease's, which has memory for holdings; nil if a store may still read what it
	// was given after its answer.
	entry *leaseEntry
}

type plannedSubject struct {
	subject  weir.Subject
	resolved *resolution
	charges  []int
	direct   bool // by a charge of its own, not only as an ancestor
}

// reset empties the planner and keeps its memory.
func (p *planner) reset() {
	p.subjects, p.list, p.judges = p.subjects[:0], p.list[:0], p.judges[:0]
	p.count, p.entry = 0, nil
}

// validity says until when the definitions of the plan are in force, as far as the cache knows, and
// of which generation they are.
func (p *planner) validity() (until, generation int64) {
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
	c := &p.r.charges[i]
	at := weir.Subject{Entity: c.Entity, Resource: c.Resource}
	var chain [9]*resolution // the entity and at most eight ancestors
	n := 0
	for {
		res, err := p.resolveOnce(ctx, at)
		if err != nil {
			return err
		}
		if n > 0 && res.undeclared && !p.r.undeclaredParents {
			return weir.NewError(weir.NotFound, "parent", at.Entity, "is no declared entity")
		}
		if res.level == "" && len(p.r.brought) > 0 {
			res = &resolution{
				level: weir.LevelRequest, limits: p.r.brought, parent: res.parent, undeclared: res.undeclared, version: res.version,
			}
		}
		res = p.addSubject(at, res, i, n == 0)
		chain[n] = res
		n++
		if res.parent == "" {
			break
		}
		if n > p.r.depth || n == len(chain) {
			return checkChain(ctx, p.resolve, weir.Subject{Entity: c.Entity, Resource: c.Resource}, n-1)
		}
		at.Entity = res.parent
	}
	return checkNames(c, p.costs[i], chain[:n])
}

// resolveOnce returns what applies to a subject, the same for the whole plan.
func (p *planner) resolveOnce(ctx context.Context, s weir.Subject) (*resolution, error) {
	for i := range p.subjects {
		if p.subjects[i].subject == s {
			return p.subjects[i].resolved, nil
		}
	}
	return p.resolve(ctx, s, p.mode)
}

// maxAncestors is how far up a chain that is too long is followed, to say whether it ends.
const maxAncestors = 32

// checkChain refuses a chain of parents that goes on after so many levels: to charge only the first
// of them would spend past the others. It says if the chain is a cycle, which another program can
// have stored.
func checkChain(ctx context.Context, resolve resolver, of weir.Subject, levels int) error {
	entity, next := of.Entity, ""
	seen := make(map[string]bool)
	for n := 0; of.Entity != "" && n <= maxAncestors; n++ {
		if seen[of.Entity] {
			return invalid("entity", entity, fmt.Sprintf("cascades in a cycle of parents, through %q", clip.Text(of.Entity)))
		}
		seen[of.Entity] = true
		if n == levels+1 {
			next = of.Entity
		}
		r, err := resolve(ctx, of, usual)
		if err != nil {
			return err
		}
		of.Entity = r.parent
	}
	return invalid("entity", entity,
		fmt.Sprintf("cascades further than %d levels, to %q", levels, clip.Text(next)))
}

// addSubject notes that charge i falls on a subject, and returns what applies to it: for all
// charges the same, also where the configuration has changed between two of them.
func (p *planner) addSubject(s weir.Subject, res *resolution, i int, own bool) *resolution {
	p.count += len(res.limits)
	for j := range p.subjects {
		if at := &p.subjects[j]; at.subject == s {
			at.charges = append(at.charges, i)
			at.direct = at.direct || own
			return at.resolved
		}
	}
	if n := len(p.subjects); n < cap(p.subjects) { // with the list of charges of one before
		p.subjects = p.subjects[:n+1]
	} else {
		p.subjects = append(p.subjects, plannedSubject{})
	}
	at := &p.subjects[len(p.subjects)-1]
	*at = plannedSubject{s, res, append(at.charges[:0], i), own}
	return res
}

// checkNames refuses a cost that names a limit of none of the charged entities.
func checkNames(c *weir.Charge, costs costList, chain []*resolution) error {
	configured := false
	for _, res := range chain {
		configured = configured || len(res.limits) > 0
	}
	if !configured {
		return weir.NewError(weir.NoLimits, "entity", c.Entity, fmt.Sprintf("nothing is configured for resource %q", clip.Text(c.Resource)))
	}
	for i := range costs {
		found := false
		for j := 0; j < len(chain) && !found; j++ {
			found = chain[j].limit(costs[i].name) != nil
		}
		if !found {
			return weir.NewError(weir.UnknownLimit, "costs."+costs[i].name, costs[i].units,
				fmt.Sprintf("neither %q nor an entity that it cascades to has such a limit on %q",
					clip.Text(c.Entity), clip.Text(c.Resource)))
		}
	}
	return nil
}

// limit returns the limit of that name, or nil.
func (r *resolution) limit(name string) *weir.Limit {
	for i := range r.limits {
		if r.limits[i].Name == name {
			return &r.limits[i]
		}
	}
	return nil
}

// judged returns the subjects that the charges reach.
func (p *planner) judged() []driver.Judged {
	n := len(p.subjects)
	p.judges = slices.Grow(p.judges, n)[:n]
	for i := range p.subjects {
		j, r := &p.judges[i], p.subjects[i].resolved
		j.Subject, j.Level, j.Limits = p.subjects[i].subject, r.level, r.limits
		j.Parent, j.Version = r.parent, r.version
	}
	return p.judges
}

// takes adds up the costs that fall on one limit of one subject.
func (p *planner) takes() []*driver.Take {
	holdings, takes := p.newHoldings(p.count), p.list[:0]
	for i := range p.subjects {
		s := &p.subjects[i]
		for j := range s.resolved.limits {
			l := &s.resolved.limits[j]
			h := &holdings[len(takes)]
			parts := h.Parts[:0]
			for _, c := range s.charges {
				if units, ok := p.costs[c].find(l.Name); ok {
					parts = append(parts, driver.Part{Charge: c, Units: units})
				}
			}
			if len(parts) == 0 {
				if l.Kind != weir.Concurrency {
					continue
				}
				// A call occupies a slot whether or not it says so.
				parts = append(parts, driver.Part{Charge: s.charges[0], Units: 1})
			}
			// Field by field: a literal would be made elsewhere and copied, pointers and all.
			h.Subject, h.Limit, h.Level = s.subject, l, s.resolved.level
			h.Ceiling, h.Parts = p.ceiling(s, l), parts
			takes = append(takes, &h.Take)
		}
	}
	p.list = takes
	return takes
}

// ceiling is the limit's capacity, or the lower one that the request brought for an entity that it
// names itself. An ancestor's limits are shared by others, so a request cannot lower them.
func (p *planner) ceiling(s *plannedSubject, l *weir.Limit) int64 {
	if s.direct && len(p.r.brought) > 0 {
		for i := range p.r.brought {
			if b := &p.r.brought[i]; b.Name == l.Name {
				return min(l.Capacity, b.Capacity)
			}
		}
	}
	return l.Capacity
}

// checkBrought refuses a brought limit that would be ignored: one that no charged entity has, or of
// another kind.
func (p *planner) checkBrought() error {
	for i := range p.r.brought {
		b := &p.r.brought[i]
		found := false
		for j := range p.subjects {
			s := &p.subjects[j]
			stored := s.resolved.limit(b.Name)
			if !s.direct || stored == nil {
				continue
			}
			found = true
			if stored.Kind != b.Kind {
				return invalid("limits."+b.Name+".kind", string(b.Kind),
					fmt.Sprintf("the limit of %q is a %s", clip.Text(s.subject.Entity), stored.Kind))
			}
		}
		if !found {
			return weir.NewError(weir.UnknownLimit, "limits."+b.Name, b.Capacity, "no charged entity has such a limit")
		}
	}
	return nil
}

// checkTake refuses a sum that the limit can never hold, however empty it is.
func checkTake(t *driver.Take) error {
	cost, fits := driver.SumParts(t.Parts)
	switch {
	case fits && cost <= t.Ceiling:
		return nil
	case !t.Limit.Shadow:
		return weir.NewError(weir.NeverSatisfiable, "costs."+t.Limit.Name, cost,
			fmt.Sprintf("%s/%s can hold at most %d", clip.Text(t.Entity), clip.Text(t.Resource), t.Ceiling))
	case !fits, t.Limit.Kind == weir.Bucket && cost > weir.MaxBucketUnits:
		return invalid("costs."+t.Limit.Name, cost, "is more than a limit can count")
	}
	return nil
}
