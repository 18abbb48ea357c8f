package migration

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/oldtable"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

const (
	// lockedClientMin is the client_min_version of a table that is being migrated. It refuses
	// no release: those before 0.15 check it first, ignore that they are too old, and then do
	// not check the schema version.
	lockedClientMin = "0.0.0"
	// updatedBy is the writer that the version record names.
	updatedBy = "weir"
	// writeTimeout is the time after which the outcome of an unanswered write of a bucket item
	// counts as unknown.
	writeTimeout = 2 * time.Second
)

// addIndexes adds the indexes that the table lacks, one at a time, as DynamoDB allows it, and
// waits until all are ready.
func (m *Migration) addIndexes(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		d, err := m.Describe(ctx)
		if err != nil {
			return err
		}
		missing, ready := indexesOf(d)
		if len(missing) == 0 && ready {
			return nil
		}
		if ready {
			err := m.addIndex(ctx, d, missing[0])
			if err != nil {
				return err
			}
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return fmt.Errorf("the indexes of table %s are still being created: %w", m.TableName, err)
		}
	}
}

// indexesOf returns the indexes that a table lacks, and whether it accepts another one.
func indexesOf(d *types.TableDescription) (missing []string, ready bool) {
	ready = d.TableStatus == types.TableStatusActive
	for _, name := range []string{schema.GSI3, schema.GSI4} {
		has := false
		for i := range d.GlobalSecondaryIndexes {
			if x := &d.GlobalSecondaryIndexes[i]; client.Text(x.IndexName) == name {
				has = true
				ready = ready && x.IndexStatus != types.IndexStatusCreating
			}
		}
		if !has {
			missing = append(missing, name)
		}
	}
	return missing, ready
}

// addIndex begins to add an index. An index of a table with provisioned throughput gets that of
// the table.
func (m *Migration) addIndex(ctx context.Context, d *types.TableDescription, name string) error {
	in := schema.Table{Name: m.TableName}.AddIndex(name)
	p := d.ProvisionedThroughput
	if p != nil && p.WriteCapacityUnits != nil && *p.WriteCapacityUnits > 0 {
		in.GlobalSecondaryIndexUpdates[0].Create.ProvisionedThroughput = &types.ProvisionedThroughput{
			ReadCapacityUnits: p.ReadCapacityUnits, WriteCapacityUnits: p.WriteCapacityUnits,
		}
	}
	_, err := m.API.UpdateTable(ctx, in)
	if err == nil {
		return nil
	}
	if d, failed := m.Describe(ctx); failed == nil {
		if missing, ready := indexesOf(d); !ready || !slices.Contains(missing, name) {
			return nil // another run was faster
		}
	}
	return client.Classify(err)
}

// lock keeps every release of the Python library from opening the table, and prepares the
// namespace of the items without one.
func (m *Migration) lock(ctx context.Context) error {
	if m.version != nil {
		return nil
	}
	v := &schema.Version{
		Schema: schema.MigratingSchema, ClientMin: lockedClientMin, Migration: schema.MigratingLimits,
		MigratedFrom: m.report.From, MigrationSince: m.Now().UnixMilli(),
		UpdatedAt: schema.Timestamp(m.Now()), UpdatedBy: updatedBy,
	}
	t := &client.Transaction{Table: m.TableName}
	if m.report.Namespaces {
		v.Extra = m.old.Extra
		e := &client.Expression{}
		e.RequireText(schema.AttrSchemaVersion, m.old.Schema)
		t.Put(v.Item(), e)
	} else if err := m.lockPlain(t, v); err != nil {
		return err
	}
	kind, err := m.write(ctx, t)
	if err != nil {
		return err
	}
	if kind != client.WriteApplied { // another run may have locked it, and even have ended
		has, err := m.ReadVersion(ctx)
		if err != nil {
			return err
		}
		if has == nil || has.Old || has.MigratedFrom == "" {
			return client.Fault(weir.Conflict, "store.table", m.TableName,
				"was changed by another program while it was being locked: run the migration again")
		}
		v = has
	}
	m.version, m.report.Step = v, v.Migration
	return nil
}

// lockPlain adds the lock of a table without namespaces to a transaction. Its old version
// record stays for good, because the releases that look for it would otherwise begin a new one.
func (m *Migration) lockPlain(t *client.Transaction, v *schema.Version) error {
	id, err := schema.NewNamespaceID(rand.Reader)
	if err != nil {
		return fmt.Errorf("weir: register namespace: %w", err)
	}
	v.MigrationHome = id
	absent := func(item schema.Item) {
		e := &client.Expression{}
		e.RequireAbsent(schema.AttrPK)
		t.Put(item, e)
	}
	absent(v.Item())
	n := &schema.Namespace{
		ID: id, Name: schema.DefaultNamespace, Status: schema.StatusActive, CreatedAt: v.UpdatedAt,
	}
	absent(n.Item())
	n.Reverse = true
	absent(n.Item())
	e := &client.Expression{}
	from := ""
	if m.old != nil {
		from = m.old.Schema
	}
	e.RequireText(schema.AttrSchemaVersion, from)
	e.SetText(schema.AttrSchemaVersion, schema.MigratingSchema)
	e.SetText(schema.AttrClientMin, lockedClientMin)
	e.SetText(schema.AttrMigratedFrom, m.report.From)
	e.SetText(schema.AttrUpdatedAt, v.UpdatedAt)
	e.SetText(schema.AttrUpdatedBy, updatedBy)
	t.Update(oldtable.VersionKey(), e)
	return nil
}

// maxAttempts bounds the repetitions of a transaction that was not refused.
const maxAttempts = 12

// write sends a transaction until its outcome is known. It returns [client.WriteApplied] or
// [client.WriteRefused]. A transaction whose answer was lost is sent again, and is refused if
// it was applied: each is on condition of what it changes.
func (m *Migration) write(ctx context.Context, t *client.Transaction) (client.WriteKind, error) {
	for attempt := 0; ; attempt++ {
		in := &ddb.TransactWriteItemsInput{TransactItems: t.Items}
		_, err := m.API.TransactWriteItems(ctx, in)
		kind := client.OutcomeOf(err).Kind
		if kind == client.WriteApplied || kind == client.WriteRefused {
			return kind, nil
		}
		if kind == client.WriteFailed || attempt == maxAttempts {
			return kind, client.Classify(err)
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return kind, err
		}
	}
}

// advance changes the step in the version record. Another run may have done it.
func (m *Migration) advance(
	ctx context.Context, from string, change func(v *schema.Version),
) error {
	v := *m.version
	change(&v)
	v.UpdatedAt, v.UpdatedBy = schema.Timestamp(m.Now()), updatedBy
	e := &client.Expression{}
	e.RequireText(schema.AttrMigration, from)
	t := &client.Transaction{Table: m.TableName}
	t.Put(v.Item(), e)
	if _, err := m.write(ctx, t); err != nil {
		return err
	}
	has, err := m.ReadVersion(ctx)
	if err != nil {
		return err
	}
	if has == nil || has.Migration == from {
		return client.Fault(weir.Conflict, "store.table", m.TableName,
			"has another version record than the migration has written: run the migration again")
	}
	m.version = has
	return nil
}

// mark ends the migration: it enables the time to live, and gives the version record the present
// version.
func (m *Migration) mark(ctx context.Context) error {
	if m.version.Migration != "" {
		if err := m.EnableTTL(ctx); err != nil {
			return err
		}
		err := m.advance(ctx, schema.MigratingBuckets, func(v *schema.Version) {
			v.Migration, v.Schema, v.Lambda = "", schema.SchemaVersion, ""
			v.ClientMin = tables.UnderstoodRelease
		})
		if err != nil {
			return err
		}
	}
	m.report.Step = StepDone
	return nil
}
