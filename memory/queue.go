package memory

import (
	"cmp"
	"slices"
)

// queue has the units that stay for one length, in the order in which they return.
type queue struct {
	length int64 // milliseconds
	ring   []entry
	// head is the position of the first entry: those before it have returned.
	head int
	// empty is how many of the entries have no units left.
	empty int
}

// entry is the units that return at one millisecond.
type entry struct{ until, units int64 }

func (q *queue) entries() []entry { return q.ring[q.head:] }

func (q *queue) len() int { return len(q.ring) - q.head }

// push adds units at the end, to the last entry if they return together.
func (q *queue) push(e entry) {
	if n := len(q.ring); n > q.head && q.ring[n-1].until == e.until {
		if q.ring[n-1].units == 0 {
			q.empty--
		}
		q.ring[n-1].units += e.units
		return
	}
	q.ring = append(q.ring, e)
}

// insert adds units at an instant that others may come after.
func (q *queue) insert(e entry) {
	i, ok := q.find(e.until)
	switch {
	case !ok:
		q.ring = slices.Insert(q.ring, q.head+i, e)
	case q.ring[q.head+i].units == 0:
		q.empty--
		fallthrough
	default:
		q.ring[q.head+i].units += e.units
	}
}

// find returns the place among the entries of the one that returns at an instant.
func (q *queue) find(until int64) (int, bool) {
	return slices.BinarySearchFunc(q.entries(), until, func(e entry, at int64) int {
		return cmp.Compare(e.until, at)
	})
}

// expire drops what returns by now and returns its units.
func (q *queue) expire(now int64) int64 {
	var units int64
	for q.head < len(q.ring) && q.ring[q.head].until <= now {
		if q.ring[q.head].units == 0 {
			q.empty--
		}
		units += q.ring[q.head].units
		q.head++
	}
	q.tidy()
	return units
}

// remove takes up to n units out of the entry that returns at an instant, and returns how many.
func (q *queue) remove(until, n int64) int64 {
	i, ok := q.find(until)
	if !ok {
		return 0
	}
	e := &q.ring[q.head+i]
	n = min(n, e.units)
	if n == 0 {
		return 0
	}
	if e.units -= n; e.units == 0 {
		q.empty++
	}
	q.tidy()
	return n
}

// tidy keeps entries that are of no use from outnumbering the others.
func (q *queue) tidy() {
	if q.head > len(q.ring)/2 || q.empty > q.len()/2 {
		q.compact()
	}
}

// compact moves the entries that have units to the front, and gives back memory where most of it is
// not needed.
func (q *queue) compact() {
	live := q.ring[:0]
	for _, e := range q.entries() {
		if e.units > 0 {
			live = append(live, e)
		}
	}
	const small = 64
	if cap(live) > small && len(live) < cap(live)/4 {
		live = append([]entry(nil), live...)
	}
	q.ring, q.head, q.empty = live, 0, 0
}

// returned is the first instant, not before now, by which n units have returned.
func (q *queue) returned(n, now int64) int64 {
	for _, e := range q.entries() {
		if n <= 0 {
			break
		}
		n -= e.units
		now = max(now, e.until)
	}
	return now
}
