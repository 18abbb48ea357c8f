package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir/internal/schema"
)

// readBuckets reads all shards of buckets, as far as the process knows of them; nil for one that is
// not there.
func (s *Store) readBuckets(ctx context.Context, now int64, spots ...*spot) ([][]*image, error) {
	var keys []schema.Key
	images := make([][]*image, len(spots))
	for i, p := range spots {
		images[i] = make([]*image, p.count())
		for shard := range images[i] {
			keys = append(keys, p.line(shard).id().Key())
		}
	}
	items, err := s.batchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	for i, p := range spots {
		for shard := range images[i] {
			if item := items[shard]; item != nil {
				b, err := p.parse(item)
				if err != nil {
					return nil, err
				}
				images[i][shard] = learn(b, p.line(shard).seen(), p.count(), now)
			}
		}
		items = items[len(images[i]):]
	}
	return images, nil
}

// readShards reads all shards of the bucket that the process knows of.
func (p *spot) readShards(ctx context.Context, now int64) ([]*image, error) {
	images, err := p.store.readBuckets(ctx, now, p)
	if err != nil {
		return nil, err
	}
	return images[0], nil
}

// readAll reads all shards of the bucket, also those that the process did not know of.
func (p *spot) readAll(ctx context.Context, now int64) ([]*image, error) {
	for {
		images, err := p.readShards(ctx, now)
		if err != nil || p.count() <= len(images) {
			return images, err
		}
	}
}

// parse reads an item of the bucket, and takes in what it says of the bucket as a whole.
func (p *spot) parse(item schema.Item) (*schema.Bucket, error) {
	b, err := schema.ParseBucket(item)
	if err != nil {
		return nil, unreadable(err)
	}
	p.grow(b.Shards)
	p.owner(b.Cascade, b.Parent)
	return b, nil
}
