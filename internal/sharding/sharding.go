// Package sharding has the rules by which a bucket on a DynamoDB table is divided among the items of
// its shards. The store, which writes them, and the aggregator, which splits hot buckets ahead of
// it, go by the same ones.
package sharding

import (
	"github.com/weir-limiter/weir/internal/schema"
	"github.com/weir-limiter/weir/kernel"
)

// Share returns the share that one of n shards has of a limit, rounded down.
func Share(l *schema.BucketLimit, n int) kernel.Rate {
	return kernel.Rate{
		CapacityMilli: l.Capacity / int64(n), RefillMilli: l.Refill / int64(n), PeriodMS: l.PeriodMS,
	}
}
