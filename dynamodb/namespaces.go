package dynamodb

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/tables"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/namespace"
)

func newNamespace(n *schema.Namespace) namespace.Namespace {
	return namespace.Namespace{
		ID: n.ID, Name: n.Name, Status: n.Status, CreatedAt: n.CreatedAt, DeletedAt: n.DeletedAt,
	}
}

// RegisterNamespace registers a namespace and reports whether it did: an existing one stays as it
// is.
func (t *Table) RegisterNamespace(
	ctx context.Context, name string,
) (n *namespace.Namespace, made bool, err error) {
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
func (t *Table) Namespace(ctx context.Context, name string) (n *namespace.Namespace, err error) {
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
func (t *Table) Namespaces(ctx context.Context) ([]namespace.Namespace, error) {
	return t.onNamespaces(ctx, func(ctx context.Context, c *tables.Table) ([]schema.Namespace, error) {
		byName, _, err := c.Namespaces(ctx)
		return byName, err
	})
}

// OrphanNamespaces returns the namespaces that have data and no name, in the order of their IDs:
// deleted ones, partly purged ones, and those whose name was lost by an error.
func (t *Table) OrphanNamespaces(ctx context.Context) ([]namespace.Namespace, error) {
	return t.onNamespaces(ctx, func(ctx context.Context, c *tables.Table) ([]schema.Namespace, error) {
		return c.Orphans(ctx)
	})
}

// DeleteNamespace removes a name and returns the namespace that it led to, whose data stays under
// its ID. If the name is not registered, the error has code [weir.NotFound]. A limiter on the
// namespace refuses reservations once its cached configuration has expired.
func (t *Table) DeleteNamespace(ctx context.Context, name string) (n *namespace.Namespace, err error) {
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
func (t *Table) RecoverNamespace(ctx context.Context, id string) (n *namespace.Namespace, err error) {
	if err := tables.CheckNamespace("namespace_id", id); err != nil {
		return nil, err
	}
	err = t.onNamespace(ctx, func(ctx context.Context, c *tables.Table) (*schema.Namespace, error) {
		return c.RecoverNamespace(ctx, id)
	}, &n)
	return n, err
}

// PurgeNamespace deletes all data of a deleted namespace for good and returns the number of items
// deleted, which an error tells too. It takes as long as ctx allows; the next call continues an
// interrupted purge. With scan it reads the whole table to find items that no index lists, at the
// cost of reading the table. Without scan it finds only those of them that the Python library's
// provisioner is known to leave. progress, if not nil, is called with the count from time to time.
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
	if err := c.RequireMigrated(ctx); err != nil {
		return 0, err
	}
	deleted, err := c.PurgeNamespace(ctx, id, scan, progress)
	return deleted, purgeError(deleted, err)
}

// purgeError adds the number of items to the error of a purge that has begun.
func purgeError(deleted int64, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*weir.Error](err)
	if !ok {
		e = &weir.Error{
			Code: weir.Unavailable, Reason: "the purge has not ended: run it again to finish it", Err: err,
		}
	}
	counted := *e
	if deleted > 0 {
		counted.Reason += fmt.Sprintf(" (%d items deleted so far)", deleted)
	}
	return &counted
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
	question func(context.Context, *tables.Table) (*schema.Namespace, error), to **namespace.Namespace,
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
) ([]namespace.Namespace, error) {
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
	all := make([]namespace.Namespace, len(found))
	for i := range found {
		all[i] = newNamespace(&found[i])
	}
	return all, nil
}
