//go:build cgo

package tigerbeetle

import (
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// activeTake is a take of a plan while the store works on it.
type activeTake struct {
	*limitState
	*driver.Take
	cost int64
	// belowCapacity is by how much the request's ceiling is below the capacity.
	belowCapacity int64
	// version is that of the definitions by which the take is judged.
	version uint32
	// fromAnchor is the bucket's anchor that the chain moves, and nextAnchor the one after it, if
	// movesAnchor is set. What is known may change before the chain is sent: a move from a later
	// anchor could go back.
	fromAnchor, nextAnchor anchor
	movesAnchor            bool
	// fromForgotten is set if the bucket was forgotten, so that it starts full.
	fromForgotten bool
	// readInCall is set once the limit was read from the cluster during this call.
	readInCall bool
	// observed is what the cluster said last, as of one instant, if a denial is to go by it: the
	// estimate also has chains in flight. Otherwise nil.
	observed *estimate
	// passed is set for a limit that a denial does not name: the cluster has checked it and found
	// enough, or by the estimate at the time of the denial it was not exceeded.
	passed bool
	// takes and returns are the units that the chain takes or gives back.
	takes, returns int64
	// refundsOnly is set if nothing more is taken, skipped if the chain does not touch the limit:
	// an extend renews only slots.
	refundsOnly, skipped bool
	// period is the account of the budget's period, which ends at periodEnd in Unix milliseconds.
	period    tb.Uint128
	periodEnd int64
	// mark is that of the piece that the take makes.
	mark int64
	// uncountable is set for a shadow limit that cannot count more.
	uncountable bool
}

// need is what must be available.
func (s *activeTake) need() int64 { return s.cost + s.belowCapacity }

// capacity is that of the limit in force: for a bucket, the one of its anchor, which may be newer
// than the plan.
func (s *activeTake) capacity() int64 {
	if k := &s.judgedBy().bucket; s.key.kind == weir.Bucket && k.anchor.b > 0 {
		return kernel.Units(k.anchor.rate.CapacityMilli)
	}
	return s.Limit.Capacity
}

// otherPeriodsUse is what a budget has in use in periods of another calendar, as this server knows
// it.
func (s *activeTake) otherPeriodsUse() uint64 {
	var sum uint64
	for i := range s.periods {
		if s.periods[i].account != s.period {
			sum = min(sum+uint64(s.periods[i].used), fundUnits) // no ceiling is above
		}
	}
	return sum
}

// includesOtherPeriods reports whether the cluster's check includes what this server knows of
// other periods.
func (s *activeTake) includesOtherPeriods() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key.kind == weir.Budget && s.otherPeriodsUse() > 0
}

// headroom is what must stay free besides the cost, in the account's own units.
func (s *activeTake) headroom() uint64 {
	l := s.Limit
	switch s.key.kind {
	case weir.Bucket:
	case weir.Budget: // what was used in periods of another calendar counts too
		return fundUnits - uint64(s.Ceiling) + s.otherPeriodsUse()
	default:
		return fundUnits - uint64(s.Ceiling)
	}
	capacityMilli := l.Capacity * 1000
	if s.movesAnchor {
		capacityMilli = s.nextAnchor.rate.CapacityMilli
	} else if s.bucket.anchor.b > 0 {
		capacityMilli = s.bucket.anchor.rate.CapacityMilli
	}
	return fundMilli - uint64(max(capacityMilli-s.belowCapacity*1000, 0))
}

// judge writes the limit's status by the estimate.
func (s *activeTake) judge(now int64, status *weir.LimitStatus) {
	l := s.Limit
	available := s.availableKnown(now) - s.belowCapacity
	if s.passed {
		available = max(available, s.cost)
	}
	*status = weir.LimitStatus{
		Entity: s.Entity, Resource: s.Resource, Limit: l.Name, Kind: l.Kind,
		Level: s.Level, Capacity: s.Ceiling, Available: available, Requested: s.cost,
		Exceeded: available < s.cost, Shadow: l.Shadow,
	}
	if status.Exceeded && s.cost <= s.Ceiling {
		at, bound := s.judgedBy().freeAt(s.key.kind, now, s.need(), s.capacity())
		status.RetryAfter, status.AtLeast = kernel.Until(now, at), bound
	}
}

// judgedBy is what the take is judged by.
func (s *activeTake) judgedBy() *estimate {
	if s.observed != nil {
		return s.observed
	}
	return &s.estimate
}

// raiseEstimate raises what is estimated to be available, after the cluster has found as much as
// was needed. It reports whether other servers must have given something back.
func (s *activeTake) raiseEstimate(now int64) (elsewhere bool) {
	missing := s.need() - s.availableKnown(now)
	if s.Limit.Shadow || missing <= 0 {
		return false
	}
	switch s.key.kind {
	case weir.Bucket:
		s.bucket.balance += s.need()*1000 - s.bucket.balanceAt(now)
	case weir.Budget:
		p := s.current(0)
		p.used = max(p.used-missing, 0)
	default:
		s.expiring.lower(missing, s.latestEnd(now))
	}
	return s.updatesInFlight == 0
}

// availableKnown is what is available by the estimate, in units; of a bucket, by the definition
// that it has or is about to get.
func (s *activeTake) availableKnown(now int64) int64 {
	e := s.judgedBy()
	if s.key.kind != weir.Bucket {
		return e.available(s.key.kind, now, s.Limit.Capacity)
	}
	k := e.bucket
	if k.anchor.b == 0 {
		return s.Limit.Capacity
	}
	if s.redefinesLocked() {
		to := k.anchor
		to.b, to.rate = max(to.b, now), rateOf(s.Limit)
		k.move(to, k.forgotten(now, s.touched))
	}
	return k.available(now)
}

// redefinesLocked reports whether the limit is a bucket whose next anchor will have another
// definition. s.mu is held.
func (s *activeTake) redefinesLocked() bool {
	a := &s.judgedBy().bucket.anchor
	if s.key.kind != weir.Bucket || s.key.Entity == "" || a.b == 0 {
		return false
	}
	return a.rate != rateOf(s.Limit) && !olderVersion(s.version, a.version)
}

// skipUncountable lets shadow limits that cannot count more take nothing: a balance has 64 bits.
func (c *reserveOp) skipUncountable(now int64) {
	for _, take := range c.takes {
		if !take.Limit.Shadow || take.key.kind != weir.Bucket {
			continue
		}
		take.mu.Lock()
		take.uncountable = take.uncountable || !take.bucket.fits(now, take.cost)
		take.mu.Unlock()
	}
}

// leaseEnd returns when a lease ends that its chain says ends at an instant: not before its slots,
// whose time the cluster counts from a moment later.
func leaseEnd(expires time.Time, kind weir.Kind, pieces []driver.Piece) time.Time {
	if kind != weir.Concurrency {
		return expires
	}
	for _, p := range pieces {
		if until := time.UnixMilli(p.Until); p.Units > 0 && until.After(expires) {
			expires = until
		}
	}
	return expires
}

// lengthOf is how long a unit is occupied.
func lengthOf(l *weir.Limit) time.Duration {
	if l.Kind == weir.Window {
		return l.Window
	}
	return l.Timeout
}

// addInFlight counts a chain in flight, with n of 1, or its return, with -1, on the limits of its
// takes.
func addInFlight(takes []*activeTake, n int64, settles bool) {
	for _, take := range takes {
		take.mu.Lock()
		take.inFlight += n
		if n > 0 {
			take.begun++
		}
		if settles {
			take.updatesInFlight += n
		}
		take.addingInFlight += n * take.takes
		take.returningInFlight += n * take.returns
		take.mu.Unlock()
	}
}

// markUncertain records that the answer to a chain was lost. The cluster may have carried it out,
// so the limits are read again before they are estimated.
func markUncertain(takes []*activeTake) {
	for _, take := range takes {
		take.mu.Lock()
		take.uncertain = true
		take.mu.Unlock()
	}
}
