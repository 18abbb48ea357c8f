package schema

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
)

// The largest numbers that the Python library reads from a configuration item. A larger number
// would make the whole level unreadable to it, so no program may store one.
const (
	MaxUnits   = 1_000_000_000_000_000 // of capacity and refill amount
	MaxSeconds = 1_000_000_000         // of a refill period
)

// Limit is a limit on a configuration item.
type Limit struct {
	Name     string
	Capacity int64 // cp, in units
	Refill   int64 // ra, in units per period; 0 is a quota that only a schedule fills
	Seconds  int64 // rp: the period
	// Unjudged names the attributes of the limit that weir does not support, in order and without
	// "l_…_": sched, rsched, rsa, soft, and ra if it is 0.
	Unjudged []string
}

// Bucket returns the limit for a new bucket item: full, with nothing consumed. A limit that an item
// cannot hold is an error.
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
// DynamoDB's bound for one partition.
func NewWrites() *BucketLimit {
	return &BucketLimit{
		Name: WritesLimit, Balance: 1_000_000, Capacity: 1_000_000, Refill: 1_000_000, PeriodMS: 1000,
	}
}

// NewBucket returns a bucket as the Python library creates it: full at nowMS, with one shard, no
// parent and no ttl. The caller sets the rest.
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

// TTLMultiplier is the default lifetime of a bucket item, as a multiple of the time in which its
// slowest limit fills up; see [Config.BucketTTLMultiplier].
const TTLMultiplier = 7

// Expires reports whether bucket items with limits of a level expire. With limits of an entity's
// own they do not, as in the library from 0.17 on.
func Expires(level weir.Level) bool {
	return level != weir.LevelEntity && level != weir.LevelEntityDefault
}

// BucketSeconds returns the lifetime of a bucket item in seconds, as the Python library computes
// it: capacity / refill · period of the slowest limit, times the multiplier, rounded down. ok is
// false if the item does not expire: the multiplier is not above 0, there are no limits, or one of
// them never fills up.
//
// The library computes in doubles, and its result is sometimes a second below the exact one. So
// BucketSeconds also rounds each step to 53 bits, in software, which gives the same result on every
// machine.
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
	seconds, _ = slowest.Int64() // rounds down, and at most to the largest int64
	return min(seconds, maxSeconds), true
}

// double returns a/b rounded to a double. The exact quotient is rounded once.
func double(a, b int64) *big.Float {
	const mantissa = 53
	q := new(big.Float).SetPrec(mantissa).SetMode(big.ToNearestEven)
	return q.Quo(new(big.Float).SetInt64(a), new(big.Float).SetInt64(b))
}

// maxSeconds is a lifetime without end: adding it to a time does not overflow.
const maxSeconds = math.MaxInt64 / 4

// TTL returns the end of a lifetime that begins at nowMS, in Unix seconds.
func TTL(nowMS, seconds int64) int64 {
	now := nowMS / 1000
	if nowMS%1000 < 0 {
		now--
	}
	return now + seconds
}
