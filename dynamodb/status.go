package dynamodb

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/dynamodb/internal/bucketitem"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/kernel"
)

// Status reports limits as the table has them, all shards together, after this process's pending
// refunds have been written. It creates no item: an item that does not exist is full.
func (s *Store) Status(
	ctx context.Context, now time.Time, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	if err := s.running.Enter(); err != nil {
		return nil, err
	}
	defer s.running.End()
	var all []weir.LimitStatus
	for some := range slices.Chunk(of, client.MaxBatchGet) {
		statuses, err := s.readStatus(ctx, now.UnixMilli(), some)
		if err != nil {
			return nil, err
		}
		all = append(all, statuses...)
	}
	return all, nil
}

// statusOf returns the status of a subject's limits by the images of its shards.
func statusOf(
	p *bucketitem.Subject, now int64, r *driver.Judged, images []*bucketitem.Image,
) []weir.LimitStatus {
	of := p.Subject
	t := bucketitem.NewConfig(r)
	for shard, m := range images {
		if m != nil {
			images[shard] = m.WithConfig(t, p.Item(shard).Removed())
		}
	}
	out := make([]weir.LimitStatus, 0, len(r.Limits))
	for i := range r.Limits {
		l := &r.Limits[i]
		var balance int64
		for shard, m := range images {
			if m == nil {
				if s := bucketitem.StoredLimit(l); shard == 0 { // any other shard has nothing yet
					balance += bucketitem.FirstShare(&s, images)
				}
				continue
			}
			balance += m.Limit(l.Name).Peek(now, len(images))
		}
		out = append(out, weir.LimitStatus{
			Entity: of.Entity, Resource: of.Resource, Limit: l.Name, Kind: l.Kind, Level: r.Level,
			Capacity: l.Capacity, Available: kernel.Units(min(balance, l.Capacity*1000)), Shadow: l.Shadow,
		})
	}
	return out
}

// readStatus reports the limits of a few subjects, whose bucket items it reads together.
func (s *Store) readStatus(
	ctx context.Context, now int64, of []driver.Judged,
) ([]weir.LimitStatus, error) {
	subjects := make([]*bucketitem.Subject, len(of))
	for i := range of {
		subjects[i] = s.buckets.Subject(of[i].Subject)
		defer subjects[i].Release() // once all have been judged
	}
	for _, p := range subjects {
		if err := p.Flush(ctx, now); err != nil {
			return nil, err
		}
	}
	images, err := s.buckets.ReadSubjects(ctx, now, subjects)
	if err != nil {
		return nil, err
	}
	var all []weir.LimitStatus
	for i, p := range subjects {
		if p.ShardCount() > len(images[i]) { // the read showed that there are more shards
			if images[i], err = p.ReadAll(ctx, now); err != nil {
				return nil, err
			}
		}
		if images[i][0] == nil {
			if images[i], err = p.ReadOld(ctx, now, images[i]); err != nil {
				return nil, err
			}
		}
		all = append(all, statusOf(p, now, &of[i], images[i])...)
	}
	return all, nil
}
