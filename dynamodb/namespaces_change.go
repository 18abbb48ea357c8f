package dynamodb

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// deleteNamespace takes a name away and keeps the data under its ID.
func (c *connection) deleteNamespace(ctx context.Context, name string) (*schema.Namespace, error) {
	n, err := c.forward(ctx, name)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, fault(weir.NotFound, "namespace", name, "is not registered on table "+c.table)
	}
	n.Status, n.DeletedAt = schema.StatusDeleted, schema.Timestamp(c.now())
	_, err = c.client.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Delete: &types.Delete{
				TableName: &c.table, Key: schema.NamespaceKey(name).Item(),
				ConditionExpression:       new("#n0 = :v0"),
				ExpressionAttributeNames:  map[string]string{"#n0": schema.AttrNamespaceID},
				ExpressionAttributeValues: schema.Item{":v0": schema.String(n.ID)},
			}},
			{Update: &types.Update{
				TableName: &c.table, Key: schema.NamespaceIDKey(n.ID).Item(),
				UpdateExpression: new("SET #n0 = :v0, #n1 = :v1"),
				ExpressionAttributeNames: map[string]string{
					"#n0": schema.AttrStatus, "#n1": schema.AttrDeletedAt,
				},
				ExpressionAttributeValues: schema.Item{
					":v0": schema.String(n.Status), ":v1": schema.String(n.DeletedAt),
				},
			}},
		},
	})
	return n, c.changed("namespace", name, err)
}

// changed is what to say of a change of the registry that ended with err.
func (c *connection) changed(field, value string, err error) error {
	switch outcomeOf(err).kind {
	case writeApplied:
		return nil
	case writeRefused:
		return fault(weir.Conflict, field, value, "was changed by somebody meanwhile: look at it again")
	}
	return classify(err)
}

// recoverNamespace makes the name of a deleted namespace lead to its data again.
func (c *connection) recoverNamespace(ctx context.Context, id string) (*schema.Namespace, error) {
	n, err := c.reverse(ctx, id)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, c.noSuchID(id)
	}
	if n.Status == schema.StatusPurging {
		return nil, fault(weir.Conflict, "namespace_id", id,
			"is being purged, which cannot be undone: run weir namespace purge "+id+" to finish it")
	}
	taken, err := c.forward(ctx, n.Name)
	switch {
	case err != nil:
		return nil, err
	case taken != nil && taken.ID == id && n.Status == schema.StatusActive:
		return nil, fault(weir.Conflict, "namespace_id", id, "is active: there is nothing to recover")
	case taken != nil && taken.ID != id:
		return nil, fault(weir.Conflict, "namespace_id", id,
			"cannot have its name back: "+n.Name+" was registered again, as "+taken.ID)
	}
	return n, c.revive(ctx, n)
}

// revive writes both items of a namespace that was deleted, or lost its name.
func (c *connection) revive(ctx context.Context, n *schema.Namespace) error {
	was := n.Status
	n.Status, n.DeletedAt = schema.StatusActive, ""
	forward := *n
	forward.Reverse, forward.Extra = false, nil
	_, err := c.client.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{
				TableName: &c.table, Item: forward.Item(),
				ConditionExpression: new("attribute_not_exists(#n0) OR #n1 = :v0"),
				ExpressionAttributeNames: map[string]string{
					"#n0": schema.AttrPK, "#n1": schema.AttrNamespaceID,
				},
				ExpressionAttributeValues: schema.Item{":v0": schema.String(n.ID)},
			}},
			{Update: &types.Update{
				TableName: &c.table, Key: schema.NamespaceIDKey(n.ID).Item(),
				UpdateExpression:    new("SET #n0 = :v0 REMOVE #n1"),
				ConditionExpression: new("#n0 = :v1"),
				ExpressionAttributeNames: map[string]string{
					"#n0": schema.AttrStatus, "#n1": schema.AttrDeletedAt,
				},
				ExpressionAttributeValues: schema.Item{
					":v0": schema.String(n.Status), ":v1": schema.String(was),
				},
			}},
		},
	})
	return c.changed("namespace_id", n.ID, err)
}

func (c *connection) noSuchID(id string) error {
	return fault(weir.NotFound, "namespace_id", id,
		"is the ID of no namespace on table "+c.table+": weir namespace orphans lists the deleted ones")
}
