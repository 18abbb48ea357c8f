package conformance

import (
	"time"

	"github.com/weir-limiter/weir"
)

// otherMoves are those that are no verb on a lease.
func (g *generator) otherMoves() []move {
	return []move{
		{16, func() { g.advance(g.between(0, 5), time.Millisecond) }},
		{3, func() { g.advance(g.between(1, 2500), time.Microsecond) }},
		{10, func() { g.advance(g.between(10, 900), time.Millisecond) }},
		{14, func() { g.advance(g.between(1000, 15_000), time.Millisecond) }},
		{4, func() { g.advance(g.between(1, 10), time.Minute) }},
		{2, func() { g.advance(g.between(20, 200), time.Minute) }},
		{1, func() { g.advance(g.between(8, 80), time.Hour) }},
		{4, g.stepBack},
		{8, g.retry},
		{3, g.toPeriodEnd},
		{3, g.toLeaseEnd},
		{3, g.toHoldEnd},
		{4, g.toReturn},
		{2, g.toMemoryEnd},
		{5, func() { g.do(g.statusOp(choose(g, entities()), choose(g, resources()))) }},
		{2, func() { g.do(g.statusOp(choose(g, entities()), "")) }},
		{1, func() { g.do(g.statusOp(choose(g, badNames()), choose(g, resources()))) }},
		{2, func() { g.do(g.explainOp(choose(g, entities()), choose(g, resources()))) }},
		{1, func() { g.do(g.explainOp(choose(g, entities()), choose(g, badNames()))) }},
		{3, g.configure},
	}
}

func (g *generator) statusOp(entity, resource string) Op {
	return Op{Verb: opStatus, Entity: entity, Resource: resource}
}

func (g *generator) explainOp(entity, resource string) Op {
	return Op{Verb: opExplain, Entity: entity, Resource: resource}
}

func (g *generator) advance(n int64, unit time.Duration) {
	g.do(Op{Verb: opAdvance, By: time.Duration(n) * unit})
}

// stepBack lets the clock go back by at most five seconds.
func (g *generator) stepBack() {
	if g.profile.NoSkew {
		return
	}
	g.advance(-g.between(1, choose(g, []int64{10, 1000, 5000})), time.Millisecond)
}

// advanceTo goes to about an instant, most often exactly there.
func (g *generator) advanceTo(t time.Time) {
	off := choose(g, []time.Duration{0, 0, 0, -time.Millisecond, time.Millisecond})
	by := t.Sub(g.model.Now().Truncate(time.Millisecond)) + off
	if by > 0 && by < farthest {
		g.do(Op{Verb: opAdvance, By: by})
	}
}

// farthest is how far one step of time goes, so that a script stays around its start.
const farthest = 40 * 24 * time.Hour

// retry waits as long as a denial has said, or a millisecond less, and asks again.
func (g *generator) retry() {
	if len(g.denied) == 0 || g.wait > farthest {
		return
	}
	again := g.denied[len(g.denied)-1]
	by := g.wait
	if g.chance(3) {
		by -= time.Millisecond
	}
	g.do(Op{Verb: opAdvance, By: by})
	again.ID = g.freshID()
	g.do(again)
}

// toPeriodEnd goes to where a budget's period ends.
func (g *generator) toPeriodEnd() {
	l := weir.Limit{Every: choose(g, everies()), Zone: choose(g, zones())}
	if g.chance(2) {
		l.Every = "hour"
	}
	_, end := g.profile.Calendar.Period(&l, g.model.Now().UnixMilli())
	g.advanceTo(time.UnixMilli(end))
}

func (g *generator) toLeaseEnd() {
	if e := g.pick(weir.LeaseLive); e != nil {
		g.advanceTo(e.expires)
	}
}

func (g *generator) toHoldEnd() {
	if e := g.pick(weir.LeaseLive); e != nil && !e.holds.IsZero() {
		g.advanceTo(e.holds)
	}
}

// toReturn goes to where units of a lease's limits return, and looks at them.
func (g *generator) toReturn() {
	if e := g.pick(weir.LeaseLive); e != nil {
		g.watch(e)
	}
}

func (g *generator) watch(e *tracked) {
	c := choose(g, e.reserve.Charges)
	if ends := g.model.Returns(c.Entity, c.Resource); len(ends) > 0 {
		g.advanceTo(choose(g, ends[:min(4, len(ends))]))
	}
	g.do(g.statusOp(c.Entity, c.Resource))
}

// toMemoryEnd goes to where an ended lease is forgotten, and asks for it.
func (g *generator) toMemoryEnd() {
	e := g.get(choose(g, []weir.LeaseState{weir.LeaseCompleted, weir.LeaseCancelled, weir.LeaseExpired}))
	if e == nil {
		return
	}
	last := e.ended
	if last.IsZero() {
		last = e.expires
	}
	if id := e.reserve.ID.Time(); id.After(last) {
		last = id
	}
	g.advanceTo(last.Add(time.Duration(g.memoryMS()) * time.Millisecond))
	g.do(choose(g, []Op{{Verb: opCancel, ID: e.reserve.ID}, e.reserve}))
}
