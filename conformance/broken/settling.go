package broken

import (
	"maps"
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// sequenceRules break line 7.1.
func sequenceRules() []rule {
	applies := func(f func(last, seq int64) bool) func(w, r *model.Rules) {
		return func(w, _ *model.Rules) { w.Applies = f }
	}
	return []rule{
		{"every adjust is applied", "7.1", applies(func(_, _ int64) bool { return true })},
		{"an adjust is applied again", "7.1", applies(func(last, seq int64) bool { return seq >= last })},
		{"a gap is not applied", "7.1", applies(func(last, seq int64) bool { return seq == last+1 })},
		{"no adjust is applied", "7.1", applies(func(_, _ int64) bool { return false })},
		{"a refused call uses its number up", "7.1", func(w, _ *model.Rules) {
			w.RefusedSeq = func(last, seq int64) int64 { return max(last, seq) }
		}},
	}
}

// assigned turns what a lease was to stand for into something else.
func assigned(
	change func(was []*model.Holding, to [][]weir.Part, totals []weir.Costs),
) func(w, r *model.Rules) {
	return func(w, r *model.Rules) {
		w.Assign = func(h []*model.Holding, charges int, totals []weir.Costs) ([][]weir.Part, error) {
			to, err := r.Assign(h, charges, totals)
			if err == nil {
				change(h, to, totals)
			}
			return to, err
		}
	}
}

// totalsRules break lines 7.1 to 7.4 and 7.9.
func totalsRules() []rule {
	named := func(totals []weir.Costs, name string) bool {
		return slices.ContainsFunc(totals, func(c weir.Costs) bool {
			_, ok := c[name]
			return ok
		})
	}
	return append([]rule{
		{"totals are differences", "7.1", assigned(
			func(was []*model.Holding, to [][]weir.Part, totals []weir.Costs) {
				for i, h := range was {
					for j := range to[i] {
						if named(totals, h.Limit.Name) && h.Limit.Kind != weir.Concurrency {
							to[i][j].Units += h.Parts[j].Units
						}
					}
				}
			})},
		{"what is not named is 0", "7.2", assigned(
			func(was []*model.Holding, to [][]weir.Part, totals []weir.Costs) {
				for i, h := range was {
					for j := range to[i] {
						if !named(totals, h.Limit.Name) {
							to[i][j].Units = 0
						}
					}
				}
			})},
		{"totals change the entity alone", "7.1", assigned(
			func(was []*model.Holding, to [][]weir.Part, _ []weir.Costs) {
				for i, h := range was {
					if h.Entity != was[0].Entity {
						copy(to[i], h.Parts)
					}
				}
			})},
	}, slices.Concat(namingRules(), keyedRules(), endRules())...)
}

// namingRules break line 7.4.
func namingRules() []rule {
	return []rule{
		{"names that were not reserved are ignored", "7.4", func(w, r *model.Rules) {
			w.Assign = func(h []*model.Holding, charges int, totals []weir.Costs) ([][]weir.Part, error) {
				known := func(name string) bool {
					return slices.ContainsFunc(h, func(h *model.Holding) bool { return h.Limit.Name == name })
				}
				var kept []weir.Costs
				for _, c := range totals {
					c = maps.Clone(c)
					maps.DeleteFunc(c, func(name string, _ int64) bool { return !known(name) })
					kept = append(kept, c)
				}
				return r.Assign(h, charges, kept)
			}
		}},
		{"one set counts for every charge", "7.4", func(w, r *model.Rules) {
			w.Assign = func(h []*model.Holding, charges int, totals []weir.Costs) ([][]weir.Part, error) {
				if to, err := r.Assign(h, charges, totals); err == nil || len(totals) != 1 {
					return to, err
				}
				return r.Assign(h, charges, slices.Repeat(totals, charges))
			}
		}},
		{"sets that are missing are left out", "7.4", func(w, r *model.Rules) {
			w.Assign = func(h []*model.Holding, charges int, totals []weir.Costs) ([][]weir.Part, error) {
				if n := len(totals); n > 1 && n < charges {
					totals = append(slices.Clone(totals), make([]weir.Costs, charges-n)...)
				}
				return r.Assign(h, charges, totals)
			}
		}},
		{"a lease may take more slots", "7.4", func(w, _ *model.Rules) {
			w.CheckSlots = func(*model.Holding, []weir.Part) error { return nil }
		}},
		{"slots may be named up to what was reserved", "7.4", func(w, _ *model.Rules) {
			w.CheckSlots = func(*model.Holding, []weir.Part) error { return nil }
			w.Grown = func(l *weir.Limit, more *big.Int) *big.Int {
				if l.Kind == weir.Concurrency {
					return new(big.Int)
				}
				return more
			}
		}},
	}
}

func endRules() []rule {
	return []rule{
		{"a complete keeps the slots", "leaked slots", func(w, _ *model.Rules) {
			w.AtEnd = func(_ *model.Holding, asked []weir.Part) []weir.Part { return asked }
		}},
		{"a complete gives nothing back", "over-reservation blocking traffic", func(w, r *model.Rules) {
			w.AtEnd = func(h *model.Holding, asked []weir.Part) []weir.Part {
				if h.Limit.Kind != weir.Concurrency && r.Cost(asked).Cmp(r.Cost(h.Parts)) < 0 {
					return h.Parts
				}
				return r.AtEnd(h, asked)
			}
		}},
		{"a complete gives everything back", "7.2", func(w, r *model.Rules) {
			w.AtEnd = func(h *model.Holding, _ []weir.Part) []weir.Part { return r.AtCancel(h) }
		}},
		{"a complete keeps what the adjust said", "7.2", func(w, r *model.Rules) {
			w.AtEnd = func(h *model.Holding, _ []weir.Part) []weir.Part { return r.AtEnd(h, h.Parts) }
		}},
		{"a cancel gives nothing back", "7.3", func(w, _ *model.Rules) {
			w.AtCancel = func(h *model.Holding) []weir.Part { return h.Parts }
		}},
		{"a cancel leaves the slots", "leaked slots", func(w, r *model.Rules) {
			w.AtCancel = func(h *model.Holding) []weir.Part {
				if h.Limit.Kind == weir.Concurrency {
					return h.Parts
				}
				return r.AtCancel(h)
			}
		}},
		{"a cancel gives back twice", "double refunds", func(w, _ *model.Rules) {
			w.AtCancel = func(h *model.Holding) []weir.Part {
				parts := slices.Clone(h.Parts)
				for i := range parts {
					parts[i].Units = -parts[i].Units
				}
				return parts
			}
		}},
	}
}
