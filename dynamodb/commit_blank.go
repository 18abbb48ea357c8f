package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir/internal/schema"
)

// nextCreate makes the item, for those who know its configuration.
func (c *commit) nextCreate(ctx context.Context) (*write, *evaluation, error) {
	if c.deleted {
		c.dropUnneededUpdates()
	}
	c.answer(func(m *waiter) bool { return m.unplanned() }, waiterResult{kind: missing})
	if !c.pending() {
		return nil, nil, nil
	}
	if err := c.readItemConfig(ctx); err != nil {
		return nil, nil, err
	}
	c.answerStale()
	if !c.pending() {
		return nil, nil, nil
	}
	m := c.blankImage(c.config, c.owner, c.now())
	if c.shard > 0 {
		return c.nextShard(ctx, m)
	}
	if err := c.restoreFirstShard(ctx, m); err != nil || c.state.shardCount() > m.shards {
		return nil, nil, err
	}
	r := evaluate(m, c.updates, c.waiters)
	c.answerDenied(r)
	return c.createWrite(r, c.config), r, nil
}

// nextShard makes a shard with half of what another one has. Reservations that find that others are
// quicker, or that there is no other one yet, go on elsewhere; what is never denied begins an empty
// shard in the end.
func (c *commit) nextShard(ctx context.Context, m *image) (*write, *evaluation, error) {
	if c.round > 1 {
		c.redirectWaiters(m)
	}
	if !c.pending() {
		return nil, nil, nil
	}
	half, found, err := c.splitShard(ctx, m)
	if err != nil || c.state.shardCount() > m.shards { // then the shares are smaller
		return nil, nil, err
	}
	if !found {
		c.redirectWaiters(m)
	}
	if !c.pending() {
		return nil, nil, nil
	}
	r := evaluate(m, c.updates, c.waiters)
	w := c.createWrite(r, c.config)
	w.donorUpdate = half
	return w, r, nil
}

// redirectWaiters sends reservations on to other shards, as this one is not made.
func (c *commit) redirectWaiters(m *image) {
	r := evaluate(m, nil, c.waiters)
	r.denied, r.deniedResults = append(r.denied, r.admitted...), append(r.deniedResults, r.admittedResults...)
	for i := range r.deniedResults {
		r.deniedResults[i].kind = denied
	}
	c.answerDenied(r)
}

// dropUnneededUpdates ends the rides for which no item is made: those that only give back, because an item
// that is not there is full, and all of them if the namespace was deleted, because then a purge has
// removed the item and no other may remove a new one.
func (c *commit) dropUnneededUpdates() {
	purged := c.store.gone.Load()
	c.endUpdates(func(r *itemUpdate) (bool, error) { return purged || r.refundsOnly(), nil })
}

// restoreFirstShard gives a first shard that is made anew all that no other one has or can come to have.
func (c *commit) restoreFirstShard(ctx context.Context, blank *image) error {
	if blank.shards == 1 {
		return nil
	}
	images, err := c.state.readAll(ctx, c.now())
	if err != nil || len(images) > blank.shards {
		return err
	}
	for i := range blank.limits {
		l := &blank.limits[i]
		if _, ghost := c.removedLimits[l.Name]; !ghost {
			l.balance += firstShare(&l.BucketLimit, images) - l.rate.CapacityMilli
			if l.balance < l.rate.CapacityMilli {
				l.seen = c.now()
			}
		}
	}
	return nil
}

// firstShare is what a first shard that is not there has when it is made: the whole, less the share
// of each other one that is there, or can be made of one that is.
func firstShare(l *schema.BucketLimit, images []*image) int64 {
	left := l.Capacity
	share := shareOf(l, len(images)).CapacityMilli
	for shard := 1; shard < len(images); shard++ {
		for of := shard; of > 0; of = parentShard(of) {
			if images[of] != nil {
				left -= share
				break
			}
		}
	}
	return left
}
