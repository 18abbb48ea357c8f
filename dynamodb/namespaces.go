package dynamodb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// namespaceLost is the state of a namespace that only orphans tell.
const namespaceLost = "lost"

// maxNamespace bounds a namespace's name and ID.
const maxNamespace = 256

// namespacePattern is what a new name looks like: an identifier, as an entity's name.
const namespacePattern = `^[A-Za-z0-9][A-Za-z0-9_.:@-]*$`

// checkNewNamespace refuses a name that is not to be registered.
func checkNewNamespace(name string) error {
	if err := checkNamespace("namespace", name); err != nil {
		return err
	}
	if !regexp.MustCompile(namespacePattern).MatchString(name) {
		return fault(weir.Invalid, "namespace", name,
			"must begin with a letter or a digit and go on with these and with _ . : @ -")
	}
	return nil
}

// checkNamespace refuses what no namespace is called: the Python library lets all others be
// registered.
func checkNamespace(field, name string) error {
	switch {
	case name == "":
		return fault(weir.Invalid, field, name, "must not be empty")
	case name == schema.RegistryNamespace:
		return fault(weir.Invalid, field, name, "is reserved for what the table keeps of itself")
	case len(name) > maxNamespace:
		return fault(weir.Invalid, field, name,
			fmt.Sprintf("must have at most %d characters, has %d", maxNamespace, len(name)))
	}
	return nil
}

// forward reads what a name leads to; nil if it is not registered.
func (c *tableAccess) forward(ctx context.Context, name string) (*schema.Namespace, error) {
	return c.namespaceItem(ctx, schema.NamespaceKey(name))
}

// reverse reads what is known of an ID; nil if there is none.
func (c *tableAccess) reverse(ctx context.Context, id string) (*schema.Namespace, error) {
	return c.namespaceItem(ctx, schema.NamespaceIDKey(id))
}

func (c *tableAccess) namespaceItem(ctx context.Context, key schema.Key) (*schema.Namespace, error) {
	item, err := c.getItem(ctx, key, true)
	if err != nil || item == nil {
		return nil, err
	}
	return readNamespace(item)
}

// isVacated reports whether an item that leads from a name to an ID says that the name is free.
func isVacated(n *schema.Namespace) bool {
	return n.Status == schema.StatusDeleted || n.Status == schema.StatusPurging
}

// resolveNamespace finds the namespace that a name leads to.
func (c *tableAccess) resolveNamespace(ctx context.Context, name string) (*schema.Namespace, error) {
	n, err := c.forward(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case n == nil || isVacated(n):
		return nil, fault(weir.NotFound, "store.namespace", name,
			"is not registered on table "+c.table+": run weir namespace register "+name)
	}
	return n, nil
}

// registerAttempts is how often a registration that lost to another one looks again.
const registerAttempts = 3

// registerNamespace makes a namespace of that name, unless there is one. Both of its items are
// written at once or not at all.
func (c *tableAccess) registerNamespace(
	ctx context.Context, name string,
) (n *schema.Namespace, made bool, err error) {
	for range registerAttempts {
		n, err = c.forward(ctx, name)
		if err != nil {
			return nil, false, err
		}
		if n != nil && isVacated(n) { // its data stays an orphan
			_, err = c.deleteNamespace(ctx, name)
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
			ID: id, Name: name, Status: schema.StatusActive, CreatedAt: schema.Timestamp(c.now()),
		}
		back := *n
		back.Reverse = true
		_, err = c.api.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{c.putNew(n.Item()), c.putNew(back.Item())},
		})
		switch outcomeOf(err).kind {
		case writeApplied:
			return n, true, nil
		case writeRefused, writeUnknown: // somebody was faster, or it may be there by now
		default:
			return nil, false, classify(err)
		}
	}
	return nil, false, fault(weir.Unavailable, "namespace", name, "could not be registered: try again")
}

// putNew puts an item that must not be there yet.
func (c *tableAccess) putNew(item schema.Item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &c.table, Item: item, ConditionExpression: new("attribute_not_exists(#n0)"),
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK},
	}}
}

// namespaces reads the whole registry: by name, and by ID.
func (c *tableAccess) namespaces(ctx context.Context) (byName, byID []schema.Namespace, err error) {
	if byID, err = c.registry(ctx, schema.SKNamespaceIDPrefix); err != nil {
		return nil, nil, err
	}
	byName, err = c.registry(ctx, schema.SKNamespacePrefix)
	return byName, byID, err
}

// registry reads all items of one kind, in the order of their keys.
func (c *tableAccess) registry(ctx context.Context, prefix string) ([]schema.Namespace, error) {
	pk := schema.SystemPK(schema.RegistryNamespace)
	items, err := c.queryAll(ctx, partition(pk, prefix, true))
	if err != nil {
		return nil, err
	}
	all := make([]schema.Namespace, len(items))
	for i, item := range items {
		n, err := readNamespace(item)
		if err != nil {
			return nil, err
		}
		all[i] = *n
	}
	return all, nil
}

// orphans lists the namespaces whose data no name leads to, in the order of their IDs.
func (c *tableAccess) orphans(ctx context.Context) ([]schema.Namespace, error) {
	byName, byID, err := c.namespaces(ctx)
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

// deleteNamespace takes a name away and keeps the data under its ID.
func (c *tableAccess) deleteNamespace(ctx context.Context, name string) (*schema.Namespace, error) {
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
	t := &transaction{table: c.table}
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
		restoreReverse(e, n)
		e.differentText(schema.AttrStatus, schema.StatusPurging)
		t.update(schema.NamespaceIDKey(n.ID), e)
	}
	return n, c.changed("namespace", name, c.transact(ctx, t))
}

// transact writes a change of the registry.
func (c *tableAccess) transact(ctx context.Context, t *transaction) error {
	_, err := c.api.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{TransactItems: t.items})
	return err
}

// changed is what to say of a change of the registry that ended with err.
func (c *tableAccess) changed(field, value string, err error) error {
	switch outcomeOf(err).kind {
	case writeApplied:
		return nil
	case writeRefused:
		return fault(weir.Conflict, field, value, "was changed by somebody meanwhile: look at it again")
	}
	return classify(err)
}

// recoverNamespace makes the name of a deleted namespace lead to its data again.
func (c *tableAccess) recoverNamespace(ctx context.Context, id string) (*schema.Namespace, error) {
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
func (c *tableAccess) restoreNamespace(ctx context.Context, n *schema.Namespace) error {
	back := &expression{}
	back.equalText(schema.AttrStatus, n.Status)
	n.Status, n.DeletedAt = schema.StatusActive, ""
	back.setText(schema.AttrStatus, n.Status)
	back.removeAll(schema.AttrDeletedAt)
	restoreReverse(back, n)
	forward := *n
	forward.Reverse, forward.Extra = false, nil
	free := &expression{}
	free.conditions = append(free.conditions, "attribute_not_exists("+free.name(schema.AttrPK)+") OR "+
		free.name(schema.AttrNamespaceID)+" = "+free.text(n.ID))
	t := &transaction{table: c.table}
	t.put(forward.Item(), free)
	t.update(schema.NamespaceIDKey(n.ID), back)
	return c.changed("namespace_id", n.ID, c.transact(ctx, t))
}

func (c *tableAccess) noSuchID(id string) error {
	return fault(weir.NotFound, "namespace_id", id,
		"is the ID of no namespace on table "+c.table+": weir namespace orphans lists the deleted ones")
}

// readNamespace reads either item of a namespace. The Python library deletes and recovers without
// looking whether the item that leads back is there, and so makes one without a name: that is read
// too, for all others must still be listed.
func readNamespace(item schema.Item) (*schema.Namespace, error) {
	key, err := schema.KeyOf(item)
	if err != nil {
		return nil, unreadable(err)
	}
	if id, back := strings.CutPrefix(key.SK, schema.SKNamespaceIDPrefix); back {
		whole := schema.Item{
			schema.AttrNamespaceID: schema.String(id), schema.AttrNamespaceName: schema.String(""),
		}
		maps.Copy(whole, item)
		item = whole
	}
	n, err := schema.ParseNamespace(item)
	if err != nil {
		return nil, unreadable(err)
	}
	return n, nil
}

// nameOf searches all names for one that leads to an ID; empty if none does.
func (c *tableAccess) nameOf(ctx context.Context, id string) (string, error) {
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

// restoreReverse gives the item that leads back to a name what it lacks of it.
func restoreReverse(e *expression, n *schema.Namespace) {
	back := *n
	back.Reverse = true
	whole := back.Item()
	for _, a := range []string{
		schema.AttrNamespaceID, schema.AttrNamespaceName, schema.AttrCreatedAt,
		schema.AttrGSI4PK, schema.AttrGSI4SK,
	} {
		if v, ok := whole[a]; ok {
			e.setIfAbsent(a, v)
		}
	}
}
