package httpapi

import "github.com/weir-limiter/weir"

// ActivityReport is what a server has counted: the answer to GET /v1/activity. Counts stop at the
// largest int64 instead of overflowing. Its slices are never nil.
type ActivityReport struct {
	// SinceMS is when counting began and NowMS when the report was made, in Unix milliseconds.
	SinceMS int64 `json:"since_unix_ms"`
	NowMS   int64 `json:"now_unix_ms"`
	// Admitted and Denied count reservations. A replay counts only in Replayed.
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	Replayed int64 `json:"replayed"`
	// Degraded counts the admitted ones that the store did not answer.
	Degraded int64 `json:"degraded"`
	// Errors count the failed calls of every verb, in the order of the codes. Errors without a code
	// are "other".
	Errors []ActivityErrors `json:"errors"`
	// Limits are in the order of names and kinds.
	Limits []ActivityLimit `json:"limits"`
	// Seconds are the last two minutes.
	Seconds ActivitySeconds `json:"seconds"`
	// Denials are the last ones, the newest first.
	Denials []ActivityDenial `json:"denials"`
	// Entities are those that were judged last, the newest first.
	Entities []ActivityEntity `json:"entities"`
}

// ActivityErrors counts the failures of one code.
type ActivityErrors struct {
	Code  weir.Code `json:"code"`
	Count int64     `json:"count"`
}

// ActivityLimit counts what the limits of one name and kind decided. Each limit counts, so a
// request that is charged to an entity and its parent counts twice.
type ActivityLimit struct {
	// Limit and Kind are empty for all limits beyond a bound on their number.
	Limit string    `json:"limit"`
	Kind  weir.Kind `json:"kind"`
	// Admitted counts how often it was charged.
	Admitted int64 `json:"admitted"`
	// Denied counts how often it was exceeded and denied.
	Denied int64 `json:"denied"`
	// Shadow counts how often it was exceeded as a shadow limit.
	Shadow int64 `json:"shadow_exceeded"`
	// Reserved sums the units that were reserved. Updates do not change it.
	Reserved int64 `json:"units_reserved"`
}

// ActivitySeconds counts reservations by second, the oldest first. The last second is not over.
type ActivitySeconds struct {
	// From is the first second, in Unix seconds.
	From     int64   `json:"from_unix_s"`
	Admitted []int64 `json:"admitted"`
	Denied   []int64 `json:"denied"`
}

// ActivityDenial is one reservation that was denied.
type ActivityDenial struct {
	// AtMS is when it was requested, in Unix milliseconds.
	AtMS int64 `json:"at_unix_ms"`
	// Entity and Resource are those of the first limit that was judged, if any.
	Entity   string `json:"entity"`
	Resource string `json:"resource"`
	// RetryAfterMS is the retry-after of the denial, a lower bound if AtLeast is true.
	RetryAfterMS int64 `json:"retry_after_ms"`
	AtLeast      bool  `json:"retry_after_at_least,omitempty"`
	// Contended is true if it was denied because other writers won every round.
	Contended bool `json:"contended,omitempty"`
	// Exceeded are the first eight limits that denied, and More counts the others.
	Exceeded []ActivityExceeded `json:"exceeded"`
	More     int                `json:"more,omitempty"`
}

// ActivityExceeded is a limit that denied. Its amounts are units.
type ActivityExceeded struct {
	Entity    string    `json:"entity"`
	Resource  string    `json:"resource"`
	Limit     string    `json:"limit"`
	Kind      weir.Kind `json:"kind"`
	Capacity  int64     `json:"capacity"`
	Available int64     `json:"available"`
	Requested int64     `json:"requested"`
}

// ActivityEntity is an entity that was judged, admitted or not.
type ActivityEntity struct {
	Entity string `json:"entity"`
	// LastMS is when, in Unix milliseconds.
	LastMS int64 `json:"last_unix_ms"`
}
