//go:build cgo

package tigerbeetle

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// ReadEntity returns what this server's definitions say of an entity, or nil. It never fails.
func (s *Store) ReadEntity(_ context.Context, name string) (*weir.EntityDefinition, error) {
	return s.config.Load().Entity(name), nil
}

// ListEntities returns a page of the entities that this server's definitions declare. It never fails.
func (s *Store) ListEntities(_ context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.config.Load().List(q), nil
}

// Resources returns, in order, the resources on which the entity has limits of its own, or something in
// use that this server took: the cluster knows no names. It never fails.
func (s *Store) Resources(_ context.Context, _ time.Time, entity string) ([]string, error) {
	return s.config.Load().ResourcesOf(entity, s.spots.inUse(s.clock.ms())), nil
}

// Entities returns, in order, the entities that have limits of their own on a resource, or something in
// use that this server took. It never fails.
func (s *Store) Entities(_ context.Context, _ time.Time, resource string) ([]string, error) {
	return s.config.Load().EntitiesOn(resource, s.spots.inUse(s.clock.ms())), nil
}

// inUse returns the subjects of the limits that are known to be in use.
func (s *spots) inUse(now int64) iter.Seq[weir.Subject] {
	return func(yield func(weir.Subject) bool) {
		s.mu.Lock()
		all := slices.Collect(maps.Values(s.byKey))
		s.mu.Unlock()
		for _, sp := range all {
			if sp.key.Entity != "" && sp.inUse(now) && !yield(sp.key.Subject) {
				return
			}
		}
	}
}

// inUse is true where something is taken and has not returned.
func (s *spot) inUse(now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy(now)
}

// busy is inUse for who has locked the spot.
func (s *spot) busy(now int64) bool {
	switch s.key.kind {
	case weir.Bucket:
		k := &s.bucket
		return k.anchor.b > 0 && k.at(now) < k.anchor.rate.CapacityMilli
	case weir.Budget:
		return s.usedAt(now) > 0
	default:
		return s.holds.occupied(now) > 0
	}
}
