package oracle

import "math/big"

// bucket is a limit that refills; all its amounts are in milli-units.
type bucket struct {
	capacity, refill, period *big.Int // milli-units, milli-units a period, ms
	balance                  *big.Int // milli-units at the time below
	at                       int64    // epoch ms
}

func newBucket(capacity, refill, periodMS int64) *bucket {
	full := milli(capacity)
	return &bucket{
		capacity: full, refill: milli(refill), period: big.NewInt(periodMS), balance: full,
	}
}

func milli(units int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(units), big.NewInt(1000))
}

// gained is what the bucket would have gained since the epoch if it had no capacity.
func (b *bucket) gained(at int64) *big.Int {
	sum := new(big.Int).Mul(big.NewInt(at), b.refill)
	return sum.Div(sum, b.period)
}

func (b *bucket) balanceAt(at int64) *big.Int {
	sum := b.gained(at)
	sum.Sub(sum, b.gained(b.at))
	if sum.Add(sum, b.balance).Cmp(b.capacity) > 0 {
		return b.capacity
	}
	return sum
}

func (b *bucket) available(at int64) *big.Int {
	// Div rounds down for a positive divisor, below zero too.
	return new(big.Int).Div(b.balanceAt(at), big.NewInt(1000))
}

func (b *bucket) change(at int64, p *part, total int64) {
	left := new(big.Int).Add(b.balanceAt(at), milli(p.total))
	b.balance = left.Sub(left, milli(total)) // a refund above the capacity is capped when asked
	b.at = at
	p.total = total
}
