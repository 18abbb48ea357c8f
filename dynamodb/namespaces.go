package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
)

// Namespace is a separate set of entities and limits in a table. Its items are stored under its
// ID, so that a name that was deleted and registered again leads to an empty namespace.
type Namespace struct {
	ID string
	// Name is empty if the table has no name for the namespace any more.
	Name string
	// Status is "active", "deleted" or "purging". It is "lost" for an active namespace whose name
	// leads to another namespace or to none; see [Table.RecoverNamespace].
	Status string
	// CreatedAt and DeletedAt are as stored, in RFC 3339; empty if the table has none.
	CreatedAt string
	DeletedAt string
}

func newNamespace(n *schema.Namespace) Namespace {
	return Namespace{
		ID: n.ID, Name: n.Name, Status: n.Status, CreatedAt: n.CreatedAt, DeletedAt: n.DeletedAt,
	}
}

// RegisterNamespace registers a namespace and reports whether it did: an existing one stays as it
// is.
func (t *Table) RegisterNamespace(
	ctx context.Context, name string,
) (n *Namespace, made bool, err error) {
	if err := tables.CheckNewNamespace(name); err != nil {
		return nil, false, err
	}
	err = t.onNamespace(ctx, func(ctx context.Context, c *tables.Table) (*schema.Namespace, error) {
		found, isNew, err := c.RegisterNamespace(ctx, name)
		made = isNew
		return found, err
	}, &n)
	return n, made, err
}

// Namespace returns the namespace with that name. If it is not registered, the error has code
// [weir.NotFound].
func (t *Table) Namespace(ctx context.Context, name string) (n *Namespace, err error) {
	if err := tables.CheckNamespace("namespace", name); err != nil {
		return nil, err
	}
	err = t.onNamespace(ctx, func(ctx context.Context, c *tables.Table) (*schema.Namespace, error) {
		found, err := c.ByName(ctx, name)
		if err == nil && found == nil {
			err = client.Fault(weir.NotFound, "namespace", name, "is not registered on table "+c.TableName)
		}
		return found, err
	}, &n)
	return n, err
}

// Namespaces returns all namespaces that have a name, in the order of their names.
func (t *Table) Namespaces(ctx context.Context) ([]Namespace, error) {
	return t.onNamespaces(ctx, func(ctx context.Context, c *tables.Table) ([]schema.Namespace, error) {
		byName, _, err := c.Namespaces(ctx)
		return byName, err
	})
}

// OrphanNamespaces returns the namespaces that have data and no name, in the order of their IDs:
// deleted ones, partly purged ones, and those whose name was lost by an error.
func (t *Table) OrphanNamespaces(ctx context.Context) ([]Namespace, error) {
	return t.onNamespaces(ctx, func(ctx context.Context, c *tables.Table) ([]schema.Namespace, error) {
		return c.Orphans(ctx)
	})
}

// DeleteNamespace removes a name and returns the namespace that it led to, whose data stays under
// its ID. If the name is not registered, the error has code [weir.NotFound]. A limiter on the
// namespace refuses reservations once its cached configuration has expired.
func (t *Table) DeleteNamespace(ctx context.Context, name string) (n *Namespace, err error) {
	if err := tables.CheckNamespace("namespace", name); err != nil {
		return nil, err
	}
	err = t.onNamespace(ctx, func(ctx context.Context, c *tables.Table) (*schema.Namespace, error) {
		return c.DeleteNamespace(ctx, name)
	}, &n)
	return n, err
}

// RecoverNamespace makes the name lead again to a namespace that was deleted or lost. The error has
// code [weir.Conflict] if the namespace is active or being purged, or if the name was registered
// again.
func (t *Table) RecoverNamespace(ctx context.Context, id string) (n *Namespace, err error) {
	if err := tables.CheckNamespace("namespace_id", id); err != nil {
		return nil, err
	}
	err = t.onNamespace(ctx, func(ctx context.Context, c *tables.Table) (*schema.Namespace, error) {
		return c.RecoverNamespace(ctx, id)
	}, &n)
	return n, err
}

// PurgeNamespace deletes all data of a deleted namespace for good and returns the number of items
// deleted. It takes as long as ctx allows; the next call continues an interrupted purge. With scan
// it reads the whole table to find items that no index lists, at the cost of reading the table.
// Without scan it finds only those of them that the Python library's provisioner is known to leave.
// progress, if not nil, is called with the count from time to time.
func (t *Table) PurgeNamespace(
	ctx context.Context, id string, scan bool, progress func(deleted int64),
) (int64, error) {
	if err := tables.CheckNamespace("namespace_id", id); err != nil {
		return 0, err
	}
	c, err := t.ready(ctx)
	if err != nil {
		return 0, err
	}
	return c.PurgeNamespace(ctx, id, scan, progress)
}

// ready connects to the table and checks that weir can use it.
func (t *Table) ready(ctx context.Context) (*tables.Table, error) {
	c, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.CheckTable(ctx); err != nil {
		return nil, err
	}
	v, err := c.ReadVersion(ctx)
	if err != nil {
		return nil, err
	}
	return c, tables.CheckVersion(t.Name, v)
}

// onNamespace connects and runs question, which returns one namespace.
func (t *Table) onNamespace(
	ctx context.Context,
	question func(context.Context, *tables.Table) (*schema.Namespace, error), to **Namespace,
) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	c, err := t.ready(ctx)
	if err != nil {
		return err
	}
	found, err := question(ctx, c)
	if err == nil {
		*to = new(newNamespace(found))
	}
	return err
}

// onNamespaces connects and runs question, which returns several namespaces.
func (t *Table) onNamespaces(
	ctx context.Context, question func(context.Context, *tables.Table) ([]schema.Namespace, error),
) ([]Namespace, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	c, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	found, err := question(ctx, c)
	if err != nil {
		return nil, err
	}
	all := make([]Namespace, len(found))
	for i := range found {
		all[i] = newNamespace(&found[i])
	}
	return all, nil
}
