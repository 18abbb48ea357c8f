package dynamodb

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// deleteNamespace takes a name away and keeps the data under its ID.
func (c *tableClient) deleteNamespace(ctx context.Context, name string) (*schema.Namespace, error) {
	n, err := c.forward(ctx, name)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, fault(weir.NotFound, "namespace", name, "is not registered on table "+c.table)
	}
	back, err := c.reverse(ctx, n.ID)
	if err != nil {
		return nil, err
	}
	t := &configTransaction{table: c.table}
	named := &expression{}
	named.equalText(schema.AttrNamespaceID, n.ID)
	t.remove(schema.NamespaceKey(name), named)
	e := &expression{}
	if back != nil && back.Status == schema.StatusPurging { // somebody gave it the name meanwhile
		n.Status, n.DeletedAt = back.Status, back.DeletedAt
		e.equalText(schema.AttrStatus, n.Status)
		t.check(schema.NamespaceIDKey(n.ID), e)
	} else {
		n.Status, n.DeletedAt = schema.StatusDeleted, schema.Timestamp(c.now())
		e.setText(schema.AttrStatus, n.Status)
		e.setText(schema.AttrDeletedAt, n.DeletedAt)
		e.restoreReverse(n)
		e.differentText(schema.AttrStatus, schema.StatusPurging)
		t.update(schema.NamespaceIDKey(n.ID), e)
	}
	return n, c.changed("namespace", name, c.transact(ctx, t))
}

// transact writes a change of the registry.
func (c *tableClient) transact(ctx context.Context, t *configTransaction) error {
	_, err := c.client.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{TransactItems: t.items})
	return err
}

// changed is what to say of a change of the registry that ended with err.
func (c *tableClient) changed(field, value string, err error) error {
	switch outcomeOf(err).kind {
	case writeApplied:
		return nil
	case writeRefused:
		return fault(weir.Conflict, field, value, "was changed by somebody meanwhile: look at it again")
	}
	return classify(err)
}

// recoverNamespace makes the name of a deleted namespace lead to its data again.
func (c *tableClient) recoverNamespace(ctx context.Context, id string) (*schema.Namespace, error) {
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
	if n.Name == "" {
		if n.Name, err = c.nameOf(ctx, id); err != nil {
			return nil, err
		}
	}
	if n.Name == "" {
		return nil, fault(weir.Conflict, "namespace_id", id, "cannot be recovered, since the table has "+
			"lost its name: run weir namespace purge "+id+" to delete what is left of it")
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
	return n, c.restoreNamespace(ctx, n)
}

// restoreNamespace writes both items of a namespace that was deleted, or lost its name.
func (c *tableClient) restoreNamespace(ctx context.Context, n *schema.Namespace) error {
	back := &expression{}
	back.equalText(schema.AttrStatus, n.Status)
	n.Status, n.DeletedAt = schema.StatusActive, ""
	back.setText(schema.AttrStatus, n.Status)
	back.removeAll(schema.AttrDeletedAt)
	back.restoreReverse(n)
	forward := *n
	forward.Reverse, forward.Extra = false, nil
	free := &expression{}
	free.conditions = append(free.conditions, "attribute_not_exists("+free.name(schema.AttrPK)+") OR "+
		free.name(schema.AttrNamespaceID)+" = "+free.text(n.ID))
	t := &configTransaction{table: c.table}
	t.put(forward.Item(), free)
	t.update(schema.NamespaceIDKey(n.ID), back)
	return c.changed("namespace_id", n.ID, c.transact(ctx, t))
}

func (c *tableClient) noSuchID(id string) error {
	return fault(weir.NotFound, "namespace_id", id,
		"is the ID of no namespace on table "+c.table+": weir namespace orphans lists the deleted ones")
}
