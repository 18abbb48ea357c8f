package kernel

import (
	"math"
	"time"
)

// Definition is a limit without its name. All of its numbers are above zero, except those that its
// kind does not use.
type Definition struct {
	// Capacity is the ceiling, in units; for a bucket at most MaxInt64/1000.
	Capacity int64
	// Refill is the number of units that a bucket regains in LengthMS, at most MaxInt64/1000.
	Refill int64
	// LengthMS is the refill period of a bucket, or how long a unit of a window or a slot that is
	// not renewed stays occupied.
	LengthMS int64
	// Calendar divides time into the periods of a budget.
	Calendar Calendar
}

// Rate returns the rate of a bucket with this definition.
func (d Definition) Rate() Rate {
	return Rate{d.Capacity * milliPerUnit, d.Refill * milliPerUnit, d.LengthMS}
}

// Piece is a number of units of a lease that return together.
type Piece struct {
	Units int64
	// Until is when the units return by themselves, in Unix milliseconds; 0 if they do not.
	Until int64
	// Mark distinguishes units that return at the same instant: it is their length for a window or
	// slots, and the start of the period for a budget. A store that does not use the counters of
	// this package may use it as it likes.
	Mark int64
}

// Change is a change of what one lease stands for on one limit.
type Change struct {
	// Pieces are those of the lease before the change. They are not modified.
	Pieces []Piece
	// From and To are the units that the lease stands for before and after.
	From, To int64
	// Ends reports that the lease ends, so that its pieces are not needed any more.
	Ends bool
}

// Counter counts what is in use of one limit: a [*Bucket], [*Window], [*Concurrency] or [*Budget].
// Instants are Unix milliseconds. All methods use the definition that the counter was made with or
// was given last. A counter is not safe for concurrent use.
type Counter interface {
	// Redefine replaces the definition from now on. Units in use stay in use.
	Redefine(now int64, d Definition)
	// Available returns the units that are left of the capacity at now, rounded down. It moves the
	// counter's time to now: after that, an earlier now counts as this one. A counter that is
	// forgotten stays forgotten.
	Available(now int64) int64
	// AvailableAt returns what Available would return if d were in force. It does not modify the
	// counter.
	AvailableAt(now int64, d Definition) int64
	// FitsAt returns the first instant, not before now, at which n units are available if nothing
	// more is taken. It is MaxInt64 if they never are.
	FitsAt(now, n int64) int64
	// CanCount reports whether the counter can hold c without overflow, whatever the capacity is.
	CanCount(now int64, c Change) bool
	// Take counts n more units, whether they fit or not, and returns their piece. It returns false
	// if the lease need not keep the piece.
	Take(now, n int64) (Piece, bool)
	// Apply makes a lease stand for c.To units instead of c.From, whether they fit or not, and
	// returns the pieces that the lease then has.
	Apply(now int64, c Change) []Piece
	// InUse reports whether anything is in use at now.
	InUse(now int64) bool
	// Idle reports whether in the last forMS milliseconds nothing was in use and no call has moved
	// the counter's time.
	Idle(now, forMS int64) bool
	// Clone returns a copy that shares no memory with the counter.
	Clone() Counter
}

// ForgetMS is how long a counter has to be idle before it is forgotten and counts as a new one
// (docs/semantics.md, 8.4).
const ForgetMS = 60_000

// Judge decides whether n units fit if the use must not exceed a ceiling, which is at most the
// counter's capacity. It takes nothing, but moves the counter's time to now. available is the number of units left below the ceiling.
// retryAfter is the time until the same request fits if nothing else is taken; it is 0 if the
// request fits, or can never fit.
func Judge(
	c Counter, now, n, ceiling, capacity int64,
) (available int64, retryAfter time.Duration, fits bool) {
	lowered := capacity - ceiling
	available = c.Available(now) - lowered
	fits = available >= n
	if !fits && n <= ceiling {
		retryAfter = Until(now, c.FitsAt(now, n+lowered))
	}
	return available, retryAfter, fits
}

// Duration returns ms milliseconds as a duration, at most the longest one.
func Duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Until returns the time between two instants in milliseconds, at most the longest duration; 0 if
// atMS is not after nowMS.
func Until(nowMS, atMS int64) time.Duration {
	if atMS <= nowMS {
		return 0
	}
	ms := uint64(atMS) - uint64(nowMS) // the difference of two int64 fits
	return Duration(int64(min(ms, math.MaxInt64)))
}
