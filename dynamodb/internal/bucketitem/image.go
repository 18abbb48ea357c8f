package bucketitem

import (
	"math"
	"slices"
	"strconv"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/dynamodb/internal/client"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
)

// Image is a bucket item as this process knows it: the stored item when it was last seen, and the
// balances of its limits. A balance differs from the stored values if this process knows more than
// the item can say, such as the time at which a limit was last used. An image is replaced, never
// changed.
type Image struct {
	Item   *schema.Bucket // as stored; never changed
	Shards int            // the larger of the item's count and the count known to the process
	Limits []LimitImage   // in the order of Item.Limits
}

// newImage makes an image of an item that was read at now. It takes over from before what the item
// cannot say, unless another process has refilled the item since. before is the image until now or,
// after a write, the one that the write was to lead to; nil if there is none.
func newImage(b *schema.Bucket, before *Image, shards int, now int64) *Image {
	m := &Image{Item: b, Shards: max(b.Shards, shards), Limits: make([]LimitImage, len(b.Limits))}
	for i := range b.Limits {
		l := &b.Limits[i]
		m.Limits[i] = NewLimitImage(*l, b.RefilledMS, m.Shards)
		if before != nil {
			m.Limits[i].inherit(before, m, now)
		}
	}
	return m
}

// inherit takes over what the image before knows of a limit of m.
func (c *LimitImage) inherit(before, m *Image, now int64) {
	was := before.Limit(c.Name)
	if was == nil || was.Incomplete || before.Item.RefilledMS != m.Item.RefilledMS {
		return
	}
	if before.Shards != m.Shards {
		return // each shard gains a smaller share now
	}
	moved := c.Balance - was.Balance // the charges and refunds of other writers
	if c.sameDefinition(&was.BucketLimit) {
		then := *was
		if moved != 0 && then.Seen < m.Item.RefilledMS { // they came after the refill
			then.BalanceMilli, then.Seen = then.balanceAt(m.Item.RefilledMS), m.Item.RefilledMS
		}
		most := max(then.BalanceMilli, c.BalanceMilli, c.Rate.CapacityMilli)
		c.BalanceMilli = min(then.BalanceMilli+moved, most)
		c.Seen, c.Rate, c.capacity = then.Seen, then.Rate, then.capacity
		return
	}
	if c.Capacity < was.Capacity && moved+c.Consumed-was.Consumed < 0 {
		return // the writer that lowered the capacity has trimmed the balance too
	}
	// Until now the limit gained under the definition that it had
	// (docs/adr/0004-changed-buckets.md).
	at := max(now, was.Seen)
	c.BalanceMilli, c.Seen = was.balanceUnder(c.Rate, c.capacity, at)+moved, at
}

// index returns the position of a limit, or -1.
func (m *Image) index(name string) int {
	for i := range m.Limits {
		if m.Limits[i].Name == name {
			return i
		}
	}
	return -1
}

// Limit returns the limit with that name, or nil.
func (m *Image) Limit(name string) *LimitImage {
	if i := m.index(name); i >= 0 {
		return &m.Limits[i]
	}
	return nil
}

// clone returns a copy whose limits can be changed.
func (m *Image) clone() *Image {
	c := *m
	c.Limits = slices.Clone(m.Limits)
	return &c
}

// sameDefinitions reports whether two images have the same limits with the same definitions.
func (m *Image) sameDefinitions(o *Image) bool {
	if len(m.Limits) != len(o.Limits) {
		return false
	}
	for i := range m.Limits {
		l := o.Limit(m.Limits[i].Name)
		if l == nil || l.Incomplete != m.Limits[i].Incomplete || !l.sameDefinition(&m.Limits[i].BucketLimit) {
			return false
		}
	}
	return true
}

// hasAll reports whether the image has every limit that a waiter takes of, with the definition that
// the waiter holds.
func (m *Image) hasAll(of *Waiter) bool {
	for k := range of.Takes {
		a := &of.Takes[k]
		c := m.Limit(a.Name)
		if c == nil || c.Incomplete || a.Limit != nil && !c.Matches(a.Limit) {
			return false
		}
	}
	return true
}

// lacksChange reports whether an update settles a limit whose definition has changed after the
// units were reserved, and the item does not have the new definition.
func (m *Image) lacksChange(r *Update) bool {
	return slices.ContainsFunc(r.Deltas, func(d Delta) bool {
		c := m.Limit(d.Name)
		return d.Changed && c != nil && !c.Incomplete && !c.Matches(d.Limit)
	})
}

// startsFullFor reports whether a limit that a waiter takes of is idle. Such a limit would begin
// full under a raised capacity, and once it is charged the item no longer shows that it was idle.
func (m *Image) startsFullFor(of *Waiter) bool {
	for k := range of.Takes {
		if c := m.Limit(of.Takes[k].Name); c.idle(max(of.Now, c.Seen)) {
			return true
		}
	}
	return false
}

// restricted reports whether the item has attributes that weir does not support (ADR 17).
func (m *Image) restricted() bool { return sharding.Restricted(m.Item) }

// configExpired reports whether the item's limits are no longer valid (its vu has passed), so that
// the configuration must be read (ADR 17).
func (m *Image) configExpired(now int64) bool {
	return m.Item.ValidUntil != nil && *m.Item.ValidUntil <= now
}

// Countable returns an error if the charges of an update would overflow a balance. sums holds the
// charges of the other updates of the same write, by limit; Countable adds those of r to it.
func (m *Image) Countable(r *Update, sums map[string]int64) error {
	for _, ch := range r.Deltas {
		if l := m.Limit(ch.Name); l != nil && ch.Milli > 0 &&
			(sums[ch.Name] > math.MaxInt64-ch.Milli ||
				min(l.Balance, l.BalanceMilli) < math.MinInt64+sums[ch.Name]+ch.Milli) {
			return client.Fault(weir.Invalid, "totals."+ch.Name, strconv.FormatInt(ch.Milli/1000, 10),
				"is more than a limit can count")
		}
	}
	for _, ch := range r.Deltas {
		if ch.Milli > 0 {
			sums[ch.Name] += ch.Milli
		}
	}
	return nil
}

// withSeen returns the image after an evaluation that is not written: the limits were judged, but
// the stored values stay.
func (m *Image) withSeen(after *Image) *Image {
	c := m.clone()
	for i := range c.Limits {
		if a := after.Limit(c.Limits[i].Name); a != nil {
			l := &c.Limits[i]
			l.BalanceMilli, l.Seen, l.Rate, l.capacity = a.BalanceMilli, a.Seen, a.Rate, a.capacity
		}
	}
	return c
}

// withSeenLimits returns the image after limits were judged or settled without a write.
func (m *Image) withSeenLimits(all ...SeenLimit) *Image {
	if len(all) == 0 {
		return m
	}
	c := m.clone()
	for _, a := range all {
		l := c.Limit(a.Name)
		if l == nil || l.Incomplete {
			continue
		}
		item := l.BucketLimit
		if a.Limit != nil {
			s := StoredLimit(a.Limit)
			l.Capacity, l.Refill, l.PeriodMS = s.Capacity, s.Refill, s.PeriodMS
		}
		l.Touch(a.Now, c.Shards)
		if a.Denied {
			l.untouch()
		}
		l.BucketLimit = item
	}
	return c
}

// withStored returns the image with the stored values of b.
func (m *Image) withStored(b *schema.Bucket) *Image {
	c := m.clone()
	c.Item = b
	for i := range c.Limits {
		if s := b.Limit(c.Limits[i].Name); s != nil {
			c.Limits[i].BucketLimit, c.Limits[i].missing = *s, false
		}
	}
	return c
}

// Available returns the balance of a limit on a shard at now. It is 0 if the shard does not exist,
// and a full share if the limit was added and the shard does not have it yet.
func (m *Image) Available(a *Take, now int64) int64 {
	if m == nil {
		return 0
	}
	c := m.Limit(a.Name)
	switch {
	case c != nil && !c.Incomplete:
		return c.Peek(now, m.Shards)
	case a.Limit != nil:
		l := StoredLimit(a.Limit)
		return sharding.Share(&l, m.Shards).CapacityMilli
	}
	return 0
}

// inUse reports whether a limit is not full at now, by the definition that it was last used under.
func (m *Image) inUse(now int64) bool {
	for i := range m.Limits {
		c := &m.Limits[i]
		if !c.Incomplete && c.balanceAt(max(now, c.Seen)) < c.Rate.CapacityMilli {
			return true
		}
	}
	return false
}

// aboveShare reports whether the shard has more than its share of a limit.
func (m *Image) aboveShare() bool {
	for i := range m.Limits {
		if c := &m.Limits[i]; !c.Incomplete && c.BalanceMilli > c.Rate.CapacityMilli {
			return true
		}
	}
	return false
}

// debtRepaidAt returns the time by which all debts are repaid, in Unix seconds; 0 if no limit is in
// debt.
func (m *Image) debtRepaidAt() int64 {
	var at int64
	for i := range m.Limits {
		c := &m.Limits[i]
		if c.BalanceMilli >= 0 || c.Incomplete {
			continue
		}
		wait := c.Rate.Wait(c.BalanceMilli, 0, c.Seen)
		if wait > math.MaxInt64-c.Seen {
			return math.MaxInt64 / 1000
		}
		at = max(at, seconds(c.Seen+wait)+1)
	}
	return at
}
