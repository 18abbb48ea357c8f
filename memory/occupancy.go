package memory

import (
	"math"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// occupancy counts a window or a concurrency limit: units that return by themselves at an instant.
//
// Units that stay equally long return in the order in which they came, so there is one queue for
// each length. There is one length but where the definition was changed.
type occupancy struct {
	seen int64
	// total is the sum of the queues' units.
	total  int64
	queues []queue
}

// lengthOf is how long a unit of a limit is occupied, in milliseconds.
func lengthOf(l *weir.Limit) int64 {
	if l.Kind == weir.Window {
		return int64(l.Window / time.Millisecond)
	}
	return int64(l.Timeout / time.Millisecond)
}

// touch brings the occupancy to now: what has expired returns.
func (o *occupancy) touch(now int64) {
	if now <= o.seen {
		return // what had expired by then has returned
	}
	o.seen = now
	for i := range o.queues {
		o.total -= o.queues[i].expire(o.seen)
	}
	if len(o.queues) > 1 {
		o.queues = slices.DeleteFunc(o.queues, func(q queue) bool { return q.len() == 0 })
	}
}

func (o *occupancy) available(now int64, l *weir.Limit) int64 {
	if o.idle(now, forgetMS) {
		return l.Capacity
	}
	o.touch(now)
	return l.Capacity - o.total
}

// occupied returns the units that are still occupied at now, and changes nothing.
func (o *occupancy) occupied(now int64) int64 {
	now = max(now, o.seen)
	left := o.total
	for i := range o.queues {
		for _, e := range o.queues[i].entries() {
			if e.until > now {
				break
			}
			left -= e.units
		}
	}
	return left
}

func (o *occupancy) peek(now int64, l *weir.Limit) int64 { return l.Capacity - o.occupied(now) }

// freeAt walks the queues in the order of expiry until enough has returned.
func (o *occupancy) freeAt(now, want int64, l *weir.Limit) int64 {
	at := max(now, o.seen)
	over := o.total - (l.Capacity - want)
	if len(o.queues) == 1 {
		return o.queues[0].returned(over, at)
	}
	rest := make([][]entry, len(o.queues))
	for i := range o.queues {
		rest[i] = o.queues[i].entries()
	}
	for over > 0 {
		first := -1
		for i := range rest {
			if len(rest[i]) > 0 && (first < 0 || rest[i][0].until < rest[first][0].until) {
				first = i
			}
		}
		if first < 0 {
			return math.MaxInt64
		}
		over -= rest[first][0].units
		at = max(at, rest[first][0].until)
		rest[first] = rest[first][1:]
	}
	return at
}

func (o *occupancy) counts(now int64, c claim) bool {
	return c.to-c.from <= math.MaxInt64-o.occupied(now)
}

func (o *occupancy) take(now, n int64, l *weir.Limit) (weir.Piece, bool) {
	o.touch(now)
	length := lengthOf(l)
	if n == 0 {
		// What a window's lease grows by returns with what it reserved first, be that nothing.
		return weir.Piece{Until: o.seen + length, Mark: length}, l.Kind == weir.Window
	}
	return o.add(n, length), true
}

// add occupies units from the latest instant seen, for length.
func (o *occupancy) add(n, length int64) weir.Piece {
	o.total += n
	until := o.seen + length
	for i := range o.queues {
		if q := &o.queues[i]; q.length == length {
			q.push(entry{until, n})
			return weir.Piece{Units: n, Until: until, Mark: length}
		}
	}
	o.queues = append(o.queues, queue{length: length, ring: []entry{{until, n}}})
	return weir.Piece{Units: n, Until: until, Mark: length}
}

// free returns units of a piece before their time. A piece whose units have returned by themselves
// has nothing to free.
func (o *occupancy) free(p weir.Piece, n int64) {
	for i := range o.queues {
		if q := &o.queues[i]; q.length == p.Mark {
			o.total -= q.remove(p.Until, n)
			return
		}
	}
}

// settle lets units go, what was added last first, or occupies more from now on.
func (o *occupancy) settle(now int64, c claim) []weir.Piece {
	o.touch(now)
	var grown weir.Piece
	left := c.from - c.to
	if left < 0 {
		grown = o.grow(-left, c)
	}
	for i := len(c.pieces) - 1; i >= 0 && left > 0; i-- {
		n := min(left, c.pieces[i].Units)
		o.free(c.pieces[i], n)
		left -= n
	}
	if !c.lives {
		return nil
	}
	return o.standing(c, grown)
}

// grow occupies more units for a lease: until those first reserved return, or, if they have, from now
// on.
func (o *occupancy) grow(n int64, c claim) weir.Piece {
	if len(c.pieces) == 0 || c.pieces[0].Until <= o.seen {
		return o.add(n, lengthOf(c.limit))
	}
	first := c.pieces[0]
	o.total += n
	for i := range o.queues {
		if q := &o.queues[i]; q.length == first.Mark {
			q.insert(entry{first.Until, n})
			return weir.Piece{Units: n, Until: first.Until, Mark: first.Mark}
		}
	}
	o.queues = append(o.queues, queue{length: first.Mark, ring: []entry{{first.Until, n}}})
	return weir.Piece{Units: n, Until: first.Until, Mark: first.Mark}
}

// standing returns the pieces of a lease after a change. What has returned by itself only keeps its
// number, and neighbours of that sort become one, so that many adjusts leave few pieces.
func (o *occupancy) standing(c claim, grown weir.Piece) []weir.Piece {
	keep := min(c.from, c.to)
	out := make([]weir.Piece, 0, len(c.pieces)+1)
	for _, p := range c.pieces {
		p.Units = min(p.Units, keep)
		keep -= p.Units
		if len(out) == 0 && c.limit.Kind == weir.Window {
			out = append(out, p) // also of no units: its end is that of what grows
			continue
		}
		out = o.join(out, p)
	}
	return o.join(out, grown)
}

// join appends a piece, or adds it to the last one where they cannot be told apart.
func (o *occupancy) join(out []weir.Piece, p weir.Piece) []weir.Piece {
	if p.Units == 0 {
		return out
	}
	if n := len(out); n > 0 {
		last := &out[n-1]
		same := last.Until == p.Until && last.Mark == p.Mark
		if same || last.Until <= o.seen && p.Until <= o.seen {
			last.Units += p.Units
			return out
		}
	}
	return append(out, p)
}

// extend renews the pieces that have not timed out and returns all of them anew.
func (o *occupancy) extend(now int64, pieces []weir.Piece, l *weir.Limit) []weir.Piece {
	o.touch(now)
	out := make([]weir.Piece, 0, len(pieces))
	for _, p := range pieces {
		if p.Until > o.seen {
			o.free(p, p.Units)
			p = o.add(p.Units, lengthOf(l))
		}
		out = o.join(out, p)
	}
	return out
}

func (o *occupancy) inUse(now int64) bool { return o.occupied(now) > 0 }

func (o *occupancy) idle(now, forMS int64) bool {
	return now-o.seen >= forMS && o.occupied(now-forMS) == 0
}
