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

// plan resolves the reservation's charges and those of their ancestors, and returns the plan. It
// returns an error for what docs/semantics.md calls an error, before anything is written: a cost
// that names an unknown limit, no limits at all, a chain of parents that is too long, a brought
// limit that no charged entity has, and a sum above what a limit can ever hold.
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

// reservation is a request that has been checked and whose limits have not been resolved.
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
	// depth bounds the number of ancestors to charge. A longer chain is an error.
	depth int
	// undeclaredParents is the store's trait: a parent that is not declared is charged too.
	undeclaredParents bool
	// declaredResources is [Options.DeclaredResources].
	declaredResources bool
	// lifetime is how long the lease lives at least.
	lifetime time.Duration
	// memory and memorySize are as in a [driver.Plan].
	memory     time.Duration
	memorySize int
}

// planner collects the subjects that a request reaches, with the charges that reach each, and
// builds the plan from them.
type planner struct {
	r        *reservation
	costs    []costList // of each charge
	resolve  resolver
	mode     resolveMode
	subjects []plannedSubject
	count    int // an upper bound of the number of takes
	made     driver.Plan

	list   []*driver.Take  // memory of the plan's takes
	judges []driver.Judged // memory of the plan's subjects
	// entry lends its memory to the holdings. It is nil if the store may still read a plan after it
	// has answered.
	entry *leaseEntry
}

// plannedSubject is a subject that at least one charge reaches.
type plannedSubject struct {
	subject  weir.Subject
	resolved *resolution
	charges  []int
	direct   bool // named by a charge, not reached only as an ancestor
}

// reset empties the planner and keeps its memory.
func (p *planner) reset() {
	p.subjects, p.list, p.judges = p.subjects[:0], p.list[:0], p.judges[:0]
	p.count, p.entry = 0, nil
}

// validity returns the instant until which the cache trusts all definitions of the plan, and the
// cache generation that they are from. The instant is 0 if the definitions are from several
// generations.
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

// charge adds charge i: its own subject, then the ancestors that it cascades to.
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
			return weir.NewError(weir.NotFound, "parent", at.Entity, "is not a declared entity")
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
	if p.r.declaredResources && !slices.ContainsFunc(chain[:n], (*resolution).declaresResource) {
		return undeclaredResource(weir.Subject{Entity: c.Entity, Resource: c.Resource})
	}
	return checkNames(c, p.costs[i], chain[:n])
}

// undeclaredResource returns the error for a resource that [Options.DeclaredResources] refuses.
func undeclaredResource(of weir.Subject) error {
	return weir.NewError(weir.NotFound, "resource", of.Resource,
		fmt.Sprintf("has no limits of its own, neither for everybody nor for %q", clip.Text(of.Entity)))
}

// declaresResource reports whether the resource is configured by its name.
func (r *resolution) declaresResource() bool {
	return r.level == weir.LevelEntity || r.level == weir.LevelResource ||
		slices.ContainsFunc(r.hidden, func(l weir.LevelLimits) bool { return l.Level == weir.LevelResource })
}

// resolveOnce returns the resolution of a subject. Each subject is resolved once in a plan, so that
// all charges are judged by the same limits even if the configuration changes meanwhile.
func (p *planner) resolveOnce(ctx context.Context, s weir.Subject) (*resolution, error) {
	for i := range p.subjects {
		if p.subjects[i].subject == s {
			return p.subjects[i].resolved, nil
		}
	}
	return p.resolve(ctx, s, p.mode)
}

// maxAncestors bounds how far checkChain follows a chain that is too long, to find out whether it
// is a cycle.
const maxAncestors = 32

// checkChain returns the error for a chain of parents that is longer than the number of levels
// allowed. Such a request is refused as a whole, because charging only the first levels would spend
// beyond the limits of the others. The error says whether the chain is a cycle, which another
// program may have stored.
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

// addSubject records that charge i reaches a subject, and returns the subject's resolution: the one
// recorded first, if an earlier charge reached the subject too.
func (p *planner) addSubject(s weir.Subject, res *resolution, i int, own bool) *resolution {
	p.count += len(res.limits)
	for j := range p.subjects {
		if at := &p.subjects[j]; at.subject == s {
			at.charges = append(at.charges, i)
			at.direct = at.direct || own
			return at.resolved
		}
	}
	if n := len(p.subjects); n < cap(p.subjects) { // reuse the list of charges of an earlier plan
		p.subjects = p.subjects[:n+1]
	} else {
		p.subjects = append(p.subjects, plannedSubject{})
	}
	at := &p.subjects[len(p.subjects)-1]
	*at = plannedSubject{s, res, append(at.charges[:0], i), own}
	return res
}

// checkNames returns an error if no limit is configured for any entity in the chain, or if a cost
// names a limit that none of them has.
func checkNames(c *weir.Charge, costs costList, chain []*resolution) error {
	configured := false
	for _, res := range chain {
		configured = configured || len(res.limits) > 0
	}
	if !configured {
		return weir.NewError(weir.NoLimits, "entity", c.Entity,
			fmt.Sprintf("no limits are configured for it on resource %q", clip.Text(c.Resource)))
	}
	for i := range costs {
		found := false
		for j := 0; j < len(chain) && !found; j++ {
			found = chain[j].limit(costs[i].name) != nil
		}
		if !found {
			return weir.NewError(weir.UnknownLimit, "costs."+costs[i].name, costs[i].units,
				fmt.Sprintf("neither %q nor an entity that it cascades to has such a limit on %q: the limits here are %s",
					clip.Text(c.Entity), clip.Text(c.Resource), clip.Names(limitNames(chain))))
		}
	}
	return nil
}

// limitNames returns the names of the limits of resolutions.
func limitNames(of []*resolution) []string {
	var names []string
	for _, res := range of {
		for i := range res.limits {
			names = append(names, res.limits[i].Name)
		}
	}
	return names
}

// limit returns the limit with a name, or nil.
func (r *resolution) limit(name string) *weir.Limit {
	for i := range r.limits {
		if r.limits[i].Name == name {
			return &r.limits[i]
		}
	}
	return nil
}

// judged returns the subjects that the charges reach, with the limits of each.
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

// takes sums the costs that fall on each limit of each subject. A concurrency limit that no cost
// names is asked for one slot, because every call occupies one.
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

// ceiling returns the limit's capacity, or the lower one that the request brought. A brought limit
// lowers only the limits of entities that the request names: the limits of an ancestor are shared
// with other entities.
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

// checkBrought refuses a brought limit that no charged entity has, because it would be ignored, and
// one of another kind than the stored limit.
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
			return weir.NewError(weir.UnknownLimit, "limits."+b.Name, b.Capacity,
				"no charged entity has such a limit: the limits here are "+clip.Names(p.directNames()))
		}
	}
	return nil
}

// directNames returns the names of the limits that a brought limit can lower: those of the entities
// that the request names.
func (p *planner) directNames() []string {
	var names []string
	for i := range p.subjects {
		if s := &p.subjects[i]; s.direct {
			names = append(names, limitNames([]*resolution{s.resolved})...)
		}
	}
	return names
}

// checkTake refuses a sum that the limit can never hold, even with nothing in use. A shadow limit
// may be asked for more than its capacity, but not for more than its counter can hold.
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
