package livetest

import (
	"cmp"
	"slices"
)

// Finding is the interval that came closest to more than the limit allows, or went furthest
// beyond.
type Finding struct {
	// ExcessMilli is by how much more was admitted than the limit allows, in milli-units; not
	// above zero in a right history.
	ExcessMilli int64
	// FromUS and ToUS are the interval, in Unix microseconds.
	FromUS, ToUS int64
}

// Check looks at every interval that ends with an admission: what was charged in it, less what
// was given back, may not exceed what the bucket can have held at its beginning and what it
// regained.
//
// An effect lies somewhere between two instants, so a charge counts where it surely lies inside
// and what was given back where it possibly does: a right history is never accused. A charge that
// is not judged counts only where an admission surely came after it.
func (h *History) Check() Finding {
	instants := make([]int64, 0, len(h.takes)+len(h.more))
	for _, charges := range [][]effect{h.takes, h.more} {
		for i := range charges {
			instants = append(instants, charges[i].before)
		}
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)
	s := &sweep{history: h, instants: instants, tree: newMaxTree(len(instants))}
	for i, at := range instants {
		s.tree.add(i, i, h.regained(floorMS(at))-h.capacityAt(at))
	}
	worst := Finding{ExcessMilli: -forever}
	for i := range h.takes {
		take := &h.takes[i]
		s.advance(take)
		value, from := s.tree.max(s.upTo(s.last))
		excess := value - h.regained(ceilMS(take.after)) - h.rounding
		if excess > worst.ExcessMilli {
			worst = Finding{excess, instants[from], take.after}
		}
	}
	return worst
}

// sweep goes through the ends of intervals in order. For each beginning, the tree has what was
// charged from there until now, less the capacity, and less what had been regained before the
// beginning counts as a plus, so that one figure for the end makes the comparison.
type sweep struct {
	history    *History
	instants   []int64 // the beginnings
	tree       *maxTree
	last       int64 // the latest beginning of an admission so far: one surely came after it
	more, less int   // how many of these have been counted
}

// advance moves the end to where an admission was answered.
func (s *sweep) advance(take *effect) {
	s.tree.add(0, s.upTo(take.before), take.milli)
	s.last = max(s.last, take.before)
	for ; s.more < len(s.history.more) && s.history.more[s.more].after <= s.last; s.more++ {
		e := &s.history.more[s.more]
		s.tree.add(0, s.upTo(e.before), e.milli)
	}
	for ; s.less < len(s.history.less) && s.history.less[s.less].before <= take.after; s.less++ {
		e := &s.history.less[s.less]
		s.tree.add(0, s.upTo(e.after), -e.milli)
	}
}

// upTo is the last beginning that is not after an instant; -1 if there is none.
func (s *sweep) upTo(at int64) int {
	n, found := slices.BinarySearchFunc(s.instants, at, cmp.Compare[int64])
	if found {
		return n
	}
	return n - 1
}

// capacityAt is the most that the capacity can have been at an instant, in milli-units.
func (h *History) capacityAt(at int64) int64 {
	var most int64
	for i := range h.eras {
		if h.eras[i].from > at {
			break
		}
		if i == len(h.eras)-1 || h.eras[i+1].sure > at {
			most = max(most, h.eras[i].limit.Capacity*milli)
		}
	}
	return most
}

// regained is the most that the bucket can have regained from the run's start until an instant in
// Unix milliseconds, in milli-units.
func (h *History) regained(ms int64) int64 {
	return h.gained(ms, func(a, b Limit) bool { return a.Refill*b.PeriodS > b.Refill*a.PeriodS })
}

// gained counts the better of two definitions while it is not certain which of them is in force.
func (h *History) gained(ms int64, better func(a, b Limit) bool) int64 {
	at, sum := h.world.StartUS/1000, int64(0)
	count := func(until int64, l Limit) {
		until = min(until, ms)
		if until > at {
			sum += (until - at) * l.Refill * milli / (l.PeriodS * 1000)
			at = until
		}
	}
	limit := h.eras[0].limit
	for _, next := range h.eras[1:] {
		count(next.from/1000, limit)
		if better(next.limit, limit) {
			limit = next.limit
		}
		count(next.sure/1000, limit)
		limit = next.limit
	}
	count(forever, limit)
	return sum
}

func floorMS(us int64) int64 { return us / 1000 }

func ceilMS(us int64) int64 { return (us + 999) / 1000 }
