package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir/internal/schema"
)

// nextBlank makes the item, for those who know its configuration.
func (c *commit) nextBlank(ctx context.Context) (*write, *reckoning, error) {
	if c.gone {
		c.dropNeedless()
	}
	c.answer(func(m *member) bool { return m.blind() }, verdict{ruling: missing})
	if !c.pending() {
		return nil, nil, nil
	}
	if err := c.readTerms(ctx); err != nil {
		return nil, nil, err
	}
	c.answerStale()
	if !c.pending() {
		return nil, nil, nil
	}
	m := c.blank(c.read, c.owner, c.now())
	if c.shard > 0 {
		return c.nextShard(ctx, m)
	}
	if err := c.gather(ctx, m); err != nil || c.spot.count() > m.shards {
		return nil, nil, err
	}
	r := reckon(m, c.rides, c.members)
	c.deny(r)
	return c.create(r, c.read), r, nil
}

// nextShard makes a shard with half of what another one has. Reservations that find that others are
// quicker, or that there is no other one yet, go on elsewhere; what is never denied begins an empty
// shard in the end.
func (c *commit) nextShard(ctx context.Context, m *image) (*write, *reckoning, error) {
	if c.round > 1 {
		c.turnAway(m)
	}
	if !c.pending() {
		return nil, nil, nil
	}
	half, found, err := c.halve(ctx, m)
	if err != nil || c.spot.count() > m.shards { // then the shares are smaller
		return nil, nil, err
	}
	if !found {
		c.turnAway(m)
	}
	if !c.pending() {
		return nil, nil, nil
	}
	r := reckon(m, c.rides, c.members)
	w := c.create(r, c.read)
	w.beside = half
	return w, r, nil
}

// turnAway sends reservations on to other shards, as this one is not made.
func (c *commit) turnAway(m *image) {
	r := reckon(m, nil, c.members)
	r.short, r.lacking = append(r.short, r.fits...), append(r.lacking, r.fitting...)
	for i := range r.lacking {
		r.lacking[i].ruling = denied
	}
	c.deny(r)
}

// dropNeedless ends the rides for which no item is made: those that only give back, because an item
// that is not there is full, and all of them if the namespace was deleted, because then a purge has
// removed the item and no other may remove a new one.
func (c *commit) dropNeedless() {
	purged := c.store.gone.Load()
	c.endRides(func(r *ride) (bool, error) { return purged || r.refunds(), nil })
}

// gather gives a first shard that is made anew all that no other one has or can come to have.
func (c *commit) gather(ctx context.Context, blank *image) error {
	if blank.shards == 1 {
		return nil
	}
	images, err := c.spot.readAll(ctx, c.now())
	if err != nil || len(images) > blank.shards {
		return err
	}
	for i := range blank.limits {
		l := &blank.limits[i]
		if _, ghost := c.ghosts[l.Name]; !ghost {
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
		for of := shard; of > 0; of = splitFrom(of) {
			if images[of] != nil {
				left -= share
				break
			}
		}
	}
	return left
}
