package dynamodb

import (
	"math"
	"slices"

	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/kernel"
)

// image is a bucket item as this process knows it: what was stored when it was last seen, and what
// that comes to. The two differ where the process knows more than the item can say, such as when a
// limit was last asked. It belongs to one line and is replaced, never shared.
type image struct {
	item   *schema.Bucket // as stored; not changed
	shards int            // the larger of the item's count and the known one
	limits []limitImage   // as item.Limits
}

// limitImage is one limit of an image.
type limitImage struct {
	schema.BucketLimit // as stored

	// balance is what there is at the instant seen (Unix ms), in milli-units; from then on it refills
	// at rate, which is the definition that the limit was last used under.
	balance int64
	seen    int64
	rate    kernel.Rate
	// capacity is the capacity that rate is a share of, in milli-units.
	capacity int64
	// missing is true for a limit that the item does not have yet.
	missing bool
	// forgotten is true if the limit was as one that nobody had used when it was last touched, and
	// fullSince since when it had been full and not asked by then (Unix ms).
	forgotten bool
	fullSince int64
}

// shareOf is the part of a limit that one of n shards has, rounded down.
func shareOf(l *schema.BucketLimit, n int) kernel.Rate {
	return kernel.Rate{
		CapacityMilli: l.Capacity / int64(n), RefillMilli: l.Refill / int64(n), PeriodMS: l.PeriodMS,
	}
}

// newCounter is a limit as it is stored.
func newCounter(l schema.BucketLimit, refilled int64, shards int) limitImage {
	return limitImage{
		BucketLimit: l, balance: min(l.Balance, l.Capacity), seen: refilled,
		rate: shareOf(&l, shards), capacity: l.Capacity,
	}
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

// sameDefinition reports whether two limits have the same definition.
func (c *limitImage) sameDefinition(l *schema.BucketLimit) bool {
	return c.Capacity == l.Capacity && c.Refill == l.Refill && c.PeriodMS == l.PeriodMS
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

// balanceAt is the balance at now, no earlier than seen, under the definition it was last used under. What
// a shard had above its share when the bucket was split it keeps, and gains nothing until it is
// below.
func (c *limitImage) balanceAt(now int64) int64 {
	if c.balance >= c.rate.CapacityMilli {
		return c.balance
	}
	return c.rate.Refill(c.balance, c.seen, now)
}

// balanceUnder is the balance at now under another definition: trimmed where the capacity was lowered, and
// full where the limit was forgotten.
func (c *limitImage) balanceUnder(rate kernel.Rate, whole, now int64) int64 {
	balance := c.balanceAt(now)
	switch {
	case c.idle(now):
		return max(min(balance, whole), rate.CapacityMilli)
	case whole < c.capacity:
		return min(balance, rate.CapacityMilli)
	}
	return balance
}

// idle reports whether the limit has been full and unasked for a minute.
func (c *limitImage) idle(now int64) bool {
	b := kernel.Bucket{Rate: c.rate, BalanceMilli: c.balance, SeenMS: c.seen}
	return b.Idle(now, kernel.ForgetMS)
}

// peek is the balance at now, or when it was last seen if that is later, under the stored
// definition.
func (c *limitImage) peek(now int64, shards int) int64 {
	return c.balanceUnder(shareOf(&c.BucketLimit, shards), c.Capacity, max(now, c.seen))
}

// touch brings the counter to now, under the stored definition from then on.
func (c *limitImage) touch(now int64, shards int) {
	at := max(now, c.seen)
	c.forgotten, c.fullSince = c.idle(at), 0
	if c.forgotten {
		c.fullSince = c.rate.FullAt(c.balance, c.seen)
		at = now // nobody remembers when it was last asked
	}
	rate := shareOf(&c.BucketLimit, shards)
	c.balance, c.seen, c.rate, c.capacity = c.balanceUnder(rate, c.Capacity, max(now, c.seen)), at, rate, c.Capacity
}

// untouch undoes a touch that took nothing from a limit that was forgotten: only a request that
// is admitted, or a settlement, makes it one that is remembered (docs/semantics.md, 8.4).
func (c *limitImage) untouch() {
	if c.forgotten {
		c.seen = c.fullSince
	}
}

// untouchedSince reports whether nobody has asked for the limit since one touch of it found what
// was, and took the given milli-units.
func (c *limitImage) untouchedSince(was *limitImage, taken int64) bool {
	return c.seen == was.seen && c.balance == was.balance-taken && c.rate == was.rate
}

// storedBalanceAt is what anybody who reads the item reckons that the balance is at now.
func (c *limitImage) storedBalanceAt(refilled, now int64, shards int) int64 {
	rate := shareOf(&c.BucketLimit, shards)
	balance := min(c.Balance, c.Capacity)
	if balance >= rate.CapacityMilli {
		return balance
	}
	return rate.Refill(balance, refilled, now)
}

// refund returns units to a touched counter, never above the share.
func (c *limitImage) refund(milli int64) { c.balance = c.rate.Refund(c.balance, milli) }

// wait is how many milliseconds after now a touched counter holds so much; MaxInt64 for never.
func (c *limitImage) wait(now, milli int64) int64 {
	if c.balance >= milli {
		return 0
	}
	at := c.rate.ReachedAt(c.balance, milli, c.seen)
	if at == math.MaxInt64 {
		return at
	}
	return at - min(now, c.seen)
}
