package oracle

import (
	"maps"
	"math"
	"slices"
)

// These are the most of each that a request may have.
const (
	maxCharges   = 16
	maxCosts     = 32
	maxAncestors = 8
)

// part is what a request asks, and a lease then stands for, on one limit.
type part struct {
	limit   *limit
	charges []int         // the charges that reach this limit, in order
	units   map[int]int64 // by charge, where it names the limit

	reservedAt int64    // epoch ms
	total      int64    // what is charged
	pieces     []*piece // window and concurrency, in the order in which they were added
}

// plan spreads a request over the limits it reaches, and adds to what is due if it cannot.
func (c *checker) plan(charges []chargeLine, want *due) []*part {
	var parts []*part
	var named []map[string]int64
	costs := 0
	for i, charge := range charges {
		for _, l := range c.reach(charge, want) {
			at := slices.IndexFunc(parts, func(p *part) bool { return p.limit == l })
			if at < 0 {
				at = len(parts)
				parts = append(parts, &part{limit: l, reservedAt: c.now})
			}
			parts[at].charges = append(parts[at].charges, i)
		}
		named = append(named, charge.Costs)
		costs += len(charge.Costs)
	}
	if len(charges) == 0 || len(charges) > maxCharges || costs > maxCosts {
		want.add(otherError, "%d charges with %d costs", len(charges), costs)
	}
	for p, units := range restate(parts, named, want) {
		p.units = units
	}
	for _, p := range parts {
		if p.limit.kind == "concurrency" && p.units == nil {
			p.units = map[int]int64{p.charges[0]: 1}
		}
	}
	return parts
}

// reach lists the limits of a charge's entity and its ancestors.
func (c *checker) reach(charge chargeLine, want *due) []*limit {
	var limits []*limit
	entity := charge.Entity
	for range maxAncestors + 1 {
		s := c.subjects[subjectKey{entity, charge.Resource}]
		if s == nil {
			want.add(anyError, "the log does not define %s/%s", entity, charge.Resource)
			return nil
		}
		limits = append(limits, s.limits...)
		entity = s.parent
		if entity == "" && len(limits) == 0 {
			want.add(noLimits, "%s/%s has no limits", charge.Entity, charge.Resource)
		}
		if entity == "" {
			return limits
		}
	}
	want.add(otherError, "the ancestors of %s are a cycle or too many", charge.Entity)
	return nil
}

// restate works out the units, by charge, of the parts that the costs or totals name, and adds to
// what is due if these are wrong.
func restate(parts []*part, named []map[string]int64, want *due) map[*part]map[int]int64 {
	stands := map[*part]map[int]int64{}
	for charge, costs := range named {
		for name, units := range costs {
			found := false
			for _, p := range parts {
				if p.limit.name != name || !slices.Contains(p.charges, charge) {
					continue
				}
				found = true
				if stands[p] == nil {
					stands[p] = map[int]int64{}
					maps.Copy(stands[p], p.units)
				}
				stands[p][charge] = units
			}
			if !found {
				want.add(unknownLimit, "charge %d has no limit %q", charge, name)
			}
			if units < 0 {
				want.add(otherError, "negative units of %q", name)
			}
		}
	}
	for p, units := range stands {
		if _, ok := sum(units); !ok {
			want.add(otherError, "the sum for %s is no int64", p.limit.name)
		}
	}
	return stands
}

// sum adds the units of all charges; ok is false if that is no int64.
func sum(units map[int]int64) (total int64, ok bool) {
	for _, n := range units {
		if n > math.MaxInt64-total {
			return math.MaxInt64, false
		}
		total += n
	}
	return total, true
}
