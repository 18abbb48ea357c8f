package kernel

import (
	"cmp"
	"math"
	"slices"
)

// Queue has units that return by themselves, sorted by the instant at which they return. The zero
// value is empty. Adding units at the end takes constant time, and units of one length are always
// added at the end.
type Queue struct {
	ring []Entry
	// head is the index of the first entry. The entries before it have returned.
	head int
	// empty is the number of entries without units.
	empty int
	total int64
}

// Entry is the units that return at one instant.
type Entry struct{ UntilMS, Units int64 }

// NewQueue returns a queue of entries, which must be in strictly ascending order of their instants.
// The queue owns the slice afterwards.
func NewQueue(entries []Entry) Queue {
	q := Queue{ring: entries}
	for _, e := range entries {
		q.total += e.Units
	}
	return q
}

// Entries returns the units that have not returned, in ascending order. The slice belongs to the
// queue.
func (q *Queue) Entries() []Entry {
	if q.head > 0 || q.empty > 0 {
		q.compact()
	}
	return q.ring
}

// pending is like Entries, but includes entries without units.
func (q *Queue) pending() []Entry { return q.ring[q.head:] }

// Total returns the units in the queue. Units whose time is over count until Expire drops them.
func (q *Queue) Total() int64 { return q.total }

// Occupied returns the units that have not returned at now. It does not modify the queue.
func (q *Queue) Occupied(now int64) int64 {
	left := q.total
	for _, e := range q.pending() {
		if e.UntilMS > now {
			break
		}
		left -= e.Units
	}
	return left
}

// Add adds units that return at an instant.
func (q *Queue) Add(until, units int64) {
	if units == 0 {
		return
	}
	q.total += units
	last := len(q.ring) - 1
	if last < q.head || q.ring[last].UntilMS < until {
		q.ring = append(q.ring, Entry{until, units})
		return
	}
	i := last
	if q.ring[last].UntilMS != until {
		var found bool
		if i, found = q.find(until); !found {
			q.ring = slices.Insert(q.ring, i, Entry{until, units})
			return
		}
	}
	if q.ring[i].Units == 0 {
		q.empty--
	}
	q.ring[i].Units += units
}

// find returns the index of the first entry at or after an instant, and whether it is at the
// instant.
func (q *Queue) find(until int64) (int, bool) {
	i, found := slices.BinarySearchFunc(q.pending(), until, func(e Entry, at int64) int {
		return cmp.Compare(e.UntilMS, at)
	})
	return q.head + i, found
}

// Expire drops the units that have returned at now.
func (q *Queue) Expire(now int64) {
	for q.head < len(q.ring) && q.ring[q.head].UntilMS <= now {
		if q.ring[q.head].Units == 0 {
			q.empty--
		}
		q.total -= q.ring[q.head].Units
		q.head++
	}
	q.tidy()
}

// Remove removes up to n units that return from one instant to another, both included, the earliest
// first. It returns the number of units removed.
func (q *Queue) Remove(from, to, n int64) (removed int64) {
	for i, _ := q.find(from); i < len(q.ring) && q.ring[i].UntilMS <= to && n > 0; i++ {
		e := &q.ring[i]
		some := min(n, e.Units)
		if some == 0 {
			continue
		}
		if e.Units -= some; e.Units == 0 {
			q.empty++
		}
		n -= some
		removed += some
	}
	q.total -= removed
	q.tidy()
	return removed
}

// FreeAt returns the first instant, not before now, at which n of the units have returned. It is
// MaxInt64 if the queue has fewer.
func (q *Queue) FreeAt(now, n int64) int64 {
	for _, e := range q.pending() {
		if n <= 0 {
			break
		}
		if n -= e.Units; e.Units > 0 {
			now = max(now, e.UntilMS)
		}
	}
	if n > 0 {
		return math.MaxInt64
	}
	return now
}

// Clone returns a copy that shares no memory with the queue.
func (q *Queue) Clone() Queue {
	out := *q
	out.ring = slices.Clone(q.ring)
	return out
}

// tidy compacts the queue if more than half of the entries have returned or have no units, so that
// the cost of compacting is constant for each entry.
func (q *Queue) tidy() {
	if q.head > len(q.ring)/2 || q.empty > (len(q.ring)-q.head)/2 {
		q.compact()
	}
}

// compact moves the entries with units to the front, and frees memory if most of it is unused.
func (q *Queue) compact() {
	live := q.ring[:0]
	for _, e := range q.pending() {
		if e.Units > 0 {
			live = append(live, e)
		}
	}
	const small = 64
	if cap(live) > small && len(live) < cap(live)/4 {
		live = append([]Entry(nil), live...)
	}
	q.ring, q.head, q.empty = live, 0, 0
}
