package weir

import "time"

// leaseRoom is a lease in one piece with the statuses of so many limits: callers keep both, and one
// piece of memory costs less than two.
type leaseRoom[Statuses any] struct {
	lease    Lease
	statuses Statuses
}

// statuses returns room for the statuses of n limits, and keeps a lease that lies beside them.
func (p *planner) statuses(n int) []LimitStatus {
	r := p.r
	switch {
	case !p.recycles || n > 8:
		return make([]LimitStatus, n)
	case n == 1:
		room := &leaseRoom[[1]LimitStatus]{}
		r.lease = &room.lease
		return room.statuses[:]
	case n <= 4:
		room := &leaseRoom[[4]LimitStatus]{}
		r.lease = &room.lease
		return room.statuses[:n:n]
	default:
		room := &leaseRoom[[8]LimitStatus]{}
		r.lease = &room.lease
		return room.statuses[:n:n]
	}
}

// room returns n holdings, those of a lease that has ended where there is one. Only their parts and
// pieces are of use, as memory.
func (p *planner) room(n int) []Holding {
	var room []Holding
	e := p.r.entry
	if !p.recycles {
		e = nil
	}
	if e != nil {
		room = e.holdings[:cap(e.holdings)]
	}
	if len(room) < n {
		room = make([]Holding, n)
		parts := make([]Part, n)
		for i := range room {
			room[i].Parts = parts[i : i : i+1]
		}
	}
	if e != nil {
		e.holdings = room[:0]
	}
	return room[:n]
}

// Outcome returns the outcome of a settlement to fill in: it took effect at that instant.
func (s *Settlement) Outcome(at time.Time) *Outcome {
	if s.call == nil {
		return &Outcome{At: at}
	}
	s.call.outcome = Outcome{At: at}
	return &s.call.outcome
}
