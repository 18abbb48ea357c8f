package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-limiter/weir"
)

// parseBy parses a block that is played in the name of a caller.
func parseBy(in *scanner, o *stepParts) (func(p *scriptPlayer), error) {
	caller := in.name()
	steps, err := o.block()
	return func(p *scriptPlayer) {
		at := *p.caseWorld
		at.T = callerT{p.T, weir.ContextWithCaller(p.Context(), caller)}
		(&scriptPlayer{&at, p.ids, p.answers, p.made}).play(steps)
	}, err
}

// callerT is a T whose context carries a caller.
type callerT struct {
	T

	ctx context.Context
}

func (t callerT) Context() context.Context { return t.ctx }

// parseWhere parses a block that is played if a store has a leeway or trait ("where"), or if it
// does not ("unless").
func parseWhere(verb string, in *scanner, o *stepParts) (func(p *scriptPlayer), error) {
	word := in.name()
	has := map[string]func(h *Harness) bool{
		"Remembers": func(h *Harness) bool { return h.NeverForgetsEarly },
	}[word]
	if has == nil {
		return nil, fmt.Errorf("%q is no leeway or trait", word)
	}
	var entity string
	var costs weir.Costs
	if in.skip(" ") {
		entity = in.name()
		in.expect(" ")
		costs = in.costs()
	}
	steps, err := o.block()
	return func(p *scriptPlayer) {
		holds := has(&p.h)
		for name, n := range costs {
			holds = holds && p.available(entity, name) == n
		}
		if holds == (verb == "where") {
			p.play(steps)
		}
	}, err
}

// parseExplain parses a step whose indented lines are the expected levels.
func parseExplain(in *scanner, o *stepParts) (func(p *scriptPlayer), error) {
	entity := in.name()
	in.expect(" ")
	name := in.name()
	var want []string
	for _, l := range o.line.block {
		want = append(want, l.text)
	}
	return func(p *scriptPlayer) {
		e, err := p.Explain(p.Context(), entity, name)
		if p.answered(err, o.checks) {
			p.equal("levels", strings.Join(levelsOf(e), "; "), strings.Join(want, "; "))
		}
	}, nil
}

// levelsOf returns the levels of an explanation in words: the entity, the level and the capacities.
func levelsOf(e *weir.Explanation) []string {
	if e == nil {
		return nil
	}
	var lines []string
	for _, l := range append([]weir.LevelLimits{{Level: e.Level, Limits: e.Limits}}, e.Hidden...) {
		capacities := make(weir.Costs)
		for i := range l.Limits {
			capacities[l.Limits[i].Name] = l.Limits[i].Capacity
		}
		lines = append(lines, e.Entity+" "+string(l.Level)+" "+costsText(capacities))
	}
	return append(lines, levelsOf(e.Parent)...)
}
