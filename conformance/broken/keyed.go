package broken

import (
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// byKey replaces the rule of line 7.12; the right one is at hand.
func byKey(
	rule func(c *model.Content, holdings []*model.Holding, totals []weir.Costs, right *model.Rules) ([]weir.Costs, error),
) func(w, r *model.Rules) {
	return func(w, r *model.Rules) {
		w.ByKey = func(c *model.Content, h []*model.Holding, totals []weir.Costs) ([]weir.Costs, error) {
			return rule(c, h, totals, r)
		}
	}
}

// shortNames replaces full names by the names of the limits.
func shortNames(totals []weir.Costs) []weir.Costs {
	var short []weir.Costs
	for _, set := range totals {
		to := weir.Costs{}
		for name, n := range set {
			to[name[strings.LastIndexByte(name, '#')+1:]] += n
		}
		short = append(short, to)
	}
	return short
}

// keyedRules break line 7.12.
func keyedRules() []rule {
	return []rule{
		{"charges are keyed by their entity alone", "7.12", func(w, _ *model.Rules) {
			w.CheckKeys = func(charges []weir.Charge) error {
				for i, c := range charges {
					if slices.ContainsFunc(charges[:i], func(o weir.Charge) bool { return o.Entity == c.Entity }) {
						return &weir.Error{Code: weir.Invalid, Field: "charges"}
					}
				}
				return nil
			}
		}},
		{"two charges may have one key", "7.12", func(w, _ *model.Rules) {
			w.CheckKeys = func([]weir.Charge) error { return nil }
		}},
		{"keyed charges are told by position too", "7.12", byKey(func(
			c *model.Content, h []*model.Holding, totals []weir.Costs, right *model.Rules,
		) ([]weir.Costs, error) {
			if len(totals) > 1 && len(totals) == len(c.Charges) {
				return totals, nil
			}
			return right.ByKey(c, h, totals)
		})},
		{"a full name is for whoever holds its entity's units", "7.12", byKey(keyedByHolding)},
		{"full names that are no charge's are ignored", "7.12", byKey(func(
			c *model.Content, h []*model.Holding, totals []weir.Costs, right *model.Rules,
		) ([]weir.Costs, error) {
			var known []weir.Costs
			for _, set := range totals {
				kept := weir.Costs{}
				for name, n := range set {
					if _, err := right.ByKey(c, h, []weir.Costs{{name: n}}); err == nil {
						kept[name] = n
					}
				}
				known = append(known, kept)
			}
			return right.ByKey(c, h, known)
		})},
		{"full names settle every lease", "7.12", byKey(func(
			c *model.Content, h []*model.Holding, totals []weir.Costs, right *model.Rules,
		) ([]weir.Costs, error) {
			keyed := *c
			keyed.Keyed = keyed.Keyed || !slices.EqualFunc(totals, shortNames(totals), sameNames)
			return right.ByKey(&keyed, h, totals)
		})},
		{"actuals are the same whatever their keys", "7.12", func(w, r *model.Rules) {
			w.SameTotals = func(a, b []weir.Costs) bool { return r.SameTotals(shortNames(a), shortNames(b)) }
		}},
		{"actuals by key are never the same", "7.12", func(w, r *model.Rules) {
			w.SameTotals = func(a, b []weir.Costs) bool {
				return r.SameTotals(a, b) && slices.EqualFunc(a, shortNames(a), sameNames)
			}
		}},
	}
}

func sameNames(a, b weir.Costs) bool {
	for name := range a {
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// keyedByHolding takes the first charge that an entity's holding is of for the one on that entity:
// what can be told from the holdings alone.
func keyedByHolding(
	c *model.Content, holdings []*model.Holding, totals []weir.Costs, right *model.Rules,
) ([]weir.Costs, error) {
	if !c.Keyed || len(totals) != 1 {
		return right.ByKey(c, holdings, totals)
	}
	var renamed weir.Costs
	for name, n := range totals[0] {
		for _, h := range holdings {
			if h.Subject.FullName(h.Limit.Name) == name {
				own := c.Charges[h.Parts[0].Charge]
				name = weir.Subject{Entity: own.Entity, Resource: own.Resource}.FullName(h.Limit.Name)
				break
			}
		}
		if renamed == nil {
			renamed = weir.Costs{}
		}
		renamed[name] += n
	}
	return right.ByKey(c, holdings, []weir.Costs{renamed})
}
