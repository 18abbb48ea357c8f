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

func capacityMilli(l *weir.Limit) *big.Int { return mul(num(l.Capacity), num(milliPerUnit)) }

// credited is ⌊t·r/p⌋: what has been credited by t, in milli-units (2.1).
func credited(l *weir.Limit, t int64) *big.Int {
	return floorDiv(mul(num(t), refillMilli(l)), periodMS(l))
}

func refillMilli(l *weir.Limit) *big.Int { return mul(num(l.RefillAmount), num(milliPerUnit)) }

func periodMS(l *weir.Limit) *big.Int { return num(int64(l.RefillPeriod / time.Millisecond)) }

// Gain is what a bucket gains between two instants if it does not get full: ⌊t1·r/p⌋ − ⌊t0·r/p⌋ (2.1).
func Gain(l *weir.Limit, from, to int64) *big.Int { return sub(credited(l, to), credited(l, from)) }

// Gained is the bucket after it gained some milli-units, up to its capacity (2.1), under a definition:
// a lowered capacity trims the balance, and a raised one leaves it to fill (8.2).
func (b Bucket) Gained(gain *big.Int, l *weir.Limit, now int64) Bucket {
	balance := b.Balance
	if full := capacityMilli(&b.Limit); balance.Cmp(full) < 0 {
		balance = least(add(balance, gain), full)
	}
	if l.Capacity < b.Limit.Capacity {
		balance = least(balance, capacityMilli(l))
	}
	return Bucket{balance, now, *l}
}

// touch brings a bucket up to now and under a definition. What it gained until now was gained under
// the definition that it had (8.2).
func (m *Model) touch(b Bucket, l *weir.Limit, now int64) Bucket {
	return m.points.Bucket.pass(Touched{b, l, now}, b.Gained(Gain(&b.Limit, b.At, now), l, now))
}

// Wait is the time in milliseconds from now until the balance has reached a cost; nil if it never will
// (4.2). The credit has to become what it is at the balance's own instant and as much again as is
// missing; the first such instant t is the first with t·r/p at least that.
func (b Bucket) Wait(want *big.Int, now int64) *big.Int {
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

// refund: units go back to a bucket up to its capacity and no further (7.7).
func (m *Model) refund(l *weir.Limit, balance, back *big.Int) *big.Int {
	return m.points.Refund.pass(Refunded{l, balance, back}, least(add(balance, back), capacityMilli(l)))
}
