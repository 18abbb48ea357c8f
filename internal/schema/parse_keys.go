package schema

import (
	"strconv"
	"strings"
)

// maxShard bounds the shard numbers that are believed: the Python library stops at 32 shards, its
// older versions did not, and a number beyond this comes from neither.
const maxShard = 1 << 20

// SplitNamespace splits a key into the ID of its namespace and the rest, at the first slash.
func SplitNamespace(key string) (ns, rest string, err error) {
	ns, rest, ok := strings.Cut(key, "/")
	if !ok {
		return "", "", keyError(AttrPK, key, "has no namespace")
	}
	return ns, rest, nil
}

// ParseBucketPK reads what [BucketID.PK] writes. The shard is behind the last "#", and the entity
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

// ParseBucketGSI4SK reads what [BucketID.GSI4SK] writes; the namespace is the index's partition.
func ParseBucketGSI4SK(ns, sk string) (BucketID, error) {
	id, reason := parseBucket(sk)
	if reason != "" {
		return BucketID{}, keyError(AttrGSI4SK, sk, reason)
	}
	id.Namespace = ns
	return id, nil
}

func parseBucket(s string) (id BucketID, reason string) {
	s, ok := strings.CutPrefix(s, BucketPrefix)
	if !ok {
		return id, "is no bucket's"
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

// ParseBucketGSI2SK reads the entity and the shard from what [BucketID.GSI2SK] writes.
func ParseBucketGSI2SK(sk string) (entity string, shard int, err error) {
	return parseShardKey(AttrGSI2SK, sk)
}

// ParseBucketGSI3SK reads the resource and the shard from what [BucketID.GSI3SK] writes.
func ParseBucketGSI3SK(sk string) (resource string, shard int, err error) {
	return parseShardKey(AttrGSI3SK, sk)
}

func parseShardKey(attribute, sk string) (name string, shard int, err error) {
	s, ok := strings.CutPrefix(sk, BucketPrefix)
	if !ok {
		return "", 0, keyError(attribute, sk, "is no bucket's")
	}
	name, shard, reason := cutShard(s)
	if reason != "" {
		return "", 0, keyError(attribute, sk, reason)
	}
	return name, shard, nil
}

// cutShard takes the shard's number off the end. Only the form that is written is read, so that one
// item has one key.
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

// ParseChildSK reads what [ChildSK] writes.
func ParseChildSK(sk string) (entity string, err error) {
	entity, ok := strings.CutPrefix(sk, ChildPrefix)
	if !ok {
		return "", keyError(AttrGSI1SK, sk, "is no child's")
	}
	return entity, nil
}

// ParseUsageGSI2SK reads what [UsageGSI2SK] writes.
func ParseUsageGSI2SK(sk string) (windowKey, entity string, err error) {
	s, ok := strings.CutPrefix(sk, UsagePrefix)
	if !ok {
		return "", "", keyError(AttrGSI2SK, sk, "is no usage's")
	}
	windowKey, entity, ok = strings.Cut(s, "#")
	if !ok {
		return "", "", keyError(AttrGSI2SK, sk, "has no entity")
	}
	return windowKey, entity, nil
}

// ParseUsageSK reads the resource and the window from the sort key of [UsageKey].
func ParseUsageSK(sk string) (resource, windowKey string, err error) {
	s, ok := strings.CutPrefix(sk, SKUsagePrefix)
	if !ok {
		return "", "", keyError(AttrSK, sk, "is no usage's")
	}
	i := strings.LastIndexByte(s, '#')
	if i < 0 {
		return "", "", keyError(AttrSK, sk, "has no window")
	}
	return s[:i], s[i+1:], nil
}

// ParseEntityPK reads what [EntityPK] writes.
func ParseEntityPK(pk string) (ns, entity string, err error) {
	return parseOwner(pk, EntityPrefix, "is no entity's")
}

// ParseAuditPK reads what [AuditPK] writes.
func ParseAuditPK(pk string) (ns, entity string, err error) {
	return parseOwner(pk, auditPrefix, "is no audit's")
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

// ParseBucketAttribute reads what [BucketAttribute] writes; ok is false for any other attribute.
// Names of limits may contain "_", so the field is behind the last one.
func ParseBucketAttribute(attribute string) (limit, field string, ok bool) {
	return cutField(attribute, bucketPrefix)
}

// LimitAttribute is the attribute of a limit's field on a configuration item: "l_rpm_cp".
func LimitAttribute(limit, field string) string { return limitPrefix + limit + "_" + field }

// ParseLimitAttribute reads what [LimitAttribute] writes; ok is false for any other attribute.
func ParseLimitAttribute(attribute string) (limit, field string, ok bool) {
	return cutField(attribute, limitPrefix)
}

// parseWindowAttribute reads the attributes of limits with windows of their own ("w_day_cp"), which
// weir has no use for.
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
