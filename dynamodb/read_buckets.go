package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// readBuckets reads all shards of buckets, as far as the process knows of them; nil for one that is
// not there.
func (s *bucketStore) readBuckets(ctx context.Context, now int64, spots ...*subjectState) ([][]*image, error) {
	var keys []schema.Key
	images := make([][]*image, len(spots))
	for i, p := range spots {
		images[i] = make([]*image, p.shardCount())
		for shard := range images[i] {
			keys = append(keys, p.queue(shard).id().Key())
		}
	}
	items, err := s.client.BatchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	for i, p := range spots {
		for shard := range images[i] {
			if item := items[shard]; item != nil {
				b, err := p.parseItem(item)
				if err != nil {
					return nil, err
				}
				images[i][shard] = newImage(b, p.queue(shard).lastImage(), p.shardCount(), now)
			}
		}
		items = items[len(images[i]):]
	}
	return images, nil
}

// readShards reads all shards of the bucket that the process knows of.
func (p *subjectState) readShards(ctx context.Context, now int64) ([]*image, error) {
	images, err := p.store.readBuckets(ctx, now, p)
	if err != nil {
		return nil, err
	}
	return images[0], nil
}

// readAll reads all shards of the bucket, also those that the process did not know of.
func (p *subjectState) readAll(ctx context.Context, now int64) ([]*image, error) {
	for {
		images, err := p.readShards(ctx, now)
		if err != nil || p.shardCount() <= len(images) {
			return images, err
		}
	}
}

// parseItem reads an item of the bucket, and takes in what it says of the bucket as a whole.
func (p *subjectState) parseItem(item schema.Item) (*schema.Bucket, error) {
	b, err := schema.ParseBucket(item)
	if err != nil {
		return nil, client.Unreadable(err)
	}
	p.raiseShards(b.Shards)
	p.setOwner(b.Cascade, b.Parent)
	return b, nil
}
