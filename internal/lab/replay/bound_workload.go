package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/lab/trace"
	"github.com/weir-limiter/weir/internal/text"
)

// boundWorkload is a workload with the limits that a service has for it.
type boundWorkload struct {
	*Workload

	payers   []*pricedCaller // by caller
	subjects []*subject      // callers by number, then their ancestors by name
}

// pricedCaller is a caller with the costs of its calls.
type pricedCaller struct {
	trace.EntityModel

	costs []namedCost // by name
	// chain has the caller and its ancestors.
	chain []*subject
}

// namedCost is the cost of a call on limits of a name.
type namedCost struct {
	limit string
	cost  Cost
	// slots reports whether the limit is a concurrency limit. Its slots return when the call is
	// settled.
	slots bool
}

// subject is an entity with the limits that apply to it on a resource.
type subject struct {
	entity, resource string
	parent           string // empty if it does not cascade
	limits           []weir.Limit
	caller           bool // false for an entity that makes no calls itself
	rank             int32
}

// UnfitError says why flags and limits do not fit each other.
type UnfitError string

// Error returns the message.
func (e UnfitError) Error() string { return string(e) }

// workloadBinder asks a service which limits apply.
type workloadBinder struct {
	*boundWorkload

	known map[[2]string]*subject // by entity and resource
	told  map[string]bool        // mistakes that were noted
	errs  []error
}

// bindWorkload asks a service which limits apply to each caller and its ancestors, and finds the
// cost of each call on them. It checks that every call has all costs and an end.
func bindWorkload(ctx context.Context, s weir.Service, w *Workload) (*boundWorkload, error) {
	p := &workloadBinder{
		boundWorkload: &boundWorkload{Workload: w, payers: make([]*pricedCaller, len(w.callers))},
		known:         map[[2]string]*subject{}, told: map[string]bool{},
	}
	for i, by := range w.callers {
		if err := ctx.Err(); err != nil { // there may be a million of them
			return nil, err
		}
		e, err := s.Explain(ctx, by.Entity, by.Resource)
		if err != nil {
			return nil, err
		}
		p.payers[i] = p.payer(by, e)
	}
	slices.SortFunc(p.subjects, func(a, b *subject) int {
		if a.caller != b.caller {
			return cmp.Compare(fromBool(b.caller), fromBool(a.caller))
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.entity, b.entity),
			strings.Compare(a.resource, b.resource))
	})
	for _, name := range slices.Sorted(maps.Keys(w.costs)) {
		if !w.spare && !p.charged(name) {
			p.errs = append(p.errs, w.uncharged(name))
		}
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return p.boundWorkload, p.check()
}

// uncharged returns the error for a cost that no call has.
func (w *Workload) uncharged(name string) error {
	return UnfitError(fmt.Sprintf(
		"--cost %s: no entity in the replay has such a limit on %s", name, w.resources()))
}

func fromBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// resources returns the names of the resources that are called.
func (w *Workload) resources() string {
	names := map[string]bool{}
	for _, by := range w.callers {
		names[by.Resource] = true
	}
	if len(names) == 1 {
		return w.callers[0].Resource
	}
	return "any of " + text.Plural(len(names), "resource", "resources")
}

// charged reports whether any call has a cost on limits of that name.
func (p *boundWorkload) charged(name string) bool {
	return slices.ContainsFunc(p.payers, func(p *pricedCaller) bool {
		return slices.ContainsFunc(p.costs, func(c namedCost) bool { return c.limit == name })
	})
}

// payer returns the costs of a caller's calls on every limit of its chain. A concurrency limit needs
// none, because a call takes one slot. Each missing cost is one mistake.
func (p *workloadBinder) payer(by trace.EntityModel, e *weir.Explanation) *pricedCaller {
	out := &pricedCaller{EntityModel: by}
	costs := map[string]namedCost{}
	limited := false
	for at := e; at != nil; at = at.Parent {
		for i := range at.Limits {
			l := &at.Limits[i]
			limited = true
			c, known := p.costs.find(l.Name)
			slots := l.Kind == weir.Concurrency
			if slots {
				c, known = p.costs[l.Name] // the built-in costs are for other kinds
			}
			switch {
			case known:
				costs[l.Name] = namedCost{l.Name, c, slots || costs[l.Name].slots}
			case !slots:
				p.addMistake("cost "+l.Name, fmt.Sprintf(
					"the cost of a call on the limit %s of %s is not known: give it with --cost %s=EXPR",
					l.Name, at.Entity, l.Name))
			}
		}
		s := p.subject(at)
		out.chain = append(out.chain, s)
		if at == e {
			s.caller, s.rank = true, by.Rank
		}
	}
	if !limited {
		advice := "; --resource names another"
		if p.trace.ModelColumn != "" {
			advice = ", which the trace names"
		}
		p.addMistake("nobody "+by.Resource, fmt.Sprintf(
			"no limits apply to %s on the resource %s%s", by.Entity, by.Resource, advice))
	}
	for _, name := range slices.Sorted(maps.Keys(costs)) {
		out.costs = append(out.costs, costs[name])
	}
	return out
}

// addMistake notes a mistake, once for each key.
func (p *workloadBinder) addMistake(key, mistake string) {
	if !p.told[key] {
		p.told[key] = true
		p.errs = append(p.errs, UnfitError(mistake))
	}
}

// subject returns the one subject for an entity and a resource.
func (p *workloadBinder) subject(e *weir.Explanation) *subject {
	key := [2]string{e.Entity, e.Resource}
	s := p.known[key]
	if s == nil {
		s = &subject{entity: e.Entity, resource: e.Resource, limits: e.Limits}
		if e.Parent != nil {
			s.parent = e.Parent.Entity
		}
		p.known[key] = s
		p.subjects = append(p.subjects, s)
	}
	return s
}

// check checks the duration and the costs of each call.
func (p *boundWorkload) check() error {
	for i := range p.calls {
		c := &p.calls[i]
		if _, ok := p.lasts(c); !ok {
			return fmt.Errorf("%s:%d: the call would last an hour or more, and a lease lives no longer",
				p.trace.Name, c.Line)
		}
		for _, n := range p.payers[c.Caller].costs {
			if _, ok := n.cost.units(c.Input, c.Output); !ok {
				return p.overflow(c, n, "the call")
			}
		}
	}
	return nil
}

func (p *boundWorkload) overflow(c *trace.Call, n namedCost, of string) error {
	return fmt.Errorf("%s:%d: the cost %s=%s of %s does not fit in 64 bits",
		p.trace.Name, c.Line, n.limit, n.cost, of)
}
