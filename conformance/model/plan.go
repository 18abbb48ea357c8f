package model

import (
	"math/big"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Take is the part of a request that asks something of one limit of one subject.
type Take struct {
	*ReachedSubject
	Limit weir.Limit
	// Ceiling is the most that may be in use afterwards, in units (5.3).
	Ceiling int64
	// Parts are how much each charge asks for.
	Parts []driver.Part
}

// plan returns what a request asks of each limit, in the order of judging: charges as given, each
// entity before its parent, limits by name (3.7). It returns an error if the request is wrong.
func (m *Model) plan(c *Content) ([]*Take, error) {
	reached, err := m.reachedSubjects(c)
	if err != nil {
		return nil, err
	}
	if err := m.refuse("5.4", checkBrought(c.Brought, reached)); err != nil {
		return nil, err
	}
	var takes []*Take
	for _, r := range reached {
		for _, l := range r.Limits {
			takes = append(takes, &Take{r, l, ceiling(&l, c.Brought, r.Named), partsOf(&l, c.Charges, r)})
		}
	}
	var asked []*Take
	for _, t := range m.points.Takes.pass(Planned{c, reached}, takes) {
		if len(t.Parts) == 0 {
			continue // only limits named are judged and charged (3.3)
		}
		if err := m.refuseTake("3.5", t, checkCost(t)); err != nil {
			return nil, err
		}
		asked = append(asked, t)
	}
	return asked, nil
}

// checkBrought refuses a brought limit that no named entity has (an unknown limit) or that is of
// another kind (invalid), whichever comes first by name (5.4).
func checkBrought(brought []weir.Limit, reached []*ReachedSubject) error {
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

// partsOf returns what each charge that reaches a limit asks of it (3.2). If none of them names a
// concurrency limit, the first one asks for 1 (3.3).
func partsOf(l *weir.Limit, charges []weir.Charge, r *ReachedSubject) []driver.Part {
	var out []driver.Part
	for _, c := range r.Charges {
		if n, named := charges[c].Costs[l.Name]; named {
			out = append(out, driver.Part{Charge: c, Units: n})
		}
	}
	if len(out) == 0 && l.Kind == weir.Concurrency {
		return []driver.Part{{Charge: r.Charges[0], Units: 1}}
	}
	return out
}

// cost returns the sum of the costs that fall on one limit (3.2).
func cost(parts []driver.Part) *big.Int {
	total := new(big.Int)
	for _, p := range parts {
		total.Add(total, num(p.Units))
	}
	return total
}

// ceiling returns the most that may be in use of a limit after a take. A brought limit may only
// lower it, and only for the entities that the request names (5.3).
func ceiling(l *weir.Limit, brought []weir.Limit, named bool) int64 {
	if b := find(brought, l.Name); named && b != nil {
		return min(l.Capacity, b.Capacity)
	}
	return l.Capacity
}

// checkCost refuses a sum above what the limit can ever hold (3.5). For a shadow limit that is not
// an error (3.6) as long as the sum can be counted (1.1).
func checkCost(t *Take) error {
	total := cost(t.Parts)
	switch {
	case !t.Limit.Shadow && total.Cmp(num(t.Ceiling)) > 0:
		return fault(weir.NeverSatisfiable, "costs."+t.Limit.Name, "is above the capacity")
	case t.Limit.Shadow && !countable(t.Limit.Kind, total):
		return uncountable("costs." + t.Limit.Name)
	}
	return nil
}
