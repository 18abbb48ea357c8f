package replay

import (
	"encoding/json"
	"maps"
	"math"
	"math/big"
	"slices"
	"time"
)

// maxDistinct bounds the different numbers that a distribution distinguishes.
const maxDistinct = 1 << 18

// distribution counts non-negative numbers. It is exact until there are too many different ones,
// and then rounds them up to multiples of 2, 4, 8 and so on, so that its size is bounded.
type distribution struct {
	counts map[int64]int64 // by the number, without its lowest bits
	drop   uint            // the number of those bits
	total  int64
	most   int64
	// limit is the number of different numbers that are distinguished. Default: maxDistinct.
	limit int
}

func (d *distribution) add(n int64) {
	if d.counts == nil {
		d.counts = map[int64]int64{}
	}
	d.counts[n>>d.drop]++
	d.total++
	d.most = max(d.most, n)
	limit := d.limit
	if limit == 0 {
		limit = maxDistinct
	}
	for len(d.counts) > limit {
		d.drop++
		coarse := make(map[int64]int64, len(d.counts)/2)
		for n, count := range d.counts {
			coarse[n>>1] += count
		}
		d.counts = coarse
	}
}

// quantile returns the smallest number that p percent of them do not exceed; 0 if there are none.
func (d *distribution) quantile(p int64) int64 {
	if d.total == 0 {
		return 0
	}
	rank := (d.total*p + 99) / 100
	for _, n := range slices.Sorted(maps.Keys(d.counts)) {
		if rank -= d.counts[n]; rank <= 0 {
			return min(n<<d.drop|(1<<d.drop-1), d.most)
		}
	}
	return d.most
}

// Quantiles of a distribution: half of the numbers are at most P50, and so on.
type Quantiles struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

func (d *distribution) quantiles() Quantiles {
	return Quantiles{d.quantile(50), d.quantile(95), d.quantile(99), d.most}
}

// percent returns a share with one decimal, rounded down; empty if the whole is 0.
func percent(part, whole *big.Int) json.Number {
	if whole.Sign() == 0 {
		return ""
	}
	n := new(big.Int).Mul(part, big.NewInt(1000))
	n.Quo(n, whole)
	tenths := new(big.Int)
	n.QuoRem(n, big.NewInt(10), tenths)
	return json.Number(n.String() + "." + tenths.String())
}

// addUp adds numbers. It stops at the bounds of 64 bits.
func addUp(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// multiply multiplies non-negative numbers; ok is false on overflow.
func multiply(a, b int64) (product int64, ok bool) {
	if a > 0 && b > (1<<63-1)/a {
		return 0, false
	}
	return a * b, true
}

// Speed describes the speed of a replay.
type Speed struct {
	WallMS              int64 `json:"wall_ms"`
	Operations          int64 `json:"operations"`
	OperationsPerSecond int64 `json:"operations_per_second"`
}

// NewSpeed returns the speed of operations that took a wall time.
func NewSpeed(operations int64, wall time.Duration) Speed {
	perSecond, ok := multiply(operations, int64(time.Second))
	if !ok {
		perSecond = operations
	}
	return Speed{wall.Milliseconds(), operations, perSecond / max(int64(wall), 1)}
}
