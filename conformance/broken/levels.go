package broken

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/limiter"
)

// levelRules returns variants that break section 5.
func levelRules() []pointVariant {
	levels := func(change func(right []weir.LevelLimits) []weir.LevelLimits) model.Points {
		return model.Points{Levels: func(_ weir.Subject, right []weir.LevelLimits) []weir.LevelLimits {
			return change(right)
		}}
	}
	without := func(level weir.Level) model.Points {
		return levels(func(right []weir.LevelLimits) []weir.LevelLimits {
			return slices.DeleteFunc(right, func(l weir.LevelLimits) bool { return l.Level == level })
		})
	}
	// ceiling changes the ceiling of limits that the request brings.
	ceiling := func(change func(t *model.Take, brought int64) int64) model.Points {
		return takes(func(p model.Planned, t *model.Take) {
			for _, b := range p.Brought {
				if b.Name == t.Limit.Name {
					t.Ceiling = change(t, b.Capacity)
				}
			}
		})
	}
	return []pointVariant{
		{"the weakest level wins", "5.1", levels(func(right []weir.LevelLimits) []weir.LevelLimits {
			slices.Reverse(right)
			return right
		})},
		{"the limiter's options win", "5.1", levels(func(right []weir.LevelLimits) []weir.LevelLimits {
			slices.SortStableFunc(right, func(a, b weir.LevelLimits) int {
				return rank(b.Level == weir.LevelLimiter) - rank(a.Level == weir.LevelLimiter)
			})
			return right
		})},
		{"the limiter's options are forgotten", "5.1", without(weir.LevelLimiter)},
		{"levels are merged", "5.1", levels(merged)},
		{"hidden levels are not explained", "5.1", levels(func(right []weir.LevelLimits) []weir.LevelLimits {
			return right[:min(len(right), 1)]
		})},
		{"a request's own limits never count", "5.2", without(weir.LevelRequest)},
		{"brought limits are ignored", "O1: brought limits ignored",
			ceiling(func(t *model.Take, _ int64) int64 { return t.Limit.Capacity })},
		{"brought limits may raise", "5.3", ceiling(func(t *model.Take, brought int64) int64 {
			if t.Named {
				return brought
			}
			return t.Limit.Capacity
		})},
		{"brought limits lower the ancestors", "5.3",
			ceiling(func(t *model.Take, brought int64) int64 { return min(t.Limit.Capacity, brought) })},
		{"brought limits are ignored on shadow limits", "5.3", ceiling(func(t *model.Take, brought int64) int64 {
			if t.Limit.Shadow || !t.Named {
				return t.Limit.Capacity
			}
			return min(t.Limit.Capacity, brought)
		})},
		{"brought limits that are not configured are ignored", "5.4",
			skipCheck("5.4", "is no limit of a named entity")},
		{"the kind of a brought limit does not matter", "5.4", skipCheck("5.4", "is another one")},
	}
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// merged adds to the strongest level the limits that only other levels have.
func merged(right []weir.LevelLimits) []weir.LevelLimits {
	for i := 1; i < len(right); i++ {
		for _, l := range right[i].Limits {
			if !has(right[0].Limits, l.Name) {
				right[0].Limits = append(slices.Clone(right[0].Limits), l)
			}
		}
	}
	return right
}

func has(limits []weir.Limit, name string) bool {
	return slices.ContainsFunc(limits, func(l weir.Limit) bool { return l.Name == name })
}

// statusFronts returns variants that break line 9.4.
func statusFronts() []wrappedVariant {
	// without leaves out the statuses that match, and calls an empty answer an error.
	type matcher func(asked string, s *weir.LimitStatus, all []weir.LimitStatus) bool
	without := func(match matcher) func(w *wrongWorld) {
		return func(w *wrongWorld) {
			w.status = func(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
				all, err := w.World.Status(ctx, entity, resource)
				var left []weir.LimitStatus
				for i := range all {
					if !match(entity, &all[i], all) {
						left = append(left, all[i])
					}
				}
				if err == nil && len(left) == 0 && resource != "" {
					err = refused(weir.NoLimits)
				}
				return left, err
			}
		}
	}
	return []wrappedVariant{
		{"a status lacks the ancestors", "9.4",
			without(func(asked string, s *weir.LimitStatus, _ []weir.LimitStatus) bool {
				return s.Entity != asked
			})},
		{"a status lacks an ancestor's limit that the entity has too", "9.4",
			without(func(asked string, s *weir.LimitStatus, all []weir.LimitStatus) bool {
				return s.Entity != asked && slices.ContainsFunc(all, func(o weir.LimitStatus) bool {
					return o.Entity == asked && o.Limit == s.Limit
				})
			})},
		{"a status without a resource lacks what only an ancestor uses", "9.4",
			func(w *wrongWorld) {
				w.status = func(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
					all, err := w.World.Status(ctx, entity, resource)
					return slices.DeleteFunc(all, func(s weir.LimitStatus) bool {
						return resource == "" && !slices.ContainsFunc(all, func(o weir.LimitStatus) bool {
							return o.Entity == entity && o.Resource == s.Resource && o.Available < o.Capacity
						})
					}), err
				}
			}},
		{"a status has a parent that is not charged", "9.4", func(w *wrongWorld) {
			parents := map[string]string{}
			w.setup = func(s *conformance.Setup) {
				if s.Definitions == nil {
					return
				}
				for name, e := range s.Definitions.Entities {
					parents[name] = e.Parent
				}
			}
			w.status = func(ctx context.Context, entity, resource string) ([]weir.LimitStatus, error) {
				all, err := w.World.Status(ctx, entity, resource)
				parent := parents[entity]
				of := func(s weir.LimitStatus) bool { return s.Entity == parent }
				if parent != "" && !slices.ContainsFunc(all, of) {
					more, _ := w.World.Status(ctx, parent, resource)
					all = append(all, more...)
				}
				return all, err
			}
		}},
	}
}

// cascadeFronts returns variants that break lines 9.1 and 9.2.
func cascadeFronts() []wrappedVariant {
	depth := func(n int) func(w *wrongWorld) { return set(func(o *limiter.Options) { o.CascadeDepth = n }) }
	return []wrappedVariant{
		{"a parent is charged without cascade", "9.1",
			cascade(func(e *weir.EntityDefinition) { e.Cascade = e.Parent != "" })},
		{"a parent is never charged", "9.1", cascade(func(e *weir.EntityDefinition) { e.Cascade = false })},
		{"a chain may be of any length", "9.1", depth(1 << 20)},
		{"a chain may have one level, whatever the option", "9.1", depth(1)},
		{"a chain is explained without its parents", "9.1", func(w *wrongWorld) {
			w.explain = func(ctx context.Context, entity, resource string) (*weir.Explanation, error) {
				e, err := w.World.Explain(ctx, entity, resource)
				if err == nil {
					e.Parent = nil
				}
				return e, err
			}
		}},
		{"entities and resources are joined with a slash", "3.9", asking(func(_ *wrongWorld, r *weir.Request) error {
			all := r.Entity + "/" + r.Resource
			if i := strings.LastIndexByte(all, '/'); len(r.Charges) == 0 && r.Entity != "" && r.Resource != "" {
				r.Entity, r.Resource = all[:i], all[i+1:]
			}
			return nil
		})},
		{"cycles are taken", "9.2", func(w *wrongWorld) {
			w.configure = func(d *weir.Definitions) error {
				if err := w.World.Configure(d); err != nil && len(d.Entities) == 0 {
					return err
				}
				return nil
			}
		}},
	}
}

// broughtFronts returns variants that break lines 5.3 and 5.4.
func broughtFronts() []wrappedVariant {
	return []wrappedVariant{
		{"an ancestor's limit may be brought", "5.4", asking(func(w *wrongWorld, r *weir.Request) error {
			e, err := w.World.Explain(context.Background(), r.Entity, r.Resource)
			if err != nil {
				return nil //nolint:nilerr // the model reports the mistake
			}
			r.Limits = slices.DeleteFunc(slices.Clone(r.Limits), func(l weir.Limit) bool {
				return !has(e.Limits, l.Name) && e.Parent != nil && has(e.Parent.Limits, l.Name)
			})
			return nil
		})},
		{"a brought capacity bounds the cost alone", "5.3", asking(func(_ *wrongWorld, r *weir.Request) error {
			if !slices.ContainsFunc(r.Limits, func(b weir.Limit) bool { return r.Costs[b.Name] > b.Capacity }) {
				r.Limits = nil
			}
			return nil
		})},
		{"a brought limit denies on a shadow limit", "5.3", answering(func(a *answer) {
			if a.err == nil && slices.ContainsFunc(a.lease.Limits, func(s weir.LimitStatus) bool {
				return s.Shadow && s.Exceeded && has(a.request.Limits, s.Limit)
			}) {
				_, _ = a.w.World.Cancel(context.Background(), a.lease.ID)
				a.fail(&weir.DeniedError{LeaseID: a.lease.ID, Limits: a.lease.Limits})
			}
		})},
		{"brought limits that are wrong are ignored", "5.4", asking(func(_ *wrongWorld, r *weir.Request) error {
			r.Limits = slices.DeleteFunc(slices.Clone(r.Limits),
				func(l weir.Limit) bool { return l.Validate() != nil })
			return nil
		})},
	}
}

// cascade changes each entity's parent or cascade.
func cascade(change func(e *weir.EntityDefinition)) func(w *wrongWorld) {
	changed := func(d *weir.Definitions) *weir.Definitions {
		if d == nil {
			return nil
		}
		c := *d
		c.Entities = maps.Clone(d.Entities)
		for name, e := range c.Entities {
			change(&e)
			c.Entities[name] = e
		}
		return &c
	}
	return func(w *wrongWorld) {
		w.setup = func(s *conformance.Setup) { s.Definitions = changed(s.Definitions) }
		w.configure = func(d *weir.Definitions) error { return w.World.Configure(changed(d)) }
	}
}
