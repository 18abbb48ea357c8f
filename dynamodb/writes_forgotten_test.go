package dynamodb

import (
	"time"

	"github.com/weir-limiter/weir"
)

// writesForgotten is about buckets that are as ones that nobody has used (docs/semantics.md, 8.4):
// only a reservation that is admitted, or a settlement, makes the process remember them. A raised
// capacity shows it: a bucket that is forgotten starts full, another one keeps its balance.
func writesForgotten() []neverCase {
	var cases []neverCase
	for name, o := range map[string]Options{
		"": {}, ", without speculation": {NoSpeculation: true}, ", with transactions": {Transactional: true},
	} {
		cases = append(cases,
			neverCase{"forgotten: denied by another limit" + name, deniedBeside(how{store: o})},
			neverCase{"forgotten: denied by a parent" + name, deniedAbove(how{store: o})},
			neverCase{"forgotten: full at a lower capacity" + name, fullWhenLowered(how{store: o})},
			neverCase{"forgotten: limits that nobody has asked" + name, neverAsked(how{store: o})},
		)
	}
	return cases
}

// set sets limits through a process that is tested.
func (p *process) set(at weir.Subject, limits ...weir.Limit) {
	p.w.Helper()
	if err := p.SetLimits(p.w.Context(), at, limits); err != nil {
		p.w.Fatalf("set limits: %v", err)
	}
	p.quiet()
}

// has expects so much of a limit to be available.
func (p *process) has(entity, limit string, want int64) {
	p.w.Helper()
	statuses, err := p.Status(p.w.Context(), entity, neverResource)
	if err != nil {
		p.w.Fatalf("status: %v", err)
	}
	for _, st := range statuses {
		if st.Limit == limit {
			equal(p.w, "available of "+limit+" on "+entity, st.Available, want)
		}
	}
}

// deniedBeside: the second denial is one that is remembered, and the clock steps back.
func deniedBeside(o how) func(w *neverWorld) {
	return func(w *neverWorld) {
		spent := still("spent", 1)
		w.system(per("n", 10, 10, time.Minute), spent)
		p := w.process(o)
		p.admit(neverEntity, weir.Costs{"n": 5, "spent": 1})
		w.clock.Advance(time.Hour)
		p.deny(neverEntity, weir.Costs{"n": 1, "spent": 1})
		p.deny(neverEntity, weir.Costs{"n": 1, "spent": 1})
		w.clock.Advance(-5 * time.Second)
		p.set(weir.Subject{}, still("n", 30), spent)
		p.has(neverEntity, "n", 30)
		p.exactly(neverEntity, "n", 30, 30)
	}
}

// deniedAbove: the child's bucket is charged, or made, before the parent denies, and given back.
func deniedAbove(o how) func(w *neverWorld) {
	return func(w *neverWorld) {
		w.system(per("n", 10, 10, time.Minute))
		w.limits(weir.Subject{Entity: "parent", Resource: neverResource}, still("n", 10))
		w.family("used", "parent")
		w.family("unused", "parent")
		p := w.process(o)
		p.admit("used", weir.Costs{"n": 5})
		p.admit("parent", weir.Costs{"n": 5})
		w.clock.Advance(time.Hour)
		p.deny("used", weir.Costs{"n": 1})
		p.deny("unused", weir.Costs{"n": 1})
		w.clock.Advance(time.Second)
		p.set(weir.Subject{}, still("n", 30))
		for _, e := range []string{"used", "unused"} {
			p.has(e, "n", 30)
			if err := p.SetEntity(w.Context(), e, "", false); err != nil {
				w.Fatalf("set entity: %v", err)
			}
			p.exactly(e, "n", 30, 30)
		}
	}
}

// fullWhenLowered: a call that a parent denies has asked the child's bucket all the same. A lower
// capacity trims it then, so that it is full, and forgotten a minute later.
func fullWhenLowered(o how) func(w *neverWorld) {
	return func(w *neverWorld) {
		w.system(still("n", 10))
		w.limits(weir.Subject{Entity: "parent", Resource: neverResource}, still("n", 1))
		w.family(neverEntity, "parent")
		p := w.process(o)
		p.admit(neverEntity, weir.Costs{"n": 1})
		p.set(weir.Subject{}, still("n", 5))
		p.deny(neverEntity, weir.Costs{"n": 1})
		w.clock.Advance(59 * time.Second)
		p.has(neverEntity, "n", 5)
		w.clock.Advance(time.Second)
		p.set(weir.Subject{}, still("n", 10))
		p.has(neverEntity, "n", 10)
	}
}

// neverAsked: a limit is on the item since another one was asked.
func neverAsked(o how) func(w *neverWorld) {
	return func(w *neverWorld) {
		asked := still("asked", 10)
		w.system(asked, still("n", 10))
		p := w.process(o)
		p.admit(neverEntity, weir.Costs{"asked": 1})
		p.set(weir.Subject{}, asked, still("n", 30), still("added", 10))
		p.has(neverEntity, "n", 30)
		p.admit(neverEntity, weir.Costs{"asked": 1})
		p.set(weir.Subject{}, asked, still("n", 40), still("added", 20))
		p.has(neverEntity, "n", 40)
		p.has(neverEntity, "added", 20)
		p.admit(neverEntity, weir.Costs{"n": 1, "added": 1})
		p.set(weir.Subject{}, asked, still("n", 50), still("added", 30))
		p.has(neverEntity, "n", 39)
		p.has(neverEntity, "added", 19)
		p.has(neverEntity, "asked", 8)
	}
}
