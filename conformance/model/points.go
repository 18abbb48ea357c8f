package model

import (
	"math/big"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Point replaces a right value of the model with a variant's. The function gets what the value was
// computed from, and the right value. A nil Point keeps the right value.
type Point[Of, V any] func(of Of, right V) V

func (p Point[Of, V]) pass(of Of, right V) V {
	if p == nil {
		return right
	}
	return p(of, right)
}

// Points are the places at which a variant can change the model. The zero value is the right model.
// A mistake that can be made in front of a model, or by other settings, has no point here.
//
// Instants are Unix milliseconds. A *big.Int counts milli-units if the limit is a bucket, and units
// otherwise.
type Points struct {
	// Now is the instant that counts for a state, or for the lease table (1.3).
	Now Point[ClockReading, int64]
	// Key is the key of a limit's state (8.5).
	Key Point[*weir.Limit, Key]
	// Bucket is a bucket as of now and under the definition in force (2.1, 2.5, 8.2).
	Bucket Point[BucketRead, Bucket]
	// Returned reports whether units no longer count (2.2, 2.3, 2.4).
	Returned Point[PieceRead, bool]
	// Until is when something ends by itself; see [ExpiryCause].
	Until Point[Expiry, int64]

	// Levels are the limits of a subject, the strongest level first (5.1, 5.2).
	Levels Point[weir.Subject, []weir.LevelLimits]
	// Takes are the takes of a request, in the order of judging (3.2, 3.3, 3.7, 5.3). Limits of
	// which nothing is asked are included, without parts.
	Takes Point[Planned, []*Take]
	// Refuse is the error of a check; nil if the check passes.
	Refuse Point[Check, error]

	// Fits reports whether a take fits its limit (2.1 to 2.4, 2.6).
	Fits Point[*Judged, bool]
	// Status is the status of a limit in an answer (1.4, 4.2, 4.3).
	Status Point[*Judged, weir.LimitStatus]
	// SetSeen reports whether judging moves a limit's state to now (1.3, 8.4).
	SetSeen Point[SeenUpdate, bool]
	// Taking are the takes to carry out after judging (3.1): all of them, or none if the request is
	// denied.
	Taking Point[*JudgedRequest, []*Take]

	// Same reports whether two calls with one lease ID have the same content (6).
	Same Point[RepeatedCall, bool]
	// React is the reaction to a verb on a lease, by the table of section 6.
	React Point[TableCell, Reaction]
	// Horizon is the oldest time that an unknown lease ID may carry (6.2).
	Horizon Point[Horizon, int64]

	// StandFor are the parts that a holding stands for after an update (7.1 to 7.5).
	StandFor Point[*UpdatedHolding, []driver.Part]
	// Shrink is the pieces of a holding after units were given back (7.6).
	Shrink Point[ShrunkHolding, []*Piece]
	// Refund is the balance of a bucket after units were given back (7.7).
	Refund Point[RefundedBalance, *big.Int]
	// Under is the definition by which an update works (8.6).
	Under Point[DefinitionPair, *weir.Limit]
}

// Check is a check that may refuse a call.
type Check struct {
	// Line is the line of the contract.
	Line string
	// Take is the take that is checked, if the check is about one limit.
	Take *Take
}

// refuse returns err, unless a variant leaves the check out.
func (m *Model) refuse(line string, err error) error {
	return m.refuseTake(line, nil, err)
}

func (m *Model) refuseTake(line string, t *Take, err error) error {
	return m.points.Refuse.pass(Check{line, t}, err)
}

// ClockReading is the instant of a call, and the latest one known.
type ClockReading struct {
	Now, Latest int64
	// Table is set for the lease table's time. Otherwise it is the time of a limit's state.
	Table bool
}

// BucketRead is a bucket before it is brought up to now.
type BucketRead struct {
	// Was is the bucket's last state. Its Balance is nil if the bucket was never used.
	Was Bucket
	// Limit is the definition in force.
	Limit *weir.Limit
	Now   int64
}

// PieceRead is a piece when it is looked at.
type PieceRead struct {
	*Piece
	Now int64
}

// ExpiryCause is why something ends.
type ExpiryCause string

// The causes.
const (
	// Taken are units that were reserved (2.2, 2.3, 2.4).
	Taken ExpiryCause = "taken"
	// Grown are units that an adjust or a complete added in a window (7.5).
	Grown ExpiryCause = "grown"
	// Booked are units by which an update changes a budget (7.7).
	Booked ExpiryCause = "booked"
	// Extended are slots that an extend renewed (7.8).
	Extended ExpiryCause = "extended"
	// Kept is the state of a limit with nothing in use (8.4).
	Kept ExpiryCause = "kept"
	// Leased is a live lease (6.3).
	Leased ExpiryCause = "leased"
	// Remembered is an ended lease (6.4).
	Remembered ExpiryCause = "remembered"
)

// Expiry is something that ends by itself.
type Expiry struct {
	Cause ExpiryCause
	// From is when it began: the reservation, the update, the last use, or the end of the lease.
	From int64
	// Limit is the limit's definition; nil for a lease.
	Limit *weir.Limit
	// Pieces are the pieces that the holding had.
	Pieces []*Piece
	// Length is an option: the lease lifetime or the lease memory.
	Length int64
	// Timeout is the longest timeout of a lease's concurrency limits. IDTime is the time in its ID.
	Timeout, IDTime int64
}

// Planned is a request with every subject that it reaches.
type Planned struct {
	*Content
	Reached []*ReachedSubject
}

// Judged is a limit that was judged, and what was asked of it.
type Judged struct {
	*Take
	// Bucket or Pieces, by kind, holds the units in use. Pieces that have returned are left out.
	Bucket Bucket
	Pieces []*Piece
	// Available is the amount that the limit has left under the take's ceiling. Asked is the amount
	// asked.
	Available, Asked *big.Int
	// Wait is the time in milliseconds until the take fits; nil if it never will.
	Wait *big.Int
	Now  int64
}

// SeenUpdate is the judging of one limit.
type SeenUpdate struct {
	// Denied is set if the request was denied. Known is set if there was a state.
	Denied, Known bool
}

// JudgedRequest is the judging of a whole request.
type JudgedRequest struct {
	Takes []*Take
	// Fits says for each take whether it fits.
	Fits   []bool
	Denied bool
	// Lock is the model's mutex, which is held.
	Lock sync.Locker
}

// RepeatedCall is two calls with one lease ID.
type RepeatedCall struct{ Was, Is *Content }

// UpdatedHolding is a holding and what an update asks for it.
type UpdatedHolding struct {
	*Holding
	Verb    weir.Verb
	Content *Content
	// Asked are the holding's parts with the totals filled in.
	Asked []driver.Part
	// Totals are the call's totals: one set for all charges or one for each.
	Totals []weir.Costs
}

// ShrunkHolding is pieces from which units are given back.
type ShrunkHolding struct {
	Pieces []*Piece
	Less   int64
	Now    int64
}

// RefundedBalance is a balance to which units are given back.
type RefundedBalance struct {
	Limit         *weir.Limit
	Balance, Back *big.Int
}

// DefinitionPair is a lease's definition of a limit, and the one in force, or nil if there is none.
type DefinitionPair struct{ Own, InForce *weir.Limit }
