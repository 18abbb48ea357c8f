package dynamodb

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
	"github.com/weir-limiter/weir/internal/schema"
)

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

// sameDefinition reports whether two limits have the same definition.
func (c *limitImage) sameDefinition(l *schema.BucketLimit) bool {
	return c.Capacity == l.Capacity && c.Refill == l.Refill && c.PeriodMS == l.PeriodMS
}

// matches reports whether the limit is stored as it is defined.
func (c *limitImage) matches(l *weir.Limit) bool {
	return c.Capacity == l.Capacity*1000 && c.Refill == l.RefillAmount*1000 &&
		c.PeriodMS == l.RefillPeriod.Milliseconds()
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

// storedLimit is a limit as items store it, with nothing in it yet.
func storedLimit(l *weir.Limit) schema.BucketLimit {
	return schema.BucketLimit{
		Name: l.Name, Capacity: l.Capacity * 1000, Refill: l.RefillAmount * 1000,
		PeriodMS: l.RefillPeriod.Milliseconds(),
	}
}

// limitOf is a stored limit as a definition.
func limitOf(l *schema.BucketLimit) weir.Limit {
	return weir.Limit{
		Name: l.Name, Kind: weir.Bucket, Capacity: l.Capacity / 1000, RefillAmount: l.Refill / 1000,
		RefillPeriod: time.Duration(l.PeriodMS) * time.Millisecond,
	}
}

// unusedLimit is a limit that nobody has used: a share of it, full since 1970, so that it is forgotten
// until it is asked.
func unusedLimit(s schema.BucketLimit, shards int) limitImage {
	c := newCounter(s, 0, shards)
	c.balance, c.missing = c.rate.CapacityMilli, true
	return c
}
