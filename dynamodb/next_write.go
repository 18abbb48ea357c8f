package dynamodb

import (
	"context"

	"github.com/weir-limiter/weir/internal/schema"
)

// nextWrite decides which write comes next. Nil is none: then somebody was answered, or something was
// read.
func (c *commit) nextWrite(ctx context.Context) (*write, *evaluation, error) {
	switch {
	case c.uncertain:
		return nil, nil, c.readItem(ctx)
	case c.deleted, c.image != nil && c.image.item.Stub:
		return c.nextCreate(ctx)
	case c.image == nil && (c.ns.options.noSpeculation || len(c.updates) > 0 || len(limitNames(c.waiters)) > maxDefined):
		return nil, nil, c.readItem(ctx)
	case c.image == nil:
		return c.writer().coldWrite(sameDefinitionPrefix(c.waiters), c.subject.shardCount(), c.now()), nil, nil
	case c.round > maxUpdateRounds:
		c.dropRereads()
		if !c.pending() {
			return nil, nil, nil
		}
		return c.forced()
	case (c.ns.options.noSpeculation || c.image.restricted()) && !c.imageCurrentFor(c.waiters):
		return nil, nil, c.readItem(ctx) // one that was switched off may be on again
	}
	return c.nextKnown(ctx)
}

// imageCurrentFor reports whether the image is of an instant at which all these members were under way, so
// that who does not fit it is denied.
func (c *commit) imageCurrentFor(members []*waiter) bool {
	for _, m := range members {
		if m.number > c.seenAt {
			return false
		}
	}
	return c.seenAt > 0
}

// readItem reads the item.
func (c *commit) readItem(ctx context.Context) error {
	c.sentAt = c.ns.calls.Load()
	item, err := c.ns.client.GetItem(ctx, c.subject.id(c.shard).Key(), true)
	if err != nil {
		return err
	}
	return c.setImage(ctx, item, nil)
}

// setImage takes in the item as it is now. Of a write that was made, leads is the image that it led
// to.
func (c *commit) setImage(ctx context.Context, item schema.Item, leads *image) error {
	c.uncertain = false
	if item == nil {
		c.image, c.deleted, c.seenAt = nil, true, c.sentAt
		return nil
	}
	b, err := c.subject.parseItem(item)
	if err != nil {
		c.image = nil
		return err
	}
	if leads == nil {
		leads = c.image
	}
	c.image, c.deleted, c.seenAt = newImage(b, leads, c.subject.shardCount(), c.now()), false, c.sentAt
	c.doubleIfBusy(ctx)
	return nil
}

// nextKnown goes by the image.
func (c *commit) nextKnown(ctx context.Context) (*write, *evaluation, error) {
	c.rejectUnjudgeable()
	c.limitRefunds()
	c.rejectOverflowing()
	if len(c.waiters) == 0 && len(c.updates) > 0 && c.image.restricted() { // only counted on
		return c.forced()
	}
	if n := c.subject.shardCount(); n > c.image.shards {
		c.image = newImage(c.image.item, c.image, n, c.now())
	}
	if c.config == nil && (c.configStale() || c.image.configExpired(c.now())) {
		return nil, nil, c.readItemConfig(ctx)
	}
	if c.config != nil {
		c.answerStale()
	}
	if !c.pending() {
		return nil, nil, nil
	}
	base := c.image
	if c.config != nil && !c.config.matches(base) {
		base = base.withConfig(c.config, c.removedLimits)
	}
	r := evaluate(base, c.updates, c.waiters)
	if len(r.denied) > 0 && c.imageCurrentFor(r.denied) {
		if base, r = c.nextDenied(base, r); r == nil {
			return nil, nil, nil
		}
	}
	if len(r.admitted) == 0 && len(c.updates) == 0 { // only the item itself may deny
		if len(r.denied[0].asks) > maxDefined {
			return nil, nil, c.readItem(ctx)
		}
		return c.writer().coldWrite(r.denied[:1], c.subject.shardCount(), c.now()), nil, nil
	}
	if len(r.denied) > 0 { // they are judged by what this write returns
		r = evaluate(base, c.updates, r.admitted)
	}
	if base == c.image && !c.refillRequested() && base.needsNoRefill(r) && (!c.ns.options.noSpeculation || c.round > 1) {
		return c.writer().speculativeWrite(base, r), r, nil
	}
	t := c.config
	if t == nil {
		if t = c.agreedConfig(); t == nil && base.item.TTL != 0 && base.item.TTL <= seconds(r.latest) ||
			t != nil && !t.matches(base) {
			return nil, nil, c.readItemConfig(ctx)
		}
	}
	return c.writer().normalWrite(c.image, r, t), r, nil
}

// nextDenied denies those that are short, and returns what the next write goes by; no reckoning if
// there is none.
func (c *commit) nextDenied(base *image, r *evaluation) (*image, *evaluation) {
	now := c.now()
	c.answerDenied(r)
	if c.pending() {
		return base, r
	}
	adapted := base != c.image && !c.config.fallback
	c.image = c.image.withSeen(r.after)
	if !adapted {
		return base, nil
	}
	// From now on the limits gain under what was read. Only the item can tell that to others.
	c.updates = append(c.updates, &itemUpdate{now: now, reread: true})
	return r.after, evaluate(r.after, c.updates, nil)
}

// refillRequested reports whether a ride asks for the time of the refill to move.
func (c *commit) refillRequested() bool {
	for _, r := range c.updates {
		if r.refill || r.reread {
			return true
		}
	}
	return false
}

// forced returns the write of the updates without a condition.
func (c *commit) forced() (*write, *evaluation, error) {
	r := evaluate(c.image, c.updates, nil)
	return c.writer().forcedWrite(c.image, r), r, nil
}

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
	m := blankImage(c.subject.id(c.shard), c.config, c.owner, max(c.subject.shardCount(), 1), c.removedLimits, c.now())
	if c.image != nil { // a stub
		m.takeOver(c.image, c.now())
	}
	if c.shard > 0 {
		return c.nextShard(ctx, m)
	}
	if err := c.restoreFirstShard(ctx, m); err != nil || c.subject.shardCount() > m.shards {
		return nil, nil, err
	}
	r := evaluate(m, c.updates, c.waiters)
	c.answerDenied(r)
	return c.writer().createWrite(r, c.config, c.image), r, nil
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
	if err != nil || c.subject.shardCount() > m.shards { // then the shares are smaller
		return nil, nil, err
	}
	if !found {
		c.redirectWaiters(m)
	}
	if !c.pending() {
		return nil, nil, nil
	}
	r := evaluate(m, c.updates, c.waiters)
	w := c.writer().createWrite(r, c.config, c.image)
	w.donorUpdate = half
	return w, r, nil
}
