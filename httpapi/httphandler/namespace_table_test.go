package httphandler

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/namespace"
)

// NamespaceTable is a registry of namespaces for the tests of a handler, with the answers of a
// DynamoDB table. mu guards it.
type NamespaceTable struct {
	mu  sync.Mutex
	all map[string]*namespace.Namespace // by ID
}

// NewNamespaceTable returns a table with the namespaces that the examples of the document show.
func NewNamespaceTable() *NamespaceTable {
	t := &NamespaceTable{all: map[string]*namespace.Namespace{}}
	for _, n := range []namespace.Namespace{
		{ID: "q0pYl3cWzKs", Name: "default", Status: "active", CreatedAt: "2026-03-02T12:00:00Z"},
		{ID: "Xw1rT9uVb2E", Name: "prod", Status: "active", CreatedAt: "2026-03-02T12:05:00Z"},
		{
			ID: "37b3m1eXQTY", Name: "staging", Status: "deleted",
			CreatedAt: "2026-03-02T12:10:00Z", DeletedAt: "2026-03-02T13:00:00Z",
		},
		{
			ID: "Yk2mPq81x_A", Name: "trial", Status: "deleted",
			CreatedAt: "2026-03-02T12:15:00Z", DeletedAt: "2026-03-02T13:00:00Z",
		},
	} {
		t.all[n.ID] = &n
	}
	return t
}

// newName matches the names that a table registers.
var newName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,255}$`)

func missing(field, value string) error {
	return weir.NewError(weir.NotFound, field, value, "is not there")
}

// named returns the active namespace with a name; nil if there is none.
func (t *NamespaceTable) named(name string) *namespace.Namespace {
	for _, n := range t.all {
		if n.Name == name && n.Status == "active" {
			return n
		}
	}
	return nil
}

// list returns the namespaces that are active, or those that are not, in order.
func (t *NamespaceTable) list(active bool) []namespace.Namespace {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []namespace.Namespace
	for _, n := range t.all {
		if n.Status == "active" == active {
			found = append(found, *n)
		}
	}
	slices.SortFunc(found, func(a, b namespace.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// Namespaces lists the active namespaces.
func (t *NamespaceTable) Namespaces(context.Context) ([]namespace.Namespace, error) {
	return t.list(true), nil
}

// OrphanNamespaces lists the deleted namespaces.
func (t *NamespaceTable) OrphanNamespaces(context.Context) ([]namespace.Namespace, error) {
	return t.list(false), nil
}

// Namespace returns an active namespace.
func (t *NamespaceTable) Namespace(_ context.Context, name string) (*namespace.Namespace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.named(name); n != nil {
		return new(*n), nil
	}
	return nil, missing("namespace", name)
}

// RegisterNamespace registers a namespace whose ID is its name.
func (t *NamespaceTable) RegisterNamespace(
	_ context.Context, name string,
) (*namespace.Namespace, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !newName.MatchString(name) {
		return nil, false, weir.NewError(weir.Invalid, "namespace", name, "is no name")
	}
	if n := t.named(name); n != nil {
		return new(*n), false, nil
	}
	n := &namespace.Namespace{ID: name, Name: name, Status: "active", CreatedAt: "2026-03-02T12:20:00Z"}
	t.all[n.ID] = n
	return new(*n), true, nil
}

// DeleteNamespace deletes an active namespace.
func (t *NamespaceTable) DeleteNamespace(_ context.Context, name string) (*namespace.Namespace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.named(name)
	if n == nil {
		return nil, missing("namespace", name)
	}
	n.Status, n.DeletedAt = "deleted", "2026-03-02T14:00:00Z"
	return new(*n), nil
}

// RecoverNamespace makes a deleted namespace active.
func (t *NamespaceTable) RecoverNamespace(_ context.Context, id string) (*namespace.Namespace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.all[id]
	switch {
	case n == nil:
		return nil, missing("namespace_id", id)
	case n.Status == "active" || t.named(n.Name) != nil:
		return nil, weir.NewError(weir.Conflict, "namespace_id", id, "is there")
	}
	n.Status, n.DeletedAt = "active", ""
	return new(*n), nil
}

// PurgeNamespace deletes a deleted namespace, which has three items, or five with a scan.
func (t *NamespaceTable) PurgeNamespace(
	_ context.Context, id string, scan bool, _ func(int64),
) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.all[id]
	switch {
	case n == nil:
		return 0, missing("namespace_id", id)
	case n.Status == "active":
		return 0, weir.NewError(weir.Conflict, "namespace_id", id, "is not deleted")
	}
	delete(t.all, id)
	if scan {
		return 5, nil
	}
	return 3, nil
}
