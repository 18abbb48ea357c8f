package conformance

import (
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// reserveBringing brings limits: some of those in force, lower or higher, or all where nothing is
// configured.
func (g *generator) reserveBringing() {
	c := g.charge(1)
	o := Op{Verb: opReserve, ID: g.freshID()}
	chain := g.model.Chain(c.Entity, c.Resource)
	if len(chain) == 0 {
		o.Bring = g.bringable()
		c.Costs = make(weir.Costs)
		for _, l := range o.Bring {
			if g.chance(2) {
				c.Costs[l.Name] = g.between(0, max(1, l.Capacity/3))
			}
		}
	}
	for i := range chain {
		l := &chain[i]
		if l.Entity == c.Entity && g.chance(2) {
			o.Bring = append(o.Bring, bring(l, g.between(max(1, l.Capacity/2), l.Capacity+1)))
		}
	}
	o.Charges = []weir.Charge{c}
	if g.chance(3) {
		o.Charges = append(o.Charges, g.charge(2))
	}
	g.do(o)
}

// bring is a limit of the same name and kind as one in force.
func bring(l *weir.LimitStatus, capacity int64) weir.Limit {
	b := weir.Limit{Name: l.Limit, Kind: l.Kind, Capacity: capacity}
	switch l.Kind {
	case weir.Bucket:
		b.Capacity = min(capacity, maxBucket)
	case weir.Window:
		b.Window = time.Minute
	case weir.Concurrency:
		b.Timeout = 30 * time.Second
	case weir.Budget:
		b.Every = "day"
	}
	return b
}

const maxBucket = 9_223_372_036_854_775

// reserveBringingWrong brings a limit that cannot be brought.
func (g *generator) reserveBringingWrong() {
	c := g.charge(1)
	o := Op{Verb: opReserve, ID: g.freshID(), Charges: []weir.Charge{c}}
	chain := g.model.Chain(c.Entity, c.Resource)
	own := slices.IndexFunc(chain, func(l weir.LimitStatus) bool { return l.Entity == c.Entity })
	switch n := g.rng.IntN(4); {
	case n == 0:
		o.Bring = []weir.Limit{{Name: "ghost", Kind: weir.Bucket, Capacity: 1}}
	case n == 1 && own >= 0:
		l := chain[own]
		for _, k := range g.profile.Traits.Kinds { // the last of the others, where there is one
			if k != chain[own].Kind {
				l.Kind = k
			}
		}
		o.Bring = []weir.Limit{bring(&l, 1)}
	case n == 2:
		o.Bring = []weir.Limit{{Name: "rpm", Kind: weir.Bucket}}
	default:
		l := weir.Limit{Name: "rpm", Kind: weir.Bucket, Capacity: 1}
		o.Bring = []weir.Limit{l, l}
	}
	g.do(o)
}
