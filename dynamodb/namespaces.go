package dynamodb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// Namespace is an isolated world of entities and limits in a table. Its items are kept under its
// ID, so that a name that was deleted and registered again begins anew.
type Namespace struct {
	ID string
	// Name is empty where the table has lost it.
	Name string
	// Status is "active", "deleted" or "purging". Of one that is active, but whose name leads
	// elsewhere or nowhere, it is "lost"; see [Table.RecoverNamespace].
	Status string
	// CreatedAt and DeletedAt are as the table has them, in RFC 3339; empty where it has none.
	CreatedAt string
	DeletedAt string
}

// namespaceLost is the state of a namespace that only orphans tell.
const namespaceLost = "lost"

func newNamespace(n *schema.Namespace) Namespace {
	return Namespace{
		ID: n.ID, Name: n.Name, Status: n.Status, CreatedAt: n.CreatedAt, DeletedAt: n.DeletedAt,
	}
}

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
func (c *tableClient) forward(ctx context.Context, name string) (*schema.Namespace, error) {
	return c.namespaceItem(ctx, schema.NamespaceKey(name))
}

// reverse reads what is known of an ID; nil if there is none.
func (c *tableClient) reverse(ctx context.Context, id string) (*schema.Namespace, error) {
	return c.namespaceItem(ctx, schema.NamespaceIDKey(id))
}

func (c *tableClient) namespaceItem(ctx context.Context, key schema.Key) (*schema.Namespace, error) {
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
func (c *tableClient) resolveNamespace(ctx context.Context, name string) (*schema.Namespace, error) {
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
func (c *tableClient) registerNamespace(
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
		_, err = c.client.TransactWriteItems(ctx, &ddb.TransactWriteItemsInput{
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
func (c *tableClient) putNew(item schema.Item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &c.table, Item: item, ConditionExpression: new("attribute_not_exists(#n0)"),
		ExpressionAttributeNames: map[string]string{"#n0": schema.AttrPK},
	}}
}

// namespaces reads the whole registry: by name, and by ID.
func (c *tableClient) namespaces(ctx context.Context) (byName, byID []schema.Namespace, err error) {
	if byID, err = c.registry(ctx, schema.SKNamespaceIDPrefix); err != nil {
		return nil, nil, err
	}
	byName, err = c.registry(ctx, schema.SKNamespacePrefix)
	return byName, byID, err
}

// registry reads all items of one kind, in the order of their keys.
func (c *tableClient) registry(ctx context.Context, prefix string) ([]schema.Namespace, error) {
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
func (c *tableClient) orphans(ctx context.Context) ([]schema.Namespace, error) {
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
