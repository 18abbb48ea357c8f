package conformance

import (
	"errors"
	"time"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/limiter"
)

const day = 24 * time.Hour

// largestBucket is the most units that a bucket holds.
const largestBucket = 9_223_372_036_854_775

// bucketOf returns a bucket that regains refill units in each period.
func bucketOf(name string, capacity, refill int64, period time.Duration) weir.Limit {
	return weir.Limit{
		Name: name, Kind: weir.Bucket, Capacity: capacity, RefillAmount: refill, RefillPeriod: period,
	}
}

func windowOf(name string, capacity int64, window time.Duration) weir.Limit {
	return weir.Limit{Name: name, Kind: weir.Window, Capacity: capacity, Window: window}
}

func slotsOf(name string, capacity int64, timeout time.Duration) weir.Limit {
	return weir.Limit{Name: name, Kind: weir.Concurrency, Capacity: capacity, Timeout: timeout}
}

func budgetOf(name string, capacity int64, every, zone string) weir.Limit {
	return weir.Limit{Name: name, Kind: weir.Budget, Capacity: capacity, Every: every, Zone: zone}
}

// slowLimit returns a limit that returns nothing by itself during a case.
func slowLimit(k weir.Kind, name string, capacity int64) weir.Limit {
	switch k {
	case weir.Bucket:
		return bucketOf(name, capacity, 1, 10*24*time.Hour)
	case weir.Window:
		return windowOf(name, capacity, 10*24*time.Hour)
	case weir.Concurrency:
		return slotsOf(name, capacity, 10*24*time.Hour)
	default:
		return budgetOf(name, capacity, "month", "")
	}
}

// shadowed returns the limit as a shadow limit.
func shadowed(l weir.Limit) weir.Limit {
	l.Shadow = true
	return l
}

// system returns a setup whose limits apply to every entity.
func system(limits ...weir.Limit) Setup { return Setup{Definitions: systemLimits(limits...)} }

func systemLimits(limits ...weir.Limit) *weir.Definitions { return &weir.Definitions{System: limits} }

// from returns the setup with another start.
func (s Setup) from(start time.Time) Setup {
	s.Start = start
	return s
}

// under returns the setup with limiter options.
func (s Setup) under(o limiter.Options) Setup {
	s.Options = o
	return s
}

// childAndParent returns a child that cascades to its parent, each with limits of its own.
func childAndParent(child, parent []weir.Limit) *weir.Definitions {
	own := func(limits []weir.Limit) map[string][]weir.Limit {
		if limits == nil {
			return nil
		}
		return map[string][]weir.Limit{weir.DefaultResource: limits}
	}
	return &weir.Definitions{Entities: map[string]weir.EntityDefinition{
		"parent": {Limits: own(parent)},
		"child":  {Parent: "parent", Cascade: true, Limits: own(child)},
	}}
}

func only(kinds ...weir.Kind) Needs { return Needs{Kinds: kinds} }

// timed returns the needs of a case with exact answers over long times.
func timed(kinds ...weir.Kind) Needs { return Needs{Kinds: kinds, Virtual: true, Exact: true} }

func allKinds() []weir.Kind {
	return []weir.Kind{weir.Bucket, weir.Window, weir.Concurrency, weir.Budget}
}

func isDenial(err error) bool {
	_, ok := errors.AsType[*weir.DeniedError](err)
	return ok
}

func isContended(err error) bool {
	denied, ok := errors.AsType[*weir.DeniedError](err)
	return ok && denied.Contended
}

// cost returns a cost of units of the limit n.
func cost(units int64) weir.Costs { return weir.Costs{"n": units} }
