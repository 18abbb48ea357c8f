package broken

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// keyRules mix up what should be apart, or keep apart what should not.
func keyRules() []rule {
	key := func(f func(k *model.Key)) func(w, r *model.Rules) {
		return func(w, r *model.Rules) {
			w.KeyOf = func(s weir.Subject, l *weir.Limit) model.Key {
				k := r.KeyOf(s, l)
				f(&k)
				return k
			}
		}
	}
	plain := strings.NewReplacer("-", "_", ".", "_")
	return []rule{
		{"names lose their - and .", "N1: names with - or .", key(func(k *model.Key) {
			k.Name = plain.Replace(k.Name)
		})},
		{"entities lose their - and .", "N1: names with - or .", key(func(k *model.Key) {
			k.Entity = plain.Replace(k.Entity)
		})},
		{"names are not told apart by case", "N1: names with - or .", key(func(k *model.Key) {
			k.Entity = strings.ToLower(k.Entity)
		})},
		{"usage of all resources is one", "U1: usage", key(func(k *model.Key) { k.Resource = "" })},
		{"usage of all entities is one", "U1: usage", key(func(k *model.Key) { k.Entity = "" })},
		{"usage of an hour and of a day is one", "U1: usage", key(func(k *model.Key) {
			if k.Kind == weir.Budget {
				k.Name = "budget"
			}
		})},
	}
}

// requestRules break lines 3.2, 3.3 and 3.4.
func requestRules() []rule {
	return append([]rule{
		{"negative costs are taken for credit", "V1: negative costs", func(w, r *model.Rules) {
			w.Malformed = func(charges []weir.Charge, slash bool) error {
				return r.Malformed(positive(charges), slash)
			}
		}},
		{"any number of charges", "3.2", func(w, r *model.Rules) {
			w.Malformed = func(charges []weir.Charge, slash bool) error {
				for i := range charges {
					if err := r.Malformed(charges[i:i+1], slash); err != nil {
						return err
					}
				}
				return nil
			}
		}},
		{"at most 15 charges", "3.2", func(w, r *model.Rules) {
			w.Malformed = func(charges []weir.Charge, slash bool) error {
				if len(charges) > 15 {
					return &weir.Error{Code: weir.Invalid}
				}
				return r.Malformed(charges, slash)
			}
		}},
		{"unknown names are skipped", "3.4", func(w, _ *model.Rules) {
			w.CheckNames = func(*weir.Charge, []*model.Reach) error { return nil }
		}},
		{"every entity must have every name", "3.4", func(w, r *model.Rules) {
			w.CheckNames = func(c *weir.Charge, chain []*model.Reach) error {
				for i := range chain {
					if err := r.CheckNames(c, chain[i:i+1]); err != nil {
						return err
					}
				}
				return nil
			}
		}},
		{"no limits is the same as an unknown limit", "3.4", func(w, r *model.Rules) {
			w.CheckNames = func(c *weir.Charge, chain []*model.Reach) error {
				if r.CheckNames(c, chain) != nil {
					return &weir.Error{Code: weir.UnknownLimit}
				}
				return nil
			}
		}},
	}, partRules()...)
}

func positive(charges []weir.Charge) []weir.Charge {
	out := slices.Clone(charges)
	for i := range out {
		out[i].Costs = maps.Clone(out[i].Costs)
		for name, n := range out[i].Costs {
			out[i].Costs[name] = max(n, 0)
		}
	}
	return out
}

// named reports whether a charge that reaches a limit names it.
func named(l *weir.Limit, c []weir.Charge, reaching []int) bool {
	return slices.ContainsFunc(reaching, func(i int) bool {
		_, ok := c[i].Costs[l.Name]
		return ok
	})
}

// partRules change what the charges ask of a limit.
func partRules() []rule {
	type partsOf = func(*weir.Limit, []weir.Charge, []int) []weir.Part
	type wrongly = func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part
	parts := func(f wrongly) func(w, r *model.Rules) {
		return func(w, r *model.Rules) {
			w.Parts = func(l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				return f(r.Parts, l, c, reaching)
			}
		}
	}
	return []rule{
		{"limits that are not named are judged", "3.3", parts(
			func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				if p := right(l, c, reaching); len(p) > 0 {
					return p
				}
				return []weir.Part{{Charge: reaching[0]}}
			})},
		{"every limit costs 1 that is not named", "3.3", parts(
			func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				if p := right(l, c, reaching); len(p) > 0 {
					return p
				}
				return []weir.Part{{Charge: reaching[0], Units: 1}}
			})},
		{"slots that are not named are free", "3.3", parts(
			func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				if !named(l, c, reaching) {
					return nil
				}
				return right(l, c, reaching)
			})},
		{"a request takes a slot besides those it names", "3.3", parts(
			func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				p := right(l, c, reaching)
				if l.Kind == weir.Concurrency && named(l, c, reaching) {
					p[0].Units++
				}
				return p
			})},
		{"each charge takes a slot", "3.3", parts(
			func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				if l.Kind != weir.Concurrency || named(l, c, reaching) {
					return right(l, c, reaching)
				}
				var p []weir.Part
				for _, i := range reaching {
					p = append(p, weir.Part{Charge: i, Units: 1})
				}
				return p
			})},
		{"the slot belongs to the last charge", "3.3", parts(
			func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				if l.Kind != weir.Concurrency || named(l, c, reaching) {
					return right(l, c, reaching)
				}
				return []weir.Part{{Charge: reaching[len(reaching)-1], Units: 1}}
			})},
		{"only the first charge on a limit counts", "3.2", parts(
			func(right partsOf, l *weir.Limit, c []weir.Charge, reaching []int) []weir.Part {
				p := right(l, c, reaching)
				return p[:min(len(p), 1)]
			})},
	}
}
