package schema

const (
	// SchemaVersion is the layout of the items that this package knows.
	SchemaVersion = "0.10.0"
	// ClientMinVersion is the oldest version of the Python library that may use a new table.
	ClientMinVersion = "0.0.0"
)

// Version is the table's version item.
type Version struct {
	// Schema is the layout of the items.
	Schema string
	// Lambda is the version of the functions beside the table; empty if there are none.
	Lambda string
	// ClientMin is the oldest version of the library that may use the table; empty if it is not said.
	ClientMin string
	// UpdatedAt is when the item was written, as [Timestamp] writes it.
	UpdatedAt string
	// UpdatedBy is what wrote it, such as "client:0.17.0"; empty if it is not said.
	UpdatedBy string
	// Extra are all attributes that the fields do not stand for, as they were read.
	Extra Item
}

// Item returns the item as it is stored.
func (v *Version) Item() Item {
	item := newItem(v.Extra, VersionKey(), RegistryNamespace)
	item[AttrSchemaVersion] = String(v.Schema)
	item[AttrLambdaVersion] = StringOrNull(v.Lambda)
	setText(item, AttrClientMin, v.ClientMin)
	setText(item, AttrUpdatedAt, v.UpdatedAt)
	item[AttrUpdatedBy] = StringOrNull(v.UpdatedBy)
	return item
}

// ParseVersion reads the version item. One that cannot be read is a [*MalformedError].
func ParseVersion(item Item) (*Version, error) {
	r := newReader(item)
	if r.err == nil && r.key != VersionKey() {
		r.fail(AttrSK, "is not the version's")
	}
	r.drop(AttrGSI4PK, AttrGSI4SK)
	v := &Version{
		Schema:    required(r, AttrSchemaVersion, text),
		Lambda:    optional(r, AttrLambdaVersion, textOrNull),
		ClientMin: optional(r, AttrClientMin, textOrNull),
		UpdatedAt: optional(r, AttrUpdatedAt, textOrNull),
		UpdatedBy: optional(r, AttrUpdatedBy, textOrNull),
	}
	if r.err != nil {
		return nil, r.err
	}
	v.Extra = r.extra()
	return v, nil
}
