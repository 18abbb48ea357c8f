// Package namespace has the types for administering the namespaces of a table. It has no state.
//
// A namespace is a separate set of entities and limits. Its items are stored under its ID, so that
// a name that was deleted and registered again leads to an empty namespace. A process opens one
// namespace by its name, and knows nothing of the others.
package namespace

import "context"

// Default is the name of the namespace that programs open by default.
const Default = "default"

// Namespace is a separate set of entities and limits in a table.
type Namespace struct {
	ID string
	// Name is empty if the table has no name for the namespace any more.
	Name string
	// Status is "active", "deleted" or "purging". It is "lost" for an active namespace whose name
	// leads to another namespace or to none: it can be recovered.
	Status string
	// CreatedAt and DeletedAt are as stored, in RFC 3339; empty if the table has none.
	CreatedAt string
	DeletedAt string
}

// Admin administers the namespaces of a table. A table of package dynamodb and a client of package
// httpapi implement it. Its errors are those of package weir.
type Admin interface {
	// Namespaces returns all namespaces that have a name, in the order of their names.
	Namespaces(ctx context.Context) ([]Namespace, error)
	// OrphanNamespaces returns the namespaces that have data and no name, in the order of their
	// IDs.
	OrphanNamespaces(ctx context.Context) ([]Namespace, error)
	// Namespace returns the namespace with that name. If it is not registered, the error has code
	// NotFound.
	Namespace(ctx context.Context, name string) (*Namespace, error)
	// RegisterNamespace registers a namespace and reports whether it did: an existing one stays as
	// it is.
	RegisterNamespace(ctx context.Context, name string) (n *Namespace, made bool, err error)
	// DeleteNamespace removes a name and returns the namespace that it led to, whose data stays
	// under its ID.
	DeleteNamespace(ctx context.Context, name string) (*Namespace, error)
	// RecoverNamespace makes the name lead again to a namespace that was deleted or lost. The error
	// has code Conflict if there is nothing to recover, or if it cannot be recovered.
	RecoverNamespace(ctx context.Context, id string) (*Namespace, error)
	// PurgeNamespace deletes all data of a deleted namespace for good and returns the number of
	// items deleted. The next call continues an interrupted purge. With scan it reads the whole
	// table to find items that no index lists. progress, if not nil, is called with the count from
	// time to time.
	PurgeNamespace(
		ctx context.Context, id string, scan bool, progress func(deleted int64),
	) (deleted int64, err error)
}
