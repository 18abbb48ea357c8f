package stream_test

import (
	"maps"
	"slices"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/stream"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// divisible is a limit of 320 units that gains 64 a second: it can be split into 32 shards.
var divisible = weir.Limit{
	Name: "rpm", Kind: weir.Bucket, Capacity: 320, RefillAmount: 64, RefillPeriod: time.Second,
}

// setLimit sets the system's limit.
func (w *world) setLimit(l weir.Limit) {
	w.Helper()
	p := w.process()
	if err := p.SetLimits(w.Context(), weir.Subject{}, []weir.Limit{l}); err != nil {
		w.Fatal(err)
	}
	w.close(p)
}

// putShard writes the item of a shard with the given shard count.
func (w *world) putShard(entity string, shard, shards int) {
	w.Helper()
	w.putBucket(w.shardID(entity, shard), shards)
}

func (w *world) putBucket(id schema.BucketID, shards int) {
	w.Helper()
	b := &schema.Bucket{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource, Shard: id.Shard,
		RefilledMS: w.clock.now().UnixMilli(), Shards: shards, Writes: schema.NewWrites(),
		Limits: []schema.BucketLimit{{
			Name: divisible.Name, Capacity: divisible.Capacity * 1000,
			Refill: divisible.RefillAmount * 1000, PeriodMS: divisible.RefillPeriod.Milliseconds(),
		}},
	}
	in := &ddb.PutItemInput{TableName: &w.table.Name, Item: b.Item()}
	if _, err := w.c.API.PutItem(w.Context(), in); err != nil {
		w.Fatal(err)
	}
}

func (w *world) shardID(entity string, shard int) schema.BucketID {
	id := w.bucketID(entity)
	id.Shard = shard
	return id
}

// shards returns the items of all shards of a bucket, by shard.
func (w *world) shards(entity string) map[int]*schema.Bucket {
	w.Helper()
	found := make(map[int]*schema.Bucket)
	var keys []schema.Key
	for shard := range sharding.MaxShards {
		keys = append(keys, w.shardID(entity, shard).Key())
	}
	items, err := w.c.BatchGet(w.Context(), keys, true)
	if err != nil {
		w.Fatal(err)
	}
	for shard, item := range items {
		if item == nil {
			continue
		}
		if found[shard], err = schema.ParseBucket(item); err != nil {
			w.Fatal(err)
		}
	}
	return found
}

// judgeCounts checks which shards of a bucket exist, and that all of them have the same count.
func (w *world) judgeCounts(entity string, count int, shards ...int) {
	w.Helper()
	found := w.shards(entity)
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, shards) {
		w.Errorf("%s: shards %v exist, want %v", entity, got, shards)
	}
	for shard, b := range found {
		if b.Shards != count {
			w.Errorf("%s: shard %d has a count of %d, want %d", entity, shard, b.Shards, count)
		}
	}
}

// hotAt returns the option to split buckets at a number of writes a second.
func hotAt(n int) func(*stream.Options) {
	return func(o *stream.Options) { o.HotWrites = n }
}
