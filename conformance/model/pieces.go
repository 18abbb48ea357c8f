package model

import (
	"math/big"
	"slices"

	"github.com/weir-limiter/weir"
)

// Piece is a number of units that were taken together from a limit that is no bucket.
type Piece struct {
	Units int64
	// Until is when they return by themselves; in a budget, when its period ends.
	Until int64
}

// end is when units return that are taken at now.
func (m *Model) end(l *weir.Limit, now int64) int64 {
	switch l.Kind {
	case weir.Window: // a reservation occupies until reserved-at + W (2.2)
		return now + l.Window.Milliseconds()
	case weir.Concurrency: // slots are held until T after the reservation or the last extend (2.3)
		return now + l.Timeout.Milliseconds()
	default: // a charge belongs to the period in which it was reserved (2.4)
		_, end := m.calendar.Period(l, now)
		return end
	}
}

func (m *Model) takenUntil(l *weir.Limit, now int64) int64 {
	return m.points.Until.pass(Term{Cause: Taken, From: now, Limit: l}, m.end(l, now))
}

// grownUntil: the grown units of a window return with those first reserved; learned of after these
// have returned, they are occupied for W from then (7.5).
func (m *Model) grownUntil(l *weir.Limit, pieces []*Piece, now int64) int64 {
	until := pieces[0].Until
	if m.returned(pieces[0], now) {
		until = m.end(l, now)
	}
	return m.points.Until.pass(Term{Cause: Grown, From: now, Limit: l, Pieces: pieces}, until)
}

// bookedUntil: what is adjusted later belongs to the period of the reservation (2.4), and a refund goes
// into it (7.7).
func (m *Model) bookedUntil(l *weir.Limit, pieces []*Piece, now int64) int64 {
	return m.points.Until.pass(Term{Cause: Booked, From: now, Limit: l, Pieces: pieces}, pieces[0].Until)
}

// extendedUntil: an extend renews the slots that have not timed out; one that has stays returned (7.8).
func (m *Model) extendedUntil(l *weir.Limit, p *Piece, now int64) int64 {
	until := p.Until
	if !m.returned(p, now) {
		until = m.end(l, now)
	}
	return m.points.Until.pass(Term{Cause: Extended, From: now, Limit: l, Pieces: []*Piece{p}}, until)
}

// returned: at the instant until which units are occupied they are free (2.2).
func (m *Model) returned(p *Piece, now int64) bool {
	return m.points.Returned.pass(Counted{p, now}, p.Until <= now)
}

// present are the pieces that have not returned.
func (m *Model) present(pieces []*Piece, now int64) []*Piece {
	var out []*Piece
	for _, p := range pieces {
		if !m.returned(p, now) && p.Units != 0 {
			out = append(out, p)
		}
	}
	return out
}

// occupied is what the pieces that have not returned come to.
func (m *Model) occupied(pieces []*Piece, now int64) *big.Int {
	total := new(big.Int)
	for _, p := range m.present(pieces, now) {
		total.Add(total, num(p.Units))
	}
	return total
}

// piecesWait is the time in milliseconds from now until so many units have returned by themselves that
// what remains is at most left; nil if that will never be. With a budget, that is when the next period
// starts (4.2), unless the calendar was changed: then there can be units of several periods.
func piecesWait(pieces []*Piece, left *big.Int, now int64) *big.Int {
	if left.Sign() < 0 {
		return nil
	}
	inOrder := slices.Clone(pieces)
	slices.SortFunc(inOrder, func(a, b *Piece) int { return num(a.Until).Cmp(num(b.Until)) })
	total := new(big.Int)
	for _, p := range inOrder {
		total.Add(total, num(p.Units))
	}
	for _, p := range inOrder {
		if total.Sub(total, num(p.Units)).Cmp(left) <= 0 {
			return sub(num(p.Until), num(now))
		}
	}
	return nil
}

// shrink takes back what was added last first; what stays keeps its end, and what has returned by
// itself does not return again (7.6).
func shrink(pieces []*Piece, less int64) []*Piece {
	out := copies(pieces)
	for _, p := range slices.Backward(out) {
		n := min(p.Units, less)
		p.Units -= n
		less -= n
	}
	return out
}

func copies(pieces []*Piece) []*Piece {
	var out []*Piece
	for _, p := range pieces {
		out = append(out, new(*p))
	}
	return out
}
