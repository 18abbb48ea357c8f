// Package oldtable reads the items of tables that releases of the Python library before 0.10.1
// have made, and turns them into items of the present layout.
//
// There are two kinds of keys. Up to release 0.9 a table has no namespaces: the partition of an
// entity is ENTITY#e. Release 0.10.0 has the present keys, with the namespace in front, except
// those of bucket items.
//
//	release    bucket, below ENTITY#e             limits of a place     schema  indexes
//	up to 0.6  an item a limit, #BUCKET#r#limit   an item each, #LIMIT# 1.0.0   GSI1, GSI2
//	0.7        one item, #BUCKET#r                an item each, #LIMIT# 0.7.0   GSI1, GSI2
//	0.8, 0.9   one item, #BUCKET#r                one item, #CONFIG     0.8.0   GSI1 to GSI3
//	0.10.0     one item, #BUCKET#r, in ns/        as at present         0.8.0   GSI1 to GSI4
//
// The functions of this package only compute. A [Source] reads: it finds the old items of one
// bucket while a table is being migrated.
package oldtable

import (
	"strings"

	"github.com/weir-limiter/weir/internal/schema"
)

// Kind is the kind of an old item.
type Kind int

// The kinds of items. The zero value is an item of the present layout.
const (
	Present  Kind = iota
	Bucket        // a bucket, or one limit of it
	Limit         // one limit of a place of the configuration
	Config        // all limits of a place
	Entity        // the record of an entity
	Registry      // a registry of resources
	Usage         // a record of usage
	Audit         // an event of the audit
	Version       // the version record
	Unknown       // an item at an old key that no release is known to write
)

// Key is the meaning of an old item's key.
type Key struct {
	Kind Kind
	// Namespace is the ID in front of the key; empty if the keys have no namespaces.
	Namespace string
	Entity    string
	Resource  string
	// Limit is the limit that the item holds, if it holds only one.
	Limit string
}

const (
	resourcePrefix = "RESOURCE#"
	systemPK       = "SYSTEM#"
	auditPrefix    = "AUDIT#"
	bucketSK       = "#BUCKET#"
	limitSK        = "#LIMIT#"
)

// ParseKey says what the item with a key is. The ID of a namespace has no "#", so an old
// partition cannot be taken for a present one.
func ParseKey(key schema.Key) Key {
	entity, isEntity := strings.CutPrefix(key.PK, schema.EntityPrefix)
	resource, isResource := strings.CutPrefix(key.PK, resourcePrefix)
	switch {
	case isEntity:
		return parseEntityItem(entity, key.SK)
	case isResource:
		return parsePlaceItem(resource, key.SK)
	case key.PK == systemPK:
		return parseSystemItem(key.SK)
	case strings.HasPrefix(key.PK, auditPrefix):
		if strings.HasPrefix(key.SK, schema.SKAuditPrefix) {
			return Key{Kind: Audit}
		}
		return Key{Kind: Unknown}
	}
	ns, rest, err := schema.SplitNamespace(key.PK)
	entity, isEntity = strings.CutPrefix(rest, schema.EntityPrefix)
	if err != nil || !isEntity || !strings.HasPrefix(key.SK, bucketSK) {
		return Key{}
	}
	k := parseEntityItem(entity, key.SK)
	k.Namespace = ns
	return k
}

// parseEntityItem parses the sort key of an item in the partition of an entity.
func parseEntityItem(entity, sk string) Key {
	k := Key{Entity: entity}
	if rest, ok := strings.CutPrefix(sk, bucketSK); ok {
		k.Kind = Bucket
		k.Resource, k.Limit, _ = strings.Cut(rest, "#")
		return k
	}
	if rest, ok := strings.CutPrefix(sk, limitSK); ok {
		k.Kind = Limit
		k.Resource, k.Limit, _ = strings.Cut(rest, "#")
		return k
	}
	resource, isConfig := strings.CutPrefix(sk, schema.SKConfig+"#")
	switch {
	case isConfig:
		k.Kind, k.Resource = Config, resource
	case sk == schema.SKMeta:
		k.Kind = Entity
	case strings.HasPrefix(sk, schema.SKUsagePrefix):
		k.Kind = Usage
	default:
		k.Kind = Unknown
	}
	return k
}

// parsePlaceItem parses the sort key of an item of a resource or, if that is empty, of the
// system.
func parsePlaceItem(resource, sk string) Key {
	if limit, ok := strings.CutPrefix(sk, limitSK); ok {
		return Key{Kind: Limit, Resource: resource, Limit: limit}
	}
	if sk == schema.SKConfig {
		return Key{Kind: Config, Resource: resource}
	}
	return Key{Kind: Unknown, Resource: resource}
}

func parseSystemItem(sk string) Key {
	switch sk {
	case schema.SKVersion:
		return Key{Kind: Version}
	case schema.SKResources, schema.SKEntityConfigResources:
		return Key{Kind: Registry}
	}
	return parsePlaceItem("", sk)
}

// VersionKey is the key of the version record of a table without namespaces.
func VersionKey() schema.Key { return schema.Key{PK: systemPK, SK: schema.SKVersion} }

// entityPK returns the partition of an entity. ns is empty if the keys have no namespaces.
func entityPK(ns, entity string) string {
	if ns == "" {
		return schema.EntityPrefix + entity
	}
	return schema.EntityPK(ns, entity)
}

// LimitsOf returns the partition and the prefix of the sort keys of the items that hold one limit
// each of a place.
func (k Key) LimitsOf() (pk, prefix string) {
	switch {
	case k.Entity != "":
		return entityPK("", k.Entity), limitSK + k.Resource + "#"
	case k.Resource != "":
		return resourcePrefix + k.Resource, limitSK
	}
	return systemPK, limitSK
}

// ConfigKey returns the old key of the item that holds all limits of a place.
func (k Key) ConfigKey() schema.Key {
	pk, _ := k.LimitsOf()
	if k.Entity != "" {
		return schema.Key{PK: pk, SK: schema.SKConfig + "#" + k.Resource}
	}
	return schema.Key{PK: pk, SK: schema.SKConfig}
}
