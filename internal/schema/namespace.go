package schema

import "strings"

// What becomes of a namespace.
const (
	StatusActive  = "active"
	StatusDeleted = "deleted" // its items remain, and it can be had back
	StatusPurging = "purging" // its items go, for good
)

// Namespace is one of the two items that the table keeps of a namespace: the one that leads from
// its name to its ID, or the one that leads back.
type Namespace struct {
	// Reverse is true for the item that leads from the ID to the name.
	Reverse bool
	Name    string
	ID      string
	Status  string
	// CreatedAt is when it was registered, as [Timestamp] writes it.
	CreatedAt string
	// DeletedAt is when it was deleted; empty if it was not. Only the item that leads back has it.
	DeletedAt string
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// Key is the item's key.
func (n *Namespace) Key() Key {
	if n.Reverse {
		return NamespaceIDKey(n.ID)
	}
	return NamespaceKey(n.Name)
}

// Item returns the item as it is stored.
func (n *Namespace) Item() Item {
	item := newItem(n.Extra, n.Key(), RegistryNamespace)
	item[AttrNamespaceID] = String(n.ID)
	item[AttrNamespaceName] = String(n.Name)
	setText(item, AttrStatus, n.Status)
	setText(item, AttrCreatedAt, n.CreatedAt)
	setText(item, AttrDeletedAt, n.DeletedAt)
	return item
}

// ParseNamespace reads either item of a namespace. One that cannot be read is a [*MalformedError].
func ParseNamespace(item Item) (*Namespace, error) {
	r := newReader(item)
	if r.key.PK != SystemPK(RegistryNamespace) {
		r.fail(AttrPK, "is no namespace's")
	}
	n := &Namespace{
		Name:      required(r, AttrNamespaceName, text),
		ID:        required(r, AttrNamespaceID, text),
		Status:    optional(r, AttrStatus, text),
		CreatedAt: optional(r, AttrCreatedAt, text),
		DeletedAt: optional(r, AttrDeletedAt, text),
	}
	r.drop(AttrGSI4PK, AttrGSI4SK)
	name, forward := strings.CutPrefix(r.key.SK, SKNamespacePrefix)
	id, reverse := strings.CutPrefix(r.key.SK, SKNamespaceIDPrefix)
	n.Reverse = reverse
	switch {
	case forward && name != n.Name:
		r.fail(AttrNamespaceName, "is not what the key says")
	case reverse && id != n.ID:
		r.fail(AttrNamespaceID, "is not what the key says")
	case !forward && !reverse:
		r.fail(AttrSK, "is no namespace's")
	}
	if r.err != nil {
		return nil, r.err
	}
	n.Extra = r.extra()
	return n, nil
}
