package broken

import (
	"math/big"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
)

// configRules break section 5 and lines 9.1.
func configRules() []rule {
	return append([]rule{
		{"the weakest level wins", "5.1", func(w, r *model.Rules) {
			w.Levels = func(stored *weir.Config, limiter []weir.Limit) []weir.LevelLimits {
				levels := r.Levels(stored, limiter)
				slices.Reverse(levels)
				return levels
			}
		}},
		{"the limiter's options win", "5.1", func(w, r *model.Rules) {
			w.Levels = func(stored *weir.Config, limiter []weir.Limit) []weir.LevelLimits {
				return append(r.Levels(&weir.Config{}, limiter), r.Levels(stored, nil)...)
			}
		}},
		{"the limiter's options are forgotten", "5.1", func(w, r *model.Rules) {
			w.Levels = func(stored *weir.Config, _ []weir.Limit) []weir.LevelLimits { return r.Levels(stored, nil) }
		}},
		{"levels are merged", "5.1", func(w, r *model.Rules) {
			w.Winner = func(levels []weir.LevelLimits) (weir.LevelLimits, []weir.LevelLimits) {
				win, hidden := r.Winner(levels)
				win.Limits = slices.Clone(win.Limits)
				for _, h := range hidden {
					for _, l := range h.Limits {
						known := func(o weir.Limit) bool { return o.Name == l.Name }
						if !slices.ContainsFunc(win.Limits, known) {
							win.Limits = append(win.Limits, l)
						}
					}
				}
				return win, hidden
			}
		}},
		{"hidden levels are not explained", "5.1", func(w, r *model.Rules) {
			w.Winner = func(levels []weir.LevelLimits) (weir.LevelLimits, []weir.LevelLimits) {
				win, _ := r.Winner(levels)
				return win, nil
			}
		}},
		{"a request's own limits never count", "5.2", func(w, _ *model.Rules) {
			w.Unconfigured = func([]weir.Limit) weir.LevelLimits { return weir.LevelLimits{} }
		}},
		{"a parent is charged without cascade", "9.1", func(w, _ *model.Rules) {
			w.Above = func(c *weir.Config) string { return c.Parent }
		}},
		{"a parent is never charged", "9.1", func(w, _ *model.Rules) {
			w.Above = func(*weir.Config) string { return "" }
		}},
		{"a chain may be of any length", "9.1", func(w, _ *model.Rules) {
			w.TooDeep = func(int, int) bool { return false }
		}},
		{"a chain may have one level, whatever the option", "9.1", func(w, _ *model.Rules) {
			w.TooDeep = func(ancestors, _ int) bool { return ancestors > 1 }
		}},
	}, broughtRules()...)
}

func broughtRules() []rule {
	ceiling := func(f func(l *weir.Limit, b *weir.Limit, named bool) int64) func(w, r *model.Rules) {
		return func(w, _ *model.Rules) {
			w.Ceiling = func(l *weir.Limit, brought []weir.Limit, named bool) int64 {
				for i := range brought {
					if brought[i].Name == l.Name {
						return f(l, &brought[i], named)
					}
				}
				return l.Capacity
			}
		}
	}
	return []rule{
		{"brought limits are ignored", "O1: brought limits ignored",
			ceiling(func(l, _ *weir.Limit, _ bool) int64 { return l.Capacity })},
		{"brought limits may raise", "5.3", ceiling(func(l, b *weir.Limit, named bool) int64 {
			if named {
				return b.Capacity
			}
			return l.Capacity
		})},
		{"brought limits lower the ancestors", "5.3",
			ceiling(func(l, b *weir.Limit, _ bool) int64 { return min(l.Capacity, b.Capacity) })},
		{"brought limits that nobody has are ignored", "5.4", func(w, r *model.Rules) {
			w.CheckBrought = func(brought []weir.Limit, reached []*model.Reach) error {
				if err := r.CheckBrought(brought, reached); weirCode(err) != weir.UnknownLimit {
					return err
				}
				return nil
			}
		}},
		{"the kind of a brought limit does not matter", "5.4", func(w, r *model.Rules) {
			w.CheckBrought = func(brought []weir.Limit, reached []*model.Reach) error {
				if err := r.CheckBrought(brought, reached); weirCode(err) != weir.Invalid {
					return err
				}
				return nil
			}
		}},
		{"an ancestor's limit may be brought", "5.4", func(w, r *model.Rules) {
			w.CheckBrought = func(brought []weir.Limit, reached []*model.Reach) error {
				var all []*model.Reach
				for _, reach := range reached {
					c := *reach
					c.Named = true
					all = append(all, &c)
				}
				return r.CheckBrought(brought, all)
			}
		}},
	}
}

// planRules break lines 3.5 and 3.7.
func planRules() []rule {
	return []rule{
		{"what can never be is denied", "3.5", func(w, _ *model.Rules) {
			w.CheckCost = func(*model.Take) error { return nil }
		}},
		{
			"what can never be looks like a denial",
			"errors that look like denials",
			func(w, r *model.Rules) {
				w.CheckCost = func(t *model.Take) error {
					if r.CheckCost(t) != nil {
						return &weir.DeniedError{}
					}
					return nil
				}
			},
		},
		{"a cost as large as the capacity is never satisfiable", "3.5", func(w, r *model.Rules) {
			w.CheckCost = func(t *model.Take) error {
				c := *t
				c.Parts = append(slices.Clone(t.Parts), weir.Part{Units: 1})
				if !t.Limit.Shadow && r.Cost(t.Parts).Cmp(big.NewInt(t.Ceiling)) == 0 {
					return r.CheckCost(&c)
				}
				return r.CheckCost(t)
			}
		}},
		{"a brought ceiling is only judged", "5.3", func(w, r *model.Rules) {
			w.CheckCost = func(t *model.Take) error {
				c := *t
				c.Ceiling = t.Limit.Capacity
				return r.CheckCost(&c)
			}
		}},
		{"parents are judged first", "3.7", func(w, _ *model.Rules) {
			w.Order = func(takes []*model.Take) []*model.Take {
				takes = slices.Clone(takes)
				slices.Reverse(takes)
				return takes
			}
		}},
		{"limits are judged by name alone", "3.7", func(w, _ *model.Rules) {
			w.Order = func(takes []*model.Take) []*model.Take {
				takes = slices.Clone(takes)
				slices.SortStableFunc(takes, func(a, b *model.Take) int {
					return strings.Compare(a.Limit.Name, b.Limit.Name)
				})
				return takes
			}
		}},
		{"the last fault is reported", "3.5", func(w, r *model.Rules) {
			w.Order = func(takes []*model.Take) []*model.Take {
				for i, t := range slices.Backward(takes) {
					if r.CheckCost(t) != nil {
						return append([]*model.Take{t}, slices.Delete(slices.Clone(takes), i, i+1)...)
					}
				}
				return takes
			}
		}},
		{"judging and taking are two steps", "concurrent requests that together pass a limit",
			func(w, _ *model.Rules) {
				w.Gap = func(lock sync.Locker) {
					lock.Unlock()
					runtime.Gosched()
					lock.Lock()
				}
			}},
	}
}
