package model

import (
	"math/big"

	"github.com/weir-limiter/weir"
)

// room is what a window, a concurrency limit or a budget has left (2.2 to 2.4).
func room(l *weir.Limit, used *big.Int) *big.Int { return sub(num(l.Capacity), used) }

// fits: a cost n fits where what there is, is at least n. A cost of 0 is judged like any other, so
// it does not fit a limit in debt or over its capacity (2.1 to 2.4, 2.6).
func fits(_ weir.Kind, available, cost *big.Int) bool { return available.Cmp(cost) >= 0 }

// budgetUntil: a charge belongs to the period in which it was reserved (2.4), and counts until that
// one ends.
func (r *Rules) budgetUntil(l *weir.Limit, now int64) int64 {
	_, end := r.Period(l, now)
	return end
}

// budgetWait: until the next period starts (4.2). Only where the calendar was changed can there be
// units of several periods that have not ended.
func budgetWait(pieces []Piece, left *big.Int, now int64) *big.Int {
	return piecesWait(pieces, left, now)
}

// book: what is adjusted later belongs to the period of the reservation (2.4), and a refund goes
// into it (7.7).
func book(_ *weir.Limit, reserved *Piece, _ int64) (until int64) { return reserved.Until }
