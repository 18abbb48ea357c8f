package kernel

import (
	"math"
	"math/bits"
)

// gain is Gain up to MaxUint64: the way from the deepest debt to a capacity needs all 64 bits.
//
// ⌊t·r/p⌋ itself may not fit 64 bits, so it is never computed. With m = from·r mod p the
// difference is ⌊(m + (to−from)·r)/p⌋, in which no term outgrows 128 bits.
func (r Rate) gain(fromMS, toMS int64) uint64 {
	if toMS <= fromMS {
		return 0
	}
	hi, lo := bits.Mul64(uint64(toMS)-uint64(fromMS), uint64(r.RefillMilli))
	lo, carry := bits.Add64(lo, r.phase(fromMS), 0)
	return divide(hi+carry, lo, uint64(r.PeriodMS))
}

// wait returns the milliseconds until the balance is wantMilli, which must not be above the
// capacity, up to MaxUint64. It solves ⌊(m + d·r)/p⌋ ≥ need for d, that is d = ⌈(need·p − m)/r⌉.
func (r Rate) wait(balanceMilli, wantMilli, nowMS int64) uint64 {
	if balanceMilli >= wantMilli {
		return 0
	}
	need := uint64(wantMilli) - uint64(balanceMilli)
	hi, lo := bits.Mul64(need, uint64(r.PeriodMS))
	// m is below p, so this stays above zero.
	lo, borrow := bits.Sub64(lo, r.phase(nowMS), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(r.RefillMilli)-1, 0)
	return divide(hi+carry, lo, uint64(r.RefillMilli))
}

// phase returns ms·r mod p, from 0 up to but not including p, for instants before 1970 too.
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

// divide returns the 128-bit hi:lo over by, rounded down, up to MaxUint64.
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
