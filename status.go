package weir

import "time"

// Level says where limits come from. The first level that has any limits applies as a whole:
// "entity", "entity_default", "resource", "system", "limiter" (the limiter's options), "request"
// (brought by the request).
type Level string

// The levels, the strongest first.
const (
	LevelEntity        Level = "entity"
	LevelEntityDefault Level = "entity_default"
	LevelResource      Level = "resource"
	LevelSystem        Level = "system"
	LevelLimiter       Level = "limiter"
	LevelRequest       Level = "request"
)

// LimitStatus is the status of one limit of one subject at one instant.
type LimitStatus struct {
	Entity   string
	Resource string
	Limit    string
	Kind     Kind
	// Level is where the definition of the limit comes from.
	Level Level
	// Capacity is the ceiling in units: the limit's capacity, or the lower one that the request
	// brought.
	Capacity int64
	// Available is the number of units that can still be taken, rounded down: after the reservation
	// if it was admitted, before it if it was denied. It is negative for a debt.
	Available int64
	// Requested is the number of units that the request asked of the limit; 0 in the answer to
	// Status.
	Requested int64
	// Exceeded reports that the request did not fit the limit; false in the answer to Status.
	Exceeded bool
	// Shadow reports that the limit never denies.
	Shadow bool
	// Superseded reports, in the answer to Status, that Capacity comes from a definition that is no
	// longer in force on the store: this server refuses reservations with code [Superseded].
	Superseded bool
	// AtLeast reports that RetryAfter is a lower bound, because the store cannot compute the exact
	// time.
	AtLeast bool
	// RetryAfter is, for an exceeded limit, the time until the first millisecond at which the
	// request would fit if there were no other requests. It is 0 if the limit is not exceeded, and
	// for a shadow limit that can never hold the request. For a concurrency limit it is the time
	// until enough slots have timed out, see [LimitStatus.AtMost].
	RetryAfter time.Duration
	// RetryLikely is, for a concurrency limit that denied a request, the time after which slots are
	// likely to have returned, by how long this process has seen leases hold them. It is never
	// longer than RetryAfter, and 0 if no slot was seen to return.
	RetryLikely time.Duration
}

// AtMost reports that RetryAfter is an upper bound: slots return when their leases are settled,
// which is usually long before they time out.
func (s *LimitStatus) AtMost() bool {
	return s.Exceeded && s.Kind == Concurrency && !s.AtLeast
}

// ComeAgain returns when it is worth asking again: after RetryLikely if it is known, and otherwise
// after RetryAfter.
func (s *LimitStatus) ComeAgain() time.Duration {
	if s.RetryLikely > 0 {
		return s.RetryLikely
	}
	return s.RetryAfter
}
