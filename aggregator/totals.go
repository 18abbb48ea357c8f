package aggregator

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/internal/schema"
)

// Totals adds up the usage items of one resource for a day or a month: the hours of the day, or the
// days of the month. Other items are ignored. It returns a usage item for each entity with usage, in
// order. An entity with an item that cannot be read has none, with a fault.
func Totals(of weir.UsageWindow, at time.Time, items []schema.Item) ([]*schema.Usage, []*Fault) {
	parts := weir.Hourly
	if of == weir.Monthly {
		parts = weir.Daily
	}
	sums := make(map[string]*schema.Usage)
	bad := make(map[string]bool)
	var faults []*Fault
	for _, item := range items {
		key, err := schema.KeyOf(item)
		if err != nil {
			continue
		}
		_, entity, err := schema.ParseEntityPK(key.PK)
		if err != nil {
			continue
		}
		u, err := schema.ParseUsage(item)
		if err != nil {
			faults, bad[entity] = append(faults, &Fault{Key: key, Reason: err.Error()}), true
			continue
		}
		start, err := schema.ParseTimestamp(u.Start)
		if err != nil || u.Window != parts || !of.Start(start).Equal(of.Start(at)) ||
			u.WindowKey != schema.WindowKey(parts, start) {
			continue
		}
		id := schema.BucketID{Namespace: u.Namespace, Entity: entity, Resource: u.Resource}
		if sums[entity] == nil {
			sums[entity] = schema.NewUsage(id, of, at)
		}
		if !addUsage(sums[entity], u) {
			faults, bad[entity] = append(faults, &Fault{Key: key, Reason: "its sum is beyond 64 bits"}), true
		}
	}
	var totals []*schema.Usage
	for entity, sum := range sums {
		if !bad[entity] {
			totals = append(totals, sum)
		}
	}
	slices.SortFunc(totals, func(a, b *schema.Usage) int { return cmp.Compare(a.Entity, b.Entity) })
	return totals, faults
}

// addUsage adds a part to a sum, and reports whether all sums fit 64 bits.
func addUsage(sum, part *schema.Usage) bool {
	var fits bool
	if sum.Events, fits = plus(sum.Events, part.Events); !fits {
		return false
	}
	for _, limit := range slices.Sorted(maps.Keys(part.Counters)) {
		if sum.Counters[limit], fits = plus(sum.Counters[limit], part.Counters[limit]); !fits {
			return false
		}
	}
	for limit, n := range part.Overdrawn {
		if sum.Overdrawn == nil {
			sum.Overdrawn = make(map[string]int64)
		}
		if sum.Overdrawn[limit], fits = plus(sum.Overdrawn[limit], n); !fits {
			return false
		}
	}
	return true
}

// plus returns a + b, and reports whether it fits 64 bits.
func plus(a, b int64) (int64, bool) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, false
	}
	return a + b, true
}
