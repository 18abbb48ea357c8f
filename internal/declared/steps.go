package declared

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/driver/declare"
	"github.com/weir-limiter/weir/limiter"
	"github.com/weir-limiter/weir/manifest"
)

// stepKind is the kind of a step's write.
type stepKind int

// The kinds, in the order in which an apply makes them: an entity is declared before its limits
// are set, and deleted after everything else, because entities that are moved may have been its
// children.
const (
	stepEntity stepKind = iota
	stepPolicy
	stepRetention
	stepLimits
	stepDelete
)

// step is one write of an apply. It makes one change of a plan or several.
type step struct {
	kind stepKind
	at   weir.Subject
	// changes are the indexes of the changes in the plan.
	changes []int
	// creates is true if the step declares an entity, without which its other steps cannot be made.
	creates bool
	// done is true after the step was made; err is the error of the last attempt.
	done bool
	err  error
}

// steps returns the writes that make a plan, in order.
func (p *plan) steps() []*step {
	found := map[stepKind]map[weir.Subject]*step{}
	var list []*step
	add := func(kind stepKind, at weir.Subject) *step {
		if found[kind] == nil {
			found[kind] = map[weir.Subject]*step{}
		}
		s := found[kind][at]
		if s == nil {
			s = &step{kind: kind, at: at}
			found[kind][at] = s
			list = append(list, s)
		}
		return s
	}
	for i := range p.changes {
		c := &p.changes[i]
		s := add(p.kindOf(c))
		s.changes = append(s.changes, i)
		s.creates = s.creates || s.kind == stepEntity && c.Attribute == ""
	}
	for _, name := range p.record.Again {
		_, stays := p.wanted.Entities[name]
		switch {
		case !stays:
			add(stepDelete, weir.Subject{Entity: name})
		case p.file.sets.HasEntity(name):
			add(stepEntity, weir.Subject{Entity: name})
		}
	}
	p.sort(list)
	return list
}

// kindOf returns the step that makes a change, by its kind and place.
func (p *plan) kindOf(c *manifest.Change) (stepKind, weir.Subject) {
	if c.Entity != "" {
		if _, stays := p.wanted.Entities[c.Entity]; !stays {
			return stepDelete, weir.Subject{Entity: c.Entity}
		}
	}
	switch {
	case c.Limit != "":
		return stepLimits, placeOf(c)
	case c.Entity != "":
		return stepEntity, weir.Subject{Entity: c.Entity}
	case c.Attribute == "on_unavailable":
		return stepPolicy, weir.Subject{}
	}
	return stepRetention, weir.Subject{}
}

// sort puts steps in the order in which they can be made. Parents are declared before their
// children, so that all ancestors of an entity have their new parents when the entity gets its
// own, and no cycle arises on the way. Children are deleted before their parents. Limits are set
// before others are deleted, so that no caller is without limits while they move between levels.
func (p *plan) sort(list []*step) {
	depth := func(of map[string]weir.EntityDefinition, name string) int {
		n := 0
		for at := of[name].Parent; at != "" && n <= len(of); at = of[at].Parent {
			n++ // a cycle that another program has stored ends at the number of entities
		}
		return n
	}
	ranks := make(map[*step]int, len(list))
	for _, s := range list {
		switch s.kind {
		case stepEntity:
			ranks[s] = depth(p.wanted.Entities, s.at.Entity)
		case stepLimits:
			if len(p.wanted.LimitsAt(s.at)) == 0 {
				ranks[s] = 1
			}
		case stepDelete:
			ranks[s] = -depth(p.stored.Definitions.Entities, s.at.Entity)
		}
	}
	slices.SortStableFunc(list, func(a, b *step) int {
		if a.kind != b.kind {
			return int(a.kind - b.kind)
		}
		return ranks[a] - ranks[b]
	})
}

// make makes a step. It may be repeated.
func (s *step) make(ctx context.Context, l *limiter.Limiter, p *plan) error {
	d := p.wanted
	switch s.kind {
	case stepEntity:
		e := d.Entities[s.at.Entity]
		_, err := l.ChangeEntity(ctx, s.at.Entity, change.EntityOf(&e), nil)
		return err
	case stepPolicy:
		return l.SetPolicy(ctx, d.OnUnavailable)
	case stepRetention:
		// Only what the file has, because others may have changed the rest meanwhile.
		return l.SetRetention(ctx, p.file.definitions.Retention)
	case stepDelete:
		return p.delete(ctx, l, s.at.Entity)
	}
	return l.SetLimits(ctx, s.at, d.LimitsAt(s.at))
}

// deletedPlaces returns the places whose limits a step deletes.
func (p *plan) deletedPlaces(s *step) []weir.Subject {
	var places []weir.Subject
	switch {
	case s.kind == stepLimits && len(p.wanted.LimitsAt(s.at)) == 0:
		places = append(places, s.at)
	case s.kind == stepDelete:
		limits := p.stored.Definitions.Entities[s.at.Entity].Limits
		for _, resource := range slices.Sorted(maps.Keys(limits)) {
			places = append(places, weir.Subject{Entity: s.at.Entity, Resource: resource})
		}
	}
	return places
}

// meet reports whether there are calls that the limits of both places can concern.
func meet(a, b weir.Subject) bool {
	general := func(resource string) bool { return resource == "" || resource == weir.DefaultResource }
	return (a.Entity == b.Entity || a.Entity == "" || b.Entity == "") &&
		(a.Resource == b.Resource || general(a.Resource) || general(b.Resource))
}

// delete deletes an entity, unless limits were set after the plan was made, at a place that no file
// manages. The next plan keeps the entity then. It is no error if the entity is gone.
func (p *plan) delete(ctx context.Context, l *limiter.Limiter, name string) error {
	o := &change.Options{}
	switch e, err := l.Entity(ctx, name); {
	case err == nil:
		if err := p.checkDelete(name, e); err != nil {
			return err
		}
		o.IfVersion = e.Version
	case !errors.Is(err, weir.NotFound):
		return err
	}
	err := l.RemoveEntity(ctx, name, o)
	if errors.Is(err, weir.Unsupported) && !o.IsZero() {
		err = l.RemoveEntity(ctx, name, nil) // it has too many limits for a condition
	}
	if changed, ok := errors.AsType[*change.ConflictError](err); ok && changed.Version == "" ||
		errors.Is(err, weir.NotFound) {
		return nil // another caller has deleted it
	}
	return err
}

// checkDelete returns an error if an entity has limits at a place that no file manages.
func (p *plan) checkDelete(name string, e *weir.EntityDefinition) error {
	for _, resource := range slices.Sorted(maps.Keys(e.Limits)) {
		if !p.record.Managed.Has(weir.Subject{Entity: name, Resource: resource}) {
			return weir.NewError(weir.Conflict, "entities."+name, "",
				"has got limits that no file manages meanwhile, on "+resource)
		}
	}
	return nil
}

// managed returns the places that the file manages after the steps: those that it has, except
// that a place whose step has failed stays what it was.
func (p *plan) managed(steps []*step) declare.Managed {
	old, after := &p.record.Managed, p.file.sets.Union(&declare.Managed{})
	for _, s := range steps {
		if s.err == nil {
			continue
		}
		name := s.at.Entity
		switch s.kind {
		case stepEntity:
			after.Entities = withName(after.Entities, name, old.HasEntity(name))
		case stepPolicy:
			after.Policy = old.Policy
		case stepRetention:
			after.Retention = old.Retention
		case stepLimits:
			setPlace(&after, s.at, old.Has(s.at))
		case stepDelete:
			after.Entities = withName(after.Entities, name, old.HasEntity(name))
			if limits := old.Limits[name]; len(limits) > 0 {
				after.Limits[name] = limits
			}
		}
	}
	return after
}

// setPlace puts a place into a set or takes it out.
func setPlace(m *declare.Managed, at weir.Subject, in bool) {
	switch {
	case at.Entity != "":
		m.Limits[at.Entity] = withName(m.Limits[at.Entity], at.Resource, in)
		if len(m.Limits[at.Entity]) == 0 {
			delete(m.Limits, at.Entity)
		}
	case at.Resource != "":
		m.Resources = withName(m.Resources, at.Resource, in)
	default:
		m.System = in
	}
}

// withName returns sorted names with one in them, or without it.
func withName(names []string, name string, in bool) []string {
	names = slices.Clone(names)
	i, found := slices.BinarySearch(names, name)
	switch {
	case found && !in:
		return slices.Delete(names, i, i+1)
	case !found && in:
		return slices.Insert(names, i, name)
	}
	return names
}
