package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/limiter"
)

// Edit changes one whole configuration to another, a piece at a time, through the limiter. It sets
// only what differs: the policy, the limits of the system and of resources, entities in an order in
// which every step is legal, and the limits of entities. An entity is moved to its new parent in
// one step if possible. If that would be a cycle, or a cascade deeper than in both configurations,
// it is first taken from its old parent.
//
// The argument from must be the configuration in force. Mistakes in the argument to are found
// before the first step. If a step fails, the steps before it stay in force.
func Edit(ctx context.Context, l *limiter.Limiter, from, to *weir.Definitions) error {
	was, err := from.Normalize()
	if err != nil {
		return fmt.Errorf("the definitions before: %w", err)
	}
	is, err := to.Normalize()
	if err != nil {
		return err
	}
	e := &editPlan{ctx: ctx, limiter: l, was: was, is: is}
	e.plan()
	for _, step := range e.steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// EditInto makes d the configuration of a store without one, as [Edit] does.
func EditInto(ctx context.Context, l *limiter.Limiter, d *weir.Definitions) error {
	return Edit(ctx, l, &weir.Definitions{}, d)
}

// Define writes the definitions of a setup into an empty store whose configuration can be edited.
// It is for a harness's Open.
func Define(t T, b driver.Store, s Setup) {
	t.Helper()
	l, err := limiter.New(b, &limiter.Options{
		CascadeDepth: s.Options.CascadeDepth, StoreTimeout: max(time.Minute, s.Options.StoreTimeout),
		Now: NewClock(s.Start).Now,
	})
	if err == nil {
		err = EditInto(t.Context(), l, s.Definitions)
	}
	if err != nil {
		t.Fatalf("define: %v", err)
	}
}

// editPlan is the list of steps from one configuration to another.
type editPlan struct {
	ctx     context.Context
	limiter *limiter.Limiter
	was, is *weir.Definitions
	steps   []func() error
}

func (e *editPlan) plan() {
	if e.was.OnUnavailable != e.is.OnUnavailable {
		e.add(func() error { return e.limiter.SetPolicy(e.ctx, e.is.OnUnavailable) })
	}
	e.limits(weir.Subject{}, e.was.System, e.is.System)
	e.places("", e.was.Resources, e.is.Resources)
	e.entities()
	for _, name := range slices.Sorted(maps.Keys(e.is.Entities)) {
		e.places(name, e.was.Entities[name].Limits, e.is.Entities[name].Limits)
	}
}

func (e *editPlan) add(step func() error) { e.steps = append(e.steps, step) }

// places adds the steps for the limits of an entity, or for those of the resources if entity is "",
// resource by resource.
func (e *editPlan) places(entity string, was, is map[string][]weir.Limit) {
	all := maps.Clone(was)
	if all == nil {
		all = make(map[string][]weir.Limit)
	}
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e.limits(weir.Subject{Entity: entity, Resource: name}, was[name], is[name])
	}
}

func (e *editPlan) limits(at weir.Subject, was, is []weir.Limit) {
	if !slices.EqualFunc(was, is, weir.Limit.Same) {
		e.add(func() error { return e.limiter.SetLimits(e.ctx, at, is) })
	}
}

// entities adds the steps that declare, move and delete entities.
func (e *editPlan) entities() {
	f := newFamilyTree(e.was, e.is)
	for {
		name, next := f.next()
		if name == "" {
			return
		}
		f.set(name, next)
		if next == nil {
			e.add(func() error { return e.limiter.DeleteEntity(e.ctx, name) })
			continue
		}
		to := *next
		e.add(func() error { return e.limiter.SetEntity(e.ctx, name, to.parent, to.cascade) })
	}
}

// parentLink is the parent of an entity, and whether the entity cascades to it.
type parentLink struct {
	parent  string
	cascade bool
}

// familyTree is the parents of all entities after the steps so far, and the changes that are left.
type familyTree struct {
	now     map[string]parentLink
	pending map[string]*parentLink // nil: to be deleted
	depth   int                    // the depth of the deepest cascade of both configurations
}

func newFamilyTree(was, is *weir.Definitions) *familyTree {
	f := &familyTree{now: make(map[string]parentLink), pending: make(map[string]*parentLink)}
	for name, e := range was.Entities {
		f.now[name] = parentLink{e.Parent, e.Cascade}
		if _, stays := is.Entities[name]; !stays {
			f.pending[name] = nil
		}
	}
	for name, e := range is.Entities {
		to := parentLink{e.Parent, e.Cascade}
		if at, known := f.now[name]; !known || at != to {
			f.pending[name] = &to
		}
	}
	f.depth = max(deepest(was), deepest(is))
	return f
}

// deepest returns the depth of the deepest cascade of a configuration.
func deepest(d *weir.Definitions) int {
	most := 0
	for _, e := range d.Entities {
		n := 0
		for ; e.Cascade; e = d.Entities[e.Parent] {
			n++
		}
		most = max(most, n)
	}
	return most
}

// next returns a change that is legal now, or "" at the end. If no change is legal, it takes an
// entity from its parent.
func (f *familyTree) next() (string, *parentLink) {
	names := slices.Sorted(maps.Keys(f.pending))
	for _, name := range names {
		if f.legal(name, f.pending[name]) {
			return name, f.pending[name]
		}
	}
	for _, name := range names {
		if f.pending[name] != nil && f.now[name].parent != "" {
			return name, &parentLink{}
		}
	}
	return "", nil
}

// set changes the tree.
func (f *familyTree) set(name string, to *parentLink) {
	if to == nil {
		delete(f.now, name)
		delete(f.pending, name)
		return
	}
	f.now[name] = *to
	if want := f.pending[name]; want != nil && *want == *to {
		delete(f.pending, name)
	}
}

func (f *familyTree) legal(name string, to *parentLink) bool {
	if to == nil {
		for _, at := range f.now {
			if at.parent == name {
				return false
			}
		}
		return true
	}
	if _, known := f.now[to.parent]; to.parent != "" && !known {
		return false
	}
	for at := to.parent; at != ""; at = f.now[at].parent {
		if at == name {
			return false
		}
	}
	after := &familyTree{now: maps.Clone(f.now)}
	after.now[name] = *to
	for at := range after.now {
		if after.reach(at) > f.depth {
			return false
		}
	}
	return true
}

// reach returns the number of ancestors that a charge on an entity also charges.
func (f *familyTree) reach(name string) int {
	n := 0
	for at := f.now[name]; at.cascade; at = f.now[at.parent] {
		n++
	}
	return n
}

// checkEdit returns an error for definitions that a limiter with the given depth, over a store with
// the given traits, would refuse during the edit, so that a mistake in them changes nothing. The
// definitions have no cycles.
func checkEdit(d *weir.Definitions, traits *driver.Traits, depth int) error {
	var errs []error
	refuse := func(code weir.Code, field, value, reason string) {
		errs = append(errs, &weir.Error{Code: code, Field: field, Value: value, Reason: reason})
	}
	for field, l := range d.All {
		if !slices.Contains(traits.Kinds, l.Kind) {
			refuse(weir.Unsupported, field+".kind", string(l.Kind),
				"this store does not support this kind of limit")
		} else if l.Shadow && traits.NoShadow {
			refuse(weir.Unsupported, field+".enforce", "false",
				"this store does not support shadow limits")
		}
	}
	if n := deepest(d); n > max(1, depth) {
		refuse(weir.Invalid, "entities", fmt.Sprint(n), "cascade over more levels than are allowed")
	}
	return errors.Join(errs...)
}
