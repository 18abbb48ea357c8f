package dynamodb

import (
	"math"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
)

// image is a bucket item as this process knows it: what was stored when it was last seen, and what
// that comes to. The two differ where the process knows more than the item can say, such as when a
// limit was last asked. It belongs to one line and is replaced, never shared.
type image struct {
	item   *schema.Bucket // as stored; not changed
	shards int            // the larger of the item's count and the known one
	limits []limitImage   // as item.Limits
}

// newImage makes an image of what was just read, at now. The image before, or the one that a write was
// to lead to, tells what the item cannot say, as far as nobody else has written meanwhile.
func newImage(b *schema.Bucket, before *image, shards int, now int64) *image {
	m := &image{item: b, shards: max(b.Shards, shards), limits: make([]limitImage, len(b.Limits))}
	for i := range b.Limits {
		l := &b.Limits[i]
		m.limits[i] = newCounter(*l, b.RefilledMS, m.shards)
		if before != nil {
			m.limits[i].inherit(before, m, now)
		}
	}
	return m
}

// inherit takes over what the image before knows of a limit.
func (c *limitImage) inherit(before, m *image, now int64) {
	was := before.limit(c.Name)
	if was == nil || was.Incomplete || before.item.RefilledMS != m.item.RefilledMS {
		return
	}
	if before.shards != m.shards {
		return // the other shards gain theirs already
	}
	moved := c.Balance - was.Balance // by others, who charged or gave back
	if c.sameDefinition(&was.BucketLimit) {
		then := *was
		if moved != 0 && then.seen < m.item.RefilledMS { // they came after the refill, which may have filled it
			then.balance, then.seen = then.balanceAt(m.item.RefilledMS), m.item.RefilledMS
		}
		c.balance = min(then.balance+moved, max(then.balance, c.balance, c.rate.CapacityMilli))
		c.seen, c.rate, c.capacity = then.seen, then.rate, then.capacity
		return
	}
	if c.Capacity < was.Capacity && moved+c.Consumed-was.Consumed < 0 {
		return // whoever lowered it has trimmed it too
	}
	// Until now it gained under the definition it had (docs/adr/0004-changed-buckets.md).
	at := max(now, was.seen)
	c.balance, c.seen = was.balanceUnder(c.rate, c.capacity, at)+moved, at
}

// index is the position of a limit, or -1.
func (m *image) index(name string) int {
	for i := range m.limits {
		if m.limits[i].Name == name {
			return i
		}
	}
	return -1
}

// limit returns the counter of that name, or nil.
func (m *image) limit(name string) *limitImage {
	if i := m.index(name); i >= 0 {
		return &m.limits[i]
	}
	return nil
}

// clone is a copy to reckon on.
func (m *image) clone() *image {
	c := *m
	c.limits = slices.Clone(m.limits)
	return &c
}

// sameDefinitions reports whether two images have the same limits, defined alike.
func (m *image) sameDefinitions(o *image) bool {
	if len(m.limits) != len(o.limits) {
		return false
	}
	for i := range m.limits {
		l := o.limit(m.limits[i].Name)
		if l == nil || l.Incomplete != m.limits[i].Incomplete || !l.sameDefinition(&m.limits[i].BucketLimit) {
			return false
		}
	}
	return true
}

// hasAll reports whether the image has every limit that a member asks, with the definition that it
// knows.
func (m *image) hasAll(of *waiter) bool {
	for k := range of.asks {
		a := &of.asks[k]
		c := m.limit(a.name)
		if c == nil || c.Incomplete || a.limit != nil && !c.matches(a.limit) {
			return false
		}
	}
	return true
}

// startsFullFor reports whether a limit that a member asks of is as one that nobody has used. Under a
// raised capacity it would begin full, which could not be told any more once it had been charged.
func (m *image) startsFullFor(of *waiter) bool {
	for k := range of.asks {
		if c := m.limit(of.asks[k].name); c.idle(max(of.now, c.seen)) {
			return true
		}
	}
	return false
}

// restricted reports whether something about the item keeps weir from judging by it.
func (m *image) restricted() bool {
	return m.item.Disabled || len(m.item.Unjudged) > 0 ||
		slices.ContainsFunc(m.limits, func(c limitImage) bool { return len(c.Unjudged) > 0 })
}

// configExpired reports whether what the item says was to hold no longer than now: then the configuration
// must be read (ADR 17).
func (m *image) configExpired(now int64) bool {
	return m.item.ValidUntil != nil && *m.item.ValidUntil <= now
}

func (m *image) countable(r *itemUpdate, sums map[string]int64) error {
	for _, ch := range r.deltas {
		if l := m.limit(ch.name); l != nil && ch.milli > 0 &&
			(sums[ch.name] > math.MaxInt64-ch.milli || min(l.Balance, l.balance) < math.MinInt64+sums[ch.name]+ch.milli) {
			return client.Fault(weir.Invalid, "totals."+ch.name, strconv.FormatInt(ch.milli/1000, 10),
				"is more than can be counted")
		}
	}
	for _, ch := range r.deltas {
		if ch.milli > 0 {
			sums[ch.name] += ch.milli
		}
	}
	return nil
}

// withSeen is the image with what was reckoned on it, where nothing is written: limits that were
// asked have been seen.
func (m *image) withSeen(after *image) *image {
	c := m.clone()
	for i := range c.limits {
		if a := after.limit(c.limits[i].Name); a != nil {
			l := &c.limits[i]
			l.balance, l.seen, l.rate, l.capacity = a.balance, a.seen, a.rate, a.capacity
		}
	}
	return c
}

// withSeenLimits is the image after limits were asked.
func (m *image) withSeenLimits(all ...seenLimit) *image {
	if len(all) == 0 {
		return m
	}
	c := m.clone()
	for _, a := range all {
		l := c.limit(a.name)
		if l == nil || l.Incomplete {
			continue
		}
		item := l.BucketLimit
		if a.limit != nil {
			s := storedLimit(a.limit)
			l.Capacity, l.Refill, l.PeriodMS = s.Capacity, s.Refill, s.PeriodMS
		}
		l.touch(a.now, c.shards)
		if a.denied {
			l.untouch()
		}
		l.BucketLimit = item
	}
	return c
}

// withStored is the image with other stored values.
func (m *image) withStored(b *schema.Bucket) *image {
	c := m.clone()
	c.item = b
	for i := range c.limits {
		if s := b.Limit(c.limits[i].Name); s != nil {
			c.limits[i].BucketLimit, c.limits[i].missing = *s, false
		}
	}
	return c
}

// available is what a shard has of a limit; nothing where there is no such shard.
// One that has not met a limit yet that was added has a share of it.
func (m *image) available(a *itemTake, now int64) int64 {
	if m == nil {
		return 0
	}
	c := m.limit(a.name)
	switch {
	case c != nil && !c.Incomplete:
		return c.peek(now, m.shards)
	case a.limit != nil:
		l := storedLimit(a.limit)
		return shareOf(&l, m.shards).CapacityMilli
	}
	return 0
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

// aboveShare reports whether a shard has more than its share of some limit.
func (m *image) aboveShare() bool {
	for i := range m.limits {
		if c := &m.limits[i]; !c.Incomplete && c.balance > c.rate.CapacityMilli {
			return true
		}
	}
	return false
}

// debtRepaidAt is the second after which no limit is in debt any more; 0 if none is.
func (m *image) debtRepaidAt() int64 {
	var at int64
	for i := range m.limits {
		c := &m.limits[i]
		if c.balance >= 0 || c.Incomplete {
			continue
		}
		wait := c.rate.Wait(c.balance, 0, c.seen)
		if wait > math.MaxInt64-c.seen {
			return math.MaxInt64 / 1000
		}
		at = max(at, seconds(c.seen+wait)+1)
	}
	return at
}
