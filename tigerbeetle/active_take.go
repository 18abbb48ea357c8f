//go:build cgo

package tigerbeetle

import (
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
	"github.com/weir-limiter/weir/kernel"
)

// activeTake is a take of a plan, or of an update, while the store works on it. Other calls share
// its limitState, which has a mutex; the other fields belong to this call.
type activeTake struct {
	*limitState
	*driver.Take
	cost int64
	// belowCapacity is the capacity less the request's ceiling.
	belowCapacity int64
	// version is the version of the definitions that the take is judged by.
	version uint32
	// fromAnchor is the anchor that the chain replaces and nextAnchor the one that it writes, if
	// movesAnchor is set. They are copied when the move is claimed: the estimate may change before
	// the chain is sent, and a move from a later anchor could go back in time.
	fromAnchor, nextAnchor anchor
	movesAnchor            bool
	// fromForgotten is set if the bucket was forgotten, so that it starts full.
	fromForgotten bool
	// readInCall is set once the limit was read from the cluster during this call.
	readInCall bool
	// observed is the cluster's latest answer about the limit, as of one instant, if a denial is to
	// be judged by it; otherwise nil. The estimate may differ, because it also has what chains of
	// this server did during the read.
	observed *estimate
	// passed is set for a limit that the denial does not name: the cluster has checked it and found
	// enough, or the estimate said so at the time of the denial.
	passed bool
	// takes and returns are the units that the chain takes and gives back.
	takes, returns int64
	// refundsOnly is set if the chain takes nothing from the limit. skipped is set if the chain
	// does not touch the limit: an extend renews only slots.
	refundsOnly, skipped bool
	// period is the account of the budget's current period, which ends at periodEnd, in Unix
	// milliseconds.
	period    tb.Uint128
	periodEnd int64
	// mark is the mark of the piece that the take makes.
	mark int64
	// uncountable is set for a shadow limit whose account cannot count more units.
	uncountable bool
}

// need returns how many units of the capacity must be available for the take to fit.
func (s *activeTake) need() int64 { return s.cost + s.belowCapacity }

// capacity returns the capacity in force. For a bucket it is the one of the anchor, which may be
// newer than the plan.
func (s *activeTake) capacity() int64 {
	if k := &s.judgedBy().bucket; s.key.kind == weir.Bucket && k.anchor.b > 0 {
		return kernel.Units(k.anchor.rate.CapacityMilli)
	}
	return s.Limit.Capacity
}

// otherPeriodsUse returns what is in use of a budget in periods other than the current one, which
// come from another calendar, as far as this server knows.
func (s *activeTake) otherPeriodsUse() uint64 {
	var sum uint64
	for i := range s.periods {
		if s.periods[i].account != s.period {
			sum = min(sum+uint64(s.periods[i].used), fundUnits) // no ceiling is higher
		}
	}
	return sum
}

// includesOtherPeriods reports whether the check includes units that this server believes to be in
// use in other periods.
func (s *activeTake) includesOtherPeriods() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key.kind == weir.Budget && s.otherPeriodsUse() > 0
}

// headroom returns what must stay free in the account besides the cost, in the account's own units:
// the account's fund less the ceiling. s.mu is held.
func (s *activeTake) headroom() uint64 {
	l := s.Limit
	switch s.key.kind {
	case weir.Bucket:
	case weir.Budget: // use in periods of another calendar counts too
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

// judge writes the limit's status, as judgedBy has it. s.mu is held.
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

// judgedBy returns what the take is judged by: what was observed for a denial, or the estimate.
func (s *activeTake) judgedBy() *estimate {
	if s.observed != nil {
		return s.observed
	}
	return &s.estimate
}

// raiseEstimate raises what is believed to be available after the cluster found as much as was
// needed. It reports whether only another server can have returned the difference. s.mu is held.
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

// availableKnown returns the units that are believed to be available; of a bucket, under the
// definition that the chain would give it. s.mu is held.
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

// skipUncountable makes a take of a shadow bucket take nothing if the balance would no longer fit
// 64 bits.
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

// leaseEnd returns when a lease ends that would end at expires by its header. A lease does not end
// before its slots, and the cluster counts their timeouts from when it carries the chain out, a
// little later.
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

// lengthOf returns how long a unit of a window or a slot is occupied.
func lengthOf(l *weir.Limit) time.Duration {
	if l.Kind == weir.Window {
		return l.Window
	}
	return l.Timeout
}

// addInFlight adds n to the chains in flight of the limits of takes, with what the chain takes and
// returns: 1 when a chain is sent, and -1 when it has been answered.
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

// markUncertain records that the answer to a chain was lost. The cluster may have carried the chain
// out, so the limits are read again before their estimates are used.
func markUncertain(takes []*activeTake) {
	for _, take := range takes {
		take.mu.Lock()
		take.uncertain = true
		take.mu.Unlock()
	}
}
