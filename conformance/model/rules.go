package model

import (
	"math/big"
	"reflect"
	"sync"
	"time"

	"github.com/weir-limiter/weir"
)

// Rules are the sentences of docs/semantics.md as functions. A nil one is the right one; a test
// sets one to a wrong one. Instants are Unix milliseconds; a *big.Int counts milli-units where the
// kind is a bucket and units elsewhere.
type Rules struct {
	NumberRules
	KindRules
	ReserveRules
	DenialRules
	LeaseRules
	SettleRules
	ConfigRules
}

// NumberRules are section 1.
type NumberRules struct {
	// Instant is the millisecond that an instant falls in (1.2).
	Instant func(t time.Time) int64
	// Now is the instant that counts for a state that has seen another (1.3).
	Now func(now, seen int64) int64
	// Units are whole units, rounded down (1.4).
	Units func(amount *big.Int, scale int64) int64
	// Sum adds up, and says whether the sum fits (1.1, 7.11).
	Sum func(amounts ...int64) (int64, bool)
	// BucketMost is the most units that a bucket can be asked for (1.1).
	BucketMost func() int64
}

// KindRules are section 2, and what section 8 says of a bucket.
type KindRules struct {
	// Fresh is the balance of a new bucket (2.5).
	Fresh func(l *weir.Limit) *big.Int
	// Gain is what a bucket regains between two instants, regardless of its capacity (2.1).
	Gain func(l *weir.Limit, from, to int64) *big.Int
	// Fill is a balance and what it gained, up to the capacity (2.1).
	Fill func(l *weir.Limit, balance, gained *big.Int) *big.Int
	// Trim is what a lowered capacity leaves of a balance (8.2).
	Trim func(l *weir.Limit, balance *big.Int) *big.Int
	// Touch brings a bucket up to now and under a definition (8.2).
	Touch func(b Bucket, l *weir.Limit, now int64) Bucket
	// Forgotten is true where a bucket counts as new (8.4).
	Forgotten func(b Bucket, now int64) bool
	// WindowUntil is when units return that were taken at now (2.2).
	WindowUntil func(l *weir.Limit, now int64) int64
	// HoldUntil is when slots return that were taken at now (2.3).
	HoldUntil func(l *weir.Limit, now int64) int64
	// Slots is how many slots a cost takes (2.3).
	Slots func(cost int64) int64
	// Returned is true where a piece no longer counts (2.2, 2.3).
	Returned func(p *Piece, now int64) bool
	// Period is the calendar period around an instant (2.4).
	Period func(l *weir.Limit, now int64) (start, end int64)
	// Room is what a window, a concurrency limit or a budget has left.
	Room func(l *weir.Limit, used *big.Int) *big.Int
	// Fits is true where a cost fits into what there is (2.1 to 2.4, 2.6).
	Fits func(k weir.Kind, available, cost *big.Int) bool
	// KeyOf is what a limit's state is found by (8.5).
	KeyOf func(s weir.Subject, l *weir.Limit) Key
}

// ReserveRules are sections 3, 5 and 9.
type ReserveRules struct {
	// Malformed is what is wrong with a request by itself (3.2, 6).
	Malformed func(charges []weir.Charge, slash bool) error
	// Levels are all that have limits for a subject, the strongest first (5.1).
	Levels func(stored *weir.Config, limiter []weir.Limit) []weir.LevelLimits
	// Winner are the limits that apply and what they hide (5.1).
	Winner func(levels []weir.LevelLimits) (win weir.LevelLimits, hidden []weir.LevelLimits)
	// Unconfigured are the limits where no level has any (5.2).
	Unconfigured func(brought []weir.Limit) weir.LevelLimits
	// Above is the entity that a charge reaches next; empty if none (9.1).
	Above func(c *weir.Config) string
	// TooDeep is true where a chain has more ancestors than it may (9.1).
	TooDeep func(ancestors, depth int) bool
	// CheckNames is what is wrong with the names of a charge's costs (3.4).
	CheckNames func(c *weir.Charge, chain []*Reach) error
	// CheckBrought is what is wrong with the limits that were brought (5.4).
	CheckBrought func(brought []weir.Limit, reached []*Reach) error
	// Parts are what the charges that reach a limit ask of it; none if it is not judged (3.2, 3.3).
	Parts func(l *weir.Limit, charges []weir.Charge, reaching []int) []weir.Part
	// Ceiling is what the use may come to (5.3).
	Ceiling func(l *weir.Limit, brought []weir.Limit, named bool) int64
	// Order puts the takes in the order in which they are judged (3.7).
	Order func(takes []*Take) []*Take
	// CheckCost is what is wrong with a sum that its limit can never hold (3.5, 3.6).
	CheckCost func(t *Take) error
	// JudgeOn is true where judging goes on after a limit, which may have denied (3.7).
	JudgeOn func(denied bool) bool
	// Denies is true where a limit's verdict denies the request (3.6).
	Denies func(l *weir.Limit, fits bool) bool
	// Cost is what a take is judged by (3.2).
	Cost func(parts []weir.Part) *big.Int
	// TakenCost is what a take takes (3.1, 3.6).
	TakenCost func(parts []weir.Part) *big.Int
	// TakesAnyway is true where a limit is charged although the request is denied (3.1).
	TakesAnyway func(t *Take, fits bool) bool
	// SparesUncounted is true where what no longer fits a limit's counter is left out (3.6, 7.11).
	SparesUncounted func(l *weir.Limit) bool
	// Stamps is true where judging a state moves it to now, denied or not (1.3), unless it is not
	// known: what was forgotten stays so until something is taken (8.4).
	Stamps func(denied, known bool) bool
	// Reported is what an admitted reservation says of a limit (3.8).
	Reported func(before, after weir.LimitStatus) weir.LimitStatus
	// Gap runs between judging and taking, with the model locked (3.1).
	Gap func(lock sync.Locker)
}

// DenialRules are section 4.
type DenialRules struct {
	// BucketWait is the time in milliseconds from now until the balance is what is wanted; nil if it
	// will never be (4.2). The bucket was touched, at now or later.
	BucketWait func(b Bucket, want *big.Int, now int64) *big.Int
	// PiecesWait is the same for windows and concurrency limits: until so many units have returned
	// that what remains is at most left (4.2).
	PiecesWait func(pieces []Piece, left *big.Int, now int64) *big.Int
	// BudgetWait is the same for budgets (4.2).
	BudgetWait func(pieces []Piece, left *big.Int, now int64) *big.Int
	// Clamp makes a duration of milliseconds (4.3).
	Clamp func(ms *big.Int) time.Duration
	// RetryAfter is that of the denial (4.1).
	RetryAfter func(limits []weir.LimitStatus) time.Duration
	// Denial is the answer to a denied request (4.1).
	Denial func(d *weir.DeniedError) error
}

// LeaseRules are section 6.
type LeaseRules struct {
	// Clock is the lease table's time (1.3).
	Clock func(table, now int64) int64
	// SameRequest is true where two requests have one content.
	SameRequest func(a, b *Content) bool
	// SameTotals is true where two settlements have one content.
	SameTotals func(a, b []weir.Costs) bool
	// React is the table: what a verb on a lease does.
	React func(v weir.Verb, s weir.LeaseState, same bool) Reaction
	// CheckID is what is wrong with a brought ID that is not known (6.1).
	CheckID func(idMS, horizon, now int64) error
	// Horizon is the oldest time that an unknown ID may carry (6.2).
	Horizon func(now, memory, early, opened int64) int64
	// Ends is when a lease ends that was reserved or extended at now (6.3).
	Ends func(now, lifetime int64, timeouts []int64) int64
	// Expired is true where a live lease has ended by itself (6.3).
	Expired func(ends, now int64) bool
	// Forgets is true where an ended lease is no longer remembered (6.4).
	Forgets func(ended, idMS, memory, now int64) bool
	// Overfull is true where the oldest ended lease is forgotten early (6.4).
	Overfull func(ended, size int) bool
	// ForgottenEarly is the newest ID time that was (6.4).
	ForgottenEarly func(newest, idMS int64) int64
	// Voids is true if a verb on an unknown lease ends its ID (6.7). refused is what a reserve with
	// the ID would be refused with; nil if it would not be.
	Voids func(v weir.Verb, refused error) bool
	// KeepsDenied is true where a denied request leaves a lease (6.5).
	KeepsDenied func() bool
}

// SettleRules are section 7.
type SettleRules struct {
	// CheckTotals is what is wrong with amounts by themselves (7.4).
	CheckTotals func(totals []weir.Costs) error
	// CheckKeys is what is wrong with the charges of a keyed request (7.12).
	CheckKeys func(charges []weir.Charge) error
	// ByKey says what the totals of a settlement are for each charge of a keyed request (7.12).
	ByKey func(c *Content, holdings []*Holding, totals []weir.Costs) ([]weir.Costs, error)
	// CheckSeq is what is wrong with a sequence number by itself (7.1).
	CheckSeq func(seq int64) error
	// Applies is true where an adjust is applied, and not a replay or ignored (7.1).
	Applies func(last, seq int64) bool
	// RefusedSeq is the last sequence number after a call that was refused (7.1).
	RefusedSeq func(last, seq int64) int64
	// Assign says what the lease shall stand for: for each holding its parts (7.1, 7.4).
	Assign func(holdings []*Holding, charges int, totals []weir.Costs) ([][]weir.Part, error)
	// CheckSlots is what is wrong with the slots asked for (7.4).
	CheckSlots func(h *Holding, asked []weir.Part) error
	// AtEnd is what a complete leaves of a holding's parts (7.2).
	AtEnd func(h *Holding, asked []weir.Part) []weir.Part
	// AtCancel is what a cancel leaves of a holding's parts (7.3).
	AtCancel func(h *Holding) []weir.Part
	// Grown is how much of a growth counts (7.5).
	Grown func(l *weir.Limit, more *big.Int) *big.Int
	// GrownUntil is when units of a window return that an adjust added (7.5).
	GrownUntil func(l *weir.Limit, pieces []*Piece, now int64) int64
	// Shrink takes units out of pieces (7.6).
	Shrink func(pieces []*Piece, less, now int64)
	// Refund is a bucket's balance after units came back (7.7).
	Refund func(l *weir.Limit, balance, back *big.Int) *big.Int
	// Book is the end of the period into which a budget's change goes (7.7, 2.4).
	Book func(l *weir.Limit, reserved *Piece, now int64) (until int64)
	// Extended is when a slot returns after an extend (7.8).
	Extended func(p *Piece, l *weir.Limit, now int64) int64
	// Failing is true where a settlement goes on after a limit that could not count it (7.4, 7.11).
	Failing func(err error) bool
}

// ConfigRules are section 8.
type ConfigRules struct {
	// Configured is the configuration after a change (8.1).
	Configured func(was, is *weir.Definitions) *weir.Definitions
	// SettledUnder is the definition that a settlement works under (8.6). inForce is nil where the
	// configuration has none of the name and kind.
	SettledUnder func(own, inForce *weir.Limit) *weir.Limit
}

// fill puts the right rule wherever none was given.
func (r *Rules) fill(c *Calendar) {
	right := Rules{
		NumberRules{instant, effective, units, sum, func() int64 { return maxBucketUnits }},
		KindRules{
			Fresh: fresh, Gain: gain, Fill: fill, Trim: trim, WindowUntil: windowUntil, HoldUntil: holdUntil,
			Slots: slots, Returned: returned, Period: c.Period, Room: room, Fits: fits, KeyOf: keyOf,
		},
		ReserveRules{
			Malformed: malformed, Levels: levels, Winner: winner, Unconfigured: unconfigured,
			Above: above, TooDeep: tooDeep, CheckNames: checkNames, CheckBrought: checkBrought,
			Parts: parts, Ceiling: ceiling, Order: inOrder, CheckCost: r.checkCost, JudgeOn: judgeOn,
			Denies: denies, Cost: cost, TakenCost: cost, TakesAnyway: takesAnyway, Stamps: stamps,
			SparesUncounted: sparesUncounted,
			Reported:        reported, Gap: func(sync.Locker) {},
		},
		DenialRules{bucketWait, piecesWait, budgetWait, clamp, retryAfter, denial},
		LeaseRules{
			tableClock, sameRequest, sameTotals, react, checkID, horizon, leaseEnds, leaseExpired,
			forgets, overfull, forgottenEarly, voids, func() bool { return false },
		},
		SettleRules{
			CheckTotals: checkTotals, CheckKeys: checkKeys, ByKey: byKey, CheckSeq: checkSeq, Applies: applies, RefusedSeq: refusedSeq,
			Assign: assign, CheckSlots: checkSlots, AtEnd: atEnd, AtCancel: atCancel, Grown: grown,
			GrownUntil: r.grownUntil, Shrink: shrink, Refund: refund, Book: book,
			Extended: r.extended, Failing: func(error) bool { return false },
		},
		ConfigRules{configured, settledUnder},
	}
	right.Touch, right.Forgotten = r.touch, r.forgotten
	given, fallback := reflect.ValueOf(r).Elem(), reflect.ValueOf(&right).Elem()
	for i := range given.NumField() {
		for j := range given.Field(i).NumField() {
			if f := given.Field(i).Field(j); f.IsNil() {
				f.Set(fallback.Field(i).Field(j))
			}
		}
	}
}
