package bucketitem

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir/internal/schema"
)

// nextWrite decides which write comes next. It returns no write if it has answered a waiter or read
// something instead; the caller then calls it again.
func (c *commit) nextWrite(ctx context.Context) (*Write, *Evaluation, error) {
	switch {
	case c.uncertain:
		return nil, nil, c.readItem(ctx)
	case c.deleted, c.image != nil && c.image.Item.Stub:
		return c.nextCreate(ctx)
	case c.image == nil && (c.ns.Options.NoSpeculation || len(c.Updates) > 0 ||
		len(limitNames(c.Waiters)) > maxDefined):
		return nil, nil, c.readItem(ctx)
	case c.image == nil:
		return c.writer().coldWrite(sameDefinitionPrefix(c.Waiters), c.subject.ShardCount(), c.now()), nil, nil
	case c.round > maxUpdateRounds:
		c.dropRereads()
		if !c.pending() {
			return nil, nil, nil
		}
		return c.forced()
	case (c.ns.Options.NoSpeculation || c.image.restricted()) && !c.imageCurrentFor(c.Waiters):
		return nil, nil, c.readItem(ctx) // a disabled item may have been enabled
	}
	return c.nextKnown(ctx)
}

// imageCurrentFor reports whether the image was taken after all these reservations had begun. Only
// then may it deny them: an older image may lack units that were refunded before the reservation
// began.
func (c *commit) imageCurrentFor(waiters []*Waiter) bool {
	for _, m := range waiters {
		if m.Number > c.seenAt {
			return false
		}
	}
	return c.seenAt > 0
}

// readItem reads the item, consistently.
func (c *commit) readItem(ctx context.Context) error {
	c.sentAt = c.ns.Calls.Load()
	item, err := c.ns.Client.GetItem(ctx, c.subject.id(c.shard).Key(), true)
	if err != nil {
		return err
	}
	return c.setImage(ctx, item, nil)
}

// setImage makes the image of an item that a call has returned; item is nil if the item does not
// exist. after is the image that an applied write was to lead to; nil after a read or a refused
// write.
func (c *commit) setImage(ctx context.Context, item schema.Item, after *Image) error {
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
	if after == nil {
		after = c.image
	}
	c.image, c.deleted, c.seenAt = newImage(b, after, c.subject.ShardCount(), c.now()), false, c.sentAt
	c.doubleIfBusy(ctx)
	if now := c.now(); c.image.indebted(now) {
		own := slices.ContainsFunc(c.Updates, func(r *Update) bool { return !r.refundsOnly() })
		c.later.level(levelWork{now: now, debt: true, own: own})
	}
	return nil
}

// nextKnown decides which write comes next if the image is known.
func (c *commit) nextKnown(ctx context.Context) (*Write, *Evaluation, error) {
	c.rejectUnjudgeable()
	c.limitRefunds()
	c.rejectOverflowing()
	// An item that weir does not support still takes charges and refunds of leases (ADR 17).
	if len(c.Waiters) == 0 && len(c.Updates) > 0 && c.image.restricted() {
		return c.forced()
	}
	// Another item has shown a higher shard count: judge by the smaller shares.
	if n := c.subject.ShardCount(); n > c.image.Shards {
		c.image = newImage(c.image.Item, c.image, n, c.now())
	}
	if read, err := c.readIfStale(ctx); read {
		return nil, nil, err
	}
	if c.config != nil {
		c.answerStale()
	}
	if !c.pending() {
		return nil, nil, nil
	}
	// Evaluate with the limits of the configuration, so that the write brings the item to them.
	base := c.image
	if c.config != nil && !c.config.matches(base) {
		base = base.WithConfig(c.config, c.removedLimits)
	}
	r := evaluate(base, c.Updates, c.Waiters)
	if len(r.denied) > 0 && c.imageCurrentFor(r.denied) {
		if base, r = c.nextDenied(base, r); r == nil {
			return nil, nil, nil
		}
	}
	if len(r.admitted) == 0 && len(c.Updates) == 0 { // the image is too old to deny: ask the item
		if len(r.denied[0].Takes) > maxDefined {
			return nil, nil, c.readItem(ctx)
		}
		return c.writer().coldWrite(r.denied[:1], c.subject.ShardCount(), c.now()), nil, nil
	}
	if len(r.denied) > 0 { // they are judged again by the item that this write returns
		r = evaluate(base, c.Updates, r.admitted)
	}
	// Without speculation, the first write after the read is a normal one. After a refusal a write
	// without a refill is as in ADR-115: it does not compete for rf.
	if base == c.image && !c.refillRequested() && base.needsNoRefill(r) &&
		(!c.ns.Options.NoSpeculation || c.refused) {
		return c.writer().speculativeWrite(base, r), r, nil
	}
	// A normal write sets the limits and the ttl of the item. It needs the configuration if the ttl
	// has passed, and it writes definitions only after a consistent read of them (ADR 23).
	t := c.config
	if t == nil {
		if t = c.firstConfig(); t == nil && base.Item.TTL != 0 && base.Item.TTL <= seconds(r.latest) ||
			t != nil && !t.matches(base) {
			return nil, nil, c.readItemConfig(ctx)
		}
	}
	return c.writer().normalWrite(c.image, r, t), r, nil
}

// nextDenied denies the waiters that do not fit. It returns the image and the evaluation of the
// next write; the evaluation is nil if there is nothing to write.
func (c *commit) nextDenied(base *Image, r *Evaluation) (*Image, *Evaluation) {
	now := c.now()
	deliver := c.removeDenied(r)
	defer deliver() // after the image is up to date, because deliver publishes it
	if c.pending() {
		return base, r
	}
	adapted := base != c.image && !c.config.fallback
	c.image = c.image.withSeen(r.After)
	if !adapted {
		return base, nil
	}
	// The item's definitions differ from the configuration. A denial writes nothing, so without
	// this write the limits would go on to gain under the old definitions (ADR 23).
	c.Updates = append(c.Updates, &Update{Now: now, Reread: true})
	return r.After, evaluate(r.After, c.Updates, nil)
}

// refillRequested reports whether an update asks for a write that moves the time of the refill.
func (c *commit) refillRequested() bool {
	for _, r := range c.Updates {
		if r.Refill || r.Reread {
			return true
		}
	}
	return false
}

// forced returns the write of the updates without a condition.
func (c *commit) forced() (*Write, *Evaluation, error) {
	r := evaluate(c.image, c.Updates, nil)
	return c.writer().forcedWrite(c.image, r), r, nil
}

// nextCreate returns the write that creates the item. It first reads the configuration. Waiters
// without a configuration are sent back, and updates that need no item are ended.
func (c *commit) nextCreate(ctx context.Context) (*Write, *Evaluation, error) {
	if c.deleted {
		c.dropUnneededUpdates()
	}
	c.answer(func(m *Waiter) bool { return m.unplanned() }, Result{Kind: NoItem})
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
	if found, err := c.takeOldItem(ctx); found || err != nil {
		return nil, nil, err
	}
	m := c.blankImage(c.config, c.owner, c.now())
	if c.image != nil { // a stub: units were counted on an item that was gone
		m.takeOver(c.image, c.now())
	}
	if c.shard > 0 {
		return c.nextShard(ctx, m)
	}
	if err := c.restoreFirstShard(ctx, m); err != nil || c.subject.ShardCount() > m.Shards {
		return nil, nil, err
	}
	r := evaluate(m, c.Updates, c.Waiters)
	c.answerDenied(r)
	return c.writer().createWrite(r, c.config, c.image), r, nil
}

// nextShard returns the write that creates a shard with half of another one. Reservations are
// redirected to other shards if other writers were faster, or if no other shard exists yet.
// Updates, which are never denied, create an empty shard in the end.
func (c *commit) nextShard(ctx context.Context, m *Image) (*Write, *Evaluation, error) {
	if c.round > 1 {
		c.redirectWaiters(m)
	}
	if !c.pending() {
		return nil, nil, nil
	}
	half, found, err := c.splitShard(ctx, m)
	if err != nil || c.subject.ShardCount() > m.Shards { // with more shards the shares are smaller
		return nil, nil, err
	}
	if !found {
		c.redirectWaiters(m)
	}
	if !c.pending() {
		return nil, nil, nil
	}
	r := evaluate(m, c.Updates, c.Waiters)
	w := c.writer().createWrite(r, c.config, c.image)
	w.donorUpdate = half
	return w, r, nil
}
