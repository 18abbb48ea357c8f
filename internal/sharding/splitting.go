package sharding

import (
	"slices"

	"github.com/weir-limiter/weir/internal/schema"
)

// The bounds of splitting a bucket.
const (
	// MaxShards is the largest number of shards of a bucket; the Python library has the same bound.
	MaxShards = 32
	// SpreadMS is the least time in milliseconds between two doublings of a bucket, in which the
	// first takes effect: right after it the item is still as busy as before.
	SpreadMS = 1000
	// HotWrites is the number of writes of an item in one second at which the aggregator splits its
	// bucket: four fifths of what DynamoDB allows for one item.
	HotWrites = 800
	// minShare is the least capacity that each limit keeps in each shard, in milli-units.
	minShare = 10_000
)

// MaySplit reports whether a bucket may have the given number of shards, by one of its items. Each
// of its limits must be divisible. An item with attributes that weir does not support (ADR 17) is
// not split, because weir makes no new shard from it: its share would be lost. Neither is the rest
// of a deleted item.
func MaySplit(b *schema.Bucket, shards int) bool {
	if shards > MaxShards || b.Stub || Restricted(b) {
		return false
	}
	for i := range b.Limits {
		if !Divides(&b.Limits[i], shards) {
			return false
		}
	}
	return true
}

// Divides reports whether a limit can be divided among the given number of shards: each has enough
// of it, and no milli-unit is lost to rounding.
func Divides(l *schema.BucketLimit, shards int) bool {
	n := int64(shards)
	return l.Capacity/n >= minShare && l.Capacity%n == 0 && l.Refill%n == 0
}

// Restricted reports whether an item has attributes that weir does not support (ADR 17).
func Restricted(b *schema.Bucket) bool {
	return b.Disabled || len(b.Unjudged) > 0 ||
		slices.ContainsFunc(b.Limits, func(l schema.BucketLimit) bool { return len(l.Unjudged) > 0 })
}
