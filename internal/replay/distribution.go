package replay

import (
	"maps"
	"slices"
)

// maxDistinct bounds how many different numbers a distribution tells apart.
const maxDistinct = 1 << 18

// distribution counts numbers of at least 0. It is exact as long as there are not too many
// different ones, and then rounds them up to multiples of 2, 4, 8 and so on, so that its size is
// bounded.
type distribution struct {
	counts map[int64]int64 // by the number, without its lowest bits
	drop   uint            // how many bits those are
	total  int64
	most   int64
	// limit is how many different numbers there may be. Default: maxDistinct.
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

// quantile returns the smallest of the numbers that p percent of them do not exceed; 0 without any.
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
