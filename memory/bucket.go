package memory

import (
	"math"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// bucket counts a bucket limit: its balance at the latest instant seen, and the definition that it
// was last used with, under which it has been filling since.
type bucket struct {
	rate    kernel.Rate
	balance int64 // milli-units
	seen    int64
	// limit is where the rate is from, so that it need not be worked out again; nil where unknown.
	limit *weir.Limit
}

func rateOf(l *weir.Limit) kernel.Rate {
	return kernel.RateOf(l.Capacity, l.RefillAmount, l.RefillPeriod)
}

func newBucket(now int64, l *weir.Limit) *bucket {
	rate := rateOf(l)
	return &bucket{rate: rate, balance: rate.CapacityMilli, seen: now, limit: l}
}

// at returns the balance at now under a definition: what it gained under the one it had, then
// trimmed. A bucket that was forgotten starts full, at the capacity in force.
func (b *bucket) at(now int64, rate *kernel.Rate) int64 {
	if b.idle(now, forgetMS) {
		return rate.CapacityMilli
	}
	return min(b.rate.Refill(b.balance, b.seen, now), rate.CapacityMilli)
}

func (b *bucket) available(now int64, l *weir.Limit) int64 {
	if b.idle(now, forgetMS) {
		return l.Capacity
	}
	b.touch(now, l)
	return kernel.Units(b.balance)
}

// touch brings the bucket to now, under the definition in force from then on.
func (b *bucket) touch(now int64, l *weir.Limit) {
	if b.limit == l {
		if now <= b.seen {
			return // as for most calls on a limit that is used a lot
		}
		b.balance = b.at(now, &b.rate)
		b.seen = now
		return
	}
	now = max(now, b.seen)
	rate := rateOf(l)
	*b = bucket{rate, b.at(now, &rate), now, l}
}

func (b *bucket) peek(now int64, l *weir.Limit) int64 {
	rate := rateOf(l)
	return kernel.Units(b.at(max(now, b.seen), &rate))
}

func (b *bucket) freeAt(now, want int64, l *weir.Limit) int64 {
	now = max(now, b.seen)
	rate := rateOf(l)
	wait := rate.Wait(b.at(now, &rate), want*1000, now)
	if wait > math.MaxInt64-max(now, 0) {
		return math.MaxInt64
	}
	return now + wait
}

func (b *bucket) counts(now int64, c claim) bool {
	milli, ok := kernel.Milli(c.to - c.from)
	rate := rateOf(c.limit)
	return ok && b.at(max(now, b.seen), &rate) >= math.MinInt64+milli
}

func (b *bucket) take(now, n int64, l *weir.Limit) (weir.Piece, bool) {
	b.touch(now, l)
	b.balance -= n * 1000
	return weir.Piece{}, false
}

// settle gives back up to the capacity and no further, or takes more, into debt. A bucket does not
// know its units apart, so a lease has no pieces of it.
func (b *bucket) settle(now int64, c claim) []weir.Piece {
	b.touch(now, c.limit)
	if c.to >= c.from {
		b.balance -= (c.to - c.from) * 1000
		return nil
	}
	back, ok := kernel.Milli(c.from - c.to)
	// Where the sum would not fit, it is above every capacity.
	if !ok || b.balance > math.MaxInt64-back {
		b.balance = b.rate.CapacityMilli
		return nil
	}
	b.balance = min(b.balance+back, b.rate.CapacityMilli)
	return nil
}

func (b *bucket) inUse(now int64) bool {
	return b.rate.Refill(b.balance, b.seen, now) < b.rate.CapacityMilli
}

// idle begins to count when the bucket is full.
func (b *bucket) idle(now, forMS int64) bool {
	return now-b.seen >= forMS && now-forMS >= b.rate.FullAt(b.balance, b.seen)
}
