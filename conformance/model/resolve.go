package model

import (
	"github.com/weir-limiter/weir"
)

// Reach is one (entity, resource) that a request reaches, with the limits that apply to it.
type Reach struct {
	weir.Subject
	weir.LevelLimits
	// Charges are those that reach it, in order.
	Charges []int
	// Named is true where a charge names the entity itself.
	Named bool
}

func (r *Reach) limit(name string) *weir.Limit { return find(r.Limits, name) }

func find(limits []weir.Limit, name string) *weir.Limit {
	for i := range limits {
		if limits[i].Name == name {
			return &limits[i]
		}
	}
	return nil
}

// configured: a change takes effect with the next call (8.1).
func configured(_, is *weir.Definitions) *weir.Definitions { return is }

// levels: entity and resource, entity and _default_, resource, system, the limiter's options (5.1).
func levels(stored *weir.Config, limiter []weir.Limit) []weir.LevelLimits {
	all := append([]weir.LevelLimits(nil), stored.Levels...)
	if len(limiter) > 0 {
		all = append(all, weir.LevelLimits{Level: weir.LevelLimiter, Limits: limiter})
	}
	return all
}

// winner: the first level that has any limits wins whole (5.1).
func winner(all []weir.LevelLimits) (win weir.LevelLimits, hidden []weir.LevelLimits) {
	if len(all) == 0 {
		return weir.LevelLimits{}, nil
	}
	return all[0], all[1:]
}

// unconfigured: a request's limits apply as they are where nothing else is configured (5.2).
func unconfigured(brought []weir.Limit) weir.LevelLimits {
	if len(brought) == 0 {
		return weir.LevelLimits{}
	}
	return weir.LevelLimits{Level: weir.LevelRequest, Limits: brought}
}

// above: an entity with a parent and cascade charges the parent too (9.1).
func above(c *weir.Config) string {
	if !c.Cascade {
		return ""
	}
	return c.Parent
}

// tooDeep: one level by default, up to eight by option; a longer chain is an error (9.1).
func tooDeep(ancestors, depth int) bool { return ancestors > depth }

// resolve says which limits apply to a subject, which they hide, and who is charged too.
func (m *Model) resolve(s weir.Subject) (win weir.LevelLimits, hidden []weir.LevelLimits, parent string) {
	c := m.config.Config(s)
	win, hidden = m.rules.Winner(m.rules.Levels(c, m.levels))
	return win, hidden, m.rules.Above(c)
}

// inForce is the definition of a name and kind that applies to a subject by now, or nil.
func (m *Model) inForce(s weir.Subject, own *weir.Limit) *weir.Limit {
	win, _, _ := m.resolve(s)
	l := find(win.Limits, own.Name)
	if l == nil || l.Kind != own.Kind {
		return nil
	}
	return l
}

// settledUnder: a settlement works under the definition in force, and where there is none, under the
// last one (8.6).
func settledUnder(own, inForce *weir.Limit) *weir.Limit {
	if inForce != nil {
		return inForce
	}
	return own
}

// explain says which limits apply and why, for an entity and its ancestors.
func (m *Model) explain(s weir.Subject, ancestors int) (*weir.Explanation, error) {
	if m.rules.TooDeep(ancestors, m.depth) {
		return nil, invalid("entity", "cascades too far")
	}
	win, hidden, parent := m.resolve(s)
	e := &weir.Explanation{
		Entity: s.Entity, Resource: s.Resource, Level: win.Level, Limits: win.Limits, Hidden: hidden,
	}
	if parent == "" {
		return e, nil
	}
	var err error
	e.Parent, err = m.explain(weir.Subject{Entity: parent, Resource: s.Resource}, ancestors+1)
	if err != nil {
		return nil, err
	}
	return e, nil
}
