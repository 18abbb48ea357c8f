package conformance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// reserveMoves are the reservations, one for each thing that can become of one.
func (g *generator) reserveMoves() []move {
	return []move{
		{40, g.reserveFresh},
		{2, func() { g.again(weir.LeaseLive, false) }},
		{2, func() { g.again(weir.LeaseLive, true) }},
		{1, func() { g.again(weir.LeaseCompleted, g.chance(2)) }},
		{1, func() { g.again(weir.LeaseCancelled, g.chance(2)) }},
		{1, func() { g.again(weir.LeaseExpired, g.chance(2)) }},
		{2, func() { g.again(weir.LeaseVoided, g.chance(2)) }},
		{2, func() { g.reserve(g.freshID(), g.neverCharge()) }},
		{1, func() { g.reserve(g.freshID(), g.ghostCharge()) }},
		{1, func() { g.reserve(g.freshID(), g.nowhereCharge()) }},
		{3, g.reserveMalformed},
		{2, func() { g.reserve(g.oldID(), g.charge(1)) }},
		{1, func() { g.reserve(g.aheadID(), g.charge(1)) }},
		{2, g.reserveDeniedID},
		{2, g.reserveBringing},
		{3, g.reserveBringingWrong},
	}
}

func (g *generator) reserve(id weir.LeaseID, charges ...weir.Charge) {
	g.do(Op{Verb: opReserve, ID: id, Charges: charges})
}

// reserveFresh is a new reservation of one charge or several.
func (g *generator) reserveFresh() {
	id := g.freshID()
	if g.script.Size == 0 && g.chance(20) {
		id = weir.LeaseID{}
	}
	if !g.chance(5) {
		g.reserve(id, g.charge(1))
		return
	}
	n := g.between(2, 4)
	charges := make([]weir.Charge, n)
	for i := range charges {
		if i > 0 && g.chance(3) {
			charges[i] = charges[i-1]
			charges[i].Costs = maps.Clone(charges[i].Costs)
			continue
		}
		charges[i] = g.charge(n)
	}
	g.do(Op{Verb: opReserve, ID: id, Keyed: g.chance(6), Charges: charges})
}

// charge asks for what the limits of some subject have, a share of it.
func (g *generator) charge(share int64) weir.Charge {
	c := weir.Charge{Entity: choose(g, entities()), Resource: choose(g, resources())}
	chain := g.model.Chain(c.Entity, c.Resource)
	if len(chain) == 0 {
		return c
	}
	c.Costs = make(weir.Costs)
	for range g.between(1, 3) {
		l := choose(g, chain)
		c.Costs[l.Limit] = g.cost(&l, lowest(chain, l.Limit)) / share
	}
	return c
}

// cost is one that fits, or does not quite.
func (g *generator) cost(l *weir.LimitStatus, most int64) int64 {
	n := g.between(0, max(1, min(most, l.Capacity)/4))
	switch g.rng.IntN(12) {
	case 0:
		n = 0
	case 1, 2, 3:
		n = 1
	case 4, 5:
		n = max(0, l.Available)
	case 6:
		n = max(0, min(l.Available, most-1)+1)
	case 7:
		n = g.between(0, most)
	case 8:
		if l.Shadow {
			return l.Capacity + g.between(0, min(l.Capacity/2, math.MaxInt64-l.Capacity))
		}
	}
	return min(n, most)
}

// lowest is the most that all limits of a name could hold.
func lowest(chain []weir.LimitStatus, name string) int64 {
	most := int64(math.MaxInt64)
	for i := range chain {
		if l := &chain[i]; l.Limit == name && (!l.Shadow || l.Kind == weir.Bucket) {
			most = min(most, l.Capacity)
		}
	}
	if most == math.MaxInt64 {
		return 1000
	}
	return most
}

// neverCharge asks for more than a limit can hold.
func (g *generator) neverCharge() weir.Charge {
	c := g.charge(1)
	for _, l := range g.model.Chain(c.Entity, c.Resource) {
		if !l.Shadow && l.Capacity < math.MaxInt64-10 {
			c.Costs[l.Limit] = choose(g, []int64{l.Capacity + 1, l.Capacity + 10, math.MaxInt64})
			break
		}
	}
	return c
}

// ghostCharge names a limit that nobody has.
func (g *generator) ghostCharge() weir.Charge {
	c := g.charge(1)
	if c.Costs == nil {
		c.Costs = make(weir.Costs)
	}
	c.Costs["ghost"] = 1
	return c
}

// nowhereCharge is on a subject without limits, if there is one.
func (g *generator) nowhereCharge() weir.Charge {
	c := weir.Charge{Entity: "stranger", Resource: "nowhere", Costs: weir.Costs{"rpm": 1}}
	if g.chance(2) {
		c.Costs = nil
	}
	return c
}

// again repeats the reservation of a lease, or reserves something else under its ID.
func (g *generator) again(state weir.LeaseState, otherwise bool) {
	e := g.get(state)
	if e == nil {
		return
	}
	o := e.reserve
	if otherwise {
		o.Charges = slices.Clone(o.Charges)
		switch g.rng.IntN(3) {
		case 0:
			o.Charges = append(o.Charges, g.charge(1))
		case 1:
			o.Charges[0] = g.charge(1)
		default:
			o.Charges[0].Costs = g.otherCosts(o.Charges[0].Costs)
		}
	}
	g.do(o)
}

// otherCosts changes one cost.
func (g *generator) otherCosts(c weir.Costs) weir.Costs {
	c = maps.Clone(c)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		c[name]++
		break
	}
	return c
}

// reserveDeniedID uses the ID of a denial again.
func (g *generator) reserveDeniedID() {
	if len(g.denied) == 0 {
		g.reserveFresh()
		return
	}
	o := g.denied[len(g.denied)-1]
	if g.chance(2) {
		o.Charges, o.Bring = []weir.Charge{g.charge(1)}, nil
	}
	g.do(o)
}

// reserveMalformed has a mistake that can be seen without looking anything up.
func (g *generator) reserveMalformed() {
	c := g.charge(1)
	if c.Costs == nil {
		c.Costs = make(weir.Costs)
	}
	o := Op{Verb: opReserve, ID: g.freshID()}
	if e := g.pick(weir.LeaseLive); e != nil && g.chance(3) {
		o.ID = e.reserve.ID
	}
	switch g.rng.IntN(6) {
	case 0:
		c.Costs["rpm"] = choose(g, []int64{-1, math.MinInt64})
	case 1:
		c.Costs[choose(g, badNames())] = 1
	case 2:
		c.Entity = choose(g, badNames())
	case 3:
		c.Resource = choose(g, badNames())
	case 4:
		for range 16 {
			o.Charges = append(o.Charges, weir.Charge{Entity: "org", Resource: "gpt"})
		}
	case 5:
		for i := range 33 {
			c.Costs[fmt.Sprintf("n%d", i)] = 1
		}
	}
	o.Charges = append(o.Charges, c)
	g.do(o)
}

func badNames() []string {
	return []string{"", "a b", "ä", "\xff", "_x", "-x", "a;b", "x\n", "wcu "}
}

// freshID is a lease ID that may be used: of now, a little older, or up to a minute ahead.
func (g *generator) freshID() weir.LeaseID {
	now := g.model.Now().UnixMilli()
	switch g.rng.IntN(20) {
	case 0:
		now += g.between(1, 60_000)
	case 1:
		now -= g.between(1, min(60_000, g.memoryMS()))
	case 2:
		now -= g.memoryMS()
	case 3:
		now += 60_000
	}
	return g.id(now)
}

// oldID is one from before the horizon.
func (g *generator) oldID() weir.LeaseID {
	if g.chance(3) {
		return g.id(g.script.Start.UnixMilli() - g.between(1, 1000))
	}
	return g.id(g.model.Now().UnixMilli() - g.memoryMS() - choose(g, []int64{1, 1000, 3_600_000}))
}

// aheadID is one from more than a minute ahead.
func (g *generator) aheadID() weir.LeaseID {
	return g.id(g.model.Now().UnixMilli() + 60_000 + choose(g, []int64{1, 5000, 3_600_000}))
}

func (g *generator) memoryMS() int64 {
	if g.script.Memory == 0 {
		return (10 * time.Minute).Milliseconds()
	}
	return g.script.Memory.Milliseconds()
}

// id makes a lease ID with a time and the generator's own random bits.
func (g *generator) id(ms int64) weir.LeaseID {
	var id weir.LeaseID
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	for i := 6; i < len(id); i++ {
		id[i] = byte(g.rng.Uint32())
	}
	return id
}
