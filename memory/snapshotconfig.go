package memory

import (
	"context"
	"iter"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver/declare"
)

// The audit of the changes of the configuration is in the file. The configuration itself is there
// if it is the store's own: made by single changes, and not given as a whole.

// Declared is [Store.Declared].
func (s *SnapshotStore) Declared(entity string) bool { return s.store.Declared(entity) }

// ReadConfig is [Store.ReadConfig].
func (s *SnapshotStore) ReadConfig(
	ctx context.Context, of weir.Subject, consistent bool,
) (*weir.Config, error) {
	return s.store.ReadConfig(ctx, of, consistent)
}

// WriteConfig is [Store.WriteConfig]. From then on, the configuration is not written to the file.
func (s *SnapshotStore) WriteConfig(ctx context.Context, now time.Time, d *weir.Definitions) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.WriteConfig(ctx, now, d)
}

// WriteLimits is [Store.WriteLimits].
func (s *SnapshotStore) WriteLimits(
	ctx context.Context, now time.Time, at weir.Subject, limits []weir.Limit,
) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.WriteLimits(ctx, now, at, limits)
}

// WritePolicy is [Store.WritePolicy].
func (s *SnapshotStore) WritePolicy(ctx context.Context, now time.Time, p weir.Policy) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.WritePolicy(ctx, now, p)
}

// WriteEntity is [Store.WriteEntity].
func (s *SnapshotStore) WriteEntity(
	ctx context.Context, now time.Time, name, parent string, cascade bool,
) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.WriteEntity(ctx, now, name, parent, cascade)
}

// DeleteEntity is [Store.DeleteEntity].
func (s *SnapshotStore) DeleteEntity(ctx context.Context, now time.Time, name string) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	defer s.changed.Store(true) // because of the audit
	return s.store.DeleteEntity(ctx, now, name)
}

// ReadEntity is [Store.ReadEntity].
func (s *SnapshotStore) ReadEntity(ctx context.Context, name string) (*weir.EntityDefinition, error) {
	return s.store.ReadEntity(ctx, name)
}

// ListEntities is [Store.ListEntities].
func (s *SnapshotStore) ListEntities(ctx context.Context, q *weir.EntityQuery) (*weir.EntityPage, error) {
	return s.store.ListEntities(ctx, q)
}

// Entities is [Store.Entities].
func (s *SnapshotStore) Entities(ctx context.Context, now time.Time, resource string) ([]string, error) {
	return s.store.Entities(ctx, now, resource)
}

// Resources is [Store.Resources].
func (s *SnapshotStore) Resources(
	ctx context.Context, now time.Time, entity string,
) ([]string, error) {
	return s.store.Resources(ctx, now, entity)
}

// ReadUsage is [Store.ReadUsage].
func (s *SnapshotStore) ReadUsage(
	ctx context.Context, q *weir.UsageQuery, after *weir.Usage,
) iter.Seq2[weir.Usage, error] {
	return s.store.ReadUsage(ctx, q, after)
}

// UsageGaps is [Store.UsageGaps].
func (s *SnapshotStore) UsageGaps(
	ctx context.Context, now time.Time, q *weir.UsageQuery,
) ([]weir.UsageGap, error) {
	return s.store.UsageGaps(ctx, now, q)
}

// ReadAudit is [Store.ReadAudit].
func (s *SnapshotStore) ReadAudit(
	ctx context.Context, q *weir.AuditQuery,
) iter.Seq2[weir.AuditEvent, error] {
	return s.store.ReadAudit(ctx, q)
}

// DeclaredNamespace is [Store.DeclaredNamespace].
func (s *SnapshotStore) DeclaredNamespace() string { return s.store.DeclaredNamespace() }

// ReadDefinitions is [Store.ReadDefinitions].
func (s *SnapshotStore) ReadDefinitions(
	ctx context.Context, also *declare.Managed,
) (*declare.Definitions, error) {
	return s.store.ReadDefinitions(ctx, also)
}

// CheckDeclared is [Store.CheckDeclared].
func (s *SnapshotStore) CheckDeclared(d *declare.Record) error { return s.store.CheckDeclared(d) }

// ReadDeclared is [Store.ReadDeclared].
func (s *SnapshotStore) ReadDeclared(ctx context.Context) (*declare.Record, error) {
	return s.store.ReadDeclared(ctx)
}

// WriteDeclared is [Store.WriteDeclared]. The record is in the file if the configuration is.
func (s *SnapshotStore) WriteDeclared(
	ctx context.Context, now time.Time, read, d *declare.Record,
) error {
	if err := s.checkWritable(); err != nil {
		return err
	}
	defer s.changed.Store(true)
	return s.store.WriteDeclared(ctx, now, read, d)
}

// LiveSubjects is [Store.LiveSubjects].
func (s *SnapshotStore) LiveSubjects(
	ctx context.Context, now time.Time, of weir.Subject,
) iter.Seq2[weir.Subject, error] {
	return s.store.LiveSubjects(ctx, now, of)
}

// FollowConfig is [Store.FollowConfig].
func (s *SnapshotStore) FollowConfig(
	ctx context.Context, now time.Time, subjects []weir.Subject,
) error {
	return s.store.FollowConfig(ctx, now, subjects)
}

// checkWritable refuses a change if the store was opened for reading only.
func (s *SnapshotStore) checkWritable() error {
	if s.readOnly {
		return &weir.Error{Code: weir.Unsupported, Reason: "the snapshot is open for reading only"}
	}
	return nil
}
