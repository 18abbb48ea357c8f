package schema

import (
	"math"
	"math/big"

	"github.com/weir-limiter/weir"
)

// TTLMultiplier is how many times its slowest limit's time to fill up a bucket item lives.
const TTLMultiplier = 7

// Expires reports whether a bucket with limits of a level has an end. Those of an entity's own have
// none since version 0.17 of the library.
func Expires(level weir.Level) bool {
	return level != weir.LevelEntity && level != weir.LevelEntityDefault
}

// BucketSeconds returns how long a bucket item lives, in seconds, as the Python library reckons:
// (capacity / refill) · period of the slowest limit, times the multiplier, rounded down. ok is
// false where it lives on: multiplier not above 0, no limits, or one that nothing fills up.
//
// The library reckons in doubles, and now and then gets a second less than the exact figure. So
// this rounds each step to 53 bits as well, in software, which is the same on every machine.
func BucketSeconds(limits []BucketLimit, multiplier int64) (seconds int64, ok bool) {
	if multiplier <= 0 || len(limits) == 0 {
		return 0, false
	}
	slowest := new(big.Float)
	for i := range limits {
		l := &limits[i]
		if l.Capacity < 0 || l.Refill <= 0 || l.PeriodMS <= 0 {
			return 0, false
		}
		fill := double(l.Capacity, l.Refill)
		if fill.Mul(fill, double(l.PeriodMS, 1000)); fill.Cmp(slowest) > 0 {
			slowest = fill
		}
	}
	slowest.Mul(slowest, double(multiplier, 1))
	seconds, _ = slowest.Int64() // rounds down, and stops at the largest int64
	return min(seconds, maxSeconds), true
}

// double is a/b, rounded as a double is. The exact quotient is rounded once.
func double(a, b int64) *big.Float {
	const mantissa = 53
	q := new(big.Float).SetPrec(mantissa).SetMode(big.ToNearestEven)
	return q.Quo(new(big.Float).SetInt64(a), new(big.Float).SetInt64(b))
}

// maxSeconds is a life that ends after everything: added to a time it does not overflow.
const maxSeconds = math.MaxInt64 / 4

// TTL returns the end of what lives for some seconds from an instant, in Unix seconds.
func TTL(nowMS, seconds int64) int64 {
	now := nowMS / 1000
	if nowMS%1000 < 0 {
		now--
	}
	return now + seconds
}
