package kernel

import (
	"math"
	"math/bits"
)

const milliPerUnit = 1000

// Rate is the capacity and the refill of a bucket. All fields must be above zero; a period of zero
// panics.
type Rate struct {
	// CapacityMilli is the highest balance, in milli-units.
	CapacityMilli int64
	// RefillMilli is the number of milli-units that the bucket regains per period.
	RefillMilli int64
	// PeriodMS is the period, in milliseconds.
	PeriodMS int64
}

// Gain returns the milli-units regained between two instants in milliseconds, regardless of the
// capacity: 0 if toMS is not after fromMS, and at most MaxInt64.
func (r Rate) Gain(fromMS, toMS int64) int64 {
	return saturate(r.gain(fromMS, toMS))
}

// WideGain is like Gain, with results up to MaxUint64. A bucket may regain more than an int64 can
// hold, from the deepest debt to the highest capacity.
func (r Rate) WideGain(fromMS, toMS int64) uint64 {
	return r.gain(fromMS, toMS)
}

// Refill returns the balance at toMS of a bucket that had balanceMilli at fromMS, in milli-units.
// It is never above the capacity, even if balanceMilli was. If toMS is before fromMS nothing is
// gained; the caller then keeps the later instant with the balance.
func (r Rate) Refill(balanceMilli, fromMS, toMS int64) int64 {
	balanceMilli = min(balanceMilli, r.CapacityMilli)
	// The difference of two int64 fits a uint64, and unsigned subtraction wraps around to it.
	room := uint64(r.CapacityMilli) - uint64(balanceMilli)
	gain := r.gain(fromMS, toMS)
	if gain >= room {
		return r.CapacityMilli
	}
	return int64(uint64(balanceMilli) + gain)
}

// Wait returns the smallest number of milliseconds after nowMS at which a bucket that has
// balanceMilli at nowMS has at least wantMilli; 0 if it has that already. It is MaxInt64 if the
// wait does not fit, or if wantMilli is above the capacity and is never reached.
func (r Rate) Wait(balanceMilli, wantMilli, nowMS int64) (ms int64) {
	if wantMilli > r.CapacityMilli {
		return math.MaxInt64
	}
	return saturate(r.wait(balanceMilli, wantMilli, nowMS))
}

// ReachedAt returns the first instant in milliseconds, not before nowMS, at which a bucket that has
// balanceMilli at nowMS has at least wantMilli. It is MaxInt64 if that does not fit, or is never.
func (r Rate) ReachedAt(balanceMilli, wantMilli, nowMS int64) int64 {
	if wantMilli > r.CapacityMilli {
		return math.MaxInt64
	}
	wait := r.wait(balanceMilli, wantMilli, nowMS)
	if wait > uint64(math.MaxInt64)-uint64(nowMS) {
		return math.MaxInt64
	}
	return int64(uint64(nowMS) + wait)
}

// FullAt is [Rate.ReachedAt] for the capacity.
func (r Rate) FullAt(balanceMilli, nowMS int64) int64 {
	return r.ReachedAt(balanceMilli, r.CapacityMilli, nowMS)
}

// Refund returns a balance after milli-units were given back: at most the capacity, or the balance
// itself if it is above the capacity already.
func (r Rate) Refund(balanceMilli, milli int64) int64 {
	switch {
	case balanceMilli >= r.CapacityMilli:
		return balanceMilli
	case uint64(milli) >= uint64(r.CapacityMilli)-uint64(balanceMilli):
		return r.CapacityMilli
	}
	return balanceMilli + milli
}

// Milli returns units in milli-units, and whether they fit an int64.
func Milli(units int64) (int64, bool) {
	if units > math.MaxInt64/milliPerUnit || units < math.MinInt64/milliPerUnit {
		return 0, false
	}
	return units * milliPerUnit, true
}

// Units returns the whole units in a balance of milli-units, rounded down: a debt of one milli-unit
// is a debt of one unit.
func Units(milli int64) int64 {
	units := milli / milliPerUnit
	if milli%milliPerUnit < 0 {
		units--
	}
	return units
}

// gain is like Gain, with results up to MaxUint64: from the deepest debt to the highest capacity
// takes all 64 bits.
//
// ⌊t·r/p⌋ itself may not fit 64 bits, so it is never computed. With m = from·r mod p the difference
// of the two ends is ⌊(m + (to−from)·r)/p⌋, and none of its terms exceeds 128 bits.
func (r Rate) gain(fromMS, toMS int64) uint64 {
	if toMS <= fromMS {
		return 0
	}
	hi, lo := bits.Mul64(uint64(toMS)-uint64(fromMS), uint64(r.RefillMilli))
	lo, carry := bits.Add64(lo, r.phase(fromMS), 0)
	return divide(hi+carry, lo, uint64(r.PeriodMS))
}

// wait returns the milliseconds until the balance is wantMilli, which must not be above the
// capacity, up to MaxUint64. It solves ⌊(m + d·r)/p⌋ ≥ need for d, with m as in gain: d = ⌈(need·p
// − m)/r⌉.
func (r Rate) wait(balanceMilli, wantMilli, nowMS int64) uint64 {
	if balanceMilli >= wantMilli {
		return 0
	}
	need := uint64(wantMilli) - uint64(balanceMilli)
	hi, lo := bits.Mul64(need, uint64(r.PeriodMS))
	// This stays above zero, because m is below p and need is at least 1.
	lo, borrow := bits.Sub64(lo, r.phase(nowMS), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(r.RefillMilli)-1, 0)
	return divide(hi+carry, lo, uint64(r.RefillMilli))
}

// phase returns ms·r mod p, which is at least 0 and below p, even for instants before 1970.
func (r Rate) phase(ms int64) uint64 {
	distance := uint64(ms)
	if ms < 0 {
		distance = -distance
	}
	hi, lo := bits.Mul64(distance, uint64(r.RefillMilli))
	rest := bits.Rem64(hi, lo, uint64(r.PeriodMS))
	if ms < 0 && rest > 0 {
		return uint64(r.PeriodMS) - rest
	}
	return rest
}

// divide returns the 128-bit number hi:lo divided by by, rounded down, up to MaxUint64.
func divide(hi, lo, by uint64) uint64 {
	if hi >= by {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(hi, lo, by)
	return quotient
}

// saturate returns v as an int64, or MaxInt64 if it does not fit.
func saturate(v uint64) int64 {
	return int64(min(v, math.MaxInt64))
}
