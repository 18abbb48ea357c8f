package livetest

import (
	"cmp"
	"slices"
)

// Finding is the interval that came closest to exceeding the limit, or exceeded it the most.
type Finding struct {
	// ExcessMilli is the number of milli-units admitted beyond the limit. In a correct history it
	// is not above 0.
	ExcessMilli int64
	// FromUS and ToUS bound the interval, in Unix microseconds.
	FromUS, ToUS int64
}

// Check looks at every interval that ends with an admission. The charges in it, less the refunds,
// must not exceed the capacity at its beginning plus the gain in it.
//
// An effect lies between two instants, so a charge counts if it certainly lies in the interval, and
// a refund if it possibly does: a correct history never fails. A charge that is not judged counts
// only if an admission certainly came after it.
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
		value, from := s.tree.prefixMax(s.upTo(s.last))
		excess := value - h.regained(ceilMS(take.after)) - h.rounding
		if excess > worst.ExcessMilli {
			worst = Finding{excess, instants[from], take.after}
		}
	}
	return worst
}

// sweep moves the end of the intervals forward. For each beginning, the tree holds the charges from
// there until the end, less the capacity, plus the gain from the start of the run until the
// beginning. So subtracting one number, the gain until the end, gives the excess for every
// beginning.
type sweep struct {
	history    *History
	instants   []int64 // the beginnings of the intervals, in order
	tree       *maxTree
	last       int64 // an admission certainly came after it
	more, less int   // the numbers of effects of the history counted so far
}

// advance moves the end to the answer of an admission.
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

// upTo returns the index of the last beginning that is not after an instant; -1 if there is none.
func (s *sweep) upTo(at int64) int {
	n, found := slices.BinarySearchFunc(s.instants, at, cmp.Compare[int64])
	if found {
		return n
	}
	return n - 1
}

// capacityAt returns the highest capacity that the limit can have had at an instant, in
// milli-units.
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

// regained returns the highest gain that the bucket can have had from the start of the run until an
// instant in Unix milliseconds, in milli-units.
func (h *History) regained(ms int64) int64 {
	return h.gained(ms, func(a, b Limit) bool { return a.Refill*b.PeriodS > b.Refill*a.PeriodS })
}

// gained returns the gain until an instant. While it is uncertain which of two definitions is in
// force, the better one counts.
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
