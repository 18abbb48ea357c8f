package conformance

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// reducer makes a script that fails shorter, as long as it still fails.
type reducer struct {
	t     T
	h     *Harness
	best  *Script
	runs  int
	until time.Time
}

// reduceFor bounds the time of a reduction, because a store may be far slower than the model.
const reduceFor = time.Minute

// reduceRuns is how many runs a reduction may take.
const reduceRuns = 3000

// reduce returns a script that still fails and from which no operation, limit or cost can go.
func reduce(t T, h *Harness, s *Script) *Script {
	r := &reducer{
		t: quietly(t), h: h, best: s, until: time.Now().Add(reduceFor),
	}
	for before := 0; before != r.size() && r.runs < reduceRuns; {
		before = r.size()
		r.dropOps()
		r.startConfigured()
		r.joinAdvances()
		r.simplifyOps()
		r.dropSets()
		r.dropEntities()
		r.dropLimits()
	}
	return r.best
}

func (r *reducer) size() int { return len(r.best.String()) }

// fails tries a script, and keeps it if it fails. One that cannot be opened does not.
func (r *reducer) fails(s *Script) (failed bool) {
	r.runs++
	if time.Now().After(r.until) {
		return false // what has been reached must do
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case givenUp:
			failed = false
		default:
			panic(p)
		}
	}()
	if d := replay(r.t, r.h, s); d != nil {
		s.Ops = s.Ops[:d.step+1]
		r.best = s
		return true
	}
	return false
}

func (r *reducer) with(change func(s *Script)) bool {
	s := *r.best
	s.Ops, s.Sets = slices.Clone(s.Ops), slices.Clone(s.Sets)
	change(&s)
	return r.fails(&s)
}

// dropOps leaves out runs of operations, long ones first.
func (r *reducer) dropOps() {
	for size := len(r.best.Ops) / 2; size > 0; size /= 2 {
		for i := len(r.best.Ops) - size; i >= 0; i -= size {
			if i+size <= len(r.best.Ops) && r.runs < reduceRuns {
				r.with(func(s *Script) { s.Ops = slices.Delete(s.Ops, i, i+size) })
			}
		}
	}
}

// startConfigured begins with the definitions that are configured later on.
func (r *reducer) startConfigured() {
	for i := len(r.best.Ops) - 1; i >= 0; i-- {
		if i >= len(r.best.Ops) || r.best.Ops[i].Verb != opConfigure {
			continue
		}
		r.with(func(s *Script) {
			later := slices.IndexFunc(s.Sets, func(x Set) bool { return x.Name == s.Ops[i].Set })
			if later > 0 {
				s.Sets[0], s.Sets[later] = s.Sets[later], s.Sets[0]
			}
			s.Ops = slices.Delete(s.Ops, i, i+1)
		})
	}
}

// joinAdvances makes neighbouring steps of time one.
func (r *reducer) joinAdvances() {
	for i := len(r.best.Ops) - 2; i >= 0; i-- {
		if i+1 < len(r.best.Ops) && r.best.Ops[i].By > 0 && r.best.Ops[i+1].By > 0 {
			r.with(func(s *Script) {
				s.Ops[i].By += s.Ops[i+1].By
				s.Ops = slices.Delete(s.Ops, i+1, i+2)
			})
		}
	}
}

// simplifyOps leaves out charges, costs, brought limits and totals.
func (r *reducer) simplifyOps() {
	for i := 0; i < len(r.best.Ops); i++ {
		for again := true; again && i < len(r.best.Ops); {
			again = slices.ContainsFunc(simpler(r.best.Ops[i]), func(o Op) bool {
				return r.with(func(s *Script) { s.Ops[i] = o })
			})
		}
	}
}

// simpler are an operation's versions with one thing less.
func simpler(o Op) []Op {
	var all []Op
	for i, c := range o.Charges {
		if len(o.Charges) > 1 {
			less := o
			less.Charges = slices.Delete(slices.Clone(o.Charges), i, i+1)
			all = append(all, less)
		}
		for _, costs := range lessCosts(c.Costs) {
			less := o
			less.Charges = slices.Clone(o.Charges)
			less.Charges[i].Costs = costs
			all = append(all, less)
		}
	}
	for i := range o.Bring {
		less := o
		less.Bring = slices.Delete(slices.Clone(o.Bring), i, i+1)
		all = append(all, less)
	}
	for i, c := range o.Totals {
		for _, costs := range lessCosts(c) {
			less := o
			less.Totals = slices.Clone(o.Totals)
			less.Totals[i] = costs
			all = append(all, less)
		}
	}
	return all
}

func lessCosts(c weir.Costs) []weir.Costs {
	var all []weir.Costs
	for _, name := range slices.Sorted(maps.Keys(c)) {
		less := maps.Clone(c)
		delete(less, name)
		all = append(all, less)
	}
	return all
}

// dropSets leaves out definitions that are not configured, or need not be.
func (r *reducer) dropSets() {
	for i := len(r.best.Sets) - 1; i > 0; i-- {
		r.with(func(s *Script) { s.Sets = slices.Delete(s.Sets, i, i+1) })
	}
}

// dropEntities leaves out entities that need not be declared.
func (r *reducer) dropEntities() {
	for i := range r.best.Sets {
		for _, name := range slices.Sorted(maps.Keys(r.best.Sets[i].Definitions.Entities)) {
			fewer := clone(r.best.Sets[i].Definitions)
			delete(fewer.Entities, name)
			r.with(func(s *Script) { s.Sets[i].Definitions = fewer })
		}
	}
}

// dropLimits leaves out limits from every set.
func (r *reducer) dropLimits() {
	for i := range r.best.Sets {
		for n := 0; r.runs < reduceRuns; {
			fewer, more := without(r.best.Sets[i].Definitions, n)
			if !more {
				break
			}
			if !r.with(func(s *Script) { s.Sets[i].Definitions = fewer }) {
				n++
			}
		}
	}
}

// without returns definitions without their n-th limit, and whether they have one.
func without(d *weir.Definitions, n int) (*weir.Definitions, bool) {
	c := clone(d)
	drop := func(limits []weir.Limit) ([]weir.Limit, bool) {
		if n >= 0 && n < len(limits) {
			limits = slices.Delete(limits, n, n+1)
			n = -1
			return limits, true
		}
		n -= len(limits)
		return limits, false
	}
	done := false
	if c.System, done = drop(c.System); done {
		return c, true
	}
	for _, name := range slices.Sorted(maps.Keys(c.Resources)) {
		if c.Resources[name], done = drop(c.Resources[name]); done {
			return c, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Entities)) {
		limits := c.Entities[name].Limits
		for _, resource := range slices.Sorted(maps.Keys(limits)) {
			if limits[resource], done = drop(limits[resource]); done {
				return c, true
			}
		}
	}
	return c, false
}
