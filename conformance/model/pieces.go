package model

import (
	"math/big"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// Piece is a number of units that were taken together from a limit that is no bucket.
type Piece struct {
	Units int64
	// Until is when they return by themselves: with a budget, when its period ends.
	Until int64
}

// windowUntil: a reservation occupies until reserved-at + W (2.2).
func windowUntil(l *weir.Limit, now int64) int64 { return now + int64(l.Window/time.Millisecond) }

// holdUntil: slots are held until T after the reservation or the last extend (2.3).
func holdUntil(l *weir.Limit, now int64) int64 { return now + int64(l.Timeout/time.Millisecond) }

// slots: a cost of n takes n slots (2.3).
func slots(cost int64) int64 { return cost }

// returned: at that instant it is free (2.2).
func returned(p *Piece, now int64) bool { return p.Until <= now }

// occupied is what the pieces that have not returned come to.
func (r *Rules) occupied(pieces []*Piece, now int64) *big.Int {
	total := new(big.Int)
	for _, p := range pieces {
		if !r.Returned(p, now) {
			total.Add(total, num(p.Units))
		}
	}
	return total
}

// piecesWait: until enough units have returned by themselves (4.2).
func piecesWait(pieces []Piece, left *big.Int, now int64) *big.Int {
	if left.Sign() < 0 {
		return nil
	}
	inOrder := slices.Clone(pieces)
	slices.SortFunc(inOrder, func(a, b Piece) int { return num(a.Until).Cmp(num(b.Until)) })
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

// grownUntil: the grown units return with those first reserved; learned of after these have returned,
// they are occupied for W from then (7.5).
func (r *Rules) grownUntil(l *weir.Limit, pieces []*Piece, now int64) int64 {
	if r.Returned(pieces[0], now) {
		return r.WindowUntil(l, now)
	}
	return pieces[0].Until
}

// shrink takes back what was added last first; what stays keeps its end, and what has returned by
// itself does not return again (7.6).
func shrink(pieces []*Piece, less, _ int64) {
	for _, p := range slices.Backward(pieces) {
		n := min(p.Units, less)
		p.Units -= n
		less -= n
	}
}

// extended: an extend renews the slots that have not timed out; one that has stays returned (7.8).
func (r *Rules) extended(p *Piece, l *weir.Limit, now int64) int64 {
	if r.Returned(p, now) {
		return p.Until
	}
	return r.HoldUntil(l, now)
}
