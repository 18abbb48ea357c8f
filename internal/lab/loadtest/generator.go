package loadtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/clip"
)

// callStream is the second word of the generator's state; the seed is the first.
const callStream = 3

// call is one call: its costs, its think time, and the kind of its settlement.
type call struct {
	request *weir.Request
	// actuals are the costs without slots, which return when the call is settled.
	actuals weir.Costs
	think   time.Duration
	cancels bool
}

// generator makes the calls one after the other from one stream of random numbers. So the seed
// determines the n-th call, whichever goroutine makes it.
type generator struct {
	templates []*preparedTemplate
	weights   int64
	think     DurationRange
	cancel    int

	mu     sync.Mutex
	random *rand.Rand
}

func newGenerator(templates []*preparedTemplate, o *Options) *generator {
	g := &generator{
		templates: templates, think: o.Think, cancel: o.CancelPercent,
		random: rand.New(rand.NewPCG(o.Seed, callStream)),
	}
	for _, t := range templates {
		g.weights += t.Weight
	}
	return g
}

// next makes the next call. Calls may share their costs.
func (g *generator) next() *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := 0
	for at := g.between(1, g.weights) - g.templates[0].Weight; at > 0; at -= g.templates[i].Weight {
		i++ // draw a template by its weight
	}
	t := g.templates[i]
	c := &call{request: &weir.Request{Resource: t.Resource, Costs: t.costs}, actuals: t.actuals}
	c.request.Entity = t.Entity.name(g.between(0, t.Entity.count()-1))
	if t.costs == nil {
		c.request.Costs, c.actuals = t.amounts(func(a Amount) int64 { return g.between(a.Least, a.Most) })
	}
	c.think = time.Duration(g.between(int64(g.think.Least), int64(g.think.Most)))
	c.cancels = g.cancel > 0 && g.between(1, 100) <= int64(g.cancel)
	return c
}

// between draws a number from a range of non-negative numbers. It draws nothing if the range has
// only one.
func (g *generator) between(least, most int64) int64 {
	if least == most {
		return least
	}
	return least + int64(g.random.Uint64N(uint64(most-least)+1))
}

// preparedTemplate is a template with the service's answers about its costs.
type preparedTemplate struct {
	Template

	slots map[string]bool // costs on concurrency limits
	// costs and actuals are those of every call if no amount is drawn; nil otherwise.
	costs, actuals weir.Costs
}

// amounts fills in the costs of one call.
func (t *preparedTemplate) amounts(draw func(Amount) int64) (costs, actuals weir.Costs) {
	costs, actuals = make(weir.Costs, len(t.Costs)), make(weir.Costs, len(t.Costs))
	for _, a := range t.Costs {
		n := draw(a)
		costs[a.Limit] = n
		if !t.slots[a.Limit] {
			actuals[a.Limit] = n
		}
	}
	return costs, actuals
}

// prepareTemplates asks the service which limits apply, so that a mistake ends a run before its
// first call. Explain charges nothing. Of numbered entities it asks for the first and the last.
func prepareTemplates(ctx context.Context, s weir.Service, mix []Template) ([]*preparedTemplate, error) {
	var out []*preparedTemplate
	var errs []error
	for i := range mix {
		t := &preparedTemplate{Template: mix[i], slots: map[string]bool{}}
		err := t.explain(ctx, s, t.Entity.name(0))
		if last := t.Entity.count() - 1; err == nil && last > 0 {
			err = t.explain(ctx, s, t.Entity.name(last))
		}
		if errors.Is(err, weir.Unavailable) || ctx.Err() != nil {
			return nil, err // the next question would not be answered either
		}
		errs = append(errs, err)
		if !slices.ContainsFunc(t.Costs, func(a Amount) bool { return a.Least != a.Most }) {
			t.costs, t.actuals = t.amounts(func(a Amount) int64 { return a.Least })
		}
		out = append(out, t)
	}
	return out, errors.Join(errs...)
}

// explain checks the costs against the limits of one entity, and notes which of them are slots.
func (t *preparedTemplate) explain(ctx context.Context, s weir.Service, entity string) error {
	explained, err := s.Explain(ctx, entity, t.Resource)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for e := explained; e != nil; e = e.Parent {
		for i := range e.Limits {
			l := &e.Limits[i]
			known[l.Name] = true
			if l.Kind == weir.Concurrency {
				t.slots[l.Name] = true
			}
			for _, a := range t.Costs {
				if a.Limit == l.Name && a.Most > l.Capacity && !l.Shadow {
					return &weir.Error{
						Code: weir.NeverSatisfiable, Field: "costs." + a.Limit, Value: a.text(),
						Reason: fmt.Sprintf("%s/%s can hold at most %d", e.Entity, t.Resource, l.Capacity),
					}
				}
			}
		}
	}
	if len(known) == 0 {
		return &weir.Error{
			Code: weir.NoLimits, Field: "entity", Value: entity,
			Reason: fmt.Sprintf("no limits are configured for it on resource %q", t.Resource),
		}
	}
	for _, a := range t.Costs {
		if !known[a.Limit] {
			return &weir.Error{
				Code: weir.UnknownLimit, Field: "costs." + a.Limit, Value: a.text(),
				Reason: fmt.Sprintf("neither %q nor an entity that it cascades to has such a limit on %q: the limits here are %s",
					entity, t.Resource, clip.Names(slices.Collect(maps.Keys(known)))),
			}
		}
	}
	return nil
}
