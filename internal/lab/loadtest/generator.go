package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// callStream is the second word of the generator's state; the seed is the first.
const callStream = 3

// call is one call: what it asks, how long it thinks, and how it is settled.
type call struct {
	request *weir.Request
	// actuals are the costs again, without slots: those return when the call is settled.
	actuals weir.Costs
	think   time.Duration
	cancels bool
}

// generator makes the calls, one after the other, from one stream of random numbers. So a seed
// decides what the n-th call asks, in whichever goroutine it is made.
type generator struct {
	templates []*preparedTemplate
	weights   int64
	think     DurationRange
	cancel    int

	mu     sync.Mutex
	random *rand.Rand
}

// preparedTemplate is a template with what the service knows of its costs.
type preparedTemplate struct {
	Template

	// slots are the costs on concurrency limits.
	slots map[string]bool
	// costs and actuals are those of every call where no amount is drawn; nil otherwise.
	costs, actuals weir.Costs
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

// newReadied works out what the calls of a template have in common.
func newReadied(t *Template, slots map[string]bool) *preparedTemplate {
	r := &preparedTemplate{Template: *t, slots: slots}
	for _, a := range t.Costs {
		if a.Least != a.Most {
			return r
		}
	}
	r.costs, r.actuals = r.amounts(func(a Amount) int64 { return a.Least })
	return r
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

// next makes the next call. What it shares with others is only read.
func (g *generator) next() *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.pick()
	c := &call{request: &weir.Request{Resource: t.Resource, Costs: t.costs}, actuals: t.actuals}
	c.request.Entity = t.Entity.name(g.between(0, t.Entity.count()-1))
	if t.costs == nil {
		c.request.Costs, c.actuals = t.amounts(func(a Amount) int64 { return g.between(a.Least, a.Most) })
	}
	c.think = time.Duration(g.between(int64(g.think.Least), int64(g.think.Most)))
	c.cancels = g.cancel > 0 && g.between(1, 100) <= int64(g.cancel)
	return c
}

// pick draws a template by its weight.
func (g *generator) pick() *preparedTemplate {
	at := g.between(1, g.weights)
	for _, t := range g.templates {
		if at -= t.Weight; at <= 0 {
			return t
		}
	}
	panic("load: weights do not add up")
}

// between draws from least to most; nothing is drawn where they are the same.
func (g *generator) between(least, most int64) int64 {
	if least == most {
		return least
	}
	// Both are at least 0, so the count fits.
	return least + int64(g.random.Uint64N(uint64(most-least)+1))
}

// prepareTemplates asks the service which limits apply, so that a mistake ends a run before its
// first call. Explain charges nothing. Of numbered entities the first and the last are asked for.
func prepareTemplates(ctx context.Context, s weir.Service, mix []Template) ([]*preparedTemplate, error) {
	var out []*preparedTemplate
	var errs []error
	for i := range mix {
		t := &mix[i]
		slots := map[string]bool{}
		err := t.explain(ctx, s, t.Entity.name(0), slots)
		if last := t.Entity.count() - 1; err == nil && last > 0 {
			err = t.explain(ctx, s, t.Entity.name(last), slots)
		}
		if errors.Is(err, weir.Unavailable) || ctx.Err() != nil {
			return nil, err // the next one would not be answered either
		}
		errs = append(errs, err)
		out = append(out, newReadied(t, slots))
	}
	return out, errors.Join(errs...)
}

// explain checks the costs against the limits of one entity, and notes which of them are slots.
func (t *Template) explain(
	ctx context.Context, s weir.Service, entity string, slots map[string]bool,
) error {
	explained, err := s.Explain(ctx, entity, t.Resource)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	configured := false
	for e := explained; e != nil; e = e.Parent {
		for i := range e.Limits {
			l := &e.Limits[i]
			configured, known[l.Name] = true, true
			if l.Kind == weir.Concurrency {
				slots[l.Name] = true
			}
			if err := t.fits(l, e.Entity); err != nil {
				return err
			}
		}
	}
	if !configured {
		return &weir.Error{
			Code: weir.NoLimits, Field: "entity", Value: entity,
			Reason: fmt.Sprintf("nothing is configured for resource %q", t.Resource),
		}
	}
	for _, a := range t.Costs {
		if !known[a.Limit] {
			return &weir.Error{
				Code: weir.UnknownLimit, Field: "costs." + a.Limit, Value: a.text(),
				Reason: fmt.Sprintf("neither %q nor an entity that it cascades to has such a limit on %q",
					entity, t.Resource),
			}
		}
	}
	return nil
}

// fits refuses a cost that a limit can never hold, however empty it is.
func (t *Template) fits(l *weir.Limit, entity string) error {
	for _, a := range t.Costs {
		if a.Limit == l.Name && a.Most > l.Capacity && !l.Shadow {
			return &weir.Error{
				Code: weir.NeverSatisfiable, Field: "costs." + a.Limit, Value: a.text(),
				Reason: fmt.Sprintf("%s/%s can hold at most %d", entity, t.Resource, l.Capacity),
			}
		}
	}
	return nil
}

func (a Amount) text() string {
	if a.Least == a.Most {
		return fmt.Sprint(a.Least)
	}
	return fmt.Sprintf("%d..%d", a.Least, a.Most)
}
