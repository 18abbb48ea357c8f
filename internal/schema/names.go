package schema

// The attributes of several kinds of items, and the index keys.
const (
	AttrPK  = "PK"
	AttrSK  = "SK"
	AttrTTL = "ttl" // in Unix seconds; DynamoDB deletes the item after it

	AttrGSI1PK = "GSI1PK"
	AttrGSI1SK = "GSI1SK"
	AttrGSI2PK = "GSI2PK"
	AttrGSI2SK = "GSI2SK"
	AttrGSI3PK = "GSI3PK"
	AttrGSI3SK = "GSI3SK"
	AttrGSI4PK = "GSI4PK"
	AttrGSI4SK = "GSI4SK"

	AttrEntity   = "entity_id"
	AttrResource = "resource"
	AttrCascade  = "cascade"
	AttrParent   = "parent_id"
	AttrDisabled = "disabled"
	AttrPGen     = "pgen" // the parent's generation
	AttrPInc     = "pinc" // the entity's incarnation
	AttrSched    = "sched"
	AttrRSched   = "rsched"
	AttrSchedTZ  = "sched_tz"
)

// Attributes of bucket items.
const (
	AttrRF         = "rf"
	AttrShardCount = "shard_count"
	AttrVU         = "vu"
	AttrBypass     = "bypass"
)

// Attributes of entities, namespaces, configuration, registries, audit, usage and the version.
const (
	AttrName          = "name"
	AttrMetadata      = "metadata"
	AttrCreatedAt     = "created_at"
	AttrVersion       = "version" // of an entity's metadata; only weir writes it
	AttrConfigVersion = "config_version"
	AttrOnUnavailable = "on_unavailable"
	AttrRetention     = "audit_retention_days"
	AttrResources     = "resources"
	AttrNamespaceID   = "namespace_id"
	AttrNamespaceName = "namespace_name"
	AttrStatus        = "status"
	AttrDeletedAt     = "deleted_at"
	AttrAction        = "action"
	AttrWindow        = "window"
	AttrWindowStart   = "window_start"
	AttrTotalEvents   = "total_events"
	AttrSchemaVersion = "schema_version"
	AttrLambdaVersion = "lambda_version"
	AttrClientMin     = "client_min_version"
	AttrUpdatedAt     = "updated_at"
	AttrUpdatedBy     = "updated_by"
	AttrSlices        = "slices"  // of lease IDs; only weir writes it
	AttrEdition       = "edition" // of a configuration item; only weir writes it

	AttrMigration      = "migration" // of the version record, as the next three; only weir writes them
	AttrMigratedFrom   = "migrated_from"
	AttrMigrationHome  = "migration_namespace"
	AttrMigrationSince = "migration_since_ms"

	// AttrUsageRetention and AttrTTLMultiplier are written only by weir; the library's
	// set_system_defaults erases them.
	AttrUsageRetention = "usage_retention_days"
	AttrTTLMultiplier  = "bucket_ttl_multiplier"
)

// Fields of a limit, on bucket items (in milli-units and milliseconds) and on configuration items
// (in units and seconds).
const (
	FieldBalance  = "tk" // bucket items only
	FieldCapacity = "cp"
	FieldRefill   = "ra"
	FieldPeriod   = "rp"
	FieldConsumed = "tc" // bucket items only
	FieldSoft     = "soft"
)

// Names of the indexes.
const (
	GSI1 = "GSI1" // parent → children
	GSI2 = "GSI2" // resource → buckets and usage
	GSI3 = "GSI3" // entity → buckets, resource → entities with limits of their own
	GSI4 = "GSI4" // namespace → all its items
)

// Whole sort keys, and prefixes of sort keys.
const (
	SKMeta                  = "#META"
	SKState                 = "#STATE"
	SKConfig                = "#CONFIG" // and "#CONFIG#{resource}" for entities
	SKVersion               = "#VERSION"
	SKResources             = "#RESOURCES"
	SKEntityConfigResources = "#ENTITY_CONFIG_RESOURCES"
	SKProvisioner           = "#PROVISIONER"
	SKApplyMark             = "#PROVISIONER#APPLY" // only weir writes it
	SKLeases                = "#LEASES"

	SKUsagePrefix       = "#USAGE#"
	SKAuditPrefix       = "#AUDIT#"
	SKNamespacePrefix   = "#NAMESPACE#"
	SKNamespaceIDPrefix = "#NSID#"
	SKOperationPrefix   = "#OP#"
)

// Prefixes of keys after the namespace, and of index keys.
const (
	EntityPrefix   = "ENTITY#"
	BucketPrefix   = "BUCKET#"
	ChildPrefix    = "CHILD#"
	UsagePrefix    = "USAGE#"
	parentPrefix   = "PARENT#"
	resourcePrefix = "RESOURCE#"
	systemPart     = "SYSTEM#"
	auditPrefix    = "AUDIT#"
	configPrefix   = "ENTITY_CONFIG#"
	leasesPrefix   = "LEASES#"
)

const (
	// RegistryNamespace is the namespace of the registry and of the version item.
	RegistryNamespace = "_"
	// DefaultNamespace is the name of the namespace that every table has.
	DefaultNamespace = "default"
	// DefaultResource stands for every resource in an entity's configuration.
	DefaultResource = "_default_"
	// WritesLimit is the limit on every bucket item that counts its writes.
	WritesLimit = "wcu"
	// NoSchedule is a limit's schedule that says that the limit has none, whatever the item's.
	NoSchedule = "-"
	// bypassed is the value of the attribute disabled that admits every request.
	bypassed = "bypass"
)
