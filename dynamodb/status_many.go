package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir"
)

// statusOf reports the limits of a few subjects, whose bucket items are read together.
func (s *Store) statusOf(
	ctx context.Context, now int64, of []weir.Judged,
) ([]weir.LimitStatus, error) {
	spots := make([]*subject, len(of))
	for i := range of {
		spots[i] = s.buckets.subject(of[i].Subject)
		defer spots[i].release() // once all have been judged
	}
	for _, p := range spots {
		if err := p.flush(ctx, now); err != nil {
			return nil, err
		}
	}
	images, err := s.buckets.readSubjects(ctx, now, spots)
	if err != nil {
		return nil, err
	}
	var all []weir.LimitStatus
	for i, p := range spots {
		if p.shardCount() > len(images[i]) { // it has shards that the process did not know of
			if images[i], err = p.readAll(ctx, now); err != nil {
				return nil, err
			}
		}
		all = append(all, p.status(now, &of[i], images[i])...)
	}
	return all, nil
}
