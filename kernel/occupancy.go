package kernel

import (
	"math"
	"slices"
)

// Window counts a window limit. See the package documentation.
type Window struct{ Occupancy }

// Concurrency counts a concurrency limit. See the package documentation.
type Concurrency struct{ Occupancy }

// Occupancy is the common part of [Window] and [Concurrency]: units that return by themselves.
//
// Units that are occupied for the same length return in the order in which they were taken, so
// there is one queue for each length. There is one length unless the definition was changed.
type Occupancy struct {
	// Capacity is the ceiling, in units.
	Capacity int64
	// LengthMS is how long units that are taken from now on stay occupied.
	LengthMS int64
	// SeenMS is the latest instant that the counter has seen.
	SeenMS int64
	// Queues has a queue for each length.
	Queues []LengthQueue
}

// LengthQueue has the units that are occupied for the same length.
type LengthQueue struct {
	LengthMS int64
	Queue
}

// NewWindow returns a window of which nothing is in use.
func NewWindow(now int64, d Definition) *Window { return &Window{newOccupancy(now, d)} }

// NewConcurrency returns a concurrency limit of which no slot is in use.
func NewConcurrency(now int64, d Definition) *Concurrency { return &Concurrency{newOccupancy(now, d)} }

func newOccupancy(now int64, d Definition) Occupancy {
	return Occupancy{Capacity: d.Capacity, LengthMS: d.LengthMS, SeenMS: now}
}

// Redefine implements [Counter]. Units that are occupied keep their ends.
func (o *Occupancy) Redefine(_ int64, d Definition) { o.Capacity, o.LengthMS = d.Capacity, d.LengthMS }

// touch moves the counter to now: units whose time is over return.
func (o *Occupancy) touch(now int64) {
	if now <= o.SeenMS {
		return // up to SeenMS everything has returned already
	}
	o.SeenMS = now
	for i := range o.Queues {
		o.Queues[i].Expire(now)
	}
	if len(o.Queues) > 1 {
		o.Queues = slices.DeleteFunc(o.Queues, func(q LengthQueue) bool { return q.Total() == 0 })
	}
}

// Available implements [Counter].
func (o *Occupancy) Available(now int64) int64 {
	if o.Idle(now, ForgetMS) {
		return o.Capacity
	}
	o.touch(now)
	return o.Capacity - o.total()
}

// total returns the units that are occupied at the latest instant seen.
func (o *Occupancy) total() (sum int64) {
	for i := range o.Queues {
		sum += o.Queues[i].Total()
	}
	return sum
}

// Occupied returns the units that are occupied at now. It does not modify the counter.
func (o *Occupancy) Occupied(now int64) (sum int64) {
	now = max(now, o.SeenMS)
	for i := range o.Queues {
		sum += o.Queues[i].Occupied(now)
	}
	return sum
}

// AvailableAt implements [Counter].
func (o *Occupancy) AvailableAt(now int64, d Definition) int64 { return d.Capacity - o.Occupied(now) }

// FitsAt implements [Counter]. It walks the queues in the order in which units return, until enough
// have returned.
func (o *Occupancy) FitsAt(now, n int64) int64 {
	at := max(now, o.SeenMS)
	over := o.total() - (o.Capacity - n)
	if len(o.Queues) == 1 {
		return o.Queues[0].FreeAt(at, over)
	}
	rest := make([][]Entry, len(o.Queues))
	for i := range o.Queues {
		rest[i] = o.Queues[i].pending()
	}
	for over > 0 {
		first := -1
		for i := range rest {
			if len(rest[i]) > 0 && (first < 0 || rest[i][0].UntilMS < rest[first][0].UntilMS) {
				first = i
			}
		}
		if first < 0 {
			return math.MaxInt64
		}
		over -= rest[first][0].Units
		at = max(at, rest[first][0].UntilMS)
		rest[first] = rest[first][1:]
	}
	return at
}

// CanCount implements [Counter].
func (o *Occupancy) CanCount(now int64, c Change) bool {
	return c.To-c.From <= math.MaxInt64-o.Occupied(now)
}

// Take implements [Counter]. It returns a piece even for no units, because units that the lease
// adds later return together with its first piece.
func (w *Window) Take(now, n int64) (Piece, bool) {
	w.touch(now)
	return w.add(n, w.SeenMS+w.LengthMS, w.LengthMS), true
}

// Take implements [Counter].
func (c *Concurrency) Take(now, n int64) (Piece, bool) {
	c.touch(now)
	return c.add(n, c.SeenMS+c.LengthMS, c.LengthMS), n > 0
}

// add occupies units until an instant, in the queue of their length.
func (o *Occupancy) add(n, until, length int64) Piece {
	p := Piece{Units: n, Until: until, Mark: length}
	if n == 0 {
		return p
	}
	for i := range o.Queues {
		if q := &o.Queues[i]; q.LengthMS == length {
			q.Add(until, n)
			return p
		}
	}
	o.Queues = append(o.Queues, LengthQueue{length, NewQueue([]Entry{{until, n}})})
	return p
}

// free returns n units of a piece early. It does nothing if they have returned by themselves.
func (o *Occupancy) free(p Piece, n int64) {
	for i := range o.Queues {
		if q := &o.Queues[i]; q.LengthMS == p.Mark {
			q.Remove(p.Until, p.Until, n)
			return
		}
	}
}

// Apply implements [Counter]. The first piece of a lease is kept even without units, because units
// that the lease adds later end with it.
func (w *Window) Apply(now int64, c Change) []Piece {
	grown := w.change(now, c)
	if c.Ends {
		return nil
	}
	out := make([]Piece, 0, len(c.Pieces)+1)
	keep := min(c.From, c.To)
	if len(c.Pieces) > 0 {
		first := c.Pieces[0]
		first.Units = min(first.Units, keep)
		keep -= first.Units
		out = append(out, first)
		c.Pieces = c.Pieces[1:]
	}
	return w.standing(out, c.Pieces, keep, grown)
}

// Apply implements [Counter].
func (c *Concurrency) Apply(now int64, claim Change) []Piece {
	grown := c.change(now, claim)
	if claim.Ends {
		return nil
	}
	out := make([]Piece, 0, len(claim.Pieces)+1)
	return c.standing(out, claim.Pieces, min(claim.From, claim.To), grown)
}

// change frees units of a lease, those added last first, or occupies more. These return with the
// first units of the lease or, if those have returned, after the length from now.
func (o *Occupancy) change(now int64, c Change) (grown Piece) {
	o.touch(now)
	if n := c.To - c.From; n > 0 {
		if len(c.Pieces) > 0 && c.Pieces[0].Until > o.SeenMS {
			return o.add(n, c.Pieces[0].Until, c.Pieces[0].Mark)
		}
		return o.add(n, o.SeenMS+o.LengthMS, o.LengthMS)
	}
	left := c.From - c.To
	for i := len(c.Pieces) - 1; i >= 0 && left > 0; i-- {
		n := min(left, c.Pieces[i].Units)
		o.free(c.Pieces[i], n)
		left -= n
	}
	return Piece{}
}

// standing appends the pieces that are left of a lease, with keep units in total, and then grown.
func (o *Occupancy) standing(out, pieces []Piece, keep int64, grown Piece) []Piece {
	for _, p := range pieces {
		p.Units = min(p.Units, keep)
		keep -= p.Units
		out = o.join(out, p)
	}
	return o.join(out, grown)
}

// join appends a piece, or adds its units to the last piece if both return at the same instant and
// have the same mark. Pieces whose units have returned by themselves only count, so neighbours of
// that sort are joined too. This keeps the number of pieces small after many adjusts.
func (o *Occupancy) join(out []Piece, p Piece) []Piece {
	if p.Units == 0 {
		return out
	}
	if n := len(out); n > 0 {
		last := &out[n-1]
		same := last.Until == p.Until && last.Mark == p.Mark
		if same || last.Until <= o.SeenMS && p.Until <= o.SeenMS {
			last.Units += p.Units
			return out
		}
	}
	return append(out, p)
}

// Extend renews the slots of a lease that have not timed out, for the length from now, and returns
// the pieces that the lease then has. If the counter is forgotten, all slots have timed out.
func (c *Concurrency) Extend(now int64, pieces []Piece) []Piece {
	if c.Idle(now, ForgetMS) {
		return pieces
	}
	c.touch(now)
	out := make([]Piece, 0, len(pieces))
	for _, p := range pieces {
		if p.Until > c.SeenMS {
			c.free(p, p.Units)
			p = c.add(p.Units, c.SeenMS+c.LengthMS, c.LengthMS)
		}
		out = c.join(out, p)
	}
	return out
}

// InUse implements [Counter].
func (o *Occupancy) InUse(now int64) bool { return o.Occupied(now) > 0 }

// Idle implements [Counter].
func (o *Occupancy) Idle(now, forMS int64) bool {
	return now-o.SeenMS >= forMS && o.Occupied(now-forMS) == 0
}

// Clone implements [Counter].
func (w *Window) Clone() Counter { return &Window{w.clone()} }

// Clone implements [Counter].
func (c *Concurrency) Clone() Counter { return &Concurrency{c.clone()} }

func (o *Occupancy) clone() Occupancy {
	out := *o
	out.Queues = slices.Clone(o.Queues)
	for i := range out.Queues {
		out.Queues[i].Queue = out.Queues[i].Queue.Clone()
	}
	return out
}
