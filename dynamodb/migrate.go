package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir/dynamodb/internal/migration"
)

// Migration says how far [Table.Migrate] is. The counts are of what the call has migrated or,
// in a dry run, of what there is to migrate.
type Migration struct {
	// Step is the step that the table is at. "" means that it is of the present layout;
	// "indexes" that nothing was changed yet, except that indexes may have been added; "limits"
	// that no client can use the table while its entities and limits are migrated; "buckets" that
	// weir can use it while the rest is migrated; "done" that this call has completed the
	// migration.
	Step string
	// From is the schema version of the older layout: "1.0.0" (releases before 0.7), "0.7.0" or
	// "0.8.0", or "unknown" if the table had no version record. Empty if there is nothing to
	// migrate.
	From string
	// Namespaces says that the table had namespaces, as release 0.10.0 made them. Otherwise all
	// of it belongs to the namespace "default" now.
	Namespaces bool
	// Indexes are the names of the indexes that the table lacked when the call began.
	Indexes []string
	// Entities counts the records of entities.
	Entities int64
	// Places counts places with limits: the system, resources, and entities with limits of
	// their own.
	Places int64
	// Registries counts lists of resources.
	Registries int64
	// Buckets counts buckets, each of one entity and resource.
	Buckets int64
	// Usage counts records of usage, and Audit events of the audit.
	Usage, Audit int64
	// Unknown counts items at old keys that no release is known to write, or that a release
	// before the table's own has left. They stay as they are. Only a dry run counts them.
	Unknown int64
}

// Migrate turns a table that a release of the Python library before 0.10.1 has made into one of
// the present layout. It keeps that library's releases out of the table, and weir can use the
// table while the buckets are migrated. A dry run only counts. progress is called after each
// part of the work, from one goroutine; nil to ignore it. A call that ended early, for whatever
// reason, is continued by the next one. A table of the present layout stays as it is. The
// result says how far the table is, also with an error: [weir.NotFound] for a table with
// nothing to migrate that weir cannot use, [weir.Unsupported] for one of another program or of
// a newer version.
//
// Processes of the library that have opened the table before do not notice. They must be stopped
// first, see docs/migration.md.
func (t *Table) Migrate(
	ctx context.Context, dryRun bool, progress func(*Migration),
) (*Migration, error) {
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	m := &migration.Migration{Table: c}
	if progress != nil {
		m.Progress = func(r migration.Report) { progress(migrationOf(r)) }
	}
	run := m.Run
	if dryRun {
		run = m.DryRun
	}
	r, err := run(ctx)
	return migrationOf(r), err
}

func migrationOf(r migration.Report) *Migration {
	n := &r.Counts
	return &Migration{
		Step: r.Step, From: r.From, Namespaces: r.Namespaces, Indexes: r.Indexes,
		Entities: n.Entities, Places: n.Places, Registries: n.Registries, Buckets: n.Buckets,
		Usage: n.Usage, Audit: n.Audit, Unknown: n.Unknown,
	}
}
