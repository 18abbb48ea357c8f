package broken

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/conformance/model"
	"github.com/weir-limiter/weir/driver"
)

// takes changes what is asked of each limit that a request reaches.
func takes(change func(p model.Planned, t *model.Take)) model.Points {
	return model.Points{Takes: func(p model.Planned, right []*model.Take) []*model.Take {
		for _, t := range right {
			change(p, t)
		}
		return right
	}}
}

// named reports whether a charge that reaches a limit names it.
func named(p model.Planned, t *model.Take) bool {
	return slices.ContainsFunc(t.Charges, func(i int) bool {
		_, ok := p.Charges[i].Costs[t.Limit.Name]
		return ok
	})
}

// partRules returns variants that break lines 3.2 and 3.3.
func partRules() []pointVariant {
	// unnamed changes what is asked of limits that are not named.
	unnamed := func(change func(t *model.Take)) model.Points {
		return takes(func(p model.Planned, t *model.Take) {
			if !named(p, t) {
				change(t)
			}
		})
	}
	return []pointVariant{
		{"negative costs are taken for credit", "V1: negative costs", skipCheck("3.2", "is negative")},
		{"any number of charges", "3.2", skipCheck("3.2", "are too many")},
		{"unknown names are skipped", "3.4", skipCheck("3.4", "")},
		{"only the first charge on a limit counts", "3.2", takes(func(_ model.Planned, t *model.Take) {
			t.Parts = t.Parts[:min(len(t.Parts), 1)]
		})},
		{"limits that are not named are judged", "3.3", unnamed(func(t *model.Take) {
			if len(t.Parts) == 0 {
				t.Parts = []driver.Part{{Charge: t.Charges[0]}}
			}
		})},
		{"every limit costs 1 that is not named", "3.3", unnamed(func(t *model.Take) {
			t.Parts = []driver.Part{{Charge: t.Charges[0], Units: 1}}
		})},
		{"slots that are not named are free", "3.3", unnamed(func(t *model.Take) { t.Parts = nil })},
	}
}

// slotRules returns variants that break lines 2.3 and 3.3.
func slotRules() []pointVariant {
	slots := func(change func(p model.Planned, t *model.Take)) model.Points {
		return takes(func(p model.Planned, t *model.Take) {
			if t.Limit.Kind == weir.Concurrency {
				change(p, t)
			}
		})
	}
	// slot changes what is taken of slots that no charge names.
	slot := func(change func(t *model.Take)) model.Points {
		return slots(func(p model.Planned, t *model.Take) {
			if !named(p, t) {
				change(t)
			}
		})
	}
	return []pointVariant{
		{"a request takes a slot besides those it names", "3.3", slots(func(p model.Planned, t *model.Take) {
			if named(p, t) {
				t.Parts[0].Units++
			}
		})},
		{"each charge takes a slot", "3.3", slot(func(t *model.Take) {
			t.Parts = nil
			for _, i := range t.Charges {
				t.Parts = append(t.Parts, driver.Part{Charge: i, Units: 1})
			}
		})},
		{"the slot belongs to the last charge", "3.3", slot(func(t *model.Take) {
			t.Parts = []driver.Part{{Charge: t.Charges[len(t.Charges)-1], Units: 1}}
		})},
		{"every request takes one slot", "amount ignored by concurrency",
			slots(func(_ model.Planned, t *model.Take) { t.Parts = []driver.Part{{Charge: t.Charges[0], Units: 1}} })},
		{"a request takes at most one slot", "amount ignored by concurrency",
			slots(func(_ model.Planned, t *model.Take) {
				for i := range t.Parts {
					t.Parts[i].Units = min(t.Parts[i].Units, 1)
				}
			})},
	}
}

// planRules returns variants that break lines 3.5 and 3.7.
func planRules() []pointVariant {
	// never replaces the rule of which sums of costs on a limit are refused as never satisfiable.
	never := func(which func(t *model.Take, sum *big.Int, right bool) bool) model.Points {
		return model.Points{Refuse: func(c model.Check, right error) error {
			if c.Line != "3.5" {
				return right
			}
			if !which(c.Take, sumOf(c.Take.Parts), right != nil) {
				return nil
			}
			return cmp.Or(right, refused(weir.NeverSatisfiable))
		}}
	}
	order := func(change func(right []*model.Take) []*model.Take) model.Points {
		return model.Points{Takes: func(_ model.Planned, right []*model.Take) []*model.Take {
			return change(right)
		}}
	}
	return []pointVariant{
		{"what can never be is denied", "3.5", skipCheck("3.5", "")},
		{"a cost as large as the capacity is never satisfiable", "3.5",
			never(func(t *model.Take, sum *big.Int, right bool) bool {
				return right || !t.Limit.Shadow && sum.Cmp(num(t.Ceiling)) == 0
			})},
		{"a brought ceiling is only judged", "5.3",
			never(func(t *model.Take, sum *big.Int, right bool) bool {
				return right && sum.Cmp(num(t.Limit.Capacity)) > 0
			})},
		{"shadow limits are never satisfiable", "3.6",
			never(func(t *model.Take, sum *big.Int, _ bool) bool { return sum.Cmp(num(t.Ceiling)) > 0 })},
		{"parents are judged first", "3.7", order(func(right []*model.Take) []*model.Take {
			slices.Reverse(right)
			return right
		})},
		{"limits are judged by name alone", "3.7", order(func(right []*model.Take) []*model.Take {
			slices.SortStableFunc(right, func(a, b *model.Take) int {
				return strings.Compare(a.Limit.Name, b.Limit.Name)
			})
			return right
		})},
		{"the last fault is reported", "3.5", order(func(right []*model.Take) []*model.Take {
			for i, t := range slices.Backward(right) {
				if sumOf(t.Parts).Cmp(num(t.Ceiling)) > 0 {
					return append([]*model.Take{t}, slices.Delete(right, i, i+1)...)
				}
			}
			return right
		})},
	}
}

// requestFronts returns variants that break lines 3.1, 3.2, 3.4, 6.1 and 6.5.
func requestFronts() []wrappedVariant {
	return []wrappedVariant{
		{"at most 15 charges", "3.2", asking(func(_ *wrongWorld, r *weir.Request) error {
			if len(r.Charges) > 15 {
				return refused(weir.Invalid)
			}
			return nil
		})},
		{"both forms of charges are taken", "3.2", asking(func(_ *wrongWorld, r *weir.Request) error {
			if len(r.Charges) > 0 {
				r.Entity, r.Resource, r.Costs = "", "", nil
			}
			return nil
		})},
		{"every entity must have every name", "3.4", asking(everyName)},
		{"no limits is the same as an unknown limit", "3.4", failing(weir.NoLimits, func(a *answer) {
			a.err = refused(weir.UnknownLimit)
		})},
		{"what can never be looks like a denial", "errors that look like denials",
			failing(weir.NeverSatisfiable, func(a *answer) { a.err = &weir.DeniedError{} })},
		{"what is never satisfiable is charged in part", "3.1", failing(weir.NeverSatisfiable, func(a *answer) {
			if r := a.request; len(r.Charges) > 0 {
				_, _ = a.w.World.Reserve(context.Background(), &weir.Request{Charges: r.Charges[:1]})
			}
		})},
		{"the caller's lease ID is dropped", "6.1", asking(func(_ *wrongWorld, r *weir.Request) error {
			r.LeaseID = weir.LeaseID{}
			return nil
		})},
		{"a refused request leaves a lease", "6.5", failing(weir.NeverSatisfiable, func(a *answer) {
			if !a.request.LeaseID.IsZero() {
				a.leave(a.request.LeaseID)
			}
		})},
		{"a denied request leaves a lease", "6.5", denying(func(a *answer, d *weir.DeniedError) {
			a.leave(d.LeaseID)
		})},
	}
}

// leave replaces the answer with a lease with the request's ID that stands for nothing.
func (a *answer) leave(id weir.LeaseID) {
	_, _ = a.w.World.Reserve(context.Background(),
		&weir.Request{LeaseID: id, Entity: a.request.Entity, Resource: a.request.Resource})
}

// everyName refuses a name that any entity of a chain does not have.
func everyName(w *wrongWorld, r *weir.Request) error {
	e, err := w.World.Explain(context.Background(), r.Entity, r.Resource)
	if err != nil {
		return nil //nolint:nilerr // the model reports the mistake
	}
	for ; e != nil; e = e.Parent {
		for name := range r.Costs {
			if !has(e.Limits, name) {
				return refused(weir.UnknownLimit)
			}
		}
	}
	return nil
}
