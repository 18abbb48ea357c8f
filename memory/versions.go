package memory

import (
	"context"
	"maps"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
)

// ReadPlace returns the limits at a place with their version, which is a hash of them. It never
// fails.
func (s *Store) ReadPlace(_ context.Context, at weir.Subject) (*change.Place, error) {
	d := s.config.Load().around(at)
	return change.PlaceOf(&d, at), nil
}

// ChangeLimits makes limits the only ones at a place if the place is as o requires. See
// [driver.VersionEditor] for errors.
func (s *Store) ChangeLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit, o change.Options,
) (version string, err error) {
	describe := func(before, after *weir.Definitions) []auditChange {
		version = change.PlaceOf(after, at).Version
		return describeLimits(at, before, after)
	}
	err = s.editConfig(ctx, now, at, describe, func(d *weir.Definitions) error {
		is := change.PlaceOf(d, at)
		if err := o.Check(is.Version, change.PlaceName(at)); err != nil {
			if len(limits) == 0 || o.IfAbsent || !sameLimits(is.Limits, limits) {
				return err
			}
		}
		setLimits(d, at, limits)
		return nil
	})
	return version, err
}

// setLimits changes the limits of a place in definitions whose map of entities is a copy.
func setLimits(d *weir.Definitions, at weir.Subject, limits []weir.Limit) {
	switch {
	case at.Entity != "":
		e, declared := d.Entities[at.Entity]
		if !declared && len(limits) == 0 {
			return // removing limits does not declare an entity
		}
		e.Limits = withLevel(e.Limits, at.Resource, limits)
		d.Entities[at.Entity] = e
	case at.Resource != "":
		d.Resources = withLevel(d.Resources, at.Resource, limits)
	default:
		d.System = limits
	}
}

// ChangeEntity declares an entity or changes it if it is as o requires. See
// [driver.VersionEditor] for errors.
func (s *Store) ChangeEntity(
	ctx context.Context, now time.Time, name string, c *change.Entity, o change.Options,
) (version string, err error) {
	describe := func(before, after *weir.Definitions) []auditChange {
		version = after.Entity(name).Version
		return describeEntity(name, before, after)
	}
	err = s.editConfig(ctx, now, weir.Subject{Entity: name}, describe, func(d *weir.Definitions) error {
		is := d.Entities[name]
		changed := c.Apply(name, is)
		if err := checkEntity(d, name, o); err != nil {
			if _, declared := d.Entities[name]; !declared || o.IfAbsent || !is.Same(changed) {
				return err
			}
		}
		d.Entities[name] = changed
		return nil
	})
	return version, err
}

// checkEntity returns an error unless an entity is as o requires.
func checkEntity(d *weir.Definitions, name string, o change.Options) error {
	current := ""
	if e := d.Entity(name); e != nil {
		current = e.Version
	}
	return o.Check(current, "the entity "+name)
}

// RemoveEntity removes an entity and its limits if it is as o requires. See
// [driver.VersionEditor] and [Store.DeleteEntity] for errors.
func (s *Store) RemoveEntity(
	ctx context.Context, now time.Time, name string, o change.Options,
) error {
	describe := func(before, after *weir.Definitions) []auditChange {
		return describeEntity(name, before, after)
	}
	return s.editConfig(ctx, now, weir.Subject{Entity: name}, describe, func(d *weir.Definitions) error {
		if err := checkEntity(d, name, o); err != nil {
			return err
		}
		if _, ok := d.Entities[name]; !ok {
			return &weir.Error{Code: weir.NotFound, Field: "entity", Value: name, Reason: "is not declared"}
		}
		if child := s.firstChild(name); child != "" {
			return &weir.Error{
				Code: weir.Conflict, Field: "entity", Value: name, Reason: "is the parent of " + child,
			}
		}
		delete(d.Entities, name)
		return nil
	})
}

// ListResources returns, in order, the resources that have limits or something in use at now. It
// never fails.
func (s *Store) ListResources(_ context.Context, now time.Time) ([]string, error) {
	used := make(map[weir.Subject]bool)
	for i := range s.stripes {
		s.stripes[i].inUse(now.UnixMilli(), func(weir.Subject) bool { return true },
			func(of weir.Subject) bool {
				used[of] = true
				return true
			})
	}
	return s.config.Load().whole().ResourceNames(maps.Keys(used)), nil
}

// ReadPlace is [Store.ReadPlace].
func (s *SnapshotStore) ReadPlace(ctx context.Context, at weir.Subject) (*change.Place, error) {
	return s.store.ReadPlace(ctx, at)
}

// ChangeLimits is [Store.ChangeLimits].
func (s *SnapshotStore) ChangeLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit, o change.Options,
) (version string, err error) {
	if err := s.checkWritable(); err != nil {
		return "", err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.ChangeLimits(ctx, now, at, limits, o)
}

// ChangeEntity is [Store.ChangeEntity].
func (s *SnapshotStore) ChangeEntity(
	ctx context.Context, now time.Time, name string, c *change.Entity, o change.Options,
) (version string, err error) {
	if err := s.checkWritable(); err != nil {
		return "", err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.ChangeEntity(ctx, now, name, c, o)
}

// RemoveEntity is [Store.RemoveEntity].
func (s *SnapshotStore) RemoveEntity(
	ctx context.Context, now time.Time, name string, o change.Options,
) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.RemoveEntity(ctx, now, name, o)
}

// ListResources is [Store.ListResources].
func (s *SnapshotStore) ListResources(ctx context.Context, now time.Time) ([]string, error) {
	return s.store.ListResources(ctx, now)
}
