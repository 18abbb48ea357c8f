//go:build cgo

package tigerbeetle

import (
	"time"

	tb "github.com/tigerbeetle/tigerbeetle-go"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/kernel"
)

// seat is a take while it is reserved.
type seat struct {
	*spot
	take *weir.Take
	cost int64
	// lowered is by how much the request's ceiling is below the capacity.
	lowered int64
	// version is that of the definitions which the take goes by.
	version uint32
	// move is where the bucket's anchor goes with the chain; carries is true where it does.
	move    anchor
	carries bool
	// anew is true where the bucket begins anew, since it had been full for long.
	anew bool
	// asked is true once the cluster was asked about the limit during this call.
	asked bool
	// seen is what it said last, as of one instant, if it is to count for a denial: what the server
	// knows mixes that with chains on their way. Otherwise nil.
	seen *estimate
	// passed is true for a limit that a denial does not name: the cluster has checked it and
	// found enough, or what was known when it denied for another one did not say that this one is
	// exceeded.
	passed bool
	// adds and lets are the units that the chain takes, or gives back.
	adds, lets int64
	// refunds is true where nothing more is taken, spared where the limit is not asked at all: an
	// extend renews slots alone.
	refunds, spared bool
	// period is the account of the budget's period, and until when it is.
	period    tb.Uint128
	periodEnd int64
	// at is where the take's event is, as a mark.
	at int64
	// refused is true for a shadow limit that cannot count more.
	refused bool
}

// need is what must be available.
func (s *seat) need() int64 { return s.cost + s.lowered }

// capacity is that of the limit in force: where the bucket's anchor is of newer definitions,
// theirs.
func (s *seat) capacity() int64 {
	if k := &s.view().bucket; s.key.kind == weir.Bucket && k.anchor.b > 0 {
		return kernel.Units(k.anchor.rate.CapacityMilli)
	}
	return s.take.Limit.Capacity
}

// others is what a budget has in use in periods of another calendar, as this server knows it.
func (s *seat) others() uint64 {
	var sum uint64
	for i := range s.periods {
		if s.periods[i].account != s.period {
			sum = min(sum+uint64(s.periods[i].used), fundUnits) // no ceiling is above
		}
	}
	return sum
}

// reported is true where the cluster's check goes by what this server told it of other periods.
func (s *seat) reported() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key.kind == weir.Budget && s.others() > 0
}

// slack is what must be free beside the cost, in the account's own units.
func (s *seat) slack() uint64 {
	l := s.take.Limit
	switch s.key.kind {
	case weir.Bucket:
	case weir.Budget: // what was used in periods of another calendar counts too
		return fundUnits - uint64(s.take.Ceiling) + s.others()
	default:
		return fundUnits - uint64(s.take.Ceiling)
	}
	capacityMilli := l.Capacity * 1000
	if s.carries {
		capacityMilli = s.move.rate.CapacityMilli
	} else if s.bucket.anchor.b > 0 {
		capacityMilli = s.bucket.anchor.rate.CapacityMilli
	}
	return fundMilli - uint64(max(capacityMilli-s.lowered*1000, 0))
}

// judge writes the status as the limit is known to be.
func (s *seat) judge(now int64, status *weir.LimitStatus) {
	l := s.take.Limit
	available := s.known(now) - s.lowered
	if s.passed {
		available = max(available, s.cost)
	}
	*status = weir.LimitStatus{
		Entity: s.take.Entity, Resource: s.take.Resource, Limit: l.Name, Kind: l.Kind,
		Level: s.take.Level, Capacity: s.take.Ceiling, Available: available, Requested: s.cost,
		Exceeded: available < s.cost, Shadow: l.Shadow,
	}
	if status.Exceeded && s.cost <= s.take.Ceiling {
		at, bound := s.view().freeAt(s.key.kind, now, s.need(), s.capacity())
		status.RetryAfter, status.AtLeast = kernel.Until(now, at), bound
	}
}

// view is what the seat is judged by.
func (s *seat) view() *estimate {
	if s.seen != nil {
		return s.seen
	}
	return &s.estimate
}

// admitted raises what is believed to be available after the cluster has found as much as was
// needed. It reports whether other servers must have given something back.
func (s *seat) admitted(now int64) (elsewhere bool) {
	missing := s.need() - s.known(now)
	if s.take.Limit.Shadow || missing <= 0 {
		return false
	}
	switch s.key.kind {
	case weir.Bucket:
		s.bucket.balance += s.need()*1000 - s.bucket.at(now)
	case weir.Budget:
		p := s.current(0)
		p.used = max(p.used-missing, 0)
	default:
		s.holds.fewer(missing, s.latest(now))
	}
	return s.settling == 0
}

// known is what is available by what is known, in units; of a bucket under the definition that it
// has or is about to have.
func (s *seat) known(now int64) int64 {
	e := s.view()
	if s.key.kind != weir.Bucket {
		return e.available(s.key.kind, now, s.take.Limit.Capacity)
	}
	k := e.bucket
	if k.anchor.b == 0 {
		return s.take.Limit.Capacity
	}
	if s.changes() {
		to := k.anchor
		to.b, to.rate = max(to.b, now), rateOf(s.take.Limit)
		k.move(to, k.forgotten(now, s.touched))
	}
	return k.available(now)
}

// changes is true for a bucket whose next anchor will have another definition.
func (s *seat) changes() bool {
	a := &s.view().bucket.anchor
	if s.key.kind != weir.Bucket || s.key.Entity == "" || a.b == 0 {
		return false
	}
	return a.rate != rateOf(s.take.Limit) && !older(s.version, a.version)
}

// bound makes shadow limits that cannot count more take nothing: a balance has 64 bits.
func (c *reserving) bound(now int64) {
	for i := range c.seats {
		seat := &c.seats[i]
		if !seat.take.Limit.Shadow || seat.key.kind != weir.Bucket {
			continue
		}
		seat.mu.Lock()
		seat.refused = seat.refused || !seat.bucket.counts(now, seat.cost)
		seat.mu.Unlock()
	}
}

// outlives returns when a lease ends that its chain says ends at an instant: not before its slots,
// whose time the cluster counts from a moment later.
func outlives(expires time.Time, kind weir.Kind, pieces []weir.Piece) time.Time {
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

// fly notes that a chain is on its way to the spots of seats, or that it is back.
func fly(seats []*seat, n int64, settles bool) {
	for _, seat := range seats {
		seat.mu.Lock()
		seat.flights += n
		if n > 0 {
			seat.begun++
		}
		if settles {
			seat.settling += n
		}
		seat.adding += n * seat.adds
		seat.letting += n * seat.lets
		seat.mu.Unlock()
	}
}

// lost notes that the answer to a chain was lost. The cluster may have carried it out, so the
// limits are read before anything else is said of them.
func lost(seats []*seat) {
	for _, seat := range seats {
		seat.mu.Lock()
		seat.doubt = true
		seat.mu.Unlock()
	}
}
