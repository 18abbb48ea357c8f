package weir

import "time"

// Level says where a limit came from. The first level that has any limits wins whole: "entity",
// "entity_default", "resource", "system", "limiter" (the limiter's options), "request" (brought
// by the request).
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

// LimitStatus is one limit of one (entity, resource) at one instant.
type LimitStatus struct {
	Entity   string
	Resource string
	Limit    string
	Kind     Kind
	// Level is where the limit's definition came from.
	Level Level
	// Capacity is the limit's ceiling in units; the lower one that the request brought, if it did.
	Capacity int64
	// Available is what may still be taken, in whole units, rounded down: after the reservation
	// where it was admitted, as it was judged where it was denied. Below zero it is debt.
	Available int64
	// Requested is what the request asked of the limit, in units; 0 in a plain status.
	Requested int64
	// Exceeded is true where the limit could not hold what was requested; false in a plain status.
	Exceeded bool
	// Shadow is true where the limit never denies.
	Shadow bool
	// Superseded is true in a plain status if Capacity is of limits that are no longer in force on
	// the store: this server refuses reservations with code [Superseded].
	Superseded bool
	// AtLeast is true where the store can only bound RetryAfter from below.
	AtLeast bool
	// RetryAfter is, for an exceeded limit, the wait to the first millisecond at which it would
	// hold what was requested if nobody else came; 0 otherwise, and for a shadow limit that can
	// never hold it.
	RetryAfter time.Duration
}

// Explanation says which limits apply to an (entity, resource) and why.
type Explanation struct {
	Entity   string
	Resource string
	// Level is the one that won; empty if nothing is configured.
	Level Level
	// Limits are the ones of that level, by name.
	Limits []Limit
	// Hidden are the weaker levels that have limits, the strongest first. None of theirs applies.
	Hidden []LevelLimits
	// Parent is the entity that is charged too, with the same costs; nil if none.
	Parent *Explanation
}

// LevelLimits are the limits of one level, by name.
type LevelLimits struct {
	Level  Level
	Limits []Limit
}
