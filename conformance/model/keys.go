package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
)

// checkKeys: no two charges of a keyed request are on the same entity and resource (7.12).
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

// fullName takes a full name apart.
func fullName(name string) (entity, resource, limit string, ok bool) {
	parts := strings.Split(name, "#")
	if len(parts) != 3 {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// byKey makes totals by the position of the charges out of the totals of a keyed request, in which only
// names say what they are for (7.12). Other totals stay as they are.
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

// noFullNames: a full name is for a lease of a keyed request (7.12).
func noFullNames(totals []weir.Costs) error {
	for _, set := range totals {
		for name := range maps.Keys(set) {
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
