package aggregator

import (
	"github.com/weir-limiter/weir/internal/schema"
)

// Doubling is a change of a bucket's shard count, on the item of its first shard.
type Doubling struct {
	// Bucket is the first shard.
	Bucket schema.BucketID
	// From and To are the shard counts before and after.
	From, To int
}

// Doubled returns the changes that were made: the records of first shards whose count rose. The
// count has then to be raised on the other shards that exist, because the process that raised it
// may have ended before it did that.
func Doubled(records []*Record) []Doubling {
	var all []Doubling
	for _, r := range records {
		id, to, ok := bucketWrite(r)
		if !ok || id.Shard != 0 || r.Kind != Modified {
			continue
		}
		if from, ok := shardCount(r.Old); ok && from < to {
			all = append(all, Doubling{Bucket: id, From: from, To: to})
		}
	}
	return all
}

// bucketWrite returns the bucket item that a record says was written, and the
// shard count of that item. ok is false for every other record, and for a malformed one.
func bucketWrite(r *Record) (first schema.BucketID, shards int, ok bool) {
	if r.Key.SK != schema.SKState || r.Kind != Inserted && r.Kind != Modified ||
		r.Position == "" || r.At.IsZero() {
		return schema.BucketID{}, 0, false
	}
	id, err := schema.ParseBucketPK(r.Key.PK)
	if err != nil {
		return schema.BucketID{}, 0, false
	}
	shards, ok = shardCount(r.New)
	return id, shards, ok
}

// shardCount returns the shard count of an item. An item without one has one shard.
func shardCount(item schema.Item) (n int, ok bool) {
	value, found := item[schema.AttrShardCount]
	if !found {
		return 1, item != nil
	}
	count, err := schema.Int64(value)
	return int(count), err == nil && count >= 1 && count <= maxShardCount
}

// maxShardCount bounds a shard count of other programs, so that it can be doubled.
const maxShardCount = 1 << 20
