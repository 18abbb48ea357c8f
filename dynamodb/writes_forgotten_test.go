package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
)

// writesForgotten returns cases of buckets that count as never used (docs/semantics.md, 8.4): only
// an admitted reservation or a settlement makes the process remember them. A raised capacity shows
// it: a forgotten bucket starts full, another one keeps its balance.
func writesForgotten() []mistakeCase {
	var cases []mistakeCase
	for name, o := range map[string]Options{
		"": {}, ", without speculation": {NoSpeculation: true}, ", with transactions": {Transactional: true},
	} {
		cases = append(cases,
			mistakeCase{"forgotten: denied by another limit" + name, deniedBeside(processOptions{store: o})},
			mistakeCase{"forgotten: denied by a parent" + name, deniedAbove(processOptions{store: o})},
			mistakeCase{"forgotten: full at a lower capacity" + name, fullWhenLowered(processOptions{store: o})},
			mistakeCase{"forgotten: limits that were never named" + name, neverNamed(processOptions{store: o})},
		)
	}
	return cases
}

// set sets limits with a tested process.
func (p *process) set(at weir.Subject, limits ...weir.Limit) {
	p.w.Helper()
	if err := p.SetLimits(p.w.Context(), at, limits); err != nil {
		p.w.Fatalf("set limits: %v", err)
	}
	p.quiet()
}

// has checks the available units of a limit.
func (p *process) has(entity, limit string, want int64) {
	p.w.Helper()
	statuses, err := p.Status(p.w.Context(), entity, testResource)
	if err != nil {
		p.w.Fatalf("status: %v", err)
	}
	for _, st := range statuses {
		if st.Entity == entity && st.Limit == limit {
			equal(p.w, "available of "+limit+" on "+entity, st.Available, want)
		}
	}
}

// deniedBeside has another limit deny twice, the second time from memory, and has the clock step
// back.
func deniedBeside(o processOptions) func(w *tableWorld) {
	return func(w *tableWorld) {
		spent := noRefill("spent", 1)
		w.system(per("n", 10, 10, time.Minute), spent)
		p := w.process(o)
		p.admit(testEntity, weir.Costs{"n": 5, "spent": 1})
		w.clock.Advance(time.Hour)
		p.deny(testEntity, weir.Costs{"n": 1, "spent": 1})
		p.deny(testEntity, weir.Costs{"n": 1, "spent": 1})
		w.clock.Advance(-5 * time.Second)
		p.set(weir.Subject{}, noRefill("n", 30), spent)
		p.has(testEntity, "n", 30)
		p.exactly(testEntity, "n", 30, 30)
	}
}

// deniedAbove tests a child's item that is charged or created before the parent denies, and is then
// refunded.
func deniedAbove(o processOptions) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(per("n", 10, 10, time.Minute))
		w.limits(weir.Subject{Entity: "parent", Resource: testResource}, noRefill("n", 10))
		w.family("used", "parent")
		w.family("unused", "parent")
		p := w.process(o)
		p.admit("used", weir.Costs{"n": 5})
		p.admit("parent", weir.Costs{"n": 5})
		w.clock.Advance(time.Hour)
		p.deny("used", weir.Costs{"n": 1})
		p.deny("unused", weir.Costs{"n": 1})
		w.clock.Advance(time.Second)
		p.set(weir.Subject{}, noRefill("n", 30))
		for _, e := range []string{"used", "unused"} {
			p.has(e, "n", 30)
			if err := p.SetEntity(w.Context(), e, "", false); err != nil {
				w.Fatalf("set entity: %v", err)
			}
			p.exactly(e, "n", 30, 30)
		}
	}
}

// fullWhenLowered checks that a request that a parent denies still touches the child's bucket. If
// the capacity was lowered, the touch trims the bucket, which is then full, and forgotten a minute
// later.
func fullWhenLowered(o processOptions) func(w *tableWorld) {
	return func(w *tableWorld) {
		w.system(noRefill("n", 10))
		w.limits(weir.Subject{Entity: "parent", Resource: testResource}, noRefill("n", 1))
		w.family(testEntity, "parent")
		p := w.process(o)
		p.admit(testEntity, weir.Costs{"n": 1})
		p.set(weir.Subject{}, noRefill("n", 5))
		p.deny(testEntity, weir.Costs{"n": 1})
		w.clock.Advance(59 * time.Second)
		p.has(testEntity, "n", 5)
		w.clock.Advance(time.Second)
		p.set(weir.Subject{}, noRefill("n", 10))
		p.has(testEntity, "n", 10)
	}
}

// neverNamed tests a limit that is on the item only because a request named another one.
func neverNamed(o processOptions) func(w *tableWorld) {
	return func(w *tableWorld) {
		asked := noRefill("asked", 10)
		w.system(asked, noRefill("n", 10))
		p := w.process(o)
		p.admit(testEntity, weir.Costs{"asked": 1})
		p.set(weir.Subject{}, asked, noRefill("n", 30), noRefill("added", 10))
		p.has(testEntity, "n", 30)
		p.admit(testEntity, weir.Costs{"asked": 1})
		p.set(weir.Subject{}, asked, noRefill("n", 40), noRefill("added", 20))
		p.has(testEntity, "n", 40)
		p.has(testEntity, "added", 20)
		p.admit(testEntity, weir.Costs{"n": 1, "added": 1})
		p.set(weir.Subject{}, asked, noRefill("n", 50), noRefill("added", 30))
		p.has(testEntity, "n", 39)
		p.has(testEntity, "added", 19)
		p.has(testEntity, "asked", 8)
	}
}
