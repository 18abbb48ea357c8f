package schema

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Table is the definition of a table.
type Table struct {
	Name string
	// Lean makes GSI2 have keys only, which halves the cost of a bucket write. The Python library
	// cannot read the buckets, the capacity and the usage of a resource on such a table.
	Lean bool
	// Stream enables a stream of old and new items, which the aggregator reads.
	Stream bool
	// Protected makes DynamoDB refuse to delete the table until the protection is taken off.
	Protected bool
	// Recovery enables point-in-time recovery: the table can be restored to any second of the last
	// 35 days.
	Recovery bool
}

// index is the definition of an index: its keys and its projection.
type index struct {
	name, hash, sort string
	keeps            types.ProjectionType
}

// indexes returns the global and the local indexes. The local ones are reserved for later: no item
// has their keys, but local indexes cannot be added to an existing table.
func (t Table) indexes() (global, local []index) {
	resources := types.ProjectionTypeAll
	if t.Lean {
		resources = types.ProjectionTypeKeysOnly
	}
	return []index{
			{GSI1, AttrGSI1PK, AttrGSI1SK, types.ProjectionTypeAll},
			{GSI2, AttrGSI2PK, AttrGSI2SK, resources},
			{GSI3, AttrGSI3PK, AttrGSI3SK, types.ProjectionTypeKeysOnly},
			{GSI4, AttrGSI4PK, AttrGSI4SK, types.ProjectionTypeKeysOnly},
		}, []index{
			{"LSI1", AttrPK, "LSI1SK", types.ProjectionTypeAll},
			{"LSI2", AttrPK, "LSI2SK", types.ProjectionTypeKeysOnly},
			{"LSI3", AttrPK, "LSI3SK", types.ProjectionTypeAll},
			{"LSI4", AttrPK, "LSI4SK", types.ProjectionTypeKeysOnly},
			{"LSI5", AttrPK, "LSI5SK", types.ProjectionTypeAll},
		}
}

// CreateInput returns the call that creates the table, billed by request. Its time to live, on
// [AttrTTL], and its recovery are enabled by other calls.
func (t Table) CreateInput() *dynamodb.CreateTableInput {
	global, local := t.indexes()
	in := &dynamodb.CreateTableInput{
		TableName:            aws.String(t.Name),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            keySchema(AttrPK, AttrSK),
		AttributeDefinitions: definitions(AttrPK, AttrSK),
	}
	for _, x := range global {
		in.AttributeDefinitions = append(in.AttributeDefinitions, definitions(x.hash, x.sort)...)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort),
			Projection: &types.Projection{ProjectionType: x.keeps},
		})
	}
	for _, x := range local {
		in.AttributeDefinitions = append(in.AttributeDefinitions, definitions(x.sort)...)
		in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
			IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort),
			Projection: &types.Projection{ProjectionType: x.keeps},
		})
	}
	if t.Protected {
		in.DeletionProtectionEnabled = aws.Bool(true)
	}
	if t.Stream {
		in.StreamSpecification = &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		}
	}
	return in
}

// AddIndex returns the call that adds a global index to the table; nil if it has no index with that
// name.
func (t Table) AddIndex(name string) *dynamodb.UpdateTableInput {
	global, _ := t.indexes()
	for _, x := range global {
		if x.name != name {
			continue
		}
		return &dynamodb.UpdateTableInput{
			TableName: aws.String(t.Name), AttributeDefinitions: definitions(x.hash, x.sort),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
				Create: &types.CreateGlobalSecondaryIndexAction{
					IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort),
					Projection: &types.Projection{ProjectionType: x.keeps},
				},
			}},
		}
	}
	return nil
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

func definitions(names ...string) []types.AttributeDefinition {
	list := make([]types.AttributeDefinition, len(names))
	for i, name := range names {
		list[i] = types.AttributeDefinition{
			AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS,
		}
	}
	return list
}

const (
	// SchemaVersion is the version of the items that this package encodes.
	SchemaVersion = "0.10.0"
	// AnyClient is the ClientMin of a table that every version of the Python library can use.
	AnyClient = "0.0.0"
)

// The steps of a migration.
const (
	// MigratingLimits is the step before all limits and entities have been carried over. No program
	// may use the table.
	MigratingLimits = "limits"
	// MigratingBuckets is the step before all other items have been carried over. weir may use the
	// table.
	MigratingBuckets = "buckets"

	// MigratingSchema is the schema version of a table that is being migrated. Every release of the
	// Python library refuses a table with another major version than its own. Not all of them respect
	// client_min_version.
	MigratingSchema = "999.0.0"
)

// Version is the table's version item.
type Version struct {
	// Schema is the version of the items.
	Schema string
	// Lambda is the version of the library's Lambda functions; empty if none are deployed.
	Lambda string
	// ClientMin is the oldest version of the library that can use the table; empty if unset.
	ClientMin string
	// UpdatedAt is the time of the last write, formatted by [Timestamp].
	UpdatedAt string
	// Old is true if the record is that of a table without namespaces, at a key of its own. [Version.Item]
	// never writes such a record.
	Old bool
	// UpdatedBy is the writer, such as "client:0.17.0"; empty if unset.
	UpdatedBy string
	// Migration is the step of a migration from an older layout that is not complete,
	// [MigratingLimits] or [MigratingBuckets]; empty if there is none. Schema is [MigratingSchema]
	// then. Only weir writes it.
	Migration string
	// MigratedFrom is the version of the items before that migration, also after its end.
	MigratedFrom string
	// MigrationHome is the ID of the namespace for which the items without a namespace are; empty if
	// the older items have namespaces.
	MigrationHome string
	// MigrationSince is the beginning of the migration in Unix milliseconds.
	MigrationSince int64
	// Extra are all attributes that no field holds, as they were read.
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
	setText(item, AttrMigration, v.Migration)
	setText(item, AttrMigratedFrom, v.MigratedFrom)
	setText(item, AttrMigrationHome, v.MigrationHome)
	setNumber(item, AttrMigrationSince, v.MigrationSince)
	return item
}

// ParseVersion decodes the version item, or returns a [*MalformedError].
func ParseVersion(item Item) (*Version, error) {
	r := newReader(item)
	if r.err == nil && r.key != VersionKey() {
		r.fail(AttrSK, "is not that of the version record")
	}
	r.drop(AttrGSI4PK, AttrGSI4SK)
	v := &Version{
		Schema:    required(r, AttrSchemaVersion, text),
		Lambda:    optional(r, AttrLambdaVersion, textOrNull),
		ClientMin: optional(r, AttrClientMin, textOrNull),
		UpdatedAt: optional(r, AttrUpdatedAt, textOrNull),
		UpdatedBy: optional(r, AttrUpdatedBy, textOrNull),

		Migration:      optional(r, AttrMigration, text),
		MigratedFrom:   optional(r, AttrMigratedFrom, text),
		MigrationHome:  optional(r, AttrMigrationHome, text),
		MigrationSince: optional(r, AttrMigrationSince, number),
	}
	if r.err != nil {
		return nil, r.err
	}
	v.Extra = r.extra()
	return v, nil
}

// The statuses of a namespace.
const (
	StatusActive  = "active"
	StatusDeleted = "deleted" // its items stay, and it can be recovered
	StatusPurging = "purging" // its items are being deleted for good
)

// Namespace is one of the two registry items of a namespace: the one that leads from its name to
// its ID, or the one that leads back.
type Namespace struct {
	// Reverse is set on the item that leads from the ID to the name.
	Reverse bool
	Name    string
	ID      string
	Status  string
	// CreatedAt is the time of the registration, formatted by [Timestamp].
	CreatedAt string
	// DeletedAt is the time of the deletion; empty if there was none. Only the item that leads back
	// has it.
	DeletedAt string
	// Extra are all attributes that no field holds, as they were read.
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

// ParseNamespace decodes either item of a namespace, or returns a [*MalformedError].
func ParseNamespace(item Item) (*Namespace, error) {
	r := newReader(item)
	if r.key.PK != SystemPK(RegistryNamespace) {
		r.fail(AttrPK, "is not that of a namespace")
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
		r.fail(AttrNamespaceName, "does not agree with the key")
	case reverse && id != n.ID:
		r.fail(AttrNamespaceID, "does not agree with the key")
	case !forward && !reverse:
		r.fail(AttrSK, "is not that of a namespace")
	}
	if r.err != nil {
		return nil, r.err
	}
	n.Extra = r.extra()
	return n, nil
}
