package dynamodb

import (
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
)

// writesOverflow returns cases with amounts that would overflow a balance.
func writesOverflow() []mistakeCase {
	return []mistakeCase{
		{"overflow: a cost that no bucket can hold, on an unknown item", overflowingCost},
		{"overflow: costs whose sum is too large, on an unknown item", overflowTogether},
		{"overflow: leases that together grow by more than a balance can hold", overflowingGrowth},
		{"overflow: a settlement that one limit refuses is not half done", refusedInPart(false)},
		{"overflow: a settlement that the parent refuses is not half done", refusedInPart(true)},
	}
}

// largestUnits is the largest capacity and cost of a bucket.
const largestUnits = maxUnits

// overflowingCost checks that such a cost is not ignored if the item has no such limit.
func overflowingCost(w *tableWorld) {
	w.system(noRefill("a", 100), noRefill("b", 100))
	w.process().admit(testEntity, weir.Costs{"a": 1, "b": 1})
	p := w.process()
	for _, c := range []weir.Costs{
		{"a": 1, "b": 1 << 62}, {"a": 1, "b": 1 << 62}, {"a": 1, "b": largestUnits + 1}, {"a": 1, "none": 1 << 62},
	} {
		if l, err := p.ask(testEntity, c); err == nil {
			w.Errorf("%v: admitted %+v", c, l.Limits)
		}
		w.process().refused(c)
	}
	equal(w, "consumed of a", w.stored(testEntity, 0, "a").Consumed, 1000)
	p.admit(testEntity, weir.Costs{"a": 99, "b": 99})
}

// refused checks that a request fails or is denied.
func (p *process) refused(c weir.Costs) {
	p.w.Helper()
	if l, err := p.ask(testEntity, c); err == nil {
		p.w.Errorf("%v: a new process admitted %+v", c, l.Limits)
	}
}

// overflowTogether has three requests wait for a first write, as if the table throttled it. Two of
// them together do not pass the limit; all three do, and overflow an integer.
func overflowTogether(w *tableWorld) {
	const cost = 4_000_000_000_000_000
	w.system(per("n", largestUnits, 1, time.Hour))
	w.process().admit(testEntity, weir.Costs{"n": 1})
	p := w.process()
	var members []*bucketitem.Waiter
	for range 3 {
		members = append(members, p.inLine("n", cost, nil))
	}
	p.line(testEntity).Commit(&bucketitem.Batch{Waiters: members})
	p.quiet()
	counts := make(map[bucketitem.ResultKind]int)
	for _, m := range members {
		counts[(<-m.Answer).Kind]++
	}
	if counts[bucketitem.Taken] != 2 || counts[bucketitem.Denied] != 1 {
		w.Errorf("the results are %v, want two taken and one denied", counts)
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance/1000, largestUnits-1-2*cost)
	fresh := w.process()
	fresh.deny(testEntity, weir.Costs{"n": cost})
	fresh.admit(testEntity, weir.Costs{"n": 1})
}

// overflowingGrowth tests two charges that fit a balance one by one, and do not fit it together.
func overflowingGrowth(w *tableWorld) {
	w.limits(testSubject(), per("n", largestUnits, 1, time.Hour))
	p := w.process()
	p.admit(testEntity, weir.Costs{"n": 1})
	errs := make([]error, 3)
	b := &bucketitem.Batch{}
	for i := range errs {
		b.Updates = append(b.Updates, &bucketitem.Update{
			Now:    w.clock.Now().UnixMilli(),
			Deltas: []bucketitem.Delta{{Name: "n", Milli: largestUnits * 1000}},
			Done:   func(err error) { errs[i] = err },
		})
	}
	p.line(testEntity).Commit(b)
	p.quiet()
	for i, err := range errs {
		if i == 0 && err != nil || i > 0 && !errors.Is(err, weir.Invalid) {
			w.Errorf("growth %d: got %v, want invalid but for the first", i, err)
		}
	}
	equal(w, "left", w.stored(testEntity, 0, "n").Balance, -1000)
	p.deny(testEntity, weir.Costs{"n": 1})
	w.process().deny(testEntity, weir.Costs{"n": 1})
}

// refusedInPart tests a limit that overflows, on the same item or only on the parent's. Then
// nothing is refunded on the other limit or on the child.
func refusedInPart(parent bool) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(noRefill("n", 20), noRefill("t", 1000))
		deep, all := testEntity, []string{testEntity}
		if parent {
			deep, all = "parent", []string{testEntity, "parent"}
			w.family(testEntity, deep)
		}
		p := w.process()
		l := p.admit(testEntity, weir.Costs{"n": 4, "t": 1})
		debt := p.admit(deep, weir.Costs{"t": 1})
		p.must(debt.Complete(w.Context(), weir.Costs{"t": largestUnits}))
		_, err := l.Complete(w.Context(), weir.Costs{"n": 1, "t": largestUnits})
		p.quiet()
		if !errors.Is(err, weir.Invalid) {
			w.Errorf("complete: got %v, want invalid", err)
		}
		for _, e := range all {
			equal(w, e+": left of n", w.stored(e, 0, "n").Balance, 16_000)
		}
		if parent {
			equal(w, "left of the child's t", w.stored(testEntity, 0, "t").Balance, 999_000)
		}
		p.must(l.Complete(w.Context(), weir.Costs{"n": 1, "t": 1}))
		for _, e := range all {
			equal(w, e+": left of n, completed with less", w.stored(e, 0, "n").Balance, 19_000)
		}
	}
}
