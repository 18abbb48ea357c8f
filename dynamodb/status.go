package dynamodb

import (
	"context"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/kernel"
)

// Status reports limits as the table has them, all shards together, after what this
// process has given back and not written yet. It creates nothing: an item that is not there is
// full.
func (s *Store) Status(
	ctx context.Context, now time.Time, of []weir.Judged,
) ([]weir.LimitStatus, error) {
	if err := s.running.Enter(); err != nil {
		return nil, err
	}
	defer s.running.End()
	var all []weir.LimitStatus
	for some := range slices.Chunk(of, client.MaxBatchGet) {
		statuses, err := s.statusOf(ctx, now.UnixMilli(), some)
		if err != nil {
			return nil, err
		}
		all = append(all, statuses...)
	}
	return all, nil
}

// status judges what was read of a bucket by what applies.
func (p *subject) status(now int64, r *weir.Judged, images []*image) []weir.LimitStatus {
	of := p.subject
	t := &itemConfig{level: r.Level, limits: r.Limits}
	for shard, m := range images {
		if m != nil {
			images[shard] = m.withConfig(t, p.item(shard).removed())
		}
	}
	out := make([]weir.LimitStatus, 0, len(r.Limits))
	for i := range r.Limits {
		l := &r.Limits[i]
		var balance int64
		for shard, m := range images {
			if m == nil {
				if s := storedLimit(l); shard == 0 { // another one takes what it has from the rest
					balance += firstShare(&s, images)
				}
				continue
			}
			balance += m.limit(l.Name).peek(now, len(images))
		}
		out = append(out, weir.LimitStatus{
			Entity: of.Entity, Resource: of.Resource, Limit: l.Name, Kind: l.Kind, Level: r.Level,
			Capacity: l.Capacity, Available: kernel.Units(min(balance, l.Capacity*1000)), Shadow: l.Shadow,
		})
	}
	return out
}
