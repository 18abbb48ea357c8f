package model

import (
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// Bucket is the state of a bucket.
type Bucket struct {
	// Balance is in milli-units; below zero it is debt.
	Balance *big.Int
	// At is the instant that the balance is of.
	At int64
	// Limit is the definition that it was last used under.
	Limit weir.Limit
}

// fresh is the balance of a new bucket: it starts full (2.5).
func fresh(l *weir.Limit) *big.Int { return capacityMilli(l) }

func capacityMilli(l *weir.Limit) *big.Int { return mul(num(l.Capacity), num(milliPerUnit)) }

// credited is ⌊t·r/p⌋: what has been credited by t, in milli-units (2.1).
func credited(l *weir.Limit, t int64) *big.Int {
	return floorDiv(mul(num(t), refillMilli(l)), periodMS(l))
}

func refillMilli(l *weir.Limit) *big.Int { return mul(num(l.RefillAmount), num(milliPerUnit)) }

func periodMS(l *weir.Limit) *big.Int { return num(int64(l.RefillPeriod / time.Millisecond)) }

// gain is ⌊t1·r/p⌋ − ⌊t0·r/p⌋ (2.1).
func gain(l *weir.Limit, from, to int64) *big.Int { return sub(credited(l, to), credited(l, from)) }

// fill: a bucket gains up to C (2.1).
func fill(l *weir.Limit, balance, gained *big.Int) *big.Int {
	full := capacityMilli(l)
	if balance.Cmp(full) >= 0 {
		return balance
	}
	return least(add(balance, gained), full)
}

// trim: a lowered capacity trims a balance (8.2).
func trim(l *weir.Limit, balance *big.Int) *big.Int { return least(balance, capacityMilli(l)) }

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

// touch: what a bucket gained until now was gained under the definition it had; then the capacity
// of the one in force trims it (8.2).
func (r *Rules) touch(b Bucket, l *weir.Limit, now int64) Bucket {
	balance := r.Fill(&b.Limit, b.Balance, r.Gain(&b.Limit, b.At, now))
	if l.Capacity < b.Limit.Capacity {
		balance = r.Trim(l, balance)
	}
	return Bucket{balance, now, *l}
}

// forgotten: a bucket that has been full for a minute counts as new (8.4).
func (r *Rules) forgotten(b Bucket, now int64) bool {
	full := r.BucketWait(b, capacityMilli(&b.Limit), b.At)
	return full != nil && num(now-b.At).Cmp(add(full, num(forgetMS))) >= 0
}

// bucketWait: until the balance has reached the cost (4.2). The credit has to become what it is at
// the balance's own instant and as much again as is missing; the first such instant t is the first
// with t·r/p at least that.
func bucketWait(b Bucket, want *big.Int, now int64) *big.Int {
	if want.Cmp(capacityMilli(&b.Limit)) > 0 {
		return nil
	}
	missing := sub(want, b.Balance)
	if missing.Sign() <= 0 {
		return num(0)
	}
	credit := add(credited(&b.Limit, b.At), missing)
	t := ceilDiv(mul(credit, periodMS(&b.Limit)), refillMilli(&b.Limit))
	return sub(t, num(now))
}

// refund: a bucket up to its capacity and no further (7.7).
func refund(l *weir.Limit, balance, back *big.Int) *big.Int {
	return least(add(balance, back), capacityMilli(l))
}
