package model

import (
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// checkTotals refuses a negative amount (7.4) and a malformed name (6), also as part of a full name
// (7.12).
func checkTotals(totals []weir.Costs) error {
	for _, c := range totals {
		for name, n := range c {
			if entity, resource, limit, full := fullName(name); full {
				if err := checkSubject(entity, resource); err != nil {
					return err
				}
				name = limit
			}
			if err := checkAmounts(weir.Costs{name: n}); err != nil {
				return err
			}
		}
	}
	return nil
}

// standFor returns what a lease stands for after an update: the parts of each holding.
func (m *Model) standFor(e *lease, s *update) ([][]driver.Part, error) {
	totals, err := byKey(e.content, e.holdings, s.totals)
	if err != nil {
		return nil, err
	}
	to, err := m.assign(e, totals)
	if err != nil {
		return nil, err
	}
	for i, h := range e.holdings {
		if err := m.refuse("7.4", checkSlots(h, to[i])); err != nil {
			return nil, err
		}
		to[i] = m.points.StandFor.pass(&UpdatedHolding{h, s.verb, e.content, to[i], totals},
			ending(s.verb, h, to[i]))
		if !countable(h.Limit.Kind, cost(to[i])) {
			err := m.refuseTake("1.1", &h.Take, uncountable("totals."+h.Limit.Name))
			if err != nil {
				return nil, err
			}
		}
	}
	return to, nil
}

// ending returns the parts that remain of those asked for. A complete returns the slots of every
// concurrency limit (7.2), a cancel sets everything to 0 (7.3).
func ending(v weir.Verb, h *Holding, asked []driver.Part) []driver.Part {
	if v == weir.VerbCancel || v == weir.VerbComplete && h.Limit.Kind == weir.Concurrency {
		return none(asked)
	}
	return asked
}

func none(parts []driver.Part) []driver.Part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].Units = 0
	}
	return out
}

// assign replaces what the lease stands for with totals. There is one set for all charges, or one
// for each in order (7.4). Totals count on the entity and on every ancestor that the cost reached
// (7.1). A limit that is not named keeps what it stands for (7.2).
func (m *Model) assign(e *lease, totals []weir.Costs) ([][]driver.Part, error) {
	if err := checkSets(totals, len(e.content.Charges)); err != nil {
		return nil, err
	}
	to := make([][]driver.Part, len(e.holdings))
	for i, h := range e.holdings {
		to[i] = slices.Clone(h.Parts)
	}
	for set, costs := range totals {
		for name, n := range costs {
			having := havingName(e.holdings, name)
			if len(totals) > 1 {
				having = slices.DeleteFunc(having, func(charge int) bool { return charge != set })
			}
			if err := m.refuse("7.4", checkHaving(name, having)); err != nil {
				return nil, err
			}
			for _, charge := range having {
				assignOne(e.holdings, to, charge, name, n)
			}
		}
	}
	return to, nil
}

func checkSets(totals []weir.Costs, charges int) error {
	if len(totals) > 1 && len(totals) != charges {
		return invalid("totals", "are neither one set nor one for each charge")
	}
	return nil
}

// checkHaving refuses a name that no charge has, or that several charges have if there is one set
// for all (7.4).
func checkHaving(name string, charges []int) error {
	switch len(charges) {
	case 0:
		return invalid("totals."+name, "was not reserved")
	case 1:
		return nil
	default:
		return invalid("totals."+name, "was reserved by several")
	}
}

// havingName returns the charges that reserved something under a name.
func havingName(holdings []*Holding, name string) []int {
	var having []int
	for _, h := range holdings {
		for _, p := range h.Parts {
			if h.Limit.Name == name && !slices.Contains(having, p.Charge) {
				having = append(having, p.Charge)
			}
		}
	}
	return having
}

func assignOne(holdings []*Holding, to [][]driver.Part, charge int, name string, n int64) {
	for i, h := range holdings {
		for j := range to[i] {
			if h.Limit.Name == name && to[i][j].Charge == charge {
				to[i][j].Units = n
			}
		}
	}
}

// checkSlots refuses more slots than a charge stands for (7.4). Slots that have timed out count as
// well (7.9).
func checkSlots(h *Holding, asked []driver.Part) error {
	for i, p := range asked {
		if h.Limit.Kind == weir.Concurrency && p.Units > h.Parts[i].Units {
			return invalid("totals."+h.Limit.Name, "is more slots than there are")
		}
	}
	return nil
}

// checkKeys refuses two charges of a keyed request on the same entity and resource (7.12).
func checkKeys(charges []weir.Charge) error {
	for i, c := range charges {
		if slices.ContainsFunc(charges[:i], func(o weir.Charge) bool {
			return o.Entity == c.Entity && o.Resource == c.Resource
		}) {
			return invalid("charges", "have the same entity and resource")
		}
	}
	return nil
}

// fullName splits a full name.
func fullName(name string) (entity, resource, limit string, ok bool) {
	parts := strings.Split(name, "#")
	if len(parts) != 3 {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// byKey converts the totals of a keyed request, whose full names say which charge each is for, to
// totals in the order of the charges (7.12). Other totals are returned as they are.
func byKey(c *Content, holdings []*Holding, totals []weir.Costs) ([]weir.Costs, error) {
	if !c.Keyed {
		return totals, noFullNames(totals)
	}
	if len(c.Charges) > 1 && len(totals) > 1 {
		return nil, invalid("totals", "do not name the charges")
	}
	if len(totals) != 1 {
		return totals, nil
	}
	sets := make([]weir.Costs, len(c.Charges))
	for name, n := range totals[0] {
		charge, limit, err := c.meant(holdings, name)
		if err != nil {
			return nil, err
		}
		if _, twice := sets[charge][limit]; twice {
			return nil, invalid("totals."+name, "is given twice")
		}
		if sets[charge] == nil {
			sets[charge] = weir.Costs{}
		}
		sets[charge][limit] = n
	}
	return sets, nil
}

// noFullNames refuses full names, which only a lease of a keyed request has (7.12).
func noFullNames(totals []weir.Costs) error {
	for _, set := range totals {
		for name := range set {
			if _, _, _, full := fullName(name); full {
				return fault(weir.UnknownLease, "lease_id", "has no keys")
			}
		}
	}
	return nil
}

// meant returns the charge that a name in the totals is for, and the limit. A name that is not full
// is for the one charge that has it.
func (c *Content) meant(holdings []*Holding, name string) (charge int, limit string, err error) {
	entity, resource, limit, full := fullName(name)
	if !full {
		having := havingName(holdings, name)
		if len(having) != 1 {
			return 0, "", invalid("totals."+name, "is not the name of one charge's limit")
		}
		return having[0], name, nil
	}
	charge = slices.IndexFunc(c.Charges, func(o weir.Charge) bool {
		return o.Entity == entity && o.Resource == resource
	})
	if charge < 0 || !slices.Contains(havingName(holdings, limit), charge) {
		return 0, "", invalid("totals."+name, "was not reserved")
	}
	return charge, limit, nil
}
