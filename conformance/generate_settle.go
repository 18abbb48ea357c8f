package conformance

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// settleMoves are the verbs on leases, one for each state that a lease can be in.
func (g *generator) settleMoves() []move {
	live, expired := weir.LeaseLive, weir.LeaseExpired
	completed, cancelled := weir.LeaseCompleted, weir.LeaseCancelled
	moves := []move{
		{4, func() { g.on(live, g.adjust) }},
		{4, func() { g.on(live, g.adjustMore) }},
		{2, g.growAndShrink},
		{5, func() { g.on(live, g.adjustAgain) }},
		{5, func() { g.on(live, g.complete) }},
		{2, func() { g.on(completed, func(e *tracked) Op { return e.end }) }},
		{1, func() { g.on(completed, g.complete) }},
		{4, func() { g.on(live, verb(opCancel)) }},
		{4, func() { g.on(live, verb(opExtend)) }},
		{9, func() { g.on(live, g.wrong) }},
		{5, func() { g.on(choose(g, []weir.LeaseState{live, completed}), g.malformed) }},
	}
	for _, v := range []func(*tracked) Op{g.adjust, g.complete, verb(opCancel), verb(opExtend)} {
		for _, s := range []weir.LeaseState{completed, cancelled, expired, weir.LeaseVoided} {
			moves = append(moves, move{1, func() { g.on(s, v) }})
		}
		moves = append(moves, move{1, func() { g.onUnknown(v) }})
	}
	return moves
}

// on does something to a lease in a state, if there is one.
func (g *generator) on(state weir.LeaseState, what func(*tracked) Op) {
	if e := g.get(state); e != nil {
		g.do(what(e))
	}
}

// onUnknown does something to a lease that never was, or has been forgotten.
func (g *generator) onUnknown(what func(*tracked) Op) {
	e := &tracked{reserve: Op{ID: g.freshID(), Charges: []weir.Charge{g.charge(1)}}}
	g.do(what(e))
}

func verb(name string) func(*tracked) Op {
	return func(e *tracked) Op { return Op{Verb: name, ID: e.reserve.ID} }
}

func (g *generator) adjust(e *tracked) Op {
	return Op{
		Verb: opAdjust, ID: e.reserve.ID, Seq: e.adjust.Seq + g.between(1, 3), Totals: g.totals(e),
	}
}

// adjustMore adjusts a lease that was adjusted before, so that its units were taken at several
// instants.
func (g *generator) adjustMore(e *tracked) Op { return g.adjust(g.adjusted(e)) }

// growAndShrink lets a lease take units at several instants and give some back, and watches them
// return.
func (g *generator) growAndShrink() {
	e := g.get(weir.LeaseLive)
	if e == nil {
		return
	}
	for _, factor := range []int64{2, 3, 1} {
		o := g.adjust(e)
		o.Totals = nil
		for _, c := range e.reserve.Charges {
			set := make(weir.Costs)
			for _, name := range slices.Sorted(maps.Keys(c.Costs)) {
				if n := c.Costs[name]; n < maxBucket/10 && !e.slots(name) {
					set[name] = n*factor + g.between(0, 1)
				}
			}
			o.Totals = append(o.Totals, set)
		}
		g.do(o)
		g.advance(g.between(1, 5000), time.Millisecond)
	}
	g.watch(e)
	g.watch(e)
}

// adjusted is a live lease that was adjusted, or e.
func (g *generator) adjusted(e *tracked) *tracked {
	for _, o := range g.leases {
		if e.adjust.Seq == 0 && o.adjust.Seq > 0 && g.model.StateOf(o.reserve.ID) == weir.LeaseLive {
			e = o
		}
	}
	return e
}

// adjustAgain repeats the last adjust, or comes with an older number.
func (g *generator) adjustAgain(e *tracked) Op {
	if e = g.adjusted(e); e.adjust.Seq == 0 {
		return g.adjust(e)
	}
	o := e.adjust
	if o.Seq > 1 && g.chance(2) {
		o.Seq = g.between(1, o.Seq-1)
	}
	if g.chance(3) {
		o.Totals = []weir.Costs{{"ghost": 1}}
	}
	return o
}

func (g *generator) complete(e *tracked) Op {
	return Op{Verb: opComplete, ID: e.reserve.ID, Totals: g.totals(e)}
}

// totals are such as a lease can stand for: one set, one for each charge, or none.
func (g *generator) totals(e *tracked) []weir.Costs {
	if g.chance(8) {
		return nil
	}
	var totals []weir.Costs
	for _, c := range e.reserve.Charges {
		set := make(weir.Costs)
		for _, name := range slices.Sorted(maps.Keys(c.Costs)) {
			if !g.chance(4) {
				set[name] = g.total(e, name, c.Costs[name])
			}
		}
		totals = append(totals, set)
	}
	if e.reserve.Keyed && !g.chance(8) {
		return []weir.Costs{fullNames(e.reserve.Charges, totals)}
	}
	if len(totals) > 1 && g.chance(3) && apart(e.reserve.Charges) {
		for _, set := range totals[1:] {
			maps.Copy(totals[0], set)
		}
		return totals[:1]
	}
	return totals
}

// fullNames makes one set of full names out of totals for each charge.
func fullNames(charges []weir.Charge, totals []weir.Costs) weir.Costs {
	set := make(weir.Costs)
	for i, c := range charges {
		for name, n := range totals[i] {
			set[weir.Subject{Entity: c.Entity, Resource: c.Resource}.FullName(name)] = n
		}
	}
	return set
}

// apart is true where no two charges name the same limit.
func apart(charges []weir.Charge) bool {
	seen := make(map[string]bool)
	for _, c := range charges {
		for name := range c.Costs {
			if seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

// slots is true where a name is one of a concurrency limit, which cannot grow.
func (e *tracked) slots(name string) bool {
	return slices.ContainsFunc(e.limits, func(l weir.LimitStatus) bool {
		return l.Limit == name && l.Kind == weir.Concurrency
	})
}

// total is what a lease that reserved n units may turn out to use.
func (g *generator) total(e *tracked, name string, n int64) int64 {
	if e.slots(name) {
		return g.between(0, n)
	}
	switch g.rng.IntN(6) {
	case 0:
		return 0
	case 1:
		return n
	case 2, 3:
		return g.between(0, n)
	case 4:
		return min(n, maxBucket/10)*2 + 1
	default:
		return min(n, maxBucket/10) + g.between(1, 5)
	}
}

// sharing is a live lease whose charges name one limit several times, or e.
func (g *generator) sharing(e *tracked) *tracked {
	for _, o := range g.leases {
		if !o.reserve.Keyed && !apart(o.reserve.Charges) && g.model.StateOf(o.reserve.ID) == weir.LeaseLive {
			return o
		}
	}
	return e
}

// wrong is a settlement that is well-formed but does not fit its lease.
func (g *generator) wrong(e *tracked) Op {
	if g.chance(4) {
		e = g.sharing(e)
	}
	o := g.adjust(e)
	if g.chance(2) {
		o = g.complete(e)
	}
	charge := choose(g, e.reserve.Charges)
	switch g.rng.IntN(8) { // two of them are the default
	case 0:
		o.Totals = []weir.Costs{{"ghost": 1}}
	case 6: // of another charge, or of a lease that is not keyed
		other := g.charge(1)
		o.Totals = []weir.Costs{fullNames([]weir.Charge{other}, []weir.Costs{{"rpm": 1}})}
	case 1:
		o.Totals = make([]weir.Costs, len(e.reserve.Charges)+1+g.rng.IntN(2))
	case 2:
		o.Totals = []weir.Costs{{"par": 100}}
	case 3:
		o.Totals = []weir.Costs{maps.Clone(charge.Costs)}
	default:
		o.Totals = []weir.Costs{{}}
		for _, name := range slices.Sorted(maps.Keys(charge.Costs)) {
			o.Totals[0][name] = choose(g, []int64{math.MaxInt64, maxBucket + 1, maxBucket})
		}
	}
	return o
}

// malformed is a settlement with a mistake that can be seen without looking up its lease.
func (g *generator) malformed(e *tracked) Op {
	o := g.adjust(e)
	if g.chance(2) {
		o = g.complete(e)
	}
	switch n := g.rng.IntN(3); {
	case n == 0 && o.Verb == opAdjust:
		o.Seq = choose(g, []int64{0, -1})
	case n == 1:
		o.Totals = []weir.Costs{{choose(g, badNames()): 1}}
	default:
		o.Totals = []weir.Costs{{"rpm": -1}}
	}
	return o
}
