package weir

import "slices"

// leaseRoom is a lease in one piece with the statuses of so many limits: callers keep both, and one
// piece of memory costs less than two.
type leaseRoom[Statuses any] struct {
	lease    Lease
	statuses Statuses
}

// planOutcome returns an outcome for the plan that was made. The call's lease lies beside its statuses.
func (c *call) planOutcome(e *leaseEntry) *Outcome {
	takes := c.planner.made.Takes
	out := &c.outcome
	*out = Outcome{Taken: slices.Grow(c.taken[:0], len(takes))[:len(takes)]}
	c.taken = out.Taken
	for i := range takes {
		out.Taken[i] = Taken{Units: takes[i].Cost()}
		if c.planner.entry != nil {
			out.Taken[i].Pieces = e.holdings[:len(takes)][i].Pieces[:0]
		}
	}
	out.Limits, c.lease = statuses(len(takes))
	return out
}

// statuses returns room for the statuses of n limits, and for a lease.
func statuses(n int) ([]LimitStatus, *Lease) {
	switch {
	case n == 1:
		room := &leaseRoom[[1]LimitStatus]{}
		return room.statuses[:], &room.lease
	case n <= 4:
		room := &leaseRoom[[4]LimitStatus]{}
		return room.statuses[:n:n], &room.lease
	case n <= 8:
		room := &leaseRoom[[8]LimitStatus]{}
		return room.statuses[:n:n], &room.lease
	}
	return make([]LimitStatus, n), &Lease{}
}

// holdings returns n holdings, those of a lease that has ended if there is one. Only their parts and
// pieces are of use, as memory.
func (p *planner) holdings(n int) []Holding {
	e := p.entry
	var room []Holding
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
