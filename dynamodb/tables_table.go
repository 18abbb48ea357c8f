package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// tableAccess looks after one table: its layout, its version record and its namespaces.
type tableAccess struct{ *tableClient }

// describe asks DynamoDB what the table is.
func (c *tableAccess) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := c.api.DescribeTable(ctx, &ddb.DescribeTableInput{TableName: &c.table})
	if isMissingTable(err) {
		return nil, c.missing()
	}
	if err != nil {
		return nil, classify(err)
	}
	return out.Table, nil
}

func (c *tableAccess) missing() error {
	return fault(weir.NotFound, "store.table", c.table, "does not exist in "+c.location()+
		": make it with weir table create, or name another one")
}

// location is where the table is looked for, in words.
func (c *tableAccess) location() string {
	o := c.api.Options()
	if o.BaseEndpoint != nil {
		return *o.BaseEndpoint
	}
	return "region " + o.Region
}

// checkTable refuses a table that is not ready, or is none of weir's. Who may not ask what the
// table is, as those who may only reserve, gets no answer, and goes on by the version record.
func (c *tableAccess) checkTable(ctx context.Context) error {
	d, err := c.describe(ctx)
	if errors.Is(err, weir.PermissionDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := usable(c.table, d.TableStatus); err != nil {
		return err
	}
	return checkLayout(c.table, d)
}

// usable refuses a table that takes no calls. One that is being updated does.
func usable(table string, status types.TableStatus) error {
	switch status {
	case types.TableStatusActive, types.TableStatusUpdating:
		return nil
	case types.TableStatusCreating:
		return fault(weir.Unavailable, "store.table", table, "is still being made: try again in a moment")
	}
	return fault(weir.Unavailable, "store.table", table,
		"takes no calls: DynamoDB says it is "+string(status))
}

// checkLayout refuses a table with other keys, or without one of the indexes.
func checkLayout(table string, d *types.TableDescription) error {
	attributes := d.AttributeDefinitions
	if wrong := keysFault(d.KeySchema, schema.AttrPK, schema.AttrSK, attributes); wrong != "" {
		return foreign(table, wrong)
	}
	for _, name := range []string{schema.GSI1, schema.GSI2, schema.GSI3, schema.GSI4} {
		index := globalIndex(d, name)
		if index == nil {
			return foreign(table, "has no index "+name)
		}
		if wrong := keysFault(index.KeySchema, name+"PK", name+"SK", attributes); wrong != "" {
			return foreign(table, "index "+name+": "+wrong)
		}
		switch index.IndexStatus {
		case types.IndexStatusCreating, types.IndexStatusDeleting:
			return foreign(table,
				"index "+name+" is not ready: DynamoDB says it is "+string(index.IndexStatus))
		}
	}
	return nil
}

// keysFault says how keys differ from a partition and a sort key of text, or nothing.
func keysFault(
	keys []types.KeySchemaElement, pk, sk string, all []types.AttributeDefinition,
) string {
	for _, want := range []struct {
		name string
		kind types.KeyType
		role string
	}{{pk, types.KeyTypeHash, "partition"}, {sk, types.KeyTypeRange, "sort"}} {
		if !slices.ContainsFunc(keys, func(k types.KeySchemaElement) bool {
			return text(k.AttributeName) == want.name && k.KeyType == want.kind
		}) {
			return "the " + want.role + " key is not " + want.name
		}
		if !slices.ContainsFunc(all, func(a types.AttributeDefinition) bool {
			return text(a.AttributeName) == want.name && a.AttributeType == types.ScalarAttributeTypeS
		}) {
			return want.name + " is not a string"
		}
	}
	return ""
}

func foreign(table, reason string) error {
	return fault(weir.Unsupported, "store.table", table,
		"has another schema than weir's ("+reason+"): name another table, or make one with "+
			"weir table create")
}

// isLean reports whether the index by resource has the keys alone.
func isLean(d *types.TableDescription) bool {
	index := globalIndex(d, schema.GSI2)
	return index != nil && index.Projection != nil &&
		index.Projection.ProjectionType != types.ProjectionTypeAll
}

// globalIndex is the table's index of that name; nil if it has none.
func globalIndex(d *types.TableDescription, name string) *types.GlobalSecondaryIndexDescription {
	for i := range d.GlobalSecondaryIndexes {
		if index := &d.GlobalSecondaryIndexes[i]; text(index.IndexName) == name {
			return index
		}
	}
	return nil
}

func kindOf(d *types.TableDescription) string {
	if isLean(d) {
		return "lean"
	}
	return "full"
}

// maxStale is how often a description may still be of before the call that made or deleted the
// table: DynamoDB's descriptions lag behind by seconds. With the pauses it is half a minute.
const maxStale = 30

// create makes the table; see the store's Table.Create.
func (c *tableAccess) create(ctx context.Context, def schema.Table) (made bool, err error) {
	_, err = c.api.CreateTable(ctx, def.CreateInput())
	if _, there := errors.AsType[*types.ResourceInUseException](err); err != nil && !there {
		return false, classify(err)
	}
	made = err == nil
	d, err := c.awaitTable(ctx)
	if err != nil {
		return made, err
	}
	if isLean(d) != def.Lean {
		return false, fault(weir.Conflict, "store.table", c.table,
			"exists already, and is a "+kindOf(d)+" table: the kind of a table cannot be changed")
	}
	v, err := c.readVersion(ctx)
	if err != nil {
		return made, err
	}
	if v != nil {
		return made, checkVersion(c.table, v)
	}
	return true, c.initTable(ctx)
}

// awaitTable waits until a table that is being made takes calls, with all of its indexes. It may
// not be there at first.
func (c *tableAccess) awaitTable(ctx context.Context) (*types.TableDescription, error) {
	for attempt := 0; ; attempt++ {
		d, err := c.describe(ctx)
		unseen := errors.Is(err, weir.NotFound) && attempt < maxStale
		if err != nil && !unseen {
			return nil, err
		}
		if !unseen && d.TableStatus != types.TableStatusCreating {
			if err := usable(c.table, d.TableStatus); err != nil {
				return nil, err
			}
			return d, checkLayout(c.table, d)
		}
		if err := backOff(ctx, attempt); err != nil {
			return nil, fmt.Errorf("table %s is still being made: %w", c.table, err)
		}
	}
}

// initTable gives a new table all that is not in its definition. The version record comes last: where
// it is, nothing is missing.
func (c *tableAccess) initTable(ctx context.Context) error {
	if err := c.enableTTL(ctx); err != nil {
		return err
	}
	if _, _, err := c.registerNamespace(ctx, schema.DefaultNamespace); err != nil {
		return err
	}
	v := &schema.Version{
		Schema: schema.SchemaVersion, ClientMin: schema.ClientMinVersion,
		UpdatedAt: schema.Timestamp(c.now()), UpdatedBy: updatedBy,
	}
	put := c.putNew(v.Item()).Put
	_, err := c.api.PutItem(ctx, &ddb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ExpressionAttributeNames: put.ExpressionAttributeNames,
	})
	if outcomeOf(err).kind == writeRefused { // somebody else was faster
		return nil
	}
	return classify(err)
}

// enableTTL switches the time to live on, unless somebody else does.
func (c *tableAccess) enableTTL(ctx context.Context) error {
	if on, err := c.attributeTTL(ctx); on != "" || err != nil {
		return err
	}
	_, err := c.api.UpdateTimeToLive(ctx, &ddb.UpdateTimeToLiveInput{
		TableName: &c.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: new(schema.AttrTTL), Enabled: new(true),
		},
	})
	if err == nil {
		return nil
	}
	if on, failed := c.attributeTTL(ctx); on != "" && failed == nil {
		return nil // who was faster made this call a mistake
	}
	return classify(err)
}

// attributeTTL is the attribute by which items go by themselves, or soon will; empty if none do.
func (c *tableAccess) attributeTTL(ctx context.Context) (string, error) {
	out, err := c.api.DescribeTimeToLive(ctx, &ddb.DescribeTimeToLiveInput{TableName: &c.table})
	if err != nil {
		return "", classify(err)
	}
	switch d := out.TimeToLiveDescription; {
	case d == nil:
	case d.TimeToLiveStatus == types.TimeToLiveStatusEnabled,
		d.TimeToLiveStatus == types.TimeToLiveStatusEnabling:
		return text(d.AttributeName), nil
	}
	return "", nil
}

// delete deletes the table and waits until it is gone; see the store's Table.Delete.
func (c *tableAccess) delete(ctx context.Context) error {
	d, err := c.describe(ctx)
	if err != nil {
		return err
	}
	if err := checkLayout(c.table, d); err != nil {
		return err
	}
	_, err = c.api.DeleteTable(ctx, &ddb.DeleteTableInput{TableName: &c.table})
	if err != nil && !isMissingTable(err) {
		return classify(err)
	}
	for attempt := 0; ; attempt++ {
		d, err := c.describe(ctx)
		switch {
		case errors.Is(err, weir.NotFound):
			return nil
		case err != nil:
			return err
		case d.TableStatus != types.TableStatusDeleting && attempt >= maxStale:
			return fault(weir.Conflict, "store.table", c.table,
				"was not deleted: DynamoDB says it is "+string(d.TableStatus))
		}
		if err := backOff(ctx, attempt); err != nil {
			return fmt.Errorf("table %s is still being deleted: %w", c.table, err)
		}
	}
}
