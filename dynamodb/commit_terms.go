package dynamodb

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// agreed are the terms by what the members know; nil where none of them knows all.
func (c *commit) agreed() *terms {
	for _, m := range c.members {
		if m.resolved != nil {
			return &terms{level: m.resolved.Level, limits: m.resolved.Limits}
		}
	}
	return nil
}

// differs reports whether the configuration must be read before anything is written: a member knows
// another one than the item has, or a ride asks for it. It sends back the blind members that the
// image must not judge: their configuration is being read.
func (c *commit) differs() bool {
	c.answer(func(m *member) bool {
		return m.blind() && (c.refused || !c.image.has(m) || c.image.forgets(m))
	}, verdict{ruling: stale})
	for _, m := range c.members {
		if !c.image.has(m) {
			return true
		}
	}
	return slices.ContainsFunc(c.rides, func(r *ride) bool { return r.reread })
}

// readTerms reads the configuration, consistently. Where nothing is stored, what the callers
// brought themselves counts, and without any what the item has. What must not be judged by ends
// reservations; settlements never fail for it.
func (c *commit) readTerms(ctx context.Context) error {
	config, err := c.store.readSubject(ctx, c.spot.subject, true)
	if err != nil {
		return err
	}
	c.owner = ownerOf(config)
	if fault := config.chargeable(); fault != nil {
		c.answer(func(*member) bool { return true }, verdict{ruling: failed, err: fault})
		c.read = c.standing()
	} else if l := config.winner(); l != nil {
		c.read = &terms{level: l.level, limits: l.limits}
	} else if c.read = c.own(); c.read == nil {
		c.read = c.standing()
	}
	return nil
}

// forgets reports whether a limit that a member asks of is as one that nobody has used. Under a
// raised capacity it would begin full, which could not be told any more once it had been charged.
func (m *image) forgets(of *member) bool {
	for k := range of.asks {
		if c := m.limit(of.asks[k].name); c.idle(max(of.now, c.seen)) {
			return true
		}
	}
	return false
}

// own are the terms that a member brought itself; nil if none did.
func (c *commit) own() *terms {
	for _, m := range c.members {
		if m.resolved != nil && ownLevel(m.resolved.Level) {
			return &terms{level: m.resolved.Level, limits: m.resolved.Limits}
		}
	}
	return nil
}

// ownLevel reports whether limits of a level are stored nowhere.
func ownLevel(l weir.Level) bool { return l == weir.LevelLimiter || l == weir.LevelRequest }

// standing are the terms where none can be had: the limits that the item has, or, where there is no
// item, those that leases were reserved under.
func (c *commit) standing() *terms {
	t := &terms{standing: true}
	if c.image != nil {
		for i := range c.image.limits {
			if l := &c.image.limits[i]; !l.Incomplete {
				t.limits = append(t.limits, limitOf(&l.BucketLimit))
			}
		}
		return t
	}
	for _, r := range c.rides {
		for _, ch := range r.changes {
			if ch.limit != nil && t.limit(ch.name) == nil {
				t.limits = append(t.limits, *ch.limit)
			}
		}
	}
	return t
}

// answerStale sends those back who were judged by another configuration than the one just read.
func (c *commit) answerStale() {
	c.answer(func(m *member) bool {
		if m.resolved != nil && m.resolved.Level != c.read.level {
			return true
		}
		for k := range m.asks {
			l := c.read.limit(m.asks[k].name)
			if l == nil || m.asks[k].limit != nil && !l.Same(*m.asks[k].limit) {
				return true
			}
		}
		return false
	}, verdict{ruling: stale})
}

// restricted reports whether something about the item keeps weir from judging by it.
func (m *image) restricted() bool {
	return m.item.Disabled || len(m.item.Unjudged) > 0 ||
		slices.ContainsFunc(m.limits, func(c counter) bool { return len(c.Unjudged) > 0 })
}

// lapsed reports whether what the item says was to hold no longer than now: then the configuration
// must be read (ADR 17).
func (m *image) lapsed(now int64) bool {
	return m.item.ValidUntil != nil && *m.item.ValidUntil <= now
}

// refuse answers the members whose item, or whose limits on it, weir cannot judge.
func (c *commit) refuse() {
	if !c.image.restricted() {
		return
	}
	left := c.members[:0:0]
	for _, m := range c.members {
		if err := c.objection(m); err != nil {
			m.tell(verdict{ruling: failed, err: err})
			continue
		}
		left = append(left, m)
	}
	c.members = left
}

// objection says why weir must not judge a member by the image; nil if it may.
func (c *commit) objection(m *member) error {
	switch it := c.image.item; {
	case it.Disabled:
		return switchedOff(c.spot.subject)
	case len(it.Unjudged) > 0:
		return unjudged(c.id().PK(), it.Unjudged[0])
	}
	for k := range m.asks {
		l := c.image.limit(m.asks[k].name)
		if l != nil && len(l.Unjudged) > 0 {
			return unjudged(c.id().PK(), schema.BucketAttribute(l.Name, l.Unjudged[0]))
		}
	}
	return nil
}

// dropRereads ends the rides that were to bring the item to the configuration, where other writers
// were quicker each time.
func (c *commit) dropRereads() {
	c.endRides(func(r *ride) (bool, error) {
		return r.reread && len(r.changes) == 0,
			&weir.Error{Code: weir.Unavailable, Reason: "other writers were quicker each time"}
	})
}

// endRides takes rides out, and tells each with what it ended.
func (c *commit) endRides(ends func(*ride) (bool, error)) {
	left := c.rides[:0:0]
	for _, r := range c.rides {
		if ended, err := ends(r); ended {
			r.finish(err)
			continue
		}
		left = append(left, r)
	}
	c.rides = left
}

// refuseRides ends the rides that a balance cannot count.
func (c *commit) refuseRides() {
	sums := make(map[string]int64)
	c.endRides(func(r *ride) (bool, error) {
		err := c.image.countable(r, sums)
		return err != nil, err
	})
}

// limitRefunds limits what is given back to limits that another process has redefined since that
// was taken. If it lowered the capacity, it has trimmed the balance without what was taken: to
// give back all of that would fill the bucket again.
func (c *commit) limitRefunds() {
	for _, r := range c.rides {
		for i := range r.changes {
			ch := &r.changes[i]
			if ch.from == nil {
				continue
			}
			l := c.image.limit(ch.name)
			if l == nil || l.Incomplete || l.defined(&ch.from.BucketLimit) {
				continue
			}
			ceiling := shareOf(&l.BucketLimit, c.image.shards).CapacityMilli
			before, taken := ch.from.balance, -ch.milli
			ch.milli = min(before-taken, ceiling) - min(before, ceiling)
			ch.from = nil
		}
	}
}

func (m *image) countable(r *ride, sums map[string]int64) error {
	for _, ch := range r.changes {
		if l := m.limit(ch.name); l != nil && ch.milli > 0 &&
			(sums[ch.name] > math.MaxInt64-ch.milli || min(l.Balance, l.balance) < math.MinInt64+sums[ch.name]+ch.milli) {
			return fault(weir.Invalid, "totals."+ch.name, strconv.FormatInt(ch.milli/1000, 10),
				"is more than can be counted")
		}
	}
	for _, ch := range r.changes {
		if ch.milli > 0 {
			sums[ch.name] += ch.milli
		}
	}
	return nil
}

// bury remembers limits that were just removed from the item, for leases that still stand for them
// and in case they come back, and forgets those that did.
func bury(ghosts map[string]counter, before, after *image) map[string]counter {
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
				ghosts = make(map[string]counter)
			}
			ghosts[l.Name] = l
		}
	}
	return ghosts
}

// lose forgets the item, which was deleted, and remembers its limits.
func (c *commit) lose() {
	if c.image != nil {
		if c.ghosts == nil {
			c.ghosts = make(map[string]counter)
		}
		for i := range c.image.limits {
			c.ghosts[c.image.limits[i].Name] = c.image.limits[i]
		}
	}
	c.image, c.gone = nil, false
}

// haunt settles what is left of a ride with the limits that were removed.
func (c *commit) haunt(r *ride) {
	for _, ch := range r.changes {
		g, ok := c.ghosts[ch.name]
		if !ok || c.image != nil && c.image.limit(ch.name) != nil {
			continue
		}
		g.touch(r.now, 1)
		if ch.milli >= 0 {
			g.balance -= ch.milli
		} else {
			g.give(-ch.milli)
		}
		c.ghosts[ch.name] = g
	}
}

// switchedOff says that somebody has disabled a bucket on the table.
func switchedOff(of weir.Subject) error {
	return fault(weir.PermissionDenied, "resource", of.Entity+"/"+of.Resource,
		"is switched off on this table")
}
