package model

import (
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
)

// Take is what a request asks of one limit of one (entity, resource).
type Take struct {
	weir.Subject
	Limit weir.Limit
	Level weir.Level
	// Ceiling is what the use may come to, in units (5.3).
	Ceiling int64
	// Parts say which charge asks for how much.
	Parts []weir.Part
}

// plan says what a request asks of which limits, in the order of judging, or what is wrong with it.
func (m *Model) plan(c *Content) ([]*Take, error) {
	reached, err := m.reach(c)
	if err != nil {
		return nil, err
	}
	if err := m.rules.CheckBrought(c.Brought, reached); err != nil {
		return nil, err
	}
	var takes []*Take
	for _, r := range reached {
		for i := range r.Limits {
			l := &r.Limits[i]
			if p := m.rules.Parts(l, c.Charges, r.Charges); len(p) > 0 {
				ceiling := m.rules.Ceiling(l, c.Brought, r.Named)
				takes = append(takes, &Take{r.Subject, *l, r.Level, ceiling, p})
			}
		}
	}
	takes = m.rules.Order(takes)
	for _, t := range takes {
		if err := m.rules.CheckCost(t); err != nil {
			return nil, err
		}
	}
	return takes, nil
}

// inOrder: charges as given, each entity before its parent, limits by name (3.7). So they were made.
func inOrder(takes []*Take) []*Take { return takes }

// reach lists whom the charges reach: each as given, each entity before its parent.
func (m *Model) reach(c *Content) ([]*Reach, error) {
	var reached []*Reach
	for i := range c.Charges {
		chain, err := m.chain(c, i)
		if err != nil {
			return nil, err
		}
		if err := m.rules.CheckNames(&c.Charges[i], chain); err != nil {
			return nil, err
		}
		for _, r := range chain {
			known := slices.IndexFunc(reached, func(o *Reach) bool { return o.Subject == r.Subject })
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

// chain is the entity of a charge and the ancestors that it cascades to.
func (m *Model) chain(c *Content, charge int) ([]*Reach, error) {
	s := weir.Subject{Entity: c.Charges[charge].Entity, Resource: c.Charges[charge].Resource}
	var chain []*Reach
	for {
		if m.rules.TooDeep(len(chain), m.depth) {
			return nil, invalid("entity", "cascades too far")
		}
		win, _, parent := m.resolve(s)
		if len(win.Limits) == 0 {
			win = m.rules.Unconfigured(c.Brought)
		}
		chain = append(chain, &Reach{s, win, []int{charge}, len(chain) == 0})
		if parent == "" {
			return chain, nil
		}
		s.Entity = parent
	}
}

// checkNames: a name that no entity of the chain has is an unknown limit; a chain without any limit
// is no limits configured (3.4).
func checkNames(c *weir.Charge, chain []*Reach) error {
	if !slices.ContainsFunc(chain, func(r *Reach) bool { return len(r.Limits) > 0 }) {
		return fault(weir.NoLimits, "entity", "has no limits")
	}
	for name := range c.Costs {
		if !slices.ContainsFunc(chain, func(r *Reach) bool { return r.limit(name) != nil }) {
			return fault(weir.UnknownLimit, "costs."+name, "names no limit")
		}
	}
	return nil
}

// checkBrought: a brought limit that no named entity has is an unknown limit, and one of another
// kind is invalid (5.4). The first by name counts.
func checkBrought(brought []weir.Limit, reached []*Reach) error {
	for _, b := range brought {
		known, sameKind := false, true
		for _, r := range reached {
			if l := r.limit(b.Name); l != nil && r.Named {
				known = true
				sameKind = sameKind && l.Kind == b.Kind
			}
		}
		if !known {
			return fault(weir.UnknownLimit, "limits."+b.Name, "is no limit of a named entity")
		}
		if !sameKind {
			return invalid("limits."+b.Name+".kind", "is another one")
		}
	}
	return nil
}

// parts: only limits named are judged and charged; a concurrency limit that no charge names costs 1,
// for the first charge that reaches it (3.3). Costs that fall on one limit are kept together (3.2).
func parts(l *weir.Limit, charges []weir.Charge, reaching []int) []weir.Part {
	var out []weir.Part
	for _, c := range reaching {
		if n, named := charges[c].Costs[l.Name]; named {
			out = append(out, weir.Part{Charge: c, Units: n})
		}
	}
	if len(out) == 0 && l.Kind == weir.Concurrency {
		return []weir.Part{{Charge: reaching[0], Units: 1}}
	}
	return out
}

// cost: costs that fall on one limit are added and judged as one sum (3.2).
func cost(parts []weir.Part) *big.Int {
	total := new(big.Int)
	for _, p := range parts {
		total.Add(total, num(p.Units))
	}
	return total
}

// ceiling: a brought limit may only lower, and only for the entities that the request names (5.3).
func ceiling(l *weir.Limit, brought []weir.Limit, named bool) int64 {
	if b := find(brought, l.Name); named && b != nil {
		return min(l.Capacity, b.Capacity)
	}
	return l.Capacity
}

// checkCost: a sum above what the limit can ever hold is never satisfiable (3.5), but no error on a
// shadow limit (3.6), as long as it can count it (1.1, 7.11).
func (r *Rules) checkCost(t *Take) error {
	total := cost(t.Parts)
	if t.Limit.Shadow {
		if t.Limit.Kind == weir.Bucket && total.Cmp(num(r.BucketMost())) > 0 || !total.IsInt64() {
			return invalid("costs."+t.Limit.Name, "is more than can be counted")
		}
		return nil
	}
	if total.Cmp(num(t.Ceiling)) > 0 {
		return fault(weir.NeverSatisfiable, "costs."+t.Limit.Name, "is above the capacity")
	}
	return nil
}
