//go:build cgo

package tigerbeetle

import (
	"math"
	"slices"
	"sort"
)

// hold is a number of units that return by themselves at an instant.
type hold struct{ until, units int64 }

// holdsKnown is what is known of a window or a concurrency limit: holds in the order in which they
// end, and how many units others hold of which only the number is known.
type holdsKnown struct {
	list  []hold
	first int // what comes before has ended
	total int64
	// others is the number, as it was read; its ends are unknown.
	others int64
	// until is when the last of them ends at the latest.
	until int64
}

// expire drops what has ended.
func (h *holdsKnown) expire(now int64) {
	if now >= h.until {
		h.others = 0
	}
	for h.first < len(h.list) && h.list[h.first].until <= now {
		h.total -= h.list[h.first].units
		h.first++
	}
	if h.first > 64 && h.first > len(h.list)/2 {
		h.list = slices.Delete(h.list, 0, h.first)
		h.first = 0
	}
}

// occupied is what is held at an instant.
func (h *holdsKnown) occupied(now int64) int64 {
	h.expire(now)
	return h.total + h.others
}

// add notes units.
func (h *holdsKnown) add(until, units int64) {
	if units == 0 {
		return
	}
	h.total += units
	at := h.search(until)
	if at < len(h.list) && h.list[at].until == until {
		h.list[at].units += units
		return
	}
	h.list = slices.Insert(h.list, at, hold{until, units})
}

// clone is a copy.
func (h *holdsKnown) clone() holdsKnown {
	c := *h
	c.list = slices.Clone(h.list[h.first:])
	c.first = 0
	return c
}

// fewer takes in that n units less are held than was known.
func (h *holdsKnown) fewer(n, until int64) {
	if n <= h.others {
		h.others -= n
		return
	}
	*h = holdsKnown{others: max(h.total+h.others-n, 0), until: until}
}

// lateMS is by how much the cluster may end a hold later than its lease believes, in milliseconds.
const lateMS = 1000

// remove forgets units that returned early. A hold that was made anew, and read from the cluster
// since, ends a little later there; one of which only the number is known is among the others.
func (h *holdsKnown) remove(until, units int64) {
	for at := h.search(until); at < len(h.list) && h.list[at].until <= until+lateMS; at++ {
		n := min(units, h.list[at].units)
		h.list[at].units -= n
		h.total -= n
		units -= n
	}
	h.others = max(h.others-units, 0)
}

func (h *holdsKnown) search(until int64) int {
	return h.first + sort.Search(len(h.list)-h.first, func(i int) bool { return h.list[h.first+i].until >= until })
}

// freeAt is the first instant at which no more than most units are held, and whether it may be
// later: what others hold counts as what returns first, since nobody knows when it does.
func (h *holdsKnown) freeAt(now, most int64) (at int64, bound bool) {
	h.expire(now)
	at, bound = now, h.others > 0
	over := h.total - most
	for _, e := range h.list[h.first:] {
		if over <= 0 {
			break
		}
		if e.units > 0 {
			over -= e.units
			at = e.until
		}
	}
	if over > 0 {
		return math.MaxInt64, false
	}
	if bound {
		at = max(at, now+1)
	}
	return at, bound
}
