package model

import (
	"math/big"
	"slices"
	"time"

	"github.com/weir-limiter/weir"
)

// Bucket is the state of a bucket.
type Bucket struct {
	// Balance is in milli-units; below zero it is debt.
	Balance *big.Int
	// At is the instant of Balance.
	At int64
	// Limit is the definition under which it was last used.
	Limit weir.Limit
}

func capacityMilli(l *weir.Limit) *big.Int { return mul(num(l.Capacity), num(milliPerUnit)) }

// credited returns ⌊t·r/p⌋: what a bucket has been credited up to t, in milli-units (2.1).
func credited(l *weir.Limit, t int64) *big.Int {
	return floorDiv(mul(num(t), refillMilli(l)), periodMS(l))
}

func refillMilli(l *weir.Limit) *big.Int { return mul(num(l.RefillAmount), num(milliPerUnit)) }

func periodMS(l *weir.Limit) *big.Int { return num(int64(l.RefillPeriod / time.Millisecond)) }

// Gain returns what a bucket gains between two instants if it does not get full: ⌊t1·r/p⌋ −
// ⌊t0·r/p⌋ milli-units (2.1).
func Gain(l *weir.Limit, from, to int64) *big.Int { return sub(credited(l, to), credited(l, from)) }

// Gained returns the bucket after it has gained some milli-units, up to its capacity (2.1), under
// the definition l: a lowered capacity trims the balance, and a raised one does not change it
// (8.2).
func (b Bucket) Gained(gain *big.Int, l *weir.Limit, now int64) Bucket {
	balance := b.Balance
	if full := capacityMilli(&b.Limit); balance.Cmp(full) < 0 {
		balance = least(add(balance, gain), full)
	}
	if l.Capacity < b.Limit.Capacity {
		balance = least(balance, capacityMilli(l))
	}
	return Bucket{balance, now, *l}
}

// touch returns a bucket as of now and under the definition l. The gain up to now is by the
// definition that the bucket had (8.2).
func (m *Model) touch(b Bucket, l *weir.Limit, now int64) Bucket {
	return m.points.Bucket.pass(BucketRead{b, l, now}, b.Gained(Gain(&b.Limit, b.At, now), l, now))
}

// Wait returns the time in milliseconds from now until the balance reaches want, or nil if it never
// will (4.2). The credit must grow by what is missing. It has done so at the first t at which t·r/p
// is at least the credit at the balance's instant plus what is missing.
func (b Bucket) Wait(want *big.Int, now int64) *big.Int {
	if want.Cmp(capacityMilli(&b.Limit)) > 0 {
		return nil
	}
	missing := sub(want, b.Balance)
	if missing.Sign() <= 0 {
		return num(0)
	}
	credit := add(credited(&b.Limit, b.At), missing)
	t := ceilDiv(mul(credit, periodMS(&b.Limit)), refillMilli(&b.Limit))
	return sub(t, num(now))
}

// refund returns the balance after units were given back to a bucket, at most its capacity (7.7).
func (m *Model) refund(l *weir.Limit, balance, back *big.Int) *big.Int {
	return m.points.Refund.pass(RefundedBalance{l, balance, back}, least(add(balance, back), capacityMilli(l)))
}

// Piece is a number of units that were taken together from a limit that is not a bucket.
type Piece struct {
	Units int64
	// Until is when they return by themselves; in a budget, when its period ends.
	Until int64
}

// returnsAt returns when units taken at now return.
func (m *Model) returnsAt(l *weir.Limit, now int64) int64 {
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
	return m.points.Until.pass(Expiry{Cause: Taken, From: now, Limit: l}, m.returnsAt(l, now))
}

// grownUntil returns when units that an update adds in a window return: together with those first
// reserved or, if these have returned, W from now (7.5).
func (m *Model) grownUntil(l *weir.Limit, pieces []*Piece, now int64) int64 {
	until := pieces[0].Until
	if m.returned(pieces[0], now) {
		until = m.returnsAt(l, now)
	}
	return m.points.Until.pass(Expiry{Cause: Grown, From: now, Limit: l, Pieces: pieces}, until)
}

// bookedUntil returns the end of the period that a change of a budget belongs to: the period of the
// reservation, for growth (2.4) and refunds (7.7).
func (m *Model) bookedUntil(l *weir.Limit, pieces []*Piece, now int64) int64 {
	return m.points.Until.pass(Expiry{Cause: Booked, From: now, Limit: l, Pieces: pieces}, pieces[0].Until)
}

// extendedUntil returns when slots return after an extend: T from now, unless they have timed out;
// then they stay returned (7.8).
func (m *Model) extendedUntil(l *weir.Limit, p *Piece, now int64) int64 {
	until := p.Until
	if !m.returned(p, now) {
		until = m.returnsAt(l, now)
	}
	return m.points.Until.pass(Expiry{Cause: Extended, From: now, Limit: l, Pieces: []*Piece{p}}, until)
}

// returned reports whether a piece no longer counts. Its units are free from its end on (2.2).
func (m *Model) returned(p *Piece, now int64) bool {
	return m.points.Returned.pass(PieceRead{p, now}, p.Until <= now)
}

// present returns the pieces that have not returned.
func (m *Model) present(pieces []*Piece, now int64) []*Piece {
	var out []*Piece
	for _, p := range pieces {
		if !m.returned(p, now) && p.Units != 0 {
			out = append(out, p)
		}
	}
	return out
}

// occupied returns the units of the pieces that have not returned.
func (m *Model) occupied(pieces []*Piece, now int64) *big.Int {
	total := new(big.Int)
	for _, p := range m.present(pieces, now) {
		total.Add(total, num(p.Units))
	}
	return total
}

// piecesWait returns the time in milliseconds from now until at most left units remain, or nil if
// that will never be. In a budget that is the start of the next period (4.2), unless the calendar
// was changed: then units of several periods may be in use.
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

// shrink returns the pieces after some units were given back, those added last first; less is their
// number. What remains keeps its end, and units that have returned by themselves do not return
// again (7.6).
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
