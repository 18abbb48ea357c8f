package schema

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Key is the primary key of an item.
type Key struct {
	PK, SK string
}

// Item returns the key as DynamoDB takes it.
func (k Key) Item() Item {
	return Item{AttrPK: String(k.PK), AttrSK: String(k.SK)}
}

// String returns both parts.
func (k Key) String() string { return k.PK + " " + k.SK }

// KeyOf returns the key of an item. An item without one is a [*MalformedError].
func KeyOf(item Item) (Key, error) {
	pk, ok := item[AttrPK].(*types.AttributeValueMemberS)
	if !ok {
		return Key{}, malformed(item, AttrPK, "is missing or no string")
	}
	sk, ok := item[AttrSK].(*types.AttributeValueMemberS)
	if !ok {
		return Key{}, malformed(item, AttrSK, "is missing or no string")
	}
	return Key{pk.Value, sk.Value}, nil
}

// EntityPK is the partition of an entity's META, configuration and usage, and the GSI3 partition of
// its buckets.
func EntityPK(ns, entity string) string { return ns + "/" + EntityPrefix + entity }

// ResourcePK is the partition of a resource's configuration, and its GSI2 partition.
func ResourcePK(ns, resource string) string { return ns + "/" + resourcePrefix + resource }

// SystemPK is the partition of a namespace's own items.
func SystemPK(ns string) string { return ns + "/" + systemPart }

// AuditPK is the partition of the audit of an entity, of [AuditSystem] or of [AuditResource].
func AuditPK(ns, entity string) string { return ns + "/" + auditPrefix + entity }

// ParentPK is the GSI1 partition of an entity's children.
func ParentPK(ns, parent string) string { return ns + "/" + parentPrefix + parent }

// EntityConfigPK is the GSI3 partition of the entities with limits of their own on a resource.
func EntityConfigPK(ns, resource string) string { return ns + "/" + configPrefix + resource }

// MetaKey is the key of an entity's META.
func MetaKey(ns, entity string) Key { return Key{EntityPK(ns, entity), SKMeta} }

// EntityConfigKey is the key of an entity's configuration for a resource or [DefaultResource].
func EntityConfigKey(ns, entity, resource string) Key {
	return Key{EntityPK(ns, entity), SKConfig + "#" + resource}
}

// ResourceConfigKey is the key of a resource's configuration.
func ResourceConfigKey(ns, resource string) Key { return Key{ResourcePK(ns, resource), SKConfig} }

// SystemConfigKey is the key of a namespace's configuration.
func SystemConfigKey(ns string) Key { return Key{SystemPK(ns), SKConfig} }

// ResourcesKey is the key of the registry of resources that have limits.
func ResourcesKey(ns string) Key { return Key{SystemPK(ns), SKResources} }

// EntityConfigResourcesKey is the key of the registry of resources for which entities have limits.
func EntityConfigResourcesKey(ns string) Key { return Key{SystemPK(ns), SKEntityConfigResources} }

// ProvisionerKey is the key of the state of declared limits.
func ProvisionerKey(ns string) Key { return Key{SystemPK(ns), SKProvisioner} }

// PendingKey is the key of a change that buckets do not have yet: a kind (disabled, cascade, soft
// or sync) at a level for a target.
func PendingKey(ns, kind, level, target string) Key {
	return Key{SystemPK(ns), SKPendingPrefix + kind + "#" + level + "#" + target}
}

// VersionKey is the key of the table's version.
func VersionKey() Key { return Key{SystemPK(RegistryNamespace), SKVersion} }

// NamespaceKey is the key of the item that leads from a namespace's name to its ID.
func NamespaceKey(name string) Key {
	return Key{SystemPK(RegistryNamespace), SKNamespacePrefix + name}
}

// NamespaceIDKey is the key of the item that leads from a namespace's ID to its name.
func NamespaceIDKey(id string) Key {
	return Key{SystemPK(RegistryNamespace), SKNamespaceIDPrefix + id}
}

// AuditKey is the key of an event, whose ID is a ULID.
func AuditKey(ns, entity, event string) Key {
	return Key{AuditPK(ns, entity), SKAuditPrefix + event}
}

// UsageKey is the key of what an entity used of a resource in a window, see [WindowKey].
func UsageKey(ns, entity, resource, windowKey string) Key {
	return Key{EntityPK(ns, entity), SKUsagePrefix + resource + "#" + windowKey}
}

// OperationKey is the key of the record of an operator's reset or top-up.
func OperationKey(ns, entity, resource, operation string) Key {
	return Key{BucketID{ns, entity, resource, 0}.PK(), SKOperationPrefix + operation}
}

// ChildSK is a child's GSI1 sort key.
func ChildSK(entity string) string { return ChildPrefix + entity }

// UsageGSI2SK is a usage item's GSI2 sort key.
func UsageGSI2SK(windowKey, entity string) string { return UsagePrefix + windowKey + "#" + entity }

// BucketID names a bucket item.
type BucketID struct {
	Namespace, Entity, Resource string
	Shard                       int
}

// PK is the item's partition, which it has for itself.
func (id BucketID) PK() string {
	return id.Namespace + "/" + BucketPrefix + id.Entity + "#" + id.Resource + "#" + id.shard()
}

// Key is the item's key.
func (id BucketID) Key() Key { return Key{id.PK(), SKState} }

// GSI2SK is the item's sort key among the items of its resource.
func (id BucketID) GSI2SK() string { return BucketPrefix + id.Entity + "#" + id.shard() }

// GSI3SK is the item's sort key among the buckets of its entity.
func (id BucketID) GSI3SK() string { return BucketPrefix + id.Resource + "#" + id.shard() }

// GSI4SK is the item's sort key in its namespace: unlike all others it is not the partition.
func (id BucketID) GSI4SK() string {
	return BucketPrefix + id.Entity + "#" + id.Resource + "#" + id.shard()
}

// String returns the item's partition.
func (id BucketID) String() string { return id.PK() }

func (id BucketID) shard() string { return strconv.Itoa(id.Shard) }

// MalformedError says which attribute of an item cannot be read.
type MalformedError struct {
	Key       Key    // the item's; its parts are empty where the item has none
	Attribute string // such as "b_rpm_tk"
	Value     string // as far as it can be shown; empty if it is missing
	Reason    string // such as "is no whole number"
}

// Error names the item, the attribute, its value and the reason.
func (e *MalformedError) Error() string {
	value := ""
	if e.Value != "" {
		value = " " + e.Value
	}
	where := ""
	if e.Key != (Key{}) {
		where = fmt.Sprintf("item %q %q: ", e.Key.PK, e.Key.SK)
	}
	return fmt.Sprintf("%sattribute %s%s %s", where, e.Attribute, value, e.Reason)
}
