package broken

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// keyedRules returns variants that break line 7.12.
func keyedRules() []pointVariant {
	return []pointVariant{
		{"two charges may have one key", "7.12", skipCheck("7.12", "")},
		{"actuals are the same whatever their keys", "7.12", comparing(func(c *model.Content) {
			c.Totals = shortNames(c.Totals)
		})},
		{"actuals by key are never the same", "7.12", model.Points{Same: func(t model.RepeatedCall, right bool) bool {
			return right && !anyFull(t.Was.Totals)
		}}},
	}
}

// keyedFronts returns variants that break line 7.12.
func keyedFronts() []wrappedVariant {
	return []wrappedVariant{
		{"charges are keyed by their entity alone", "7.12", asking(func(_ *wrongWorld, r *weir.Request) error {
			for i, c := range r.Charges {
				if r.Keyed && slices.ContainsFunc(r.Charges[:i],
					func(o weir.Charge) bool { return o.Entity == c.Entity }) {
					return refused(weir.Invalid)
				}
			}
			return nil
		})},
		{"keyed charges can be named by position", "7.12", settledBy(true,
			func(_ *wrongWorld, r *weir.Request, totals []weir.Costs) []weir.Costs {
				if len(totals) < 2 || len(totals) != len(r.Charges) {
					return totals
				}
				all := weir.Costs{}
				for i, set := range totals {
					for name, n := range set {
						all[subject(r.Charges[i]).FullName(name)] = n
					}
				}
				return []weir.Costs{all}
			})},
		{"a full name matches any charge that reaches its limit", "7.12", settledBy(true,
			renaming(func(w *wrongWorld, r *weir.Request, name string) string {
				for _, c := range r.Charges {
					e, err := w.World.Explain(context.Background(), c.Entity, c.Resource)
					for ; err == nil && e != nil; e = e.Parent {
						of := weir.Subject{Entity: e.Entity, Resource: e.Resource}
						if limit := shortName(name); of.FullName(limit) == name && has(e.Limits, limit) {
							return subject(c).FullName(limit)
						}
					}
				}
				return name
			}))},
		{"full names that are no charge's are ignored", "7.12", settledBy(true,
			renaming(func(_ *wrongWorld, r *weir.Request, name string) string {
				for _, c := range r.Charges {
					if subject(c).FullName(shortName(name)) == name {
						return name
					}
				}
				return ""
			}))},
		{"full names settle every lease", "7.12", settledBy(false,
			func(_ *wrongWorld, r *weir.Request, totals []weir.Costs) []weir.Costs {
				if !anyFull(totals) {
					return totals
				}
				if len(r.Charges) == 0 {
					return shortNames(totals)
				}
				sets := make([]weir.Costs, len(r.Charges))
				for i, c := range r.Charges {
					sets[i] = weir.Costs{}
					for name, n := range totals[0] {
						if subject(c).FullName(shortName(name)) == name {
							sets[i][shortName(name)] = n
						}
					}
				}
				return sets
			})},
	}
}

func subject(c weir.Charge) weir.Subject {
	return weir.Subject{Entity: c.Entity, Resource: c.Resource}
}

// shortName returns the name of the limit in a full name.
func shortName(name string) string { return name[strings.LastIndexByte(name, '#')+1:] }

// shortNames replaces full names with the names of the limits.
func shortNames(totals []weir.Costs) []weir.Costs {
	var short []weir.Costs
	for _, set := range totals {
		to := weir.Costs{}
		for name, n := range set {
			to[shortName(name)] += n
		}
		short = append(short, to)
	}
	return short
}

// anyFull reports whether there is a full name in totals.
func anyFull(totals []weir.Costs) bool {
	for _, set := range totals {
		for name := range set {
			if shortName(name) != name {
				return true
			}
		}
	}
	return false
}

// settledBy changes the totals of updates of leases whose request was keyed, or was not.
func settledBy(
	keyed bool, change func(w *wrongWorld, r *weir.Request, totals []weir.Costs) []weir.Costs,
) func(w *wrongWorld) {
	return func(w *wrongWorld) {
		asked := remembering(w)
		changed := func(id weir.LeaseID, totals []weir.Costs) []weir.Costs {
			if r := asked(id); r != nil && r.Keyed == keyed {
				return change(w, r, totals)
			}
			return totals
		}
		w.adjust = func(ctx context.Context, id weir.LeaseID, seq int64, totals []weir.Costs) (*weir.Receipt, error) {
			return w.World.Adjust(ctx, id, seq, changed(id, totals))
		}
		w.complete = func(ctx context.Context, id weir.LeaseID, actuals []weir.Costs) (*weir.Receipt, error) {
			return w.World.Complete(ctx, id, changed(id, actuals))
		}
	}
}

// renaming renames the full names in totals. A name that becomes empty is left out.
func renaming(
	to func(w *wrongWorld, r *weir.Request, name string) string,
) func(w *wrongWorld, r *weir.Request, totals []weir.Costs) []weir.Costs {
	return func(w *wrongWorld, r *weir.Request, totals []weir.Costs) []weir.Costs {
		var renamed []weir.Costs
		for _, set := range totals {
			costs := weir.Costs{}
			for name, n := range set {
				if shortName(name) != name {
					name = to(w, r, name)
				}
				if name != "" {
					costs[name] += n
				}
			}
			renamed = append(renamed, costs)
		}
		return renamed
	}
}
