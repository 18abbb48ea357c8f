package bucketitem

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/internal/sharding"
	"github.com/weir-limiter/weir/kernel"
)

// LimitImage is one limit of an image.
type LimitImage struct {
	schema.BucketLimit // as stored

	// BalanceMilli is the balance at the instant Seen (Unix ms). From then on it gains at Rate, the
	// share of the definition that the limit was last used under.
	BalanceMilli int64
	Seen         int64
	Rate         kernel.Rate
	// capacity is the whole capacity of that definition, in milli-units.
	capacity int64
	// missing is true if the item does not have the limit yet.
	missing bool
	// forgotten is true if the limit was idle when it was last touched. fullSince is then the time
	// since which it had been full (Unix ms).
	forgotten bool
	fullSince int64
}

// NewLimitImage returns the image of a stored limit by the stored values alone.
func NewLimitImage(l schema.BucketLimit, refilled int64, shards int) LimitImage {
	return LimitImage{
		BucketLimit: l, BalanceMilli: min(l.Balance, l.Capacity), Seen: refilled,
		Rate: sharding.Share(&l, shards), capacity: l.Capacity,
	}
}

// sameDefinition reports whether the limit is stored with the definition of l.
func (c *LimitImage) sameDefinition(l *schema.BucketLimit) bool {
	return c.Capacity == l.Capacity && c.Refill == l.Refill && c.PeriodMS == l.PeriodMS
}

// Matches reports whether the limit is stored with the definition of l.
func (c *LimitImage) Matches(l *weir.Limit) bool {
	return c.Capacity == l.Capacity*1000 && c.Refill == l.RefillAmount*1000 &&
		c.PeriodMS == l.RefillPeriod.Milliseconds()
}

// balanceAt returns the balance at now, which is not before Seen, under the definition that the
// limit was last used under. A shard that has more than its share after a split keeps it, and gains
// nothing until the balance is below the share.
func (c *LimitImage) balanceAt(now int64) int64 {
	if c.BalanceMilli >= c.Rate.CapacityMilli {
		return c.BalanceMilli
	}
	return c.Rate.Refill(c.BalanceMilli, c.Seen, now)
}

// balanceUnder returns the balance at now under another definition. It is trimmed if the capacity
// is lower, and full if the limit was idle.
func (c *LimitImage) balanceUnder(rate kernel.Rate, whole, now int64) int64 {
	balance := c.balanceAt(now)
	switch {
	case c.idle(now):
		return max(min(balance, whole), rate.CapacityMilli)
	case whole < c.capacity:
		return min(balance, rate.CapacityMilli)
	}
	return balance
}

// idle reports whether the limit has been full and unused for a minute.
func (c *LimitImage) idle(now int64) bool {
	b := kernel.Bucket{Rate: c.Rate, BalanceMilli: c.BalanceMilli, SeenMS: c.Seen}
	return b.Idle(now, kernel.ForgetMS)
}

// Peek returns the balance under the stored definition at now, or at Seen if that is later.
func (c *LimitImage) Peek(now int64, shards int) int64 {
	return c.balanceUnder(sharding.Share(&c.BucketLimit, shards), c.Capacity, max(now, c.Seen))
}

// Touch brings the balance to now. From then on it gains under the stored definition.
func (c *LimitImage) Touch(now int64, shards int) {
	at := max(now, c.Seen)
	c.forgotten, c.fullSince = c.idle(at), 0
	if c.forgotten {
		c.fullSince = c.Rate.FullAt(c.BalanceMilli, c.Seen)
		at = now // an idle limit has no memory of its last use, even one after now
	}
	rate := sharding.Share(&c.BucketLimit, shards)
	c.BalanceMilli = c.balanceUnder(rate, c.Capacity, max(now, c.Seen))
	c.Seen, c.Rate, c.capacity = at, rate, c.Capacity
}

// untouch undoes a Touch that took nothing from an idle limit: only an admitted request or a
// settlement makes a limit remembered (docs/semantics.md, 8.4).
func (c *LimitImage) untouch() {
	if c.forgotten {
		c.Seen = c.fullSince
	}
}

// untouchedSince reports whether the limit was not touched after the take of the given milli-units
// that found it as was.
func (c *LimitImage) untouchedSince(was *LimitImage, taken int64) bool {
	return c.Seen == was.Seen && c.BalanceMilli == was.BalanceMilli-taken && c.Rate == was.Rate
}

// StoredBalanceAt returns the balance at now by the stored values alone, as any reader of the item
// computes it.
func (c *LimitImage) StoredBalanceAt(refilled, now int64, shards int) int64 {
	rate := sharding.Share(&c.BucketLimit, shards)
	balance := min(c.Balance, c.Capacity)
	if balance >= rate.CapacityMilli {
		return balance
	}
	return rate.Refill(balance, refilled, now)
}

// refund returns units to a limit after Touch, never above the share.
func (c *LimitImage) refund(milli int64) { c.BalanceMilli = c.Rate.Refund(c.BalanceMilli, milli) }

// Wait returns the milliseconds from now until a limit after Touch has the given balance; MaxInt64
// if it never has.
func (c *LimitImage) Wait(now, milli int64) int64 {
	if c.BalanceMilli >= milli {
		return 0
	}
	at := c.Rate.ReachedAt(c.BalanceMilli, milli, c.Seen)
	if at == math.MaxInt64 {
		return at
	}
	return at - min(now, c.Seen)
}

// StoredLimit returns a definition as items store it, with a balance of 0.
func StoredLimit(l *weir.Limit) schema.BucketLimit {
	return schema.BucketLimit{
		Name: l.Name, Capacity: l.Capacity * 1000, Refill: l.RefillAmount * 1000,
		PeriodMS: l.RefillPeriod.Milliseconds(),
	}
}

// LimitOf returns the definition of a stored limit.
func LimitOf(l *schema.BucketLimit) weir.Limit {
	return weir.Limit{
		Name: l.Name, Kind: weir.Bucket, Capacity: l.Capacity / 1000, RefillAmount: l.Refill / 1000,
		RefillPeriod: time.Duration(l.PeriodMS) * time.Millisecond,
	}
}

// unusedLimit returns a limit that was never used. It is full since 1970, so it counts as idle
// until it is used.
func unusedLimit(s schema.BucketLimit, shards int) LimitImage {
	c := NewLimitImage(s, 0, shards)
	c.BalanceMilli, c.missing = c.Rate.CapacityMilli, true
	return c
}
