package memory

import (
	"context"
	"maps"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
)

// WriteLimits makes limits the only ones at a place, from the next call on. It fails only if
// limits are malformed, and then changes nothing.
func (s *Store) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	_, err := s.ChangeLimits(ctx, now, at, limits, change.Options{})
	return err
}

// WritePolicy makes p the system's policy.
func (s *Store) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	return s.editConfig(ctx, now, weir.Subject{}, describePolicy, func(d *weir.Definitions) error {
		d.OnUnavailable = p
		return nil
	})
}

// WriteEntity declares an entity or changes its parent and cascade. A parent that is not declared
// and a cycle are [*weir.Error]s with code [weir.Invalid].
func (s *Store) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	c := &change.Entity{Parent: parent, Cascade: cascade}
	_, err := s.ChangeEntity(ctx, now, name, c, change.Options{})
	return err
}

// DeleteEntity removes an entity and its limits. Its usage and its audit stay. The error has code
// [weir.NotFound] if the entity is not declared, and [weir.Conflict] if it is the parent of
// another entity.
func (s *Store) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return s.RemoveEntity(ctx, now, name, change.Options{})
}

// firstChild returns the first of the children of an entity; empty if it has none. The caller holds
// editing.
func (s *Store) firstChild(name string) string {
	if s.children[name] == 0 {
		return "" // without a look at every entity
	}
	first := ""
	for child, e := range s.config.Load().whole().Entities {
		if e.Parent == name && (first == "" || child < first) {
			first = child
		}
	}
	return first
}

// editConfig changes one place of the configuration, and records what describe says of the old
// one and the new one. Both, and what change gets, have the system's settings, the resource and
// the entity of the place. Other calls may still read the old one, so change must replace maps
// and slices with copies instead of modifying them. The map of entities is a copy already.
func (s *Store) editConfig(
	ctx context.Context, now time.Time, at weir.Subject,
	describe func(before, after *weir.Definitions) []auditChange, change func(d *weir.Definitions) error,
) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if err := s.checkClaim(ctx); err != nil {
		return err
	}
	is := s.config.Load()
	before := is.around(at)
	d := before
	d.Entities = maps.Clone(d.Entities)
	if d.Entities == nil {
		d.Entities = map[string]weir.EntityDefinition{}
	}
	if err := change(&d); err != nil {
		return err
	}
	next, err := is.with(at, &d)
	if err != nil {
		return err
	}
	after := next.around(at)
	s.config.Store(next)
	s.countChild(before.Entities[at.Entity].Parent, -1)
	s.countChild(after.Entities[at.Entity].Parent, 1)
	s.audit.add(ctx, now, describe(&before, &after)...)
	return nil
}

// hasChildren reports whether an entity is the parent of others.
func (s *Store) hasChildren(name string) bool {
	s.editing.Lock()
	defer s.editing.Unlock()
	return s.children[name] > 0
}

// countChild counts the children of an entity. The caller holds editing.
func (s *Store) countChild(parent string, by int) {
	if parent == "" {
		return
	}
	if s.children[parent] += by; s.children[parent] == 0 {
		delete(s.children, parent)
	}
}

// withLevel returns a copy of the levels in which the level name has other limits.
func withLevel(levels map[string][]weir.Limit, name string, limits []weir.Limit) map[string][]weir.Limit {
	out := make(map[string][]weir.Limit, len(levels)+1)
	maps.Copy(out, levels)
	if out[name] = limits; len(limits) == 0 {
		delete(out, name)
	}
	return out
}

// ReadEntity returns what is configured for an entity, or nil. It never fails.
func (s *Store) ReadEntity(_ context.Context, name string) (*weir.EntityDefinition, error) {
	d := s.config.Load().around(weir.Subject{Entity: name})
	return d.Entity(name), nil
}

// ListEntities returns a page of the declared entities. It never fails.
func (s *Store) ListEntities(_ context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	if q.Parent != "" && !s.hasChildren(q.Parent) {
		return &weir.EntityPage{}, nil // without a look at every entity
	}
	return s.config.Load().whole().List(q), nil
}

// Entities returns, in order, the entities that have something in use on a resource at now or
// limits of their own on it. It never fails.
func (s *Store) Entities(_ context.Context, now time.Time, resource string) ([]string, error) {
	d := s.config.Load().whole()
	return d.EntitiesOn(resource, func(yield func(weir.Subject) bool) {
		for i := range s.stripes {
			on := func(s weir.Subject) bool { return s.Resource == resource }
			if !s.stripes[i].inUse(now.UnixMilli(), on, yield) {
				return
			}
		}
	}), nil
}
