package dynamodb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/kernel"
	"github.com/weir-limiter/weir/internal/schema"
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
func (p *subjectState) status(now int64, r *weir.Judged, images []*image) []weir.LimitStatus {
	of := p.subject
	t := &itemConfig{level: r.Level, limits: r.Limits}
	for shard, m := range images {
		if m != nil {
			images[shard] = m.withConfig(t, p.queue(shard).removed())
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

// removed are the limits that were removed from the item, as they were.
func (l *itemQueue) removed() map[string]limitImage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.publishedRemoved
}

// flush waits until what is in the lines of a subject has been written.
func (p *subjectState) flush(ctx context.Context, now int64) error {
	p.mu.Lock()
	lines := make([]*itemQueue, 0, len(p.queues))
	for _, l := range p.queues {
		lines = append(lines, l)
	}
	p.mu.Unlock()
	for _, l := range lines {
		if !l.busy() {
			continue
		}
		done := make(chan struct{})
		l.enqueue(nil, &itemUpdate{now: now, done: func(error) { close(done) }})
		select {
		case <-done: // whatever became of it, nothing is in the line any more
		case <-ctx.Done():
			return client.AbandonedError(ctx)
		}
	}
	return nil
}

func (l *itemQueue) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// subjectsInUse keeps of bucket items the subjects of which something is in use: some limit is not full.
func (s *bucketStore) subjectsInUse(
	ctx context.Context, now time.Time, ids []schema.BucketID,
) (map[weir.Subject]bool, error) {
	keys := make([]schema.Key, len(ids))
	for i, id := range ids {
		p := s.subject(weir.Subject{Entity: id.Entity, Resource: id.Resource})
		err := p.flush(ctx, now.UnixMilli())
		p.release()
		if err != nil {
			return nil, err
		}
		keys[i] = id.Key()
	}
	items, err := s.client.BatchGet(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	found := make(map[weir.Subject]bool)
	for i, item := range items {
		if item == nil {
			continue
		}
		b, err := schema.ParseBucket(item)
		if err != nil {
			return nil, client.Unreadable(err)
		}
		of := weir.Subject{Entity: b.Entity, Resource: b.Resource}
		p := s.subject(of)
		l := p.queue(ids[i].Shard)
		m := newImage(b, l.lastImage(), p.shardCount(), now.UnixMilli())
		p.release()
		if m.inUse(now.UnixMilli()) {
			found[of] = true
		}
	}
	return found, nil
}

// inUse reports whether some limit is not full, by the definition that it was last used under.
func (m *image) inUse(now int64) bool {
	for i := range m.limits {
		c := &m.limits[i]
		if !c.Incomplete && c.balanceAt(max(now, c.seen)) < c.rate.CapacityMilli {
			return true
		}
	}
	return false
}

// removedInUse are the subjects on which limits are in use that were taken off the item, or deleted with
// it.
func (s *bucketStore) removedInUse(now time.Time) map[weir.Subject]bool {
	found := make(map[weir.Subject]bool)
	s.subjects.forEach(func(p *subjectState) {
		p.mu.Lock()
		lines := slices.Collect(maps.Values(p.queues))
		p.mu.Unlock()
		for _, l := range lines {
			m := &image{shards: 1}
			for _, ghost := range l.removed() {
				m.limits = append(m.limits, ghost)
			}
			if m.inUse(now.UnixMilli()) {
				found[p.subject] = true
			}
		}
	})
	return found
}
