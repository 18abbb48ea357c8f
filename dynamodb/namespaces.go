package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
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

func newNamespace(n *schema.Namespace) Namespace {
	return Namespace{
		ID: n.ID, Name: n.Name, Status: n.Status, CreatedAt: n.CreatedAt, DeletedAt: n.DeletedAt,
	}
}

// RegisterNamespace makes a namespace of that name, and reports whether it did: one that is there
// already stays as it is.
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

// Namespace returns the namespace of that name; [weir.NotFound] if it is not registered.
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

// Namespaces returns all namespaces that have a name, in the order of the names.
func (t *Table) Namespaces(ctx context.Context) ([]Namespace, error) {
	return t.onNamespaces(ctx, func(ctx context.Context, c *tables.Table) ([]schema.Namespace, error) {
		byName, _, err := c.Namespaces(ctx)
		return byName, err
	})
}

// OrphanNamespaces returns the namespaces whose data no name leads to, in the order of their IDs:
// those deleted, those half purged, and those that lost their name when something broke.
func (t *Table) OrphanNamespaces(ctx context.Context) ([]Namespace, error) {
	return t.onNamespaces(ctx, func(ctx context.Context, c *tables.Table) ([]schema.Namespace, error) {
		return c.Orphans(ctx)
	})
}

// DeleteNamespace takes the name away and returns what it led to, whose data stays under its ID.
// [weir.NotFound] if it is not registered. A limiter that has it open refuses reservations once its
// cached configuration has expired.
func (t *Table) DeleteNamespace(ctx context.Context, name string) (n *Namespace, err error) {
	if err := tables.CheckNamespace("namespace", name); err != nil {
		return nil, err
	}
	err = t.onNamespace(ctx, func(ctx context.Context, c *tables.Table) (*schema.Namespace, error) {
		return c.DeleteNamespace(ctx, name)
	}, &n)
	return n, err
}

// RecoverNamespace makes the name lead again to a namespace that was deleted, or lost it. It is
// [weir.Conflict] where it is active, being purged, or the name was registered again.
func (t *Table) RecoverNamespace(ctx context.Context, id string) (n *Namespace, err error) {
	if err := tables.CheckNamespace("namespace_id", id); err != nil {
		return nil, err
	}
	err = t.onNamespace(ctx, func(ctx context.Context, c *tables.Table) (*schema.Namespace, error) {
		return c.RecoverNamespace(ctx, id)
	}, &n)
	return n, err
}

// PurgeNamespace deletes all data of a deleted namespace for good and returns how many items that
// were. It lasts as long as the context lets it; where it is interrupted, the next one goes on.
// With scan it reads the whole table for items that no index lists, which costs as much as the
// table is large; without, it finds those that the Python library's provisioner is known to leave.
// Progress, if it is not nil, is told the count now and then.
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

// ready connects to a table that is one of weir's.
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

// onNamespace puts a question about one namespace.
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

// onNamespaces puts a question about many.
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
