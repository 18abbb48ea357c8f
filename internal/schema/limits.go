package schema

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
)

// The most that the Python library reads from a configuration item. A larger number makes the whole
// level unreadable to it, so nobody may store one.
const (
	MaxUnits   = 1_000_000_000_000_000 // of capacity and refill amount
	MaxSeconds = 1_000_000_000         // of a refill period
)

// Limit is a limit as configuration has it.
type Limit struct {
	Name     string
	Capacity int64 // cp, in units
	Refill   int64 // ra, in units per period; 0 is a quota that only a schedule fills
	Seconds  int64 // rp: the period
	// Unjudged names the attributes of the limit whose meaning weir does not judge by (sched,
	// rsched, rsa, soft; ra where it is 0), in order and without the "l_…_".
	Unjudged []string
}

// Bucket returns the limit as a new bucket item has it: full, with nothing consumed. A limit that
// no item can hold is an error.
func (l Limit) Bucket() (BucketLimit, error) {
	const most = math.MaxInt64 / 1000
	for _, field := range []struct {
		name     string
		n, least int64
	}{{"capacity", l.Capacity, 1}, {"refill amount", l.Refill, 1}, {"refill period", l.Seconds, 1}} {
		if field.n < field.least || field.n > most {
			return BucketLimit{}, fmt.Errorf("limit %q: %s %d is not between %d and %d",
				l.Name, field.name, field.n, field.least, int64(most))
		}
	}
	return BucketLimit{
		Name: l.Name, Balance: l.Capacity * 1000, Capacity: l.Capacity * 1000,
		Refill: l.Refill * 1000, PeriodMS: l.Seconds * 1000,
	}, nil
}

// NewWrites returns the limit that counts the writes of a bucket item: 1,000 a second, which is
// what DynamoDB takes for one partition.
func NewWrites() *BucketLimit {
	return &BucketLimit{
		Name: WritesLimit, Balance: 1_000_000, Capacity: 1_000_000, Refill: 1_000_000, PeriodMS: 1000,
	}
}

// NewBucket returns a bucket as the Python library makes it: full at nowMS, one shard, no parent
// and no end. A caller sets what else is known.
func NewBucket(id BucketID, nowMS int64, limits []Limit) (*Bucket, error) {
	b := &Bucket{
		Namespace: id.Namespace, Entity: id.Entity, Resource: id.Resource, Shard: id.Shard,
		RefilledMS: nowMS, Shards: 1, Limits: make([]BucketLimit, 0, len(limits)), Writes: NewWrites(),
	}
	for _, l := range limits {
		bl, err := l.Bucket()
		if err != nil {
			return nil, fmt.Errorf("bucket %q: %w", id.PK(), err)
		}
		b.Limits = append(b.Limits, bl)
	}
	slices.SortFunc(b.Limits, compareLimits)
	return b, nil
}

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
