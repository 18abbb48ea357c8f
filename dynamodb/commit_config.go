package dynamodb

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
)

// agreedConfig are the terms by what the members know; nil where none of them knows all.
func (c *commit) agreedConfig() *itemConfig {
	for _, m := range c.waiters {
		if m.resolved != nil {
			return newItemConfig(m.resolved)
		}
	}
	return nil
}

// configStale reports whether the configuration must be read before anything is written: a member knows
// another one than the item has, or a ride asks for it. It sends back the blind members that the
// image must not judge: their configuration is being read.
func (c *commit) configStale() bool {
	c.answer(func(m *waiter) bool {
		return m.unplanned() && (c.refused || !c.image.hasAll(m) || c.image.startsFullFor(m))
	}, waiterResult{kind: stale})
	for _, m := range c.waiters {
		if !c.image.hasAll(m) {
			return true
		}
	}
	return slices.ContainsFunc(c.updates, func(r *itemUpdate) bool { return r.reread })
}

// readItemConfig reads the configuration, consistently. Where nothing is stored, what the callers
// brought themselves counts, and without any what the item has. What must not be judged by ends
// reservations; settlements never fail for it.
func (c *commit) readItemConfig(ctx context.Context) error {
	config, err := c.ns.config.ReadSubject(ctx, c.subject.subject, true)
	if err != nil {
		return err
	}
	c.owner = ownerOf(config)
	if fault := config.Chargeable(); fault != nil {
		c.answer(func(*waiter) bool { return true }, waiterResult{kind: failed, err: fault})
		c.config = c.fallbackConfig()
	} else if l := config.Winner(); l != nil {
		c.config = &itemConfig{level: l.Level, limits: l.Limits}
	} else if c.config = c.broughtConfig(); c.config == nil {
		c.config = c.fallbackConfig()
	}
	return nil
}

// broughtConfig are the terms that a member brought itself; nil if none did.
func (c *commit) broughtConfig() *itemConfig {
	for _, m := range c.waiters {
		if m.resolved != nil && isBrought(m.resolved.Level) {
			return newItemConfig(m.resolved)
		}
	}
	return nil
}

// isBrought reports whether limits of a level are stored nowhere.
func isBrought(l weir.Level) bool { return l == weir.LevelLimiter || l == weir.LevelRequest }

// fallbackConfig are the terms where none can be had: the limits that the item has, or, where there is no
// item, those that leases were reserved under.
func (c *commit) fallbackConfig() *itemConfig {
	t := &itemConfig{fallback: true}
	if c.image != nil {
		for i := range c.image.limits {
			if l := &c.image.limits[i]; !l.Incomplete {
				t.limits = append(t.limits, limitOf(&l.BucketLimit))
			}
		}
		return t
	}
	for _, r := range c.updates {
		for _, ch := range r.deltas {
			if ch.limit != nil && t.limit(ch.name) == nil {
				t.limits = append(t.limits, *ch.limit)
			}
		}
	}
	return t
}

// answerStale sends those back who were judged by another configuration than the one just read.
func (c *commit) answerStale() {
	c.answer(func(m *waiter) bool {
		if m.resolved != nil && m.resolved.Level != c.config.level {
			return true
		}
		for k := range m.asks {
			l := c.config.limit(m.asks[k].name)
			if l == nil || m.asks[k].limit != nil && !l.Same(*m.asks[k].limit) {
				return true
			}
		}
		return false
	}, waiterResult{kind: stale})
}

// rejectUnjudgeable answers the members whose item, or whose limits on it, weir cannot judge.
func (c *commit) rejectUnjudgeable() {
	if !c.image.restricted() {
		return
	}
	left := c.waiters[:0:0]
	for _, m := range c.waiters {
		if err := c.judgeError(m); err != nil {
			m.deliver(waiterResult{kind: failed, err: err})
			continue
		}
		left = append(left, m)
	}
	c.waiters = left
}

// judgeError says why weir must not judge a member by the image; nil if it may.
func (c *commit) judgeError(m *waiter) error {
	switch it := c.image.item; {
	case it.Disabled:
		return disabledError(c.subject.subject)
	case len(it.Unjudged) > 0:
		return config.UnsupportedAttribute(c.subject.id(c.shard).PK(), it.Unjudged[0])
	}
	for k := range m.asks {
		l := c.image.limit(m.asks[k].name)
		if l != nil && len(l.Unjudged) > 0 {
			return config.UnsupportedAttribute(c.subject.id(c.shard).PK(), schema.BucketAttribute(l.Name, l.Unjudged[0]))
		}
	}
	return nil
}

// dropRereads ends the rides that were to bring the item to the configuration, where other writers
// were quicker each time.
func (c *commit) dropRereads() {
	c.endUpdates(func(r *itemUpdate) (bool, error) {
		return r.reread && len(r.deltas) == 0,
			&weir.Error{Code: weir.Unavailable, Reason: "other writers were quicker each time"}
	})
}

// endUpdates takes rides out, and tells each with what it ended.
func (c *commit) endUpdates(ends func(*itemUpdate) (bool, error)) {
	left := c.updates[:0:0]
	for _, r := range c.updates {
		if ended, err := ends(r); ended {
			r.finish(err)
			continue
		}
		left = append(left, r)
	}
	c.updates = left
}

// rejectOverflowing ends the rides that a balance cannot count.
func (c *commit) rejectOverflowing() {
	sums := make(map[string]int64)
	c.endUpdates(func(r *itemUpdate) (bool, error) {
		err := c.image.countable(r, sums)
		return err != nil, err
	})
}

// limitRefunds limits what is given back to limits that another process has redefined since that
// was taken. If it lowered the capacity, it has trimmed the balance without what was taken: to
// give back all of that would fill the bucket again.
func (c *commit) limitRefunds() {
	for _, r := range c.updates {
		for i := range r.deltas {
			ch := &r.deltas[i]
			if ch.before == nil {
				continue
			}
			l := c.image.limit(ch.name)
			if l == nil || l.Incomplete || l.sameDefinition(&ch.before.BucketLimit) {
				continue
			}
			ceiling := shareOf(&l.BucketLimit, c.image.shards).CapacityMilli
			before, taken := ch.before.balance, -ch.milli
			ch.milli = min(before-taken, ceiling) - min(before, ceiling)
			ch.before = nil
		}
	}
}

// rememberRemoved remembers limits that were just removed from the item, for leases that still stand for them
// and in case they come back, and forgets those that did.
func rememberRemoved(ghosts map[string]limitImage, before, after *image) map[string]limitImage {
	for name := range ghosts {
		if after.limit(name) != nil {
			delete(ghosts, name)
		}
	}
	if before == nil {
		return ghosts
	}
	for i := range before.limits {
		if l := before.limits[i]; !l.Incomplete && after.limit(l.Name) == nil {
			if ghosts == nil {
				ghosts = make(map[string]limitImage)
			}
			ghosts[l.Name] = l
		}
	}
	return ghosts
}

// itemDeleted forgets the item, which was deleted, and remembers its limits.
func (c *commit) itemDeleted() {
	if c.image != nil {
		if c.removedLimits == nil {
			c.removedLimits = make(map[string]limitImage)
		}
		for i := range c.image.limits {
			c.removedLimits[c.image.limits[i].Name] = c.image.limits[i]
		}
	}
	c.image, c.deleted = nil, false
}

// updateRemoved settles what is left of a ride with the limits that were removed.
func (c *commit) updateRemoved(r *itemUpdate) {
	for _, ch := range r.deltas {
		g, ok := c.removedLimits[ch.name]
		if !ok || c.image != nil && c.image.limit(ch.name) != nil {
			continue
		}
		g.touch(r.now, 1)
		if ch.milli >= 0 {
			g.balance -= ch.milli
		} else {
			g.refund(-ch.milli)
		}
		c.removedLimits[ch.name] = g
	}
}

// disabledError says that somebody has disabled a bucket on the table.
func disabledError(of weir.Subject) error {
	return client.Fault(weir.PermissionDenied, "resource", of.Entity+"/"+of.Resource,
		"is switched off on this table")
}
