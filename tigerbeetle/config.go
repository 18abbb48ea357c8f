//go:build cgo

package tigerbeetle

import (
	"context"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
)

// ReadConfig returns what this server's definitions say of a subject. It never fails.
func (s *Store) ReadConfig(_ context.Context, of weir.Subject, _ bool) (*weir.Config, error) {
	return s.config.Load().Config(of), nil
}

// Declared reports whether an entity is declared in this server's definitions.
func (s *Store) Declared(entity string) bool {
	_, ok := s.config.Load().Entities[entity]
	return ok
}

// WriteConfig puts other definitions in force, on this server at once. Other servers notice at
// their next poll and are not ready until they have the same definitions. Invalid definitions are
// refused with joined [*weir.Error]s of code [weir.Invalid], and the old ones stay in force.
func (s *Store) WriteConfig(ctx context.Context, _ time.Time, d *weir.Definitions) error {
	if err := s.enter(true); err != nil {
		return err
	}
	defer s.exit()
	normal, err := d.Normalize()
	if err != nil {
		return err
	}
	return s.version.putInForce(ctx, s, normal, true)
}

// limitName returns the name of a limit by its hash, or a name that begins with unknown- if this
// server's definitions have no limit of that name.
func (s *Store) limitName(hash uint64) string {
	for _, l := range s.config.Load().All {
		if nameHash(l.Name) == hash {
			return l.Name
		}
	}
	return unknownName(hash)
}

// ReadEntity returns this server's definition of an entity, or nil. It never fails.
func (s *Store) ReadEntity(_ context.Context, name string) (*weir.EntityDefinition, error) {
	return s.config.Load().Entity(name), nil
}

// ListEntities returns a page of the entities that this server's definitions declare. It never
// fails.
func (s *Store) ListEntities(_ context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.config.Load().List(q), nil
}

// Resources returns, in order, the resources on which the entity has limits of its own, or
// something in use that this server took; what other servers took is not known, because the cluster
// has no names. It never fails.
func (s *Store) Resources(_ context.Context, _ time.Time, entity string) ([]string, error) {
	return s.config.Load().ResourcesOf(entity, s.states.inUse(s.clock.nowMS())), nil
}

// Entities returns, in order, the entities that have limits of their own on a resource, or
// something in use that this server took. It never fails.
func (s *Store) Entities(_ context.Context, _ time.Time, resource string) ([]string, error) {
	return s.config.Load().EntitiesOn(resource, s.states.inUse(s.clock.nowMS())), nil
}

// ReadPlace returns the limits at a place with their version, which is a hash of them. It never
// fails.
func (s *Store) ReadPlace(_ context.Context, at weir.Subject) (*change.Place, error) {
	return change.PlaceOf(s.config.Load(), at), nil
}

// ListResources returns, in order, the resources that have limits, or something in use that this
// server took. It never fails.
func (s *Store) ListResources(context.Context, time.Time) ([]string, error) {
	return s.config.Load().ResourceNames(s.states.inUse(s.clock.nowMS())), nil
}
