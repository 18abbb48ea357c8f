package model

import (
	"slices"

	"github.com/weir-limiter/weir"
)

// ReachedSubject is a subject that a request reaches, with the limits that apply to it.
type ReachedSubject struct {
	weir.Subject
	weir.LevelLimits
	// Charges are the indexes of the charges that reach it, in order.
	Charges []int
	// Named is set if a charge names the entity itself.
	Named bool
}

func (r *ReachedSubject) limit(name string) *weir.Limit { return find(r.Limits, name) }

func find(limits []weir.Limit, name string) *weir.Limit {
	for i := range limits {
		if limits[i].Name == name {
			return &limits[i]
		}
	}
	return nil
}

// levelsOf returns all limits of a subject, level by level: entity and resource, entity and
// _default_, resource, system, the limiter's options, the request (5.1). A request's own limits are
// a level only if nothing else is configured (5.2).
func (m *Model) levelsOf(s weir.Subject, brought []weir.Limit) []weir.LevelLimits {
	all := slices.Clone(m.config.Config(s).Levels)
	if len(m.levels) > 0 {
		all = append(all, weir.LevelLimits{Level: weir.LevelLimiter, Limits: m.levels})
	}
	if len(all) == 0 && len(brought) > 0 {
		all = append(all, weir.LevelLimits{Level: weir.LevelRequest, Limits: brought})
	}
	return m.points.Levels.pass(s, all)
}

// applying returns the limits that apply: all those of the first level that has any (5.1).
func (m *Model) applying(s weir.Subject, brought []weir.Limit) weir.LevelLimits {
	if levels := m.levelsOf(s, brought); len(levels) > 0 {
		return levels[0]
	}
	return weir.LevelLimits{}
}

// parentOf returns the entity that is charged in addition to another: its parent if it cascades
// (9.1), or "".
func parentOf(d *weir.Definitions, entity string) string {
	if c := d.Config(weir.Subject{Entity: entity}); c.Cascade {
		return c.Parent
	}
	return ""
}

// settledUnder returns the definition by which a holding is updated: the one in force or, if there
// is none, the last one by which the lease was updated or reserved (8.6).
func (m *Model) settledUnder(h *Holding) *weir.Limit {
	under := &h.Limit
	inForce := find(m.applying(h.Subject, nil).Limits, h.Limit.Name)
	if inForce != nil && inForce.Kind != h.Limit.Kind {
		inForce = nil
	}
	if inForce != nil {
		under = inForce
	}
	return m.points.Under.pass(DefinitionPair{&h.Limit, inForce}, under)
}

// reachedSubjects returns the subjects that the charges reach: charges as given, each entity before
// its parent (3.7).
func (m *Model) reachedSubjects(c *Content) ([]*ReachedSubject, error) {
	var reached []*ReachedSubject
	for i := range c.Charges {
		chain, err := m.chain(c, i)
		if err != nil {
			return nil, err
		}
		if err := m.refuse("3.4", checkNames(&c.Charges[i], chain)); err != nil {
			return nil, err
		}
		for _, r := range chain {
			known := slices.IndexFunc(reached, func(o *ReachedSubject) bool { return o.Subject == r.Subject })
			if known < 0 {
				reached = append(reached, r)
				continue
			}
			reached[known].Charges = append(reached[known].Charges, i)
			reached[known].Named = reached[known].Named || r.Named
		}
	}
	return reached, nil
}

// chain returns the entity of a charge and the ancestors that it cascades to: one by default, at
// most as many as the option says (9.1). Limits that the request brings also apply to the ancestors
// if nothing else is configured there (5.2).
func (m *Model) chain(c *Content, charge int) ([]*ReachedSubject, error) {
	s := weir.Subject{Entity: c.Charges[charge].Entity, Resource: c.Charges[charge].Resource}
	var chain []*ReachedSubject
	for ; s.Entity != ""; s.Entity = parentOf(m.config, s.Entity) {
		if len(chain) > m.depth {
			return nil, invalid("entity", "cascades too far")
		}
		chain = append(chain, &ReachedSubject{s, m.applying(s, c.Brought), []int{charge}, len(chain) == 0})
	}
	return chain, nil
}

// checkNames refuses a chain without any limit (no limits configured), and a name that no entity of
// the chain has (an unknown limit) (3.4).
func checkNames(c *weir.Charge, chain []*ReachedSubject) error {
	if !slices.ContainsFunc(chain, func(r *ReachedSubject) bool { return len(r.Limits) > 0 }) {
		return fault(weir.NoLimits, "entity", "has no limits")
	}
	for name := range c.Costs {
		if !slices.ContainsFunc(chain, func(r *ReachedSubject) bool { return r.limit(name) != nil }) {
			return fault(weir.UnknownLimit, "costs."+name, "names no limit")
		}
	}
	return nil
}
