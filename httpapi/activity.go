package httpapi

import "github.com/weir-limiter/weir"

// ActivityReport is what a server has counted, as GET /v1/activity answers it. Counts stay at
// the largest int64 rather than overflow. Its lists are never nil.
type ActivityReport struct {
	// SinceMS is when counting began, NowMS when the report was made, in Unix milliseconds.
	SinceMS int64 `json:"since_unix_ms"`
	NowMS   int64 `json:"now_unix_ms"`
	// Admitted and Denied are reservations. A repeated call that had been answered before counts in
	// Replayed alone.
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	Replayed int64 `json:"replayed"`
	// Degraded is how many of the admitted ones the store did not answer.
	Degraded int64 `json:"degraded"`
	// Errors are the calls of every verb that failed, by code in order; those that fit no code are
	// "other".
	Errors []ActivityErrors `json:"errors"`
	// Limits are in order of name and kind.
	Limits []ActivityLimit `json:"limits"`
	// Seconds are the last two minutes.
	Seconds ActivitySeconds `json:"seconds"`
	// Denials are the last ones, the newest first.
	Denials []ActivityDenial `json:"denials"`
	// Entities are those seen last, the newest first.
	Entities []ActivityEntity `json:"entities"`
}

// ActivityErrors counts the failures of one code.
type ActivityErrors struct {
	Code  weir.Code `json:"code"`
	Count int64     `json:"count"`
}

// ActivityLimit counts what the limits of one name and kind said. Each limit judged counts, so that
// a request which is charged to an entity and to its parent counts twice.
type ActivityLimit struct {
	// Limit and Kind are empty for the limits that found no place of their own.
	Limit string    `json:"limit"`
	Kind  weir.Kind `json:"kind"`
	// Admitted is how often it was charged.
	Admitted int64 `json:"admitted"`
	// Denied is how often it was exceeded and denied.
	Denied int64 `json:"denied"`
	// Shadow is how often it was exceeded where it never denies.
	Shadow int64 `json:"shadow_exceeded"`
	// Reserved is the units that were charged, as they were asked for; settlements do not change it.
	Reserved int64 `json:"units_reserved"`
}

// ActivitySeconds counts reservations second by second, the oldest first. The last second is not
// over yet.
type ActivitySeconds struct {
	// From is the first second, in Unix seconds.
	From     int64   `json:"from_unix_s"`
	Admitted []int64 `json:"admitted"`
	Denied   []int64 `json:"denied"`
}

// ActivityDenial is one reservation that was denied.
type ActivityDenial struct {
	// AtMS is when it was asked for, in Unix milliseconds.
	AtMS int64 `json:"at_unix_ms"`
	// Entity and Resource are those of the first limit that was judged; empty if none was.
	Entity   string `json:"entity"`
	Resource string `json:"resource"`
	// RetryAfterMS is how long after AtMS it would have fit, at least that where AtLeast is true.
	RetryAfterMS int64 `json:"retry_after_ms"`
	AtLeast      bool  `json:"retry_after_at_least,omitempty"`
	// Contended is true where the store gave up after losing to other writers.
	Contended bool `json:"contended,omitempty"`
	// Exceeded are the limits that denied, at most eight; More is how many there were besides.
	Exceeded []ActivityExceeded `json:"exceeded"`
	More     int                `json:"more,omitempty"`
}

// ActivityExceeded is a limit that denied, as it stood. Its amounts are units.
type ActivityExceeded struct {
	Entity    string    `json:"entity"`
	Resource  string    `json:"resource"`
	Limit     string    `json:"limit"`
	Kind      weir.Kind `json:"kind"`
	Capacity  int64     `json:"capacity"`
	Available int64     `json:"available"`
	Requested int64     `json:"requested"`
}

// ActivityEntity is an entity that was judged lately, admitted or not.
type ActivityEntity struct {
	Entity string `json:"entity"`
	// LastMS is when, in Unix milliseconds.
	LastMS int64 `json:"last_unix_ms"`
}
