package memory

import (
	"context"
	"maps"
	"slices"
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
	return s.editConfig(ctx, now, describePolicy, func(d *weir.Definitions) error {
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

// removeEntity removes an entity from definitions whose map of entities is a copy.
func removeEntity(d *weir.Definitions, name string) error {
	if _, ok := d.Entities[name]; !ok {
		return &weir.Error{Code: weir.NotFound, Field: "entity", Value: name, Reason: "is not declared"}
	}
	for _, child := range slices.Sorted(maps.Keys(d.Entities)) {
		if d.Entities[child].Parent == name {
			return &weir.Error{
				Code: weir.Conflict, Field: "entity", Value: name, Reason: "is the parent of " + child,
			}
		}
	}
	delete(d.Entities, name)
	return nil
}

// editConfig puts a changed copy of the configuration in force, and records what describe says of
// the old one and the new one. Other calls may still read the old one, so change must replace
// maps and slices with copies instead of modifying them. The map of entities is copied here.
func (s *Store) editConfig(
	ctx context.Context, now time.Time,
	describe func(before, after *weir.Definitions) []auditChange, change func(d *weir.Definitions) error,
) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if err := s.checkClaim(ctx); err != nil {
		return err
	}
	before := s.config.Load()
	d := *before
	d.Entities = maps.Clone(d.Entities)
	if err := change(&d); err != nil {
		return err
	}
	if err := s.configure(&d); err != nil {
		return err
	}
	s.audit.add(ctx, now, describe(before, s.config.Load())...)
	return nil
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
	return s.config.Load().Entity(name), nil
}

// ListEntities returns a page of the declared entities. It never fails.
func (s *Store) ListEntities(_ context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.config.Load().List(q), nil
}

// Entities returns, in order, the entities that have something in use on a resource at now or
// limits of their own on it. It never fails.
func (s *Store) Entities(_ context.Context, now time.Time, resource string) ([]string, error) {
	d := s.config.Load()
	return d.EntitiesOn(resource, func(yield func(weir.Subject) bool) {
		for i := range s.stripes {
			on := func(s weir.Subject) bool { return s.Resource == resource }
			if !s.stripes[i].inUse(now.UnixMilli(), on, yield) {
				return
			}
		}
	}), nil
}
