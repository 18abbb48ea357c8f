package tables

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/identifier"
	"github.com/weir-limiter/weir/internal/schema"
)

// namespaceLost is the status of an active namespace that no name leads to.
const namespaceLost = "lost"

// CheckNewNamespace returns an error for a name that cannot be registered.
func CheckNewNamespace(name string) error {
	if err := CheckNamespace("namespace", name); err != nil {
		return err
	}
	if reason := identifier.CheckNamespace(name); reason != "" {
		return client.Fault(weir.Invalid, "namespace", name, reason)
	}
	return nil
}

// CheckNamespace returns an error for a name that no namespace has. The Python library can register
// every other name.
func CheckNamespace(field, name string) error {
	switch {
	case name == "":
		return client.Fault(weir.Invalid, field, name, "must not be empty")
	case name == schema.RegistryNamespace:
		return client.Fault(weir.Invalid, field, name, "is reserved for the table's own records")
	case len(name) > identifier.MaxNamespace:
		return client.Fault(weir.Invalid, field, name,
			fmt.Sprintf("must have at most %d bytes, has %d", identifier.MaxNamespace, len(name)))
	}
	return nil
}

// ByName reads the registry item of a name; nil if the name is not registered.
func (c *Table) ByName(ctx context.Context, name string) (*schema.Namespace, error) {
	return client.Get(ctx, c.Client, schema.NamespaceKey(name), true, parseNamespace)
}

// ByID reads the registry item of an ID; nil if there is none.
func (c *Table) ByID(ctx context.Context, id string) (*schema.Namespace, error) {
	return client.Get(ctx, c.Client, schema.NamespaceIDKey(id), true, parseNamespace)
}

// IsVacated reports whether the registry item of a name says that the name is free.
func IsVacated(n *schema.Namespace) bool {
	return n.Status == schema.StatusDeleted || n.Status == schema.StatusPurging
}

// ResolveNamespace returns the namespace that a name leads to.
func (c *Table) ResolveNamespace(ctx context.Context, name string) (*schema.Namespace, error) {
	n, err := c.ByName(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case n == nil || IsVacated(n):
		return nil, client.Fault(weir.NotFound, "store.namespace", name,
			"is not registered on table "+c.TableName+": run weir namespace register "+name)
	}
	return n, nil
}

// registerAttempts is the largest number of attempts of a registration that lost to another one.
const registerAttempts = 3

// RegisterNamespace registers a namespace unless the name exists. It writes both registry items or
// none.
func (c *Table) RegisterNamespace(
	ctx context.Context, name string,
) (n *schema.Namespace, made bool, err error) {
	for range registerAttempts {
		n, err = c.ByName(ctx, name)
		if err != nil {
			return nil, false, err
		}
		if n != nil && IsVacated(n) { // the data of the earlier namespace stays under its ID
			_, err = c.DeleteNamespace(ctx, name)
			if err != nil && !errors.Is(err, weir.NotFound) {
				return nil, false, err
			}
			n = nil
		}
		if n != nil {
			return n, false, nil
		}
		id, err := schema.NewNamespaceID(rand.Reader)
		if err != nil {
			return nil, false, fmt.Errorf("weir: register namespace: %w", err)
		}
		n = &schema.Namespace{
			ID: id, Name: name, Status: schema.StatusActive, CreatedAt: schema.Timestamp(c.Now()),
		}
		back := *n
		back.Reverse = true
		_, err = c.API.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{c.putNew(n.Item()), c.putNew(back.Item())},
		})
		switch client.OutcomeOf(err).Kind {
		case client.WriteApplied:
			return n, true, nil
		case client.WriteRefused, client.WriteUnknown: // it may exist now: read it again
		default:
			return nil, false, client.Classify(err)
		}
	}
	return nil, false, client.Fault(weir.Unavailable, "namespace", name, "could not be registered: try again")
}

// putNew returns the put of an item on condition that it does not exist.
func (c *Table) putNew(item schema.Item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &c.TableName, Item: item, ConditionExpression: new("attribute_not_exists(#n0)"),
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK},
	}}
}

// Namespaces reads the whole registry: the items by name, and the items by ID.
func (c *Table) Namespaces(ctx context.Context) (byName, byID []schema.Namespace, err error) {
	if byID, err = c.registry(ctx, schema.SKNamespaceIDPrefix); err != nil {
		return nil, nil, err
	}
	byName, err = c.registry(ctx, schema.SKNamespacePrefix)
	return byName, byID, err
}

// LeaseNamespaces returns the names of the namespaces that have lease records, in order.
func (c *Table) LeaseNamespaces(ctx context.Context) ([]string, error) {
	byName, err := c.registry(ctx, schema.SKNamespacePrefix)
	if err != nil {
		return nil, err
	}
	keys := make([]schema.Key, len(byName))
	for i := range byName {
		keys[i] = schema.LeaseSlicesKey(byName[i].ID)
	}
	slices, err := c.BatchGet(ctx, keys, false)
	if err != nil {
		return nil, err
	}
	var names []string
	for i, item := range slices {
		if item != nil {
			names = append(names, byName[i].Name)
		}
	}
	return names, nil
}

// registry reads all registry items of one kind, in the order of their keys.
func (c *Table) registry(ctx context.Context, prefix string) ([]schema.Namespace, error) {
	pk := schema.SystemPK(schema.RegistryNamespace)
	items, err := c.QueryAll(ctx, client.Partition(pk, prefix, true))
	if err != nil {
		return nil, err
	}
	all := make([]schema.Namespace, len(items))
	for i, item := range items {
		n, err := ReadNamespace(item)
		if err != nil {
			return nil, err
		}
		all[i] = *n
	}
	return all, nil
}

// Orphans returns the namespaces that have data and no name, in the order of their IDs.
func (c *Table) Orphans(ctx context.Context) ([]schema.Namespace, error) {
	byName, byID, err := c.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	led := make(map[string]bool, len(byName)) // by ID
	for _, n := range byName {
		led[n.ID] = true
	}
	var left []schema.Namespace
	for _, n := range byID {
		if n.Status == schema.StatusActive {
			if led[n.ID] {
				continue
			}
			n.Status = namespaceLost
		}
		left = append(left, n)
	}
	return left, nil
}

// DeleteNamespace removes a name and keeps the data under its ID.
func (c *Table) DeleteNamespace(ctx context.Context, name string) (*schema.Namespace, error) {
	n, err := c.ByName(ctx, name)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, client.Fault(weir.NotFound, "namespace", name, "is not registered on table "+c.TableName)
	}
	back, err := c.ByID(ctx, n.ID)
	if err != nil {
		return nil, err
	}
	t := &client.Transaction{Table: c.TableName}
	named := &client.Expression{}
	named.RequireText(schema.AttrNamespaceID, n.ID)
	t.Remove(schema.NamespaceKey(name), named)
	e := &client.Expression{}
	if back != nil && back.Status == schema.StatusPurging { // another program gave it the name
		n.Status, n.DeletedAt = back.Status, back.DeletedAt
		e.RequireText(schema.AttrStatus, n.Status)
		t.Check(schema.NamespaceIDKey(n.ID), e)
	} else {
		n.Status, n.DeletedAt = schema.StatusDeleted, schema.Timestamp(c.Now())
		e.SetText(schema.AttrStatus, n.Status)
		e.SetText(schema.AttrDeletedAt, n.DeletedAt)
		restoreReverse(e, n)
		e.RequireOtherText(schema.AttrStatus, schema.StatusPurging)
		t.Update(schema.NamespaceIDKey(n.ID), e)
	}
	return n, c.changed("namespace", name, c.transact(ctx, t))
}

// transact writes a change of the registry.
func (c *Table) transact(ctx context.Context, t *client.Transaction) error {
	_, err := c.API.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{TransactItems: t.Items})
	return err
}

// changed returns the error for a change of the registry that returned err.
func (c *Table) changed(field, value string, err error) error {
	switch client.OutcomeOf(err).Kind {
	case client.WriteApplied:
		return nil
	case client.WriteRefused:
		return client.Fault(weir.Conflict, field, value,
			"was changed by another writer at the same time: check it, and try again")
	}
	return client.Classify(err)
}

// RecoverNamespace makes the name of a deleted namespace lead to its data again.
func (c *Table) RecoverNamespace(ctx context.Context, id string) (*schema.Namespace, error) {
	n, err := c.ByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, c.noSuchID(id)
	}
	if n.Status == schema.StatusPurging {
		return nil, client.Fault(weir.Conflict, "namespace_id", id,
			"is being purged, which cannot be undone: run weir namespace purge "+id+" to finish it")
	}
	if n.Name == "" {
		if n.Name, err = c.nameOf(ctx, id); err != nil {
			return nil, err
		}
	}
	if n.Name == "" {
		return nil, client.Fault(weir.Conflict, "namespace_id", id,
			"cannot be recovered, because the table has "+
				"lost its name: run weir namespace purge "+id+" to delete the rest of its data")
	}
	taken, err := c.ByName(ctx, n.Name)
	switch {
	case err != nil:
		return nil, err
	case taken != nil && taken.ID == id && n.Status == schema.StatusActive:
		return nil, client.Fault(weir.Conflict, "namespace_id", id, "is active: there is nothing to recover")
	case taken != nil && taken.ID != id:
		return nil, client.Fault(weir.Conflict, "namespace_id", id,
			"cannot be recovered under its name: "+n.Name+" was registered again, as "+taken.ID)
	}
	return n, c.restoreNamespace(ctx, n)
}

// restoreNamespace writes both registry items of a namespace that was deleted or has lost its name.
func (c *Table) restoreNamespace(ctx context.Context, n *schema.Namespace) error {
	back := &client.Expression{}
	back.RequireText(schema.AttrStatus, n.Status)
	n.Status, n.DeletedAt = schema.StatusActive, ""
	back.SetText(schema.AttrStatus, n.Status)
	back.RemoveAll(schema.AttrDeletedAt)
	restoreReverse(back, n)
	forward := *n
	forward.Reverse, forward.Extra = false, nil
	free := &client.Expression{}
	free.Conditions = append(free.Conditions, "attribute_not_exists("+free.Name(schema.AttrPK)+") OR "+
		free.Name(schema.AttrNamespaceID)+" = "+free.Text(n.ID))
	t := &client.Transaction{Table: c.TableName}
	t.Put(forward.Item(), free)
	t.Update(schema.NamespaceIDKey(n.ID), back)
	return c.changed("namespace_id", n.ID, c.transact(ctx, t))
}

func (c *Table) noSuchID(id string) error {
	return client.Fault(weir.NotFound, "namespace_id", id,
		"is not the ID of a namespace on table "+c.TableName+": weir namespace orphans lists the deleted ones")
}

// ReadNamespace parses either registry item of a namespace; nil if there is none.
func ReadNamespace(item schema.Item) (*schema.Namespace, error) {
	return client.Parse(item, parseNamespace)
}

// parseNamespace parses either registry item of a namespace. It accepts an item by ID that has no
// name: the Python library deletes and recovers namespaces without checking that this item exists,
// and so creates one without a name. An error would make the other namespaces unlistable.
func parseNamespace(item schema.Item) (*schema.Namespace, error) {
	key, err := schema.KeyOf(item)
	if err != nil {
		return nil, err
	}
	if id, back := strings.CutPrefix(key.SK, schema.SKNamespaceIDPrefix); back {
		whole := schema.Item{
			schema.AttrNamespaceID: schema.String(id), schema.AttrNamespaceName: schema.String(""),
		}
		maps.Copy(whole, item)
		item = whole
	}
	return schema.ParseNamespace(item)
}

// nameOf searches all names for one that leads to an ID; empty if none does.
func (c *Table) nameOf(ctx context.Context, id string) (string, error) {
	byName, err := c.registry(ctx, schema.SKNamespacePrefix)
	if err != nil {
		return "", err
	}
	for _, n := range byName {
		if n.ID == id {
			return n.Name, nil
		}
	}
	return "", nil
}

// restoreReverse adds the attributes that the item by ID lacks.
func restoreReverse(e *client.Expression, n *schema.Namespace) {
	back := *n
	back.Reverse = true
	whole := back.Item()
	for _, a := range []string{
		schema.AttrNamespaceID, schema.AttrNamespaceName, schema.AttrCreatedAt,
		schema.AttrGSI4PK, schema.AttrGSI4SK,
	} {
		if v, ok := whole[a]; ok {
			e.SetIfAbsent(a, v)
		}
	}
}
