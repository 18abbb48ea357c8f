package dynamodb

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
)

// WriteLimits makes limits the only ones at a place; what else the place's item says stays. The
// item, the registry of such places, the declaration of the entity and the audit change together.
func (s *Store) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return s.admin.WriteLimits(ctx, now, at, limits)
}

// WritePolicy makes p the system's policy, and leaves its limits.
func (s *Store) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	return s.admin.WritePolicy(ctx, now, p)
}

// ConfiguredResources returns, in order, the resources that have limits of their own.
func (s *Store) ConfiguredResources(ctx context.Context) ([]string, error) {
	return s.admin.ConfiguredResources(ctx, false)
}

// EntityConfigResources returns, in order, the resources for which entities have limits of their
// own, [weir.DefaultResource] among them.
func (s *Store) EntityConfigResources(ctx context.Context) ([]string, error) {
	return s.admin.EntityConfigResources(ctx, false)
}

// ReadEntity returns what is configured for an entity, or nil if it is not declared. Limits that
// weir cannot judge by are not in it; [Options.OnError] is told of them.
func (s *Store) ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	return s.admin.ReadEntity(ctx, name)
}

// WriteEntity declares an entity or changes its parent and cascade, and stamps its bucket items. A
// parent that does not exist and a cycle are [weir.Invalid]. Writing what is there already stamps
// the items again.
func (s *Store) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return s.admin.WriteEntity(ctx, now, name, parent, cascade)
}

// DeleteEntity removes an entity with its limits, its buckets and its usage; the audit stays. A
// deletion that was cut short can be made again, and makes progress each time.
func (s *Store) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return s.admin.DeleteEntity(ctx, now, name)
}

// EntityMetadata returns an entity's name for people and what its users keep there: strings, bools,
// int64s, json.Numbers, nil, and maps and slices of them. One without a record is [weir.NotFound].
func (s *Store) EntityMetadata(
	ctx context.Context, name string,
) (display string, metadata map[string]any, err error) {
	return s.admin.EntityMetadata(ctx, name, false)
}

// EditEntity changes an entity's name for people and its metadata. Edit gets what is stored and
// returns what shall be stored; if another writer was faster it is asked again with what is stored
// then, so that no change is lost. An error of its own ends the edit and is returned.
func (s *Store) EditEntity(
	ctx context.Context, now time.Time, name string,
	edit func(display string, metadata map[string]any) (string, map[string]any, error),
) error {
	return s.admin.EditEntity(ctx, now, name, edit)
}

// ListEntities returns a page of names in order: entities with a record or with limits of their
// own. What an index does not show yet is missing for a moment.
func (s *Store) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.admin.ListEntities(ctx, q)
}

// Resources returns, in order, the resources on which an entity has something in use or limits of
// its own.
func (s *Store) Resources(ctx context.Context, now time.Time, entity string) ([]string, error) {
	return s.admin.Resources(ctx, now, entity)
}

// Entities returns, in order, the entities that have something in use on a resource or limits of
// their own.
func (s *Store) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	return s.admin.Entities(ctx, now, resource)
}

// ReadAudit yields the changes at a place, the newest first, those of the Python library among
// them. An after that is not the ID of an event is [weir.Invalid].
func (s *Store) ReadAudit(
	ctx context.Context, at weir.Subject, after string,
) iter.Seq2[weir.AuditEvent, error] {
	return s.admin.ReadAudit(ctx, at, after, false)
}

// ReadUsage yields what was counted, later windows first on each resource; with a resource and no
// entity, later windows first over all entities.
func (s *Store) ReadUsage(ctx context.Context, q weir.Usage) iter.Seq2[weir.Usage, error] {
	return s.admin.ReadUsage(ctx, q)
}
