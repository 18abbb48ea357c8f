package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
)

// workload is what a replay asks: the calls of a trace, spread over tenants.
type workload struct {
	trace    string // its file's name, for messages
	calls    []call
	tenants  []int32 // who makes each call
	resource string
	latency  latency
	costs    costFlag

	payers   map[int32]*payer
	subjects []*subject // tenants by number, then their ancestors by name
}

// payer is a tenant and what its calls cost, by limit.
type payer struct {
	entity string
	costs  map[string]cost
	// slots are the names in costs that are concurrency limits: their slots return by themselves
	// when a call is settled.
	slots map[string]bool
}

// subject is an entity of the replay with the limits that apply to it.
type subject struct {
	entity, resource string
	parent           string // empty where it does not cascade
	limits           []weir.Limit
	tenant           int32 // its number, or noTenant
}

// noTenant is the number of those that make no calls of their own; it is above all others.
const noTenant = math.MaxInt32

// unfitError says where the flags and the limits file do not go together.
type unfitError string

// Error returns what to mend.
func (e unfitError) Error() string { return string(e) }

// attempt is one call on its way: what it asks, and when it ends.
type attempt struct {
	call     *call
	seq      int
	endMS    int64
	entity   string
	resource string
	lease    weir.LeaseID
	costs    weir.Costs
	// actuals are the costs again, without slots: those return when the call is settled.
	actuals weir.Costs
}

// resolve asks which limits apply to each tenant that has calls and to its ancestors, and what a
// call costs on each of them.
func (w *workload) resolve(ctx context.Context, service weir.Service) error {
	w.payers = map[int32]*payer{}
	used := slices.Clone(w.tenants)
	slices.Sort(used)
	known := map[string]*subject{}
	told := map[string]bool{}
	var errs []error
	for _, tenant := range slices.Compact(used) {
		explained, err := service.Explain(ctx, tenantName(int(tenant)), w.resource)
		if err != nil {
			return err
		}
		p, err := w.payer(explained, told)
		errs = append(errs, err)
		w.payers[tenant] = p
		for e := explained; e != nil; e = e.Parent {
			s := known[e.Entity]
			if s == nil {
				s = newSubject(e)
				known[e.Entity] = s
				w.subjects = append(w.subjects, s)
			}
			if e == explained {
				s.tenant = tenant
			}
		}
	}
	slices.SortFunc(w.subjects, func(a, b *subject) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), strings.Compare(a.entity, b.entity))
	})
	for _, name := range slices.Sorted(maps.Keys(w.costs)) {
		if !w.charged(name) {
			errs = append(errs, unfitError(fmt.Sprintf(
				"--cost %s: nobody in the replay has such a limit on %s", name, w.resource)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return w.check()
}

// charged reports whether any call has a cost on limits of that name.
func (w *workload) charged(name string) bool {
	for _, p := range w.payers {
		if _, ok := p.costs[name]; ok {
			return true
		}
	}
	return false
}

func newSubject(e *weir.Explanation) *subject {
	s := &subject{entity: e.Entity, resource: e.Resource, limits: e.Limits, tenant: noTenant}
	if e.Parent != nil {
		s.parent = e.Parent.Entity
	}
	return s
}

// payer finds the costs of a tenant's calls on every limit of its chain. A concurrency limit needs
// none: a call takes one slot. What lacks a cost is told once.
func (w *workload) payer(e *weir.Explanation, told map[string]bool) (*payer, error) {
	p := &payer{entity: e.Entity, costs: map[string]cost{}, slots: map[string]bool{}}
	limited := false
	var errs []error
	for at := e; at != nil; at = at.Parent {
		for i := range at.Limits {
			l := &at.Limits[i]
			limited = true
			c, ok := w.costs.find(l.Name)
			if l.Kind == weir.Concurrency {
				if c, ok = w.costs[l.Name]; ok {
					p.costs[l.Name], p.slots[l.Name] = c, true
				}
				continue
			}
			if !ok && !told[l.Name] {
				told[l.Name] = true
				errs = append(errs, unfitError(fmt.Sprintf(
					"what does a call cost on the limit %s of %s? Say it with --cost %s=EXPR",
					l.Name, at.Entity, l.Name)))
			}
			p.costs[l.Name] = c
		}
	}
	if !limited && !told[""] {
		told[""] = true
		errs = append(errs, unfitError(fmt.Sprintf(
			"nothing limits %s on the resource %s; --resource names another", e.Entity, w.resource)))
	}
	return p, errors.Join(errs...)
}

// check makes sure, before anything is replayed, that every call has costs and an end.
func (w *workload) check() error {
	for i := range w.calls {
		if _, err := w.attempt(i); err != nil {
			return err
		}
	}
	return nil
}

// attempt says what a call asks.
func (w *workload) attempt(i int) (*attempt, error) {
	c := &w.calls[i]
	p := w.payers[w.tenants[i]]
	a := &attempt{
		call: c, seq: i, entity: p.entity, resource: w.resource,
		costs: make(weir.Costs, len(p.costs)),
	}
	lasts, ok := w.latency.ms(c.output)
	if !ok {
		return nil, fmt.Errorf("%s:%d: the call would last an hour or more, and a lease does not",
			w.trace, c.line)
	}
	a.endMS = c.atMS + lasts
	for name, cost := range p.costs {
		n, ok := cost.units(c.input, c.output)
		if !ok {
			return nil, fmt.Errorf("%s:%d: the cost %s=%s of the call is more than 64 bits hold",
				w.trace, c.line, name, cost)
		}
		a.costs[name] = n
	}
	a.actuals = a.costs
	if len(p.slots) > 0 {
		a.actuals = make(weir.Costs, len(p.costs))
		for name, n := range a.costs {
			if !p.slots[name] {
				a.actuals[name] = n
			}
		}
	}
	return a, nil
}
