package dynamodb

import (
	"context"
	"errors"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// describe asks DynamoDB what the table is.
func (c *tableClient) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := c.client.DescribeTable(ctx, &ddb.DescribeTableInput{TableName: &c.table})
	if isMissingTable(err) {
		return nil, c.missing()
	}
	if err != nil {
		return nil, classify(err)
	}
	return out.Table, nil
}

func (c *tableClient) missing() error {
	return fault(weir.NotFound, "store.table", c.table, "does not exist in "+c.location()+
		": make it with weir table create, or name another one")
}

// location is where the table is looked for, in words.
func (c *tableClient) location() string {
	o := c.client.Options()
	if o.BaseEndpoint != nil {
		return *o.BaseEndpoint
	}
	return "region " + o.Region
}

// checkTable refuses a table that is not ready, or is none of weir's. Who may not ask what the
// table is, as those who may only reserve, gets no answer, and goes on by the version record.
func (c *tableClient) checkTable(ctx context.Context) error {
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

// text is a string of the SDK; empty if it has none.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
