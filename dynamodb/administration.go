package dynamodb

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/change"
	"github.com/weir-limiter/weir/driver/declare"
)

// WriteLimits replaces the limits of a place. The other attributes of the place's item stay. The
// item, the registry of places, the declaration of the entity and the audit change in one
// transaction.
func (s *Store) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	return s.admin.WriteLimits(ctx, now, at, limits)
}

// WritePolicy sets the system's policy. Its limits stay.
func (s *Store) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	return s.admin.WritePolicy(ctx, now, p)
}

// ReadRetention returns the retention in the system's configuration, by a consistent read. Settings
// that the configuration does not have are nil: their defaults apply.
func (s *Store) ReadRetention(ctx context.Context) (*weir.Retention, error) {
	return s.admin.ReadRetention(ctx)
}

// WriteRetention changes the settings that r has, which are valid. The rest of the system's
// configuration stays. This process uses a new TTL multiplier at once, others when they next read
// the configuration of any subject.
func (s *Store) WriteRetention(ctx context.Context, now time.Time, r *weir.Retention) error {
	return s.admin.WriteRetention(ctx, now, r)
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

// ReadEntity returns the definition of an entity, or nil if it is not declared. It leaves out
// limits that weir does not support, and reports them to [Options.OnError].
func (s *Store) ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	return s.admin.ReadEntity(ctx, name)
}

// WriteEntity declares an entity or changes its parent and cascade, and stamps its bucket items. It
// returns [weir.Invalid] for a parent that does not exist and for a cycle. Writing the same
// definition again stamps the items again.
func (s *Store) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	return s.admin.WriteEntity(ctx, now, name, parent, cascade)
}

// DeleteEntity deletes an entity with its limits and its bucket items. The audit stays, and so does
// the usage until its retention ends; see [Table.DeleteUsage]. A deletion that was interrupted can be repeated, and each attempt makes progress.
func (s *Store) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	return s.admin.DeleteEntity(ctx, now, name)
}

// ReadPlace returns the limits at a place with their version, by a consistent read. It leaves out
// limits that weir does not support, and reports them to [Options.OnError].
func (s *Store) ReadPlace(ctx context.Context, at weir.Subject) (*change.Place, error) {
	return s.admin.ReadPlace(ctx, at)
}

// ChangeLimits is WriteLimits on condition that the place is as o requires, and returns the new
// version. See [driver.VersionEditor] for errors.
func (s *Store) ChangeLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit, o change.Options,
) (version string, err error) {
	return s.admin.ChangeLimits(ctx, now, at, limits, o)
}

// ChangeEntity declares an entity or changes all of it but its limits, on condition that it is as o
// requires, and returns the new version. See [driver.VersionEditor] for errors.
func (s *Store) ChangeEntity(
	ctx context.Context, now time.Time, name string, c *change.Entity, o change.Options,
) (version string, err error) {
	return s.admin.ChangeEntity(ctx, now, name, c, o)
}

// RemoveEntity is DeleteEntity on condition that the entity is as o requires. See
// [driver.VersionEditor] for errors.
func (s *Store) RemoveEntity(
	ctx context.Context, now time.Time, name string, o change.Options,
) error {
	return s.admin.RemoveEntity(ctx, now, name, o)
}

// ListResources returns, in order, the resources that have limits, of their own or of an entity, and
// those that have bucket items. It reads the rows of all bucket items in an index.
func (s *Store) ListResources(ctx context.Context, _ time.Time) ([]string, error) {
	return s.admin.ListResources(ctx)
}

// ListEntities returns a page of names in order: entities with a record or with limits of their
// own. It reads an index, which shows a new entity after a moment.
func (s *Store) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.admin.ListEntities(ctx, q)
}

// Resources returns, in order, the resources on which an entity has units in use or limits of its
// own.
func (s *Store) Resources(ctx context.Context, now time.Time, entity string) ([]string, error) {
	return s.admin.Resources(ctx, now, entity)
}

// Entities returns, in order, the entities that have units in use on a resource or limits of their
// own.
func (s *Store) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	return s.admin.Entities(ctx, now, resource)
}

// ReadAudit yields the events that q asks for, newest first, including those of changes that the
// Python library made.
func (s *Store) ReadAudit(
	ctx context.Context, q *weir.AuditQuery,
) iter.Seq2[weir.AuditEvent, error] {
	return s.admin.ReadAudit(ctx, q, false)
}

// ReadUsage yields the recorded usage. The aggregator of the table has counted it: that of weir, or
// the Python library's.
func (s *Store) ReadUsage(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	return s.admin.ReadUsage(ctx, q, after)
}

// UsageGaps returns the times for which usage may be missing.
func (s *Store) UsageGaps(
	ctx context.Context, now time.Time, q *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	return s.admin.UsageGaps(ctx, now, q)
}

// DeclaredNamespace returns the store's namespace, which a limits file for it must name.
func (s *Store) DeclaredNamespace() string { return s.options.Namespace }

// ReadDefinitions returns the whole configuration of the namespace. The names of entities come
// from an index, which shows a new one after a moment; those in also are read in any case.
func (s *Store) ReadDefinitions(
	ctx context.Context, also *declare.Managed,
) (*declare.Definitions, error) {
	return s.admin.ReadDefinitions(ctx, also)
}

// ReadDeclared returns the record of the places that a limits file manages. It is the item in
// which the Python library's provisioner keeps them too.
func (s *Store) ReadDeclared(ctx context.Context) (*declare.Record, error) {
	return s.admin.ReadDeclared(ctx)
}

// CheckDeclared returns an error if a record has more names than an item can hold.
func (s *Store) CheckDeclared(d *declare.Record) error { return s.admin.CheckDeclared(d) }

// WriteDeclared replaces that record, on condition that it is as it was read.
func (s *Store) WriteDeclared(
	ctx context.Context, now time.Time, read, d *declare.Record,
) error {
	return s.admin.WriteDeclared(ctx, now, read, d)
}

// FollowConfig writes the limits in force to the bucket items of subjects. Processes with the
// Python library go by the items.
func (s *Store) FollowConfig(ctx context.Context, now time.Time, subjects []weir.Subject) error {
	return s.admin.FollowConfig(ctx, now, subjects)
}

// LiveSubjects yields the subjects that have a bucket item. It reads an index.
func (s *Store) LiveSubjects(
	ctx context.Context, _ time.Time, of weir.Subject,
) iter.Seq2[weir.Subject, error] {
	return s.admin.LiveSubjects(ctx, of)
}
