package model

import (
	"math"
	"math/big"
	"time"

	"github.com/weir-limiter/weir"
)

// milliPerUnit is the number of milli-units in a unit (1.1).
const milliPerUnit = 1000

// maxBucketUnits is the most that a bucket can be asked for (1.1).
const maxBucketUnits = 9_223_372_036_854_775

func num(n int64) *big.Int { return big.NewInt(n) }

func add(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }

func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }

func mul(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

func most(a, b *big.Int) *big.Int {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

// saturated returns an instant as an int64, or the largest int64 if it is later.
func saturated(ms *big.Int) int64 {
	return least(ms, num(math.MaxInt64)).Int64()
}

// floorDiv divides by a positive number and rounds down, as big.Int.Div does.
func floorDiv(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

// ceilDiv divides by a positive number and rounds up.
func ceilDiv(a, b *big.Int) *big.Int {
	return new(big.Int).Neg(floorDiv(new(big.Int).Neg(a), b))
}

// unixMS returns the millisecond that contains an instant (1.2).
func unixMS(t time.Time) int64 {
	return floorDiv(add(mul(num(t.Unix()), num(1_000_000_000)), num(int64(t.Nanosecond()))), num(1e6)).Int64()
}

// units returns whole units, rounded down also below zero (1.4).
func units(amount *big.Int, scale int64) int64 { return floorDiv(amount, num(scale)).Int64() }

// countable reports whether an amount asked of a limit fits its counter (1.1).
func countable(k weir.Kind, amount *big.Int) bool {
	if k == weir.Bucket {
		return amount.Cmp(num(maxBucketUnits)) <= 0
	}
	return amount.IsInt64()
}

func uncountable(field string) error { return invalid(field, "is more than can be counted") }

// scale returns how many counts of a state make a unit (1.1).
func scale(k weir.Kind) int64 {
	if k == weir.Bucket {
		return milliPerUnit
	}
	return 1
}

// clamp returns a wait as a duration, which is at most 292 years (4.3).
func clamp(ms *big.Int) time.Duration {
	ns := mul(ms, num(int64(time.Millisecond)))
	if !ns.IsInt64() {
		return math.MaxInt64
	}
	return time.Duration(ns.Int64())
}
