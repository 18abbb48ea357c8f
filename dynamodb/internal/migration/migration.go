// Package migration turns a table of an older layout into one of the present layout, while weir
// uses it. Package oldtable knows the older layouts.
//
// A [Migration] goes through these steps. Each can be interrupted at any point: the next run
// begins with the step that the table is at.
//
//  1. Indexes. The table gets the indexes that it lacks. Its old users go on.
//  2. Lock. One transaction writes the version record with a schema version that no release of the
//     Python library opens, at the present key and at the old one.
//  3. Limits. Entities, limits and registries are carried over. Nobody uses the table.
//  4. Buckets. Bucket items, usage and the audit are carried over. weir uses the table: where it finds
//     no bucket item, it first carries over the old ones.
//  5. Mark. When a scan has found no old item, the version record says that the table is of the
//     present layout.
//
// Every old item is deleted in the transaction that writes the present one, so no item is
// carried over twice, and a reader sees one of the two. That transaction is the only state: a
// scan finds what is left.
package migration

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

// Counts are numbers of old items by kind. Buckets and Places are numbers of buckets and places
// of the configuration, which may have several items each.
type Counts struct {
	Entities, Places, Registries, Buckets, Usage, Audit int64
	// Unknown are items at old keys that no release is known to write. They stay as they are.
	Unknown int64
}

// add counts one of a kind.
func (c *Counts) add(kind oldtable.Kind) {
	switch kind {
	case oldtable.Entity:
		c.Entities++
	case oldtable.Limit, oldtable.Config:
		c.Places++
	case oldtable.Registry:
		c.Registries++
	case oldtable.Bucket:
		c.Buckets++
	case oldtable.Usage:
		c.Usage++
	case oldtable.Audit:
		c.Audit++
	case oldtable.Unknown:
		c.Unknown++
	}
}

// The steps of a migration.
const (
	StepNone    = ""        // the table is of the present layout
	StepIndexes = "indexes" // nothing was changed yet, except that indexes were added
	StepLimits  = "limits"
	StepBuckets = "buckets"
	StepDone    = "done"
)

// Report says how far a migration is.
type Report struct {
	// Step is the step that the table is at.
	Step string
	// From is the schema version of the table before the migration; "unknown" if it has no
	// version record.
	From string
	// Namespaces says that the old items have namespaces.
	Namespaces bool
	// Indexes are the indexes that the table lacked when this run began.
	Indexes []string
	// Counts are what this run has carried over or, of a dry run, what there is to carry over.
	Counts Counts
}

// Migration migrates one table. Use it for one run.
type Migration struct {
	*tables.Table

	// Progress is called after each part of the work, from one goroutine; nil to ignore it.
	Progress func(Report)

	report  Report
	version *schema.Version // the version record; nil before the lock
	old     *schema.Version // the version record before the migration; nil if there was none
	stores  stores
}

// unknownSchema is the schema version of a table without a version record.
const unknownSchema = "unknown"

// Run carries out the migration, or what is left of it. The report is of the point that it has
// reached, also with an error.
func (m *Migration) Run(ctx context.Context) (Report, error) {
	if err := m.find(ctx); err != nil {
		return Report{}, err
	}
	if m.report.Step == StepNone {
		return m.report, nil
	}
	defer m.stores.close()
	for _, step := range []func(context.Context) error{
		m.addIndexes, m.lock, m.carryLimits, m.carryRest, m.mark,
	} {
		if err := step(ctx); err != nil {
			return m.report, err
		}
		m.progress()
	}
	return m.report, nil
}

// DryRun counts what there is to carry over. It changes nothing.
func (m *Migration) DryRun(ctx context.Context) (Report, error) {
	if err := m.find(ctx); err != nil {
		return Report{}, err
	}
	if m.report.Step == StepNone {
		return m.report, nil
	}
	var seen places
	for page, err := range m.scan(ctx, true) {
		if err != nil {
			return m.report, err
		}
		for _, item := range page {
			key, err := schema.KeyOf(item)
			if err != nil {
				return m.report, client.Unreadable(err)
			}
			if k := m.parseKey(key); seen.first(key, k) {
				m.report.Counts.add(k.Kind)
			}
		}
		m.progress()
	}
	return m.report, nil
}

func (m *Migration) progress() {
	if m.Progress != nil {
		m.Progress(m.report)
	}
}

// find finds out which layout the table has, and which step it is at.
func (m *Migration) find(ctx context.Context) error {
	d, err := m.Describe(ctx)
	if err != nil {
		return err
	}
	if err := tables.Usable(m.TableName, d.TableStatus); err != nil {
		return err
	}
	m.report.Indexes, err = tables.CheckOldLayout(m.TableName, withReadyIndexes(d))
	if err != nil {
		return err
	}
	v, err := m.ReadVersion(ctx)
	if err != nil {
		return err
	}
	switch {
	case v == nil:
		m.report.Step, m.report.From = StepIndexes, unknownSchema
		return m.requireOldItem(ctx)
	case v.Migration != "":
		m.version, m.report.From = v, v.MigratedFrom
		m.report.Step, m.report.Namespaces = v.Migration, v.MigrationHome == ""
		return nil
	case v.Old:
		m.report.Step, m.old, m.report.From = StepIndexes, v, v.Schema
		return m.checkOld(v)
	}
	err = tables.CheckVersion(m.TableName, v)
	if errors.Is(err, weir.Unsupported) && tables.IsOlder(v) {
		m.report.Step, m.old, m.report.From, m.report.Namespaces = StepIndexes, v, v.Schema, true
		return nil
	}
	return err
}

// checkOld returns an error for a version record of a table without namespaces that no release
// has written.
func (m *Migration) checkOld(v *schema.Version) error {
	if v.Schema == firstSchema || tables.IsOlder(v) {
		return nil
	}
	return client.Fault(weir.Unsupported, "schema_version", v.Schema, "of table "+m.TableName+
		" is not that of an older layout that weir knows")
}

// firstSchema is the schema version of releases before 0.7; the next one is lower.
const firstSchema = "1.0.0"

// requireOldItem returns an error for a table that has neither a version record nor old items.
func (m *Migration) requireOldItem(ctx context.Context) error {
	for page, err := range m.scan(ctx, true) {
		if err != nil {
			return err
		}
		for _, item := range page {
			key, err := schema.KeyOf(item)
			if err != nil {
				return client.Unreadable(err)
			}
			if k := m.parseKey(key); k.Kind != oldtable.Present && k.Kind != oldtable.Unknown {
				return nil
			}
		}
	}
	return client.Fault(weir.NotFound, "store.table", m.TableName,
		"has neither a version record nor an item of an older layout, so there is nothing to "+
			"migrate: to prepare it for weir, run weir table create")
}

// withReadyIndexes returns a copy of a description in which the indexes that are being created
// count as ready: an interrupted run may have begun them.
func withReadyIndexes(d *types.TableDescription) *types.TableDescription {
	c := *d
	c.GlobalSecondaryIndexes = slices.Clone(d.GlobalSecondaryIndexes)
	for i := range c.GlobalSecondaryIndexes {
		if x := &c.GlobalSecondaryIndexes[i]; x.IndexStatus == types.IndexStatusCreating {
			x.IndexStatus = types.IndexStatusActive
		}
	}
	return &c
}
