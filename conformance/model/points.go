package model

import (
	"math/big"
	"sync"

	"github.com/weir-limiter/weir"
	"github.com/weir-limiter/weir/driver"
)

// Point is a place in the model at which a variant may replace the right value. The function gets
// what the value was made of, and the right value. A nil Point leaves it as it is.
type Point[Of, V any] func(of Of, right V) V

func (p Point[Of, V]) pass(of Of, right V) V {
	if p == nil {
		return right
	}
	return p(of, right)
}

// Points are all places at which a variant can be wrong. The zero value is the right model. What a
// variant can do in front of a model, or by other settings, has no point here.
//
// Instants are Unix milliseconds. A *big.Int counts milli-units if the limit is a bucket, and units
// otherwise.
type Points struct {
	// Now is the instant that counts for a state, or for the lease table (1.3).
	Now Point[ClockReading, int64]
	// Key is what a limit's state is found by (8.5).
	Key Point[*weir.Limit, Key]
	// Bucket is a bucket brought up to now and under a definition (2.1, 2.5, 8.2).
	Bucket Point[BucketRead, Bucket]
	// Returned reports whether units no longer count (2.2, 2.3, 2.4).
	Returned Point[PieceRead, bool]
	// Until is when something ends by itself; see [Cause].
	Until Point[Expiry, int64]

	// Levels are the limits for a subject, the strongest level first (5.1, 5.2).
	Levels Point[weir.Subject, []weir.LevelLimits]
	// Takes is what a request asks of each limit, in the order of judging (3.2, 3.3, 3.7, 5.3).
	// Limits of which nothing is asked are there too, without parts.
	Takes Point[Planned, []*Take]
	// Refuse is the error of a check; nil if the check passes.
	Refuse Point[Check, error]

	// Fits reports whether a limit holds what is asked (2.1 to 2.4, 2.6).
	Fits Point[*Judged, bool]
	// Status is what an answer says of a limit (1.4, 4.2, 4.3).
	Status Point[*Judged, weir.LimitStatus]
	// SetSeen reports whether judging moves a limit's state to now (1.3, 8.4).
	SetSeen Point[SeenUpdate, bool]
	// Taking is what is taken after judging (3.1): all, or nothing if the request is denied.
	Taking Point[*JudgedRequest, []*Take]

	// Same reports whether two calls with one lease ID have the same content (6).
	Same Point[RepeatedCall, bool]
	// React is what a verb does to a lease: the table of section 6.
	React Point[TableCell, Reaction]
	// Horizon is the oldest time that an unknown lease ID may carry (6.2).
	Horizon Point[Horizon, int64]

	// StandFor is what a holding stands for after a settlement (7.1 to 7.5).
	StandFor Point[*UpdatedHolding, []driver.Part]
	// Shrink are the pieces of a holding after units were given back (7.6).
	Shrink Point[ShrunkHolding, []*Piece]
	// Refund is a bucket's balance after units were given back (7.7).
	Refund Point[RefundedBalance, *big.Int]
	// Under is the definition that a settlement works under (8.6).
	Under Point[DefinitionPair, *weir.Limit]
}

// Check is a check of a call, which may refuse it.
type Check struct {
	// Line is the contract's.
	Line string
	// Take is what is checked, if the check is about one limit.
	Take *Take
}

// refuse returns err, unless a variant leaves the check out.
func (m *Model) refuse(line string, err error) error {
	return m.refuseTake(line, nil, err)
}

func (m *Model) refuseTake(line string, t *Take, err error) error {
	return m.points.Refuse.pass(Check{line, t}, err)
}

// ClockReading is an instant that a call brought, and the latest one that is known.
type ClockReading struct {
	Now, Latest int64
	// Table is true for the lease table's time, false for that of a limit's state.
	Table bool
}

// BucketRead is a bucket that is looked at.
type BucketRead struct {
	// Was is what is known of it. Its Balance is nil if nobody has used it.
	Was Bucket
	// Limit is the definition by now.
	Limit *weir.Limit
	Now   int64
}

// PieceRead is a piece of what is in use.
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
	// Booked is a change of a budget (7.7).
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
	// From is when it began: the reservation, the settlement, the last use, the end of the lease.
	From int64
	// Limit is the limit's definition; nil for a lease.
	Limit *weir.Limit
	// Pieces are those that the holding had.
	Pieces []*Piece
	// Length is the option: the lease lifetime or the lease memory.
	Length int64
	// Timeout is the longest timeout of a lease's concurrency limits, IDTime the time in its ID.
	Timeout, IDTime int64
}

// Planned is a request with everyone that it reaches.
type Planned struct {
	*Content
	Reached []*ReachedSubject
}

// Judged is a limit that was looked at, and what was asked of it.
type Judged struct {
	*Take
	// Bucket or Pieces is what is in use: the pieces that have not returned.
	Bucket Bucket
	Pieces []*Piece
	// Available is what the limit has left under the take's ceiling, Asked what is asked.
	Available, Asked *big.Int
	// Wait is the time in milliseconds until the limit holds what was asked; nil if it never will.
	Wait *big.Int
	Now  int64
}

// SeenUpdate is the judging of one limit.
type SeenUpdate struct {
	// Denied is true if the request was denied, Known if there was a state.
	Denied, Known bool
}

// JudgedRequest is the judging of a whole request.
type JudgedRequest struct {
	Takes []*Take
	// Fits says for each take whether its limit holds it.
	Fits   []bool
	Denied bool
	// Lock is the model's, which is held.
	Lock sync.Locker
}

// RepeatedCall are two calls with one lease ID.
type RepeatedCall struct{ Was, Is *Content }

// UpdatedHolding is a holding and what a settlement asks for it.
type UpdatedHolding struct {
	*Holding
	Verb    weir.Verb
	Content *Content
	// Asked are the holding's parts with the totals in place.
	Asked []driver.Part
	// Totals are those of the call, one set for all charges or one for each.
	Totals []weir.Costs
}

// ShrunkHolding are pieces out of which units are given back.
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

// DefinitionPair is a lease's definition of a limit, and the one in force; nil if there is none.
type DefinitionPair struct{ Own, InForce *weir.Limit }
