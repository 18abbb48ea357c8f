// Package kernel is the arithmetic of bucket limits: what a balance regains over time and when it
// will suffice. Balances are in milli-units, instants in milliseconds since 1970, both int64.
//
// By an instant t a rate of r milli-units per p milliseconds has credited ⌊t·r/p⌋ milli-units, and
// an interval gains the difference between its ends. So gains telescope: a balance that is brought
// up to date often gains as much as one that is left alone, however slow its limit is, and over no
// interval is the credit a whole milli-unit off.
//
// Everything here is a pure function. Products have 128 bits; a result that does not fit 64 is
// the largest int64.
package kernel

import (
	"math"
	"time"
)

// Rate is a bucket's ceiling and the speed at which it refills. Each field must be above zero;
// a period of zero panics.
type Rate struct {
	// CapacityMilli is the highest balance, in milli-units.
	CapacityMilli int64
	// RefillMilli is what the bucket regains per period, in milli-units.
	RefillMilli int64
	// PeriodMS is the period, in milliseconds.
	PeriodMS int64
}

// RateOf returns the rate of a bucket whose capacity and refill are given in units, each at most
// MaxInt64/1000, and whose period is whole milliseconds.
func RateOf(capacity, refill int64, period time.Duration) Rate {
	return Rate{capacity * 1000, refill * 1000, period.Milliseconds()}
}

// Gain returns the milli-units regained between two instants (ms), regardless of the capacity:
// 0 if the clock stood still or went back, at most MaxInt64.
func (r Rate) Gain(fromMS, toMS int64) int64 {
	return saturate(r.gain(fromMS, toMS))
}

// WideGain is Gain with a wider result, at most MaxUint64: from the deepest debt to the highest
// capacity a bucket regains more than an int64 holds.
func (r Rate) WideGain(fromMS, toMS int64) uint64 {
	return r.gain(fromMS, toMS)
}

// Refill returns the balance (milli-units) at toMS of a bucket that had balanceMilli at fromMS. It
// is never above the capacity, even if the balance was. Where toMS lies before fromMS nothing is
// gained; the caller then keeps the later instant beside the balance.
func (r Rate) Refill(balanceMilli, fromMS, toMS int64) int64 {
	balanceMilli = min(balanceMilli, r.CapacityMilli)
	// Differences of int64 fit a uint64, which wraps to the right answer.
	room := uint64(r.CapacityMilli) - uint64(balanceMilli)
	gain := r.gain(fromMS, toMS)
	if gain >= room {
		return r.CapacityMilli
	}
	return int64(uint64(balanceMilli) + gain)
}

// Wait returns the smallest number of milliseconds after nowMS at which a bucket that has
// balanceMilli at nowMS holds at least wantMilli, 0 if it does so already. It is MaxInt64 if that
// takes longer, or if wantMilli is above the capacity and so never comes.
func (r Rate) Wait(balanceMilli, wantMilli, nowMS int64) (ms int64) {
	if wantMilli > r.CapacityMilli {
		return math.MaxInt64
	}
	return saturate(r.wait(balanceMilli, wantMilli, nowMS))
}

// FullAt returns the first instant (ms), not before nowMS, at which a bucket that has balanceMilli
// at nowMS is at its capacity; at most MaxInt64.
func (r Rate) FullAt(balanceMilli, nowMS int64) int64 {
	wait := r.wait(balanceMilli, r.CapacityMilli, nowMS)
	if wait > uint64(math.MaxInt64)-uint64(nowMS) {
		return math.MaxInt64
	}
	return int64(uint64(nowMS) + wait)
}

// Milli returns units in milli-units, and false if they do not fit an int64.
func Milli(units int64) (int64, bool) {
	if units > math.MaxInt64/milliPerUnit || units < math.MinInt64/milliPerUnit {
		return 0, false
	}
	return units * milliPerUnit, true
}

// Units returns the whole units in a balance of milli-units, rounded down: a debt of one
// milli-unit is a debt of one unit.
func Units(milli int64) int64 {
	units := milli / milliPerUnit
	if milli%milliPerUnit < 0 {
		units--
	}
	return units
}

const milliPerUnit = 1000
