package replay

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir"
)

// alone is how one declared limit is tried by itself: the calls that it judges, and the entities
// that have it, while nothing else denies.
type alone struct {
	*plan

	of       *declared
	entities map[string]bool // that are charged
}

// alone leaves out every call that the limit does not judge, as they change nothing for it: unless
// estimates are learned from all of them.
func (s *sizer) alone(d *declared) *alone {
	a := &alone{of: d, entities: map[string]bool{}}
	wanted := make([]bool, len(s.payers))
	payers := make([]*payer, len(s.payers))
	all := true
	for i, by := range s.payers {
		payers[i] = &payer{Caller: by.Caller, chain: by.chain}
		if wanted[i] = s.judges(d, by); wanted[i] {
			payers[i].costs = by.only(d)
		}
		wanted[i] = wanted[i] || s.options.Estimate.share > 0
		all = all && wanted[i]
		if !wanted[i] {
			continue
		}
		for _, at := range by.chain {
			a.entities[at.entity] = true
		}
	}
	w := *s.Workload
	if !all {
		w.calls = make([]Call, 0, d.calls)
		for i := range s.calls {
			if c := &s.calls[i]; wanted[c.Caller] {
				w.calls = append(w.calls, *c)
			}
		}
	}
	a.plan = &plan{Workload: &w, payers: payers}
	return a
}

// judges reports whether the limit judges the calls of a caller.
func (s *sizer) judges(d *declared, by *payer) bool {
	for _, at := range by.chain {
		if s.of[limitKey{at.entity, at.resource, d.limit.Name}] == d {
			return true
		}
	}
	return false
}

// only returns the costs on limits of one name.
func (p *payer) only(d *declared) []namedCost {
	return slices.DeleteFunc(slices.Clone(p.costs), func(c namedCost) bool {
		return c.limit != d.limit.Name
	})
}

// definitions has the one limit, with a capacity. In the place of all others stand limits that
// nobody asks for: a list without any limit would give way to another level's.
func (a *alone) definitions(whole *weir.Definitions, capacity int64) *weir.Definitions {
	other := "a"
	if a.of.limit.Name == other {
		other = "b"
	}
	charged := *whole
	charged.Entities = make(map[string]weir.EntityDefinition, len(a.entities))
	for name := range a.entities {
		if e, known := whole.Entities[name]; known {
			if !e.Cascade {
				e.Parent = ""
			}
			charged.Entities[name] = e
		}
	}
	return mapLists(&charged, func(place string, _ []weir.Limit) []weir.Limit {
		if place == a.of.place {
			return []weir.Limit{a.of.sized(capacity)}
		}
		return []weir.Limit{{Name: other, Capacity: 1, Shadow: true}}
	})
}

// try replays against one capacity by itself, until more calls are denied than most.
func (s *sizer) try(ctx context.Context, a *alone, capacity, most int64) (denial, error) {
	f := s.firstTries(most)
	if err := s.replay(ctx, a.plan, a.definitions(s.definitions, capacity), f); err != nil {
		return denial{}, err
	}
	return denial{calls: f.denied, whole: f.denied <= most}, nil
}
