// Package tables administers a table as a whole: its layout, its version record and its registry of
// namespaces.
//
// A [Table] creates, checks and deletes a table. A new table is complete when it has its version
// record, which is written last. Opening a store checks three things in order: that the table is
// active and has weir's keys and indexes, that the version record allows this weir to read the
// items, and that the namespace is registered.
//
// The items of a namespace are stored under an ID. Two registry items lead from the name to the ID
// and back; registering, deleting and recovering a namespace change both in one transaction. A
// deleted namespace loses its name and keeps its data until a [Purge] deletes that for good.
//
// No value has state of its own, so there are no locks: conditions on the items decide between
// callers.
package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// Table administers one table.
type Table struct{ *client.Client }

// Describe returns DynamoDB's description of the table.
func (c *Table) Describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := c.API.DescribeTable(ctx, &ddb.DescribeTableInput{TableName: &c.TableName})
	if client.IsMissingTable(err) {
		return nil, c.missing()
	}
	if err != nil {
		return nil, client.Classify(err)
	}
	return out.Table, nil
}

func (c *Table) missing() error {
	return client.Fault(weir.NotFound, "store.table", c.TableName, "does not exist in "+c.location()+
		": create it with weir table create, or name another table")
}

// location describes where the table was looked for.
func (c *Table) location() string {
	o := c.API.Options()
	if o.BaseEndpoint != nil {
		return *o.BaseEndpoint
	}
	return "region " + o.Region
}

// CheckTable returns an error if the table is not active or has another layout. A caller without
// permission to describe the table gets no error, and relies on the version record.
func (c *Table) CheckTable(ctx context.Context) error {
	d, err := c.Describe(ctx)
	if errors.Is(err, weir.PermissionDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := Usable(c.TableName, d.TableStatus); err != nil {
		return err
	}
	return CheckLayout(c.TableName, d)
}

// Usable returns an error for a table that accepts no calls. A table that is being updated accepts
// them.
func Usable(table string, status types.TableStatus) error {
	switch status {
	case types.TableStatusActive, types.TableStatusUpdating:
		return nil
	case types.TableStatusCreating:
		return client.Fault(weir.Unavailable, "store.table", table,
			"is still being created: try again in a moment")
	}
	return client.Fault(weir.Unavailable, "store.table", table,
		"cannot be used: its status is "+string(status))
}

// CheckLayout returns an error for a table with other keys, or without one of the indexes.
func CheckLayout(table string, d *types.TableDescription) error {
	missing, err := CheckOldLayout(table, d)
	if err == nil && len(missing) > 0 {
		return client.Fault(weir.Unsupported, "store.table", table,
			"does not have weir's schema (has no index "+missing[0]+"): if an older release of the "+
				"Python library made it, "+migrateAdvice+
				"; otherwise name another table, or create one with weir table create")
	}
	return err
}

// CheckOldLayout is like CheckLayout, but returns the names of the indexes that tables of older
// releases lack.
func CheckOldLayout(table string, d *types.TableDescription) (missing []string, err error) {
	attributes := d.AttributeDefinitions
	if wrong := keysFault(d.KeySchema, schema.AttrPK, schema.AttrSK, attributes); wrong != "" {
		return nil, foreign(table, wrong)
	}
	for _, name := range []string{schema.GSI1, schema.GSI2, schema.GSI3, schema.GSI4} {
		index := globalIndex(d, name)
		switch {
		case index == nil && (name == schema.GSI3 || name == schema.GSI4):
			missing = append(missing, name)
			continue
		case index == nil:
			return nil, foreign(table, "has no index "+name)
		}
		if wrong := keysFault(index.KeySchema, name+"PK", name+"SK", attributes); wrong != "" {
			return nil, foreign(table, "index "+name+": "+wrong)
		}
		switch index.IndexStatus {
		case types.IndexStatusCreating, types.IndexStatusDeleting:
			return nil, foreign(table,
				"index "+name+" is not ready: its status is "+string(index.IndexStatus))
		}
	}
	return missing, nil
}

// keysFault returns the way in which keys differ from a string partition key and a string sort key;
// empty if they do not.
func keysFault(
	keys []types.KeySchemaElement, pk, sk string, all []types.AttributeDefinition,
) string {
	for _, want := range []struct {
		name string
		kind types.KeyType
		role string
	}{{pk, types.KeyTypeHash, "partition"}, {sk, types.KeyTypeRange, "sort"}} {
		if !slices.ContainsFunc(keys, func(k types.KeySchemaElement) bool {
			return client.Text(k.AttributeName) == want.name && k.KeyType == want.kind
		}) {
			return "the " + want.role + " key is not " + want.name
		}
		if !slices.ContainsFunc(all, func(a types.AttributeDefinition) bool {
			return client.Text(a.AttributeName) == want.name && a.AttributeType == types.ScalarAttributeTypeS
		}) {
			return want.name + " is not a string"
		}
	}
	return ""
}

func foreign(table, reason string) error {
	return client.Fault(weir.Unsupported, "store.table", table,
		"does not have weir's schema ("+reason+"): name another table, or create one with "+
			"weir table create")
}

// IsLean reports whether the index by resource has keys only.
func IsLean(d *types.TableDescription) bool {
	index := globalIndex(d, schema.GSI2)
	return index != nil && index.Projection != nil &&
		index.Projection.ProjectionType != types.ProjectionTypeAll
}

// globalIndex returns the table's index with that name; nil if it has none.
func globalIndex(d *types.TableDescription, name string) *types.GlobalSecondaryIndexDescription {
	for i := range d.GlobalSecondaryIndexes {
		if index := &d.GlobalSecondaryIndexes[i]; client.Text(index.IndexName) == name {
			return index
		}
	}
	return nil
}

func kindOf(d *types.TableDescription) string {
	if IsLean(d) {
		return "lean"
	}
	return "full"
}

// MaxStale is the largest number of descriptions that are read after a table was created or
// deleted: DynamoDB's descriptions lag behind by seconds. With the pauses it is half a minute.
const MaxStale = 30

// Create creates the table; see the store's Table.Create. The version record of a new table admits
// clients of the Python library from release clientMin on.
func (c *Table) Create(
	ctx context.Context, def schema.Table, clientMin string,
) (made bool, err error) {
	_, err = c.API.CreateTable(ctx, def.CreateInput())
	if _, there := errors.AsType[*types.ResourceInUseException](err); err != nil && !there {
		return false, client.Classify(err)
	}
	made = err == nil
	d, err := c.awaitTable(ctx)
	if err != nil {
		return made, err
	}
	if IsLean(d) != def.Lean {
		return false, client.Fault(weir.Conflict, "store.table", c.TableName,
			"exists already, and is a "+kindOf(d)+" table: the kind of a table cannot be changed")
	}
	v, err := c.ReadVersion(ctx)
	if err != nil {
		return made, err
	}
	if v != nil {
		return made, CheckVersion(c.TableName, v)
	}
	return true, c.initTable(ctx, def.Recovery, clientMin)
}

// awaitTable waits until a new table is active with all its indexes. At first it may not exist.
func (c *Table) awaitTable(ctx context.Context) (*types.TableDescription, error) {
	for attempt := 0; ; attempt++ {
		d, err := c.Describe(ctx)
		unseen := errors.Is(err, weir.NotFound) && attempt < MaxStale
		if err != nil && !unseen {
			return nil, err
		}
		if !unseen && d.TableStatus != types.TableStatusCreating {
			if err := Usable(c.TableName, d.TableStatus); err != nil {
				return nil, err
			}
			return d, CheckLayout(c.TableName, d)
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return nil, fmt.Errorf("table %s is still being created: %w", c.TableName, err)
		}
	}
}

// initTable writes the parts of a new table that are not in its definition. The version record is
// last: if it exists, the table is complete.
func (c *Table) initTable(ctx context.Context, recovery bool, clientMin string) error {
	if err := c.EnableTTL(ctx); err != nil {
		return err
	}
	if recovery {
		if err := c.enableRecovery(ctx); err != nil {
			return err
		}
	}
	if _, _, err := c.RegisterNamespace(ctx, schema.DefaultNamespace); err != nil {
		return err
	}
	v := &schema.Version{
		Schema: schema.SchemaVersion, ClientMin: clientMin,
		UpdatedAt: schema.Timestamp(c.Now()), UpdatedBy: updatedBy,
	}
	put := c.putNew(v.Item()).Put
	_, err := c.API.PutItem(ctx, &ddb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ExpressionAttributeNames: put.ExpressionAttributeNames,
	})
	if client.OutcomeOf(err).Kind == client.WriteRefused { // another caller was faster
		return nil
	}
	return client.Classify(err)
}

// EnableTTL enables the time to live, unless it is enabled.
func (c *Table) EnableTTL(ctx context.Context) error {
	if on, err := c.AttributeTTL(ctx); on != "" || err != nil {
		return err
	}
	_, err := c.API.UpdateTimeToLive(ctx, &ddb.UpdateTimeToLiveInput{
		TableName: &c.TableName, TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: new(schema.AttrTTL), Enabled: new(true),
		},
	})
	if err == nil {
		return nil
	}
	if on, failed := c.AttributeTTL(ctx); on != "" && failed == nil {
		return nil // another caller enabled it first, so DynamoDB refused this call
	}
	return client.Classify(err)
}

// AttributeTTL returns the attribute by which items expire, even if it is still being enabled;
// empty if they do not expire.
func (c *Table) AttributeTTL(ctx context.Context) (string, error) {
	out, err := c.API.DescribeTimeToLive(ctx, &ddb.DescribeTimeToLiveInput{TableName: &c.TableName})
	if err != nil {
		return "", client.Classify(err)
	}
	switch d := out.TimeToLiveDescription; {
	case d == nil:
	case d.TimeToLiveStatus == types.TimeToLiveStatusEnabled,
		d.TimeToLiveStatus == types.TimeToLiveStatusEnabling:
		return client.Text(d.AttributeName), nil
	}
	return "", nil
}

// enableRecovery enables point-in-time recovery. DynamoDB accepts it again if it is enabled.
func (c *Table) enableRecovery(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		_, err := c.API.UpdateContinuousBackups(ctx, &ddb.UpdateContinuousBackupsInput{
			TableName: &c.TableName,
			PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{
				PointInTimeRecoveryEnabled: new(true),
			},
		})
		// DynamoDB prepares the backups of a new table for a while after the table is active.
		if _, preparing := errors.AsType[*types.ContinuousBackupsUnavailableException](err); !preparing ||
			attempt == MaxStale {
			return client.Classify(err)
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return fmt.Errorf("point-in-time recovery of table %s is not enabled: %w", c.TableName, err)
		}
	}
}

// Recovery reports whether point-in-time recovery is enabled. DynamoDB Local does not have it.
func (c *Table) Recovery(ctx context.Context) (bool, error) {
	out, err := c.API.DescribeContinuousBackups(ctx,
		&ddb.DescribeContinuousBackupsInput{TableName: &c.TableName})
	if client.IsUnknownOperation(err) {
		return false, nil
	}
	if err != nil {
		return false, client.Classify(err)
	}
	d := out.ContinuousBackupsDescription
	if d == nil || d.PointInTimeRecoveryDescription == nil {
		return false, nil
	}
	status := d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus
	return status == types.PointInTimeRecoveryStatusEnabled, nil
}

// StreamOn enables the stream; see the store's Table.EnableStream.
func (c *Table) StreamOn(ctx context.Context) (made bool, err error) {
	for attempt := 0; ; attempt++ {
		d, err := c.Describe(ctx)
		if err != nil {
			return made, err
		}
		err = errors.Join(Usable(c.TableName, d.TableStatus), CheckLayout(c.TableName, d))
		if err != nil {
			return made, err
		}
		view := StreamView(d)
		switch {
		case view != "" && view != string(types.StreamViewTypeNewAndOldImages):
			return made, client.Fault(weir.Conflict, "store.table", c.TableName,
				"has a stream of "+view+", and the aggregator needs NEW_AND_OLD_IMAGES: turn the stream "+
					"off first, if nothing else reads it")
		case view != "" && d.TableStatus == types.TableStatusActive:
			return made, nil
		case view == "" && !made:
			_, err := c.API.UpdateTable(ctx, &ddb.UpdateTableInput{
				TableName: &c.TableName, StreamSpecification: &types.StreamSpecification{
					StreamEnabled: new(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
				},
			})
			if err != nil {
				return false, client.Classify(err)
			}
			made = true
		case attempt >= MaxStale:
			return made, client.Fault(weir.Unavailable, "store.table", c.TableName,
				"has no stream yet: its status is "+string(d.TableStatus))
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return made, fmt.Errorf("the stream of table %s is still being enabled: %w", c.TableName, err)
		}
	}
}

// StreamView returns the view type of a table's stream; empty if it has none.
func StreamView(d *types.TableDescription) string {
	if s := d.StreamSpecification; s != nil && s.StreamEnabled != nil && *s.StreamEnabled {
		return string(s.StreamViewType)
	}
	return ""
}

// Delete deletes the table and waits until it is gone; see the store's Table.Delete.
func (c *Table) Delete(ctx context.Context) error {
	d, err := c.Describe(ctx)
	if err != nil {
		return err
	}
	if err := CheckLayout(c.TableName, d); err != nil {
		return err
	}
	if d.DeletionProtectionEnabled != nil && *d.DeletionProtectionEnabled {
		return client.Fault(weir.Conflict, "store.table", c.TableName,
			"has deletion protection: take it off first, with "+
				"aws dynamodb update-table --no-deletion-protection-enabled --table-name "+c.TableName)
	}
	_, err = c.API.DeleteTable(ctx, &ddb.DeleteTableInput{TableName: &c.TableName})
	if err != nil && !client.IsMissingTable(err) {
		return client.Classify(err)
	}
	for attempt := 0; ; attempt++ {
		d, err := c.Describe(ctx)
		switch {
		case errors.Is(err, weir.NotFound):
			return nil
		case err != nil:
			return err
		case d.TableStatus != types.TableStatusDeleting && attempt >= MaxStale:
			return client.Fault(weir.Conflict, "store.table", c.TableName,
				"was not deleted: its status is "+string(d.TableStatus))
		}
		if err := client.BackOff(ctx, attempt); err != nil {
			return fmt.Errorf("table %s is still being deleted: %w", c.TableName, err)
		}
	}
}
