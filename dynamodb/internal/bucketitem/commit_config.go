package bucketitem

import (
	"context"
	"slices"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/dynamodb/internal/config"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// firstConfig returns the configuration of the first waiter that holds one; nil if none does.
func (c *commit) firstConfig() *Config {
	for _, m := range c.Waiters {
		if m.Config != nil {
			return m.Config
		}
	}
	return nil
}

// configStale reports whether to read the configuration before writing: a waiter holds definitions
// that differ from the item's, or an update asks for it. Unplanned waiters are sent back as stale
// if the image is not fit to judge them: another writer has changed the item, it lacks a limit, or
// a limit would begin full under a raised capacity. The caller of such a waiter is reading the
// configuration at the same time.
func (c *commit) configStale() bool {
	c.answer(func(m *Waiter) bool {
		return m.unplanned() && (c.refused || !c.image.hasAll(m) || c.image.startsFullFor(m))
	}, Result{Kind: Stale})
	for _, m := range c.Waiters {
		if !c.image.hasAll(m) {
			return true
		}
	}
	return slices.ContainsFunc(c.Updates, func(r *Update) bool { return r.Reread })
}

// readIfStale reads the configuration if it has not been read and is needed, or if an update
// settles units of a limit whose definition has changed since and the item still has another one.
// It reports whether it has read. A settlement does not need the configuration: if the read
// fails, it goes by the item.
func (c *commit) readIfStale(ctx context.Context) (read bool, err error) {
	if c.config != nil {
		return false, nil
	}
	stale := c.configStale() || c.image.configExpired(c.now())
	if !stale && (c.readFailed || !slices.ContainsFunc(c.Updates, c.image.lacksChange)) {
		return false, nil
	}
	err = c.readItemConfig(ctx)
	if c.readFailed = err != nil; stale {
		return true, err
	}
	return true, nil
}

// readItemConfig reads the configuration, consistently. If nothing is stored, the limits that the
// callers brought apply, and without those the limits of the item. A configuration that weir does
// not support fails the reservations, but never the updates.
func (c *commit) readItemConfig(ctx context.Context) error {
	config, err := c.ns.Config.ReadSubject(ctx, c.subject.Subject, true)
	if err != nil {
		return err
	}
	c.owner = ownerOf(config)
	if fault := config.Chargeable(); fault != nil {
		c.answer(func(*Waiter) bool { return true }, Result{Kind: Failed, Err: fault})
		c.config = c.fallbackConfig()
	} else if l := config.Winner(); l != nil {
		c.config = &Config{level: l.Level, Limits: l.Limits}
	} else if c.config = c.broughtConfig(); c.config == nil {
		c.config = c.fallbackConfig()
	}
	return nil
}

// broughtConfig returns the limits that a waiter's request or engine brought; nil if none did.
func (c *commit) broughtConfig() *Config {
	for _, m := range c.Waiters {
		if m.Config != nil && isBrought(m.Config.level) {
			return m.Config
		}
	}
	return nil
}

// isBrought reports whether limits of a level come from the caller, not from the store.
func isBrought(l weir.Level) bool { return l == weir.LevelLimiter || l == weir.LevelRequest }

// fallbackConfig returns the limits to write by if no configuration applies: those of the item or,
// if there is no item, those that the leases of the updates were reserved under.
func (c *commit) fallbackConfig() *Config {
	t := &Config{fallback: true}
	if c.image != nil {
		for i := range c.image.Limits {
			if l := &c.image.Limits[i]; !l.Incomplete {
				t.Limits = append(t.Limits, LimitOf(&l.BucketLimit))
			}
		}
		return t
	}
	for _, r := range c.Updates {
		for _, ch := range r.Deltas {
			if ch.Limit != nil && t.Limit(ch.Name) == nil {
				t.Limits = append(t.Limits, *ch.Limit)
			}
		}
	}
	return t
}

// answerStale sends back the waiters that hold another configuration than the one just read.
func (c *commit) answerStale() {
	c.answer(func(m *Waiter) bool {
		if m.Config != nil && m.Config.level != c.config.level {
			return true
		}
		for k := range m.Takes {
			l := c.config.Limit(m.Takes[k].Name)
			if l == nil || m.Takes[k].Limit != nil && !l.Same(*m.Takes[k].Limit) {
				return true
			}
		}
		return false
	}, Result{Kind: Stale})
}

// rejectUnjudgeable fails the waiters that weir cannot judge, because of attributes of the item or
// of a limit that they take of (ADR 17).
func (c *commit) rejectUnjudgeable() {
	if !c.image.restricted() {
		return
	}
	left := c.Waiters[:0:0]
	for _, m := range c.Waiters {
		if err := c.judgeError(m); err != nil {
			m.deliver(Result{Kind: Failed, Err: err})
			continue
		}
		left = append(left, m)
	}
	c.Waiters = left
}

// judgeError returns the reason why weir cannot judge a waiter by the image; nil if it can.
func (c *commit) judgeError(m *Waiter) error {
	switch it := c.image.Item; {
	case it.Disabled:
		return disabledError(c.subject.Subject)
	case len(it.Unjudged) > 0:
		return config.UnsupportedAttribute(c.subject.id(c.shard).PK(), it.Unjudged[0])
	}
	for k := range m.Takes {
		l := c.image.Limit(m.Takes[k].Name)
		if l != nil && len(l.Unjudged) > 0 {
			attribute := schema.BucketAttribute(l.Name, l.Unjudged[0])
			return config.UnsupportedAttribute(c.subject.id(c.shard).PK(), attribute)
		}
	}
	return nil
}

// dropRereads fails the updates that only bring the item to the configuration, because other
// writers won every round.
func (c *commit) dropRereads() {
	c.endUpdates(func(r *Update) (bool, error) {
		return r.Reread && len(r.Deltas) == 0,
			&weir.Error{Code: weir.Unavailable,
				Reason: "other writers changed the item during every attempt"}
	})
}

// endUpdates takes the selected updates out of the batch and answers them.
func (c *commit) endUpdates(ends func(*Update) (bool, error)) {
	left := c.Updates[:0:0]
	for _, r := range c.Updates {
		if ended, err := ends(r); ended {
			r.finish(err)
			continue
		}
		left = append(left, r)
	}
	c.Updates = left
}

// rejectOverflowing fails the updates that would overflow a balance.
func (c *commit) rejectOverflowing() {
	sums := make(map[string]int64)
	c.endUpdates(func(r *Update) (bool, error) {
		err := c.image.Countable(r, sums)
		return err != nil, err
	})
}

// limitRefunds reduces the refunds of compensations to limits whose capacity another process
// lowered after the units were taken. With a lower capacity C, that process has trimmed the
// balance after the take. The refund is then min(before, C) - min(before-taken, C): what the trim
// would have left more without the take. In full it would fill the bucket again (ADR 23).
//
// It replaces an update by a changed copy, because [Queue.ExpectedImage] reads the updates of the
// commit in progress concurrently.
func (c *commit) limitRefunds() {
	for u, r := range c.Updates {
		copied := false
		for i := range r.Deltas {
			ch := &r.Deltas[i]
			if ch.before == nil {
				continue
			}
			l := c.image.Limit(ch.Name)
			if l == nil || l.Incomplete || l.Capacity >= ch.before.Capacity {
				continue
			}
			if !copied {
				limited := *r
				limited.Deltas = slices.Clone(r.Deltas)
				r, copied = &limited, true
				c.Updates[u] = r
				ch = &r.Deltas[i]
			}
			ceiling := sharding.Share(&l.BucketLimit, c.image.Shards).CapacityMilli
			before, taken := ch.before.BalanceMilli, -ch.Milli
			ch.Milli = min(before-taken, ceiling) - min(before, ceiling)
			ch.before = nil
		}
	}
}

// rememberRemoved adds the limits that the item had before and does not have after, and drops those
// that it has again. Leases may still stand for a removed limit, and it may be configured again. It
// changes and returns removed.
func rememberRemoved(removed map[string]LimitImage, before, after *Image) map[string]LimitImage {
	for name := range removed {
		if after.Limit(name) != nil {
			delete(removed, name)
		}
	}
	if before == nil {
		return removed
	}
	for i := range before.Limits {
		if l := before.Limits[i]; !l.Incomplete && after.Limit(l.Name) == nil {
			if removed == nil {
				removed = make(map[string]LimitImage)
			}
			removed[l.Name] = l
		}
	}
	return removed
}

// itemDeleted forgets the image of an item that was deleted, and remembers its limits as removed.
func (c *commit) itemDeleted() {
	if c.image != nil {
		if c.removedLimits == nil {
			c.removedLimits = make(map[string]LimitImage)
		}
		for i := range c.image.Limits {
			c.removedLimits[c.image.Limits[i].Name] = c.image.Limits[i]
		}
	}
	c.image, c.deleted = nil, false
}

// updateRemoved applies an update to the limits that were removed from the item.
func (c *commit) updateRemoved(r *Update) {
	for _, ch := range r.Deltas {
		g, ok := c.removedLimits[ch.Name]
		if !ok || c.image != nil && c.image.Limit(ch.Name) != nil {
			continue
		}
		g.Touch(r.Now, 1)
		if ch.Milli >= 0 {
			g.BalanceMilli -= ch.Milli
		} else {
			g.refund(-ch.Milli)
		}
		c.removedLimits[ch.Name] = g
	}
}

// disabledError returns the error for a bucket item with the attribute disabled.
func disabledError(of weir.Subject) error {
	return client.Fault(weir.PermissionDenied, "resource", of.Entity+"/"+of.Resource,
		"is disabled on this table")
}
