package dynamodb

import (
	"context"
	"iter"

	"github.com/weir-limiter/weir/internal/schema"
)

// storedBucket is a bucket item as it was read.
type storedBucket struct {
	id   schema.BucketID
	item schema.Item
}

// bucketGroups yields the buckets of an entity that are there, those of a few resources at a time with
// all shards, so that whoever is cut short has something done. It ends with the first error.
func (s *Store) bucketGroups(
	ctx context.Context, entity string,
) iter.Seq2[[]storedBucket, error] {
	return func(yield func([]storedBucket, error) bool) {
		var group []schema.BucketID
		resources := 0
		flush := func() bool {
			found, err := s.readGroup(ctx, group)
			group, resources = nil, 0
			return yield(found, err) && err == nil
		}
		for id, err := range s.bucketsOf(ctx, entity) { // a resource's shards stand side by side
			if err != nil {
				yield(nil, err)
				return
			}
			if len(group) == 0 || group[len(group)-1].Resource != id.Resource {
				if resources == maxParallel && !flush() {
					return
				}
				resources++
			}
			group = append(group, id)
		}
		if len(group) > 0 {
			flush()
		}
	}
}

// readGroup reads buckets, with all shards of their resources. The index may not show the newest ones
// yet, but the first one of each resource counts them.
func (s *Store) readGroup(ctx context.Context, ids []schema.BucketID) ([]storedBucket, error) {
	known := make(map[schema.BucketID]bool)
	var asked []schema.BucketID
	ask := func(id schema.BucketID, shard int) {
		id.Shard = shard
		if !known[id] {
			known[id] = true
			asked = append(asked, id)
		}
	}
	for _, id := range ids {
		ask(id, 0)
		ask(id, id.Shard)
	}
	found, err := s.readExisting(ctx, asked)
	if err != nil {
		return nil, err
	}
	asked = nil
	for _, b := range found {
		if b.id.Shard != 0 {
			continue
		}
		first, err := schema.ParseBucket(b.item)
		if err != nil {
			return nil, unreadable(err)
		}
		for shard := range first.Shards {
			ask(b.id, shard)
		}
	}
	unseen, err := s.readExisting(ctx, asked)
	return append(found, unseen...), err
}

// readExisting reads those of the buckets that are there.
func (s *Store) readExisting(
	ctx context.Context, ids []schema.BucketID,
) ([]storedBucket, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		keys[i] = id.Key()
	}
	items, err := s.batchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	var found []storedBucket
	for i, item := range items {
		if item != nil {
			found = append(found, storedBucket{ids[i], item})
		}
	}
	return found, nil
}
