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
	limits []counter      // as item.Limits
}

// counter is one limit of an image.
type counter struct {
	schema.BucketLimit // as stored

	// balance is what there is at the instant seen (Unix ms), in milli-units; from then on it refills
	// at rate, which is the definition that the limit was last used under.
	balance int64
	seen    int64
	rate    kernel.Rate
	// whole is the capacity that rate is a share of, in milli-units.
	whole int64
	// seed is true for a limit that the item does not have yet.
	seed bool
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
func newCounter(l schema.BucketLimit, refilled int64, shards int) counter {
	return counter{
		BucketLimit: l, balance: min(l.Balance, l.Capacity), seen: refilled,
		rate: shareOf(&l, shards), whole: l.Capacity,
	}
}

// learn makes an image of what was just read, at now. The image before, or the one that a write was
// to lead to, tells what the item cannot say, as far as nobody else has written meanwhile.
func learn(b *schema.Bucket, before *image, shards int, now int64) *image {
	m := &image{item: b, shards: max(b.Shards, shards), limits: make([]counter, len(b.Limits))}
	for i := range b.Limits {
		l := &b.Limits[i]
		m.limits[i] = newCounter(*l, b.RefilledMS, m.shards)
		if before != nil {
			m.limits[i].recall(before, m, now)
		}
	}
	return m
}

// recall takes over what the image before knows of a limit.
func (c *counter) recall(before, m *image, now int64) {
	was := before.limit(c.Name)
	if was == nil || was.Incomplete || before.item.RefilledMS != m.item.RefilledMS {
		return
	}
	if before.shards != m.shards {
		return // the other shards gain theirs already
	}
	moved := c.Balance - was.Balance // by others, who charged or gave back
	if c.defined(&was.BucketLimit) {
		then := *was
		if moved != 0 && then.seen < m.item.RefilledMS { // they came after the refill, which may have filled it
			then.balance, then.seen = then.at(m.item.RefilledMS), m.item.RefilledMS
		}
		c.balance = min(then.balance+moved, max(then.balance, c.balance, c.rate.CapacityMilli))
		c.seen, c.rate, c.whole = then.seen, then.rate, then.whole
		return
	}
	if c.Capacity < was.Capacity && moved+c.Consumed-was.Consumed < 0 {
		return // whoever lowered it has trimmed it too
	}
	// Until now it gained under the definition it had (docs/adr/0004-changed-buckets.md).
	at := max(now, was.seen)
	c.balance, c.seen = was.under(c.rate, c.whole, at)+moved, at
}

// defined reports whether two limits have the same definition.
func (c *counter) defined(l *schema.BucketLimit) bool {
	return c.Capacity == l.Capacity && c.Refill == l.Refill && c.PeriodMS == l.PeriodMS
}

// sameTerms reports whether two images have the same limits, defined alike.
func (m *image) sameTerms(o *image) bool {
	if len(m.limits) != len(o.limits) {
		return false
	}
	for i := range m.limits {
		l := o.limit(m.limits[i].Name)
		if l == nil || l.Incomplete != m.limits[i].Incomplete || !l.defined(&m.limits[i].BucketLimit) {
			return false
		}
	}
	return true
}

// limit returns the counter of that name, or nil.
func (m *image) limit(name string) *counter {
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

// at is the balance at now, no earlier than seen, under the definition it was last used under. What
// a shard had above its share when the bucket was split it keeps, and gains nothing until it is
// below.
func (c *counter) at(now int64) int64 {
	if c.balance >= c.rate.CapacityMilli {
		return c.balance
	}
	return c.rate.Refill(c.balance, c.seen, now)
}

// under is the balance at now under another definition: trimmed where the capacity was lowered, and
// full where the limit was forgotten.
func (c *counter) under(rate kernel.Rate, whole, now int64) int64 {
	balance := c.at(now)
	switch {
	case c.idle(now):
		return max(min(balance, whole), rate.CapacityMilli)
	case whole < c.whole:
		return min(balance, rate.CapacityMilli)
	}
	return balance
}

// idle reports whether the limit has been full and unasked for a minute.
func (c *counter) idle(now int64) bool {
	b := kernel.Bucket{Rate: c.rate, BalanceMilli: c.balance, SeenMS: c.seen}
	return b.Idle(now, kernel.ForgetMS)
}

// peek is the balance at now, or when it was last seen if that is later, under the stored
// definition.
func (c *counter) peek(now int64, shards int) int64 {
	return c.under(shareOf(&c.BucketLimit, shards), c.Capacity, max(now, c.seen))
}

// touch brings the counter to now, under the stored definition from then on.
func (c *counter) touch(now int64, shards int) {
	at := max(now, c.seen)
	c.forgotten, c.fullSince = c.idle(at), 0
	if c.forgotten {
		c.fullSince = c.rate.FullAt(c.balance, c.seen)
		at = now // nobody remembers when it was last asked
	}
	rate := shareOf(&c.BucketLimit, shards)
	c.balance, c.seen, c.rate, c.whole = c.under(rate, c.Capacity, max(now, c.seen)), at, rate, c.Capacity
}

// forgetAgain undoes a touch that took nothing from a limit that was forgotten: only a request that
// is admitted, or a settlement, makes it one that is remembered (docs/semantics.md, 8.4).
func (c *counter) forgetAgain() {
	if c.forgotten {
		c.seen = c.fullSince
	}
}

// untouchedSince reports whether nobody has asked for the limit since one touch of it found what
// was, and took the given milli-units.
func (c *counter) untouchedSince(was *counter, taken int64) bool {
	return c.seen == was.seen && c.balance == was.balance-taken && c.rate == was.rate
}

// lazy is what anybody who reads the item reckons that the balance is at now.
func (c *counter) lazy(refilled, now int64, shards int) int64 {
	rate := shareOf(&c.BucketLimit, shards)
	balance := min(c.Balance, c.Capacity)
	if balance >= rate.CapacityMilli {
		return balance
	}
	return rate.Refill(balance, refilled, now)
}

// give returns units to a touched counter, never above the share.
func (c *counter) give(milli int64) { c.balance = c.rate.Refund(c.balance, milli) }

// wait is how many milliseconds after now a touched counter holds so much; MaxInt64 for never.
func (c *counter) wait(now, milli int64) int64 {
	if c.balance >= milli {
		return 0
	}
	at := c.rate.ReachedAt(c.balance, milli, c.seen)
	if at == math.MaxInt64 {
		return at
	}
	return at - min(now, c.seen)
}
