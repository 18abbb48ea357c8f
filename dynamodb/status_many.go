package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir"
)

// statusOf reports the limits of a few subjects. What applies is asked for several at once, since the
// configuration of each may have to be read, and their buckets are read together.
func (s *Store) statusOf(
	ctx context.Context, now int64, of []weir.Subject, resolve weir.Resolver,
) ([]weir.LimitStatus, error) {
	resolved := make([]*weir.Resolved, len(of))
	err := atOnce(len(of), func(i int) (err error) {
		resolved[i], err = resolve(ctx, of[i], weir.Usual)
		return err
	})
	if err != nil {
		return nil, err
	}
	spots := make([]*spot, len(of))
	for i, subject := range of {
		spots[i] = s.spots.get(s, subject)
		defer spots[i].release() // once all have been judged
	}
	for _, p := range spots {
		if err := p.flush(ctx, now); err != nil {
			return nil, err
		}
	}
	images, err := s.readBuckets(ctx, now, spots...)
	if err != nil {
		return nil, err
	}
	var all []weir.LimitStatus
	for i, p := range spots {
		if p.count() > len(images[i]) { // it has shards that the process did not know of
			if images[i], err = p.readAll(ctx, now); err != nil {
				return nil, err
			}
		}
		all = append(all, p.status(now, resolved[i], images[i])...)
	}
	return all, nil
}
