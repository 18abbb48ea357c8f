package apijson

import (
	"errors"

	"github.com/weir-limiter/weir/namespace"
)

// Namespace is the answer to requests about one namespace.
type Namespace struct {
	Name      string `json:"namespace"`
	ID        string `json:"namespace_id"`
	Status    string `json:"status"`
	CreatedAt string `json:"created_at,omitempty"`
	DeletedAt string `json:"deleted_at,omitempty"`
	// Registered is set only in the answer to a registration.
	Registered *bool `json:"registered,omitempty"`
}

// NamespaceList is the answer to GET /v1/admin/namespaces.
type NamespaceList struct {
	Namespaces []Namespace `json:"namespaces"`
}

// PurgeRequest is the body of POST /v1/admin/namespaces/{namespace_id}/purge.
type PurgeRequest struct {
	Scan bool `json:"scan,omitempty"`
}

// Purged is the answer to a purge.
type Purged struct {
	ID      string `json:"namespace_id"`
	Deleted int64  `json:"deleted_items"`
}

// NamespaceOf returns a namespace.
func NamespaceOf(n *namespace.Namespace) *Namespace {
	return &Namespace{
		Name: n.Name, ID: n.ID, Status: n.Status, CreatedAt: n.CreatedAt, DeletedAt: n.DeletedAt,
	}
}

// Namespace returns the namespace.
func (n *Namespace) Namespace() *namespace.Namespace {
	return &namespace.Namespace{
		Name: n.Name, ID: n.ID, Status: n.Status, CreatedAt: n.CreatedAt, DeletedAt: n.DeletedAt,
	}
}

// NamespacesOf returns a list of namespaces.
func NamespacesOf(all []namespace.Namespace) *NamespaceList {
	b := &NamespaceList{Namespaces: make([]Namespace, len(all))}
	for i := range all {
		b.Namespaces[i] = *NamespaceOf(&all[i])
	}
	return b
}

// ReadNamespaces reads a [NamespaceList].
func ReadNamespaces(body []byte) ([]namespace.Namespace, error) {
	b, err := Read[NamespaceList](body)
	if err == nil && b.Namespaces == nil {
		err = errors.New("has no namespaces")
	}
	if err != nil {
		return nil, err
	}
	all := make([]namespace.Namespace, len(b.Namespaces))
	for i := range b.Namespaces {
		all[i] = *b.Namespaces[i].Namespace()
	}
	return all, nil
}
