package bucketitem

import (
	"math"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/kernel"
)

// LimitImage is one limit of an image.
type LimitImage struct {
	schema.BucketLimit // as stored

	// BalanceMilli is what there is at the instant seen (Unix ms), in milli-units; from then on it
	// refills at rate, which is the definition that the limit was last used under.
	BalanceMilli int64
	Seen         int64
	Rate         kernel.Rate
	// capacity is the capacity that rate is a share of, in milli-units.
	capacity int64
	// missing is true for a limit that the item does not have yet.
	missing bool
	// forgotten is true if the limit was like one never used when it was last touched, and
	// fullSince since when it had been full and not asked by then (Unix ms).
	forgotten bool
	fullSince int64
}

// ShareOf returns the part of a limit that one of n shards has, rounded down.
func ShareOf(l *schema.BucketLimit, n int) kernel.Rate {
	return kernel.Rate{
		CapacityMilli: l.Capacity / int64(n), RefillMilli: l.Refill / int64(n), PeriodMS: l.PeriodMS,
	}
}

// NewLimitImage returns a limit as it is stored.
func NewLimitImage(l schema.BucketLimit, refilled int64, shards int) LimitImage {
	return LimitImage{
		BucketLimit: l, BalanceMilli: min(l.Balance, l.Capacity), Seen: refilled,
		Rate: ShareOf(&l, shards), capacity: l.Capacity,
	}
}

// sameDefinition reports whether two limits have the same definition.
func (c *LimitImage) sameDefinition(l *schema.BucketLimit) bool {
	return c.Capacity == l.Capacity && c.Refill == l.Refill && c.PeriodMS == l.PeriodMS
}

// Matches reports whether the limit is stored as it is defined.
func (c *LimitImage) Matches(l *weir.Limit) bool {
	return c.Capacity == l.Capacity*1000 && c.Refill == l.RefillAmount*1000 &&
		c.PeriodMS == l.RefillPeriod.Milliseconds()
}

// balanceAt returns the balance at now, which is not before Seen, under the definition that the
// limit was last used under. What a shard had above its share when it was split it keeps, and
// gains nothing until it is below.
func (c *LimitImage) balanceAt(now int64) int64 {
	if c.BalanceMilli >= c.Rate.CapacityMilli {
		return c.BalanceMilli
	}
	return c.Rate.Refill(c.BalanceMilli, c.Seen, now)
}

// balanceUnder returns the balance at now under another definition: trimmed if the capacity was
// lowered, and full if the limit was forgotten.
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

// Peek returns the balance at now, or when the limit was last seen if that is later, under the
// stored definition.
func (c *LimitImage) Peek(now int64, shards int) int64 {
	return c.balanceUnder(ShareOf(&c.BucketLimit, shards), c.Capacity, max(now, c.Seen))
}

// Touch brings the balance to now, under the stored definition from then on.
func (c *LimitImage) Touch(now int64, shards int) {
	at := max(now, c.Seen)
	c.forgotten, c.fullSince = c.idle(at), 0
	if c.forgotten {
		c.fullSince = c.Rate.FullAt(c.BalanceMilli, c.Seen)
		at = now // when it was last asked for does not matter
	}
	rate := ShareOf(&c.BucketLimit, shards)
	c.BalanceMilli = c.balanceUnder(rate, c.Capacity, max(now, c.Seen))
	c.Seen, c.Rate, c.capacity = at, rate, c.Capacity
}

// untouch undoes a touch that took nothing from a forgotten limit: only a request that is
// admitted, or a settlement, makes a limit remembered (docs/semantics.md, 8.4).
func (c *LimitImage) untouch() {
	if c.forgotten {
		c.Seen = c.fullSince
	}
}

// untouchedSince reports whether nothing has asked for the limit since one touch of it found what
// was and took the given milli-units.
func (c *LimitImage) untouchedSince(was *LimitImage, taken int64) bool {
	return c.Seen == was.Seen && c.BalanceMilli == was.BalanceMilli-taken && c.Rate == was.Rate
}

// StoredBalanceAt returns the balance at now as any reader of the item computes it.
func (c *LimitImage) StoredBalanceAt(refilled, now int64, shards int) int64 {
	rate := ShareOf(&c.BucketLimit, shards)
	balance := min(c.Balance, c.Capacity)
	if balance >= rate.CapacityMilli {
		return balance
	}
	return rate.Refill(balance, refilled, now)
}

// refund returns units to a touched limit, never above the share.
func (c *LimitImage) refund(milli int64) { c.BalanceMilli = c.Rate.Refund(c.BalanceMilli, milli) }

// Wait returns how many milliseconds after now a touched limit holds so much; MaxInt64 for never.
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

// StoredLimit returns a limit as items store it, with nothing in it yet.
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

// unusedLimit returns a limit that was never used: a share of it, full since 1970, so that it
// counts as forgotten until it is asked for.
func unusedLimit(s schema.BucketLimit, shards int) LimitImage {
	c := NewLimitImage(s, 0, shards)
	c.BalanceMilli, c.missing = c.Rate.CapacityMilli, true
	return c
}
