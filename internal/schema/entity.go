package schema

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/weir-limiter/weir"
)

// noIncarnation is the mark of an entity that has neither incarnation nor creation time.
const noIncarnation = "-"

// Entity is an entity's META item.
type Entity struct {
	Namespace string
	ID        string
	// Name is the display name. The library stores the ID if there is none.
	Name string
	// Parent is empty if there is none.
	Parent string
	// Cascade says whether to charge the parent too.
	Cascade bool
	// Generation is pgen: the creation time in Unix milliseconds, plus one for each change of
	// parent; 0 for an entity from before the attribute.
	Generation int64
	// Incarnation is pinc, random for each new entity; empty for an entity from before the
	// attribute. See [Entity.Mark].
	Incarnation string
	// Metadata belongs to users. [EncodeMap] lists its types.
	Metadata map[string]any
	// CreatedAt is the creation time, formatted by [Timestamp].
	CreatedAt string
	// Version counts weir's changes of the item; 0 if weir has not changed it.
	Version int64
	// Extra are all attributes that no field holds, as they were read.
	Extra Item
}

// Key is the item's key.
func (e *Entity) Key() Key { return MetaKey(e.Namespace, e.ID) }

// Mark returns the value that tells this entity from an earlier one with the same ID: the
// incarnation, or else the creation time, or else "-". Bucket items carry it as
// [Bucket.Incarnation].
func (e *Entity) Mark() string {
	switch {
	case e.Incarnation != "":
		return e.Incarnation
	case e.CreatedAt != "":
		return e.CreatedAt
	}
	return noIncarnation
}

// Item returns the item as it is stored, or an error for metadata that cannot be stored.
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

// ParseEntity decodes a META item, or returns a [*MalformedError].
func ParseEntity(item Item) (*Entity, error) {
	r := newReader(item)
	ns, id, err := ParseEntityPK(r.key.PK)
	r.keyError(err)
	if r.key.SK != SKMeta {
		r.fail(AttrSK, "is not that of an entity")
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

// setText sets a string attribute unless the string is empty.
func setText(item Item, name, s string) {
	if s != "" {
		item[name] = String(s)
	}
}

// setNumber sets a number attribute unless the number is 0.
func setNumber(item Item, name string, n int64) {
	if n != 0 {
		item[name] = Number(n)
	}
}

// NewNamespaceID returns a random namespace ID: 11 characters of A–Z, a–z, 0–9, "_" and "-". The
// first is not "-", so that a command does not take it for a flag.
func NewNamespaceID(random io.Reader) (string, error) {
	const tries = 64 // a try fails once in 64 times
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

// NewIncarnation returns a random incarnation of an entity: 16 hexadecimal digits.
func NewIncarnation(random io.Reader) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("incarnation: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// NewULID returns the ID of an event at an instant in Unix milliseconds: 26 characters that sort by
// the instant.
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
