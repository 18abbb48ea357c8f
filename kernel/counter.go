package kernel

import (
	"math"
	"time"
)

// Definition is what a counter goes by: a limit without its name. All of its numbers are above
// zero, except those that its kind does not use.
type Definition struct {
	// Capacity is the ceiling, in units; of a bucket at most MaxInt64/1000.
	Capacity int64
	// Refill is what a bucket regains in LengthMS, in units, at most MaxInt64/1000.
	Refill int64
	// LengthMS is a bucket's refill period, or for how long a unit of a window or a slot that
	// nobody renews is occupied.
	LengthMS int64
	// Calendar has the periods of a budget.
	Calendar Calendar
}

// Rate returns the rate of a bucket with this definition.
func (d Definition) Rate() Rate {
	return Rate{d.Capacity * milliPerUnit, d.Refill * milliPerUnit, d.LengthMS}
}

// Piece is where some units of a lease are.
type Piece struct {
	Units int64
	// Until is when they return by themselves, in Unix milliseconds; 0 if they do not.
	Until int64
	// Mark tells apart what returns at the same instant: for a window or slots their length, for a
	// budget the start of the period. A store that does not count by this package may use it
	// freely.
	Mark int64
}

// Change is what one lease stands for on one limit, and what it shall stand for.
type Change struct {
	// Pieces are where the lease's units are. They are not changed.
	Pieces []Piece
	// From and To are the units that the lease stands for before and after.
	From, To int64
	// Ends says that the lease ends: its pieces are not needed any more.
	Ends bool
}

// Counter counts what is in use of one limit: a [*Bucket], [*Window], [*Concurrency] or [*Budget].
// Instants are Unix milliseconds. All calls go by the definition that the counter was made with or
// was given last.
type Counter interface {
	// Redefine puts another definition in force from now on. What is in use stays in use.
	Redefine(now int64, d Definition)
	// Available brings the counter to now and returns the units that are left of the capacity,
	// rounded down. A counter that is forgotten stays so.
	Available(now int64) int64
	// AvailableAt returns what Available would if d were in force, and changes nothing.
	AvailableAt(now int64, d Definition) int64
	// FitsAt returns the first instant, not before now, at which n units are available if nobody
	// takes any. It is MaxInt64 if they never are.
	FitsAt(now, n int64) int64
	// CanCount reports whether the counter can hold what c asks for, whatever the capacity.
	CanCount(now int64, c Change) bool
	// Take counts n more units, whether or not they fit, and returns where they are. It reports
	// false if there is nothing to remember.
	Take(now, n int64) (Piece, bool)
	// Apply makes a lease stand for c.To units instead of c.From, whether or not they fit, and
	// returns where its units then are.
	Apply(now int64, c Change) []Piece
	// InUse reports whether anything is in use at now.
	InUse(now int64) bool
	// Idle reports whether nothing has been in use for a time (ms), and nobody has asked for as
	// long.
	Idle(now, forMS int64) bool
	// Clone returns a copy that shares nothing with the counter.
	Clone() Counter
}

// ForgetMS is how long nothing is in use, and nobody asks, until a counter counts as one that has
// never been used (docs/semantics.md, 8.4).
const ForgetMS = 60_000

// Judge decides whether n units fit while the use stays at or below a ceiling, which is at most the
// counter's capacity. It takes nothing. Available is what is left below the ceiling; retryAfter is
// how long it takes until the same request fits if nobody else comes, and 0 if it fits or never
// can.
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

// Duration returns a wait of so many milliseconds, at most the longest duration there is.
func Duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Until returns the wait between two instants (ms): 0 if the second one has come, and at most the
// longest duration there is.
func Until(nowMS, atMS int64) time.Duration {
	if atMS <= nowMS {
		return 0
	}
	ms := uint64(atMS) - uint64(nowMS) // the difference of two int64 fits
	return Duration(int64(min(ms, math.MaxInt64)))
}
