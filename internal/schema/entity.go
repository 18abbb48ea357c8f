package schema

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/weir-limiter/weir"
)

// noIncarnation is what an entity without any mark of its own is known by.
const noIncarnation = "-"

// Entity is an entity's META item.
type Entity struct {
	Namespace string
	ID        string
	// Name is for people; the library puts the ID there if nothing was said.
	Name string
	// Parent is empty if there is none.
	Parent string
	// Cascade is whether charges reach the parent.
	Cascade bool
	// Generation is pgen: the instant in Unix milliseconds at which the entity was made, plus one
	// for each change of parent; 0 where it is older than that.
	Generation int64
	// Incarnation is pinc, random for each entity that is made; empty where it is older than that.
	// See [Entity.Mark].
	Incarnation string
	// Metadata is what users keep there; values as [EncodeMap] takes them.
	Metadata map[string]any
	// CreatedAt is when it was made, as [Timestamp] writes it.
	CreatedAt string
	// Version counts what weir changed; 0 is an item that weir did not change yet.
	Version int64
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// Key is the item's key.
func (e *Entity) Key() Key { return MetaKey(e.Namespace, e.ID) }

// Mark is what tells this entity from another that had its ID before: the incarnation, else when it
// was made, else "-". Bucket items carry it as their [Bucket.Incarnation].
func (e *Entity) Mark() string {
	switch {
	case e.Incarnation != "":
		return e.Incarnation
	case e.CreatedAt != "":
		return e.CreatedAt
	}
	return noIncarnation
}

// Item returns the item as it is stored. Metadata that cannot be stored is an error.
func (e *Entity) Item() (Item, error) {
	metadata, err := encodeMap(AttrMetadata, e.Metadata, 1)
	if err != nil {
		return nil, err
	}
	item := newItem(e.Extra, e.Key(), e.Namespace)
	item[AttrEntity] = String(e.ID)
	item[AttrParent] = StringOrNull(e.Parent)
	item[AttrCascade] = Bool(e.Cascade)
	item[AttrMetadata] = metadata
	if e.Parent != "" {
		item[AttrGSI1PK] = String(ParentPK(e.Namespace, e.Parent))
		item[AttrGSI1SK] = String(ChildSK(e.ID))
	}
	setText(item, AttrName, e.Name)
	setText(item, AttrPInc, e.Incarnation)
	setText(item, AttrCreatedAt, e.CreatedAt)
	setNumber(item, AttrPGen, e.Generation)
	setNumber(item, AttrVersion, e.Version)
	return item, nil
}

// ParseEntity reads a META item. One that cannot be read is a [*MalformedError].
func ParseEntity(item Item) (*Entity, error) {
	r := newReader(item)
	ns, id, err := ParseEntityPK(r.key.PK)
	r.keyError(err)
	if r.key.SK != SKMeta {
		r.fail(AttrSK, "is no entity's")
	}
	r.optionalSame(AttrEntity, id)
	r.drop(AttrGSI1PK, AttrGSI1SK, AttrGSI4PK, AttrGSI4SK)
	e := &Entity{
		Namespace:   ns,
		ID:          id,
		Name:        optional(r, AttrName, textOrNull),
		Parent:      optional(r, AttrParent, textOrNull),
		Cascade:     optional(r, AttrCascade, truth),
		Generation:  optional(r, AttrPGen, number),
		Incarnation: optional(r, AttrPInc, text),
		Metadata:    optional(r, AttrMetadata, anyMap),
		CreatedAt:   optional(r, AttrCreatedAt, text),
		Version:     optional(r, AttrVersion, number),
	}
	if r.err != nil {
		return nil, r.err
	}
	e.Extra = r.extra()
	return e, nil
}

// setText adds a string unless it is empty.
func setText(item Item, name, s string) {
	if s != "" {
		item[name] = String(s)
	}
}

// setNumber adds a number unless it is 0.
func setNumber(item Item, name string, n int64) {
	if n != 0 {
		item[name] = Number(n)
	}
}

// NewNamespaceID makes a namespace's ID from random bytes: 11 characters of A–Z, a–z, 0–9, "_" and
// "-", of which the first is no "-", so that commands take it for no flag.
func NewNamespaceID(random io.Reader) (string, error) {
	const tries = 64 // each fails once in 64 times
	var b [8]byte
	for range tries {
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", fmt.Errorf("namespace ID: %w", err)
		}
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' {
			return id, nil
		}
	}
	return "", errors.New("namespace ID: the random bytes are not random")
}

// NewIncarnation makes an entity's incarnation from random bytes: 16 hexadecimal digits.
func NewIncarnation(random io.Reader) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("incarnation: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// NewULID makes an event's ID from an instant in Unix milliseconds and random bytes: 26 characters
// whose order is that of the instants.
func NewULID(ms int64, random io.Reader) (string, error) {
	const last = 1<<48 - 1
	if ms < 0 || ms > last {
		return "", fmt.Errorf("ULID: %d ms is beyond 48 bits", ms)
	}
	var id weir.LeaseID
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	if _, err := io.ReadFull(random, id[6:]); err != nil {
		return "", fmt.Errorf("ULID: %w", err)
	}
	return id.String(), nil
}
