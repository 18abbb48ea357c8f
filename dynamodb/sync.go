package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
)

// backgroundContext bounds what the store does by itself, whether or not the caller waits for it.
func (s *bucketStore) backgroundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.options.writeTimeout)
}

// syncBuckets brings the bucket items of a subject that are there to the configuration, read anew.
func (s *bucketStore) syncBuckets(ctx context.Context, now int64, of weir.Subject) error {
	p := s.subject(of)
	defer p.release()
	images, err := p.readAll(ctx, now)
	if err != nil {
		return err
	}
	for shard, m := range images {
		if m == nil {
			continue
		}
		done := make(chan error, 1)
		p.queue(shard).enqueue(nil, &itemUpdate{now: now, reread: true, done: func(err error) { done <- err }})
		select {
		case err := <-done:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return client.AbandonedError(ctx)
		}
	}
	return nil
}
