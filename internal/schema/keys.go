// Package schema encodes and decodes the items of the DynamoDB table that weir shares with the
// Python library zae-limiter: their keys, their attributes and their time to live. It makes no
// calls, and takes time and random numbers as arguments.
//
// For each kind of item there is a type with an Item method that encodes it and a Parse function
// that decodes it: [Bucket], [Config], [Entity], [AuditEvent], [Usage], [Namespace], [Version] and
// [Provisioner]. The registries [Resources] and [EntityConfigResources] are only decoded, because
// updates of single names and counts write them. Functions such as [EntityPK] build the keys, and
// their Parse counterparts read them. [Table] is the definition of a table.
//
// The library has features that weir lacks, so a type does not hold everything that an item may
// have. Attributes that no field holds are kept in Extra, as they were read, and are written again.
// Attributes that change what an item means, and that weir does not support, are named in Unjudged.
// An item that cannot be decoded is a [*MalformedError].
//
// The golden tests compare both directions with items that the library has written.
package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Key is the primary key of an item.
type Key struct {
	PK, SK string
}

// Item returns the key as an item with two attributes.
func (k Key) Item() Item {
	return Item{AttrPK: String(k.PK), AttrSK: String(k.SK)}
}

// String returns both parts of the key, for messages.
func (k Key) String() string { return k.PK + " " + k.SK }

// KeyOf returns the key of an item. An item without one is a [*MalformedError].
func KeyOf(item Item) (Key, error) {
	pk, ok := item[AttrPK].(*types.AttributeValueMemberS)
	if !ok {
		return Key{}, malformed(item, AttrPK, "is missing or not a string")
	}
	sk, ok := item[AttrSK].(*types.AttributeValueMemberS)
	if !ok {
		return Key{}, malformed(item, AttrSK, "is missing or not a string")
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

// ApplyMarkKey is the key of the mark of an apply of declared limits.
func ApplyMarkKey(ns string) Key { return Key{SystemPK(ns), SKApplyMark} }

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

// UsageKey is the key of the usage of a resource by an entity in a window; see [WindowKey].
func UsageKey(ns, entity, resource, windowKey string) Key {
	return Key{EntityPK(ns, entity), SKUsagePrefix + resource + "#" + windowKey}
}

// ChildSK is a child's GSI1 sort key.
func ChildSK(entity string) string { return ChildPrefix + entity }

// UsageGSI2SK is a usage item's GSI2 sort key.
func UsageGSI2SK(windowKey, entity string) string { return UsagePrefix + windowKey + "#" + entity }

// BucketID identifies a bucket item.
type BucketID struct {
	Namespace, Entity, Resource string
	Shard                       int
}

// PK is the item's partition key. No other item has it.
func (id BucketID) PK() string {
	return id.Namespace + "/" + BucketPrefix + id.Entity + "#" + id.Resource + "#" + id.shard()
}

// Key is the item's key.
func (id BucketID) Key() Key { return Key{id.PK(), SKState} }

// GSI2SK is the item's sort key among the items of its resource.
func (id BucketID) GSI2SK() string { return BucketPrefix + id.Entity + "#" + id.shard() }

// GSI3SK is the item's sort key among the buckets of its entity.
func (id BucketID) GSI3SK() string { return BucketPrefix + id.Resource + "#" + id.shard() }

// GSI4SK is the item's sort key among the items of its namespace. For all other kinds of items it
// is the partition key.
func (id BucketID) GSI4SK() string {
	return BucketPrefix + id.Entity + "#" + id.Resource + "#" + id.shard()
}

// String returns the item's partition.
func (id BucketID) String() string { return id.PK() }

func (id BucketID) shard() string { return strconv.Itoa(id.Shard) }

// MalformedError is the error for an attribute that cannot be decoded.
type MalformedError struct {
	Key       Key    // the item's key; a part that the item lacks is empty
	Attribute string // such as "b_rpm_tk"
	Value     string // shortened; empty if the attribute is missing
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

// maxShard bounds the shard numbers that are accepted. The Python library stops at 32 shards. Its
// older versions had no bound, but never reached this number.
const maxShard = 1 << 20

// SplitNamespace splits a key at the first slash into the ID of its namespace and the rest.
func SplitNamespace(key string) (ns, rest string, err error) {
	ns, rest, ok := strings.Cut(key, "/")
	if !ok {
		return "", "", keyError(AttrPK, key, "has no namespace")
	}
	return ns, rest, nil
}

// ParseBucketPK parses what [BucketID.PK] builds. The shard follows the last "#", and the entity
// ends at the first one.
func ParseBucketPK(pk string) (BucketID, error) {
	ns, rest, err := SplitNamespace(pk)
	if err != nil {
		return BucketID{}, err
	}
	id, reason := parseBucket(rest)
	if reason != "" {
		return BucketID{}, keyError(AttrPK, pk, reason)
	}
	id.Namespace = ns
	return id, nil
}

func parseBucket(s string) (id BucketID, reason string) {
	s, ok := strings.CutPrefix(s, BucketPrefix)
	if !ok {
		return id, "is not that of a bucket item"
	}
	names, shard, reason := cutShard(s)
	if reason != "" {
		return id, reason
	}
	id.Entity, id.Resource, ok = strings.Cut(names, "#")
	if !ok {
		return id, "has no resource"
	}
	id.Shard = shard
	return id, ""
}

// cutShard removes the shard number from the end of s. It accepts only the form that is written, so
// that one item has one key.
func cutShard(s string) (rest string, shard int, reason string) {
	i := strings.LastIndexByte(s, '#')
	if i < 0 {
		return "", 0, "has no shard"
	}
	digits := s[i+1:]
	shard, err := strconv.Atoi(digits)
	if err != nil || shard < 0 || shard > maxShard || strconv.Itoa(shard) != digits {
		return "", 0, "has no shard number at its end"
	}
	return s[:i], shard, ""
}

// ParseChildSK parses what [ChildSK] builds.
func ParseChildSK(sk string) (entity string, err error) {
	entity, ok := strings.CutPrefix(sk, ChildPrefix)
	if !ok {
		return "", keyError(AttrGSI1SK, sk, "is not that of a child")
	}
	return entity, nil
}

// ParseUsageGSI2SK parses what [UsageGSI2SK] builds.
func ParseUsageGSI2SK(sk string) (windowKey, entity string, err error) {
	s, ok := strings.CutPrefix(sk, UsagePrefix)
	if !ok {
		return "", "", keyError(AttrGSI2SK, sk, "is not that of a usage item")
	}
	windowKey, entity, ok = strings.Cut(s, "#")
	if !ok {
		return "", "", keyError(AttrGSI2SK, sk, "has no entity")
	}
	return windowKey, entity, nil
}

// ParseUsageSK returns the resource and the window in the sort key of a [UsageKey].
func ParseUsageSK(sk string) (resource, windowKey string, err error) {
	s, ok := strings.CutPrefix(sk, SKUsagePrefix)
	if !ok {
		return "", "", keyError(AttrSK, sk, "is not that of a usage item")
	}
	i := strings.LastIndexByte(s, '#')
	if i < 0 {
		return "", "", keyError(AttrSK, sk, "has no window")
	}
	return s[:i], s[i+1:], nil
}

// ParseEntityPK parses what [EntityPK] builds.
func ParseEntityPK(pk string) (ns, entity string, err error) {
	return parseOwner(pk, EntityPrefix, "is not that of an entity")
}

// ParseAuditPK parses what [AuditPK] builds.
func ParseAuditPK(pk string) (ns, entity string, err error) {
	return parseOwner(pk, auditPrefix, "is not that of an audit event")
}

func parseOwner(pk, prefix, reason string) (ns, owner string, err error) {
	ns, rest, err := SplitNamespace(pk)
	if err != nil {
		return "", "", err
	}
	owner, ok := strings.CutPrefix(rest, prefix)
	if !ok {
		return "", "", keyError(AttrPK, pk, reason)
	}
	return ns, owner, nil
}

// BucketAttribute is the attribute of a limit's field on a bucket item: "b_rpm_tk".
func BucketAttribute(limit, field string) string { return bucketPrefix + limit + "_" + field }

// ParseBucketAttribute parses what [BucketAttribute] builds; ok is false for any other attribute.
// The name of a limit may contain "_", so the field follows the last one.
func ParseBucketAttribute(attribute string) (limit, field string, ok bool) {
	return cutField(attribute, bucketPrefix)
}

// LimitAttribute is the attribute of a limit's field on a configuration item: "l_rpm_cp".
func LimitAttribute(limit, field string) string { return limitPrefix + limit + "_" + field }

// ParseLimitAttribute parses what [LimitAttribute] builds; ok is false for any other attribute.
func ParseLimitAttribute(attribute string) (limit, field string, ok bool) {
	return cutField(attribute, limitPrefix)
}

// parseWindowAttribute parses an attribute of a limit with windows of its own ("w_day_cp"), a
// feature that weir does not have.
func parseWindowAttribute(attribute string) (limit, field string, ok bool) {
	return cutField(attribute, windowPrefix)
}

const (
	bucketPrefix = "b_"
	limitPrefix  = "l_"
	windowPrefix = "w_"
)

func cutField(attribute, prefix string) (limit, field string, ok bool) {
	s, ok := strings.CutPrefix(attribute, prefix)
	if !ok {
		return "", "", false
	}
	i := strings.LastIndexByte(s, '_')
	if i <= 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func keyError(attribute, value, reason string) error {
	return &MalformedError{Attribute: attribute, Value: strconv.Quote(value), Reason: reason}
}
